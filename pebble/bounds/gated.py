r"""A gated FFN with large fast memory: the elementwise product ties gate and up cells together.

In `pebble.bounds.chain` a segment may work on gate and down alone, or on up alone. But :math:`H_{ij} =
\mathrm{act}(G_{ij})\, U_{ij}` is one operation, in one segment, and it touches both cells. Let a segment do :math:`v_1`
products of gate and up and :math:`v_2` of down, touch :math:`T` cells, :math:`e` of them gate cells, and do :math:`M`
of the :math:`m f` elementwise products. Then

.. math:: X \ge T + v_1 G(T; \min(m, 2 f)) + v_2 G(e; \min(m, f)), \qquad v_1 \le k T, \quad v_2 \le l e, \quad
   M \le \min(e, T - e),

where :math:`G(e; p)` is :math:`2 / \sqrt e` up to :math:`p^2` and :math:`1 / p + p / e` beyond. The :math:`M` add up to
:math:`m f` and the :math:`v_2` to :math:`m f l`. So, with :math:`\varphi` the least :math:`X - \lambda M + \tau v_2` of
a segment of :math:`P` or :math:`P + 1` products,

**Theorem 4.** *For every* :math:`\lambda` *in* :math:`[0, 1]` *and every* :math:`\tau`, *without recomputation,*
:math:`Q \ge h \varphi + (\lambda - 2 - \tau l)\, m f - (h - 1) S`.

:math:`\varphi` is a minimum over the two numbers :math:`T` and :math:`e` (for given :math:`T` and :math:`e` it is
linear in :math:`v_2`: an end of its range). It is bounded from below by branch and bound: in a box of :math:`T` and
:math:`e`, cells count at their least, prices at their least, which is at the largest :math:`T` and :math:`e`, and the
range of :math:`v_2` is the largest. What is reported is the least bound over all boxes, never the value at a point. The
arithmetic is floating point with fewer than 50 operations per box, none of which loses more than a few units in the
last place of the terms' sum: the margin of :math:`10^{-9}` covers that a thousandfold.

:math:`h, \lambda` and :math:`\tau` are chosen for the workload, whatever :math:`S` is, so the bound falls as :math:`S`
grows. It matters where :math:`S` exceeds about :math:`k^2`, and then tends to :math:`(\sqrt 2 k + l)^2 m f / S`.

**Which** :math:`h` **to look at.** At a point where all segments are alike, :math:`M = m f / h` and :math:`v_2 = m f l
/ h`, the weights cancel, so :math:`h X - 2 m f - (h - 1) S` at any such point is at least what :math:`h` can prove:
most :math:`h` need not be looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.bounds.chain import Chain
from pebble.bounds.numbers import decimal, number, signed
from pebble.bounds.proofs import Theorem
from pebble.bounds.uses import Goal, InValues, Use
from pebble.certificate.gated import CELL_BITS

Floats = NDArray[np.float64]

THEOREM = Theorem("Theorem 4", __name__)
METHOD = "segment accounting for a gated chain, with the elementwise product"
_LEAST_CELLS = 100_000  # below that m f the whole-number bounds are good, and time is better spent elsewhere
_MARGIN = 1e-9
_TOLERANCE = 2e-4
_MOST_BOXES = 40_000


class Cut(NamedTuple):
    """h, lambda, tau and phi: a valid bound for every capacity."""

    segments: int
    weight_of_multiplies: Fraction
    weight_of_down: Fraction
    least_per_segment: Fraction

    def bound(self, chain: Chain, capacity: int) -> Fraction:
        """The right side of the theorem."""
        weight = self.weight_of_multiplies - 2 - self.weight_of_down * chain.l
        h = self.segments
        return h * self.least_per_segment + weight * chain.cells - (h - 1) * capacity


@dataclass(frozen=True)
class GatedBound(InValues):
    """Theorem 4 on an instance."""

    method: str  #: what the bound is called
    chain: Chain  #: the two products, gated
    capacity: int  #: S
    cut: Cut  #: h, lambda, tau and phi
    on_top: int = 0  #: stores of H that are certain and not counted by the theorem
    theorem: Theorem = THEOREM  #: what it rests on

    @property
    def elements(self) -> int:
        """Values moved at least."""
        return math.ceil(self.cut.bound(self.chain, self.capacity)) + self.on_top

    @property
    def segments(self) -> int:
        """How many there are, h."""
        return self.cut.segments

    @property
    def products(self) -> int:
        """Multiply-adds."""
        return _products(self.chain)

    @property
    def first_edges(self) -> tuple[list[float], list[float]]:
        """Edges of the boxes of all cells, and of gate cells, where the search for phi starts."""
        cells, gate_cells = Segment(self.chain, self.cut.segments).edges()
        return cells.tolist(), gate_cells.tolist()

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        h = self.segments
        return {
            "segments": h,
            "share_products": self.products // h,
            "lambda": str(self.cut.weight_of_multiplies),
            "tau": str(self.cut.weight_of_down),
            "phi": str(self.cut.least_per_segment),
            "held_at_cuts": (h - 1) * self.capacity,
            "cells_begun_and_not_stored": 2 * self.chain.cells,
            "added_elements": self.on_top,
        }

    def claim(self) -> dict[str, Any]:
        """The parameters of the bound, and the edges of the boxes from which it was found, in the checker's units."""
        cells, cut = self.chain.cells, self.cut
        edges = zip(self.first_edges, (2 * cells, cells), strict=True)
        units = [[*(int(Fraction(x) * 2**CELL_BITS) for x in result[:-1]), last << CELL_BITS] for result, last in edges]
        return {
            "theorem": "tied segments",
            "segments": cut.segments,
            "lambda": str(cut.weight_of_multiplies),
            "tau": str(cut.weight_of_down),
            "phi": str(cut.least_per_segment),
            "cells": units[0],
            "gate_cells": units[1],
        }

    def text(self, traffic: Mapping[str, int]) -> str:
        """The segments, and the sum."""
        cut = self.cut
        weight, tau, phi = cut.weight_of_multiplies, cut.weight_of_down, cut.least_per_segment
        return rf"""
        ## Segments

        Cut the schedule into $h = {number(cut.segments)}$ segments of equal work. A value touched in a segment was held
        when it began (at most $S$ at each cut), is loaded in it, or is an accumulator initialised in it. Gate and up
        cells, $2 m f = {number(2 * self.chain.cells)}$, are initialised free and need not be stored, so they are
        subtracted. The elementwise product of a gate and an up cell is done in one segment, which touches both. With
        $T$ cells touched in a segment, $e$ of them gate cells, $v_1$ multiply-adds of gate and up, $v_2$ of down, and
        $M$ elementwise products,

        $$ X \ge T + v_1 G(T; \min(m, 2f)) + v_2 G(e; \min(m, f)), \qquad M \le \min(e, T - e)

        where $G(e; p)$ is $2 / \sqrt{{e}}$ up to $p^2$ and $1/p + p/e$ beyond (Loomis and Whitney, and the sides of the
        box).

        ## Arithmetic

        With $\lambda = {decimal(weight)}$ and $\tau = {signed(tau)}$ every segment has $X - \lambda M + \tau v_2 \ge
        \varphi = {number(phi)}$. The checker proves it on boxes of $T$ and $e$, in whole numbers. All $M$ add up to $m
        f$ and all $v_2$ to $m f l$, so

        $$ Q \ge h \varphi + (\lambda - 2 - \tau l)\, m f - (h - 1) S \quad\Rightarrow\quad Q \ge
        {number(self.elements)}
        """


@dataclass(frozen=True)
class ByElementwiseProduct(Use):
    """Theorem 4 of a gated chain; parameters as in `gated_bound`."""

    chain: Chain
    on_top: int = 0
    method: str = METHOD
    first_of_equals = True

    def proofs(self, goal: Goal) -> tuple[GatedBound, ...]:
        """Where it proves no less than the others."""
        bound = gated_bound(self.chain, goal.capacity, goal.least, self.on_top, self.method)
        return () if bound is None else (bound,)


def gated_bound(chain: Chain, capacity: int, floor: int, on_top: int = 0, method: str = METHOD) -> GatedBound | None:
    """The best h for a capacity, if it proves ``floor`` at least; None for a small problem.

    Parameters
    ----------
    chain : Chain
        A gated one.
    capacity : int
        S.
    floor : int
        What is proved already: less is of no use.
    on_top, method
        As in `GatedBound`.

    Returns
    -------
    Tied or None
        Some milliseconds, and some hundredths of a second for each h that is looked at, once per problem.
    """
    if chain.cells < _LEAST_CELLS:
        return None
    best: tuple[Fraction, int, Cut] | None = None
    hopes = _hopes(chain)
    for h, hope in sorted(hopes, key=lambda x: (x[0] - 1) * capacity - x[1]):
        least = floor - on_top if best is None else math.ceil(best[0])
        if hope - (h - 1) * capacity < least - 1:
            break
        if _weights(chain, h).reach - (h - 1) * capacity < least - 1:
            continue
        cut = _cut(chain, h)
        if cut is not None:
            value = cut.bound(chain, capacity)
            best = max(best or (value, -h, cut), (value, -h, cut))  # the smallest h of equals
    result = GatedBound(method, chain, capacity, best[2], on_top) if best is not None else None
    return result if result is not None and result.elements >= floor else None


def _products(chain: Chain) -> int:
    return chain.cells * (2 * chain.k + chain.l)


def _segment_counts(chain: Chain) -> list[int]:
    """The h at which the bound is looked at: from 2 to where S is some k^2 / 2, with 1000 products per segment."""
    most = max(8.0, min(6 * chain.cells / chain.k**2, _products(chain) / 1000))
    ratio = max(1.15, (most / 8) ** (1 / 16))
    counts, h = list(range(2, 9)), 8.0
    while h < most:
        h *= ratio
        counts.append(round(h))
    return counts


@lru_cache(maxsize=64)
def _hopes(chain: Chain) -> tuple[tuple[int, float], ...]:
    """For each h more than h phi + (lambda - 2 - tau l) m f can be, from points where all segments are alike."""
    results = []
    for h in _segment_counts(chain):
        segment = Segment(chain, h)
        least = chain.cells / h
        gate, up = np.meshgrid(np.geomspace(least, chain.cells, 40), np.geomspace(least, chain.cells, 40))
        down = least * chain.l
        cells = gate + up
        charges = (segment.products + 1 - down) * segment.charge(cells, segment.p1) + down * segment.charge(
            gate, segment.p2
        )
        results.append((h, h * float((cells + charges).min()) * (1 + 1e-6) - 2 * chain.cells))
    return tuple(results)


class Weights(NamedTuple):
    """Chosen for one h."""

    multiplies: float
    down: float
    reach: float
    """More than h phi + (lambda - 2 - tau l) m f can be: phi is at most what any point has."""


@lru_cache(maxsize=256)
def _weights(chain: Chain, h: int) -> Weights:
    lam, tau, gain = Segment(chain, h).choose(h)
    return Weights(lam, tau, gain - 2 * chain.cells)


@lru_cache(maxsize=256)
def _cut(chain: Chain, h: int) -> Cut | None:
    """Weights and phi for one h; None where the arithmetic would not carry them."""
    segment = Segment(chain, h)
    lam, tau, _ = _weights(chain, h)
    phi = segment.phi(lam, tau)
    if not abs(tau) * segment.products < 1000 * phi < float("inf"):
        return None
    return Cut(h, Fraction(lam), Fraction(tau), Fraction(phi) * (1 - Fraction(_MARGIN)))


class Segment:
    """phi for one share of the products."""

    def __init__(self, chain: Chain, segments: int) -> None:
        self.k, self.l, self.products = float(chain.k), float(chain.l), float(_products(chain) // segments)
        self.cells = float(chain.cells)
        self.p1, self.p2 = float(min(chain.m, 2 * chain.f)), float(min(chain.m, chain.f))

    def edges(self) -> tuple[Floats, Floats]:
        """Where the search starts: edges of boxes of all cells and of gate cells."""
        low = self.products / (self.k + self.l) * (1 - _MARGIN)  # P <= k T + l e, and e <= T
        return np.geomspace(low, 2 * self.cells, 25), np.append(0.0, np.geomspace(low / 64, self.cells, 24))

    @staticmethod
    def charge(cells: Floats, p: float) -> Floats:
        """G(e; p)."""
        return np.where(cells <= p * p, 2 / np.sqrt(cells), 1 / p + p / cells)

    def below(self, t1: Floats, t2: Floats, e1: Floats, e2: Floats) -> Callable[[float, float], Floats]:
        """For lambda and tau, a lower bound of X - lambda M + tau v2 over t1 <= T <= t2, e1 <= e <= e2.

        Infinite where none is feasible. What does not depend on the weights is computed once.
        """
        most = self.products
        first, second = self.charge(t2, self.p1), self.charge(e2, self.p2)
        low, high = np.maximum(0, most - self.k * t2), np.minimum(most + 1, self.l * e2)
        # v1 = max(0, P - v2) at least: linear in v2 up to P, and again beyond it
        ends = [(np.maximum(0, most - v) * first, v) for v in (low, high, np.clip(most, low, high))]
        # a box is empty when no v2 is allowed, or no gate cells fit under T, or too many up cells are left
        empty = (low > high) | (e1 > t2) | (t1 - e2 > self.cells)

        def value(lam: float, tau: float) -> Floats:
            # T - lambda min(e, T - e) is the larger of two linear functions
            cells = np.maximum(t1 - lam * e2, (1 - lam) * t1 + lam * e1)
            charge = second + tau
            single, other, middle = (rest + v * charge for rest, v in ends)
            result: Floats = np.where(empty, np.inf, cells + np.minimum(np.minimum(single, other), middle))
            return result

        return value

    def phi(self, lam: float, tau: float) -> float:
        """A lower bound of the least X - lambda M + tau v2, by branch and bound."""
        t_edges, e_edges = self.edges()
        t1, e1 = (a.ravel() for a in np.meshgrid(t_edges[:-1], e_edges[:-1]))
        t2, e2 = (a.ravel() for a in np.meshgrid(t_edges[1:], e_edges[1:]))
        best, closed = np.inf, np.inf
        while t1.size:
            value = self.below(t1, t2, e1, e2)(lam, tau)
            gate = np.minimum(e2, t2)
            points = self.below(t2, t2, gate, gate)(lam, tau)
            best = min(best, float(points.min(initial=np.inf)))
            goal = best - _TOLERANCE * abs(best)
            if t1.size > _MOST_BOXES:
                return min(closed, float(value.min()))
            done = value >= goal
            closed = min(closed, float(value[done].min(initial=np.inf)))
            t1, t2, e1, e2 = t1[~done], t2[~done], e1[~done], e2[~done]
            tm, em = (t1 + t2) / 2, (e1 + e2) / 2
            t1, t2 = np.concatenate([t1, tm, t1, tm]), np.concatenate([tm, t2, tm, t2])
            e1, e2 = np.concatenate([e1, e1, em, em]), np.concatenate([em, em, e2, e2])
        return closed

    def choose(self, segments: int) -> tuple[float, float, float]:
        """lambda and tau that are about the best for this share, on a coarse grid of points, and how good there."""
        low = self.products / (self.k + self.l)
        t, share = (a.ravel() for a in np.meshgrid(np.geomspace(low, 2 * self.cells, 60), np.linspace(0.02, 1, 50)))
        e = np.minimum(t * share, self.cells)
        below = self.below(t, t, e, e)
        unit = 2 * math.sqrt((2 * self.k + self.l) / self.products)  # the price of a product when the split is even

        def gain(weights: tuple[float, float]) -> float:
            lam, tau = weights
            least = float(below(lam, tau * unit).min())
            return segments * least + (lam - tau * unit * self.l) * self.cells

        lam, tau = max(((i / 8, j / 10) for i in range(9) for j in range(-4, 4)), key=gain)
        near = [(lam + i / 32, tau + j / 40) for i in range(-3, 4) for j in range(-3, 4) if 0 <= lam + i / 32 <= 1]
        lam, tau = max(near, key=gain)
        return lam, tau * unit, gain((lam, tau))

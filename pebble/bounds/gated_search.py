"""The search for the segments and multipliers of Theorem 4 and B10, and a bound of what a segment has."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.bounds.chain import Chain
from pebble.workloads.widths import ALIKE, Widths

Floats = NDArray[np.float64]

_LEAST_CELLS = 100_000  # below that m f the whole-number bounds are good, and time is better spent elsewhere
_MARGIN = 1e-9
_TOLERANCE = 2e-4
_MOST_BOXES = 40_000


@dataclass(frozen=True)
class Tied:
    """A gated chain, and what its values and products count, in units of the widths."""

    chain: Chain
    widths: Widths = ALIKE
    output: int = 1  #: p', a cell of the output
    weights: tuple[int, int] = (1, 1)  #: alpha and beta, the work of a product of gate and up, and of down

    @property
    def work(self) -> int:
        """Of all products."""
        chain, (alpha, beta) = self.chain, self.weights
        return chain.cells * (2 * alpha * chain.k + beta * chain.l)

    @property
    def slack(self) -> int:
        """What a segment may miss of its share, since products are whole."""
        return max(self.weights) - 1

    @property
    def taken_off(self) -> int:
        """For cells that are initialised, not loaded: w for gate and up, p' - w_o for an output."""
        chain, (w, _, _, written) = self.chain, self.widths.in_units
        return 2 * w * chain.cells + (self.output - written) * chain.m * chain.l

    def weighted(self, widths: Widths) -> tuple[Tied, ...]:
        """The charges and weights that are worth trying where values have widths; first those for wide sums."""
        w, _, p, written = widths.in_units
        return tuple(
            Tied(self.chain, widths, output, weights)
            for output in sorted({written, (written + p) // 2, p}, reverse=True)
            # whole numbers whose ratio is about sqrt(2 p' / w): with these the two kinds weigh what they touch
            for weights in ((1, 1), (1, 2) if 2 * output >= 3 * w else (5, 7))
        )


class Cut(NamedTuple):
    """h, lambda, tau and phi: a valid bound for every capacity."""

    segments: int
    weight_of_multiplies: Fraction
    weight_of_down: Fraction
    least_per_segment: Fraction

    def bound(self, tied: Tied, capacity: int) -> Fraction:
        """The right side of the theorem."""
        weight = self.weight_of_multiplies - self.weight_of_down * tied.chain.l
        h = self.segments
        return h * self.least_per_segment + weight * tied.chain.cells - tied.taken_off - (h - 1) * capacity


def best_cut(tied: Tied, capacity: int, floor: int) -> Cut | None:
    """That of the best h for a capacity, if it proves ``floor``; None for a small problem."""
    if tied.chain.cells < _LEAST_CELLS:
        return None
    best: tuple[Fraction, int, Cut] | None = None
    for h, hope in sorted(_hopes(tied), key=lambda x: (x[0] - 1) * capacity - x[1]):
        least = floor if best is None else math.ceil(best[0])
        if hope - (h - 1) * capacity < least - 1:
            break
        if _weights(tied, h).reach - (h - 1) * capacity < least - 1:
            continue
        cut = _cut(tied, h)
        if cut is not None:
            value = cut.bound(tied, capacity)
            best = max(best or (value, -h, cut), (value, -h, cut))  # the smallest h of equals
    return best[2] if best is not None and math.ceil(best[0]) >= floor else None


def _segment_counts(tied: Tied) -> list[int]:
    """The h at which the bound is looked at: from 2 to where S is some k^2 / 2, with 1000 products per segment."""
    chain = tied.chain
    most = max(8.0, min(6 * chain.cells / chain.k**2, chain.cells * (2 * chain.k + chain.l) / 1000))
    ratio = max(1.15, (most / 8) ** (1 / 16))
    counts, h = list(range(2, 9)), 8.0
    while h < most:
        h *= ratio
        counts.append(round(h))
    return counts


@lru_cache(maxsize=64)
def _hopes(tied: Tied) -> tuple[tuple[int, float], ...]:
    """For each h more than it can prove and (h - 1) S, from points where all segments are alike."""
    results, chain = [], tied.chain
    for h in _segment_counts(tied):
        segment = Segment(tied, h)
        least = chain.cells / h
        gate, up = np.meshgrid(np.geomspace(least, chain.cells, 40), np.geomspace(least, chain.cells, 40))
        down = least * chain.l
        first = (segment.most - segment.beta * down) / segment.alpha
        cells = gate + up
        charges = first * segment.first(cells) + down * segment.second(gate)
        value = h * float((segment.w * cells + charges).min()) * (1 + 1e-6)
        results.append((h, value - tied.taken_off))
    return tuple(results)


class Weights(NamedTuple):
    """Chosen for one h."""

    multiplies: float
    down: float
    reach: float
    """More than h phi + (lambda - 2 w - tau l) m f - (p' - w_o) m l can be: phi is at most what any point has."""


@lru_cache(maxsize=256)
def _weights(tied: Tied, h: int) -> Weights:
    lam, tau, gain = Segment(tied, h).choose(h)
    return Weights(lam, tau, gain - tied.taken_off)


@lru_cache(maxsize=256)
def _cut(tied: Tied, h: int) -> Cut | None:
    """Weights and phi for one h; None where the arithmetic would not carry them."""
    segment = Segment(tied, h)
    lam, tau, _ = _weights(tied, h)
    phi = segment.phi(lam, tau)
    if not abs(tau) * segment.most < 1000 * phi < float("inf"):
        return None
    return Cut(h, Fraction(lam), Fraction(tau), Fraction(phi) * (1 - Fraction(_MARGIN)))


class Segment:
    """phi for one share of the work."""

    def __init__(self, tied: Tied, segments: int) -> None:
        chain, share = tied.chain, tied.work // segments
        self.k, self.l, self.cells = float(chain.k), float(chain.l), float(chain.cells)
        self.alpha, self.beta = map(float, tied.weights)
        self.least, self.most = float(share - tied.slack), float(share + 1 + tied.slack)  # work of a segment
        self.w, self.p = float(tied.widths.in_units[0]), float(tied.output)
        self.p1, self.p2 = float(min(chain.m, 2 * chain.f)), float(min(chain.m, chain.f))

    def edges(self) -> tuple[Floats, Floats]:
        """Where the search starts: edges of boxes of all cells and of gate cells."""
        # the work is at most alpha k T + beta l e, and e <= T
        low = self.least / (self.alpha * self.k + self.beta * self.l) * (1 - _MARGIN)
        return np.geomspace(low, 2 * self.cells, 25), np.append(0.0, np.geomspace(low / 64, self.cells, 24))

    @staticmethod
    def charge(cells: Floats, p: float) -> Floats:
        """G(e; p)."""
        return np.where(cells <= p * p, 2 / np.sqrt(cells), 1 / p + p / cells)

    def first(self, cells: Floats) -> Floats:
        """What a product of gate and up touches, besides w for each cell."""
        return self.w * self.charge(cells, self.p1)

    def second(self, cells: Floats) -> Floats:
        """What a product of down touches, besides so many gate cells."""
        if self.p == self.w:
            return self.w * self.charge(cells, self.p2)
        return 2 * np.sqrt(self.w * self.p / cells)

    def below(self, t1: Floats, t2: Floats, e1: Floats, e2: Floats) -> Callable[[float, float], Floats]:
        """For lambda and tau, a lower bound of X - lambda M + tau v2 over t1 <= T <= t2, e1 <= e <= e2.

        Infinite where none is feasible. What does not depend on the weights is computed once.
        """
        alpha, beta, w = self.alpha, self.beta, self.w
        first, second = self.first(t2), self.second(e2)
        low = np.maximum(0, self.least - alpha * self.k * t2) / beta
        high = np.minimum(self.most / beta, self.l * e2)
        # v1 = max(0, work - beta v2) / alpha at least: linear in v2 up to where it is 0, and again beyond it
        ends = [
            (np.maximum(0, self.least - beta * v) / alpha * first, v)
            for v in (low, high, np.clip(self.least / beta, low, high))
        ]
        # a box is empty when no v2 is allowed, or no gate cells fit under T, or too many up cells are left
        empty = (low > high) | (e1 > t2) | (t1 - e2 > self.cells)

        def value(lam: float, tau: float) -> Floats:
            # w T - lambda min(e, T - e) is the larger of two linear functions
            cells = np.maximum(w * t1 - lam * e2, (w - lam) * t1 + lam * e1)
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
        low = self.least / (self.alpha * self.k + self.beta * self.l)
        t, share = (a.ravel() for a in np.meshgrid(np.geomspace(low, 2 * self.cells, 60), np.linspace(0.02, 1, 50)))
        e = np.minimum(t * share, self.cells)
        below = self.below(t, t, e, e)
        # the price of a product when the split is even
        unit = 2 * self.w * math.sqrt((2 * self.alpha * self.k + self.beta * self.l) / self.least)

        def gain(weights: tuple[float, float]) -> float:
            lam, tau = weights
            least = float(below(lam, tau * unit).min())
            return segments * least + (lam - tau * unit * self.l) * self.cells

        w = self.w
        lam, tau = max(((w * i / 8, j / 10) for i in range(9) for j in range(-4, 4)), key=gain)
        steps = [(lam + w * i / 32, tau + j / 40) for i in range(-3, 4) for j in range(-3, 4)]
        near = [step for step in steps if 0 <= step[0] <= w]
        lam, tau = max(near, key=gain)
        return lam, tau * unit, gain((lam, tau))

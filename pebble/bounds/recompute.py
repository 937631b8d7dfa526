r"""Two products in a row whose values may be computed again.

**Recomputation** of cells of :math:`H` and of :math:`Y`. Delete operations whose result no stored :math:`Y` depends on;
then the products of :math:`H D` are done once each. For one cell of :math:`H`, join two segments that touch it when the
later one uses a copy carried over from the earlier, held at a cut or loaded. The segments number at most carried copies
+ components, and each component completes the cell on its own, so it contains at least :math:`k` distinct products.
With :math:`v_{1,s}` distinct products of :math:`A B` in segment :math:`s`, cells touched are in all at most held +
loaded + :math:`\sum v_{1,s} / k`.

**Theorem 3.** :math:`Q \ge \sum_s [ X(v_{1,s}, v_{2,s}) - v_{1,s} / k ] - (h - 1) S`, *with recomputation allowed.*

- *Cut by* :math:`v_2` *alone*, with the worst :math:`v_1 \ge 0`. For a given :math:`e` the bracket is linear in
  :math:`v_1`, so :math:`v_1` is 0 or :math:`k e`, and it is at least the smaller of :math:`x(v_2)` for the box :math:`m
  \times f \times l` and of the minimum over :math:`e \ge v_2 / l` of :math:`(v_2 + k e) G(e)`. Both are concave in
  :math:`v_2`.
- *Cut by all distinct products.* All :math:`v_{2,s}` add up to (cells of :math:`H`) :math:`l`, so the sum of the
  brackets is at least the sum of :math:`\psi(v_s)` + (cells of :math:`H`) :math:`l / k`, where :math:`\psi(v) = x(v) -
  v / k` is concave. Let :math:`V` be the work without recomputation and :math:`P = \lfloor V / h \rfloor`. End segments
  at :math:`P + 1` distinct products, as often as it takes for :math:`h` segments to make :math:`V`, after that at
  :math:`P`, and merge the rest into the last one, which then has :math:`P` to :math:`2 P`. Recomputation makes
  :math:`h' \ge h` segments of it. If :math:`\psi(2 P) \ge \psi(P) \ge S`, the last one counts :math:`\psi(P)` at least
  and segments beyond :math:`h` cost nothing, so what is left is Theorem 2. While :math:`S` is below some :math:`3 k^2`,
  recomputation gains nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

from pebble.bounds.box import FRACTION_BITS, Box, best_segments, rounded_up, shares_of, sum_of_shares
from pebble.bounds.chain import Chain
from pebble.bounds.numbers import number, tail
from pebble.bounds.proofs import NotCertifiedError, Theorem
from pebble.bounds.shares import Share, least_sum, proved, real, sqrt_below
from pebble.bounds.uses import Goal, InValues, Use

THEOREM = Theorem("Theorem 3", __name__)
METHOD = "segment accounting for a chain with recomputation"
_MOST_LEAVES = 60


@dataclass(frozen=True)
class Recomputed(InValues):
    """Theorem 3 on an instance."""

    chain: Chain  #: the two products
    capacity: int  #: S
    by_second: bool  #: cut by products of H D alone, else by all distinct products
    segments: int  #: h
    terms: int  #: the bound without the up weights
    method: str = METHOD  #: what the bound is called
    theorem: Theorem = THEOREM  #: what it rests on

    @property
    def elements(self) -> int:
        """Values moved at least."""
        return self.terms + self.chain.up_weights

    @property
    def products(self) -> int:
        """Distinct ones that it is about."""
        return self.chain.cells * (self.chain.l if self.by_second else self.chain.k + self.chain.l)

    @property
    def shares(self) -> tuple[tuple[int, int], ...]:
        """(products of a segment, how many segments have so many), of the products it is cut by."""
        return shares_of(self.products, self.segments)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        chain = self.chain
        sides = {"m": chain.m, "f": chain.f, "k": chain.k, "l": chain.l, "cells": chain.cells}
        cut = "products of H D" if self.by_second else "distinct products"
        return {"cut_by": cut, "segments": self.segments, **sides, "added_elements": self.chain.up_weights}

    def claim(self) -> dict[str, Any]:
        """h, and the shares of the work."""
        cut, shares = "second" if self.by_second else "distinct", recomputed_shares(self)
        fields = {"segments": self.segments, "shares": [share.to_json() for share in shares]}
        return {"theorem": f"recompute, cut by {cut} products", **fields}

    def text(self, traffic: Mapping[str, int]) -> str:
        """The segments, what each touches at least, and the sum."""
        chain, h, shares = self.chain, self.segments, recomputed_shares(self)
        more, cells = chain.up_weights, 0 if self.by_second else chain.cells
        what = "products of $H D$" if self.by_second else "distinct products"
        touched = sum((s.segments * s.touched for s in shares), Fraction(0))
        if self.by_second:
            why = r"""For $e$ cells touched the bracket is linear in $v_1$ between $0$ and $k e$; both ends are bounded
        for every $e \ge v_2 / l$."""
        else:
            why = f"""Segments have a share of the products of a schedule without recomputation; the last may have up to
        twice as many. Each keeps at least $S$, so further segments do not lower the bound; and all cells take part in
        ${number(chain.l)}$ products of $H D$ each."""
        text = rf"""
        ## Segments

        Delete every operation whose result no stored output depends on; then each product of $H D$ is done once. For
        one cell of $H$ join two segments that touch it when the later one uses a copy carried over from the earlier
        (held at the cut, or loaded). There are at most as many segments as carried copies and components, and each
        component completes the cell on its own, so it contains at least $k = {number(chain.k)}$ distinct products. With
        $v_1$ distinct products of $A B$ in a segment, cells touched are in all at most held, loaded and $\sum v_1 / k$:

        $$ Q \ge \sum_s \Big[ X(v_{{1,s}}, v_{{2,s}}) - \frac{{v_{{1,s}}}}{{k}} \Big] - (h - 1) S

        Cut by {what} into $h = {number(h)}$ segments. {why}

        ## Arithmetic
        """
        for s in shares:
            text += f"""
        ${number(s.segments)}$ segments of $v = {number(s.products)}$ touch at least ${number(s.touched)}$ values each
        (multipliers in the certificate).
        """
        text += rf"""
        $$ Q \ge {number(touched)} - {number(h - 1)} \cdot {number(self.capacity)}{tail(cells, more)}
        \quad\Rightarrow\quad Q \ge {number(self.elements)}
        """
        if more:
            text += f"""
        The up weights, which the gate's chain does not have, are loaded besides: ${number(more)}$.
        """
        return text


@dataclass(frozen=True)
class WithRecomputation(Use):
    """Theorem 3 of a chain."""

    chain: Chain
    redone = True

    def proofs(self, goal: Goal) -> tuple[Recomputed]:
        """The better of the two cuts."""
        return (recompute_bound(self.chain, goal.capacity),)


def recompute_bound(chain: Chain, capacity: int) -> Recomputed:
    """The bound that recomputation of H and Y does not break: the better of the two cuts.

    Examples
    --------
    >>> recompute_bound(Chain(32768, 128, 32768, 128, 32768**2), 116736).elements
    602919164
    """
    by_second, h = best_segments(lambda v: touched_redone(chain, v), chain.cells * chain.l, capacity)
    by_all, other_h = _cut_by_all_products(chain, capacity)
    if by_all > by_second:
        return Recomputed(chain, capacity, False, other_h, by_all)
    return Recomputed(chain, capacity, True, h, by_second)


def touched_redone(chain: Chain, v: int) -> int:
    """2^100 times what v products of H D touch less what computing H again excuses, rounded down."""
    if v == 0:
        return 0
    single, k, l = FRACTION_BITS, chain.k, chain.l
    p = min(chain.m, chain.f)
    resident = chain.second.touched(v)
    # (v + k e) G(e), with G(e) = 2 / sqrt e up to p^2 and 1 / p + p / e beyond, is least at e = v / k up to p^2, at
    # p sqrt(v / k) beyond, unless the limit e >= v / l is above that
    if l >= k and v <= k * p * p:
        redone = isqrt((16 * v * k) << (2 * single))
    elif l >= k and v * k <= (l * p) ** 2:
        redone = (v << single) // p + ((k * p) << single) + isqrt((4 * v * k) << (2 * single))
    elif l < k and v <= l * p * p:
        redone = isqrt(((4 * v * (k + l) ** 2) << (2 * single)) // l)
    else:
        redone = (v << single) // p + (((k + l) * p) << single) + ((k * v) << single) // (l * p)
    return min(resident, redone)


def _cut_by_all_products(chain: Chain, capacity: int) -> tuple[int, int]:
    """Theorem 2, maximised over the h with psi(2 P) >= psi(P) >= S; (0, 1) if there are none."""
    k, work = chain.k, chain.cells * (chain.k + chain.l)
    x = Box(chain.m, chain.f, k + chain.l).touched

    def psi_times_k(v: int) -> int:
        return k * x(v) - (v << FRACTION_BITS)

    def rises(h: int) -> bool:
        return psi_times_k(2 * (work // h)) >= psi_times_k(work // h)

    def pays(h: int) -> bool:
        return psi_times_k(work // h) >= (k * capacity) << FRACTION_BITS

    # psi is concave: it rises for all h from some h on, and from there on it falls with h
    _, best = best_segments(x, work, capacity)
    if not rises(best):
        best = _first(rises, best, work)
    if not pays(best):
        first = _first(rises, 1, best)
        best = max(first, _first(lambda h: not pays(h), first, best) - 1)
    if not (rises(best) and pays(best)):
        return 0, 1
    return rounded_up(sum_of_shares(x, work, best) - (((best - 1) * capacity) << FRACTION_BITS)) - chain.cells, best


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Smallest h in [low, high] at which a condition holds that never stops holding; high if there is none."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def recomputed_shares(proof: Recomputed) -> list[Share]:
    """The shares of the theorem for recomputation.

    Raises
    ------
    NotCertifiedError
        No intervals prove what it needs.
    """
    chain = proof.chain
    if proof.by_second:
        return [_redone(chain, v, count, real(chain.second, v, count)) for v, count in proof.shares]
    box = Box(chain.m, chain.f, chain.k + chain.l)
    (small, count), *longer = proof.shares
    return [_resident(chain, box, small, count), *(real(box, v, n) for v, n in longer)]


def _redone(chain: Chain, v: int, count: int, resident: Share) -> Share:
    """A number that x(v) and, for all e >= v / l, (v + k e) G(e) reach, with the intervals that prove the latter."""
    k, l, p, start = chain.k, chain.l, min(chain.m, chain.f), Fraction(v, chain.l)
    fixed = Fraction(v, p) + k * p
    first: list[dict[str, Any]] = []
    if l >= k and v <= k * p * p:
        redone, rule = 4 * sqrt_below(Fraction(v * k)), "mean"
    elif l >= k and v * k <= (l * p) ** 2:
        first = [{"to": str(Fraction(p * p)), "rule": "falling"}] if start < p * p else []
        redone, rule = fixed + 2 * sqrt_below(Fraction(v * k)), "side-mean"
    elif v <= l * p * p:
        redone, rule = 2 * sqrt_below(Fraction(v, l)) * (k + l), "rising"
    else:
        redone, rule = fixed + k * start / p + Fraction(p * l), "side-rising"
    leaves = (*first, {"to": None, "rule": rule})
    return Share(v, count, min(resident.touched, redone), resident.multipliers, leaves=leaves)


def _resident(chain: Chain, box: Box, start: int, count: int) -> Share:
    """What ``start`` distinct products touch, and the intervals that prove that up to twice as many keep no less.

    A segment keeps what it touches less its products over k.
    """

    def value(v: int, multipliers: Sequence[Fraction]) -> Fraction:
        return proved(box.limits(v), Fraction(v * v), multipliers) - Fraction(v, chain.k)

    bound, result = least_sum(box.limits(start), Fraction(start * start))
    resident = bound - Fraction(start, chain.k)
    leaves: list[dict[str, Any]] = []
    at, end = start, 2 * start
    while len(leaves) < _MOST_LEAVES:
        if at > start:
            result = least_sum(box.limits(at), Fraction(at * at))[1]
        to = end
        while to > at and value(to, result) < resident:
            to = at + (to - at) // 2
        if value(at, result) < resident and at > start:
            break
        leaves.append({"to": to, "multipliers": [str(p) for p in result]})
        if to == end:
            return Share(start, count, bound, leaves=tuple(leaves))
        if to == at:
            break
        at = to
    raise NotCertifiedError("certificate: no intervals found that prove the bound with recomputation; report it.")

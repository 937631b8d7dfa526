r"""Two matrix products in a row, :math:`H = \mathrm{act}(A B)` and :math:`Y = H D`: FFN, gated FFN and attention.

:math:`A` is :math:`m \times k`, :math:`B` :math:`k \times f`, :math:`D` :math:`f \times l`. :math:`Y` must end in slow
memory, :math:`H` need not.

**One box.** Let a multiply-add of the first product be a point :math:`(i, j, t)` with :math:`t < k`, and one of the
second a point :math:`(i, j, k + q)`. They fill a box :math:`m \times f \times (k + l)`, and *all* values are
projections of it: :math:`(i, t)` is a value of :math:`A` or :math:`Y`, :math:`(j, t)` one of :math:`B` or :math:`D`,
:math:`(i, j)` a cell of :math:`H`. So Theorem 1 holds for any mix of the two products, with the cells of :math:`H`
begun and not stored.

**Theorem 2.** *Without recomputation,* :math:`Q \ge \sum_s x(v_s) - (h - 1) S - (\text{cells of } H)`.

Nothing is lost in the cut by all products. Let a segment do :math:`v_1` and :math:`v_2` of them. The least values it
touches are the minimum over :math:`e \ge \max(v_1 / k, v_2 / l)` of :math:`e + (v_1 + v_2) G(e)`, where :math:`G(e)` is
the least :math:`a + b` with :math:`a b \ge 1 / e`, :math:`a \ge 1 / f`, :math:`b \ge 1 / m`: the same function for both
products. It depends on :math:`v_1 + v_2`, except that the limit on :math:`e` is weakest at the even split; and every
weighting of the products allows segments that are all even.

**A gated chain** has two first products, gate and up, that share :math:`A`: two cells for each :math:`(i, j)`, the
gate's, in which :math:`H` takes its place after the elementwise product, and the up cell. (Which of the two :math:`H`
takes over makes no difference: at that moment both are in fast memory, and afterwards one is useless.) Number the up
cells :math:`f, \ldots, 2 f - 1`: the products fill a box :math:`m \times 2 f \times (k + l)` but for the second product
of the up cells, and :math:`2 m f` cells are begun free. Or forget the up cells: the moves of all other values are a
schedule of the plain chain, and each of the :math:`k f` up weights is loaded besides. `pebble.bounds.tied` says more
where fast memory is large.

**Separate kernels.** One kernel writes all of :math:`H`, the next reads it from an empty fast memory, which keeps
nothing in between: two boxes, :math:`m \times f \times k` (:math:`2 f` columns when gated, of whose cells half are
stored) and :math:`m \times l \times f`, whose bounds add. Theorem 2 holds too, with the stores of :math:`H` on top. If
fast memory does keep up to :math:`S` values from one kernel to the next, the sum falls by at most :math:`S`; the second
form stays. Recomputation cannot help: :math:`H` is stored, and only one completion of each of its cells is useful.

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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any

from pebble.bounds.base import COMPULSORY, Theorem, all_names
from pebble.bounds.box import FRACTION_BITS, Box, Piece, Segments, best_segments, rounded_up, shares_of, sum_of_shares
from pebble.bounds.line_search import LineBound

THEOREM = Theorem("Theorem 2", __name__)
CHECKED = Theorem("Theorem 2", __name__, "Products.chain_segment_bound")  # no gate, no mask
REDONE = Theorem("Theorem 3", __name__)
METHOD = "segment accounting for a chain, equation (3)"
GATED = "segment accounting for a gated chain"
PROJECTED = "equation (3) for the gate's chain, and the up weights"
RECOMPUTE = "segment accounting for a chain with recomputation"
SEPARATE = "segment accounting, equation (2), kernel by kernel"
SEPARATE_LINES = "line accounting, kernel by kernel"


@dataclass(frozen=True)
class Chain:
    """H = act(A B) and Y = H D, of one group: A is m x k, B is k x f, D is f x l."""

    m: int  #: rows of A and Y
    k: int  #: depth of the first product
    f: int  #: columns of H
    l: int  #: columns of Y
    cells: int  #: of H, m f without a mask
    gated: bool = False  #: H is made of two products, gate and up
    hidden: str = "H"  #: what the cells are called

    @property
    def streams(self) -> int:
        """First products: 2 when gated."""
        return 2 if self.gated else 1

    @cached_property
    def second(self) -> Box:
        """The box of the second product alone."""
        return Box(self.m, self.f, self.l)

    @property
    def up_weights(self) -> int:
        """Values of the up weights, which the gate's chain does not have."""
        return self.k * self.f if self.gated else 0

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The boxes of Theorem 2."""
        m, k, f, l, cells = self.m, self.k, self.f, self.l, self.cells
        box, products = Box(m, f, k + l), (cells * k, cells * l)
        if not self.gated:
            theorem = CHECKED if cells == m * f else THEOREM
            return (Piece("chain", METHOD, box, products, cells, theorem=theorem),)
        return (
            Piece("gated chain", GATED, Box(m, 2 * f, k + l), (2 * cells * k, cells * l), 2 * cells, theorem=THEOREM),
            Piece("gate's chain", PROJECTED, box, products, cells, self.up_weights, theorem=THEOREM),
        )

    @property
    def kernels(self) -> tuple[tuple[Piece, int], ...]:
        """The boxes of the two kernels, and the compulsory traffic of each."""
        m, k, f, l, cells, streams = self.m, self.k, self.f, self.l, self.cells, self.streams
        first = Piece("", SEPARATE, Box(m, streams * f, k), (streams * cells * k, 0), (streams - 1) * cells)
        second = Piece("", SEPARATE, Box(m, l, f), (cells * l, 0))
        return (first, m * k + streams * k * f + cells), (second, cells + f * l + m * l)


@dataclass(frozen=True)
class Kernels:
    """Two kernels with H in slow memory between them: of each, Theorem 1 or 7 or its compulsory traffic."""

    method: str  #: what the bound is called
    kernels: tuple[Segments | LineBound, ...]  #: Theorem 1 or 7 for each
    least: tuple[int, ...]  #: compulsory traffic of each

    @property
    def theorem(self) -> Theorem:
        """What the bounds of the kernels rest on; that they add up is proved on paper."""
        pairs = zip(self.kernels, self.least, strict=True)
        used = (kernel.theorem if kernel.elements > least else COMPULSORY for kernel, least in pairs)
        return Theorem(f"{all_names(used)}, kernel by kernel", __name__)

    @property
    def elements(self) -> int:
        """Values moved at least."""
        return sum(max(kernel.elements, least) for kernel, least in zip(self.kernels, self.least, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        parts = zip(self.kernels, self.least, strict=True)
        return {"kernels": [{**kernel.to_json(), "compulsory": least} for kernel, least in parts]}


@dataclass(frozen=True)
class Recomputed:
    """Theorem 3 on an instance."""

    chain: Chain  #: the two products
    capacity: int  #: S
    by_second: bool  #: cut by products of H D alone, else by all distinct products
    segments: int  #: h
    terms: int  #: the bound without the up weights
    method: str = RECOMPUTE  #: what the bound is called
    theorem: Theorem = REDONE  #: what it rests on

    @property
    def elements(self) -> int:
        """Values moved at least."""
        return self.terms + self.chain.up_weights

    @property
    def shares(self) -> tuple[tuple[int, int], ...]:
        """(products of a segment, how many segments have so many), of the products it is cut by."""
        chain = self.chain
        return shares_of(chain.cells * (chain.l if self.by_second else chain.k + chain.l), self.segments)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        sides = {name: getattr(self.chain, name) for name in ("m", "f", "k", "l", "cells")}
        cut = "products of H D" if self.by_second else "distinct products"
        return {"cut_by": cut, "segments": self.segments, **sides, "added_elements": self.chain.up_weights}


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
    one, k, l = FRACTION_BITS, chain.k, chain.l
    p = min(chain.m, chain.f)
    kept = chain.second.touched(v)
    # (v + k e) G(e), with G(e) = 2 / sqrt e up to p^2 and 1 / p + p / e beyond, is least at e = v / k up to p^2, at
    # p sqrt(v / k) beyond, unless the limit e >= v / l is above that
    if l >= k and v <= k * p * p:
        redone = isqrt((16 * v * k) << (2 * one))
    elif l >= k and v * k <= (l * p) ** 2:
        redone = (v << one) // p + ((k * p) << one) + isqrt((4 * v * k) << (2 * one))
    elif l < k and v <= l * p * p:
        redone = isqrt(((4 * v * (k + l) ** 2) << (2 * one)) // l)
    else:
        redone = (v << one) // p + (((k + l) * p) << one) + ((k * v) << one) // (l * p)
    return min(kept, redone)


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

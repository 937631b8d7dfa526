r"""The minimum of Theorem 12, from below: cells of :math:`\mu` and :math:`D_1`, halved until each is proved.

What a slice moves is the same with :math:`D_1` and :math:`D_2` exchanged, so :math:`D_1 \le D_2` may be assumed. A
cell is :math:`\mu_0 \le \mu \le \mu_1`, :math:`x_0 \le D_1 \le x_1`; with :math:`e = D_1 - x_0`, :math:`\nu = \mu -
\mu_0` and :math:`b_0 = M - \mu_1 - x_1`, :math:`D_2 = b_0 + (x_1 - x_0 - e) + (\mu_1 - \mu_0 - \nu)`. For :math:`d \ge
d_0 \ge 0`

.. math:: h_\mu(d) \ge h_{\mu_0}(d_0) + \lambda (d - d_0) + \kappa \nu,

with :math:`\lambda` the lesser of the slopes of :math:`h_{\mu_0}` at both ends of the range of :math:`d` (the slope
rises, then falls, then stays), and :math:`\kappa = \min(1 / (S' - \mu_0), 1 / (S' - \mu_0 - d_0) - 1 / (S' - \mu_0))`,
since the derivative in :math:`\mu` grows with :math:`\mu` and :math:`d`. So each layer has at least a linear function
of :math:`e` and :math:`\nu`; the lesser of some of these is concave, so is the sum over layers, and a concave function
has its minimum over a cell at a corner. In a *strip* of layers :math:`s`, :math:`q_s` is convex in :math:`s`, so what
the linear function of :math:`q_s` makes is concave in :math:`s`: the sum is at least the number of layers times the
mean of both ends.

Lengths are counted in parts of :math:`S'`, all rounded to the safe side, so that logarithms are those of some thousand
whole numbers. What is proved, in whole numbers, is a little less than the sum at some points where it is least as far
as is known: at :math:`D_1 = D_2`, with hardly anything held or as much as fits. With these points in parts of
:math:`S'` the sum falls as :math:`S'` grows, and so the bound does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.bounds.lines import LOG_BITS, ln_above, ln_below
from pebble.bounds.uses import Goal, Use
from pebble.bounds.visits import BITS, Product, Slices, VisitBound
from pebble.units import ceil_div
from pebble.workloads.widths import Widths

Floats = NDArray[np.float64]

SHARES = 2048  # of S'
STRIPS = 16  # of layers at most
STRIP_SHARES = 40  # of S', that q_s grows in a strip, about
_HALVINGS = 5  # of a strip in which what layers have ends
_MOST_CELLS = 1600
_LOST = 3
_SAMPLED = 2048  # layers at most, in floating point
_FREE = (1, 0.97, 0.94, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.4, 0.2, 0.1, 0.05, 0.03, 0.02, 0.015, 0.01, 0.005, 0)  # of S'
_USED = (0.5, 0.25, 0.0)  # of what is not held
_SHORT = (0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256)  # of the least seen: what is proved is less
_COARSE = 1 << 20
_ONE = 1 << BITS


@cache
def _ln_below(n: int) -> int:
    return ln_below(n) >> (LOG_BITS - BITS)


@cache
def _ln_above(n: int) -> int:
    return (ln_above(n) >> (LOG_BITS - BITS)) + 1


class Cell(NamedTuple):
    """Some mu and D_1, in parts of S'."""

    mu: int  #: the least
    mus: int  #: how many parts
    x: int  #: the least D_1
    xs: int  #: how many parts

    def halves(self) -> tuple[Cell, Cell]:
        """Both, along the longer side."""
        mu, mus, x, xs = self
        if mus >= xs:
            return Cell(mu, mus // 2, x, xs), Cell(mu + mus // 2, mus - mus // 2, x, xs)
        return Cell(mu, mus, x, xs // 2), Cell(mu, mus, x + xs // 2, xs - xs // 2)


Corners = tuple[int, ...]  # at each of the four


def _least_ends(low: list[Corners], *others: list[Corners]) -> list[Corners]:
    """The lesser at each corner, of both ends of a strip."""
    return [tuple(map(min, *at)) for at in zip(low, *others, strict=True)]


class Layers:
    """The layers of a slice in a memory: what they have at least in a cell."""

    def __init__(self, slices: Slices, capacity: int) -> None:
        self.slices, self.capacity = slices, capacity
        self.scale = SHARES * slices.width, capacity  # parts of S' that a product, or a streamed value, counts
        self.products = slices.products * self.scale[0] // capacity
        self.columns = slices.layers
        top = min(slices.rows, self.columns)
        self.folded = min(top, self.columns - slices.rows) if slices.spills else 0  # those with a layer s + R
        self.runs = tuple((a, b) for a, b in ((1, self.folded), (max(1, self.folded + 1), top)) if a <= b)

    def first(self, s: int) -> int:
        """q_s in parts of S', rounded up."""
        over, under = self.slices.first(s)
        return -(-over * self.scale[0] // (under * self.scale[1]))

    def strips(self) -> Iterator[tuple[int, int]]:
        """The first and the last layer of each."""
        for a, b in self.runs:
            last = b + self.slices.rows if b <= self.folded else b
            many = min(STRIPS, ceil_div(self.first(last) - self.first(a) + 1, STRIP_SHARES))
            ends = [a + (b + 1 - a) * i // many for i in range(many + 1)]
            yield from ((low, high - 1) for low, high in pairwise(ends) if low < high)

    def least(self, cell: Cell) -> int:
        """2^64 times what a slice moves at least, for all mu and D_1 of a cell."""
        totals: Corners = (0,) * 4
        for a, b in self.strips():
            result = self._strip(cell, a, b, _HALVINGS)
            totals = tuple(map(sum, zip(totals, result, strict=True)))
        return min(totals) // 2

    def behind(self, cell: Cell) -> int:
        """The least D_2 of a cell."""
        return self.products - cell.mu - cell.mus - cell.x - cell.xs

    def _strip(self, cell: Cell, a: int, b: int, halvings: int) -> Corners:
        """Twice 2^64 times what the layers of a strip have at least, at each corner."""
        own = self._ends(cell, a, b)
        if halvings and b > a and min(own[1]) < _ONE * (2 if b <= self.folded else 1) and self._bent(cell, a, b):
            middle = (a + b) // 2
            parts = self._strip(cell, a, middle, halvings - 1), self._strip(cell, middle + 1, b, halvings - 1)
            return tuple(map(sum, zip(*parts, strict=True)))
        if b <= self.folded:
            shifted = self._ends(cell, a + self.slices.rows, b + self.slices.rows)
            more = [tuple(_ONE + value for value in end) for end in shifted]
            ends = _least_ends(own, more, [(2 * _ONE,) * 4] * 2)
        else:
            ends = _least_ends(own, [(_ONE,) * 4] * 2)
        return tuple((b + 1 - a) * (first + last) for first, last in zip(*ends, strict=True))

    def _bent(self, cell: Cell, a: int, b: int) -> bool:
        """Whether h is far from straight along a strip: where it begins, and soon after."""
        early, late = self.first(a), self.first(b)
        return any(early < d < 3 * late - 2 * early for d in (cell.x, self.behind(cell)))

    def _ends(self, cell: Cell, a: int, b: int) -> list[Corners]:
        """w(s) from below at the first and the last layer of a strip, at each corner."""
        (mu, mus, x, xs), early, late = cell, self.first(a), self.first(b)
        spare, behind = SHARES - mu, self.behind(cell)
        own, slope, more = _linear(spare, x - late, x + xs - early)
        other, falls, rises = _linear(spare, behind - late, behind + xs + mus - early)
        corners = [
            own + other + slope * e + more * v + falls * (xs + mus - e - v) + rises * v
            for e, v in ((0, 0), (xs, 0), (0, mus), (xs, mus))
        ]
        earlier = (slope + falls) * (late - early)
        half = not self.slices.doubled
        return [
            tuple((value + earlier) >> half for value in corners),
            tuple(value >> half for value in corners),
        ]

    def near(self) -> float:
        """About what a slice moves at least, in floating point: the least of some points, which falls as S grows."""
        slices, top = self.slices, min(self.slices.rows, self.columns)
        lines, step = self.capacity / slices.width, ceil_div(max(1, top), _SAMPLED)
        layers = np.arange(step, top + 1, step).astype(float)
        held = np.array([min((1 - share) * lines, slices.products) for share in _FREE])[:, None]
        # where little room is left what layers have rises steeply, and whole parts of S' matter; one is left at least
        lost, held = (
            np.where(held < 0.9 * lines, 0, _LOST * lines / SHARES),
            np.minimum(held, lines - lines / SHARES),
        )
        sums = []
        for share in _USED:  # D_1 of those that are not held
            early = np.maximum(0, share * (slices.products - held) - lost)
            late = np.maximum(0, (1 - share) * (slices.products - held) - lost)
            own = self._near(layers, early, held) + self._near(layers, late, held)
            if slices.spills:
                further = self._near(layers + slices.rows, early, held) + self._near(layers + slices.rows, late, held)
                further = np.where(layers + slices.rows <= self.columns, further, 0)
                own = np.minimum(np.minimum(own, 2), 1 + further)
            sums.append(np.minimum(own, 2 if slices.spills else 1).sum(axis=1))
        return step * float(np.min(sums))

    def _near(self, layers: Floats, used: Floats, held: Floats) -> Floats:
        """Of w(s) what D_1, or D_2, adds, in floating point."""
        lines = self.capacity / self.slices.width
        d = np.maximum(0, used - 1 - (layers - 1) ** 2 / (4 * self.slices.square))
        left = lines - held
        early = -np.log1p(-np.minimum(d / left, 0.5))
        late = -np.log(left / lines) + 2 * d / lines - 1 + log(2)
        h: Floats = np.where(2 * d <= left, early, np.where(2 * d <= lines, np.log(np.maximum(4 * d / left, 1)), late))
        return h * (1 if self.slices.doubled else 0.5)


def _linear(spare: int, low: int, high: int) -> tuple[int, int, int]:
    """h from below at the least mu of a cell and the least d, its slope in d up to ``high``, and its slope in mu."""
    if low <= 0:
        return 0, 0, 0
    rises = _ONE // spare
    if 2 * low <= spare:
        value = _ln_below(spare) - _ln_above(spare - low)
        rises = _ONE // (spare - low) - rises - 1
    elif 2 * low <= SHARES:
        value = _ln_below(4 * low) - _ln_above(spare)
    else:
        value = _ln_below(SHARES) - _ln_above(spare) + 2 * low * _ONE // SHARES - _ONE + _ln_below(2)
    return value, min(_slope(spare, low), _slope(spare, high)), rises


def _slope(spare: int, d: int) -> int:
    if 2 * d <= spare:
        return _ONE // (spare - d)
    return _ONE // d if 2 * d <= SHARES else 2 * _ONE // SHARES


def proved(layers: Layers, least: int) -> bool:
    """Whether a slice moves ``least`` / 2^64 for all mu and D_1."""
    end = min(SHARES, layers.products + 1)
    size = 1 << max(end, layers.products // 2 + 1).bit_length()
    cells, seen = [Cell(0, size, 0, size)], 0
    while cells:
        cell = cells.pop()
        if cell.mu >= end or 2 * cell.x > layers.products - cell.mu:
            continue
        seen += 1
        if layers.least(cell) < least:
            if seen > _MOST_CELLS or cell.mus == cell.xs == 1:
                return False
            cells += cell.halves()
    return True


@lru_cache(maxsize=4096)
def slice_bound(slices: Slices, capacity: int, wanted: int) -> int:
    """2^64 times what a slice moves at least; 0 where that is hardly more than ``wanted``."""
    layers = Layers(slices, capacity)
    near = layers.near()
    for short in _SHORT:
        least = int((1 - short) * near * _COARSE) * (_ONE // _COARSE)  # no more digits than floating point surely has
        if least <= wanted or proved(layers, least):
            return max(0, least)
    return 0


@dataclass(frozen=True)
class ByVisits(Use):
    """Theorem 12 of a product, in bytes B6."""

    product: Product

    @property
    def about(self) -> tuple[Product]:
        """The product."""
        return (self.product,)

    def proofs(self, goal: Goal) -> list[VisitBound]:
        """Where it proves more than the others."""
        return visit_bounds(self.product, goal.capacity, goal.least)

    def weighted(self, widths: Widths) -> tuple[ByVisits]:
        """With every value at its width."""
        return (ByVisits(self.product.at(widths)),)

    def on_sms(self) -> tuple[()]:
        """Nothing: with atomic adds a cell makes a gap for one store."""
        return ()


def visit_bounds(product: Product, capacity: int, wanted: int = 0) -> list[VisitBound]:
    """Theorem 12, where it proves more than ``wanted``, else nothing: some hundredths of a second where it does.

    Parameters
    ----------
    product : Product
    capacity : int
        S, in what the widths count: values, or bytes.
    wanted : int
        What is proved otherwise, in the same.
    """
    best: list[VisitBound] = []
    unit = product.widths.unit
    capacity, wanted = capacity // unit, wanted // unit
    for slices in product.slices():
        missing = max(0, wanted - slices.certain)
        if slices.count * slices.most <= missing:
            continue
        least = slice_bound(slices, capacity, (missing << BITS) // slices.count)
        bound = VisitBound(product, capacity, slices, least)
        if bound.elements > wanted:
            best, wanted = [bound], bound.elements
    return best

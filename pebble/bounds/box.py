r"""The segment bound of a box: the theorem behind every bound on matrix products, convolutions, FFNs and attention.

**The game.** Operations are multiply-adds. Each updates a *cell*, an accumulator, in place and in any order; the first
update begins it without a load. Some cells are outputs, which end in slow memory; others (intermediates) need not. A
result that takes the place of its operand (an activation, the probability of a score) is the same cell: nothing else
reads the operand, so a schedule with two values can drop it at that moment.

**Accounting.** Cut a schedule that computes nothing twice, from an empty start, into :math:`h` segments. A value is
*touched* in a segment if an operation of the segment reads or updates it. Then it was in fast memory when the segment
began (at most :math:`S` values at each of the :math:`h - 1` cuts), or is loaded in it, or is a cell initialised in it
(once in all). The sum over segments of :math:`X_s`, the values touched, is therefore at most loads :math:`+ (h - 1) S
+` cells initialised. Every output initialised is stored, so stores are at least as many as outputs, and

.. math:: Q \ge \sum_{s=1}^{h} X_s - (h - 1) S - (\text{cells initialised that need not be stored}).

The order of summation does not matter. If a cell is built from :math:`r` partial sums, each initialised free, then
:math:`r - 1` merges each put two of them into one segment, so the segments that touch the cell still number at most 1 +
held + loaded. What moves besides in any case may be added: for :math:`C \mathrel{+}= A B` no cell is initialised free,
so the
:math:`mn` stores pay for no beginnings and come on top.

**Geometry.** Let the multiply-adds be points of a box *rows* x *columns* x *depth*, and the values their projections:
:math:`a` values (row, depth), :math:`b` values (column, depth), :math:`c` cells (row, column). In :math:`C := A B` the
point :math:`(i, j, l)` touches :math:`A_{il}`, :math:`B_{lj}`, :math:`C_{ij}`. By Loomis and Whitney (1949), and
because one value of the first kind meets at most *columns* of the second, and so on, :math:`v` points have

.. math:: v^2 \le R\, a b c, \quad v \le R\,\text{columns}\,a, \quad v \le \text{rows}\,b, \quad v \le \text{depth}\,c,

with :math:`R = 1`. Where one value stands for up to :math:`R` pairs (row, depth), as in a convolution, there are at
most :math:`R a` pairs, hence the *overlap* :math:`R`. Sets that do not fill the box obey the same inequalities. Let
:math:`x(v)` be the least :math:`a + b + c` under them.

**Theorem 1.** *For every whole number* :math:`h`, *with shares* :math:`v_s` *that are the work over* :math:`h` *rounded
down or up, a schedule that computes nothing twice has*

.. math:: Q \ge \sum_{s=1}^{h} x(v_s) - (h - 1) S - (\text{cells initialised and not stored}) + (\text{moved besides}).

*Proof.* Cut the schedule by work, so that segment :math:`s` does :math:`v_s` multiply-adds; then :math:`X_s \ge
x(v_s)`. :math:`\Box` *Where every cell is an output it also holds with recomputation:* only one completion of each is
useful. Delete every operation that no stored output depends on; each multiply-add that is left is done once. Reports
call it equation (2) for one product and equation (3) for a chain.

**Several widths.** Room and transfers are counted in bytes. An input takes :math:`w` bytes, held or moved, and so does
a cell of :math:`H` that is complete. A complete output takes :math:`w_o`. A cell that is initialised and not complete
is a
*partial sum* and takes :math:`p`: a cell of the output :math:`p`, one of :math:`H` :math:`p_H`. Its completion changes
its width at once and free of charge. Matrix units accumulate in fp32, whatever they read: :math:`p = p_H = 4`. Without
that, :math:`p = w_o` and :math:`p_H = w`: a cell has one width. The classic game is that of all widths 1.

A cell that is updated in a segment was initialised in it (once in all), or it was a partial sum when the segment began:
held, it took :math:`p` of the :math:`S` bytes; otherwise it is loaded, for :math:`p`. A cell of :math:`H` that a
segment only reads was held or loaded at :math:`w` at least. So with :math:`a_s, b_s, c_s` the values of each kind that
segment
:math:`s` touches, and all outputs stored complete,

.. math:: Q \ge \sum_s (w\,a_s + w\,b_s + p\,c_s) - (h - 1) S - (p - w_o)\,(\text{outputs}) + (\text{moved besides}).

The cells that begin and end in one segment cost :math:`w_o` in it; the bracket charges each of them :math:`p`, so
:math:`p - w_o` comes off once for every output, and nothing else does. (For :math:`C \mathrel{+}= A B` the first load
of each cell comes on top, at :math:`w_o`.) Stores of partial sums are not counted: the bound also holds for a kernel
that rounds a partial sum when it spills it, as long as the copy is not what fast memory holds.

**Theorem B1.** *One product, cut by its multiply-adds:* :math:`Q \ge \sum_s x_w(v_s) - (h - 1) S - (p - w_o) mn`, where
:math:`x_w(v)` *is the least* :math:`w a + w b + p c` *under the inequalities of the box.* It is the least sum of three
numbers with limits :math:`w \alpha, w \beta, p \gamma` and the product :math:`w^2 p\, v^2 / R`: Theorem 1 in other
units. For large boxes it tends to :math:`2 V w \sqrt{p / S}`. A cell may count less than it takes: any :math:`p' \le p`
may stand for :math:`p` in both places, which is better where few cells are carried. It also holds with recomputation,
as Theorem 1 does.

For :math:`h = 1` Theorem 1 is compulsory traffic; for large boxes and the best :math:`h` it tends to :math:`2 V /
\sqrt{R S}` for :math:`V` multiply-adds. Adding :math:`S`, or the output once more, to that closed form is wrong:
``pebble bound gemm -m 400 -n 400 -k 10 --cache 400el`` shows a legal schedule below a published formula.

**The least sum.** With limits :math:`\alpha, \beta, \gamma` on :math:`a, b, c`, the minimum over the reals has each of
them on its limit or equal to the others. It is concave in :math:`v`, grows, and :math:`x(0) = 0`, so :math:`h\,x(V /
h)` is concave in :math:`h` and the best :math:`h` is found by bisection, in exact integers. Values are counted: over
whole numbers the minimum is larger, which shows on small segments; it is searched for a few hundred :math:`h` that do
not depend on :math:`S`, so the bound falls as :math:`S` grows. Multipliers prove :math:`x(v)` to a reader: for any
:math:`p_a, p_b, p_c` in :math:`[0, 1]`, by the arithmetic and geometric mean,

.. math::

   a + b + c \ge p_a \alpha + p_b \beta + p_c \gamma
   + 3 \Big( (1 - p_a)(1 - p_b)(1 - p_c)\, v^2 / R \Big)^{1/3}.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from math import floor, isqrt

from pebble.units import ceil_cbrt, ceil_div, ceil_sqrt, floor_cbrt

# of the fixed-point version: the rounding, at most one unit per segment, stays below one element for up to 2^100
# segments
FRACTION_BITS = 100
_EXACT_SEARCH_LIMIT = 4096
# h and segment sizes tried with whole numbers; with the real version they cover every h up to 65 thousand products
_FEW_SEGMENTS = 256
_SMALL_SEGMENT = 256


@dataclass(frozen=True)
class Least:
    """The least x + y + z of work W, with x y z >= W^2 ``product`` and each at least W times its limit."""

    limits: tuple[Fraction, Fraction, Fraction]  #: per unit of work; 0 for none
    product: Fraction

    @cached_property
    def _sorted(self) -> tuple[Fraction, Fraction, Fraction]:
        low, mid, high = sorted(self.limits)
        return low, mid, high

    @cached_property
    def _up_to(self) -> tuple[int, int, int]:
        """Up to which work no limit binds, only the highest, and the two highest; -1 for a lowest limit of none."""
        low, mid, high = self._sorted
        three = self.product / (low * mid * high) if low else Fraction(-1)
        return floor(self.product / high**3), floor(self.product / (mid * mid * high)), floor(three)

    @cached_property
    def _one(self) -> tuple[Fraction, Fraction]:
        """Where only the highest limit binds: it, and what multiplies the work under the root."""
        return self._sorted[2], self.product / self._sorted[2]

    @cached_property
    def _lines(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """(slope, constant, common denominator) where two limits bind, and where all do."""
        low, mid, high = self._sorted
        lines = (mid + high, self.product / (mid * high)), (low + mid + high, Fraction(0))
        first, second = (
            (s.numerator * c.denominator, c.numerator * s.denominator, s.denominator * c.denominator) for s, c in lines
        )
        return first, second

    def touched(self, work: int) -> int:
        """2^100 times the least sum, rounded down; concave in the work up to that rounding."""
        if work <= 0:
            return 0
        single, (cube, slab, three) = FRACTION_BITS, self._up_to
        if work <= cube:
            return floor_cbrt(((27 * work * work * self.product.numerator) << (3 * single)) // self.product.denominator)
        if work <= slab:
            high, rest = self._one
            root = isqrt(((4 * work * rest.numerator) << (2 * single)) // rest.denominator)
            return ((high.numerator * work) << single) // high.denominator + root
        slope, constant, under = self._lines[0 if three < 0 or work <= three else 1]
        return ((slope * work + constant) << single) // under

    def at(self, work: int) -> tuple[tuple[Fraction, Fraction, Fraction], Fraction]:
        """Limits and product for so much work."""
        x, y, z = self.limits
        return (x * work, y * work, z * work), self.product * work * work


@dataclass(frozen=True)
class Box:
    """Points whose three projections are values; see the theorem of the module."""

    rows: int  #: a side of the box
    cols: int  #: a side of the box
    depth: int  #: the side along which cells are updated
    overlap: int = 1  #: R, the most pairs (row, depth) that are one value

    def limits(self, v: int) -> tuple[Fraction, Fraction, Fraction]:
        """What a, b and c of v products are at least, each by itself."""
        return Fraction(v, self.overlap * self.cols), Fraction(v, self.rows), Fraction(v, self.depth)

    def weighed(self, a: int, b: int, c: int, counts: int = 1) -> Least:
        """The least that products touch where values of each kind take so much, and a product counts so much work."""
        x, y, z = self.limits(1)
        limits = a * x / counts, b * y / counts, c * z / counts
        return Least(limits, Fraction(a * b * c, self.overlap * counts * counts))

    @cached_property
    def _values(self) -> Least:
        return self.weighed(1, 1, 1)

    def touched(self, v: int) -> int:
        """2^100 x(v) over the reals, rounded down; concave in v up to that rounding."""
        return self._values.touched(v)

    def touched_whole(self, v: int) -> int:
        """x(v) over whole a, b, c, for an overlap of 1.

        Exact for v <= 4096; above, the real minimum under limits rounded up, rounded up.

        Examples
        --------
        >>> Box(2, 2, 2).touched_whole(8)
        12
        >>> Box(9, 9, 9).touched_whole(1)
        3
        """
        if v == 0:
            return 0
        low, mid, high = sorted((ceil_div(v, self.cols), ceil_div(v, self.rows), ceil_div(v, self.depth)))
        square = v * v
        if low * mid * high >= square:
            return low + mid + high
        if v > _EXACT_SEARCH_LIMIT:
            return _real_minimum_rounded_up(square, mid, high)

        # a is the value with the lowest limit. The least b + c for a given a is convex in a over the reals, so walk
        # outwards from the real optimum and stop on either side once even the real value, rounded up, is no better.
        if high**3 <= square:
            start = ceil_cbrt(square)
        else:
            start = ceil_sqrt(ceil_div(square, high)) if mid * mid * high <= square else ceil_div(square, mid * high)
        start = max(start, low)
        best = start + _least_pair(ceil_div(square, start), mid, high)
        for candidates in (range(start + 1, best), range(start - 1, low - 1, -1)):
            for a in candidates:
                if square <= a * mid * high:
                    real = a + mid + high
                elif square < a * high * high:
                    real = a + high + ceil_div(square, a * high)
                else:
                    real = a + ceil_sqrt(ceil_div(4 * square, a))
                if real >= best:
                    break
                best = min(best, a + _least_pair(ceil_div(square, a), mid, high))
        return best

    def bound(self, work: int, capacity: int, whole_numbers: bool = True) -> tuple[int, int]:
        """Max over h of sum of x(v_s) - (h - 1) S for a set of points of the box.

        Parameters
        ----------
        work : int
            Points in the set, from 1 to all. Segments hold floor or ceil of work / h of them.
        capacity : int
            S, values that fast memory holds.
        whole_numbers : bool
            Look at whole numbers of values too; for an overlap of 1.

        Returns
        -------
        elements, h : int
            The bound on loads plus cells initialised, and the number of segments (1: compulsory). Exact integers, a few
            milliseconds for any size.

        Examples
        --------
        >>> Box(8192, 8192, 8192).bound(8192**3, 40 * 2**19)
        (260977100, 6)
        >>> Box(32768, 32768, 256).bound(2**38, 116736)[0] - 2**30  # attention, N = 32768, d = 128, 228 KiB of bf16
        602919164
        """
        best, best_h = 0, 1
        result, searched_h = best_segments(self.touched, work, capacity)
        touched = partial(_touched_whole, self)
        for h in _whole_segments(work) if whole_numbers else ():
            value = sum_of_shares(touched, work, h) - (h - 1) * capacity
            if value > best:
                best, best_h = value, h
            # each of more segments than h touches at most what a segment of h does: 3 for what is not exact there
            spare = capacity - touched(ceil_div(work, h)) - 3
            if spare > 0 and capacity - (h + 1) * spare < max(best, result):
                break
        return (result, searched_h) if result > best else (best, best_h)


def _least_pair(product: int, mid: int, high: int) -> int:
    """Least b + c over whole b >= mid, c >= high with b c >= product (mid <= high)."""
    if product <= mid * high:
        return mid + high
    if product < high * high:  # above the root, a larger c lowers the needed b by less than it costs
        return high + ceil_div(product, high)
    return ceil_sqrt(4 * product)  # the two halves of it multiply to at least the product


def _real_minimum_rounded_up(square: int, mid: int, high: int) -> int:
    """Least a + b + c with a b c >= square and limits of which low does not bind, rounded up."""
    if high**3 <= square:
        return ceil_cbrt(27 * square)
    if mid * mid * high <= square:  # c sits on its limit, a = b
        return high + ceil_sqrt(ceil_div(4 * square, high))
    return high + mid + ceil_div(square, high * mid)


@lru_cache(maxsize=1 << 14)
def _touched_whole(box: Box, v: int) -> int:
    return box.touched_whole(v)


@lru_cache(maxsize=64)
def _whole_segments(work: int) -> tuple[int, ...]:
    """Every number of segments that can be best with whole numbers, ascending."""
    candidates = set(range(1, min(_FEW_SEGMENTS, work) + 1))
    # While floor(work / h) keeps one value the bound is linear in h: only the ends of that range can be best.
    for size in range(1, min(_SMALL_SEGMENT, work) + 1):
        candidates.update((work // size, work // (size + 1) + 1))
    return tuple(sorted(h for h in candidates if 1 <= h <= work))


def sum_of_shares(x: Callable[[int], int], work: int, segments: int) -> int:
    """Sum of x over the shares of the work: floor or ceil of work / segments each."""
    share, longer = divmod(work, segments)
    return (segments - longer) * x(share) + (longer * x(share + 1) if longer else 0)


def best_segments(x: Callable[[int], int], work: int, capacity: int, least: int = 1) -> tuple[int, int]:
    """Maximise sum of x(shares) - (h - 1) S over h, for x concave.

    Parameters
    ----------
    x : callable
        v -> 2^100 times a lower bound on the values touched by v products, rounded down; concave up to rounding.
    work : int
        Products in all, at least 1.
    capacity : int
        S.
    least : int
        Least h.

    Returns
    -------
    elements, h : int
        The bound, rounded up to a whole number (it bounds a count), and h. Any h gives a valid bound; concavity
        serves only to find the best. Cost: about 2 log2(work) calls of x.
    """
    scaled = capacity << FRACTION_BITS
    low, high = least, work
    while low < high:
        middle = (low + high) // 2
        if sum_of_shares(x, work, middle + 1) - sum_of_shares(x, work, middle) > scaled:
            low = middle + 1
        else:
            high = middle
    return rounded_up(sum_of_shares(x, work, low) - (low - 1) * scaled), low


def rounded_up(scaled: int) -> int:
    """A count from 2^100 times a number that it is not below."""
    return -((-scaled) >> FRACTION_BITS)


def shares_of(work: int, segments: int) -> tuple[tuple[int, int], ...]:
    """(products, how many segments): work / segments rounded down and, where it does not divide, up."""
    share, longer = divmod(work, segments)
    return ((share, segments - longer), *(((share + 1, longer),) if longer else ()))

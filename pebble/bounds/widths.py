r"""The segment bound in bytes: every value at its own width, and a partial sum at the width of its accumulator.

**The game.** Room and transfers are counted in bytes. An input takes :math:`w` bytes, held or moved, and so does a cell
of :math:`H` that is complete. A complete output takes :math:`w_o`. A cell that is begun and not complete is a *partial
sum* and takes :math:`p`: a cell of the output :math:`p`, one of :math:`H` :math:`p_H`. Its completion changes its width
at once and free of charge. Matrix units accumulate in fp32, whatever they read: :math:`p = p_H = 4`. Without that,
:math:`p = w_o` and :math:`p_H = w`: a cell has one width.

**Accounting.** Cut the schedule into :math:`h` segments, as in `pebble.bounds.box`. A cell that is updated in a segment
was begun in it (once in all), or it was a partial sum when the segment began: held, it took :math:`p` of the :math:`S`
bytes; otherwise it is loaded, for :math:`p`. A cell of :math:`H` that a segment only reads was held or loaded at
:math:`w` at least. So with :math:`a_s, b_s, c_s` the values of each kind that segment :math:`s` touches, and all
outputs stored complete,

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

**Theorem B2.** *A chain, cut by work that counts a product of* :math:`A B` *as* :math:`\alpha` *and one of* :math:`H D`
*as* :math:`\beta`, *whole numbers. For every* :math:`q` *from* :math:`w` *to* :math:`p_H`, *without recomputation,*

.. math:: Q \ge \sum_s \min\{x_1(W_s), x_2(W_s)\} - (h - 1) S - q\,(\text{cells of } H) - (p - w_o)\,
          (\text{outputs}),

*where* :math:`W_s` *is the whole work over* :math:`h`, *rounded down or up, less* :math:`\max(\alpha, \beta) - 1`,
*and* :math:`x_1(W)` *and* :math:`x_2(W)` *are the least*

- :math:`w a + w b + q e` *with* :math:`a b e \ge v^2`, :math:`a \ge v / f`, :math:`b \ge v / m` *for* :math:`v = W /
  \alpha`; *if* :math:`q = w`, *also with* :math:`e \ge W / (\alpha k + \beta l)`;
- :math:`w d + p y + w e` *with* :math:`d y e \ge v^2`, :math:`d \ge v / m`, :math:`y \ge v / f` *for* :math:`v = W /
  \beta`, *and* :math:`e \ge W / (\alpha k + \beta l)`.

*Proof.* Let a segment do :math:`v_1` and :math:`v_2` products and :math:`W' = \alpha v_1 + \beta v_2`. It touches
:math:`e` cells of :math:`H`, :math:`e_1 \le e` of them with products of :math:`A B`. By the accounting a cell that is
carried into a segment costs :math:`p_H \ge q` where :math:`A B` updates it and :math:`w` where it is only read, and the
segment in which it is begun is one that updates it: :math:`q` comes off once. So what counts is :math:`X = w(a + b) +
w d + p y + w e + (q - w) e_1`, and :math:`Q \ge \sum_s X_s - (h - 1) S - q\,mf - (p - w_o)\,ml`. Since :math:`v_1 \le k
e` and :math:`v_2 \le l e`, :math:`e \ge W' / (\alpha k + \beta l)`. Let :math:`\mu = \alpha v_1 / W'`, and

.. math:: T_1 = w (a + b) / \mu + q e_1, \qquad T_2 = (w d + p y) / (1 - \mu) + w e.

The numbers :math:`a / \mu, b / \mu, e_1` satisfy the conditions of :math:`x_1(W')`, for :math:`v_1 / \mu = W' /
\alpha`; likewise :math:`d / (1 - \mu), y / (1 - \mu), e` those of :math:`x_2`. And :math:`X - \mu T_1 - (1 - \mu) T_2 =
\mu (w e - q e_1) + (q - w) e_1 \ge (1 - \mu) (q - w) e_1 \ge 0`, so :math:`X \ge \min(T_1, T_2)`. For :math:`q = w` put
:math:`e` for :math:`e_1` in :math:`T_1`; the difference is then 0. (If :math:`\mu` is 0 or 1 one of the two is not
needed.) Cut after the product with which the work reaches :math:`\lceil s V / h \rceil` of the whole :math:`V`: it goes
beyond by :math:`\max(\alpha, \beta) - 1` at most, so segment :math:`s` has :math:`W_s` at least, and :math:`x_1` and
:math:`x_2` grow. :math:`\Box`

**Gated.** Gate and up are the columns of a matrix product :math:`m \times 2f \times k`: in :math:`x_1` put :math:`2 f`
for :math:`f`, and take :math:`q` off for :math:`2 m f` cells. Or forget the up cells, and load the up weights besides.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import TYPE_CHECKING, Any

from pebble.bounds.base import COMPULSORY, Theorem, all_names
from pebble.bounds.box import FRACTION_BITS, Piece, best_segments, shares_of
from pebble.bounds.chain import Chain
from pebble.bounds.priced import PricedBytes
from pebble.bounds.wide_lines import LineBytes
from pebble.bounds.wide_passes import PassBytes
from pebble.units import floor_cbrt
from pebble.workloads.widths import Widths

if TYPE_CHECKING:
    from pebble.bounds.base import LowerBound

ONE_PRODUCT = Theorem("Theorem B1", __name__)
CHAIN = Theorem("Theorem B2", __name__)
METHOD = "segment accounting in bytes"
CHAIN_METHOD = "segment accounting in bytes for a chain"
SEPARATE_METHOD = "segment accounting in bytes, kernel by kernel"


@dataclass(frozen=True)
class Least:
    """The least x + y + z of work W, with x y z >= W^2 ``product`` and each at least W times its limit."""

    limits: tuple[Fraction, Fraction, Fraction]  #: bytes per unit of work; 0 for none
    product: Fraction

    @cached_property
    def _regimes(self) -> tuple[Fraction, Fraction, Fraction, Fraction, Fraction, Fraction]:
        """The limits from the lowest, and up to which work none of them binds, only the highest, and two."""
        low, mid, high = sorted(self.limits)
        three = self.product / (low * mid * high) if low else Fraction(-1)
        return low, mid, high, self.product / high**3, self.product / (mid * mid * high), three

    def touched(self, work: int) -> int:
        """2^100 times the least sum, rounded down; concave in the work up to that rounding."""
        if work <= 0:
            return 0
        one, (low, mid, high, cube, slab, three) = FRACTION_BITS, self._regimes
        p, q = self.product.numerator, self.product.denominator
        if work <= cube:
            return floor_cbrt(((27 * work * work * p) << (3 * one)) // q)
        if work <= slab:
            rest = self.product / high
            return _scaled(high * work) + isqrt(((4 * work * rest.numerator) << (2 * one)) // rest.denominator)
        if low == 0 or work <= three:
            return _scaled((mid + high) * work + self.product / (mid * high))
        return _scaled((low + mid + high) * work)


def _scaled(value: Fraction) -> int:
    return (value.numerator << FRACTION_BITS) // value.denominator


@dataclass(frozen=True)
class Use:
    """One use of Theorem B1 or B2: what a segment of some work touches, and what is taken off and added."""

    form: str  #: which of the workload's boxes it is, as certificates name it
    method: str  #: what its bound is called
    kinds: tuple[Least, ...]  #: a segment touches the least of these; one for each matrix product
    weights: tuple[int, ...]  #: work of a multiply-add, by matrix product
    work: int  #: of all of them
    hidden: int  #: q, bytes that count for a cell of H in the segments that update it; 0 where there is none
    partial: int  #: p, bytes that count for a cell of the output
    taken: int  #: bytes begun free and not stored
    added: int = 0  #: bytes that move besides in any case
    products: int = 0  #: multiply-adds, of either product

    def touched(self, work: int) -> int:
        """2^100 times the bytes that a segment of so much work touches at least, rounded down."""
        return min(kind.touched(work) for kind in self.kinds)

    @property
    def slack(self) -> int:
        """What a segment may miss of its share, since products are whole."""
        return max(self.weights) - 1

    def shares(self, segments: int) -> tuple[tuple[int, int], ...]:
        """(work of a segment at least, how many segments have so much)."""
        return tuple((max(0, work - self.slack), count) for work, count in shares_of(self.work, segments))

    def bound(self, capacity: int) -> Bytes:
        """The best h for a memory of so many bytes."""
        _, h = best_segments(lambda work: self.touched(work - self.slack), self.work, capacity)
        total = sum(count * self.touched(work) for work, count in self.shares(h))
        return Bytes(self, capacity, h, -((-total) >> FRACTION_BITS))


@dataclass(frozen=True)
class Bytes:
    """Theorem B1 or B2 on an instance."""

    use: Use
    capacity: int  #: S, bytes
    segments: int  #: h
    touched: int  #: bytes touched in all segments, at least

    @property
    def theorem(self) -> Theorem:
        """What it rests on."""
        return CHAIN if len(self.use.kinds) > 1 else ONE_PRODUCT

    @property
    def bytes(self) -> int:
        """Bytes moved, at least."""
        return self.touched - (self.segments - 1) * self.capacity - self.use.taken + self.use.added

    @property
    def products(self) -> int:
        """Multiply-adds, of either product."""
        return self.use.products

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        use, h = self.use, self.segments
        return {
            "form": use.form,
            "segments": h,
            "work_weights": list(use.weights),
            "share_work": use.work // h,
            "hidden_cell_bytes": use.hidden,
            "output_cell_bytes": use.partial,
            "held_at_cuts_bytes": (h - 1) * self.capacity,
            "touched_bytes": self.touched,
            "begun_and_not_stored_bytes": use.taken,
            "added_bytes": use.added,
        }


@dataclass(frozen=True)
class Wide:
    """A bound in bytes that is above what counting values proves: one of Theorems B1 to B5, of each kernel or group.

    Attributes
    ----------
    method : str
    widths : Widths
    kernels : tuple of (Bytes, LineBytes, PassBytes, PricedBytes or None, int, int)
        Of each kernel or part: the theorem, or None where what surely moves is more; bytes that surely move; how many
        equal ones there are.
    values : LowerBound
        What counting values proves.
    """

    method: str
    widths: Widths
    kernels: tuple[tuple[Bytes | LineBytes | PassBytes | PricedBytes | None, int, int], ...]
    values: LowerBound

    @property
    def theorem(self) -> Theorem:
        """What the bounds of the kernels or groups rest on; that they add up is proved on paper."""
        used = [COMPULSORY if one is None else one.theorem for one, _, _ in self.kernels]
        several = len(used) > 1
        together = ", kernel by kernel" if self.values.separate else ", part by part" if several else ""
        return Theorem(all_names(used) + together, __name__ if several else used[0].stated_in)

    @property
    def elements(self) -> int:
        """Values moved at least."""
        return self.values.proof.elements

    @property
    def bytes(self) -> int:
        """Bytes moved at least, in all."""
        return sum(count * (least if one is None else one.bytes) for one, least, count in self.kernels)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        told = [
            {**({} if one is None else one.to_json()), "surely_moved_bytes": least, "count": count}
            for one, least, count in self.kernels
        ]
        largest = max((one.segments for one, _, _ in self.kernels if one is not None), default=1)
        shares = [one.products // one.segments for one, _, _ in self.kernels if one is not None]
        cut = {"segments": largest, "share_multiply_adds": min(shares, default=0)}
        return {**cut, "widths_bytes": self.widths.to_json(), "in_bytes": told}


def product_uses(piece: Piece, widths: Widths, stored: int | None = None, cells: int | None = None) -> tuple[Use, ...]:
    """The uses of Theorem B1 that are worth trying: cells of the output may count less than they take.

    ``stored``: outputs, and ``cells``: those that are begun; by default all of the box, both.
    """
    box, w = piece.box, widths.read
    begun = box.rows * box.cols if cells is None else cells

    def use(p: int) -> Use:
        limits = Fraction(w, box.overlap * box.cols), Fraction(w, box.rows), Fraction(p, box.depth)
        least = Least(limits, Fraction(w * w * p, box.overlap))
        taken = p * begun - widths.written * (begun if stored is None else stored)
        return Use(
            piece.form, METHOD, (least,), (1,), piece.work, 0, p, taken, widths.written * piece.added, piece.work
        )

    return tuple(use(p) for p in _charges(widths.written, widths.partial))


def _charges(least: int, most: int) -> tuple[int, ...]:
    """Bytes that may count for a partial sum: none is above what it takes."""
    return tuple(sorted({least, (least + most) // 2, most}))


def chain_uses(chain: Chain, widths: Widths) -> tuple[Use, ...]:
    """The uses of Theorem B2 that are worth trying."""
    forms = [("chain", False)] if not chain.gated else [("gated chain", True), ("gate's chain", False)]
    return tuple(
        chain_use(chain, widths, form, both, q, p, weights)
        for form, both in forms
        for q in sorted({widths.read, widths.hidden})
        for p in sorted({widths.written, widths.partial})
        for weights in sorted({(1, 1), _ratio(p, q)})
    )


def _ratio(p: int, q: int) -> tuple[int, int]:
    """Whole numbers whose ratio is about sqrt(q / p): with these the two products weigh what they touch."""
    return {2: (5, 7), 4: (1, 2)}.get(p // q, (1, 1))


def chain_use(chain: Chain, widths: Widths, form: str, both: bool, q: int, p: int, weights: tuple[int, int]) -> Use:
    """Theorem B2 with two charges and weights; ``both``: gate and up are columns of one product."""
    m, k, f, l, cells = chain.m, chain.k, chain.f, chain.l, chain.cells
    w, (alpha, beta), streams = widths.read, weights, 2 if both else 1
    deep = Fraction(w, alpha * k + beta * l)
    first = Least(
        (Fraction(w, alpha * streams * f), Fraction(w, alpha * m), deep if q == w else Fraction(0)),
        Fraction(w * w * q, alpha * alpha),
    )
    second = Least((Fraction(w, beta * m), Fraction(p, beta * f), deep), Fraction(w * p * w, beta * beta))
    taken = q * streams * cells + (p - widths.written) * m * l
    added = w * chain.up_weights if chain.gated and not both else 0
    work = streams * cells * k * alpha + cells * l * beta
    return Use(form, CHAIN_METHOD, (first, second), weights, work, q, p, taken, added, streams * cells * k + cells * l)


def best_use(uses: tuple[Use, ...], capacity: int) -> Bytes:
    """The use that proves most for a memory of so many bytes."""
    return max((use.bound(capacity) for use in uses), key=lambda found: found.bytes)

r"""The line bound: compulsory traffic, reloads in whole numbers and what a spill costs, in one theorem.

The segment bound (`pebble.bounds.box`) asks how few values one segment touches. This one follows each value through all
segments. A value that is used in :math:`s` segments has :math:`s - 1` gaps, and in each it is held over a cut or moved
again; :math:`s` is a whole number, so where values are used in one or two segments, what must move once and what moves
again add up, where the segment bound takes the larger.

**Setting.** Products are points of a box; a *line* is the set of points that share one value. In :math:`C := A B` a
value of :math:`A` has a line of :math:`n` products, one of :math:`B` of :math:`m`, one of :math:`C` of :math:`k`.
Nothing is computed twice. Cut the schedule by work into :math:`h` segments of :math:`v_1, \ldots, v_h` products: the
prover counts products and cuts after the :math:`v_1`-th, the :math:`(v_1 + v_2)`-th and so on, so the shares are his to
choose, and he takes :math:`V / h` rounded down or up, in whatever order.

**Moves.** Let a value be touched (used, or updated) in :math:`s` segments. Between two of these that follow each other
lies at least one cut. Either the value stays in fast memory from its last use in the one to its first use in the other,
and then is held over a cut; or it leaves and returns: an input is loaded, at a cost of :math:`b` = 1; an accumulator is
stored and loaded, :math:`b` = 2. Besides, an input is loaded once before its first use, because fast memory starts
empty, and an output is stored once after its last update: :math:`a` = 1 for both, 0 for a cell that begins free and
ends nowhere, 2 for an accumulator that is read and written. These moves are all different. Whatever is held over a
cut takes :math:`w` of the capacity there; at each of :math:`h - 1` cuts all of them together take at most :math:`S`.
So, for every multiplier :math:`\rho \ge 0` of capacity,

.. math:: \text{moves} + \rho (h - 1) S \ge \sum_{\text{values}} \big( a + (s - 1) \min(b, \rho w) \big).

In the classic game moves and capacity are counted in values, and :math:`w` = 1.

*Partial sums in any order:* if a cell is built from :math:`r` accumulators, initialised free in any segments, merging
them takes :math:`r - 1` operations, each with two of them in fast memory, so that the sets of segments that touch them
are joined at :math:`r - 1` places: if they number :math:`s_1, \ldots, s_r`, then :math:`\sum (s_i - 1) \ge s - 1`, and
the inequality holds for the cell as it is.

**Products.** Let :math:`c_1, c_2, \ldots` be the products of one segment on the lines that it touches, over the lines
of all three directions, and :math:`v` their number. A random one of the :math:`v` products is a triple :math:`(X, Y,
Z)` of entropy :math:`\ln v`, and

.. math:: \mathrm{H}(X \mid Y Z) + \mathrm{H}(Y \mid X Z) + \mathrm{H}(Z \mid X Y)
          \le \mathrm{H}(X) + \mathrm{H}(Y \mid X) + \mathrm{H}(Z \mid X Y) = \mathrm{H}(X Y Z).

Each term on the left is a sum over the lines of a direction: the product is on a line with probability :math:`c / v`
and then any of :math:`c`. Hence :math:`\sum c \ln c \le v \ln v` (Loomis and Whitney's inequality is the case of equal
lines).

**Whole parts.** Let :math:`\mathrm{E}(L, s)` be the least :math:`\sum c_i \ln c_i` over :math:`s` positive whole
numbers that add up to :math:`L`: since :math:`x \ln x` is convex, they are :math:`L / s` rounded down and up. It falls
as :math:`s` grows. Where one value stands for :math:`R` parallel lines with :math:`L` products in all (an input of a
convolution), :math:`s` segments make at most :math:`R s` parts of them, so its products have at least :math:`\mathrm{E}
(L, \min(R s, L))`.

**Theorem 7.** *For all whole* :math:`h`, *all* :math:`\rho \ge 0` *and* :math:`\mu \ge 0`,

.. math:: \text{moves} \ge \sum_{\text{values}} \min_{s} \big[ a + (s - 1) \min(b, \rho w)
          + \mu\, \mathrm{E}(L, \min(R s, L)) \big] - \mu \sum_{i=1}^{h} v_i \ln v_i - \rho (h - 1) S,

*over whole* :math:`1 \le s \le \min(h, L)`.

*Proof.* Add up the inequality on products over all segments: what the lines have is at most :math:`\sum v_i \ln v_i`,
and a line touched in :math:`s` segments has :math:`\mathrm{E}` at least. So :math:`\mu (\sum v_i \ln v_i - \sum
\mathrm{E}) \ge 0`; subtract it on the right of the inequality on moves. The minimum over :math:`s` is below what the
schedule's own :math:`s` gives. :math:`\Box`

*Where every cell is an output it also holds with recomputation.* Follow each output back from its copy in slow memory
at the end: to the update that completed it, to where its accumulator came from before that (the update before, or a
load, and then the store that made the copy), to the accumulators merged into it. A product counts once in a sum, so
the updates met are each product once, and they, the moves met, and the last load of each input before each use are a
schedule's moves without those that serve nothing. The gaps between updates met are as above.

**Several widths.** The game is that of `pebble.bounds.box`: moves, capacity and :math:`S` are bytes, an input takes
:math:`w`, held or moved, a complete output :math:`w_o`, a partial sum of the output :math:`p`, one of :math:`H`
:math:`p_H`, none of them narrower than what it ends as. All that changes is :math:`a, b` and :math:`w` of a value.

**Theorem B3.** *In bytes Theorem 7 holds with*

- *an input:* :math:`a = w`, :math:`b = w`, *footprint* :math:`w`;
- *an output:* :math:`a = w_o` (:math:`2 w_o` *if it is added to*), :math:`b = 2 p`, *footprint* :math:`p`;
- *a cell of* :math:`H` *that only products of* :math:`A B` *touch (an up cell):* :math:`a = 0`, :math:`b = 2 p_H`,
  *footprint* :math:`p_H`; *where a kernel stores* :math:`H` *it is an output of that kernel with* :math:`p_H` *and*
  :math:`w`.

*Proof.* A cell that two segments update one after the other is *between its first update and its last*: it is
initialised, and it is not complete. So in the gap it is a partial sum: held over a cut it takes :math:`p` of the
:math:`S` bytes there; otherwise it is stored and loaded at :math:`p`, since the update before the gap changed it and
the one after it needs it. Accumulators that are merged later are partial sums until they are. Its last store, complete,
and for :math:`C \mathrel{+}= A B` the load before its first update, move :math:`w_o` each, and are none of these. What
Theorem 7 says of products is about products, not about widths. :math:`\Box` With recomputation, where every cell is an
output, the accumulators that are met on the way back from a stored output are partial sums until the update that
completes it. The whole of :math:`p - w_o` that B1 takes off for every output is not taken off here: a cell that one
segment begins and completes is charged :math:`w_o`, no more.

*A kernel that rounds* a partial sum when it spills it moves :math:`2 w_o` for it, no less than its charge if
:math:`\rho p \le 2 w_o`. So at :math:`\rho = 1`, where products are charged, the theorem holds for accumulators up to
twice as wide as outputs even if their spilled copies are rounded.

*Units.* All widths, and so all that is held or moved, are multiples of their greatest common divisor. Bytes are counted
in units of it, and :math:`S` is rounded down to such a multiple. So values of one width are counted one by one.

**Rounding.** Logarithms are whole multiples of :math:`2^{-128}`, rounded up where they are subtracted and down where
they are added; :math:`\mu` and :math:`\rho` are whole multiples of :math:`2^{-64}`; all else is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from functools import lru_cache
from math import log, log1p
from typing import Any, NamedTuple, Protocol

from pebble.bounds.box import shares_of
from pebble.bounds.numbers import number
from pebble.bounds.proofs import Theorem
from pebble.units import ceil_div
from pebble.workloads.widths import ALIKE, Widths

THEOREM = Theorem("Theorem 7", __name__)
IN_BYTES = Theorem("Theorem B3", __name__)
CHECKED = Theorem("Theorem 7", __name__, "Lines.gemm_line_bound")  # of one product, every value moved once besides
LOG_BITS = 128  # of the fractional part of a logarithm
MULTIPLIER_BITS = 64  # of the fractional part of mu and rho
BITS = LOG_BITS + MULTIPLIER_BITS  # of the fractional part of a sum
_FEW = 1000  # products of a part, up to which a half more is not near enough
_DIGITS = Context(prec=64, Emax=99, Emin=-99)


@lru_cache(maxsize=4096)
def ln_below(n: int) -> int:
    """2^128 ln n, rounded down: at most the true value, and less than it by at most 2 units."""
    # ``Decimal.ln`` is correctly rounded, to 64 digits: 2^128 ln n of n < 10^99 is known to far below one unit
    return int(_DIGITS.multiply(_DIGITS.ln(Decimal(n)), Decimal(1 << LOG_BITS))) - 1 if n > 1 else 0


def ln_above(n: int) -> int:
    """2^128 ln n, rounded up."""
    return ln_below(n) + 3 if n > 1 else 0


def entropy_below(length: int, segments: int) -> int:
    """2^128 E(L, s), rounded down: the least sum of c ln c over ``segments`` whole numbers of sum ``length``."""
    small, larger = divmod(length, segments)
    return (segments - larger) * small * ln_below(small) + (larger * (small + 1) * ln_below(small + 1) if larger else 0)


class Cut(NamedTuple):
    """The numbers that the theorem leaves free: any make a valid bound."""

    segments: int  #: h
    mu: int  #: 2^64 mu, the multiplier of an entropy
    rho: int  #: 2^64 rho, the multiplier of capacity at a cut


class ValueKind(Protocol):
    """Values of one kind, with lines of one length."""

    @property
    def count(self) -> int:
        """How many values there are."""

    @property
    def name(self) -> str:
        """What they are values of."""

    @property
    def length(self) -> int:
        """Products of each."""

    def least(self, cut: Cut) -> tuple[int, Any]:
        """2^192 times what one of them is charged at least, rounded down; and where that is, as plain data."""

    def rough(self, segments: int, mu: float, rho: float) -> tuple[float, float]:
        """About the same in floating point, and the E of that minimum: for the search, never for a bound."""

    @property
    def argument(self) -> str:
        """What a reader must know of them besides, as text with formulas; empty for a line as any other."""

    def text(self, at: Any, weighted: bool) -> str:
        """How many there are and where they are charged least; ``weighted``: products count unlike."""


@dataclass(frozen=True)
class Lines:
    """Values that are charged a + (s - 1) min(b, rho w) when they are touched in s segments."""

    name: str  #: of the operand
    count: int  #: how many values
    length: int  #: L, products of each
    first: int = 1  #: a, moves (or bytes) that are certain
    again: int = 1  #: b, moves (or bytes) to leave fast memory and return
    footprint: int = 1  #: w, values (or bytes) that it takes in fast memory
    overlap: int = 1  #: R, parallel lines that one value stands for
    weight: int = 1  #: work of one of its products, where kinds of products count differently

    def most(self, segments: int) -> int:
        """The most segments that can touch one."""
        return min(self.length, segments)

    def gap(self, cut: Cut) -> int:
        """2^64 min(b, rho w)."""
        return min(self.again << MULTIPLIER_BITS, cut.rho * self.footprint)

    def charge(self, cut: Cut, s: int) -> int:
        """2^192 times what the theorem charges for s segments, rounded down."""
        moves = (self.first << MULTIPLIER_BITS) + (s - 1) * self.gap(cut)
        return (moves << LOG_BITS) + cut.mu * self.weight * entropy_below(
            self.length, min(self.overlap * s, self.length)
        )

    def near(self, segments: int, mu: float, gap: float) -> int:
        """About the best s: lines in parts of q, the largest for which one part more is not worth a gap."""
        most = self.most(segments)
        if mu * self.length <= gap / self.overlap * 0.6:  # ln 2 and more
            return 1
        # a part more saves q (q + 1) ln(1 + 1 / q) while parts have q or q + 1 products: about q + 1/2
        worth = gap / (mu * self.overlap)
        q = max(1, int(worth + 0.5))
        if q < _FEW and q * (q + 1) * log1p(1 / q) <= worth:
            q += 1
        return max(1, min(most, self.length // (q * self.overlap)))

    def least(self, cut: Cut) -> tuple[int, int]:
        """The charge at the best s, and that s."""
        s = self.near(
            cut.segments, self.weight * cut.mu / (1 << MULTIPLIER_BITS), self.gap(cut) / (1 << MULTIPLIER_BITS)
        )
        best, most = self.charge(cut, s), self.most(cut.segments)
        for way in (1, -1):
            step, ends = 1, False
            while step:  # larger steps while they gain, then smaller ones
                at = s + way * step
                other = self.charge(cut, at) if 1 <= at <= most else best
                if other < best:
                    best, s, step = other, at, step if ends else 2 * step
                else:
                    step, ends = step // 2, True
        # The true charge is convex in s, and a charge is below it by at most 2 L mu units. So further away it may be
        # less than here by that for each step, and no more.
        return best - 2 * cut.mu * self.weight * self.length**2, s

    def rough(self, segments: int, mu: float, rho: float) -> tuple[float, float]:
        """The charge in floating point, and E there."""
        gap = min(self.again, rho * self.footprint)
        s = self.near(segments, self.weight * mu, gap)
        results = []
        for tried in {s, min(s + 1, self.most(segments))}:
            entropy = self.weight * entropy_near(self.length, min(self.overlap * tried, self.length))
            results.append((self.first + (tried - 1) * gap + mu * entropy, entropy))
        return min(results)

    @property
    def argument(self) -> str:
        """Nothing."""
        return ""

    def text(self, at: int, weighted: bool) -> str:
        """How many there are, and the best s."""
        many = self.overlap
        spread = f" on {many} parallel lines (so in $s$ segments ${many} s$ parts at most)" if many > 1 else ""
        return rf"values of {self.name} with $L = {number(self.length)}${spread}: $s = {at}$"


def entropy_near(length: int, segments: int) -> float:
    """E(L, s) in floating point."""
    small, larger = divmod(length, segments)
    return (segments - larger) * small * log(small) + (larger * (small + 1) * log(small + 1) if larger else 0.0)


@dataclass(frozen=True)
class LineProblem:
    """What a workload tells the theorem: the kinds of values that share its products."""

    form: str  #: which of the workload's boxes it is, as certificates name it
    kinds: tuple[ValueKind, ...]
    work: int  #: V, products; or what they count
    added: int = 0  #: moves that are certain besides
    multipliers: tuple[float, ...] = (1.0,)  #: the rho to try, one after the other as long as it pays
    theorem: Theorem = field(default=THEOREM, kw_only=True)  #: what its bound rests on
    widths: Widths = field(default=ALIKE, kw_only=True)  #: what values take; the kinds tell it in their ``unit``
    weights: tuple[int, int] | None = field(default=None, kw_only=True)  #: what products count, where a chain is cut so
    multiply_adds: int = field(default=0, kw_only=True)  #: where products count more than one: how many there are

    @classmethod
    def product(cls, m: int, n: int, k: int, first: tuple[int, int, int] = (1, 1, 1)) -> LineProblem:
        """All of a matrix product, m x n x k; ``first`` are the moves that are certain of values of A, B and C."""
        a, b, c = first
        kinds = Lines("A", m * k, n, a), Lines("B", k * n, m, b), Lines("C", m * n, k, c, again=2)
        return cls("product", kinds, m * n * k, theorem=CHECKED if first == (1, 1, 1) else THEOREM)

    def at(self, widths: Widths) -> LineProblem:
        """The same with every value at its width: Theorem B3. Of the classic game, itself.

        A value that returns at one move is an input; at two a cell, of the output if any move is certain.
        """
        if widths == self.widths:
            return self
        w, hidden, partial, written = widths.in_units

        def weighted(kind: ValueKind) -> Lines:
            if not isinstance(kind, Lines):
                raise TypeError(f"a kind of value: got {type(kind).__name__}, expected lines of one product")
            if kind.again == 1:
                return replace(kind, first=w * kind.first, again=w, footprint=w)
            p = partial if kind.first else hidden
            return replace(kind, first=written * kind.first, again=2 * p, footprint=p)

        kinds = tuple(map(weighted, self.kinds))
        return replace(self, kinds=kinds, added=self.added * w, theorem=IN_BYTES, widths=widths)

    @property
    def products(self) -> int:
        """Multiply-adds."""
        return self.multiply_adds or self.work

    @property
    def heaviest(self) -> int:
        """What a product counts at most."""
        return max(self.weights or (1,))

    def longest(self, segments: int) -> int:
        """The most work that a segment may have."""
        return ceil_div(self.work, segments) + self.heaviest - 1

    def entropy_above(self, segments: int) -> int:
        """2^128 times the sum of v ln v over the segments, rounded up."""
        if self.heaviest > 1:
            return self.work * ln_above(self.longest(segments))
        return sum(count * v * ln_above(v) for v, count in shares_of(self.work, segments))

    def entropy_near(self, segments: int) -> float:
        """About the same in floating point."""
        if self.heaviest > 1:
            return self.work * log(self.longest(segments))
        return sum(count * v * log(v) for v, count in shares_of(self.work, segments))

    def value(self, capacity: int, cut: Cut) -> tuple[int, tuple[Any, ...]]:
        """2^192 times the right side of Theorem 7, rounded down, and where the kinds have their minima."""
        charged = [kind.least(cut) for kind in self.kinds]
        total = sum(kind.count * least for kind, (least, _) in zip(self.kinds, charged, strict=True))
        total -= cut.mu * self.entropy_above(cut.segments)
        total -= (cut.rho * (cut.segments - 1) * capacity) << LOG_BITS
        return total + (self.added << BITS), tuple(at for _, at in charged)

    def rough(self, segments: int, mu: float, rho: float) -> tuple[float, float]:
        """The right side but for the capacity at the cuts, and its slope in mu, in floating point."""
        value, slope = float(self.added), -self.entropy_near(segments)
        value += mu * slope
        for kind in self.kinds:
            charge, entropy = kind.rough(segments, mu, rho)
            value += kind.count * charge
            slope += kind.count * entropy
        return value, slope

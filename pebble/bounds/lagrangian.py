r"""The Lagrangian line bound: what a segment may hold, by how many of its products are second ones.

Theorem 8 (`pebble.bounds.chain_lines`) has one multiplier of room and one of entropy for all segments. But the segments
of two products in a row differ: where :math:`A B` is computed, a slot at the cut before it saves one load; where
:math:`H D` is added up, it saves the store and the load of a value of :math:`Y`; and a cell of :math:`H` goes over from
the one to the other once. Here every multiplier depends on what the segment does.

**Kinds.** Cut the schedule by work into :math:`h` segments of :math:`\lfloor V / h \rfloor` or :math:`\lceil V / h
\rceil` products. A segment with :math:`v_1` first and :math:`v_2` second products is of kind :math:`i` if :math:`v_2`
is in the :math:`i`-th of some ranges of whole numbers, which cover all. Kind :math:`i` has multipliers :math:`\rho_i
\ge 0` of room at the cut before the segment and :math:`\sigma_i \ge 0` at the cut after it, :math:`\mu_i, \nu_i > 0` of
the entropies of its first and its second products, and six numbers of any sign, :math:`\alpha_i^A, \alpha_i^B,
\alpha_i^C` for each first product on a line of :math:`A`, of :math:`B` and of a cell, :math:`\alpha_i^D, \alpha_i^Y,
\alpha_i^E` for each second one on a line of :math:`D`, of :math:`Y` and of a cell. A unit of room at the cut between
two segments costs the :math:`\sigma` of the one and the :math:`\rho` of the other.

**Moves.** Let segments :math:`t_1 < t_2 < \ldots` touch a value. Between :math:`t_{q-1}` and :math:`t_q`, of kinds
:math:`i` and :math:`j`, it is held over all cuts, so over that after the one and that before the other, the same cut
or two: that costs :math:`\sigma_i + \rho_j` or more. Or it leaves and returns, in :math:`n` moves: one, a load, for an
input and for a complete cell that is stored; two, for a partial sum. For any :math:`\tau_n` from 0 to :math:`n`

.. math:: \min(n, \sigma_i + \rho_j) \ge \min(\tau_n, \sigma_i) + \min(n - \tau_n, \rho_j):

what the segments before and after a *gap* pay for it. So with :math:`w` for an input and a complete cell, :math:`p_H`
for a partial sum of :math:`H`, :math:`p` for one of :math:`Y`, :math:`w_o` for an output (all 1 where values are
counted),

- a value of :math:`A, B, D` costs :math:`w`, and :math:`w` times this for each gap, with :math:`n = 1`;
- one of :math:`Y` costs :math:`w_o`, and :math:`p` times this for each gap, with :math:`n = 2`;
- a cell of :math:`H` costs :math:`p_H` times this for each gap between segments with first products, with :math:`n =
  2`; and for each later gap :math:`w (\sigma_i + \rho_j)` if it is held over all of them, else :math:`w` times this
  with :math:`n = 1`, since it is loaded then, and :math:`w` once, since it was stored, complete.

All first products of a cell come before its second ones, so of the segments with first products only the last may have
second ones. *Merged partial sums:* follow what the last product in :math:`t_{q-1}` has become a part of. It is held
over all cuts up to :math:`t_q`, or before the first at which it is not it was stored, after that product: a different
store for each :math:`q`, with a load of its own.

**Products.** In a segment the :math:`c` on the lines of :math:`A`, of :math:`B` and on cells add up to :math:`v_1`
each, and have :math:`\sum c \ln c \le v_1 \ln v_1` (Theorem 7), and those of :math:`D`, of :math:`Y` and on cells
likewise with :math:`v_2`.

**Theorem 10.** *A chain without recomputation moves at least*

.. math:: \sum_{\text{values}} M - h\, G + S \big( \min_i \rho_i + \min_i \sigma_i \big), \qquad
          G = \max_{i,\, v_1,\, v_2} \big[ (\rho_i + \sigma_i) S + \mu_i v_1 \ln v_1 + \nu_i v_2 \ln v_2
              + (\alpha_i^A + \alpha_i^B + \alpha_i^C)\, v_1 + (\alpha_i^D + \alpha_i^Y + \alpha_i^E)\, v_2 \big],

*over the kinds and the sizes of segments, where* :math:`M` *is the least, over all ways to split the products of a
value over segments of any kinds, of what it costs and of* :math:`\mu_i c \ln c + \alpha_i c` *(* :math:`\nu_i` *for
second products) for each of its parts.*

*Proof.* At each of the :math:`h - 1` cuts :math:`S` at most is held: what is moved and :math:`S \big( \sum_{t \ge 2}
\rho + \sum_{t \le h - 1} \sigma \big)` are no less than what all values cost. To the left add :math:`\mu (v_1 \ln v_1 -
\sum c \ln c) \ge 0` and the same with :math:`\nu`, and :math:`\alpha (v_1 - \sum c) = 0` for each direction. On the
right of what results each value has its :math:`M` or more; each segment takes off :math:`G` at most, the first one
without room before it, the last one without room after it. For a kind and a size of segment the bracket is convex in
:math:`v_2`, so it is largest at an end of the range. :math:`\Box`

**What a value is charged.** For every :math:`\theta`, a part of :math:`c` products on a line costs at least
:math:`\theta c + e_i`, where :math:`e_i = - \mu_i \exp((\theta - \alpha_i) / \mu_i - 1)` is the least of
:math:`\mu_i c \ln c + (\alpha_i - \theta) c` over real :math:`c`. So a line of :math:`L` in :math:`s` segments, with
:math:`a` for what is certain and :math:`x_i` and :math:`y_i` for the gaps before and after a part, has

.. math:: M \ge \min_i \big[ a + \mu_i L \ln L + \alpha_i L \big] \ (s = 1), \qquad
          M \ge a + \theta L + \min_i (e_i + y_i) + (s - 2) \min_i (x_i + e_i + y_i) + \min_i (x_i + e_i) \ (s \ge 2),

with a :math:`\theta` for each :math:`s`; where the third minimum is not negative no larger :math:`s` is less. A cell
has a first part and a second part, each bounded in this way: apart, where the last part of the one and the first of the
other pay for the gap between them; or in one segment of kind :math:`i` that ends the one and begins the other. So

.. math:: M \ge \min \Big( F + T,\ F' + T',\ \min_i (F_i + T_i) \Big),

where :math:`F` and :math:`T` are the least for first and for second products with such a gap for a cell that is held,
:math:`F'` and :math:`T'` for one that is stored, and :math:`F_i` has its last part, :math:`T_i` its first in a segment
of kind :math:`i`.

**A gated chain** has gate and up products among the first: lines of :math:`A` are :math:`2 f` long, an up cell begins
free, ends nowhere and costs what its gaps do. Or the up cells are left out and the up weights loaded besides.

**Rounding.** Multipliers are whole multiples of :math:`2^{-64}`. Numbers have 60 digits; each sum is off by less than
:math:`10^{-40}` of the magnitudes of its terms, which is taken off.

Source: this project. Han (1978) for the entropies; weak duality of linear programs for the multipliers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pebble.bounds.chain import Chain
from pebble.bounds.lines import MULTIPLIER_BITS
from pebble.workloads.widths import ALIKE, Widths

DISJOINT = -1  #: no kind: first and second products in different segments
Where = tuple[str, int]  # what is split, and the kind of the segment that has first and second products


class Multipliers(NamedTuple):
    """What a kind of segment is charged; all but ``to`` are whole multiples of 2^-64."""

    to: int  #: the most second products of such a segment; it has more than the kind before
    before: int  #: rho, of a unit of room at the cut before it
    after: int  #: sigma, of one at the cut after it
    first: int  #: mu, of the entropy of its first products
    second: int  #: nu, of that of its second ones
    a: int  #: of a first product on a line of A
    b: int  #: on a line of B
    cells: int  #: on a cell
    d: int  #: of a second product on a line of D
    y: int  #: on a line of Y
    again: int  #: on a cell

    def of(self, field: str) -> int:
        """A multiplier by its name."""
        result: int = self[self._fields.index(field)]
        return result


class Shares(NamedTuple):
    """How much of a gap the segment before it pays, at most; whole multiples of 2^-64."""

    per_move: int  #: of one move, tau_1
    two: int  #: of two, tau_2

    def before(self, kind: Multipliers, moves: int) -> int:
        """What the segment after a gap pays for each unit of width."""
        return min(kind.before, (moves << MULTIPLIER_BITS) - self[moves - 1]) if moves else kind.before

    def after(self, kind: Multipliers, moves: int) -> int:
        """What the segment before a gap pays."""
        return min(kind.after, self[moves - 1]) if moves else kind.after


class Gap(NamedTuple):
    """Between two segments that touch a value: its width, and the moves to leave and return, 0 where it stays."""

    width: int
    moves: int


class SegmentShare(NamedTuple):
    """Products of a value in one segment: the gaps before and after it that it pays for."""

    before: Gap | None = None
    after: Gap | None = None


@dataclass(frozen=True)
class LineGroup:
    """Values whose products are on one line each: how many, how long, what is certain and what parts pay for.

    Where one part has a kind of its own, the first or the last, nothing is certain of all products in that part.
    """

    name: str
    count: int
    length: int
    first: bool  #: whether its products are first ones
    offset: str  #: the field of `Multipliers` for its products
    certain: int
    alone: SegmentShare  #: all products
    begin: SegmentShare
    inner: SegmentShare
    end: SegmentShare
    fixed: str = ""  #: the part with a kind of its own

    @property
    def ends(self) -> tuple[tuple[str, SegmentShare], ...]:
        """The parts of two and more."""
        return ("begin", self.begin), ("inner", self.inner), ("end", self.end)


def _line(name: str, count: int, length: int, certain: int, gap: Gap, first: bool, offset: str) -> LineGroup:
    parts = SegmentShare(), SegmentShare(None, gap), SegmentShare(gap, gap), SegmentShare(gap, None)
    return LineGroup(name, count, length, first, offset, certain, *parts)


@dataclass(frozen=True)
class LagrangianChain:
    """Two products in a row, as Theorem 10 sees them; widths in units, all 1 where values are counted."""

    form: str
    m: int
    k: int
    f: int
    l: int
    streams: int = 1
    read: int = 1  #: w
    hidden: int = 1  #: p_H
    partial: int = 1  #: p
    written: int = 1  #: w_o
    added: int = 0  #: moved besides
    widths: Widths = ALIKE  #: what values take; above in its units

    @property
    def products(self) -> tuple[int, int]:
        """First and second ones."""
        cells = self.m * self.f
        return cells * self.k * self.streams, cells * self.l

    @property
    def work(self) -> int:
        """V."""
        return sum(self.products)

    @property
    def lines(self) -> tuple[LineGroup, ...]:
        """All values but the cells of H."""
        m, k, f, l, u, w = self.m, self.k, self.f, self.l, self.streams, self.read
        result = (
            _line("A", m * k, u * f, w, Gap(w, 1), True, "a"),
            _line("B", u * k * f, m, w, Gap(w, 1), True, "b"),
            _line("D", f * l, m, w, Gap(w, 1), False, "d"),
            _line("Y", m * l, f, self.written, Gap(self.partial, 2), False, "y"),
        )
        return (*result, _line("up cells", m * f, k, 0, Gap(self.hidden, 2), True, "cells")) if u == 2 else result

    @property
    def disjoint(self) -> tuple[tuple[LineGroup, LineGroup], ...]:
        """The first and the second products of a cell of H in different segments: held in between, or stored once."""
        return tuple(
            (self._firsts(f"first, {name}", gap), self._seconds(name, gap, certain))
            for name, gap, certain in self._handovers
        )

    @property
    def together(self) -> tuple[LineGroup, tuple[LineGroup, ...]]:
        """The last of its first products and the first of its second ones in one segment."""
        return self._firsts("first", None), tuple(
            self._seconds(name, gap, certain, "begin") for name, gap, certain in self._handovers
        )

    @property
    def splits(self) -> tuple[LineGroup, ...]:
        """All."""
        first, seconds = self.together
        return (*self.lines, *(split for pair in self.disjoint for split in pair), first, *seconds)

    @property
    def _handovers(self) -> tuple[tuple[str, Gap, int], ...]:
        """A complete cell of H is held all the time, or stored: what a gap is, and what is certain."""
        w = self.read
        return ("kept", Gap(w, 0), 0), ("stored", Gap(w, 1), w)

    def _firsts(self, name: str, then: Gap | None) -> LineGroup:
        gap = Gap(self.hidden, 2)
        parts = SegmentShare(None, then), SegmentShare(None, gap), SegmentShare(gap, gap), SegmentShare(gap, then)
        return LineGroup(name, self.m * self.f, self.k, True, "cells", 0, *parts, "" if then else "end")

    def _seconds(self, name: str, gap: Gap, certain: int, fixed: str = "") -> LineGroup:
        since = None if fixed else gap
        parts = SegmentShare(since, None), SegmentShare(since, gap), SegmentShare(gap, gap), SegmentShare(gap, None)
        return LineGroup(name, self.m * self.f, self.l, False, "again", certain, *parts, fixed)


def lagrangian_chains(chain: Chain, widths: Widths = ALIKE) -> tuple[LagrangianChain, ...]:
    """The ways to apply Theorem 10; none where a mask leaves cells of H out."""
    if chain.cells != chain.m * chain.f:
        return ()

    def problem(form: str, streams: int = 1, added: int = 0) -> LagrangianChain:
        sizes = (chain.m, chain.k, chain.f, chain.l)
        return LagrangianChain(form, *sizes, streams, *widths.in_units, added, widths)

    if not chain.gated:
        return (problem("chain"),)
    return problem("gated chain", streams=2), problem("gate's chain", added=widths.in_units[0] * chain.up_weights)

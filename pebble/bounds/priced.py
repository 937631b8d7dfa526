r"""The priced line bound: what a segment may hold, by how many of its products are second ones.

Theorem 8 (`pebble.bounds.chain_lines`) has one price of room and one of entropy for all segments. But the segments of
two products in a row differ: where :math:`A B` is computed, a slot at the cut before it saves one load; where :math:`H
D` is added up, it saves the store and the load of a value of :math:`Y`; and a cell of :math:`H` goes over from the one
to the other once. Here every price depends on what the segment does.

**Kinds.** Cut the schedule by work into :math:`h` segments of :math:`\lfloor V / h \rfloor` or :math:`\lceil V / h
\rceil` products. A segment with :math:`v_1` first and :math:`v_2` second products is of kind :math:`i` if :math:`v_2`
is in the :math:`i`-th of some ranges of whole numbers, which cover all. Kind :math:`i` has a price :math:`\rho_i \ge 0`
of room at the cut before the segment, :math:`\mu_i, \nu_i > 0` of the entropies of its first and its second products,
and six numbers of any sign, :math:`\alpha_i^A, \alpha_i^B, \alpha_i^C` for each first product on a line of :math:`A`,
of :math:`B` and of a cell, :math:`\alpha_i^D, \alpha_i^Y, \alpha_i^E` for each second one on a line of :math:`D`, of
:math:`Y` and of a cell.

**Moves.** Let segments :math:`t_1 < t_2 < \ldots` touch a value. Before :math:`t_q`, :math:`q \ge 2`, it is held over
the cut in front of :math:`t_q`, whose room has the price of the kind of :math:`t_q`, or it has left and returns. So
with :math:`w` for an input and a complete cell, :math:`p_H` for a partial sum of :math:`H`, :math:`p` for one of
:math:`Y`, :math:`w_o` for an output (all 1 where values are counted),

- a value of :math:`A, B, D` costs :math:`w + \sum_{q \ge 2} w \min(1, \rho)`;
- one of :math:`Y` costs :math:`w_o + \sum_{q \ge 2} p \min(2, \rho)`;
- a cell of :math:`H` costs :math:`\sum_{q \ge 2} p_H \min(2, \rho)` over the segments with first products, and over the
  further ones, with second products only, :math:`\sum w \rho` if it is held before each of them, else :math:`w + \sum w
  \min(1, \rho)`, since it is loaded then and was stored once, complete.

All first products of a cell come before its second ones, so of the segments with first products only the last may have
second ones. *Merged partial sums:* look at the cut before :math:`t_q` and at the accumulator that has the last product
before it. It is held there, or it is in slow memory in a gap that begins with a touch in :math:`[t_{q-1}, t_q)`, a
different one for each :math:`q`, and each such gap is a store and a load: the charges are as above. If the last merge
is in a segment with second products only, the cell is not complete before it, and takes and moves no less than a
complete one.

**Products.** In a segment the :math:`c` on the lines of :math:`A`, of :math:`B` and on cells add up to :math:`v_1`
each, and have :math:`\sum c \ln c \le v_1 \ln v_1` (Theorem 7), and those of :math:`D`, of :math:`Y` and on cells
likewise with :math:`v_2`.

**Theorem 10.** *A chain without recomputation moves at least*

.. math:: \sum_{\text{values}} M - h\, G + S \min_i \rho_i, \qquad
          G = \max_{i,\, v_1,\, v_2} \big[ \rho_i S + \mu_i v_1 \ln v_1 + \nu_i v_2 \ln v_2
              + (\alpha_i^A + \alpha_i^B + \alpha_i^C)\, v_1 + (\alpha_i^D + \alpha_i^Y + \alpha_i^E)\, v_2 \big],

*over the kinds and the sizes of segments, where* :math:`M` *is the least, over all ways to split the products of a
value over segments of any kinds, of what it costs and of* :math:`\mu_i c \ln c + \alpha_i c` *(* :math:`\nu_i` *for
second products) for each of its parts.*

*Proof.* At each of the :math:`h - 1` cuts :math:`S` at most is held: what is moved and :math:`\sum_{t \ge 2} \rho S`
are no less than what all values cost. To the left add :math:`\mu (v_1 \ln v_1 - \sum c \ln c) \ge 0` and the same with
:math:`\nu`, and :math:`\alpha (v_1 - \sum c) = 0` for each direction. On the right of what results each value has its
:math:`M` or more; each segment takes off :math:`G` at most, the first one without the room. For a kind and a size of
segment the bracket is convex in :math:`v_2`, so it is largest at an end of the range. :math:`\Box`

**What a value is charged.** For every :math:`\theta`, a part of :math:`c` products on a line costs at least
:math:`\theta c + e_i`, where :math:`e_i = - \mu_i \exp((\theta - \alpha_i) / \mu_i - 1)` is the least of
:math:`\mu_i c \ln c + (\alpha_i - \theta) c` over real :math:`c`. So a line of :math:`L` in :math:`s` segments, with
:math:`a` for the first and a gap :math:`g_i` before each other, has

.. math:: M \ge \min_i \big[ a + \mu_i L \ln L + \alpha_i L \big] \ (s = 1), \qquad
          M \ge a + \theta L + \min_i e_i + (s - 1) \min_i (g_i + e_i) \ (s \ge 2),

with a :math:`\theta` for each :math:`s`; where the last minimum is not negative no larger :math:`s` is less. A cell has
a first part and a second part, each bounded in this way: apart, or in one segment of kind :math:`i` that ends the one
and begins the other. So it has

.. math:: M \ge \min \Big( F + T,\ \min_i (F_i + T_i) \Big),

where :math:`F` and :math:`T` are the least for first and for second products alone, :math:`F_i` with a last part and
:math:`T_i` with a first, free one, in a segment of kind :math:`i`.

**A gated chain** has gate and up products among the first: lines of :math:`A` are :math:`2 f` long, an up cell begins
free, ends nowhere and costs what :math:`F` says. Or the up cells are left out and the up weights loaded besides.

**Rounding.** Prices are whole multiples of :math:`2^{-64}`. Numbers have 60 digits; each sum is off by less than
:math:`10^{-40}` of the magnitudes of its terms, which is taken off.

Source: this project. Han (1978) for the entropies; weak duality of linear programs for the prices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from pebble.bounds.chain import Chain
from pebble.bounds.lines import PRICE_BITS
from pebble.units import ceil_div
from pebble.workloads.widths import Widths

METHOD = "priced line accounting"
METHOD_BYTES = "priced line accounting in bytes"
_MATH = Context(prec=60, Emax=10**6, Emin=-(10**6))
_SLACK = Decimal("1e-40")  # of the magnitudes of the terms of a sum: far more than 60 digits lose
_ONE = Decimal(1 << PRICE_BITS)

APART = -1  #: no kind: first and second products in different segments
Where = tuple[str, int]  # what is split, and the kind of the segment that has first and second products
Thetas = Mapping[Where, Mapping[int, int]]  # by the number of parts


class Price(NamedTuple):
    """What a kind of segment is charged; all but ``to`` are whole multiples of 2^-64."""

    to: int  #: the most second products of such a segment; it has more than the kind before
    room: int  #: rho, of a unit of room at the cut before it
    first: int  #: mu, of the entropy of its first products
    second: int  #: nu, of that of its second ones
    a: int  #: of a first product on a line of A
    b: int  #: on a line of B
    cells: int  #: on a cell
    d: int  #: of a second product on a line of D
    y: int  #: on a line of Y
    again: int  #: on a cell


@dataclass(frozen=True)
class Split:
    """Values whose products are on one line each: how many, how long, what is certain and what a gap costs."""

    name: str
    count: int
    length: int
    certain: int  #: a
    width: int  #: a gap costs this much
    moves: int  #: times the price of room, but no more than times this
    first: bool  #: whether its products are first ones
    offset: str  #: the field of `Price` for its products


@dataclass(frozen=True)
class PricedChain:
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
    def lines(self) -> tuple[Split, ...]:
        """All values but the cells of H."""
        m, k, f, l, u, w = self.m, self.k, self.f, self.l, self.streams, self.read
        found = (
            Split("A", m * k, u * f, w, w, 1, True, "a"),
            Split("B", u * k * f, m, w, w, 1, True, "b"),
            Split("D", f * l, m, w, w, 1, False, "d"),
            Split("Y", m * l, f, self.written, self.partial, 2, False, "y"),
        )
        return (*found, Split("up cells", m * f, k, 0, self.hidden, 2, True, "cells")) if u == 2 else found

    @property
    def firsts(self) -> Split:
        """The first products of a cell of H."""
        return Split("first", self.m * self.f, self.k, 0, self.hidden, 2, True, "cells")

    @property
    def seconds(self) -> tuple[Split, Split]:
        """The second products of a cell of H that is held all the time, and of one that is stored."""
        count, w = self.m * self.f, self.read
        return (
            Split("kept", count, self.l, 0, w, 0, False, "again"),
            Split("stored", count, self.l, w, w, 1, False, "again"),
        )


def priced_chains(chain: Chain, widths: Widths | None = None, unit: int = 1) -> tuple[PricedChain, ...]:
    """The ways to apply Theorem 10; none where a mask leaves cells of H out. ``unit``: bytes of a unit."""
    if chain.cells != chain.m * chain.f:
        return ()
    told = (1, 1, 1, 1) if widths is None else (widths.read, widths.hidden, widths.partial, widths.written)
    read, hidden, partial, written = (width // unit for width in told)

    def problem(form: str, streams: int = 1, added: int = 0) -> PricedChain:
        sizes = (chain.m, chain.k, chain.f, chain.l)
        return PricedChain(form, *sizes, streams, read, hidden, partial, written, added)

    if not chain.gated:
        return (problem("chain"),)
    return problem("gated chain", streams=2), problem("gate's chain", added=read * chain.up_weights)


@dataclass(frozen=True)
class PricedBound:
    """Theorem 10 on an instance."""

    method: str  #: what the bound is called
    problem: PricedChain
    capacity: int  #: S, in units
    segments: int  #: h
    kinds: tuple[Price, ...]
    elements: int  #: units moved at least

    @property
    def form(self) -> str:
        """Which of the workload's boxes it is about."""
        return self.problem.form

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "products": self.problem.work,
            "segments": self.segments,
            "held_at_cuts": (self.segments - 1) * self.capacity,
            "kinds": [{"second_products_to": kind.to, "room": kind.room / (1 << PRICE_BITS)} for kind in self.kinds],
            "added_elements": self.problem.added,
        }


@dataclass(frozen=True)
class PricedBytes:
    """Theorem 10 where values have widths."""

    found: PricedBound  #: in units
    unit: int  #: bytes of a unit

    @property
    def bytes(self) -> int:
        """Bytes moved, at least."""
        return self.unit * self.found.elements

    @property
    def segments(self) -> int:
        """How many there are, h."""
        return self.found.segments

    @property
    def products(self) -> int:
        """Multiply-adds."""
        return self.found.problem.work

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``; what it counts is in units."""
        return {"form": self.found.form, "unit_bytes": self.unit, **self.found.to_json()}


@lru_cache(maxsize=1 << 14)
def _ln(n: int) -> Decimal:
    return _MATH.ln(Decimal(n)) if n > 1 else Decimal(0)


def _price(x: int) -> Decimal:
    return _MATH.divide(Decimal(x), _ONE)


def _below(*terms: Decimal) -> Decimal:
    """A sum, rounded down by more than its terms are off."""
    total = magnitude = Decimal(0)
    for term in terms:
        total, magnitude = _MATH.add(total, term), _MATH.add(magnitude, abs(term))
    return _MATH.subtract(total, _MATH.multiply(magnitude, _SLACK))


def _times(*factors: Decimal | int) -> Decimal:
    product = Decimal(1)
    for factor in factors:
        product = _MATH.multiply(product, Decimal(factor))
    return product


class _Priced(NamedTuple):
    """One kind of segment for one kind of line: prices, and what a gap costs."""

    mu: Decimal
    offset: Decimal
    gap: Decimal

    def whole(self, length: int) -> Decimal:
        """All products in one segment."""
        return _below(_times(self.mu, length, _ln(length)), _times(self.offset, length))

    def part(self, theta: Decimal) -> Decimal:
        """e_i, from below."""
        power = _MATH.subtract(_MATH.divide(_MATH.subtract(theta, self.offset), self.mu), Decimal(1))
        return _below(-_times(self.mu, _MATH.exp(power)))


def _priced(split: Split, kinds: Sequence[Price]) -> list[_Priced]:
    found = []
    for kind in kinds:
        room = kind.room if not split.moves else min(kind.room, split.moves << PRICE_BITS)
        mu = _price(kind.first if split.first else kind.second)
        found.append(_Priced(mu, _price(getattr(kind, split.offset)), _times(split.width, _price(room))))
    return found


class _Line(NamedTuple):
    """A bound that is linear in the number of parts."""

    parts: int  #: where its theta is about the best
    there: Decimal  #: its value there
    slope: Decimal  #: what one part more adds

    def at(self, parts: int) -> Decimal:
        """Its value elsewhere."""
        return _below(self.there, _times(parts - self.parts, self.slope))


class _Splits:
    """The least that the lines of one kind are charged.

    ``thetas`` holds a multiple of 2^-64 for some numbers of parts from 2 on.
    """

    def __init__(self, split: Split, kinds: Sequence[Price], segments: int, thetas: Thetas) -> None:
        self.split, self.thetas = split, thetas
        self.kinds = _priced(split, kinds)
        self.most = min(segments, split.length)

    def line(self) -> Decimal:
        """Any number of parts, the first of them without a gap."""
        ways = [_below(Decimal(self.split.certain), kind.whole(self.split.length)) for kind in self.kinds]
        return min(*ways, self._parts(APART, lambda s, begin, again, _: _below(begin, _times(s - 1, again))))

    def behind(self) -> Decimal:
        """Any number of parts, each after a gap."""
        certain = Decimal(self.split.certain)
        ways = [_below(certain, kind.whole(self.split.length), kind.gap) for kind in self.kinds]
        return min(*ways, self._parts(APART, lambda s, _, again, __: _times(s, again)))

    def ending(self, at: int) -> Decimal:
        """The last part in a segment of kind ``at``, the first without a gap."""
        gap = self.kinds[at].gap
        more = self._parts(at, lambda s, begin, again, part: _below(begin, _times(s - 2, again), gap, part))
        return min(self.kinds[at].whole(self.split.length), more)

    def beginning(self, at: int) -> Decimal:
        """The first part in a segment of kind ``at``, without a gap, and nothing certain if there is no other."""
        more = self._parts(at, lambda s, _, again, part: _below(part, _times(s - 1, again)))
        return min(self.kinds[at].whole(self.split.length), more)

    def _parts(self, at: int, charge: Callable[[int, Decimal, Decimal, Decimal], Decimal]) -> Decimal:
        """The least over 2 parts and more; ``charge`` of their number, the least e and g + e, and e of kind ``at``."""
        if self.most < 2:
            return Decimal("Infinity")
        lines = []
        for parts, told in sorted(self.thetas.get((self.split.name, at), {2: 0}).items()):
            if not 2 <= parts <= self.most:
                continue
            theta = _price(told)
            least = [kind.part(theta) for kind in self.kinds]
            again = min(_below(kind.gap, part) for kind, part in zip(self.kinds, least, strict=True))
            base = Decimal(self.split.certain), _times(theta, self.split.length)
            lines.append(_Line(parts, _below(*base, charge(parts, min(least), again, least[at])), again))
        return _least_of_all(lines, self.most)


def _least_of_all(lines: Sequence[_Line], most: int) -> Decimal:
    """The least over 2..most of the largest of these lines, from below."""
    if not lines:
        raise ValueError("no theta is told")
    first, last = lines[0], lines[-1]
    found = [line.there for line in lines]
    found += [first.at(2)] if first.slope > 0 else []
    found += [last.at(most)] if last.slope < 0 else []
    for one, other in pairwise(lines):
        if other.parts > one.parts + 1 and one.slope < 0 < other.slope:  # between them, where they meet
            apart = _MATH.subtract(one.there, other.at(one.parts))
            steps = _MATH.divide(apart, _MATH.subtract(other.slope, one.slope))
            found.append(_below(one.there, _times(steps, one.slope)))
    return min(found)


def cell_charge(problem: PricedChain, kinds: Sequence[Price], segments: int, thetas: Thetas) -> Decimal:
    """What a cell of H is charged at least."""
    firsts = _Splits(problem.firsts, kinds, segments, thetas)
    seconds = [_Splits(split, kinds, segments, thetas) for split in problem.seconds]
    apart = _below(firsts.line(), min(split.behind() for split in seconds))
    meets = [_below(firsts.ending(i), min(split.beginning(i) for split in seconds)) for i in range(len(kinds))]
    return min(apart, *meets)


def _segment_charge(problem: PricedChain, capacity: int, segments: int, kinds: Sequence[Price]) -> Decimal:
    """G, from above."""
    sizes, found, low = {problem.work // segments, ceil_div(problem.work, segments)}, [], 0
    for kind in kinds:
        for size in sizes:
            for second in {low, min(kind.to, size)} if low <= size else ():
                first = size - second
                terms = (
                    _times(_price(kind.room), capacity),
                    _times(_price(kind.first), first, _ln(first)),
                    _times(_price(kind.second), second, _ln(second)),
                    _times(_price(kind.a + kind.b + kind.cells), first),
                    _times(_price(kind.d + kind.y + kind.again), second),
                )
                found.append(-_below(*(-term for term in terms)))
        low = kind.to + 1
    return max(found)


def priced_value(problem: PricedChain, capacity: int, segments: int, kinds: Sequence[Price], thetas: Thetas) -> int:
    """The right side of Theorem 10, in units, rounded up; any prices and thetas give a valid bound.

    Raises
    ------
    ValueError
        Kinds that leave a segment out, prices of entropies that are not positive, or of room that are negative, or
        partial sums narrower than what they end as.
    """
    ends = [kind.to for kind in kinds]
    if ends != sorted(set(ends)) or not ends or ends[0] < 0 or ends[-1] < ceil_div(problem.work, segments):
        raise ValueError("the kinds of segments leave some out")
    if any(kind.room < 0 or kind.first <= 0 or kind.second <= 0 for kind in kinds):
        raise ValueError("a price is not positive")
    if problem.hidden < problem.read or problem.partial < problem.written:
        raise ValueError("the theorem is about partial sums that are no narrower than what they end as")
    terms = [_times(split.count, _Splits(split, kinds, segments, thetas).line()) for split in problem.lines]
    terms.append(_times(problem.m * problem.f, cell_charge(problem, kinds, segments, thetas)))
    terms.append(-_times(segments, _segment_charge(problem, capacity, segments, kinds)))
    terms.append(_times(capacity, _price(min(kind.room for kind in kinds))))
    return problem.added + int(_below(*terms).to_integral_value(rounding=ROUND_CEILING))

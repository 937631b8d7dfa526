r"""The line theorem for two products in a row, with multipliers that change with what a segment does.

H = act(A B) and Y = H D have m f k *first* products, of A B, and m f l *second* ones, of H D. Nothing is computed
twice; a cell may be added up in several accumulators that are merged later. Cut the schedule into h segments of V / h
products each, rounded down or up, V being all of them. A segment with v products, v2 of them second ones, is of *kind*
i if v2 is in the i-th of some ranges that cover 0 .. ceil(V / h). Each kind has multipliers: r, s >= 0 of a unit of
room at the cut before and at the cut after such a segment, mu > 0 and nu > 0 of the entropy of first and of second
products, and of any sign a_A, a_B, a_C of each first product, on its line of A, of B, and of the cell, and a_D, a_Y,
a_E of each second one. Two *shares* hold for all kinds, t1 in [0, 1] and t2 in [0, 2].

*Moves.* Let a value be touched in segments t < t' and in none between. All cuts in this gap begin with the one after t
and end with the one before t', perhaps the same. If the value is held over all of them, its room there has the
multipliers s of t and r of t', which no other gap of it has. If it leaves and returns, that is one move or two. So at a
width of w

    one move: w min(1, s + r)   >=  w min(t1, s)  +  w min(1 - t1, r)
    two:      w min(2, s + r)   >=  w min(t2, s)  +  w min(2 - t2, r)
                                    *out* of t       *into* t'

(multipliers are not negative). Each touch is charged out but the last, and into but the first.

An input is loaded once besides, before its first touch. In a gap in which it is not held over a cut it is loaded after
that and before its use in t'. So it costs w and one move for each gap. Of a cell follow the accumulator that has its
last product of t, and what that is merged into. Between t and t', where it has more products, it is no complete cell.
If it is not in fast memory at a cut, it was stored after that product and before the first such cut: in t or between t
and t', another store for each gap, and before the last product, so that the last store of an output is yet another. It
is loaded after that cut; and no two gaps have one load, since the accumulator of the later gap was in fast memory
between, for its product or for the merge. So Y costs wo and two moves at width p for each gap, and a cell of H and an
up cell (which begins free and ends nowhere) two moves at pH for each gap between first products.

A cell of H is complete before its second products: all segments that have second ones only come after the last that has
first ones. Now follow what has its last first product, of width w or more (w <= pH), over the gap before the first of
them, if that is another segment, and over those between them. Either it is *kept*, held over all cuts of all these
gaps, each w s + w r; or it was *stored* after that product, w, and each gap in which it is not held over all cuts has a
load of its own: w and one move for each gap. If one segment has its last first and all its second products there is no
such gap, and nothing is certain.

*Products.* The first products of a segment on lines of A, of B and of cells, c on each, have sum c ln c <= v1 ln v1
over all lines together, for the entropy of one coordinate given the two others, added up over the three, is no more
than that of all three; so do the second ones on lines of D, of Y and of cells, with v2. And along each direction c adds
up to v1, or v2. At each cut S at most is held. So with v1 = v - v2 and

    G = max over kinds, v and v2 of (r + s) S + mu v1 ln v1 + nu v2 ln v2 + (a_A + a_B + a_C) v1 + (a_D + a_Y + a_E) v2

    moves >= sum over values of [what it costs + sum over its touches of mu c ln c + a c (or nu)] - h G
             + S min r + S min s,

since the first segment has no cut before it and the last none after it. G is convex in v2, so the ends of a kind's
range, as far as v, suffice.

*What a value is charged* is the least bracket over all ways to share its L products among segments of any kinds
(`.priced_parts`). One segment: mu L ln L + a L and what is certain. More: the first part has out, the last one into,
all others both. A cell of H has first and second products. Either no segment has both: then the last of its first parts
has out as well, kept or stored like its second parts, and the first of these has into. Or one segment has, of kind i:
then the last of its first parts and the first of its second ones are of kind i, without that gap.

A gated chain has 2 f columns of gate and up in its first product, and up cells. Or forget these: the gate's chain
moves so much, and every up weight is loaded besides.

*Arithmetic.* All is whole multiples of 2^-256, rounded so that what is added is never too high.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

from .lagrangian_segments import MOST_SEGMENTS, MULTIPLIER_BITS, SUM, Gaps, Rate, SharedSegments
from .lines import BITS, logarithm
from .reading import RefusedError, array, choice, fields, fraction, integer

MAX_MULTIPLIER = 2**32
MAX_KINDS = 64
FORMS = {1: ("chain",), 2: ("gated chain", "gate's chain")}
LINES = ("A", "B", "cells", "D", "Y", "cells again")


class Units(NamedTuple):
    """What values take, in one unit."""

    read: int  #: w
    hidden: int  #: pH, no less
    partial: int  #: p
    written: int  #: wo


class Sides(NamedTuple):
    """What a part of each kind is charged on either side, in multiples of 2^-64."""

    into: Gaps  #: for the gap before it
    out: Gaps  #: for the gap after it

    @property
    def both(self) -> Gaps:
        """For both."""
        return added(self.into, self.out)


def added(gaps: Gaps, other: Gaps) -> Gaps:
    """The charges of both."""
    return {i: charge + other[i] for i, charge in gaps.items()}


@dataclass(frozen=True)
class SegmentKind:
    """Segments of one kind."""

    first: int  #: second products, from
    last: int  #: to
    before: int  #: r, and so on, in multiples of 2^-64
    after: int  #: s
    entropies: tuple[int, int]
    products: dict[str, int]

    def rate(self, line: str) -> Rate:
        """Of products on such a line."""
        return Rate(self.entropies[line in LINES[3:]], self.products[line])

    def most(self, v: int, capacity: int) -> int | None:
        """2^256 times the largest that G is for segments of v products, from above; None where there are none."""
        if self.first > v:
            return None
        sums = [sum(self.products[line] for line in lines) for lines in (LINES[:3], LINES[3:])]
        results = []
        for second in {self.first, min(self.last, v)}:
            total = (self.before + self.after) * capacity << BITS
            for count, mu, more in zip((v - second, second), self.entropies, sums, strict=True):
                if count:
                    total += mu * count * logarithm(count)[1] + (more * count << BITS)
            results.append(total)
        return max(results)


@dataclass(frozen=True)
class DualPoint:
    """All that a proof tells, and where."""

    segments: int
    kinds: Sequence[SegmentKind]
    shares: tuple[int, int]  #: t1 and t2, in multiples of 2^-64
    at: str

    def traffic(self, moves: int, width: int) -> Sides:
        """Gaps of a value that leaves and returns in so many moves, 1 or 2."""
        share = self.shares[moves - 1]
        return Sides(
            {i: width * min((moves << MULTIPLIER_BITS) - share, kind.before) for i, kind in enumerate(self.kinds)},
            {i: width * min(share, kind.after) for i, kind in enumerate(self.kinds)},
        )

    def resident(self, width: int) -> Sides:
        """Gaps of a value that is held."""
        return Sides(
            {i: width * kind.before for i, kind in enumerate(self.kinds)},
            {i: width * kind.after for i, kind in enumerate(self.kinds)},
        )

    def whole(self, line: str, length: int, gaps: Gaps | None = None) -> int:
        """2^256 times the least for products all in one segment, besides what is certain."""
        rates = enumerate(kind.rate(line) for kind in self.kinds)
        return min(rate.whole(length) + ((gaps[i] if gaps else 0) << BITS) for i, rate in rates)

    def parts(self, line: str, length: int, inner: Gaps, outer: Sequence[Gaps], rough: bool = False) -> int | None:
        """The same where two segments or more share them; None where there are not as many."""
        parts = SharedSegments(length, [kind.rate(line) for kind in self.kinds], inner, outer, self.at)
        return parts.least(2 - len(outer), min(self.segments, length) - len(outer), rough)

    def line(self, line: str, length: int, sides: Sides) -> int:
        """2^256 times what a value whose products are on one line is charged, besides what is certain."""
        more = self.parts(line, length, sides.both, (sides.out, sides.into))
        return _least(self.whole(line, length), more)


def by_multipliers(
    chain: tuple[int, int, int, int, int], streams: int, units: Units, capacity: int, proof: Any, at: str
) -> int:
    """What a chain moves at least, in units, as the proof says; ``chain``: m, k, f, l and the cells of H.

    None of these may be left out by a mask.
    """
    m, k, f, l, cells = chain
    if cells != m * f:
        raise RefusedError(f"{at}.theorem", "this theorem is not about a mask")
    fields(proof, at, ("theorem", "form", "segments", "shares", "kinds"), ("least",))
    form = choice(proof["form"], f"{at}.form", FORMS[streams])
    more = units.read * k * f if form == "gate's chain" else 0
    proved = prove_lagrangian((m, k, f, l), form, units, capacity, proof, at) + more
    if "least" not in proof:
        return proved
    # who wrote the proof may have found a theta that is not quite the best
    least = integer(proof["least"], f"{at}.least", 0)
    if least > proved:
        raise RefusedError(f"{at}.least", f"these multipliers prove {proved:,}, not {least:,}")
    return least


def prove_lagrangian(
    sizes: tuple[int, int, int, int], form: str, units: Units, capacity: int, proof: Any, at: str
) -> int:
    """What the theorem says of m, k, f and l, in units; up weights that a form leaves out are not counted.

    Notes
    -----
    An exp for each kind and each of some tens of thetas for each kind: a fraction of a second for ten kinds.
    """
    m, k, f, l = sizes
    w, hidden, p, written = units
    if hidden < w:
        raise RefusedError(at, "this theorem is about partial sums that are no narrower than what they end as")
    gated = form == "gated chain"
    columns = 2 * f if gated else f
    work = m * (columns * k + f * l)
    h = integer(proof["segments"], f"{at}.segments", 1, min(work, MOST_SEGMENTS))
    small, longest = work // h, -(-work // h)
    kinds = _kinds(proof["kinds"], longest, f"{at}.kinds")
    multipliers = DualPoint(h, kinds, _shares(proof["shares"], f"{at}.shares"), at)
    once, hidden_sums = multipliers.traffic(1, w), multipliers.traffic(2, hidden)

    first = multipliers.line("cells", k, hidden_sums)  # the first products of a cell of H, or of an up cell
    total = m * k * ((w << SUM) + multipliers.line("A", columns, once))
    total += k * columns * ((w << SUM) + multipliers.line("B", m, once))
    total += f * l * ((w << SUM) + multipliers.line("D", m, once))
    total += m * l * ((written << SUM) + multipliers.line("Y", f, multipliers.traffic(2, p)))
    total += m * f * _hidden(multipliers, k, l, hidden_sums, ((0, multipliers.resident(w)), (w, once)))
    total += m * f * first if gated else 0
    most = [result for kind in kinds for v in (small, longest) if (result := kind.most(v, capacity)) is not None]
    total -= h * max(most)
    total += (min(kind.before for kind in kinds) + min(kind.after for kind in kinds)) * capacity << BITS
    return ceil(Fraction(total, 1 << SUM))


def _hidden(multipliers: DualPoint, k: int, l: int, sums: Sides, handovers: Sequence[tuple[int, Sides]]) -> int:
    """2^256 times what a cell of H is charged, from below.

    ``sums``: gaps between its first products; ``handovers``: for a kept cell and for a stored one, what is
    certain, and the gaps after them.
    """
    firsts = [kind.rate("cells").whole(k) for kind in multipliers.kinds]
    seconds = [kind.rate("cells again").whole(l) for kind in multipliers.kinds]

    def disjoint(certain: int, way: Sides) -> int:
        """No segment has first and second products."""
        more = multipliers.parts("cells", k, sums.both, (sums.out, added(sums.into, way.out)))
        before = _least(multipliers.whole("cells", k, way.out), more)
        more = multipliers.parts("cells again", l, way.both, (way.into,))
        return before + (certain << SUM) + _least(multipliers.whole("cells again", l, way.into), more)

    def together(i: int, rough: bool) -> int:
        """A segment of kind i has."""
        before = multipliers.parts("cells", k, sums.both, (sums.out, {i: sums.into[i]}), rough)
        later = seconds[i]
        for certain, way in handovers:
            more = multipliers.parts("cells again", l, way.both, ({i: way.out[i]}, way.into), rough)
            later = later if more is None else min(later, (certain << SUM) + more)
        return _least(firsts[i], before) + later

    best = min(disjoint(certain, way) for certain, way in handovers)
    for low, i in sorted((together(i, True), i) for i in range(len(multipliers.kinds))):
        if low >= best:  # and so are all that follow
            break
        best = min(best, together(i, False))
    return best


def _least(single: int, other: int | None) -> int:
    return single if other is None else min(single, other)


def _kinds(stated: Any, longest: int, at: str) -> list[SegmentKind]:
    """The kinds of a proof, whose ranges follow each other and end at the longest segment."""
    results: list[SegmentKind] = []
    start = 0
    for number, item in enumerate(array(stated, at, 1, MAX_KINDS)):
        where = f"{at}[{number}]"
        fields(item, where, ("to", "before", "after", "first", "second", *LINES))
        end = integer(item["to"], f"{where}.to", start, longest)
        entropies = tuple(_multiplier(item[key], f"{where}.{key}") for key in ("first", "second"))
        for key, multiplier in zip(("first", "second"), entropies, strict=True):
            if multiplier == 0:
                raise RefusedError(f"{where}.{key}", "an entropy has a multiplier above 0")
        products = {line: _multiplier(item[line], f"{where}.{line}", True) for line in LINES}
        before, after = (_multiplier(item[key], f"{where}.{key}") for key in ("before", "after"))
        results.append(SegmentKind(start, end, before, after, (entropies[0], entropies[1]), products))
        start = end + 1
    if start != longest + 1:
        raise RefusedError(at, f"the last range does not end at {longest} products")
    return results


def _shares(stated: Any, at: str) -> tuple[int, int]:
    """2^64 times both shares."""
    fields(stated, at, ("one", "two"))
    single, two = (_multiplier(stated[key], f"{at}.{key}") for key in ("one", "two"))
    for key, share, most in (("one", single, 1), ("two", two, 2)):
        if share > most << MULTIPLIER_BITS:
            raise RefusedError(f"{at}.{key}", f"this share is at most {most}")
    return single, two


def _multiplier(stated: Any, at: str, signed: bool = False) -> int:
    """2^64 times a multiplier."""
    multiplier = fraction(stated, at, signed)
    if (1 << MULTIPLIER_BITS) % multiplier.denominator or abs(multiplier) >= MAX_MULTIPLIER:
        raise RefusedError(at, f"a multiplier is a whole multiple of 2^-{MULTIPLIER_BITS} below 2^32")
    return int(multiplier * (1 << MULTIPLIER_BITS))

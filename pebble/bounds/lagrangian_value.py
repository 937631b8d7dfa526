"""The right side of Theorem 10 (`pebble.bounds.lagrangian`) for given multipliers, in 60 digits, rounded safely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from pebble.bounds.lagrangian import DISJOINT, LagrangianChain, LineGroup, Multipliers, SegmentShare, Shares, Where
from pebble.bounds.lines import MULTIPLIER_BITS
from pebble.units import ceil_div

Thetas = Mapping[Where, Mapping[int, int]]  # by the number of parts
_MATH = Context(prec=60, Emax=10**6, Emin=-(10**6))
_SLACK = Decimal("1e-40")  # of the magnitudes of the terms of a sum: far more than 60 digits lose
_ONE = Decimal(1 << MULTIPLIER_BITS)


@lru_cache(maxsize=1 << 14)
def _ln(n: int) -> Decimal:
    return _MATH.ln(Decimal(n)) if n > 1 else Decimal(0)


def _multiplier(x: int) -> Decimal:
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


class _LagrangianKind(NamedTuple):
    """One kind of segment for one kind of line."""

    mu: Decimal
    offset: Decimal

    def whole(self, length: int) -> Decimal:
        """All products in one segment."""
        return _below(_times(self.mu, length, _ln(length)), _times(self.offset, length))

    def part(self, theta: Decimal) -> Decimal:
        """e_i, from below."""
        power = _MATH.subtract(_MATH.divide(_MATH.subtract(theta, self.offset), self.mu), Decimal(1))
        return _below(-_times(self.mu, _MATH.exp(power)))


class _Line(NamedTuple):
    """A bound that is linear in the number of parts."""

    pieces: int  #: where its theta is about the best
    there: Decimal  #: its value there
    slope: Decimal  #: what one part more adds

    def at(self, pieces: int) -> Decimal:
        """Its value elsewhere."""
        return _below(self.there, _times(pieces - self.pieces, self.slope))


@dataclass(frozen=True)
class DualPoint:
    """All that values are charged by: kinds of segments, shares of gaps, and how many segments there are.

    ``thetas`` holds a multiple of 2^-64 for some numbers of parts from 2 on.
    """

    kinds: Sequence[Multipliers]
    shares: Shares
    segments: int
    thetas: Thetas

    def _pays(self, part: SegmentShare, kind: Multipliers) -> Decimal:
        """For its gaps: exact."""
        result = 0
        if part.before:
            result += part.before.width * self.shares.before(kind, part.before.moves)
        if part.after:
            result += part.after.width * self.shares.after(kind, part.after.moves)
        return _multiplier(result)

    def charge(self, split: LineGroup, at: int = DISJOINT) -> Decimal:
        """The least that such a value is charged, in any number of parts; ``at``: the kind of the fixed one."""
        entries = [
            _LagrangianKind(_multiplier(kind.first if split.first else kind.second), _multiplier(kind.of(split.offset)))
            for kind in self.kinds
        ]
        certain, length = Decimal(split.certain), split.length
        only = range(len(entries)) if not split.fixed else (at,)
        paid = [self._pays(split.alone, kind) for kind in self.kinds]
        sure = certain if not split.fixed else Decimal(0)
        whole = min(_below(sure, paid[i], entries[i].whole(length)) for i in only)
        most = min(self.segments, length)
        if most < 2:
            return whole
        ends = [(part, only if split.fixed == name else range(len(entries))) for name, part in split.ends]
        pays = [[(i, self._pays(part, self.kinds[i])) for i in among] for part, among in ends]
        lines = []
        for pieces, theta in sorted(self.thetas.get((split.name, at), {2: 0}).items()):
            if not 2 <= pieces <= most:
                continue
            least = [kind.part(_multiplier(theta)) for kind in entries]
            begin, inner, end = (min(_below(pay, least[i]) for i, pay in item) for item in pays)
            there = _below(certain, _times(_multiplier(theta), length), begin, _times(pieces - 2, inner), end)
            lines.append(_Line(pieces, there, inner))
        return min(whole, _least_of_all(lines, most))


def _least_of_all(lines: Sequence[_Line], most: int) -> Decimal:
    """The least over 2..most of the largest of these lines, from below."""
    if not lines:
        raise ValueError("no theta is told")
    first, last = lines[0], lines[-1]
    results = [line.there for line in lines]
    results += [first.at(2)] if first.slope > 0 else []
    results += [last.at(most)] if last.slope < 0 else []
    for item, other in pairwise(lines):
        if other.pieces > item.pieces + 1 and item.slope < 0 < other.slope:  # between them, where they meet
            distance = _MATH.subtract(item.there, other.at(item.pieces))
            steps = _MATH.divide(distance, _MATH.subtract(other.slope, item.slope))
            results.append(_below(item.there, _times(steps, item.slope)))
    return min(results)


def cell_charge(problem: LagrangianChain, multipliers: DualPoint) -> Decimal:
    """What a cell of H is charged at least."""
    disjoint = [_below(multipliers.charge(first), multipliers.charge(second)) for first, second in problem.disjoint]
    first, seconds = problem.together
    meets = [
        _below(multipliers.charge(first, i), min(multipliers.charge(second, i) for second in seconds))
        for i in range(len(multipliers.kinds))
    ]
    return min(*disjoint, *meets)


def _segment_charge(problem: LagrangianChain, capacity: int, segments: int, kinds: Sequence[Multipliers]) -> Decimal:
    """G, from above."""
    sizes, result, low = {problem.work // segments, ceil_div(problem.work, segments)}, [], 0
    for kind in kinds:
        for size in sizes:
            for second in {low, min(kind.to, size)} if low <= size else ():
                first = size - second
                terms = (
                    _times(_multiplier(kind.before + kind.after), capacity),
                    _times(_multiplier(kind.first), first, _ln(first)),
                    _times(_multiplier(kind.second), second, _ln(second)),
                    _times(_multiplier(kind.a + kind.b + kind.cells), first),
                    _times(_multiplier(kind.d + kind.y + kind.again), second),
                )
                result.append(-_below(*(-term for term in terms)))
        low = kind.to + 1
    return max(result)


def lagrangian_value(problem: LagrangianChain, capacity: int, multipliers: DualPoint) -> int:
    """The right side of Theorem 10, in units, rounded up; any multipliers and thetas give a valid bound.

    Raises
    ------
    ValueError
        Kinds that leave a segment out, multipliers of entropies that are not positive, or of room that are negative,
        shares of more than there is, or partial sums narrower than what they end as.
    """
    kinds, shares, segments = multipliers.kinds, multipliers.shares, multipliers.segments
    ends = [kind.to for kind in kinds]
    if ends != sorted(set(ends)) or not ends or ends[0] < 0 or ends[-1] < ceil_div(problem.work, segments):
        raise ValueError("the kinds of segments leave some out")
    if any(min(kind.before, kind.after) < 0 or min(kind.first, kind.second) <= 0 for kind in kinds):
        raise ValueError("a multiplier is not positive")
    if any(not 0 <= share <= moves << MULTIPLIER_BITS for moves, share in enumerate(shares, 1)):
        raise ValueError("a share is less than nothing, or more than there is")
    if problem.hidden < problem.read or problem.partial < problem.written:
        raise ValueError("the theorem is about partial sums that are no narrower than what they end as")
    terms = [_times(split.count, multipliers.charge(split)) for split in problem.lines]
    terms.append(_times(problem.m * problem.f, cell_charge(problem, multipliers)))
    terms.append(-_times(segments, _segment_charge(problem, capacity, segments, kinds)))
    terms.append(_times(capacity, _multiplier(min(kind.before for kind in kinds) + min(kind.after for kind in kinds))))
    return problem.added + int(_below(*terms).to_integral_value(rounding=ROUND_CEILING))

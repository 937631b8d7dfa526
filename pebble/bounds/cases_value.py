"""What Theorem 15 (`pebble.bounds.cases`) says of one case at given prices, in whole numbers, rounded safely.

Floats look for each theta and z, which may be anything; what they are put into is exact but for exp, rounded upwards.
Sets of segments are looked through in the order of what floats say. For most of them a theta that was the best of
another set says already that they are not the least.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import cached_property
from itertools import pairwise
from math import exp, log

from pebble.bounds.cases import Box, Prices
from pebble.bounds.lagrangian import Gap, LagrangianChain
from pebble.bounds.lines import LOG_BITS, MULTIPLIER_BITS, ln_above

Set = tuple[int, ...]  # segments, in order
_ONE = 1 << MULTIPLIER_BITS
_SUM = 2 * MULTIPLIER_BITS  # bits after the point of what is added up
_MATH = Context(prec=45)
_NEWTON, _HALVINGS = 12, 40
_FAR = 60.0  # e^-60 products are none, for floats
_NOTHING = -1 << 500  # no value is charged less, since c ln c >= -1/e, and prices and lines are shorter numbers


def exp_above(over: int, under: int) -> int | None:
    """2^64 exp(over / under), from above, for under > 0; None where that is beyond all numbers of products.

    Both roundings, of the quotient below 300 and of exp, change it by less than 10^-40 of itself.
    """
    if over < -_SUM * under:
        return 1
    if over > 300 * under:
        return None
    above, below = _MATH.exp(_MATH.divide(Decimal(over), Decimal(under))).as_integer_ratio()
    result = (above << MULTIPLIER_BITS) // below
    return result + (result >> 120) + 2


def _best_theta(rates: Sequence[tuple[float, float]], length: int) -> float:
    """About the theta at which parts with these mu and alpha add up to a line."""
    theta, wanted = min(alpha + mu * (1 + log(length)) for mu, alpha in rates), log(length)
    for _ in range(_NEWTON):
        powers = [(theta - alpha) / mu - 1 for mu, alpha in rates]
        most = max(powers)
        weights = [exp(max(power - most, -_FAR)) for power in powers]
        total = sum(weights)
        slope = sum(weight / mu for weight, (mu, _) in zip(weights, rates, strict=True)) / total
        step = (most + log(total) - wanted) / slope
        theta -= step
        if abs(step) <= 1e-14 * abs(theta):
            break
    return theta


def _value(rates: Sequence[tuple[float, float]], length: int, theta: float) -> float:
    """About what a line is charged by that theta."""
    powers = (min((theta - alpha) / mu - 1, 2 * log(length + 1) + 1) for mu, alpha in rates)
    return theta * length - sum(mu * exp(power) for (mu, _), power in zip(rates, powers, strict=True))


def _part(mu: int, alpha: int, theta: int) -> int | None:
    power = exp_above(theta - alpha - mu, mu)
    return None if power is None else -mu * power


@dataclass
class Line:
    """Products on lines of one kind: their prices in each segment."""

    length: int
    entropy: Sequence[int]  #: mu and mu' or mu'' together, 2^64 times, as
    offset: Sequence[int]  #: alpha
    _known: dict[tuple[int, int], int | None] = field(default_factory=dict)

    @cached_property
    def rates(self) -> list[tuple[float, float]]:
        """Both in floating point."""
        return [(mu / _ONE, alpha / _ONE) for mu, alpha in zip(self.entropy, self.offset, strict=True)]

    def theta(self, among: Set) -> int:
        """2^64 times about the best theta of a set."""
        return round(_best_theta([self.rates[t] for t in among], self.length) * _ONE)

    def near(self, among: Set) -> float:
        """About what products are charged in a set."""
        rates = [self.rates[t] for t in among]
        return _value(rates, self.length, _best_theta(rates, self.length))

    def part(self, t: int, theta: int) -> int | None:
        """2^128 e_t(theta), from below; None where that is beyond all numbers."""
        if (t, theta) not in self._known:
            self._known[t, theta] = _part(self.entropy[t], self.offset[t], theta)
        return self._known[t, theta]

    def at(self, among: Set, theta: int) -> int:
        """2^128 times what products are charged in a set, from below, by one theta."""
        parts = [self.part(t, theta) for t in among]
        return _NOTHING if None in parts else (theta * self.length << MULTIPLIER_BITS) + sum(filter(None, parts))


class Least:
    """The least over sets of what values are charged in each, gaps included, in multiples of 2^-128."""

    def __init__(self, line: Line, sets: Sequence[Set]) -> None:
        self.line, self.sets = line, sets
        self.near = {among: line.near(among) for among in sets}
        self.thetas: list[int] = []

    def of(self, among: Set) -> int:
        """What is charged in one set, besides gaps."""
        theta = self.line.theta(among)
        if theta not in self.thetas:
            self.thetas.append(theta)
        return self.line.at(among, theta)

    def over(self, gaps: dict[Set, int]) -> int:
        """The least over some sets."""
        scale = float(1 << _SUM)
        best: int | None = None
        for among in sorted(gaps, key=lambda among: self.near[among] + gaps[among] / scale):
            if best is None or not self.reaches(among, best - gaps[among]):
                value = self.of(among) + gaps[among]
                best = value if best is None else min(best, value)
        assert best is not None  # there are sets
        return best

    def reaches(self, among: Set, value: int) -> bool:
        """Whether a theta known already proves so much of a set."""
        return any(self.line.at(among, theta) >= value for theta in reversed(self.thetas))


@dataclass(frozen=True)
class CaseValue:
    """What one case proves of a chain at some prices."""

    problem: LagrangianChain
    capacity: int  #: S, in units
    sizes: Sequence[int]  #: products of each segment
    prices: Prices

    @cached_property
    def sets(self) -> list[Set]:
        """All sets of segments."""
        h = len(self.sizes)
        return [tuple(t for t in range(h) if number >> t & 1) for number in range(1, 1 << h)]

    def room(self, since: int, to: int) -> int:
        """2^64 R: of a unit held from one segment to a later one."""
        return sum(self.prices.room[since:to])

    def gaps(self, among: Set, gap: Gap) -> int:
        """2^128 times what a value costs between the segments of a set."""
        each = (min(gap.moves * _ONE, self.room(since, to)) for since, to in pairwise(among))
        return gap.width * sum(each) << MULTIPLIER_BITS

    def _line(self, length: int, field: str, offset: str) -> Line:
        both, own = self.prices.both, self.prices.of(field)
        return Line(length, [mu + more for mu, more in zip(both, own, strict=True)], self.prices.of(offset))

    def charged(self) -> int:
        """2^128 times what all values are charged, from below."""
        total = 0
        for line in self.problem.lines:
            least = Least(self._line(line.length, "first" if line.first else "second", line.offset), self.sets)
            gap = line.begin.after
            assert gap is not None  # products of one kind have gaps
            value = least.over({among: self.gaps(among, gap) for among in self.sets})
            total += line.count * (value + (line.certain << _SUM))
        return total + self.problem.m * self.problem.f * _Cells(self).least()

    def taken(self, t: int, first: int) -> int:
        """2^192 psi_t, from above."""
        prices, second = self.prices, self.sizes[t] - first
        entropies = sum(
            mu * count * (ln_above(count) if count else 0)
            for mu, count in (
                (prices.both[t], first + second),
                (prices.first[t], first),
                (prices.second[t], second),
            )
        )
        offsets = sum(prices.of(name)[t] for name in ("a", "b", "cells")) * first
        offsets += sum(prices.of(name)[t] for name in ("d", "y", "again")) * second
        return entropies + (offsets << LOG_BITS)

    def in_box(self, charged: int, box: Box) -> int:
        """What a case proves, in units, rounded up; ``charged`` as `charged` says."""
        bits = LOG_BITS + MULTIPLIER_BITS
        total = (charged << bits - _SUM) - (self.capacity * sum(self.prices.room) << LOG_BITS)
        total -= sum(max(self.taken(t, low), self.taken(t, high)) for t, (low, high) in enumerate(box))
        return self.problem.added - (-total >> bits)


class _Cells:
    """What a cell of H is charged."""

    def __init__(self, case: CaseValue) -> None:
        problem = case.problem
        self.case, self.w, self.hidden = case, problem.read, problem.hidden
        self.first = Least(case._line(problem.k, "first", "cells"), case.sets)
        self.second = Least(case._line(problem.l, "second", "again"), case.sets)
        self.begun = {among: case.gaps(among, Gap(self.hidden, 2)) for among in case.sets}
        self.kept = {among: self.w * case.room(among[0], among[-1]) << MULTIPLIER_BITS for among in case.sets}
        self.stored = {among: (self.w << _SUM) + case.gaps(among, Gap(self.w, 1)) for among in case.sets}
        self.later = {among: min(self.kept[among], self.stored[among]) for among in case.sets}

    def least(self) -> int:
        """2^128 times the least, from below."""
        h, case, one = len(self.case.sizes), self.case, self.w << _SUM
        ending = [self.first.over({a: g for a, g in self.begun.items() if a[-1] == t}) for t in range(h)]
        kept, stored = (
            [self.second.over({a: g for a, g in gaps.items() if a[0] == t}) for t in range(h)]
            for gaps in (self.kept, self.stored)
        )
        results = []
        for a in range(h):
            for b in range(a + 1, h):
                held = self.w * case.room(a, b) << MULTIPLIER_BITS
                results += [ending[a] + held + kept[b], ending[a] + min(one, held) + stored[b]]
        best = min(results, default=None)
        for a in range(h):
            best = self._meeting(a, best)
        assert best is not None  # a segment may have all products
        return best

    def _meeting(self, t: int, best: int | None) -> int | None:
        """The same with first and second products that meet in a segment, where that is less."""
        scale = float(1 << _SUM)
        pairs = [(i, j) for i in self.begun if i[-1] == t for j in self.later if j[0] == t]

        def gaps(pair: tuple[Set, Set]) -> int:
            return self.begun[pair[0]] + self.later[pair[1]]

        def near(pair: tuple[Set, Set]) -> float:
            return self.first.near[pair[0]] + self.second.near[pair[1]] + gaps(pair) / scale

        known: list[_Meeting] = []
        for pair in sorted(pairs, key=near):
            if best is not None:
                if self._apart(pair, best - gaps(pair)):
                    continue
                if any(meeting.at(pair) + gaps(pair) >= best for meeting in known):
                    continue
            known.append(_Meeting.of(self, t, pair))
            value = known[-1].at(pair) + gaps(pair)
            best = value if best is None else min(best, value)
        return best

    def _apart(self, pair: tuple[Set, Set], value: int) -> bool:
        """Whether first and second products are charged so much by themselves."""
        one, other = (least.near[among] for least, among in zip((self.first, self.second), pair, strict=True))
        if one + other < value / float(1 << _SUM):
            return False
        return self.first.of(pair[0]) + self.second.of(pair[1]) >= value


@dataclass(frozen=True)
class _Meeting:
    """Prices of products where some of both kinds meet in a segment: one theta for each kind, and z."""

    cells: _Cells
    t: int
    thetas: tuple[int, int]
    there: int | None  #: 2^128 times what both are charged in the segment in which they meet, from below

    @classmethod
    def of(cls, cells: _Cells, t: int, pair: tuple[Set, Set]) -> _Meeting:
        """About the best for one pair of sets."""
        prices = cells.case.prices
        z, near = _best_meeting(cells, t, pair)
        lam, thetas = round(z * _ONE), tuple(round(theta * _ONE) for theta in near)
        kinds = (prices.first[t], prices.cells[t]), (prices.second[t], prices.again[t])
        more, meeting = prices.both[t] * lam >> MULTIPLIER_BITS, exp_above(lam - _ONE, _ONE)
        own = [_part(mu, alpha + more, theta) for (mu, alpha), theta in zip(kinds, thetas, strict=True)]
        one, other = own
        there = None
        if one is not None and other is not None and meeting is not None:
            there = one + other - prices.both[t] * meeting
        return cls(cells, t, (thetas[0], thetas[1]), there)

    def at(self, pair: tuple[Set, Set]) -> int:
        """2^128 times what a pair of sets is charged besides gaps, from below."""
        if self.there is None:
            return _NOTHING
        result = self.there
        for least, among, theta in zip((self.cells.first, self.cells.second), pair, self.thetas, strict=True):
            others = tuple(t for t in among if t != self.t)
            result += least.line.at(others, theta)
        return result


def _best_meeting(cells: _Cells, t: int, pair: tuple[Set, Set]) -> tuple[float, list[float]]:
    """About the best z and thetas: z halves until both kinds have so many products where they meet."""
    prices = cells.case.prices
    both, lengths = prices.both[t] / _ONE, (cells.first.line.length, cells.second.line.length)
    own = [(prices.first[t] / _ONE, prices.cells[t] / _ONE), (prices.second[t] / _ONE, prices.again[t] / _ONE)]
    others = [
        [least.line.rates[s] for s in among if s != t]
        for least, among in zip((cells.first, cells.second), pair, strict=True)
    ]

    def at(z: float) -> Iterator[tuple[float, float]]:
        for (mu, alpha), rest, length in zip(own, others, lengths, strict=True):
            theta = _best_theta([*rest, (mu, alpha + both * z)], length)
            yield theta, exp((theta - alpha - both * z) / mu - 1)

    low, high = 1 + log(1e-9), 1 + log(sum(lengths))
    for _ in range(_HALVINGS):
        z = (low + high) / 2
        if sum(size for _, size in at(z)) > exp(z - 1):
            low = z
        else:
            high = z
    return low, [theta for theta, _ in at(low)]

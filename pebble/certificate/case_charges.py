"""The least that a value of a chain may cost at prices that change from segment to segment (`.cases`).

*What a value is charged* is the least bracket over all sets of segments that touch it and all real parts c > 0 there
that add up to its line. For any theta, mu c ln c + a c >= theta c - mu exp((theta - a) / mu - 1), so

    bracket >= gaps + theta L - sum over the set of mu_t exp((theta - a_t) / mu_t - 1).

A cell of H has a theta for its first and one for its second products. Where both meet in a segment, for any z,
(c + d) ln(c + d) >= z (c + d) - exp(z - 1): each has a_t + g_t z for a_t, with p_t or q_t for mu, and g_t exp(z - 1) is
taken off. Or, since (c + d) ln(c + d) >= c ln c + d ln d, they cost no less than apart from each other.

Floats choose each theta and z. What these are put into is whole multiples of 2^-128, exp rounded upwards: no charge is
too high.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import cached_property
from itertools import combinations, pairwise
from math import exp, log

from .lagrangian_lines import Units
from .reading import RefusedError

POINT = 64  # bits of a price after the point
SUM = 128  # and of what is added up
_UNIT = 1 << POINT
_DIGITS = Context(prec=50)
_STEPS, _HALVES = 16, 48

Touched = tuple[int, ...]  # segments that touch a value, in order


@dataclass(frozen=True)
class Shape:
    """A chain, and what its values take."""

    m: int
    k: int
    f: int
    l: int
    columns: int  #: of A B, gate and up
    units: Units


@dataclass(frozen=True)
class Tariff:
    """The prices of a case, in whole multiples of 2^-64: of each name a number for each segment."""

    room: list[int]
    of: dict[str, list[int]]

    def over(self, since: int, to: int) -> int:
        """R, of a unit held from one segment to a later one."""
        return sum(self.room[since:to])

    def gaps(self, touched: Touched, width: int, moves: int) -> int:
        """2^128 times what the gaps of a value cost that leaves and returns in so many moves."""
        steps = pairwise(touched)
        return width * sum(min(moves << POINT, self.over(s, t)) for s, t in steps) << SUM - POINT

    def kept(self, touched: Touched, width: int) -> int:
        """2^128 times what it costs to hold it from the first to the last."""
        return width * self.over(touched[0], touched[-1]) << SUM - POINT


def _power(over: int, under: int) -> int:
    """2^64 exp(over / under), from above.

    The quotient, below 300, is rounded at its 50th digit, exp is rounded to as many: together that changes it by less
    than 10^-46 of itself.
    """
    if over > 300 * under:
        raise OverflowError
    if over < -100 * under:
        return 1
    power = _DIGITS.exp(_DIGITS.divide(Decimal(over), Decimal(under)))
    above, below = power.as_integer_ratio()
    return (above * (10**40 + 1) << POINT) // (below * 10**40) + 1


@dataclass
class Products:
    """Products of one kind of a value: how many, and their prices in each segment."""

    length: int
    entropies: list[int]
    offsets: list[int]
    at: str
    thetas: list[int] = field(default_factory=list)
    powers: dict[tuple[int, int], int] = field(default_factory=dict)
    near: dict[Touched, tuple[float, float]] = field(default_factory=dict)

    @cached_property
    def rough(self) -> list[tuple[float, float]]:
        """Both prices in floating point."""
        return [(mu / _UNIT, a / _UNIT) for mu, a in zip(self.entropies, self.offsets, strict=True)]

    def about(self, touched: Touched) -> tuple[float, float]:
        """About the best theta, and what products are charged."""
        if touched not in self.near:
            rates = [self.rough[t] for t in touched]
            theta, parts = _solve(rates, self.length)
            charge = theta * self.length - sum(mu * part for (mu, _), part in zip(rates, parts, strict=True))
            self.near[touched] = theta, charge
        return self.near[touched]

    def proved(self, touched: Touched, theta: int) -> int:
        """2^128 times what products are charged, from below, by one theta."""
        total = theta * self.length << SUM - POINT
        for t in touched:
            if (t, theta) not in self.powers:
                mu = self.entropies[t]
                self.powers[t, theta] = mu * _power(theta - self.offsets[t] - mu, mu)
            total -= self.powers[t, theta]
        return total

    def reaches(self, touched: Touched, theta: int, value: int) -> bool:
        """Whether a theta, of another set perhaps, proves so much."""
        try:
            return self.proved(touched, theta) >= value
        except OverflowError:  # it is far from the best of this set
            return False

    def by_own(self, touched: Touched) -> int:
        """The same by the theta that is about its best."""
        theta = int(self.about(touched)[0] * _UNIT)
        if theta not in self.thetas:
            self.thetas.append(theta)
        return self.proved(touched, theta)

    def least(self, sets: Iterable[tuple[Touched, int]]) -> int:
        """The least of charges and gaps, of sets with the gaps of each."""
        result: int | None = None
        for touched, gaps in sorted(sets, key=lambda item: self.about(item[0])[1] + item[1] / 2**SUM):
            if result is not None and any(self.reaches(touched, theta, result - gaps) for theta in self.thetas):
                continue
            value = self.by_own(touched) + gaps
            result = value if result is None else min(result, value)
        if result is None:
            raise RefusedError(self.at, "there is no segment")
        return result


def _solve(rates: list[tuple[float, float]], length: int) -> tuple[float, list[float]]:
    """About the theta at which parts add up to a line, and the parts, scaled to do so."""
    theta, wanted = min(a + mu * (1 + log(length)) for mu, a in rates), log(length)
    shares: list[float] = [1]
    for _ in range(_STEPS):
        powers = [(theta - a) / mu - 1 for mu, a in rates]
        most = max(powers)
        shares = [exp(max(power - most, -700)) for power in powers]
        total = sum(shares)
        shares = [share / total for share in shares]
        theta -= (most + log(total) - wanted) / sum(share / mu for share, (mu, _) in zip(shares, rates, strict=True))
    return theta, [length * share for share in shares]


def charged(shape: Shape, prices: Tariff, at: str) -> int:
    """2^128 times what all values are charged, from below."""
    try:
        return _charged(shape, prices, at)
    except (OverflowError, ZeroDivisionError, ValueError):
        raise RefusedError(at, "these prices are too far apart to be checked") from None


def _charged(shape: Shape, prices: Tariff, at: str) -> int:
    m, k, f, l, columns = shape.m, shape.k, shape.f, shape.l, shape.columns
    w, hidden, partial, written = shape.units
    h = len(prices.of["first"])
    sets = [touched for count in range(1, h + 1) for touched in combinations(range(h), count)]

    def products(length: int, entropy: str, offset: str) -> Products:
        entropies = [g + p for g, p in zip(prices.of["both"], prices.of[entropy], strict=True)]
        return Products(length, entropies, prices.of[offset], at)

    def line(length: int, entropy: str, offset: str, width: int, moves: int) -> int:
        return products(length, entropy, offset).least((one, prices.gaps(one, width, moves)) for one in sets)

    total = m * k * ((w << SUM) + line(columns, "first", "a", w, 1))
    total += k * columns * ((w << SUM) + line(m, "first", "b", w, 1))
    total += f * l * ((w << SUM) + line(m, "second", "d", w, 1))
    total += m * l * ((written << SUM) + line(f, "second", "y", partial, 2))
    cells = Cells(prices, shape, products(k, "first", "cells"), products(l, "second", "again"), sets, at)
    total += m * f * cells.least()
    if columns != f:
        total += m * f * line(k, "first", "cells", hidden, 2)
    return total


@dataclass(frozen=True)
class Cells:
    """A cell of H: the sets of segments with its first and with its second products."""

    prices: Tariff
    shape: Shape
    first: Products
    second: Products
    sets: list[Touched]
    at: str

    @cached_property
    def before(self) -> dict[Touched, int]:
        """What the gaps between first products cost."""
        return {one: self.prices.gaps(one, self.shape.units.hidden, 2) for one in self.sets}

    @cached_property
    def after(self) -> dict[Touched, tuple[int, int]]:
        """What those between second products cost: kept, and stored."""
        w = self.shape.units.read
        return {one: (self.prices.kept(one, w), (w << SUM) + self.prices.gaps(one, w, 1)) for one in self.sets}

    def least(self) -> int:
        """2^128 times what it is charged, from below."""
        w, h = self.shape.units.read, len(self.prices.of["first"])
        begins = [[(one, ways) for one, ways in self.after.items() if one[0] == t] for t in range(h)]
        kept = [self.second.least((one, ways[0]) for one, ways in some) for some in begins]
        stored = [self.second.least((one, ways[1]) for one, ways in some) for some in begins]
        results = []
        for a in range(h):
            ended = self.first.least((one, gaps) for one, gaps in self.before.items() if one[-1] == a)
            for b in range(a + 1, h):
                held = w * self.prices.over(a, b) << SUM - POINT
                results += [ended + held + kept[b], ended + min(w << SUM, held) + stored[b]]
        result = min(results) if results else None
        for t in range(h):
            result = self._meeting(t, result)
        assert result is not None  # in one segment both meet
        return result

    def _meeting(self, t: int, result: int | None) -> int | None:
        """The less of a result and of what it is charged where both kinds meet in a segment."""
        tried: list[Meeting] = []
        pairs = [
            (one, other, self.before[one] + min(self.after[other]))
            for one in self.sets
            if one[-1] == t
            for other in self.sets
            if other[0] == t
        ]
        pairs.sort(key=lambda pair: self.first.about(pair[0])[1] + self.second.about(pair[1])[1] + pair[2] / 2**SUM)
        for one, other, gaps in pairs:
            if result is not None:
                apart = self.first.about(one)[1] + self.second.about(other)[1] > (result - gaps) / 2**SUM
                if apart and self.first.by_own(one) + self.second.by_own(other) + gaps >= result:
                    continue
                if any(meeting.reaches(one, other, result - gaps) for meeting in tried):
                    continue
            tried.append(Meeting(self, t, *_meet(self, t, one, other)))
            value = tried[-1].proved(one, other) + gaps
            result = value if result is None else min(result, value)
        return result


@dataclass(frozen=True)
class Meeting:
    """First and second products of a cell in one segment, by a z and a theta for each kind."""

    cells: Cells
    t: int
    z: int
    theta: int  #: of first products
    other: int  #: of second ones

    @cached_property
    def there(self) -> int:
        """2^128 times the least that both are charged in that segment, less theta for each product."""
        of, result = self.cells.prices.of, 0
        both = of["both"][self.t]
        for theta, entropy, offset in ((self.theta, "first", "cells"), (self.other, "second", "again")):
            mu = of[entropy][self.t]
            a = of[offset][self.t] + (both * self.z >> POINT)
            result -= mu * _power(theta - a - mu, mu)
        return result - both * _power(self.z - _UNIT, _UNIT)

    def reaches(self, one: Touched, other: Touched, value: int) -> bool:
        """Whether this proves so much of these sets."""
        try:
            return self.proved(one, other) >= value
        except OverflowError:
            return False

    def proved(self, one: Touched, other: Touched) -> int:
        """2^128 times what products are charged, from below, where these sets meet."""
        first = self.cells.first.proved(one[:-1], self.theta)
        return first + self.cells.second.proved(other[1:], self.other) + self.there


def _meet(cells: Cells, t: int, one: Touched, other: Touched) -> tuple[int, int, int]:
    """About the best z and thetas: at z = 1 + ln of the products of both kinds there."""
    of = cells.prices.of
    both = of["both"][t] / _UNIT
    kinds = (
        (cells.first, one[:-1], of["first"][t] / _UNIT, of["cells"][t] / _UNIT),
        (cells.second, other[1:], of["second"][t] / _UNIT, of["again"][t] / _UNIT),
    )
    low: float = -20
    high = 1 + log(cells.first.length + cells.second.length)
    thetas: list[float] = [0, 0]
    for _ in range(_HALVES):
        there: float = 0
        z = (low + high) / 2
        for number, (products, others, mu, a) in enumerate(kinds):
            rates = [*(products.rough[s] for s in others), (mu, a + both * z)]
            thetas[number], parts = _solve(rates, products.length)
            there += parts[-1]
        low, high = (z, high) if there > exp(z - 1) else (low, z)
    return int(z * _UNIT), int(thetas[0] * _UNIT), int(thetas[1] * _UNIT)

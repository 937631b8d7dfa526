"""The least that the products of one value are charged, over all ways to share them among segments of some kinds.

A part of c products in a segment of kind i is charged mu c ln c + a c, and g for the gaps beside it. For every theta

    mu c ln c + a c  >=  theta c + e_i,    e_i = min over real c > 0 of mu c ln c + (a - theta) c
                                               = -mu exp((theta - a) / mu - 1),

so that L products in n *inner* parts and some *outer* ones, one or two, cost at least

    theta L + sum over outer parts of min (g_i + e_i) + n min (g_i + e_i),

with the g of each and over the kinds that it may have. At one theta that is linear in n, so the ends of a range of n
bound it in all of the range; for one n it is concave in theta. So the greatest of these bounds is convex in n. Two
ranges cover all n here: up to the n at which it is least, and after it.

Any theta, and any n that parts the ranges, prove a bound: floats look for them, as they may be anything. What they are
put into is in whole multiples of 2^-256, with logarithms from below and exp from above, so that no charge is too high.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cached_property
from math import exp, floor, isfinite, log
from typing import NamedTuple

from .lines import BITS, logarithm
from .reading import RefusedError

MULTIPLIER_BITS = 64  #: bits of a multiplier after the point
ANY = 128  #: and of theta
SUM = BITS + MULTIPLIER_BITS  #: and of what is added up
MOST_SEGMENTS = 2**128  #: no value has as many
_DIGITS = Context(prec=64)
_LARGEST = 300  # what exp is taken of: e^300 products are more than there are
_SMALLEST = -150  # e^-150 is less than 2^-192
_STEPS = 8  # to the best theta, and to the n that parts the ranges, at most
_NEAR = 44  # bits that floats know of theta
_EXACT = 80  # bits after the point to which what is charged is as high as it can be

Gaps = Mapping[int, int]  #: kinds that a part may have, and what it is charged for gaps there, in multiples of 2^-64


class Rate(NamedTuple):
    """What products on a line are charged in segments of one kind, in multiples of 2^-64."""

    entropy: int  #: mu or nu
    product: int  #: a

    def whole(self, length: int) -> int:
        """2^256 (mu L ln L + a L), from below: all L products in one segment."""
        return self.entropy * length * logarithm(length)[0] + (self.product * length << BITS)

    def many(self, theta: int, at: str) -> int:
        """2^192 exp((theta - a) / mu - 1), from above: products of a part, where they pay 2^-128 theta each.

        The quotient x, at most 300, is rounded at its 64th digit, exp is rounded correctly to as many: both together
        change it by less than 10^-60 of itself, and 2^-192 of it is added.
        """
        over, under = (
            theta - ((self.product + self.entropy) << (ANY - MULTIPLIER_BITS)),
            self.entropy << (ANY - MULTIPLIER_BITS),
        )
        if over < _SMALLEST * under:
            return 1
        if over > _LARGEST * under:
            raise RefusedError(at, "a value would be touched by more products than there are")
        above, below = _DIGITS.exp(_DIGITS.divide(Decimal(over), Decimal(under))).as_integer_ratio()
        result = (above << BITS) // below
        return result + (result >> BITS) + 2


class Value(NamedTuple):
    """The bound at one theta, in multiples of 2^-256 but the slopes, of 2^-192: others + n times each."""

    theta: int
    others: int
    each: int
    slope: int
    steeper: int

    def of(self, n: int) -> int:
        """The bound for n inner parts."""
        return self.others + n * self.each

    def rise(self, n: int) -> int:
        """How fast that rises with theta."""
        return self.slope - n * self.steeper


@dataclass(frozen=True)
class SharedSegments:
    """L products, shared among n inner parts, each of any kind, and one or two outer parts."""

    length: int
    rates: Sequence[Rate]  #: of each kind
    inner: Gaps
    outer: Sequence[Gaps]
    at: str

    @cached_property
    def _rough(self) -> list[tuple[float, float]]:
        return [(rate.entropy / 2**MULTIPLIER_BITS, rate.product / 2**MULTIPLIER_BITS) for rate in self.rates]

    @cached_property
    def _rough_gaps(self) -> tuple[list[tuple[int, float]], ...]:
        return tuple([(i, gap / 2**MULTIPLIER_BITS) for i, gap in gaps.items()] for gaps in (self.inner, *self.outer))

    def least(self, low: int, high: int, rough: bool = False) -> int | None:
        """2^256 times the least over n from low to high, from below; None where there is no such n.

        ``rough``: perhaps less, and sooner.
        """
        if low > high:
            return None
        n = min(high, max(low - 1, self._middle()))
        result, turn = self._parted(low, high, n, rough)
        for _ in range(0 if rough else _STEPS):  # floats may have missed the n
            if turn == 0 or not low - 1 <= n + turn <= high:
                break
            n += turn
            other, again = self._parted(low, high, n, rough)
            result = max(result, other)
            if again != turn:
                break
        return result

    def _parted(self, low: int, high: int, n: int, rough: bool) -> tuple[int, int]:
        """The same with ranges up to n and after it, and the way to a better n."""
        results = []
        turn = 0
        if n >= low:
            least, each = self._within(low, n, n, rough)
            results.append(least)
            turn -= each > 0
        if n < high:
            least, each = self._within(n + 1, high, n + 1, rough)
            results.append(least)
            turn += each < 0
        return min(results), turn

    def _within(self, low: int, high: int, n: int, rough: bool) -> tuple[int, int]:
        """The same for one range, all with one theta, about the best for n; and what a part more adds there."""
        values = [self._value(int(self._best(n) * 2**ANY))] if rough else self._near(n)
        return max((min(value.of(low), value.of(high)), value.each) for value in values)

    def _value(self, theta: int) -> Value:
        many = [rate.many(theta, self.at) for rate in self.rates]
        parts = [
            min(((gap << BITS) - self.rates[i].entropy * many[i], i) for i, gap in gaps.items())
            for gaps in (self.inner, *self.outer)
        ]
        (each, again), *outer = parts
        others = (theta * self.length << (SUM - ANY)) + sum(worth for worth, _ in outer)
        slope = (self.length << BITS) - sum(many[i] for _, i in outer)
        return Value(theta, others, each, slope, many[again])

    def _near(self, n: int) -> list[Value]:
        """Values near the best theta for n, which is where two tangents to them meet."""
        rough, step = self._best(n), 1 / (1 << _NEAR)
        size = max(abs(rough), min(mu for mu, _ in self._rough))
        while True:
            left, right = (self._value(int(x * 2**ANY)) for x in (rough - step * size, rough + step * size))
            if step >= 1 or (left.rise(n) >= 0 >= right.rise(n)):
                break
            step *= 2**11
        results = [left, right]
        for _ in range(_STEPS):
            up, down = left.rise(n), right.rise(n)
            if up <= 0 or down >= 0:
                break
            # heights are multiples of 2^-256, slopes of 2^-192, theta of 2^-128
            meet = ((right.of(n) - left.of(n) << ANY + BITS - SUM) + up * left.theta - down * right.theta) // (
                up - down
            )
            if not left.theta < meet < right.theta:
                break
            value = self._value(meet)
            results.append(value)
            if left.of(n) + (up * (meet - left.theta) >> ANY + BITS - SUM) - value.of(n) < 1 << SUM - _EXACT:
                break
            left, right = (value, right) if value.rise(n) > 0 else (left, value)
        return results

    def _best(self, n: int) -> float:
        """About the best theta for n: it halves where the products of all parts are too few or too many."""
        share = log(self.length)
        low = min(a + mu * (1 + share - log(n + 2)) for mu, a in self._rough)
        high = max(a + mu * (1 + share) for mu, a in self._rough)
        while low < (middle := (low + high) / 2) < high:
            each, others = self._products(middle)
            if (n * each if n else 0) + others < self.length:
                low = middle
            else:
                high = middle
        return high

    def _products(self, theta: float) -> tuple[float, float]:
        """About how many an inner part has, and all outer ones together."""
        many = [exp(max(_SMALLEST, min(_LARGEST, (theta - a) / mu - 1))) for mu, a in self._rough]
        worth = [mu * c for (mu, _), c in zip(self._rough, many, strict=True)]
        each, *others = (many[min((gap - worth[i], i) for i, gap in gaps)[1]] for gaps in self._rough_gaps)
        return each, sum(others)

    def _middle(self) -> int:
        """About the n at which the bound for the best theta is least: where an inner part costs nothing more."""
        if any(gap == 0 for _, gap in self._rough_gaps[0]):
            return MOST_SEGMENTS
        results = []
        for i, gap in self._rough_gaps[0]:
            mu, a = self._rough[i]
            results.append((a + mu * (1 + log(gap / mu)), gap / mu))
        theta, each = min(results)
        n = (self.length - self._products(theta)[1]) / each
        return floor(n) if isfinite(n) else 0

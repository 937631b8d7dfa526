"""The numbers that prove how few values a segment touches, found by solving the small problem in exact fractions.

The least a + b + c under a b c >= P and separate limits has a, b, c on their limits or all equal to one mu. Where a
value sits on its limit, its multiplier is 1 - mu / limit; elsewhere 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt
from typing import Any

from pebble.bounds.box import Box
from pebble.bounds.proofs import NotCertifiedError
from pebble.certificate.geometry import LARGEST_WHOLE
from pebble.units import floor_cbrt

BITS = 100  # of the fractional part of the numbers proved
_FINE = 220  # of the multipliers: their error enters the result squared
_MOST_SEARCHED = 4096  # products of a segment that is looked through over whole numbers


@dataclass(frozen=True)
class Share:
    """All segments of one size, and what proves how few values each of them touches."""

    products: int  #: multiply-adds of a segment
    segments: int  #: how many have so many
    touched: Fraction  #: each touches at least so many values
    multipliers: tuple[Fraction, ...] = ()  #: of a, b, c; none where whole numbers are looked through
    rounded_from: Fraction | None = None  #: proved with limits rounded up; ``touched`` is it rounded up
    whole_numbers: bool = False  #: no whole a, b, c make less
    leaves: tuple[dict[str, Any], ...] = ()  #: with recomputation: intervals, and why inequalities hold there

    def to_json(self) -> dict[str, Any]:
        """As certificates write it."""
        counted = self.whole_numbers or self.rounded_from is not None
        fields = {"products": self.products, "segments": self.segments}
        return (
            fields
            | {"touched": int(self.touched) if counted else str(self.touched)}
            | ({"counts_at_least": str(self.rounded_from)} if self.rounded_from is not None else {})
            | ({"multipliers": [str(p) for p in self.multipliers]} if self.multipliers else {})
            | ({"leaves": list(self.leaves)} if self.leaves else {})
            | ({"whole_numbers": True} if self.whole_numbers else {})
        )


def total(shares: Sequence[Share]) -> int:
    """Values touched in all segments; a count, so rounded up."""
    return ceil(sum((s.segments * s.touched for s in shares), Fraction(0)))


def segment_shares(box: Box, sizes: Sequence[tuple[int, int]], wanted: int, whole_numbers: bool) -> list[Share]:
    """The shares whose sum is the one that a proof announces; ``sizes``: products of a segment, and how many.

    Raises
    ------
    NotCertifiedError
        There are none.
    """
    totals = []
    for way in (real, counted) if whole_numbers else (real,):
        results = [way(box, v, count) for v, count in sizes]
        if total(results) == wanted:
            return results
        totals.append(f"{total(results):,}")
    segments = sum(count for _, count in sizes)
    raise NotCertifiedError(
        f"certificate: the bound announces {wanted:,} values touched in {segments:,} segments, the proofs found "
        f"give {' or '.join(totals)}; one of them has a mistake, please report it."
    )


def real(box: Box, v: int, count: int) -> Share:
    """Over the reals."""
    return Share(v, count, *least_sum(box.limits(v), Fraction(v * v, box.overlap)))


def counted(box: Box, v: int, count: int) -> Share:
    """Values are counted: limits and result rounded up; looked through where that is quick and proves more."""
    bound, multipliers = least_sum([Fraction(ceil(x)) for x in box.limits(v)], Fraction(v * v, box.overlap))
    rounded = Share(v, count, Fraction(ceil(bound)), multipliers, bound)
    if v > _MOST_SEARCHED or rounded.touched > LARGEST_WHOLE // 4:
        return rounded
    searched = Fraction(box.touched_whole(v))
    return rounded if searched == rounded.touched else Share(v, count, searched, whole_numbers=True)


def sqrt_below(x: Fraction) -> Fraction:
    """The root of a fraction, exact where it is rational, else rounded down."""
    return Fraction(isqrt((x.numerator * x.denominator) << (2 * _FINE)), x.denominator << _FINE)


def cbrt_below(x: Fraction) -> Fraction:
    """The cube root of a fraction, rounded down."""
    return Fraction(floor_cbrt((x.numerator * x.denominator**2) << (3 * _FINE)), x.denominator << _FINE)


def least_sum(limits: Sequence[Fraction], product: Fraction) -> tuple[Fraction, tuple[Fraction, ...]]:
    """A number that a + b + c reaches, within 2^-100 of the least, and the three multipliers that prove it.

    Parameters
    ----------
    limits : sequence of three Fraction
        a, b and c are at least these.
    product : Fraction
        And a b c is at least this.
    """
    low, mid, high = sorted(limits)
    if high**3 <= product:
        shared = None
    elif mid * mid * high <= product:
        shared = sqrt_below(product / high)
    elif low * mid * high <= product:
        shared = product / (mid * high)
    else:
        shared = Fraction(0)
    result = tuple(Fraction(0) if shared is None or shared >= x else _short(1 - shared / x) for x in limits)
    bound = proved(limits, product, result)
    return Fraction((bound.numerator << BITS) // bound.denominator, 1 << BITS), result


def proved(limits: Sequence[Fraction], product: Fraction, multipliers: Sequence[Fraction]) -> Fraction:
    """What multipliers prove of a + b + c."""
    rest, scale = Fraction(0), product
    for p, limit in zip(multipliers, limits, strict=True):
        rest += p * limit
        scale *= 1 - p
    return rest + cbrt_below(27 * scale)


def _short(p: Fraction) -> Fraction:
    """Itself, or where its denominator is long, rounded to one that is a power of two."""
    if p.denominator.bit_length() <= _FINE:
        return p
    return Fraction((p.numerator << _FINE) // p.denominator, 1 << _FINE)

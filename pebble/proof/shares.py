"""The numbers that prove how few values a segment touches, found by solving the small problem in exact fractions.

The least a + b + c under a b c >= P and separate limits has a, b, c on their limits or all equal to one mu. Where a
value sits on its limit, its multiplier is 1 - mu / limit; elsewhere 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt
from typing import Any

from pebble.bounds import Box, Chain, Recomputed, Segments
from pebble.certificate.geometry import LARGEST_WHOLE
from pebble.errors import PebbleError
from pebble.units import floor_cbrt

BITS = 100  # of the fractional part of the numbers proved
_FINE = 220  # of the multipliers: their error enters the result squared
_MOST_LEAVES = 60
_MOST_SEARCHED = 4096  # products of a segment that is looked through over whole numbers


class NotCertifiedError(PebbleError):
    """A number that was announced could not be proved: the bound, or the writer of certificates, has a mistake."""

    exit_code = 5


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
        told = {"products": self.products, "segments": self.segments}
        return (
            told
            | {"touched": int(self.touched) if counted else str(self.touched)}
            | ({"counts_at_least": str(self.rounded_from)} if self.rounded_from is not None else {})
            | ({"multipliers": [str(p) for p in self.multipliers]} if self.multipliers else {})
            | ({"leaves": list(self.leaves)} if self.leaves else {})
            | ({"whole_numbers": True} if self.whole_numbers else {})
        )


def total(shares: Sequence[Share]) -> int:
    """Values touched in all segments; a count, so rounded up."""
    return ceil(sum((s.segments * s.touched for s in shares), Fraction(0)))


def segment_shares(proof: Segments) -> list[Share]:
    """The shares whose sum is the one that a proof announces.

    Raises
    ------
    NotCertifiedError
        There are none.
    """
    wanted, totals = proof.terms + proof.held, []
    ways: tuple[Callable[[Box, int, int], Share], ...] = (_real, _counted) if proof.piece.whole_numbers else (_real,)
    for way in ways:
        found = [way(proof.piece.box, v, count) for v, count in proof.shares]
        if total(found) == wanted:
            return found
        totals.append(f"{total(found):,}")
    raise NotCertifiedError(
        f"certificate: the bound announces {wanted:,} values touched in {proof.segments:,} segments, the proofs found "
        f"give {' or '.join(totals)}; one of them has a mistake, please report it."
    )


def recomputed_shares(proof: Recomputed) -> list[Share]:
    """The shares of the theorem for recomputation.

    Raises
    ------
    NotCertifiedError
        No intervals prove what it needs.
    """
    chain = proof.chain
    if proof.by_second:
        return [_redone(chain, v, count, _real(chain.second, v, count)) for v, count in proof.shares]
    box = Box(chain.m, chain.f, chain.k + chain.l)
    (small, count), *longer = proof.shares
    return [_kept(chain, box, small, count), *(_real(box, v, n) for v, n in longer)]


def _real(box: Box, v: int, count: int) -> Share:
    """Over the reals."""
    return Share(v, count, *least_sum(box.limits(v), Fraction(v * v, box.overlap)))


def _counted(box: Box, v: int, count: int) -> Share:
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
    found = tuple(Fraction(0) if shared is None or shared >= x else _short(1 - shared / x) for x in limits)
    bound = _proved(limits, product, found)
    return Fraction((bound.numerator << BITS) // bound.denominator, 1 << BITS), found


def _proved(limits: Sequence[Fraction], product: Fraction, multipliers: Sequence[Fraction]) -> Fraction:
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


def _redone(chain: Chain, v: int, count: int, kept: Share) -> Share:
    """A number that x(v) and, for all e >= v / l, (v + k e) G(e) reach, with the intervals that prove the latter."""
    k, l, p, start = chain.k, chain.l, min(chain.m, chain.f), Fraction(v, chain.l)
    fixed = Fraction(v, p) + k * p
    first: list[dict[str, Any]] = []
    if l >= k and v <= k * p * p:
        redone, rule = 4 * sqrt_below(Fraction(v * k)), "mean"
    elif l >= k and v * k <= (l * p) ** 2:
        first = [{"to": str(Fraction(p * p)), "rule": "falling"}] if start < p * p else []
        redone, rule = fixed + 2 * sqrt_below(Fraction(v * k)), "side-mean"
    elif v <= l * p * p:
        redone, rule = 2 * sqrt_below(Fraction(v, l)) * (k + l), "rising"
    else:
        redone, rule = fixed + k * start / p + Fraction(p * l), "side-rising"
    leaves = (*first, {"to": None, "rule": rule})
    return Share(v, count, min(kept.touched, redone), kept.multipliers, leaves=leaves)


def _kept(chain: Chain, box: Box, start: int, count: int) -> Share:
    """What ``start`` distinct products touch, and the intervals that prove that up to twice as many keep no less.

    A segment keeps what it touches less its products over k.
    """

    def value(v: int, multipliers: Sequence[Fraction]) -> Fraction:
        return _proved(box.limits(v), Fraction(v * v), multipliers) - Fraction(v, chain.k)

    bound, found = least_sum(box.limits(start), Fraction(start * start))
    kept = bound - Fraction(start, chain.k)
    leaves: list[dict[str, Any]] = []
    at, end = start, 2 * start
    while len(leaves) < _MOST_LEAVES:
        if at > start:
            found = least_sum(box.limits(at), Fraction(at * at))[1]
        to = end
        while to > at and value(to, found) < kept:
            to = at + (to - at) // 2
        if value(at, found) < kept and at > start:
            break
        leaves.append({"to": to, "multipliers": [str(p) for p in found]})
        if to == end:
            return Share(start, count, bound, leaves=tuple(leaves))
        if to == at:
            break
        at = to
    raise NotCertifiedError("certificate: no intervals found that prove the bound with recomputation; report it.")

"""The numbers that prove how few values a segment touches, found by solving the small problem in exact fractions.

The least a + b + c under a b c >= P and separate limits has a, b, c on their limits or all equal to one mu. Where a
value sits on its limit, its multiplier is 1 - mu / limit; elsewhere 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt
from typing import Any

BITS = 100  # of the fractional part of the numbers proved
_FINE = 220  # of the multipliers: their error enters the result squared
_MOST_LEAVES = 60


def text(value: Fraction) -> str:
    """A fraction as certificates write it."""
    return str(value)


def sqrt_below(x: Fraction, bits: int = _FINE) -> Fraction:
    """The root of a fraction, exact where it is rational, else rounded down."""
    return Fraction(isqrt((x.numerator * x.denominator) << (2 * bits)), x.denominator << bits)


def cbrt_below(x: Fraction, bits: int = _FINE) -> Fraction:
    """The cube root of a fraction, rounded down."""
    n = (x.numerator * x.denominator**2) << (3 * bits)
    low = 1 << max(0, (n.bit_length() - 1) // 3)
    root = 2 * low if n else 0
    while root and root**3 > n:  # Newton from above
        root = (2 * root + n // (root * root)) // 3
    while (root + 1) ** 3 <= n:
        root += 1
    return Fraction(root, x.denominator << bits)


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
    rest, scale = Fraction(0), product
    for p, limit in zip(found, limits, strict=True):
        rest += p * limit
        scale *= 1 - p
    bound = rest + cbrt_below(27 * scale)
    return Fraction((bound.numerator << BITS) // bound.denominator, 1 << BITS), found


def _short(p: Fraction) -> Fraction:
    """Itself, or where its denominator is long, rounded to one that is a power of two."""
    if p.denominator.bit_length() <= _FINE:
        return p
    return Fraction((p.numerator << _FINE) // p.denominator, 1 << _FINE)


def share(limits: Sequence[Fraction], product: Fraction, products: int, count: int) -> dict[str, Any]:
    """The proof for segments of one size, over the reals."""
    bound, found = least_sum(limits, product)
    return {"products": products, "segments": count, "touched": text(bound), "multipliers": [text(p) for p in found]}


def counted_share(limits: Sequence[Fraction], product: Fraction, products: int, count: int) -> dict[str, Any]:
    """The same with limits and result rounded up, since values are counted."""
    whole = [Fraction(-(-x.numerator // x.denominator)) for x in limits]
    bound, found = least_sum(whole, product)
    return {
        "products": products,
        "segments": count,
        "touched": -(-bound.numerator // bound.denominator),
        "counts_at_least": text(bound),
        "multipliers": [text(p) for p in found],
    }


def redone_leaves(m: int, f: int, k: int, l: int, v: int) -> tuple[Fraction, list[dict[str, Any]]]:
    """A number that (v + k e) G(e) reaches for all e >= v / l, and the intervals that prove it (see the checker)."""
    p, start = min(m, f), Fraction(v, l)
    fixed = Fraction(v, p) + k * p
    if l >= k and v <= k * p * p:
        return 4 * sqrt_below(Fraction(v * k)), [{"to": None, "rule": "mean"}]
    if l >= k and v * k <= (l * p) ** 2:
        leaves: list[dict[str, Any]] = [{"to": text(Fraction(p * p)), "rule": "falling"}] if start < p * p else []
        return fixed + 2 * sqrt_below(Fraction(v * k)), [*leaves, {"to": None, "rule": "side-mean"}]
    if v <= l * p * p:
        return 2 * sqrt_below(Fraction(v, l)) * (k + l), [{"to": None, "rule": "rising"}]
    return fixed + k * start / p + Fraction(p * l), [{"to": None, "rule": "side-rising"}]


def kept_leaves(m: int, f: int, k: int, l: int, start: int) -> tuple[Fraction, list[dict[str, Any]]] | None:
    """What ``start`` distinct products touch, and the intervals that prove that up to twice as many keep no less.

    A segment keeps what it touches less its products over k. None when no such intervals are found.
    """

    def limits(v: int) -> tuple[Fraction, Fraction, Fraction]:
        return Fraction(v, f), Fraction(v, m), Fraction(v, k + l)

    def value(v: int, multipliers: Sequence[Fraction]) -> Fraction:
        rest, scale = -Fraction(v, k), Fraction(v * v)
        for p, limit in zip(multipliers, limits(v), strict=True):
            rest += p * limit
            scale *= 1 - p
        return rest + cbrt_below(27 * scale)

    bound, found = least_sum(limits(start), Fraction(start * start))
    kept = bound - Fraction(start, k)
    leaves: list[dict[str, Any]] = []
    at, end = start, 2 * start
    while len(leaves) < _MOST_LEAVES:
        if at > start:
            found = least_sum(limits(at), Fraction(at * at))[1]
        to = end
        while to > at and value(to, found) < kept:
            to = at + (to - at) // 2
        if value(at, found) < kept and at > start:
            return None
        leaves.append({"to": to, "multipliers": [text(p) for p in found]})
        if to == end:
            return bound, leaves
        if to == at:
            return None
        at = to
    return None

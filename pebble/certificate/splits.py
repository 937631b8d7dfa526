"""What the work of several SMs costs when none of them does more than so many products: the segment theorem per SM.

Cut what an SM does, v products, into h segments. With fixed multipliers p (see `geometry`) a segment of u products
touches at least

    g(u) = sum of p limit(u) + 3 cbrt(product of (1 - p) u^2 / R),

which is concave, with g(0) = 0; so is g drawn straight from whole number to whole number. An SM that does v products
has values in and out, beside cells it initialises, of at least F(v) = sum of g over its segments - (h - 1) S, the
segments as even as whole products allow: concave in v for each h.

**At a rate.** If F(v) >= rate v for every v up to the limit, all SMs together have rate V at least, however many they
are and whoever does what. The certificate cuts the numbers up to the limit into leaves, each with an h and multipliers
of its own, and F(v) - rate v, concave, is looked at where each leaf begins and ends. The first begins at 0, where only
one segment is no less than 0. Products of unlike groups share no values: g is concave with g(0) = 0, so what a segment
does in all groups together touches g of it at least.

**Whole numbers.** In a small problem the least whole numbers of values that 1, 2, ... products touch are found here,
the best h for each v, and the least sum over all splits; the certificate brings nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from .geometry import Box, least_whole
from .reading import RefusedError, array, fields, fraction, integer
from .segments import MAX_SEGMENTS

MAX_WHOLE = 160  # products of which every split is tried
MAX_RATE_LEAVES = 4096
_BITS = 64  # of the fractional part of what is rounded down


def by_rate(box: Box, most: int, capacity: int, proof: Any, at: str) -> Fraction:
    """The rate: what an SM has in and out for each of its products, where it does ``most`` of them or fewer."""
    fields(proof, at, ("theorem", "form", "rate", "leaves"))
    rate, start = fraction(proof["rate"], f"{at}.rate"), 0
    for number, leaf in enumerate(array(proof["leaves"], f"{at}.leaves", 1, MAX_RATE_LEAVES)):
        where = f"{at}.leaves[{number}]"
        fields(leaf, where, ("to", "segments", "multipliers"))
        end = integer(leaf["to"], f"{where}.to", start + 1, most)
        h = integer(leaf["segments"], f"{where}.segments", 1, min(end, MAX_SEGMENTS))
        spec = array(leaf["multipliers"], f"{where}.multipliers", 3, 3)
        multipliers = [fraction(p, f"{where}.multipliers[{i}]") for i, p in enumerate(spec)]
        if any(p > 1 for p in multipliers):
            raise RefusedError(f"{where}.multipliers", "got a multiplier above 1")
        for v in (start, end):
            if _touched(box, v, h, multipliers) - (h - 1) * capacity < rate * v:
                raise RefusedError(where, f"the rate is not proved for an SM that does {v} products")
        start = end
    if start != most:
        raise RefusedError(f"{at}.leaves", f"the last leaf ends at {start}, an SM may do {most} products")
    return rate


def _touched(box: Box, v: int, h: int, multipliers: Sequence[Fraction]) -> Fraction:
    """At most what v products in h segments touch, by these multipliers."""
    size, longer = divmod(v, h)
    return (h - longer) * _segment(box, size, multipliers) + longer * _segment(box, size + 1, multipliers)


def _segment(box: Box, u: int, multipliers: Sequence[Fraction]) -> Fraction:
    rest, scale = Fraction(0), Fraction(27 * u * u, box.overlap)
    for p, limit in zip(multipliers, box.least(u), strict=True):
        rest += p * limit
        scale *= 1 - p
    return rest + Fraction(_cube_root((scale.numerator << 3 * _BITS) // scale.denominator), 1 << _BITS)


def _cube_root(x: int) -> int:
    """The root, rounded down."""
    low, high = 0, 1 << -(-x.bit_length() // 3)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**3 <= x else (low, middle - 1)
    return low


def by_whole_numbers(box: Box, products: int, sms: int, most: int, capacity: int, proof: Any, at: str) -> int:
    """The least sum over all splits of what the SMs have in and out, cells that they initialise included."""
    fields(proof, at, ("theorem", "form"))
    if products > MAX_WHOLE or box.overlap != 1:
        raise RefusedError(f"{at}.theorem", f"splits of at most {MAX_WHOLE} products are tried, got {products}")
    touched = [least_whole(box, v) for v in range(products + 1)]

    def best(v: int) -> int:
        def cut(h: int) -> int:
            size, longer = divmod(v, h)
            more = longer * touched[size + 1] if longer else 0
            return (h - longer) * touched[size] + more - (h - 1) * capacity

        return max(map(cut, range(1, v + 1)), default=0)

    return cheapest_split([best(v) for v in range(products + 1)], sms, most)


def cheapest_split(value: Sequence[int], shares: int, most: int) -> int:
    """The least sum over splits of all into so many parts, none of more than ``most``."""
    total = len(value) - 1
    row: list[int | None] = [value[r] if r <= most else None for r in range(total + 1)]
    for _ in range(min(shares, total) - 1):
        sums = (
            [old + value[r] for r in range(min(most, t) + 1) if (old := row[t - r]) is not None]
            for t in range(total + 1)
        )
        row = [min(result, default=None) for result in sums]
    last = row[total]
    assert last is not None  # the share was checked: all find a place
    return last

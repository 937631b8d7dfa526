"""The least number of values that a segment of a GEMM can touch.

A segment that does v of the m n k multiply-adds touches a, b, c values of A, B, C with v <= sqrt(a b c)
(Loomis and Whitney 1949), and, because one value of A meets only n of B, v <= n a, v <= m b, v <= k c.
x(v) is the least a + b + c under these. Two versions: over whole numbers a, b, c (tight on small segments),
and over the reals in fixed point, rounded down (concave in v, so that the best number of segments can be found
exactly).
"""

from __future__ import annotations

from math import isqrt

# Fractional bits of the fixed-point version: the rounding, at most one unit per segment, stays below one
# element for up to 2^100 segments.
FRACTION_BITS = 100
_EXACT_SEARCH_LIMIT = 4096


def ceil_div(a: int, b: int) -> int:
    """Smallest whole number not below a / b."""
    return -(-a // b)


def ceil_sqrt(x: int) -> int:
    """Smallest whole number whose square is at least x."""
    return isqrt(x - 1) + 1 if x > 0 else 0


def floor_cbrt(x: int) -> int:
    """Largest whole number whose cube is at most x."""
    if x < 1:
        return 0
    guess = 1 << ceil_div(x.bit_length(), 3)
    while True:
        better = (2 * guess + x // (guess * guess)) // 3
        if better >= guess:
            return guess
        guess = better


def ceil_cbrt(x: int) -> int:
    """Smallest whole number whose cube is at least x."""
    root = floor_cbrt(x)
    return root if root**3 == x else root + 1


def _least_pair(product: int, mid: int, high: int) -> int:
    """Least b + c over whole b >= mid, c >= high with b c >= product (mid <= high)."""
    if product <= mid * high:
        return mid + high
    if product < high * high:  # above the root, a larger c lowers the needed b by less than it costs
        return high + ceil_div(product, high)
    return ceil_sqrt(4 * product)  # the two halves of it multiply to at least the product


def touched_whole(v: int, m: int, n: int, k: int) -> int:
    """x(v) over whole a, b, c: a lower bound on values touched by any v multiply-adds of the GEMM.

    Exact for v <= 4096; above, the real minimum under the whole-number floors, rounded up.

    Parameters
    ----------
    v : int
        Multiply-adds of the segment, 0 <= v <= m n k.
    m, n, k : int
        Dimensions of the GEMM.

    Examples
    --------
    >>> touched_whole(8, 2, 2, 2)
    12
    >>> touched_whole(1, 9, 9, 9)
    3
    """
    if v == 0:
        return 0
    low, mid, high = sorted((ceil_div(v, n), ceil_div(v, m), ceil_div(v, k)))
    square = v * v
    if low * mid * high >= square:
        return low + mid + high
    if v > _EXACT_SEARCH_LIMIT:
        return _real_minimum_rounded_up(square, low, mid, high)

    # a is the operand with the lowest floor. The least b + c for a given a is convex in a over the reals, so walk
    # outwards from the real optimum and stop on either side once even the real value, rounded up, is no better.
    if high**3 <= square:
        start = ceil_cbrt(square)
    else:
        start = ceil_sqrt(ceil_div(square, high)) if mid * mid * high <= square else ceil_div(square, mid * high)
    start = max(start, low)
    best = start + _least_pair(ceil_div(square, start), mid, high)
    for candidates in (range(start + 1, best), range(start - 1, low - 1, -1)):
        for a in candidates:
            if square <= a * mid * high:
                real = a + mid + high
            elif square < a * high * high:
                real = a + high + ceil_div(square, a * high)
            else:
                real = a + ceil_sqrt(ceil_div(4 * square, a))
            if real >= best:
                break
            best = min(best, a + _least_pair(ceil_div(square, a), mid, high))
    return best


def _real_minimum_rounded_up(square: int, low: int, mid: int, high: int) -> int:
    """Least a + b + c with a b c >= square and floors low <= mid <= high, rounded up."""
    if high**3 <= square:
        return ceil_cbrt(27 * square)
    if mid * mid * high <= square:  # c sits on its floor, a = b
        return high + ceil_sqrt(ceil_div(4 * square, high))
    return high + mid + ceil_div(square, high * mid)


def touched_real_scaled(v: int, m: int, n: int, k: int) -> int:
    """2^100 x(v) over real a, b, c, rounded down; concave in v up to that rounding."""
    if v == 0:
        return 0
    p, q, _ = sorted((m, n, k))  # the floors that bind first are v/p, then v/q
    one = FRACTION_BITS
    if v <= p**3:
        return floor_cbrt((27 * v * v) << (3 * one))
    if v <= p * q * q:  # v/p + 2 sqrt(v p)
        return (v << one) // p + isqrt((4 * v * p) << (2 * one))
    return (v << one) // p + (v << one) // q + ((p * q) << one)

"""x(v), the least number of values that a segment touches, against direct search."""

from fractions import Fraction
from math import isqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pebble.bounds.segments import (
    FRACTION_BITS,
    ceil_cbrt,
    ceil_sqrt,
    floor_cbrt,
    touched_real_scaled,
    touched_whole,
)


@given(st.integers(0, 10**60))
def test_roots(x: int) -> None:
    assert floor_cbrt(x) ** 3 <= x < (floor_cbrt(x) + 1) ** 3
    assert ceil_cbrt(x) ** 3 >= x
    assert x == 0 or (ceil_cbrt(x) - 1) ** 3 < x
    assert ceil_sqrt(x) ** 2 >= x
    assert x == 0 or (ceil_sqrt(x) - 1) ** 2 < x


def search(v: int, m: int, n: int, k: int) -> int:
    """Least a + b + c by trying every a and b."""
    a0, b0, c0 = -(-v // n), -(-v // m), -(-v // k)
    return min(
        a + b + max(c0, -(-v * v // (a * b))) for a in range(a0, max(a0, v) + 1) for b in range(b0, max(b0, v) + 1)
    )


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_whole_is_exact_for_small_segments(data: st.DataObject) -> None:
    m, n, k = (data.draw(st.integers(1, 9)) for _ in range(3))
    v = data.draw(st.integers(1, min(m * n * k, 70)))
    assert touched_whole(v, m, n, k) == search(v, m, n, k)


def test_a_segment_touches_at_least_what_sets_of_updates_touch() -> None:
    # every set of v updates of a 2 x 2 x 2 GEMM, straight from the definition
    updates = [(i, j, l) for i in range(2) for j in range(2) for l in range(2)]
    least = dict.fromkeys(range(1, 9), 99)
    for mask in range(1, 256):
        chosen = [u for bit, u in enumerate(updates) if mask >> bit & 1]
        touched = {("A", i, l) for i, _, l in chosen} | {("B", l, j) for _, j, l in chosen}
        touched |= {("C", i, j) for i, j, _ in chosen}
        least[len(chosen)] = min(least[len(chosen)], len(touched))
    for v, fewest in least.items():
        assert touched_whole(v, 2, 2, 2) <= fewest
    assert touched_whole(8, 2, 2, 2) == least[8] == 12
    assert touched_whole(1, 2, 2, 2) == least[1] == 3


dimension = st.one_of(st.integers(1, 30), st.integers(1, 2**20))


@given(dimension, dimension, dimension, st.data())
def test_real_is_below_whole_and_close(m: int, n: int, k: int, data: st.DataObject) -> None:
    v = data.draw(st.integers(1, m * n * k))
    real = Fraction(touched_real_scaled(v, m, n, k), 1 << FRACTION_BITS)
    whole = touched_whole(v, m, n, k)
    assert real <= whole < real + 4


@given(dimension, dimension, dimension)
def test_all_the_work_touches_everything(m: int, n: int, k: int) -> None:
    assert touched_whole(m * n * k, m, n, k) == m * k + k * n + m * n
    real = touched_real_scaled(m * n * k, m, n, k)
    assert abs(real - ((m * k + k * n + m * n) << FRACTION_BITS)) <= 4


@given(dimension, dimension, dimension, st.data())
def test_real_is_concave_and_increasing(m: int, n: int, k: int, data: st.DataObject) -> None:
    work = m * n * k
    low = data.draw(st.integers(0, work))
    step = data.draw(st.integers(0, (work - low) // 2))
    a, b, c = (touched_real_scaled(low + i * step, m, n, k) for i in range(3))
    assert a <= b + 4 and b <= c + 4
    assert 2 * b >= a + c - 8


@pytest.mark.parametrize("v", [10**6, 10**9])
def test_large_cube_matches_loomis_whitney(v: int) -> None:
    side = 2**20
    assert touched_whole(v, side, side, side) == 3 * round(v ** (2 / 3))
    assert isqrt(touched_whole(v, side, side, side) ** 3 // 27) == v

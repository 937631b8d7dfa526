"""The segment bound of a box: x(v) against direct search, and every number of segments."""

from fractions import Fraction
from math import isqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.bounds.box import FRACTION_BITS, Box, best_segments
from pebble.bounds.proofs import check_capacity
from pebble.errors import InfeasibleError
from pebble.units import ceil_cbrt, ceil_sqrt, floor_cbrt


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
    assert Box(m, n, k).touched_whole(v) == search(v, m, n, k)


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
        assert Box(2, 2, 2).touched_whole(v) <= fewest
    assert Box(2, 2, 2).touched_whole(8) == least[8] == 12
    assert Box(2, 2, 2).touched_whole(1) == least[1] == 3


dimension = st.one_of(st.integers(1, 30), st.integers(1, 2**20))


@given(dimension, dimension, dimension, st.data())
def test_real_is_below_whole_and_close(m: int, n: int, k: int, data: st.DataObject) -> None:
    v = data.draw(st.integers(1, m * n * k))
    real = Fraction(Box(m, n, k).touched(v), 1 << FRACTION_BITS)
    whole = Box(m, n, k).touched_whole(v)
    assert real <= whole < real + 4


@given(dimension, dimension, dimension)
def test_all_the_work_touches_everything(m: int, n: int, k: int) -> None:
    assert Box(m, n, k).touched_whole(m * n * k) == m * k + k * n + m * n
    real = Box(m, n, k).touched(m * n * k)
    assert abs(real - ((m * k + k * n + m * n) << FRACTION_BITS)) <= 4


@given(dimension, dimension, dimension, st.data())
def test_real_is_concave_and_increasing(m: int, n: int, k: int, data: st.DataObject) -> None:
    work = m * n * k
    low = data.draw(st.integers(0, work))
    step = data.draw(st.integers(0, (work - low) // 2))
    a, b, c = (Box(m, n, k).touched(low + i * step) for i in range(3))
    assert a <= b + 4 and b <= c + 4
    assert 2 * b >= a + c - 8


@pytest.mark.parametrize("v", [10**6, 10**9])
def test_large_cube_matches_loomis_whitney(v: int) -> None:
    side = 2**20
    assert Box(side, side, side).touched_whole(v) == 3 * round(v ** (2 / 3))
    assert isqrt(Box(side, side, side).touched_whole(v) ** 3 // 27) == v


@settings(max_examples=60, deadline=None)
@given(*[st.integers(1, 12)] * 3, st.integers(3, 80))
def test_every_number_of_segments_is_covered_on_small_shapes(m: int, n: int, k: int, capacity: int) -> None:
    box, work = Box(m, n, k), m * n * k
    touched = [box.touched_whole(v) if v else 0 for v in range(work + 1)]
    best = 0
    for h in range(1, work + 1):
        share, longer = divmod(work, h)
        more = touched[share + 1] if longer else 0
        best = max(best, (h - longer) * touched[share] + longer * more - (h - 1) * capacity)
    assert box.bound(work, capacity)[0] == best


@given(*[st.integers(1, 200)] * 3, st.integers(3, 5000))
def test_transposing_changes_nothing(m: int, n: int, k: int, capacity: int) -> None:
    assert Box(m, n, k).bound(m * n * k, capacity) == Box(n, m, k).bound(m * n * k, capacity)


@settings(max_examples=80, deadline=None)
@given(*[st.integers(1, 40)] * 3, st.floats(0.05, 1), st.integers(3, 300))
def test_the_value_is_that_of_its_own_segments(m: int, n: int, k: int, filled: float, capacity: int) -> None:
    """Recomputed from the certificate's h: shares, x, price, and the whole number above."""
    box = Box(m, n, k)
    work = max(1, int(m * n * k * filled))
    value, h = box.bound(work, capacity)
    share, longer = divmod(work, h)
    whole = (h - longer) * box.touched_whole(share) + longer * box.touched_whole(share + 1)
    real = Fraction(
        (h - longer) * box.touched(share) + longer * box.touched(share + 1),
        2**FRACTION_BITS,
    )
    assert value + (h - 1) * capacity in (whole, -int(-real // 1))
    assert box.bound(work, capacity + 1)[0] <= value


def test_best_segments_of_a_square_root() -> None:
    """x = 10 sqrt v over 10^4 products at price 50: h = 100 segments of 100 products, 10^4 - 99 * 50."""

    def x(v: int) -> int:
        return isqrt(100 * v << (2 * FRACTION_BITS))

    assert best_segments(x, 10**4, 50) == (10_000 - 99 * 50, 100)


def test_too_small() -> None:
    with pytest.raises(InfeasibleError, match="at least 3"):
        check_capacity(2)

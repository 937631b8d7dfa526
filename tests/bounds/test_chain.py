"""The theorem for two products in a row: its geometry by brute force, its worst split, its recomputation form."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import isqrt, sqrt

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from pebble.bounds.gemm import segment_bound_elements
from pebble.bounds.segments import FRACTION_BITS, touched_real_scaled, touched_whole

from pebble.bounds.chain import best_segments, box_bound, check_capacity, recompute_bound, recompute_touched_scaled
from pebble.errors import InfeasibleError

side = st.integers(1, 40)


@pytest.mark.parametrize(("m", "k", "f", "l"), [(2, 1, 2, 1), (2, 2, 2, 1), (1, 2, 3, 2), (3, 1, 1, 2)])
def test_every_set_of_products_touches_at_least_x(m: int, k: int, f: int, l: int) -> None:
    """All subsets of the products of A B and H D, and the values of A, B, D, Y and cells of H that they touch."""
    products = [("AB", i, j, t) for i in range(m) for j in range(f) for t in range(k)]
    products += [("HD", i, j, q) for i in range(m) for j in range(f) for q in range(l)]
    least = dict.fromkeys(range(len(products) + 1), 10**9)
    for chosen in itertools.product((False, True), repeat=len(products)):
        touched = set()
        for kind, i, j, t in itertools.compress(products, chosen):
            touched |= {(kind, "left", i, t), (kind, "right", j, t), ("H", i, j)}
        v = sum(chosen)
        least[v] = min(least[v], len(touched))
    for v, count in least.items():
        assert touched_whole(v, m, f, k + l) <= count
        assert touched_real_scaled(v, m, f, k + l) <= count << FRACTION_BITS
    assert least[len(products)] == touched_whole(len(products), m, f, k + l)


def spread(e: float, m: int, f: int) -> float:
    """G(e): the least a + b with a b >= 1 / e, a >= 1 / f, b >= 1 / m."""
    p = min(m, f)
    return 2 / sqrt(e) if e <= p * p else 1 / p + p / e


@settings(max_examples=60, deadline=None)
@given(side, side, side, side, st.floats(0.01, 1), st.floats(0, 1))
def test_the_even_split_is_the_worst(m: int, k: int, f: int, l: int, work: float, share: float) -> None:
    """X(v1, v2) >= x(v1 + v2) for every split, with equality at the even one."""
    v = max(1, int(m * f * (k + l) * work))
    for v1 in (share * v, v * k / (k + l)):
        v2 = v - v1
        low = max(v1 / k, v2 / l)
        assume(low <= m * f)
        cells = [low + (m * f - low) * n / 400 for n in range(401)]
        touched = min(e + v * spread(e, m, f) for e in cells if e > 0)
        assert touched >= touched_real_scaled(v, m, f, k + l) / 2**FRACTION_BITS * (1 - 1e-9)
    assert touched <= touched_real_scaled(v, m, f, k + l) / 2**FRACTION_BITS * 1.02 + 0.1  # the even split, on a grid


@settings(max_examples=60, deadline=None)
@given(side, side, side, side, st.floats(0.001, 1))
@example(40, 3, 40, 2, 0.3)
@example(40, 3, 20, 2, 0.9)
@example(40, 1, 10, 9, 0.1)
def test_recomputed_segments_by_a_grid(m: int, k: int, f: int, l: int, work: float) -> None:
    v = max(1, int(m * f * l * work))
    low = v / l
    cells = [low + (m * f - low) * n / 400 for n in range(401)]
    worst = min(v * spread(e, m, f) + e * min(1, k * spread(e, m, f)) for e in cells)
    value = recompute_touched_scaled(v, m, f, k, l) / 2**FRACTION_BITS
    assert value <= worst * (1 + 1e-9)
    assert recompute_touched_scaled(0, m, f, k, l) == 0


@settings(max_examples=60, deadline=None)
@given(side, side, side, st.integers(3, 300))
def test_a_full_box_is_a_gemm(m: int, n: int, k: int, capacity: int) -> None:
    assert box_bound(m, n, k, m * n * k, capacity) == segment_bound_elements(m, n, k, capacity)


@settings(max_examples=80, deadline=None)
@given(side, side, side, st.floats(0.05, 1), st.integers(3, 300))
def test_the_value_is_that_of_its_own_segments(m: int, n: int, k: int, filled: float, capacity: int) -> None:
    """Recomputed from the certificate's h: shares, x, price, and the whole number above."""
    work = max(1, int(m * n * k * filled))
    value, h = box_bound(m, n, k, work, capacity)
    share, longer = divmod(work, h)
    whole = (h - longer) * touched_whole(share, m, n, k) + longer * touched_whole(share + 1, m, n, k)
    real = Fraction(
        (h - longer) * touched_real_scaled(share, m, n, k) + longer * touched_real_scaled(share + 1, m, n, k),
        2**FRACTION_BITS,
    )
    assert value + (h - 1) * capacity in (whole, -int(-real // 1))
    assert box_bound(m, n, k, work, capacity + 1)[0] <= value


def test_best_segments_of_a_square_root() -> None:
    """x = 10 sqrt v over 10^4 products at price 50: h = 100 segments of 100 products, 10^4 - 99 * 50."""

    def x(v: int) -> int:
        return isqrt(100 * v << (2 * FRACTION_BITS))

    assert best_segments(x, 10**4, 50) == (10_000 - 99 * 50, 100)


@settings(max_examples=100, deadline=None)
@given(side, side, side, side, st.integers(3, 400), st.floats(0.1, 1))
def test_recomputation_never_raises_the_bound(m: int, k: int, f: int, l: int, capacity: int, filled: float) -> None:
    cells = max(1, int(m * f * filled))
    redone, parameters = recompute_bound(m, f, k, l, cells, capacity)
    once = box_bound(m, f, k + l, cells * (k + l), capacity)[0] - cells
    second = box_bound(m, f, l, cells * l, capacity)[0]
    # cut by v2 alone it is at most the bound for the second product with H loaded; cut by all, at most (3)
    assert redone <= (once if parameters["cut_by"] == "distinct products" else second) + 1
    assert recompute_bound(m, f, k, l, cells, capacity + 1)[0] <= redone


@settings(max_examples=200, deadline=None)
@given(side, st.integers(1, 6), side, side, st.integers(1, 12), st.integers(1, 12))
def test_below_a_schedule_that_recomputes_h(m: int, k: int, f: int, l: int, r: int, q: int) -> None:
    """Y in blocks of r x q with r rows of A; per column of H: k values of B, q of D, and H computed again.

    Holds r q + r k + k + q + 1 values; in each block column all of A, in each block all of B and q / l of D.
    """
    r, q = min(r, m), min(q, l)
    rows, cols = -(-m // r), -(-l // q)
    cost = cols * m * k + rows * (cols * f * k + f * l) + m * l
    assert recompute_bound(m, f, k, l, m * f, r * q + r * k + k + q + 1)[0] <= cost


def test_the_known_gain_of_recomputation() -> None:
    """m = f = 400, k = 1, l = 9, S = 400: a legal schedule with recomputation costs 30,846, (3) says more."""
    assert box_bound(400, 400, 10, 1_600_000, 400)[0] - 160_000 > 30_846
    assert recompute_bound(400, 400, 1, 9, 160_000, 400)[0] <= 30_846


def test_nothing_is_lost_where_capacity_is_small_against_k() -> None:
    once = box_bound(8192, 11008, 8192, 8192 * 11008 * 8192, 20_971_520)[0] - 8192 * 11008
    redone, parameters = recompute_bound(8192, 11008, 4096, 4096, 8192 * 11008, 20_971_520)
    assert once - 10 <= redone <= once
    assert parameters["cut_by"] == "distinct products"


def test_too_small() -> None:
    with pytest.raises(InfeasibleError, match="at least 3"):
        check_capacity(2)

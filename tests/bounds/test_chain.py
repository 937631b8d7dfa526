"""The theorem for two products in a row: its geometry by brute force, its worst split, its recomputation form."""

from __future__ import annotations

import itertools
from math import sqrt

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pebble.bounds.box import FRACTION_BITS, Box
from pebble.bounds.chain import Chain
from pebble.bounds.recompute import recompute_bound, touched_redone

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
        assert Box(m, f, k + l).touched_whole(v) <= count
        assert Box(m, f, k + l).touched(v) <= count << FRACTION_BITS
    assert least[len(products)] == Box(m, f, k + l).touched_whole(len(products))


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
        assert touched >= Box(m, f, k + l).touched(v) / 2**FRACTION_BITS * (1 - 1e-9)
    assert touched <= Box(m, f, k + l).touched(v) / 2**FRACTION_BITS * 1.02 + 0.1  # the even split, on a grid


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
    chain = Chain(m, k, f, l, m * f)
    value = touched_redone(chain, v) / 2**FRACTION_BITS
    assert value <= worst * (1 + 1e-9)
    assert touched_redone(chain, 0) == 0


@settings(max_examples=100, deadline=None)
@given(side, side, side, side, st.integers(3, 400), st.floats(0.1, 1))
def test_recomputation_never_raises_the_bound(m: int, k: int, f: int, l: int, capacity: int, filled: float) -> None:
    cells = max(1, int(m * f * filled))
    chain = Chain(m, k, f, l, cells)
    redone = recompute_bound(chain, capacity)
    once = Box(m, f, k + l).bound(cells * (k + l), capacity)[0] - cells
    second = Box(m, f, l).bound(cells * l, capacity)[0]
    # cut by v2 alone it is at most the bound for the second product with H loaded; cut by all, at most (3)
    assert redone.elements <= (second if redone.by_second else once) + 1
    assert recompute_bound(chain, capacity + 1).elements <= redone.elements


@settings(max_examples=200, deadline=None)
@given(side, st.integers(1, 6), side, side, st.integers(1, 12), st.integers(1, 12))
def test_below_a_schedule_that_recomputes_h(m: int, k: int, f: int, l: int, r: int, q: int) -> None:
    """Y in blocks of r x q with r rows of A; per column of H: k values of B, q of D, and H computed again.

    Holds r q + r k + k + q + 1 values; in each block column all of A, in each block all of B and q / l of D.
    """
    r, q = min(r, m), min(q, l)
    rows, cols = -(-m // r), -(-l // q)
    cost = cols * m * k + rows * (cols * f * k + f * l) + m * l
    assert recompute_bound(Chain(m, k, f, l, m * f), r * q + r * k + k + q + 1).elements <= cost


def test_the_known_gain_of_recomputation() -> None:
    """m = f = 400, k = 1, l = 9, S = 400: a legal schedule with recomputation costs 30,846, (3) says more."""
    assert Box(400, 400, 10).bound(1_600_000, 400)[0] - 160_000 > 30_846
    assert recompute_bound(Chain(400, 1, 400, 9, 160_000), 400).elements <= 30_846


def test_nothing_is_lost_where_capacity_is_small_against_k() -> None:
    once = Box(8192, 11008, 8192).bound(8192 * 11008 * 8192, 20_971_520)[0] - 8192 * 11008
    redone = recompute_bound(Chain(8192, 4096, 11008, 4096, 8192 * 11008), 20_971_520)
    assert once - 10 <= redone.elements <= once
    assert not redone.by_second

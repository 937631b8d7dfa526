"""Tile orders against the solved tile game."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.errors import InfeasibleError, InputError
from pebble.reports.exact import ExactComparison, compare_exactly
from pebble.schedules.orders import parse_order
from pebble.schedules.tile_game import play_order, tile_operations
from pebble.workloads import Gemm

NAMES = ("row", "morton", "hilbert", "grouped-2", "row+sawtooth", "hilbert+sawtooth")
TILE_BYTES = 32 * 32 * 2


def solved(gemm: Gemm, capacity_bytes: int, time_limit: float = 3600) -> ExactComparison:
    return compare_exactly(gemm, NAMES, tile="32x32x32", cache=f"{capacity_bytes}B", time_limit=time_limit)


# capacity in tiles -> optimum in tiles, proved by exhaustive search
@pytest.mark.parametrize(("capacity", "optimum"), [(3, 17), (4, 14), (5, 13), (6, 12), (9, 12)])
def test_square_grid_of_two(capacity: int, optimum: int) -> None:
    result = solved(Gemm(64, 64, 64), capacity * TILE_BYTES)
    assert result.unit_bytes == TILE_BYTES
    assert result.optimal
    assert result.upper_bytes == optimum * TILE_BYTES
    for played in result.orders:
        assert played.bytes >= result.lower_bytes
    assert {(p.order, p.eviction) for p in result.orders} == {(n, e) for n in NAMES for e in ("lru", "opt")}
    document = result.to_dict()
    assert document["exact"]["status"] == "optimal"
    assert document["schedules"][0]["ratio_to_optimum"] >= 1


def test_ragged_tiles_weigh_their_bytes() -> None:
    result = solved(Gemm(40, 32, 32), 10**6)
    assert result.grid == (2, 1, 1)
    assert result.optimal
    assert result.upper_bytes == Gemm(40, 32, 32).compulsory_bytes


def test_accumulating_loads_c() -> None:
    plain = solved(Gemm(64, 64, 64), 12 * TILE_BYTES)
    added = solved(Gemm(64, 64, 64, accumulate=True), 12 * TILE_BYTES)
    assert added.upper_bytes - plain.upper_bytes == 4 * TILE_BYTES
    assert added.orders[0].bytes - plain.orders[0].bytes == 4 * TILE_BYTES


def test_too_large_and_too_small() -> None:
    with pytest.raises(InputError, match="at most 64"):
        solved(Gemm(320, 320, 320), 10**6)
    with pytest.raises(InfeasibleError, match=str(3 * TILE_BYTES)):
        solved(Gemm(64, 64, 64), 3 * TILE_BYTES - 1)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.integers(3, 30), st.sampled_from(NAMES))
def test_opt_loads_no_more_than_lru(m: int, n: int, k: int, capacity: int, name: str) -> None:
    order = parse_order(name)
    operations = tile_operations(order.tiles(m, n), k, order.sawtooth)
    assert sorted(operations) == [(i, j, l) for i in range(m) for j in range(n) for l in range(k)]

    def loads(eviction: str) -> int:
        return sum(op == "load" for op, _, _ in play_order(operations, lambda item: 1, capacity, eviction))

    assert loads("opt") <= loads("lru")
    assert loads("opt") >= m * k + k * n

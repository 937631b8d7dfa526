"""The closed form in k against the simulated trace: zero differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.models.caches import parse_policy
from pebble.models.caches.lockstep_lru import lockstep_lru
from pebble.schedules.gemm import GemmKernel
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.workloads import Gemm
from tests.schedules.lockstep import lockstep_trace

ORDERS = ["row", "column", "snake", "morton", "hilbert", "grouped-2", "grouped-3", "cutlass2-2", "thunderkittens-2"]


def check(gemm: Gemm, order: np.ndarray, tile: TileShape, wave: int, sawtooth: bool, capacity: int) -> bool:
    shape = GemmKernel(gemm, tile).closed_form(order, wave, sawtooth)
    assert shape is not None
    result = lockstep_lru(shape, capacity)
    if result is None:
        return False
    assert result == parse_policy("lru").simulate(lockstep_trace(gemm, order, tile, wave, sawtooth), capacity)
    return True


@settings(max_examples=400, deadline=None)
@given(
    st.integers(1, 70), st.integers(1, 400), st.integers(1, 400), st.integers(1, 9), st.booleans(), st.booleans(),
    st.sampled_from(ORDERS), st.floats(0.3, 6), st.sampled_from([8, 16]), st.sampled_from([64, 128]),
)  # fmt: skip
def test_against_the_trace(
    m: int, n: int, k: int, wave: int, sawtooth: bool, accumulate: bool, order: str, share: float, bm: int, bn: int
) -> None:
    gemm, tile = Gemm(m, n, k, accumulate=accumulate), TileShape(bm, bn, 64)
    cut = tile.cut_to(gemm)
    tiles = parse_order(order).tiles(*cut.grid(gemm)[:2])
    largest = max(cut.bm, cut.bk) * -(-cut.bn * 2 // 128)
    check(gemm, tiles, cut, wave, sawtooth, max(largest, int(share * wave * largest)))


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_any_order_of_the_tiles(data: st.DataObject) -> None:
    draw = data.draw
    rows, cols, steps = draw(st.integers(1, 6)), draw(st.integers(1, 6)), draw(st.integers(1, 9))
    gemm, tile = Gemm(8 * rows - draw(st.integers(0, 7)), 64 * cols, 64 * steps), TileShape(8, 64, 64)
    cut = tile.cut_to(gemm)
    grid = [(i, j) for i in range(cut.grid(gemm)[0]) for j in range(cols)]
    order = np.array(draw(st.permutations(grid)), np.int32)
    check(gemm, order, cut, draw(st.integers(1, 8)), draw(st.booleans()), draw(st.integers(72, 4000)))


@pytest.mark.parametrize("order", ["row", "morton", "grouped-16"])
@pytest.mark.parametrize("sawtooth", [False, True])
@pytest.mark.parametrize(("wave", "mib"), [(132, 50), (108, 40), (84, 6)])
def test_real_traces(order: str, sawtooth: bool, wave: int, mib: int) -> None:
    gemm = Gemm(8192, 8192, 8192)
    assert check(gemm, parse_order(order).tiles(64, 64), TileShape(128, 128, 64), wave, sawtooth, mib * 8192)


def test_a_step_that_does_not_fit() -> None:
    gemm, tile = Gemm(64, 512, 256), TileShape(8, 64, 64)
    shape = GemmKernel(gemm, tile).closed_form(parse_order("row").tiles(8, 8), 32)
    assert shape is not None
    assert lockstep_lru(shape, 100) is None
    assert GemmKernel(Gemm(64, 96, 64), TileShape(8, 48, 64)).closed_form(np.zeros((2, 2), np.int32), 4) is None

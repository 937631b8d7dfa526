"""Curves against one simulation per capacity: zero differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches import parse_policy
from pebble.models.caches.lru_curve import lru_curve
from pebble.models.caches.opt import OptEngine, opt_misses
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.traces import Trace, TraceChunk
from pebble.workloads import Gemm
from tests.schedules.lockstep import lockstep_trace

LRU, OPT = parse_policy("lru"), parse_policy("opt")


def make_trace(sizes: list[int], touches: list[tuple[int, int]], cut: int) -> Trace:
    ids = np.array([t for t, _ in touches], np.int32)
    ops = np.array([w for _, w in touches], np.uint8)
    none: NDArray[np.int64] = np.empty(0, np.int64)
    parts = [TraceChunk(ids[s], ops[s], none, 0) for s in (slice(0, cut), slice(cut, None)) if len(ids[s])]
    operand = np.zeros(len(sizes), np.uint8)
    return Trace(("A",), np.array(sizes, np.int32), operand, len(ids), lambda: iter(parts))


@st.composite
def streams(draw: st.DrawFn, uniform: bool = False) -> Trace:
    size = st.just(draw(st.integers(1, 4))) if uniform else st.integers(1, 9)
    sizes = draw(st.lists(size, min_size=1, max_size=9))
    touches = draw(st.lists(st.tuples(st.integers(0, len(sizes) - 1), st.integers(0, 1)), min_size=1, max_size=90))
    return make_trace(sizes, touches, draw(st.integers(0, len(touches))))


def check_lru(trace: Trace, capacities: range) -> None:
    curve = lru_curve(trace)
    for capacity in capacities:
        counts = LRU.simulate(trace, capacity)
        expected = (sum(counts.read_misses), sum(counts.write_misses), sum(counts.write_backs))
        assert curve.at(capacity) == expected, capacity
        assert curve.accesses_lines == counts.accesses_lines


@settings(max_examples=200, deadline=None)
@given(streams())
def test_lru_at_every_capacity(trace: Trace) -> None:
    check_lru(trace, range(int(trace.tile_lines.max()), int(trace.tile_lines.sum()) + 3))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_lru_with_many_tiles(seed: int) -> None:
    """Enough touches that slots are packed again and again, and distances that cross blocks of slots."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 3000))
    touched = (count * random.random(20_000) ** random.integers(1, 4)).astype(int)
    trace = make_trace([3] * count, [(int(t), 0) for t in touched], 7_000)
    curve = lru_curve(trace)
    for capacity in random.integers(3, 3 * count + 1, 4).tolist():
        assert curve.at(capacity)[0] == LRU.simulate(trace, capacity).misses_lines


@pytest.mark.parametrize("count", range(1, 8))
def test_lru_with_a_handful_of_tiles(count: int) -> None:
    """Fewer tiles than a level of the tree has nodes, some untouched for long."""
    random = np.random.default_rng(count)
    touched = (count * random.random(3_000) ** 3).astype(int)
    trace = make_trace([3] * count, [(int(t), 0) for t in touched], 700)
    check_lru(trace, range(3, 3 * count + 2))


@pytest.mark.parametrize("order", ["row", "morton+sawtooth", "grouped-8"])
def test_lru_on_a_gemm(order: str) -> None:
    named = parse_order(order)
    gemm = Gemm(2000, 1500, 1000, accumulate=True)
    tile = TileShape(128, 128, 64)
    tiles = named.tiles(*tile.grid(gemm)[:2])
    trace = lockstep_trace(gemm, tiles, tile, 24, named.sawtooth)
    check_lru(trace, range(256, 80_000, 3_111))


@settings(max_examples=150, deadline=None)
@given(streams())
def test_opt_at_every_capacity(trace: Trace) -> None:
    capacities = range(int(trace.tile_lines.max()), int(trace.tile_lines.sum()) + 3)
    result = opt_misses(trace, capacities)
    for capacity in capacities:
        assert result[capacity] == OPT.simulate(trace, capacity).misses_lines, capacity


def test_opt_on_a_gemm(monkeypatch: pytest.MonkeyPatch) -> None:
    gemm, tile = Gemm(2048, 1536, 1024), TileShape(128, 128, 64)
    trace = lockstep_trace(gemm, parse_order("row").tiles(16, 12), tile, 24)
    runs, once = [], OptEngine.misses
    monkeypatch.setattr(OptEngine, "misses", lambda engine, capacity: runs.append(capacity) or once(engine, capacity))
    result = opt_misses(trace, range(256, 80_000))
    assert len(runs) < 120
    for capacity in range(256, 80_000, 1_777):
        assert result[capacity] == OPT.simulate(trace, capacity).misses_lines
    with pytest.raises(InputError, match="largest tile"):
        opt_misses(trace, [255, 300])

"""Flat traces against the same trace line by line: zero differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.cachesim.flat import coalesce, flat_set_misses
from pebble.errors import InputError
from pebble.models.caches import parse_policy
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.traces import Trace, TraceChunk
from pebble.workloads import Gemm
from tests.schedules.lockstep import lockstep_trace


def trace_of(ids: np.ndarray, sizes: np.ndarray) -> Trace:
    chunk = TraceChunk(ids, np.zeros(len(ids), np.uint8), np.empty(0, np.int64), 0)
    return Trace(("A",), sizes, np.zeros(len(sizes), np.uint8), len(ids), lambda: iter([chunk]))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 120), st.integers(1, 60)), min_size=1, max_size=30), st.integers(0, 80))
def test_pieces_are_the_same_trace(runs: list[tuple[int, int]], more: int) -> None:
    lines = np.concatenate([np.arange(first, first + length) for first, length in runs]).astype(np.int32)
    ids, sizes = coalesce(lines)
    begin = np.cumsum(sizes) - sizes
    again = np.concatenate([np.arange(begin[i], begin[i] + sizes[i]) for i in ids])
    assert again.tolist() == lines.tolist()
    capacity = int(sizes.max()) + more
    by_line = trace_of(lines, np.ones(int(lines.max()) + 1, np.int32))
    for policy in ("lru", "fifo", "opt"):
        model = parse_policy(policy).simulate
        assert model(trace_of(ids, sizes), capacity).misses_lines == model(by_line, capacity).misses_lines


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=150), st.integers(1, 4), st.integers(1, 9), st.booleans())
def test_flat_sets(lines: list[int], ways: int, sets: int, hashed: bool) -> None:
    array = np.array(lines, np.int32)
    model = parse_policy(f"set-{ways}" + "-hashed" * hashed)
    expected = model.simulate(trace_of(array, np.ones(61, np.int32)), ways * sets).misses_lines
    assert flat_set_misses(array, ways * sets, ways, hashed) == expected


def test_a_gemm_line_by_line() -> None:
    gemm, tile = Gemm(512, 768, 512), TileShape(64, 128, 64)
    tiles = parse_order("morton").tiles(8, 6)
    by_tile = lockstep_trace(gemm, tiles, tile, 12)
    first = np.cumsum(by_tile.tile_lines) - by_tile.tile_lines
    touched = np.concatenate([chunk.ids for chunk in by_tile.chunks()])
    lines = np.concatenate([np.arange(first[i], first[i] + by_tile.tile_lines[i]) for i in touched]).astype(np.int32)
    ids, sizes = coalesce(lines)
    assert len(ids) <= 2 * len(touched)
    for policy in ("lru", "fifo", "opt"):
        model = parse_policy(policy).simulate
        assert model(trace_of(ids, sizes), 5000).misses_lines == model(by_tile, 5000).misses_lines


def test_traces_that_are_none() -> None:
    for lines in ([], [-1]):
        with pytest.raises(InputError, match="at least one line"):
            coalesce(np.array(lines, np.int32))
    with pytest.raises(InputError, match="one set"):
        flat_set_misses(np.zeros(1, np.int32), 3, 16)

"""The run-level policies against literal line-by-line ones, and the golden counts of the anchor traces."""

from collections import OrderedDict, deque
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pebble.errors import InputError, UnknownNameError
from pebble.models.caches import parse_policy
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.traces import Trace, TraceChunk
from pebble.workloads import Gemm
from tests.schedules.lockstep import lockstep_trace


def make_trace(sizes: list[int], touches: list[tuple[int, int]], cut: int) -> Trace:
    ids = np.array([t for t, _ in touches], np.int32)
    ops = np.array([w for _, w in touches], np.uint8)
    none: NDArray[np.int64] = np.empty(0, np.int64)
    parts = [TraceChunk(ids[s], ops[s], none, 0) for s in (slice(0, cut), slice(cut, None)) if len(ids[s])]
    operand = np.array([i % 2 for i in range(len(sizes))], np.uint8)
    return Trace(("A", "B"), np.array(sizes, np.int32), operand, len(ids), lambda: iter(parts))


@dataclass
class Expected:
    read_misses: int
    write_misses: int
    write_backs: int


def line_stream(sizes: list[int], touches: list[tuple[int, int]]) -> list[tuple[tuple[int, int], int]]:
    return [((tile, line), op) for tile, op in touches for line in range(sizes[tile])]


def literal(policy: str, sizes: list[int], touches: list[tuple[int, int]], capacity: int) -> Expected:
    """One line at a time, exactly as the policy is defined."""
    stream = line_stream(sizes, touches)
    following = [len(stream)] * len(stream)
    last: dict[tuple[int, int], int] = {}
    for at in range(len(stream) - 1, -1, -1):
        following[at] = last.get(stream[at][0], 10**9)
        last[stream[at][0]] = at
    cache: OrderedDict[tuple[int, int], int] = OrderedDict()  # line -> next use
    queue: deque[tuple[int, int]] = deque()
    dirty: set[tuple[int, int]] = set()
    counts = Expected(0, 0, 0)
    for at, (line, op) in enumerate(stream):
        if line in cache:
            if policy == "lru":
                cache.move_to_end(line)
        else:
            if op:
                counts.write_misses += 1
            else:
                counts.read_misses += 1
            if len(cache) == capacity:
                if policy == "opt":
                    victim = max(cache, key=lambda x: cache[x])
                else:
                    victim = next(iter(cache)) if policy == "lru" else queue.popleft()
                del cache[victim]
                if victim in dirty:
                    dirty.remove(victim)
                    counts.write_backs += 1
            queue.append(line)
        cache[line] = following[at]
        if op:
            dirty.add(line)
    counts.write_backs += len(dirty)
    return counts


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]], int, int]:
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=7))
    tile = st.integers(0, len(sizes) - 1)
    touches = draw(st.lists(st.tuples(tile, st.integers(0, 1)), min_size=1, max_size=60))
    capacity = draw(st.integers(max(sizes), max(sizes) + sum(sizes)))
    return sizes, touches, capacity, draw(st.integers(0, len(touches)))


@settings(max_examples=400, deadline=None)
@given(cases(), st.sampled_from(["lru", "fifo", "opt"]))
def test_run_level_equals_line_level(case: tuple[list[int], list[tuple[int, int]], int, int], policy: str) -> None:
    sizes, touches, capacity, cut = case
    result = parse_policy(policy).simulate(make_trace(sizes, touches, cut), capacity)
    expected = literal(policy, sizes, touches, capacity)
    assert result.misses_lines == expected.read_misses + expected.write_misses
    assert result.accesses_lines == sum(sizes[t] for t, _ in touches)
    if policy != "opt":  # OPT may choose among equals; its misses are unique, where they fall is not
        assert sum(result.read_misses) == expected.read_misses
        assert sum(result.write_backs) == expected.write_backs


@settings(max_examples=200, deadline=None)
@given(cases())
def test_opt_is_best_and_lru_includes(case: tuple[list[int], list[tuple[int, int]], int, int]) -> None:
    sizes, touches, capacity, cut = case
    trace = make_trace(sizes, touches, cut)
    now, more = (
        {name: parse_policy(name).simulate(trace, size).misses_lines for name in ("lru", "fifo", "opt")}
        for size in (capacity, capacity + 1)
    )
    assert now["opt"] <= min(now["lru"], now["fifo"])
    assert more["lru"] <= now["lru"]
    assert more["opt"] <= now["opt"]


@settings(max_examples=100, deadline=None)
@given(cases(), st.sampled_from(["lru", "fifo", "opt"]))
def test_every_written_line_is_written_back(
    case: tuple[list[int], list[tuple[int, int]], int, int], policy: str
) -> None:
    sizes, touches, capacity, cut = case
    result = parse_policy(policy).simulate(make_trace(sizes, touches, cut), capacity)
    written = sum(sizes[t] for t in {t for t, op in touches if op})
    assert written <= sum(result.write_backs) <= sum(sizes[t] for t, op in touches if op)


MIB_LINES = 2**20 // 128
ANCHOR = {
    "lru": {6: 35_160_064, 40: 35_143_296, 50: 35_136_256, 60: 35_129_856},
    "fifo": {6: 35_160_064, 40: 35_143_296, 50: 35_136_256, 60: 35_129_856},
    "opt": {6: 33_874_432, 40: 25_249_806, 50: 22_792_206, 60: 20_334_606},
}


@pytest.mark.parametrize("policy", ANCHOR)
def test_anchor_trace(policy: str) -> None:
    gemm = Gemm(8192, 8192, 8192)
    trace = lockstep_trace(gemm, parse_order("row").tiles(64, 64), TileShape(128, 128, 64), 132)
    assert trace.touches == 1_052_672
    for mib, misses in ANCHOR[policy].items():
        result = parse_policy(policy).simulate(trace, mib * MIB_LINES)
        assert result.accesses_lines == 135_266_304
        assert result.misses_lines == misses


def test_cache_smaller_than_a_tile() -> None:
    with pytest.raises(InputError, match="at least 9 lines"):
        parse_policy("lru").simulate(make_trace([9, 2], [(0, 0)], 0), 8)


def test_unknown_policy() -> None:
    with pytest.raises(UnknownNameError, match="did you mean lru"):
        parse_policy("lruu")

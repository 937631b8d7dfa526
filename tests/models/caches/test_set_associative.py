"""Set-associative caches against a literal model, and their row-major addresses."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.models.caches import parse_policy
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.traces import OperandTiles, Trace, TraceChunk
from pebble.workloads import Gemm
from tests.models.caches.literal import Case, Line, cases, lines_of, make_trace, queue_model, totals
from tests.schedules.lockstep import lockstep_trace


@settings(max_examples=83, deadline=None)
@given(cases(), st.integers(1, 4), st.booleans(), st.booleans(), st.sampled_from(["lru", "fifo"]))
def test_sets(case: Case, ways: int, hashed: bool, allocate: bool, order: str) -> None:
    sizes, touches, capacity = case
    ways = min(ways, capacity)
    text = f"set-{ways}" + "-hashed" * hashed + f":{order}" + "+no-write-allocate" * (not allocate)
    result = parse_policy(text).simulate(make_trace(sizes, touches), capacity)
    sets = capacity // ways
    count, caches = Line(), [OrderedDict[int, None]() for _ in range(sets)]
    for line, _, op, _ in lines_of(sizes, touches):
        mixed = (line * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 32
        cache = caches[mixed * sets >> 32 if hashed else line % sets]
        queue_model([(line, op)], ways, order == "lru", allocate, count, cache)
    assert totals(result) == count.totals()


def test_sets_use_row_major_addresses() -> None:
    """Columns of a power-of-two matrix crowd into few sets; a padded pitch spreads them."""
    ids = np.array([0, 0], np.int32)  # a tile column of one line, 128 rows, of a matrix 64 lines wide, twice
    chunk = TraceChunk(ids, np.zeros(2, np.uint8), np.empty(0, np.int64), 0)
    shape = OperandTiles(0, 0, 1, 128, 4096, 128, 64, 2)
    trace = Trace(
        ("A",), np.full(64, 128, np.int32), np.zeros(64, np.uint8), 2, lambda: iter([chunk]), operands=(shape,)
    )
    misses = {
        p: parse_policy(p).simulate(trace, 256).misses_lines for p in ("lru", "set-4", "set-4+pad-1", "set-4-hashed")
    }
    assert misses["lru"] == misses["set-4+pad-1"] == 128
    assert misses["lru"] <= misses["set-4-hashed"] < misses["set-4"] == 256


def test_set_conflicts_on_a_real_kernel() -> None:
    """Row-major 3072x3072x4608 at 40 MiB: 16 ways pick sets by modulo and miss 10 % more than full associativity."""
    trace = lockstep_trace(Gemm(3072, 3072, 4608), parse_order("row").tiles(24, 24), TileShape(128, 128, 64), 132)
    assert parse_policy("lru").simulate(trace, 40 * 8192).misses_lines == 589_824
    assert parse_policy("set-16").simulate(trace, 40 * 8192).misses_lines == 647_667
    assert parse_policy("set-16-hashed").simulate(trace, 40 * 8192).misses_lines > 600_000

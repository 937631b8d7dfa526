"""Execution models: what every trace of a GEMM must touch, and when it is the lock-step trace."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.bounds import lower_bound
from pebble.errors import InputError, UnknownNameError
from pebble.models.caches import simulate_lru
from pebble.schedules.execution import EXECUTIONS, Execution, parse_execution, run_stream_k
from pebble.schedules.lockstep import TileShape, lockstep_trace, values_held_by_blocks
from pebble.schedules.orders import OrderParams, parse_order
from pebble.schedules.timed import TimedGemm, cluster_tiles
from pebble.schedules.trace import Trace
from pebble.workloads import Gemm

TILE = TileShape(8, 64, 64)


def timed(gemm: Gemm, order: str, slots: int, execution: str, cluster: str = "1x1", seed: int = 0) -> Trace:
    return TimedGemm(gemm, parse_order(order), TILE, slots, parse_execution(execution, cluster, seed)).trace(slots)


def flat(trace: Trace) -> tuple[list[int], list[int], list[int]]:
    chunks = list(trace.chunks())
    ids, ops = (np.concatenate([getattr(c, name) for c in chunks]).tolist() for name in ("ids", "ops"))
    return ids, ops, np.concatenate([c.sm for c in chunks]).tolist()


@settings(max_examples=80, deadline=None)
@given(
    st.integers(1, 60),
    st.integers(1, 300),
    st.integers(1, 300),
    st.integers(1, 9),
    st.booleans(),
    st.sampled_from(["row", "morton+sawtooth", "grouped-2"]),
    st.sampled_from(["lockstep", "persistent", "dynamic-0"]),
)
def test_equal_speeds_are_lock_step(
    m: int, n: int, k: int, slots: int, accumulate: bool, order: str, execution: str
) -> None:  # fmt: skip
    gemm, named = Gemm(m, n, k, accumulate=accumulate), parse_order(order)
    tile = TILE.cut_to(gemm)
    if n % 64 and n > 64 and n * 2 % 128:
        n = n // 64 * 64
        gemm = Gemm(m, n, k, accumulate=accumulate)
        tile = TILE.cut_to(gemm)
    reference = lockstep_trace(gemm, named.tiles(*tile.grid(gemm)[:2]), tile, slots, named.sawtooth)
    assert flat(timed(gemm, order, slots, execution)) == flat(reference)
    assert timed(gemm, order, slots, execution).tile_lines.tolist() == reference.tile_lines.tolist()


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 7), st.integers(1, 12), st.sampled_from(EXECUTIONS),
       st.booleans(), st.integers(0, 3))  # fmt: skip
def test_every_product_once(
    rows: int, cols: int, steps: int, slots: int, execution: str, accumulate: bool, seed: int
) -> None:
    """Each (tile, k) is computed once: every A tile is read once per tile column, every B tile once per tile row."""
    gemm = Gemm(8 * rows, 64 * cols, 64 * steps, accumulate=accumulate)
    trace = timed(gemm, "row", slots, execution, seed=seed)
    ids, ops, sm = flat(trace)
    assert len(ids) == trace.touches
    assert max(sm) < min(slots, trace.sms)
    found = Counter(zip(ids, ops, strict=True))
    a, b = rows * steps, cols * steps
    for tile in range(a):
        assert found[tile, 0] == cols
    for tile in range(a, a + b):
        assert found[tile, 0] == rows
    partial_writes = 0
    for tile in range(a + b, len(trace.tile_lines)):
        is_c = tile < a + b + rows * cols
        written, read = found[tile, 1], found[tile, 0]
        if is_c:
            assert (read, written) == (int(accumulate), 1)
        else:  # a partial tile is written once and then read once, or not used
            assert read == written <= 1
            partial_writes += written
            if written:
                where = [i for i, t in enumerate(ids) if t == tile]
                assert [ops[i] for i in where] == [1, 0]
    if execution == "split-k-4" and steps > 1:
        length = -(-steps // min(4, steps))
        assert partial_writes == rows * cols * -(-steps // length)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40), st.integers(1, 20), st.integers(1, 30), st.booleans())
def test_stream_k_shares(tiles: int, steps: int, slots: int, hybrid: bool) -> None:
    s = run_stream_k(tiles, steps, slots, hybrid)
    done = sorted((int(t), int(k)) for t, b, e in zip(s.tile, s.begin, s.end, strict=True) for k in range(b, e))
    assert done == [(t, k) for t in range(tiles) for k in range(steps)]
    assert sorted(s.tile[s.owner].tolist()) == list(range(tiles))
    if not hybrid:
        load = np.bincount(s.slot, weights=s.end - s.begin, minlength=slots)
        assert load.max() - load.min() <= 1


@pytest.mark.parametrize("cluster", ["2x1", "1x2", "2x2", "4x1"])
def test_multicast_fetches_once_per_cluster(cluster: str) -> None:
    gemm = Gemm(8 * 6, 64 * 5, 64 * 3)
    m, n = (int(side) for side in cluster.split("x"))
    ids, ops, _ = flat(timed(gemm, "row", 8, "lockstep", cluster))
    found = Counter(i for i, op in zip(ids, ops, strict=True) if not op)
    assert all(found[tile] == -(-5 // n) for tile in range(18))
    assert all(found[tile] == -(-6 // m) for tile in range(18, 33))
    tiles, which = cluster_tiles(parse_order("morton"), 6, 5, OrderParams(), (m, n))
    assert sorted(map(tuple, tiles.tolist())) == [(i, j) for i in range(6) for j in range(5)]
    for cluster_number in set(which.tolist()):
        inside = tiles[which == cluster_number]
        assert len({(i // m, j // n) for i, j in inside.tolist()}) == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.integers(1, 5), st.integers(1, 6), st.integers(4, 12), st.sampled_from(EXECUTIONS),
       st.integers(64, 4000), st.integers(0, 5))  # fmt: skip
def test_never_below_the_bound(
    rows: int, cols: int, steps: int, slots: int, execution: str, capacity: int, seed: int
) -> None:
    gemm = Gemm(8 * rows, 64 * cols, 64 * steps)
    trace = timed(gemm, "row", slots, execution, seed=seed)
    capacity = max(capacity, int(trace.tile_lines.max()))
    counts = simulate_lru(trace, capacity)
    moved = (sum(counts.read_misses) + sum(counts.write_backs)) * 128
    bound = lower_bound(gemm, capacity * 64 + values_held_by_blocks(TILE.cut_to(gemm), slots)).bytes
    assert bound <= moved


def test_jitter_is_seeded() -> None:
    gemm = Gemm(8 * 9, 64 * 9, 64 * 9)
    assert flat(timed(gemm, "row", 8, "dynamic-10", seed=1)) == flat(timed(gemm, "row", 8, "dynamic-10", seed=1))
    assert flat(timed(gemm, "row", 8, "dynamic-10", seed=1)) != flat(timed(gemm, "row", 8, "dynamic-10", seed=2))


def test_names() -> None:
    for name in EXECUTIONS:
        assert parse_execution(name).name == name
    assert parse_execution("dynamic").number == 5
    assert Execution().is_reference
    for bad in ("split-k-0", "dynamic-101"):
        with pytest.raises(InputError, match="expected a number"):
            parse_execution(bad)
    with pytest.raises(UnknownNameError, match="did you mean persistent"):
        parse_execution("persistant")
    for cluster in ("2", "axb", "0x1", "16x2"):
        with pytest.raises(InputError, match="cluster"):
            parse_execution("lockstep", cluster)
    with pytest.raises(InputError, match="expected lockstep, persistent or dynamic"):
        parse_execution("stream-k", "2x1")
    with pytest.raises(InputError, match="blocks in a cluster"):
        timed(Gemm(64, 64, 64), "row", 1, "lockstep", "2x1")

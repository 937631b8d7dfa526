"""Execution models: what every trace of a GEMM must touch, and when it is the lock-step trace."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pebble.errors import InputError, UnknownNameError
from pebble.families import lower_bound
from pebble.families.gemm import GEMM
from pebble.models.caches import parse_policy
from pebble.schedules.execution import EXECUTIONS, Execution, parse_execution, run_stream_k
from pebble.schedules.gemm import GemmKernel, cluster_tiles
from pebble.schedules.orders import OrderParams, parse_order
from pebble.schedules.tile import TileShape
from pebble.traces import Trace
from pebble.traces.program import Group, Program, StepClock, Walk
from pebble.traces.touches import timed_trace
from pebble.workloads import Gemm
from tests.schedules.lockstep import lockstep_trace, waves

TILE = TileShape(8, 64, 64)


def timed(gemm: Gemm, order: str, slots: int, execution: str, cluster: str = "1x1", seed: int = 0) -> Trace:
    program = GemmKernel(gemm, TILE).timed(parse_order(order), slots, parse_execution(execution, cluster, seed))
    return timed_trace(program, slots)


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
    st.sampled_from(["waves", "lockstep", "persistent", "dynamic-0"]),
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
    result = Counter(zip(ids, ops, strict=True))
    a, b = rows * steps, cols * steps
    for tile in range(a):
        assert result[tile, 0] == cols
    for tile in range(a, a + b):
        assert result[tile, 0] == rows
    partial_writes = 0
    for tile in range(a + b, len(trace.tile_lines)):
        is_c = tile < a + b + rows * cols
        written, read = result[tile, 1], result[tile, 0]
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
    ids, ops, _ = flat(timed(gemm, "row", 8, "waves", cluster))
    result = Counter(i for i, op in zip(ids, ops, strict=True) if not op)
    assert all(result[tile] == -(-5 // n) for tile in range(18))
    assert all(result[tile] == -(-6 // m) for tile in range(18, 33))
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
    counts = parse_policy("lru").simulate(trace, capacity)
    traffic = (sum(counts.read_misses) + sum(counts.write_backs)) * 128
    bound = lower_bound(gemm, capacity * 64 + slots * GEMM.kernel_needs(gemm, TILE.cut_to(gemm)).values).bytes
    assert bound <= traffic


def test_jitter_is_seeded() -> None:
    gemm = Gemm(8 * 9, 64 * 9, 64 * 9)
    assert flat(timed(gemm, "row", 8, "dynamic-10", seed=1)) == flat(timed(gemm, "row", 8, "dynamic-10", seed=1))
    assert flat(timed(gemm, "row", 8, "dynamic-10", seed=1)) != flat(timed(gemm, "row", 8, "dynamic-10", seed=2))


def test_names() -> None:
    for name in EXECUTIONS:
        assert parse_execution(name).name == name
    assert parse_execution("dynamic").number == 5
    assert parse_execution("lockstep") == parse_execution("wave-synchronous") == parse_execution("waves") == Execution()
    assert parse_execution("asynchronous") == parse_execution("free")
    assert Execution().is_reference
    for bad in ("split-k-0", "dynamic-101"):
        with pytest.raises(InputError, match=r"expected (split-k|dynamic)-N with N from [01] to"):
            parse_execution(bad)
    with pytest.raises(UnknownNameError, match="did you mean persistent"):
        parse_execution("persistant")
    for cluster in ("2", "axb", "0x1", "16x2"):
        with pytest.raises(InputError, match="cluster"):
            parse_execution("waves", cluster)
    with pytest.raises(InputError, match="expected waves, persistent or dynamic"):
        parse_execution("stream-k", "2x1")
    with pytest.raises(InputError, match="blocks in a cluster"):
        timed(Gemm(64, 64, 64), "row", 1, "waves", "2x1")


@settings(max_examples=120, deadline=None)
@given(st.integers(1, 30), st.integers(1, 400), st.integers(25, 300), st.integers(4, 9), st.booleans(),
       st.integers(0, 3), st.sampled_from([*EXECUTIONS, "persistent 2x1", "dynamic-5 1x2"]),
       st.sampled_from([80, 96, 20]), st.sampled_from(["row", "morton+sawtooth"]))  # fmt: skip
def test_tiles_of_any_width_under_every_execution(
    m: int, n: int, k: int, slots: int, accumulate: bool, seed: int, execution: str, bn: int, order: str
) -> None:
    """Tiles that share lines: the touches of a kernel with the same grid of whole-line tiles, line by line."""
    gemm, tile = Gemm(m, n, k, accumulate=accumulate), TileShape(8, bn, 24)
    rows, cols, steps = tile.cut_to(gemm).grid(gemm)
    name, _, cluster = execution.partition(" ")
    how = (parse_order(order), slots, parse_execution(name, cluster or "1x1", seed))
    kernel = GemmKernel(gemm, tile)
    assume(kernel.layout.shares_lines)
    result = flat(timed_trace(kernel.timed(*how), slots))
    whole = GemmKernel(Gemm(8 * rows, 64 * cols, 64 * steps, accumulate=accumulate), TileShape(8, 64, 64))
    expected: tuple[list[int], list[int], list[int]] = ([], [], [])
    tile_touches = flat(timed_trace(whole.timed(*how), slots))
    operands = [(m, k, 8, 24, 2), (k, n, 24, bn, 2), (m, n, 8, bn, 2), *([(m, n, 8, bn, 4)] * 40)]
    first_tile = [o.first for o in whole.layout.operands[:3]]
    for number, op, sm in zip(*tile_touches, strict=True):
        which = max(i for i, first in enumerate([*first_tile, whole.c.first + rows * cols]) if number >= first)
        inside = number - [*first_tile, whole.c.first + rows * cols][which]
        copy, inside = divmod(inside, rows * cols) if which == 3 else (0, inside)
        height, width, tile_rows, tile_cols, size = operands[which + copy]
        row, col = divmod(inside, -(-width // tile_cols))
        start = sum(o[0] * -(-o[1] * o[4] // 128) for o in operands[: which + copy])
        for r in range(row * tile_rows, min(height, (row + 1) * tile_rows)):
            last = min(width, (col + 1) * tile_cols) * size - 1
            for line in range(col * tile_cols * size // 128, last // 128 + 1):
                for into, value in zip(expected, (start + r * -(-width * size // 128) + line, op, sm), strict=True):
                    into.append(value)
    assert result == expected


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 7), st.integers(1, 5), st.booleans(), st.data())
def test_blocks_ahead_and_backwards(
    rows: int, cols: int, steps: int, slots: int, sawtooth: bool, data: st.DataObject
) -> None:
    """Each block may start at a k of its own and walk either way; waves, and slots by the clock, do the same."""
    gemm = Gemm(8 * rows, 64 * cols, 64 * steps)
    kernel = GemmKernel(gemm, TILE)
    tiles = parse_order("row").tiles(rows, cols)
    starts, turned = (
        np.array(data.draw(st.lists(values, min_size=len(tiles), max_size=len(tiles))))
        for values in (st.integers(0, steps - 1), st.booleans())
    )
    phase = kernel.phase(tiles, Walk(0, steps, turned, starts))
    ids, ops, sm = flat(waves(kernel, phase, slots, sawtooth))
    expected = []
    for wave in range(0, len(tiles), slots):
        blocks = range(wave, min(wave + slots, len(tiles)))
        for step in range(steps):
            for block in blocks:
                i, j = tiles[block].tolist()
                at = (step + int(starts[block])) % steps
                at = steps - 1 - at if turned[block] != (sawtooth and wave // slots % 2 == 1) else at
                expected += [kernel.a.first + i * steps + at, kernel.b.first + at * cols + j]
        expected += [kernel.c.first + int(i) * cols + int(j) for i, j in tiles[list(blocks)]]
    assert ids == expected
    number = np.arange(len(tiles))
    turn = number // slots
    clock = StepClock(number % slots, turn, turn * float(steps), np.ones(len(tiles)), (turn + 1) * float(steps))
    program = Program(kernel.layout, [Group([phase], slots, sawtooth)], clocks=(clock,))
    assert flat(timed_trace(program, slots)) == (ids, ops, sm)

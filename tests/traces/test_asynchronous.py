"""Free-running blocks: they do the work of waves, in an order that follows what the cache misses."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pebble
from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.models.caches import parse_policy
from pebble.models.machine import load_machine
from pebble.models.rates import speeds_of
from pebble.schedules.execution import parse_execution
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.traces import Trace, TraceChunk, by_lines, following
from pebble.traces.asynchronous import Speeds, asynchronous_trace
from pebble.traces.layout import Layout
from pebble.traces.program import Group, Phase, Steps, Walk
from pebble.workloads.workload import Workload

SPEEDS = speeds_of(load_machine("h100-sxm5-80gb"), "bf16")
ALIKE = replace(SPEEDS, spread=0.0)
CASES: list[tuple[Workload, str]] = [
    (pebble.Gemm(512, 384, 640), "grouped-2+sawtooth"),
    (pebble.Gemm(384, 384, 256, accumulate=True), "hilbert"),
    (pebble.Gemm(200, 200, 200), "row"),  # tiles share lines
    (pebble.Ffn(512, 256, 512), "separate:snake+sawtooth"),
    (pebble.Ffn(512, 256, 512, gated=True), "row-fused-2-split-2"),
    (pebble.Ffn(512, 256, 512), "interleaved-2"),
    (pebble.Attention(512, 512, 64, heads=3, causal=True), "fa3"),
    (pebble.Attention(512, 512, 64, heads=4, kv_heads=2), "split-kv-2+sawtooth"),
    (pebble.Attention(256, 384, 64, heads=2, causal=True), "unfused"),
    (pebble.Attention(256, 256, 64, heads=2), "fa1"),
]


def traces(workload: Workload, schedule: str, stages: int = 3, speeds: Speeds = SPEEDS) -> tuple[Trace, Trace]:
    """The trace in waves and the free-running one."""
    family = kernel_family(workload)
    tile = family.cut_tile(TileShape(128, 128, 64), workload)
    config = KernelConfig(tile, 5, 1, 1 << 20, "lru", stages=stages, speeds=speeds)
    free = replace(config, execution=parse_execution("free", seed=3))
    parsed = family.parse_schedule(schedule)
    return family.trace(workload, parsed, config), family.trace(workload, parsed, free)


def touched(trace: Trace) -> Counter[tuple[int, int]]:
    result: Counter[tuple[int, int]] = Counter()
    for chunk in trace.chunks():
        result.update(zip(chunk.ids.tolist(), chunk.ops.tolist(), strict=True))
    return result


@pytest.mark.parametrize(("workload", "schedule"), CASES)
@pytest.mark.parametrize("stages", [1, 4])
def test_the_work_is_that_of_waves(workload: Workload, schedule: str, stages: int) -> None:
    waves, free = traces(workload, schedule, stages)
    assert touched(free) == touched(waves)
    assert free.touches == waves.touches == sum(len(chunk.ids) for chunk in free.chunks())
    policy = parse_policy("partitions-2:oldest-of-8")
    single, other = (policy.simulate(trace, 4096) for trace in (waves, free))
    assert single.accesses == other.accesses
    assert single.block_steps in (other.block_steps, 0)  # side by side the waves do not count them
    assert other == policy.simulate(traces(workload, schedule, stages)[1], 4096)  # drawn with the same seed


@given(st.integers(1, 9), st.integers(1, 40), st.integers(1, 5), st.integers(1, 6), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_each_block_takes_its_steps_in_order(slots: int, blocks: int, most: int, stages: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    layout = Layout()
    a = layout.add("A", 128 * blocks, 64 * most, 128, 64, 2)
    count = random.integers(1, most + 1, blocks)
    rows = a.along(np.arange(blocks))
    trace = asynchronous_trace(
        layout, [Group([Phase(Steps((rows,), (0,), Walk(0, count)), flops=1000)], slots)],
        replace(SPEEDS, spread=float(random.choice([0.0, 0.3]))), stages, seed=seed,
    )  # fmt: skip
    source, steps, running = trace.chunks(), defaultdict(list), defaultdict(list)
    chunk = next(source, None)
    while chunk is not None:
        assert chunk.sm is not None
        for tile, sm in zip(chunk.ids.tolist(), chunk.sm.tolist(), strict=True):
            block, k = divmod(tile, a.grid[1])
            steps[block].append(k)
            if block not in running[sm]:
                assert not running[sm] or len(steps[running[sm][-1]]) == count[running[sm][-1]]  # one at a time
                running[sm].append(block)
        chunk = following(source, random.integers(0, 2, len(chunk.ids)).astype(np.int32) * 128)
    assert [steps[block] for block in range(blocks)] == [list(range(c)) for c in count]
    initialised = sorted(order[0] for order in running.values())
    assert initialised == list(range(min(slots, blocks)))  # the first blocks in issue order


def one_after_the_other(slow: bool) -> list[int]:
    """Two blocks of 40 steps side by side: which of them makes each touch, if the first always misses, or nobody."""
    layout = Layout()
    a = layout.add("A", 256, 64 * 40, 128, 64, 2)
    phase = Phase(Steps((a.along(np.arange(2)),), (0,), Walk(0, 40)), flops=1 << 21)
    source = asynchronous_trace(layout, [Group([phase], 2)], replace(ALIKE, miss=1e6), 2).chunks()
    results: list[int] = []
    chunk = next(source, None)
    while chunk is not None:
        block = chunk.ids // 40
        results += block.tolist()
        chunk = following(source, np.where(slow & (block == 0), 128, 0).astype(np.int32))
    return results


def test_who_misses_waits() -> None:
    together, apart = one_after_the_other(False), one_after_the_other(True)
    assert together == [0, 1] * 40
    assert apart.index(1) <= 1 and max(i for i, block in enumerate(apart) if block == 1) < 60
    assert apart[-30:] == [0] * 30


def test_blocks_of_one_pace_stay_together_and_of_different_pace_drift() -> None:
    alike, different = (
        traces(pebble.Gemm(640, 128, 64 * 300), "row", speeds=replace(SPEEDS, spread=spread))[1]
        for spread in (0.0, 0.2)
    )  # fmt: skip

    def furthest(trace: Trace) -> int:
        steps, most = [0] * 5, 0
        for chunk in trace.chunks():
            for i in np.flatnonzero((chunk.ids < 5 * 300) & (chunk.ops == 0)):
                steps[chunk.ids[i] // 300] += 1
            most = max(most, max(steps) - min(steps))
        return most

    assert furthest(alike) <= 4 < 40 < furthest(different)


def test_lines_send_back_what_their_tile_missed() -> None:
    sent: list[list[int]] = []

    def chunks():
        for ids in ([0, 1], [1]):
            missed = yield TraceChunk(np.array(ids, np.int32), np.zeros(len(ids), np.uint8))
            sent.append([] if missed is None else missed.tolist())

    tiles = Trace(("A",), np.array([3, 2], np.int32), np.zeros(2, np.uint8), 3, chunks, follows=True)
    lines = by_lines(tiles)
    sent.clear()  # it was counted once without a cache
    source = lines.chunks()
    first = next(source)
    assert len(first.ids) == 5
    second = following(source, np.array([1, 0, 1, 0, 1], np.int32))
    assert second is not None and len(second.ids) == 2
    assert following(source, np.array([1, 1], np.int32)) is None
    assert sent == [[2, 1], [2]]


def test_what_needs_the_future_or_speeds_is_refused() -> None:
    with pytest.raises(InputError, match="depends on what the cache missed"):
        pebble.simulate(pebble.Gemm(512, 512, 512), "row", gpu="a40", execution="free", policy="opt")
    with pytest.raises(InputError, match="expected gpu or machine"):
        pebble.simulate(pebble.Gemm(512, 512, 512), "row", cache="1MiB", sms=4, execution="free")
    fp4 = load_machine("a40")
    with pytest.raises(InputError, match=r"has no throughput\.fp4"):
        speeds_of(fp4, "fp4")


def test_compare_shows_both_and_says_whether_the_first_depends_on_it() -> None:
    result = pebble.compare(pebble.Gemm(2048, 2048, 2048), ["row", "grouped-4", "column"], gpu="h100-sxm5-80gb")
    assert set(result.alternatives) == {"free", "lru"}
    alone = pebble.compare(
        pebble.Gemm(2048, 2048, 2048), ["row", "grouped-4", "column"], gpu="h100-sxm5-80gb", execution="free"
    )
    assert {t.order: t.dram_bytes for t in alone.orders} == result.alternatives["free"]
    assert alone.alternatives["waves"] == {t.order: t.dram_bytes for t in result.orders}
    assert any(note.startswith("free MB:") for note in result.notes)
    assert any(note.startswith("waves MB:") for note in alone.notes)
    rows = result.to_dict()["schedules"]
    assert [row["free_dram_bytes"] for row in rows] == [result.alternatives["free"][row["name"]] for row in rows]


@given(
    st.integers(1, 700), st.integers(1, 700), st.integers(1, 700), st.sampled_from(["row", "hilbert", "grouped-2"]),
    st.sampled_from(["64x64x32", "128x64x64"]), st.booleans(),
)  # fmt: skip
@settings(max_examples=8, deadline=None)
def test_no_order_moves_less_than_the_bound(m: int, n: int, k: int, order: str, tile: str, accumulate: bool) -> None:
    result = pebble.compare(
        pebble.Gemm(m, n, k, accumulate=accumulate), [order], gpu="h100-sxm5-80gb", sms=3, tile=tile
    )
    assert min(result.alternatives["free"].values()) >= result.trace.bound.bytes
    assert result.orders[0].dram_bytes >= result.trace.bound.bytes


@given(st.integers(1, 300), st.integers(1, 300), st.booleans(), st.sampled_from(["fa2", "fa3", "unfused"]))
@settings(max_examples=15, deadline=None)
def test_no_attention_moves_less_than_the_bound(queries: int, more: int, causal: bool, schedule: str) -> None:
    attention = pebble.Attention(queries, queries + more, 32, heads=2, causal=causal)
    result = pebble.compare(attention, [schedule], gpu="h100-sxm5-80gb", sms=3, execution="free")
    assert result.orders[0].dram_bytes >= result.trace.bound.bytes

"""Blocks in slots: with flags in place of barriers none begins before its row is done, and nothing takes longer."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

import pebble
from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.reports.hand_over import hand_over
from pebble.schedules.tile import TileShape
from pebble.timing.modelled import ModelledTime
from pebble.timing.slots import flagged, makespan, without_barriers
from pebble.timing.sustained import sustained_rates
from pebble.timing.waves import modelled_time
from pebble.traces.program import Group, Phase, Steps, Walk
from pebble.workloads import Ffn
from tests.timing.test_waves import ENDLESS, H100, config_of


def group_of(rows: list[list[int]], reads: list[int], slots: int) -> Group:
    phases = [
        Phase(Steps([np.arange(len(row))], (0,), Walk(0, 1)), rows=np.array(row), reads=each)
        for row, each in zip(rows, reads, strict=True)
    ]
    return Group(phases, slots, flags=True)


def played(rows: list[list[int]], reads: list[int], took: list[list[float]], slots: int) -> float:
    """Step by step: of all blocks the next in order takes the slot that was free first, and begins when it may."""
    free = dict.fromkeys(range(slots), 0.0)
    ends: dict[tuple[int, int], list[float]] = {}
    for phase, (row, times) in enumerate(zip(rows, took, strict=True)):
        for at, time in zip(row, times, strict=True):
            slot = min(free, key=lambda each: (free[each], each))
            free[slot] = max([free[slot], *ends.get((reads[phase], at), [])]) + time
            ends.setdefault((phase, at), []).append(free[slot])
    return max(free.values())


@pytest.mark.parametrize("seed", range(50))
def test_no_block_begins_before_its_row_is_done(seed: int) -> None:
    draw = random.Random(seed)
    slots, height, phases = draw.randint(1, 5), draw.randint(1, 4), draw.randint(1, 4)
    rows = [[draw.randrange(height) for _ in range(draw.randint(1, 9))] for _ in range(phases)]
    rows = [sorted({*row, *range(height)}) + row for row in rows]
    reads = [draw.randrange(-1, phase) for phase in range(phases)]
    took = [[draw.uniform(0.5, 2) for _ in row] for row in rows]
    last = flagged(group_of(rows, reads, slots), [np.array(each) for each in took])
    assert last == pytest.approx(played(rows, reads, took, slots))
    assert last >= sum(map(sum, took)) / slots - 1e-9
    assert last <= sum(makespan(each, slots) for each in took) + 1e-9


def test_full_waves_leave_flags_nothing_to_win() -> None:
    rows, took = [[0, 1, 2, 3], [0, 1, 2, 3]], [np.full(4, 2.0), np.full(4, 3.0)]
    assert flagged(group_of(rows, [-1, 0], 4), took) == 5
    assert flagged(group_of(rows, [-1, 0], 3), took) == 8  # 2, 2, then 4 and three of 3: the fourth begins at 5
    assert sum(makespan(each, 3) for each in took) == 10


@pytest.mark.parametrize(("height", "gated"), [(1, False), (3, False), (5, True), (8, False), (40, True)])
def test_an_ffn_with_flags_is_no_slower_and_no_faster_than_its_work(height: int, gated: bool) -> None:
    ffn, rates = Ffn(1920, 512, 1280, gated=gated), replace(sustained_rates(H100, "bf16"), throttle=0.0)
    family, config = kernel_family(ffn), config_of(24, tile=TileShape(128, 128, 64), cache_bytes=4 << 20)

    def timed(name: str) -> ModelledTime:
        return modelled_time(family.program(ffn, family.parse_schedule(name), config), config, rates)

    barriers, flags = timed(f"row-fused-{height}"), timed(f"row-fused-{height}-flags")
    assert flags.seconds <= barriers.seconds * (1 + 1e-9) and flags.occupancy >= barriers.occupancy - 1e-9
    assert flags.seconds >= max(flags.pipes.values())
    assert sum(flags.lost.values()) + flags.pipes[flags.busiest] == pytest.approx(flags.seconds)
    assert sum(wave.blocks for wave in flags.waves) == sum(wave.blocks for wave in barriers.waves)
    work = sum(wave.blocks * max(wave[1:3]) for wave in barriers.waves) / 24
    assert flags.seconds > 0.9 * work


def test_waves_that_l2_or_dram_hold_up_stay_as_long() -> None:
    ffn, rates = Ffn(1024, 512, 512), sustained_rates(H100, "bf16")
    family, config = kernel_family(ffn), config_of(24, cache_bytes=1 << 20)
    program = family.program(ffn, family.parse_schedule("row-fused-3"), config)
    waves = modelled_time(program, config, replace(rates, dram_lines=1e-3)).waves
    assert sum(wave.seconds - wave.around_seconds for wave in without_barriers(waves, 1.0)) == pytest.approx(
        sum(wave.dram_seconds for wave in waves)
    )


def test_flags_have_no_table_and_no_split() -> None:
    ffn = Ffn(1024, 512, 512)
    with pytest.raises(InputError, match="there is no table of it"):
        pebble.export("row-fused-2-flags", ffn, "csv", gpu="h100-sxm5-80gb")
    with pytest.raises(pebble.PebbleError, match="unknown ffn schedule"):
        pebble.time(ffn, "row-fused-2-split-2-flags", gpu="h100-sxm5-80gb")
    assert kernel_family(ffn).parse_schedule("row-fused-2-flags+sawtooth").name == "row-fused-2-flags+sawtooth"


def test_the_first_product_runs_one_band_ahead_and_all_tiles_are_made_once() -> None:
    ffn = Ffn(640, 256, 384)
    family, config = kernel_family(ffn), config_of(4, tile=TileShape(128, 128, 64))
    phases = family.program(ffn, family.parse_schedule("row-fused-2-flags"), config).groups[0].phases
    assert [phase.reads for phase in phases] == [-1, -1, 0, -1, 1, 3]
    for down in (phase for phase in phases if phase.reads >= 0):
        assert set(down.rows.tolist()) == set(phases[down.reads].rows.tolist())
    plain = family.program(ffn, family.parse_schedule("row-fused-2"), config).groups[0].phases
    for kind in (True, False):
        made = [
            sorted(row for phase in some if (phase.epilogue is not None) and (len(phase.steps.bases[0]) == 2)
                   and (phase.activations > 0) == kind for row in phase.rows.tolist())
            for some in (phases, plain)
        ]  # fmt: skip
        assert made[0] == made[1] and made[0]


@pytest.mark.parametrize(("shares", "expected"), [("1:1", 2 + 3 * 2), ("1:3", 3 * 4 + 2), ("3:1", 2 + 3 * 4)])
def test_a_second_product_waits_for_the_bands_of_the_first(shares: str, expected: int) -> None:
    # three bands of one row: 4 tiles of H and 4 of Y each, of equal work, on 4 slots; a tile takes one unit
    ffn, tile = Ffn(384, 512, 512), TileShape(128, 128, 512)
    rates = replace(ENDLESS, flops=2.0 * 128 * 128 * 512)
    family, config = kernel_family(ffn), config_of(4, stages=1, tile=tile)
    program = family.program(ffn, family.parse_schedule(f"interleaved-1-{shares}"), config)
    time = modelled_time(program, config, rates, dram_bytes=[0, 0])
    assert time.seconds * 1e9 == pytest.approx(expected)


def test_flags_have_no_time_where_blocks_run_free() -> None:
    with pytest.raises(InputError, match="wait for flags, expected waves"):
        pebble.time(CHAIN, "row-fused-2-flags", gpu="h100-sxm5-80gb", execution="free")


def test_a_band_too_low_for_all_clusters_is_told() -> None:
    result = pebble.time(Ffn(2048, 512, 512), f"separate:row,{HANDED}", gpu="h100-sxm5-80gb", tile="64x64x64", stages=2)
    (handed,) = result.handed_over
    assert (handed.clusters, handed.idle_clusters) == (66, 64) and "64 of 66 clusters" in str(handed)


def test_each_product_keeps_a_slot() -> None:
    ffn, config = Ffn(1024, 512, 512), config_of(4, tile=TileShape(128, 128, 64))
    family = kernel_family(ffn)
    for shares, slots in (("1000:1", [3, 1]), ("1:1000", [1, 3]), ("1:1", [2, 2]), ("7:5", [2, 2])):
        program = family.program(ffn, family.parse_schedule(f"interleaved-2-{shares}"), config)
        assert [group.wave_blocks for group in program.groups] == slots
    with pytest.raises(InputError, match="at least one slot of each product"):
        family.parse_schedule("interleaved-2-3:0")
    assert family.parse_schedule("interleaved-2-32:1+sawtooth").name == "interleaved-2-32:1+sawtooth"


CHAIN = Ffn(1024, 512, 768)
HANDED = "interleaved-2-1:1-dsmem"


def test_what_is_handed_over_is_copied_and_not_in_the_trace() -> None:
    """Every step of the second product copies a tile of H; the trace is that through L2 without H."""
    family, config = kernel_family(CHAIN), config_of(4, tile=TileShape(128, 128, 64))
    kept, through = (family.program(CHAIN, family.parse_timed(name), config) for name in (HANDED, "interleaved-2-1:1"))
    rows, columns, units = 8, 4, 12  # of tiles: 1024 / 128, 512 / 128; 768 / 64 steps
    assert kept.copied_bytes == rows * columns * units * 128 * 64 * 2 and through.copied_bytes == 0
    names = kept.layout.names
    at = names.index("H")
    first = kept.layout.operands[at].first
    ids, others = (np.concatenate([chunk.ids for chunk in config.trace(each).chunks()]) for each in (kept, through))
    of_h = (others >= first) & (others < first + kept.layout.operands[at].tiles)
    assert of_h.any() and np.array_equal(np.sort(ids), np.sort(others[~of_h]))


def test_a_copy_takes_its_time() -> None:
    family, config = kernel_family(CHAIN), config_of(4, stages=1, tile=TileShape(128, 128, 64))
    program = family.program(CHAIN, family.parse_timed(HANDED), config)
    free = modelled_time(program, config, replace(ENDLESS, copies=math.inf), dram_bytes=[0, 0]).seconds
    slow = modelled_time(program, config, replace(ENDLESS, copies=1.0), dram_bytes=[0, 0]).seconds
    # two slots walk 32 tiles of Y of 12 steps, a step copies 16 KiB at a byte a nanosecond
    assert slow * 1e9 == pytest.approx(32 / 2 * 12 * 128 * 64 * 2, rel=1e-3) and free < slow / 100


def test_a_hand_over_beside_two_kernels() -> None:
    result = pebble.time(CHAIN, f"separate:row,{HANDED}", gpu="h100-sxm5-80gb", tile="64x64x64", stages=2)
    (handed,) = result.handed_over
    times = {order.order: order.time.seconds for order in result.orders}
    assert (handed.cluster, handed.other, handed.seconds) == (2, "separate:row", times[HANDED])
    assert handed.free_seconds <= handed.seconds and handed.kept_bytes <= handed.free_bytes
    assert handed.break_even is None or handed.free_seconds < handed.other_seconds
    assert result.kernel.kept_bytes == 132 * handed.kept_bytes  # the bound grants it them
    assert result.document()["handed_over"][0]["copied_bytes"] == handed.copied_bytes > 0


def test_the_break_even_is_where_both_take_as_long() -> None:
    family = kernel_family(CHAIN)
    kernel = pebble.time(CHAIN, "separate:row", gpu="h100-sxm5-80gb", tile="64x64x64", stages=2).kernel
    schedule, other = family.parse_timed(HANDED), "separate:row"
    rates = sustained_rates(kernel.target.machine, "bf16")
    program = family.program(CHAIN, schedule, kernel.config)
    time = modelled_time(program, kernel.config, rates)
    same = hand_over(CHAIN, schedule, kernel, rates, {HANDED: time, other: time}, other)  # at its own rate it ties
    assert same.free_seconds <= time.seconds and same.break_even == pytest.approx(same.copies_per_second, rel=0.02)
    slower = replace(time, seconds=1.5 * time.seconds)
    result = hand_over(CHAIN, schedule, kernel, rates, {HANDED: time, other: slower}, other)
    assert result.break_even is not None and result.break_even < result.copies_per_second
    copies = result.break_even / kernel.target.machine.sms / 1e9
    again = modelled_time(program, kernel.config, replace(rates, copies=copies), [time.dram_bytes, 0])
    assert again.seconds == pytest.approx(slower.seconds, rel=0.01) and "it pays" in str(result)
    faster = replace(time, seconds=0.1 * time.seconds)
    assert "at any price" in str(hand_over(CHAIN, schedule, kernel, rates, {HANDED: time, other: faster}, other))


@pytest.mark.parametrize(
    ("schedule", "gpu", "more", "words"),
    [
        ("interleaved-8-16:16-dsmem", "h100-sxm5-80gb", {}, "clusters of 32 SMs, expected at most 16"),
        ("interleaved-8-8:8-dsmem", "a100-sxm4-40gb", {}, "read each other's shared memory"),
        ("interleaved-8-1:1-dsmem", "h100-sxm5-80gb", {"stages": 4}, "beside its 4 stages"),
    ],
)
def test_what_cannot_be_handed_over(schedule: str, gpu: str, more: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        pebble.time(Ffn(8192, 2048, 8192), f"separate:row,{schedule}", gpu=gpu, tile="128x256x64", **more)


def test_only_time_knows_what_stays_in_shared_memory() -> None:
    with pytest.raises(InputError, match="ask `pebble time`"):
        pebble.compare(CHAIN, HANDED, gpu="h100-sxm5-80gb")
    with pytest.raises(InputError, match="ask `pebble time`"):
        pebble.simulate(CHAIN, HANDED, gpu="h100-sxm5-80gb")

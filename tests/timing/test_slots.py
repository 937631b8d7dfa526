"""Blocks in slots: with flags in place of barriers none begins before its row is done, and nothing takes longer."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import pebble
from pebble.errors import InputError
from pebble.families import kernel_family
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


@pytest.mark.parametrize(("producers", "expected"), [(2, 2 + 3 * 2), (1, 3 * 4 + 2), (3, 2 + 3 * 4)])
def test_a_second_product_waits_for_the_bands_of_the_first(producers: int, expected: int) -> None:
    # three bands of one row: 4 tiles of H and 4 of Y each, of equal work, on 4 slots; a tile takes one unit
    ffn, tile = Ffn(384, 512, 512), TileShape(128, 128, 512)
    rates = replace(ENDLESS, flops=2.0 * 128 * 128 * 512)
    family, config = kernel_family(ffn), config_of(4, stages=1, tile=tile)
    program = family.program(ffn, family.parse_schedule(f"interleaved-1-producers-{producers}"), config)
    time = modelled_time(program, config, rates, dram_bytes=[0, 0])
    assert time.seconds * 1e9 == pytest.approx(expected)


def test_the_second_product_keeps_a_slot() -> None:
    with pytest.raises(InputError, match="at least one left for GEMM1"):
        pebble.time(Ffn(1024, 512, 512), "interleaved-2-producers-132", gpu="h100-sxm5-80gb")
    assert kernel_family(Ffn(1, 1, 1)).parse_schedule("interleaved-2-producers-3").name == "interleaved-2-producers-3"

"""Modelled time: small kernels by hand, nothing lost of the traffic, monotone in every rate, never below the floor."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from pebble.errors import InputError
from pebble.families import FAMILIES, accounting, kernel_family, lower_bound
from pebble.models.machine import load_machine
from pebble.models.rates import speeds_of
from pebble.schedules.execution import FREE, parse_execution
from pebble.schedules.tile import TileShape, product_bytes
from pebble.simulation import KernelConfig
from pebble.timing.floor import time_floor
from pebble.timing.modelled import ModelledTime, Use, ends
from pebble.timing.sample import block_steps
from pebble.timing.slots import makespan
from pebble.timing.sustained import Rates, sustained_rates
from pebble.timing.waves import modelled_time
from pebble.workloads import Attention, Ffn, Gemm, GroupedGemm
from pebble.workloads.workload import Workload

H100 = load_machine("h100-sxm5-80gb")
ENDLESS = Rates(inf, inf, inf, inf, inf, inf, 0.0, 0.0, drain=0.0, launch=0.0)
# 4 output tiles of 2 steps; a step loads 128 lines of A and 128 of B, and takes 2 x 128 x 128 x 64 operations
SMALL, TILE = Gemm(256, 256, 128), TileShape(128, 128, 64)
STEP_FLOPS = 2 * 128 * 128 * 64
RECORDED = Path(__file__).parents[2] / "benchmarks/hardware/predicted/clocks.csv"


def config_of(sms: int, blocks: int = 1, stages: int = 4, free: bool = False, **more: Any) -> KernelConfig:
    speeds = speeds_of(H100, "bf16") if free else None
    more = {"tile": TILE, "cache_bytes": 1 << 20, "policy": "lru", **more}
    return KernelConfig(
        sms=sms, blocks_per_sm=blocks, stages=stages, speeds=speeds, **({"execution": FREE} if free else {}), **more
    )


def time_of(workload: Workload, schedule: str, config: KernelConfig, rates: Rates) -> ModelledTime:
    family = kernel_family(workload)
    return modelled_time(family.program(workload, family.parse_schedule(schedule), config), config, rates)


@pytest.mark.parametrize(("sms", "waves"), [(1, [1, 1, 1, 1]), (2, [2, 2]), (3, [3, 1]), (4, [4]), (8, [4])])
def test_a_wave_computes_as_long_as_its_longest_block_even_if_it_is_not_full(sms: int, waves: list[int]) -> None:
    result = time_of(SMALL, "row", config_of(sms), replace(ENDLESS, flops=1.0))
    assert [wave.blocks for wave in result.waves] == waves
    assert result.seconds == pytest.approx(len(waves) * 2 * STEP_FLOPS / 1e9)
    assert result.binds == {"compute": len(waves)}


def test_blocks_that_share_an_sm_share_what_it_computes() -> None:
    result = time_of(SMALL, "row", config_of(1, blocks=3), replace(ENDLESS, flops=1.0))
    assert [wave.compute_seconds * 1e9 / 2 / STEP_FLOPS for wave in result.waves] == pytest.approx([3, 1])


def test_dram_serves_what_each_wave_misses_and_writes() -> None:
    # row 0 of A and all of B, 256 + 512 lines, and the 1024 of C that the launch before left; then row 1 of A
    result = time_of(SMALL, "row", config_of(2), replace(ENDLESS, dram_lines=1.0))
    assert [round(wave.dram_seconds * 1e9) for wave in result.waves] == [768 + 1024, 256]
    assert result.seconds == pytest.approx(2048e-9)
    assert result.dram_bytes == 2048 * 128
    assert result.binds == {"DRAM": 2}


def test_l2_is_as_slow_as_the_port_of_an_sm_or_as_all_of_them() -> None:
    port = time_of(SMALL, "row", config_of(2), replace(ENDLESS, port=1.0))
    chip = time_of(SMALL, "row", config_of(2), replace(ENDLESS, lines=1.0))
    assert [round(wave.l2_seconds * 1e9) for wave in port.waves] == [512, 512]
    assert [round(wave.l2_seconds * 1e9) for wave in chip.waves] == [1024, 1024]
    assert port.l2_bytes == chip.l2_bytes == 2048 * 128


def test_tiles_narrower_than_a_line_load_their_sectors_only() -> None:
    narrow = time_of(SMALL, "row", config_of(2, tile=TileShape(128, 128, 32)), ENDLESS)
    assert narrow.l2_bytes == 2048 * 128


def test_stages_that_are_too_few_make_each_step_wait() -> None:
    rates = replace(ENDLESS, hit=100.0, drain=30.0, launch=7.0)
    for stages in (1, 2, 4):
        result = time_of(SMALL, "row", config_of(2, stages=stages), rates)
        assert result.seconds == pytest.approx((2 * (2 * 100 / stages + 100 + 30) + 7) * 1e-9)
    missed = time_of(SMALL, "row", config_of(4, stages=1), replace(rates, miss=1000.0))
    # 2048 lines move and as many are loaded: every step waits for a miss
    assert missed.waves[0].latency_seconds == pytest.approx(2 * 1100e-9)


def test_what_passes_through_shared_memory() -> None:
    # 128 rows in two halves read 128 columns each, 128 rows are read once; 256 rows and columns of 64 are written
    assert product_bytes(TILE, 2) == 2 * 64 * ((2 * 128 + 128) + 256)
    assert product_bytes(TileShape(256, 128, 64), 2) > product_bytes(TileShape(128, 256, 64), 2)
    result = time_of(SMALL, "row", config_of(4), replace(ENDLESS, shared=1.0))
    assert result.seconds == pytest.approx(2 * product_bytes(TILE, 2) / 1e9)


def test_no_step_is_shorter_than_what_a_block_needs_to_issue_it() -> None:
    result = time_of(SMALL, "row", config_of(4), replace(ENDLESS, step=50.0))
    assert result.seconds == pytest.approx(2 * 50e-9)


def test_the_limit_of_power_lengthens_what_comes_later_until_tensor_cores_rest() -> None:
    rates = replace(ENDLESS, flops=1.0, throttle=0.1, boost=1e6)
    result = time_of(SMALL, "row", config_of(4), rates)
    at_boost = 2 * STEP_FLOPS / 1e9
    assert result.throttled_seconds == pytest.approx(0.1 * (at_boost - 1e-3))
    assert result.seconds == result.ended_seconds[0] == pytest.approx(at_boost + result.throttled_seconds)
    resting = time_of(SMALL, "row", config_of(4), replace(rates, shared=product_bytes(TILE, 2) / STEP_FLOPS / 2))
    assert resting.throttled_seconds == 0  # tensor cores compute half of the time


def test_a_second_and_last_wave_spreads_over_the_sms() -> None:
    # 4 blocks on 3 slots of one SM: the last one has it alone and takes a third of what three take
    crowded = time_of(SMALL, "row", config_of(1, blocks=3, free=True), replace(ENDLESS, flops=1.0))
    assert crowded.seconds == pytest.approx((3 + 1) * 2 * STEP_FLOPS / 1e9)


def test_bytes_that_are_known_are_one_number_a_kernel() -> None:
    family, config = kernel_family(SMALL), config_of(2)
    program = family.program(SMALL, family.parse_schedule("row"), config)
    assert modelled_time(program, config, ENDLESS, 1280).dram_bytes == 1280
    with pytest.raises(InputError, match="one a kernel"):
        modelled_time(program, config, ENDLESS, (1, 2))


def test_free_blocks_go_to_whichever_slot_is_free() -> None:
    assert makespan([], 3) == 0
    assert makespan([5.0] * 7, 3) == 15
    assert makespan([4.0, 1.0, 1.0, 1.0, 4.0], 2) == 7
    result = time_of(SMALL, "row", config_of(3, free=True), replace(ENDLESS, flops=1.0))
    assert result.seconds == pytest.approx(2 * 2 * STEP_FLOPS / 1e9)
    bound = time_of(SMALL, "row", config_of(3, free=True), replace(ENDLESS, dram_lines=1.0))
    assert bound.seconds == pytest.approx(2048e-9)
    assert bound.binds == {"DRAM": 1}


WORKLOADS = [
    (Gemm(1000, 900, 700), "hilbert"),
    (GroupedGemm((300, 100), 512, 256), "row"),
    (Ffn(512, 256, 640), "separate:row"),
    (Ffn(512, 256, 640, gated=True), "row-fused-2"),
    (Attention(1024, 1024, 64, heads=4, causal=True), "fa2"),
    (Attention(512, 512, 64, heads=2), "unfused"),
    (Attention(1, 2048, 64, heads=4), "flash-decoding"),
    (Attention(256, 256, 64, heads=2), "fa1"),
]


@pytest.mark.parametrize("policy", ["lru", "fifo", "opt", "partitions-2:oldest-of-8", "lru+warm"])
@pytest.mark.parametrize(("workload", "schedule"), WORKLOADS)
def test_the_waves_together_move_what_the_kernel_moves(workload: Workload, schedule: str, policy: str) -> None:
    family = kernel_family(workload)
    tile = family.cut_tile(family.default_tile(workload), workload)
    config = config_of(6, tile=tile, cache_bytes=256 << 10, policy=policy)
    result = time_of(workload, schedule, config, sustained_rates(H100, "bf16"))
    traffic = family.simulate(workload, family.parse_schedule(schedule), config)
    assert result.dram_bytes == traffic.dram_bytes
    assert sum(wave.dram_seconds for wave in result.waves) == pytest.approx(result.dram_seconds)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(("workload", "schedule"), WORKLOADS)
def test_no_faster_resource_makes_a_kernel_slower_and_none_is_below_its_sum(
    workload: Workload, schedule: str, free: bool
) -> None:
    family = kernel_family(workload)
    tile = family.cut_tile(family.default_tile(workload), workload)
    config = config_of(6, tile=tile, cache_bytes=256 << 10, free=free)
    program = family.program(workload, family.parse_schedule(schedule), config)
    rates = sustained_rates(H100, "bf16")
    plain = modelled_time(program, config, rates)
    assert plain.seconds >= max(plain.compute_seconds, plain.shared_seconds, plain.l2_seconds, plain.dram_seconds)
    for name in ("flops", "exps", "shared", "port", "lines", "dram_lines"):
        faster = replace(rates, **{name: 2 * getattr(rates, name)})
        assert modelled_time(program, config, faster).seconds <= plain.seconds
    for name in ("hit", "miss", "drain", "launch"):
        assert modelled_time(program, config, replace(rates, **{name: 0.0})).seconds <= plain.seconds


def test_writes_among_reads_slow_dram_as_much_as_was_measured() -> None:
    rates = replace(sustained_rates(H100, "bf16"), flops=1e12, port=1e12, lines=1e12, shared=math.inf, launch=0.0)
    rates = replace(rates, hit=0.0, miss=0.0, drain=0.0, step=0.0, throttle=0.0)
    gemm, config = Gemm(4096, 4096, 64), config_of(8, cache_bytes=1 << 20)
    program = kernel_family(gemm).program(gemm, kernel_family(gemm).parse_schedule("row"), config)
    mixed = modelled_time(program, config, rates)
    assert mixed.counts is not None and 0 < mixed.counts.written_share < 1
    as_reads = modelled_time(program, config, replace(rates, written_ns=0.0, turned_ns=0.0))
    share = mixed.counts.written_share
    a_line = 1 / rates.dram_lines + share * rates.written_ns + 4 * share * (1 - share) * rates.turned_ns
    assert mixed.dram_seconds == pytest.approx(as_reads.dram_seconds * a_line * rates.dram_lines)
    assert mixed.seconds > 1.05 * as_reads.seconds


def test_side_by_side_each_has_its_own_traffic_and_all_share_dram() -> None:
    single, two = Attention(512, 512, 64, heads=2), Gemm(512, 512, 256)
    families = kernel_family(single), kernel_family(two)
    configs = config_of(2, tile=TileShape(128, 128, 1)), config_of(4)
    programs = [
        family.program(workload, family.parse_schedule(name), config)
        for family, workload, name, config in zip(families, (single, two), ("fa2", "row"), configs, strict=True)
    ]
    both = config_of(6, free=True, cache_bytes=64 << 20)
    rates = replace(sustained_rates(H100, "bf16"), launch=0.0, contention=0.0)
    together = modelled_time(programs[0].concurrent_with(programs[1]), both, rates)
    alone = [modelled_time(p, replace(both, sms=c.sms), rates) for p, c in zip(programs, configs, strict=True)]
    assert together.dram_bytes == sum(time.dram_bytes for time in alone)
    assert together.ended_seconds == pytest.approx([time.seconds for time in alone])
    slow = replace(rates, dram_lines=1e-3, written_ns=0.0, turned_ns=0.0)
    assert modelled_time(programs[0].concurrent_with(programs[1]), both, slow).seconds == pytest.approx(
        together.dram_bytes / 128 / 1e-3 / 1e9
    )


def test_kernels_side_by_side_wait_for_each_other_at_l2_and_dram() -> None:
    fast = Use(100.0, (0.8, 0.2), (0.6, 0.2))
    slow = Use(300.0, (0.1, 0.7), (0.1, 0.7))
    assert fast.stretch([], 0.3) == slow.stretch([], 0.3) == 1
    assert fast.stretch([slow], 0.3) == pytest.approx(1 + 0.3 * (0.8 * 0.1 + 0.2 * 0.7))
    assert slow.stretch([fast], 0.3) == pytest.approx(1 + 0.3 * (0.1 * 0.6 + 0.7 * 0.2))
    first, last = ends([fast, slow], 0.3)
    assert first == pytest.approx(106.6)
    assert last == pytest.approx(first + 300 - 106.6 / 1.06)  # alone from then on
    hungry = Use(100.0, (0.0, 1.0), (0.0, 1.0))  # two that want all of DRAM take as long as one after the other
    assert ends([hungry, hungry], 0.3) == [200.0, 200.0]
    assert ends([hungry], 0.3) == [100.0]
    product, program_of = Gemm(1024, 1024, 512), kernel_family(SMALL)
    program = program_of.program(product, program_of.parse_schedule("row"), config_of(4))
    rates, config = sustained_rates(H100, "bf16"), config_of(8, free=True, cache_bytes=64 << 20)
    times = [
        modelled_time(program.concurrent_with(program), config, replace(rates, contention=c)).seconds
        for c in (0, 0.3, 1)
    ]
    assert times == sorted(times) and times[2] > times[0]


def test_products_side_by_side_keep_their_operands_apart() -> None:
    gemm = Gemm(256, 256, 128)
    family = kernel_family(gemm)
    program = family.program(gemm, family.parse_schedule("row"), config_of(2))
    both = program.concurrent_with(program)
    assert both.layout.names == ["A", "B", "C", "A'", "B'", "C'"]
    assert both.first_operands == (0, 3)
    assert modelled_time(both, config_of(4, free=True), ENDLESS).dram_bytes == 2 * 2048 * 128


def under(execution: str, sms: int, rates: Rates, gemm: Gemm = SMALL, blocks: int = 1) -> ModelledTime:
    return time_of(gemm, "row", config_of(sms, blocks, execution=parse_execution(execution)), rates)


def test_blocks_that_stay_in_their_slots_take_as_long_as_waves() -> None:
    rates = replace(ENDLESS, flops=1.0, drain=100.0, launch=1000.0)
    for sms in (1, 2, 3, 4):
        turns = -(-4 // sms)
        expected = turns * (2 * STEP_FLOPS + 100) + 1000
        assert under("persistent", sms, rates).seconds == pytest.approx(expected / 1e9)
        late = (min(sms, 4) - 1) / sms * 2 * STEP_FLOPS  # the last slot, unless it has fewer tiles than the others
        staggered = under("staggered", sms, rates).seconds * 1e9
        assert expected <= staggered <= expected + late + 1


def test_split_k_is_a_shorter_kernel_and_one_that_adds() -> None:
    """Four tiles of two steps on eight SMs: one step and a part of 512 lines each; then four blocks add two parts."""
    rates = replace(ENDLESS, flops=1.0, parts=2.0, drain=100.0, launch=1000.0)
    result = under("split-k-2", 8, rates)
    assert result.seconds * 1e9 == pytest.approx(2 * 1000 + (STEP_FLOPS + 512 / 2 + 100) + (2 * 512 / 2 + 100))
    whole = time_of(SMALL, "row", config_of(8), rates)
    assert result.dram_bytes == whole.dram_bytes + 8 * 512 * 128  # parts are written, and still there to be read
    assert under("split-k-1", 8, rates).seconds == under("persistent", 8, rates).seconds


def test_stream_k_gives_every_slot_the_same_steps() -> None:
    """Six tiles of two steps on four SMs: three steps each, where whole tiles take four."""
    rates, gemm = replace(ENDLESS, flops=1.0, parts=2.0, drain=100.0), Gemm(384, 256, 128)
    assert under("persistent", 4, rates, gemm).seconds * 1e9 == pytest.approx(4 * STEP_FLOPS + 2 * 100)
    # a slot has two segments; of each tile that two share one writes a part of 512 lines and the other adds it
    assert under("stream-k", 4, rates, gemm).seconds * 1e9 == pytest.approx(
        3 * STEP_FLOPS + 2 * 100 + 512 / 2, rel=1e-4
    )


@pytest.mark.parametrize(
    "execution", ["persistent", "staggered", "dynamic-20", "split-k-3", "stream-k", "stream-k-hybrid"]
)
def test_no_execution_beats_the_floor_or_what_its_bytes_need(execution: str) -> None:
    gemm, rates = Gemm(1000, 1500, 700), sustained_rates(H100, "bf16")
    config = config_of(5, 2, execution=parse_execution(execution))
    family = kernel_family(gemm)
    result = time_of(gemm, "grouped-2", config, rates)
    traffic = family.simulate(gemm, family.parse_schedule("grouped-2"), config)
    assert result.dram_bytes == traffic.dram_bytes
    assert result.seconds >= result.dram_bytes / (rates.dram_lines * 128) / 1e9
    assert result.seconds >= 2 * 1000 * 1500 * 700 / (5 * rates.flops * 1e9)


def test_only_products_have_a_time_under_other_executions() -> None:
    config, ffn = config_of(2, execution=parse_execution("stream-k")), Ffn(256, 128, 256)
    family = kernel_family(ffn)
    program = family.program(ffn, family.parse_schedule("separate:row"), config_of(2))
    with pytest.raises(InputError, match="only a product by itself"):
        modelled_time(program, config, ENDLESS)


def test_chips_without_the_numbers_are_refused_and_others_wait_for_no_shared_memory() -> None:
    with pytest.raises(InputError, match="has no boost_clock"):
        sustained_rates(load_machine("gb10"), "bf16")
    assert sustained_rates(load_machine("a100-sxm4-40gb"), "bf16").shared == inf
    assert sustained_rates(H100, "bf16").shared < 128 * 1.98


def test_no_recorded_time_is_below_its_floor() -> None:
    floors: dict[tuple[str, ...], float] = {}
    rows = 0
    with RECORDED.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["launch"] == "library":
                continue  # whose tile and order are not known, so that no kernel is modelled
            family = FAMILIES[row["family"]]
            names = {p.name for p in family.parameters} & {key for key, value in row.items() if value}
            key = (row["chip"], row["family"], row["dtype"], *(f"{name}={row[name]}" for name in sorted(names)))
            if key not in floors:
                machine = load_machine(row["chip"])
                sizes = {n: bool(int(row[n])) if n in ("gated", "causal") else int(row[n]) for n in names}
                workload: Workload = family.shape(**sizes, dtype=row["dtype"])
                bound = lower_bound(workload, machine.on_chip_bytes // workload.narrowest_bytes)
                floors[key] = time_floor(accounting(workload), machine, bound).seconds
            assert float(row["modelled_ms"]) >= 1e3 * floors[key], row
            rows += 1
    assert rows > 300


def test_a_long_kernel_is_simulated_in_part_and_the_rest_follows() -> None:
    gemm, config = Gemm(2048, 4096, 2048), config_of(16, cache_bytes=4 << 20)
    family, rates = kernel_family(gemm), sustained_rates(H100, "bf16")
    for order in ("row", "grouped-8"):
        program = family.program(gemm, family.parse_schedule(order), config)
        whole = modelled_time(program, config, rates)
        assert whole.simulated_share == 1 == modelled_time(program, config, rates, most_lines=10**9).simulated_share
        for share in (0.5, 0.02):  # eight waves and more, less than one
            part = modelled_time(program, config, rates, most_lines=int(share * whole.l2_bytes / 128))
            assert 0 < part.simulated_share <= share
            assert part.dram_bytes == pytest.approx(whole.dram_bytes, rel=0.1)
            assert part.seconds == pytest.approx(whole.seconds, rel=0.1)
            assert (part.l2_bytes, len(part.waves)) == (whole.l2_bytes, len(whole.waves))


@pytest.mark.parametrize(("order", "near"), [("fa2", 0.05), ("fa3", 0.3)])
def test_of_long_attention_that_runs_free_a_part_says_what_the_rest_moves(order: str, near: float) -> None:
    """Time follows from what all blocks compute; bytes of a part hold more first loads than the rest."""
    attention = Attention(8192, 8192, 128, heads=32, kv_heads=8, causal=True)
    family, rates = kernel_family(attention), sustained_rates(H100, "bf16")
    chip = {"cache_bytes": H100.l2_bytes, "policy": H100.default_model.policy}
    config = config_of(H100.sms, stages=2, free=True, tile=TileShape(128, 128, 1), **chip)
    program = family.program(attention, family.parse_schedule(order), config)
    whole = modelled_time(program, config, rates)
    part = modelled_time(program, config, rates, most_lines=int(0.5 * whole.l2_bytes / 128))
    assert 0.3 < part.simulated_share <= 0.5 < whole.simulated_share == 1
    assert part.dram_bytes == pytest.approx(whole.dram_bytes, rel=near)
    assert part.seconds == pytest.approx(whole.seconds, rel=0.01) and part.l2_bytes == whole.l2_bytes
    assert part.dram_bytes > attention.compulsory_bytes * 0.95


def test_a_part_of_a_phase_is_its_first_blocks_and_steps() -> None:
    attention = Attention(512, 512, 64, causal=True)
    config = config_of(2, tile=TileShape(128, 128, 1))
    family = kernel_family(attention)
    (phase,) = family.program(attention, family.parse_schedule("fa2"), config).groups[0].phases
    assert phase.prologue is not None and phase.epilogue is not None
    cut = phase.first(2, 1)
    assert cut.epilogue is None and cut.prologue is not None and len(cut.prologue.bases) == 2
    assert cut.steps.touches == 2 * phase.steps.bases.shape[1] and block_steps(cut).tolist() == [1, 1]
    kept = phase.first(3)
    assert kept.epilogue is not None and block_steps(kept).tolist() == block_steps(phase)[:3].tolist()
    assert kept.made(slice(0, 3), False).ids.tolist() == phase.made(slice(0, 3), False).ids.tolist()

"""The one inequality that matters: the bound at the trace capacity is below every simulated order."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.errors import InfeasibleError
from pebble.families import kernel_family, lower_bound, simulate
from pebble.models.machine import load_machine
from pebble.reports.capacity import best_in_kernel, cache_capacity, chip_capacity, trace_capacity
from pebble.reports.kernel_compare import compare_kernels as compare
from pebble.reports.simulated_kernel import read_kernel, trace_bound
from pebble.schedules.orders import all_schedules, parse_order
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.units import parse_size
from pebble.workloads import Attention, Ffn, Gemm, GroupedGemm
from pebble.workloads.workload import Workload
from tests.schedules.lockstep import lockstep_trace

ORDERS = [order.name for order in all_schedules()]


def least_cache(gemm: Gemm, tile: TileShape, wave: int) -> int:
    """The smallest cache that the simulator accepts, in bytes: the largest tile."""
    tiles = parse_order("row").tiles(*tile.grid(gemm)[:2])
    return int(lockstep_trace(gemm, tiles, tile, wave).tile_lines.max()) * 128


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_bound_is_below_every_simulated_order(data: st.DataObject) -> None:
    draw = data.draw
    side = st.integers(1, 400)
    gemm = Gemm(draw(side), draw(side), draw(side), draw(st.sampled_from(["bf16", "fp32", "fp8"])),
                draw(st.sampled_from(["", "bf16", "fp32"])), draw(st.booleans()))  # fmt: skip
    tile = TileShape(draw(st.integers(1, 64)), draw(st.sampled_from([16, 64, 96, 128])),
                     draw(st.sampled_from([8, 64, 128]))).cut_to(gemm)  # fmt: skip
    sms, per_sm = draw(st.integers(1, 12)), draw(st.integers(1, 2))
    least = least_cache(gemm, tile, sms * per_sm)
    cache = draw(st.one_of(st.just(least), st.integers(least, least * 20)))
    config = KernelConfig(tile, sms, per_sm, cache, draw(st.sampled_from(["lru", "fifo", "opt"])))
    traffic = simulate(gemm, parse_order(draw(st.sampled_from(ORDERS))), config)
    family = kernel_family(gemm)
    held = family.values_held(gemm, config)
    bound = lower_bound(gemm, trace_capacity(cache, gemm, held, config.wave_blocks).elements)
    assert bound.bytes <= traffic.dram_bytes
    for accumulator_bytes in (0, 4):
        free_capacity = {"held_bytes": family.bytes_held(gemm, config), "accumulator_bytes": accumulator_bytes}
        capacity = trace_capacity(cache, gemm, held, config.wave_blocks, **free_capacity)
        wide = family.lower_bound(gemm, capacity.elements, memory=capacity.memory)
        assert bound.bytes <= wide.bytes <= traffic.dram_bytes
    assert gemm.compulsory_bytes <= traffic.dram_bytes


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 300), st.sampled_from(ORDERS), st.integers(1, 9))
def test_opt_below_lru_and_lru_falls_with_capacity(m: int, n: int, k: int, order: str, sms: int) -> None:
    gemm = Gemm(m, n, k)
    tile = TileShape(32, 64, 64).cut_to(gemm)
    least = least_cache(gemm, tile, sms)
    reads = []
    for cache in (least, 2 * least, 8 * least, 64 * least):
        lru = simulate(gemm, parse_order(order), KernelConfig(tile, sms, 1, cache))
        opt = simulate(gemm, parse_order(order), KernelConfig(tile, sms, 1, cache, "opt"))
        assert opt.counts.misses_lines <= lru.counts.misses_lines
        reads.append(lru.dram_read_bytes)
    assert reads == sorted(reads, reverse=True)


def test_the_headline_figures() -> None:
    gemm = Gemm(8192, 8192, 8192)
    result = compare(gemm, "row,grouped-8", gpu="a100-sxm4-40gb", policy="lru")
    assert result.kernel.stages == 5  # of 32 KiB, in 163 KiB
    assert result.trace.capacity.elements == 20_971_520 + 108 * (5 + 1) * 16_384
    assert round(result.trace.bound.bytes / 1e6, 1) == 489.0
    assert result.trace.capacity.bytes == 40 * 2**20 + 108 * (16_384 * 4 + 5 * 16_384 * 2)
    values = compare(gemm, "row", gpu="a100-sxm4-40gb", policy="lru", accumulators="off")
    assert round(values.trace.bound.bytes / 1e6, 1) == 489.0
    one_stage = compare(gemm, "row", gpu="a100-sxm4-40gb", policy="lru", stages=1, accumulators="off")
    assert round(one_stage.trace.bound.bytes / 1e6, 1) == 524.0
    assert result.chip is not None
    assert result.chip.capacity.bytes == round(87.25 * 2**20)
    assert result.chip.bound.bytes < result.trace.bound.bytes < result.cache_only.bound.bytes
    assert [t.order for t in result.orders] == ["grouped-8", "row"]
    document = result.to_dict()
    assert document["best_order"] == {
        "name": "grouped-8",
        "dram_bytes": 1_860_173_824 + 134_217_728,
        "tied": ["grouped-8"],
    }
    assert document["upper_bound"]["bytes"] <= 671_100_000
    assert document["lower_bound"]["what"] == "trace"
    assert document["schedules"][0]["ratio_to_lower_bound"] == pytest.approx(1994.4 / 489.0, abs=0.01)


def test_interruption_keeps_what_is_done() -> None:
    def stop(name: str) -> None:
        raise KeyboardInterrupt

    gemm = Gemm(256, 256, 256)
    result = compare(gemm, "row,morton", cache="1MiB", sms=2, progress=lambda total: stop)
    assert [t.order for t in result.orders] in (["row"], ["morton"])  # side by side, either may be the first
    assert "interrupted after 1 schedule" in result.notes[-1]


def test_equal_walks_are_simulated_once_and_named_apart() -> None:
    gemm = Gemm(512, 512, 128)
    result = compare(gemm, "row,cutlass2-horizontal", cache="1MiB", sms=4)
    assert {t.order for t in result.orders} == {"row", "cutlass2-horizontal"}
    assert result.orders[0].counts is result.orders[1].counts


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_chains_move_no_less_than_with_accumulators_in_fp32(data: st.DataObject) -> None:
    """FFNs, whose split kernels round partial sums of Y when they pass them on, and attention, which does not."""
    draw = data.draw
    side = st.integers(1, 300)
    types = {
        "dtype": draw(st.sampled_from(["bf16", "fp32", "fp8"])),
        "out_dtype": draw(st.sampled_from(["", "fp8", "fp32"])),
    }
    workload: Ffn | Attention
    if draw(st.booleans()):
        workload = Ffn(draw(side), draw(side), draw(side), draw(side), gated=draw(st.booleans()), **types)
    else:
        queries = draw(side)
        workload = Attention(
            queries, queries + draw(side), draw(st.integers(1, 64)), causal=draw(st.booleans()), **types
        )
    result = compare(
        workload, "all", cache=f"{draw(st.integers(64, 512))}KiB", sms=draw(st.integers(2, 6)), tile="32x64x64",
        accumulators="fp32",
    )  # fmt: skip
    assert result.trace.bound.bytes <= result.orders[0].dram_bytes
    assert result.explicit.bytes >= result.trace.bound.bytes


def test_capacities() -> None:
    gemm = Gemm(64, 64, 64, "fp8")  # bf16 output
    size = cache_capacity(parse_size("1KiB"), gemm)
    assert (size.elements, size.schedule_elements) == (1024, 512)
    assert cache_capacity(parse_size("100el"), gemm).schedule_elements == 100
    assert cache_capacity(parse_size("4B"), gemm).schedule_elements == 3  # one byte, one byte, two bytes
    with pytest.raises(InfeasibleError, match="at least 4 bytes"):
        cache_capacity(parse_size("3B"), gemm)
    assert chip_capacity(load_machine("a40"), Gemm(64, 64, 64)).bytes == round(37.5 * 2**20)
    # a tile of accumulators in fp32, and tiles of A and B
    kernel = trace_capacity(1024, Gemm(64, 64, 64), 3 * 64, 1, held_bytes=4 * 64 + 2 * 128, accumulator_bytes=4)
    assert kernel.memory is not None
    assert kernel.bytes == kernel.memory.bytes == 1024 + 4 * 64 + 2 * 128


@pytest.mark.parametrize(
    ("workload", "options"),
    [
        (Gemm(2478, 1167, 7739, "bf16", "fp32"), {"cache": "256KiB", "sms": 16, "tile": "64x64", "stages": 4}),
        (Gemm(500, 256, 3102, "fp8", "fp32"), {"cache": "100KiB", "sms": 1}),
        (GroupedGemm((130, 1, 500), 256, 3102, "fp8", "fp32"), {"cache": "100KiB", "sms": 1}),
        (GroupedGemm((500,) * 3, 256, 3102, "fp8", "fp32"), {"cache": "100KiB", "sms": 1}),
    ],
    ids=lambda one: getattr(one, "label", ""),
)
def test_the_best_schedule_fits_the_bytes_of_the_kernel(workload: Workload, options: dict[str, Any]) -> None:
    kernel = read_kernel(workload, **options)
    trace = trace_bound(workload, kernel)
    result = best_in_kernel(workload, trace.capacity)
    assert result is not None
    assert trace.bound.bytes <= result.bytes
    held = kernel_family(workload).bytes_held(workload, kernel.config, kernel.stages)
    assert trace.capacity.bytes == kernel.config.cache_bytes + held  # what is said is what the bound is played in
    assert trace.capacity.memory is not None and trace.capacity.memory.bytes == trace.capacity.bytes


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_no_best_schedule_of_a_kernel_is_below_its_bound_at_mixed_widths(data: st.DataObject) -> None:
    draw = data.draw
    side, name = st.integers(1, 4000), st.sampled_from(["fp8", "bf16", "fp32"])
    workload = draw(
        st.one_of(
            st.builds(Gemm, side, side, side, name, name),
            st.builds(GroupedGemm, st.lists(side, min_size=1, max_size=3).map(tuple), side, side, name, name),
            st.builds(Ffn, side, side, side, gated=st.booleans(), dtype=name, out_dtype=name),
        )
    )
    kernel = read_kernel(
        workload,
        cache=f"{draw(st.integers(16, 4096))}KiB",
        sms=draw(st.integers(1, 16)),
        tile=draw(st.sampled_from(["32x32", "64x64", "128x64"])),
        stages=draw(st.integers(1, 4)),
        accumulators=draw(st.sampled_from(["off", "fp32"])),
    )
    trace = trace_bound(workload, kernel)
    result = best_in_kernel(workload, trace.capacity)
    assert result is not None and trace.bound.bytes <= result.bytes

"""The model of a tile, against sums on paper."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pebble.errors import InputError
from pebble.models.kernel_fit import KernelNeeds, fits, most_blocks, most_stages
from pebble.models.machine import Machine, load_machine, machine_names
from pebble.models.sm_constants import a100_constants, constants_of, tensor_flops_per_clock
from pebble.models.tile_model import KTile, TileModel, check_registers, tile_model, tile_needs

A100, H100 = load_machine("a100-sxm4-40gb"), load_machine("h100-sxm5-80gb")


def model(machine: Machine, bm: int, bn: int, bk: int, stages: int, tiles: int = 1000, **more: int) -> TileModel:
    step = KTile(bm, bn, bk, 2, constants_of(machine, "bf16"))
    needs = tile_needs(bm, bn, bk, stages, 2, out_bytes=2, **more)
    return tile_model(
        machine, step, needs, blocks=[tiles], flops=10**12, dram_bytes=10**9, barrier_bytes=16 * stages,
    )  # fmt: skip


def test_the_k_tile_of_the_a100_by_both_sets() -> None:
    published = KTile(256, 128, 16, 2, a100_constants(A100, "fp16", "published"))
    assert (published.instructions, published.core_cycles, published.compute_cycles) == (128, 2048, 512)
    assert published.bytes == 12288
    assert published.l2_cycles == pytest.approx(200 + 12288 / 47.41) == pytest.approx(459.2, abs=0.05)
    assert published.dram_more_cycles == pytest.approx(290 + 12288 / 11.84) == pytest.approx(1327.8, abs=0.05)
    assert published.dram_cycles == pytest.approx(1787.0, abs=0.05)
    corrected = KTile(256, 128, 16, 2, a100_constants(A100, "fp16", "corrected"))
    rate = 1555e9 / 1410e6 / 108
    assert rate == pytest.approx(10.21, abs=0.005) == corrected.constants.dram_rate.value
    assert corrected.dram_cycles == pytest.approx(552 + 12288 / rate)  # the two latencies are not added
    assert corrected.least_hit_share == pytest.approx(1 - 512 * rate / 12288)
    assert (corrected.least_stages(200), corrected.least_stages(552)) == (2, 3)


def test_the_named_sets_are_the_only_ones_that_add() -> None:
    assert a100_constants(A100, "fp16", "published").miss_latency == 490
    assert a100_constants(A100, "fp16", "corrected").miss_latency == 552
    assert not constants_of(H100, "bf16").adds


def test_what_tensor_cores_do_in_a_clock() -> None:
    known = {"a100-sxm4-40gb": 2048, "a40": 1024, "h100-sxm5-80gb": 4096, "h100-pcie-80gb": 4096, "l40s": 1024}
    for sku, flops in known.items():
        assert tensor_flops_per_clock(load_machine(sku), "bf16") == flops
    assert tensor_flops_per_clock(H100, "fp8") == 8192


def test_constants_of_every_machine_say_where_they_come_from() -> None:
    for name in machine_names():
        machine = load_machine(name)
        if not machine.peak_flops("bf16") or not machine.boost_hertz:
            with pytest.raises(InputError, match="has no"):
                constants_of(machine, "bf16")
            continue
        result = constants_of(machine, "bf16")
        for constant in (result.l2_latency, result.l2_rate, result.dram_latency, result.dram_rate, result.mma_cycles):
            assert constant.value > 0 and constant.source and constant.mark in ("vendor", "measured", "guess")


def test_shared_memory_part_by_part() -> None:
    result = model(A100, 128, 128, 32, 3, threads=256)
    assert result.step.bytes == 2 * 32 * 256 == 16384
    shared = result.to_json()["shared_bytes"]
    assert shared == {"stages": 49152, "kept": 0, "scales": 0, "barriers": 48, "output_tile": 32768}
    assert result.fit.needs.shared_bytes == 49152 + 48 + 32768
    assert result.fit.accumulators_per_thread == 64 and result.fit.registers_per_thread == 96


def test_blocks_an_sm_and_what_allows_no_more() -> None:
    result = model(A100, 128, 128, 32, 3, threads=256)  # 81,968 bytes and 1 KiB reserved: twice 82,992 > 164 KiB
    assert 2 * (81_968 + 1024) <= 164 * 1024 < 3 * (81_968 + 1024)
    assert (result.fit.blocks_per_sm, result.full) == (2, "registers_per_sm")  # 3 * 256 * 96 * 4 > 256 KiB as well
    assert result.slots == 216 and result.waves == math.ceil(1000 / 216)
    assert result.last_wave_use == pytest.approx((1000 - 4 * 216) / 216)
    wide = model(A100, 256, 128, 32, 2, threads=256)  # 160 registers a thread: 256 * 160 * 4 = 160 KiB of 256
    assert (wide.fit.blocks_per_sm, wide.full) == (1, "registers_per_sm")


def test_bytes_in_flight_against_latency_times_bandwidth() -> None:
    result = model(H100, 128, 256, 64, 4, threads=256)
    l2, dram = result.boundaries
    assert l2.held_bytes == dram.held_bytes == 3 * 64 * 384 * 2  # one of four stages is multiplied
    assert dram.needed_bytes == pytest.approx(dram.latency_cycles * 3350e9 / 1980e6 / 132)
    assert l2.intensity == pytest.approx(2 * 128 * 256 / ((128 + 256) * 2))
    assert dram.intensity == pytest.approx(1000)
    assert dram.balance == pytest.approx(4096 / (3350e9 / 1980e6 / 132)) and dram.side == "compute"
    assert dram.least_stages == math.ceil(dram.latency_cycles / 1024) + 1  # 2 * 128 * 256 * 64 / 4096 = 1024


def test_what_does_not_fit_says_which_limit() -> None:
    result = model(A100, 256, 256, 64, 4)
    broken = {over.limit for over in result.fit.over}
    assert not result.fit.fits and {"registers_per_sm", "shared_per_block"} <= broken
    assert any("shared memory" in text for text in result.to_json()["limits"])
    many = fits(A100, tile_needs(64, 64, 32, 2, 2, threads=2048))
    assert "threads_per_block" in {over.limit for over in many.over}
    assert "2,048 threads" in str(next(over for over in many.over if over.limit == "threads_per_block"))


def test_a_budget_of_registers() -> None:
    with pytest.raises(InputError, match=r"128 \* 128 / 256 = 64 fp32 accumulators a thread"):
        check_registers(A100, 128, 128, 256, 32)
    check_registers(A100, 128, 128, 256, 96)
    check_registers(load_machine("b200-sxm"), 128, 128, 256, 32)  # they stand in tensor memory


def test_own_constants() -> None:
    own = constants_of(H100, "bf16").with_values(dram_latency=700, l2_rate=64)
    assert (own.dram_latency.value, own.dram_latency.mark, own.l2_rate.value) == (700, "user", 64)
    for wrong in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="dram_latency: got"):
            own.with_values(dram_latency=wrong)


@given(
    st.sampled_from([64, 128, 256]), st.sampled_from([64, 128, 256]), st.sampled_from([32, 64]), st.integers(1, 3),
    st.sampled_from(["a100-sxm4-40gb", "h100-sxm5-80gb", "l40s", "a40"]),
)  # fmt: skip
def test_the_most_stages_and_blocks_are_the_most(bm: int, bn: int, bk: int, blocks: int, sku: str) -> None:
    machine = load_machine(sku)
    single = tile_needs(bm, bn, bk, 1, 2, out_bytes=2)

    def shared_fits(stages: int, count: int) -> bool:
        broken = fits(machine, replace(single, stages=stages), count).over
        return not any(over.limit.startswith("shared") for over in broken)

    most = most_stages(machine, single, blocks)
    if shared_fits(1, blocks):
        assert shared_fits(most, blocks) and (most == 64 or not shared_fits(most + 1, blocks))
    result = most_blocks(machine, single)
    if result.fits:
        assert not fits(machine, single, result.blocks_per_sm + 1).fits


def test_scales_and_output_tile_do_not_count_as_values() -> None:
    plain, more = KernelNeeds(10, 0, 4, 2, 2), KernelNeeds(10, 0, 4, 2, 2, 100, 1000)
    assert plain.values == more.values
    assert more.shared_bytes == plain.shared_bytes + 2 * 100 + 1000

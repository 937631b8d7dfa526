"""What holds the pipes of an SM: products, exponentials, activations, promoted sums; alone, in turns, in pairs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pebble.families import kernel_family
from pebble.models.machine import load_machine
from pebble.schedules.tile import TileShape
from pebble.timing.sustained import Rates, sustained_rates
from pebble.timing.waves import modelled_time
from pebble.workloads import Attention, Ffn, Gemm
from pebble.workloads.workload import Workload
from tests.timing.test_waves import ENDLESS, H100, config_of


@pytest.mark.parametrize(("dim", "tile"), [(128, TileShape(128, 128, 1)), (256, TileShape(128, 64, 1))])
def test_exponentials_run_beside_products_in_the_exported_tile_alone(dim: int, tile: TileShape) -> None:
    rates = replace(sustained_rates(H100, "bf16"), throttle=0.0)
    assert rates.exported and not sustained_rates(load_machine("a100-sxm4-40gb"), "bf16").exported
    workload = Attention(8192, 8192, dim, heads=64)
    family = kernel_family(workload)

    def seconds(tile: TileShape, rates: Rates, workload: Workload = workload) -> float:
        config = config_of(H100.sms, stages=2, free=True, tile=tile, cache_bytes=H100.l2_bytes)
        program = family.program(workload, family.parse_schedule("fa3"), config)
        return modelled_time(program, config, rates, workload.compulsory_bytes).seconds

    plain = replace(rates, exported=False)
    flops, exps = workload.flops / H100.sms, 64 * 8192**2 / H100.sms
    assert seconds(tile, rates) == pytest.approx(max(flops / rates.flops, exps / rates.exps) / 1e9, rel=0.2)
    waits = workload.heads * 8192**2 / (tile.bm * tile.bn) / H100.sms * rates.wait  # in every step of one block an SM
    assert seconds(tile, plain) == pytest.approx((flops / rates.flops + exps / rates.exps + waits) / 1e9, rel=0.1)
    assert seconds(tile, rates) < 0.85 * seconds(tile, plain)
    other = TileShape(64, 64, 1)
    assert seconds(other, rates) == seconds(other, plain)
    masked = workload.replaced(causal=True)
    steps = (8192 // tile.bm + 1) / 2 * tile.bm / tile.bn  # of a block, on the mean: one more where a mask crosses it
    half = seconds(tile, rates, masked) / seconds(tile, rates)
    assert half == pytest.approx((steps + 1) / (8192 / tile.bn), rel=0.06)


@pytest.mark.parametrize("free", [True, False])
def test_blocks_on_one_sm_hide_only_their_waits(free: bool) -> None:
    known = sustained_rates(H100, "bf16")
    rates = replace(ENDLESS, flops=known.flops, exps=known.exps, wait=known.wait)
    workload, tile = Attention(4096, 4096, 64, heads=H100.sms), TileShape(64, 64, 1)
    family = kernel_family(workload)

    def seconds(blocks: int, rates: Rates = rates) -> float:
        config = config_of(H100.sms, blocks, 2, free, tile=tile, cache_bytes=H100.l2_bytes)
        program = family.program(workload, family.parse_schedule("fa2"), config)
        return modelled_time(program, config, rates, workload.compulsory_bytes).seconds

    one, two, four = map(seconds, (1, 2, 4))
    busy = (workload.flops / H100.sms / rates.flops + 4096**2 / rates.exps) / 1e9
    assert busy < four < two < one
    assert two / one == pytest.approx(0.586, abs=0.02) and four / one == pytest.approx(0.424, abs=0.02)
    unwaited = [seconds(blocks, replace(rates, wait=0.0)) for blocks in (1, 4)]
    assert unwaited == pytest.approx([busy, busy])


def test_an_activation_holds_the_special_function_units() -> None:
    rates = replace(sustained_rates(H100, "bf16"), throttle=0.0)
    network, config = Ffn(4096, 1024, 4096), config_of(H100.sms, 3, tile=TileShape(128, 256, 64))
    family = kernel_family(network)
    program = family.program(network, family.parse_schedule("separate:row"), config)
    first, second = program.groups[0].phases
    assert first.activations == 128 * 256 and second.activations == 0
    without = program._replace(groups=[replace(program.groups[0], phases=[replace(first, activations=0), second])])
    times = [modelled_time(each, config, rates, network.compulsory_bytes).seconds for each in (program, without)]
    waves = -(-(4096 // 128) * (4096 // 256) // H100.sms)
    assert times[0] - times[1] == pytest.approx(waves * 128 * 256 / rates.exps / 1e9)


def test_promoted_sums_hold_the_vector_pipes() -> None:
    rates = replace(sustained_rates(H100, "fp8"), throttle=0.0)
    gemm, config = Gemm(4096, 4096, 4096, dtype="fp8"), config_of(H100.sms, 3, tile=TileShape(128, 128, 128))
    family = kernel_family(gemm)
    program = family.program(gemm, family.parse_schedule("row"), config)
    computed = [
        modelled_time(program, config, replace(rates, promotions=each), gemm.compulsory_bytes).compute_seconds
        for each in (0, 0.25, 1)
    ]
    a_step = 128 * 128 / rates.vector / 1e9
    steps = -(-(32 * 32) // H100.sms) * 32  # of the busiest SM
    assert computed[1] - computed[0] == pytest.approx(steps * a_step / 4)
    assert computed[2] - computed[0] == pytest.approx(steps * a_step)


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("gated", [True, False])
def test_the_down_product_of_a_gated_network_alone_goes_in_pairs(gated: bool, free: bool) -> None:
    rates = replace(sustained_rates(H100, "bf16"), throttle=0.0)
    network = Ffn(4096, 4096, 14336, gated=gated)
    family = kernel_family(network)
    config = config_of(H100.sms, stages=3, free=free, tile=TileShape(128, 128, 64), cache_bytes=H100.l2_bytes)
    program = family.program(network, family.parse_schedule("separate:grouped-8"), config)
    whole = [replace(phase, cut_rest="") for phase in program.groups[0].phases]  # the last round apart
    program = program._replace(groups=[replace(program.groups[0], phases=whole)])
    exported, plain = (
        modelled_time(program, config, replace(rates, exported=each), network.compulsory_bytes)
        for each in (True, False)
    )
    assert exported.compute_seconds == plain.compute_seconds
    assert (exported.shared_seconds < plain.shared_seconds) == (exported.l2_bytes < plain.l2_bytes) == gated


def test_a_single_launch_is_slowed_by_the_power_limit_no_more_than_a_sustained_run() -> None:
    config = config_of(H100.sms, tile=TileShape(128, 128, 64), cache_bytes=H100.l2_bytes)
    product = Gemm(8192, 16384, 8192)
    family, rates = kernel_family(product), sustained_rates(H100, "bf16")
    program = family.program(product, family.parse_schedule("grouped-8"), config)
    time = modelled_time(program, config, rates, product.compulsory_bytes)
    assert time.throttled_seconds > 0
    less = time.at_most(time.seconds - time.throttled_seconds / 2)
    assert less.seconds == pytest.approx(time.seconds - time.throttled_seconds / 2)
    assert less.throttled_seconds == pytest.approx(time.throttled_seconds / 2)
    assert time.at_most(0.0).seconds == pytest.approx(time.seconds - time.throttled_seconds)
    assert time.at_most(2 * time.seconds) == time

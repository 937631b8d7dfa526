"""Quick looks: each wave's misses in closed form, and bytes, time and energy beside the full simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pebble.families import kernel_family
from pebble.families.spaces.candidate import Candidate, estimated_traffic
from pebble.families.spaces.gemm import GemmSpace
from pebble.models.caches import parse_policy
from pebble.models.machine import load_machine
from pebble.schedules.execution import WAVES
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.timing.power import both_times, power_of
from pebble.timing.sustained import sustained_rates
from pebble.timing.waves import modelled_time
from pebble.traces import LINE_BYTES, READ
from pebble.tuning.advisors.coarse import coarse_seconds, coarse_time, quick_look
from pebble.workloads import Gemm

H200 = load_machine("h200-sxm-141gb")
POWER, RATES = power_of(H200, "bf16", H200.sms), sustained_rates(H200, "bf16")


def config(tile: TileShape, policy: str = H200.default_model.policy, cache: int = H200.l2_bytes) -> KernelConfig:
    """On an H200."""
    return KernelConfig(tile, H200.sms, 1, cache, policy, WAVES, 4)


@pytest.mark.parametrize("order", ["row", "grouped-3", "hilbert+sawtooth"])
@pytest.mark.parametrize("megabytes", [1, 3, 40])
def test_misses_of_each_wave_are_those_of_the_trace(order: str, megabytes: int) -> None:
    gemm, how = Gemm(1500, 2300, 700), config(TileShape(64, 128, 64), "lru", megabytes << 20)
    family = kernel_family(gemm)
    counted = family.simulate(gemm, parse_order(order), how).counts.read_misses_of_waves
    engine = parse_policy("lru").engine(
        how.trace(family.program(gemm, parse_order(order), how)), how.cache_bytes // LINE_BYTES
    )
    traced = [int(np.sum(missed * (chunk.ops == READ))) for chunk, missed in engine.passed()]
    assert list(counted) == traced and len(traced) == 4


@pytest.mark.parametrize(
    ("shape", "at_a_cliff"),  # where an LRU keeps nothing of what is just too large, and the chip's own cache some
    [((8192, 8192, 1024), True), ((4096, 14336, 4096), False), ((2048, 2048, 8192), False), ((640, 8192, 4096), False)],
)
@pytest.mark.parametrize("order", ["row", "grouped-8"])
def test_a_quick_look_is_near_the_simulation(shape: tuple[int, int, int], at_a_cliff: bool, order: str) -> None:
    gemm, how, family = Gemm(*shape), config(TileShape(128, 256, 64)), kernel_family(Gemm(1, 1, 1))
    assert POWER is not None
    look = quick_look(family, gemm, Candidate(parse_order(order), how), RATES, POWER)
    program = family.program(gemm, parse_order(order), how)
    whole = modelled_time(program, how, RATES)
    single, again = both_times(program, how, whole, POWER)
    assert again is not None and look.sustained is not None and look.ranked_seconds == look.sustained.seconds
    assert look.dram_bytes == pytest.approx(whole.dram_bytes, rel=0.5 if at_a_cliff else 0.06)
    assert look.seconds == pytest.approx(single.seconds, rel=0.02)
    assert look.ranked_seconds == pytest.approx(again.seconds, rel=0.03 if at_a_cliff else 0.02)
    assert look.sustained.total_joules == pytest.approx(again.total_joules, rel=0.04)


@pytest.mark.parametrize("shape", [(2432, 2816, 256), (896, 1152, 1440)])  # where 16 steps are an odd number of tiles
def test_tiles_of_half_a_line_are_looked_at_in_whole_lines(shape: tuple[int, int, int]) -> None:
    gemm, how = Gemm(*shape), config(TileShape(128, 128, 32))
    family, order = kernel_family(gemm), parse_order("hilbert")
    moves = estimated_traffic(family, GemmSpace(), gemm, Candidate(order, how))
    assert moves is not None and len(moves.counts.read_misses_of_waves) > 0  # in closed form, without a trace
    program = family.program(gemm, order, how)
    whole, _ = both_times(program, how, modelled_time(program, how, RATES), POWER)
    look = quick_look(family, gemm, Candidate(order, how), RATES, POWER)
    assert (look.dram_bytes, look.seconds) == pytest.approx((whole.dram_bytes, whole.seconds), rel=0.01)


def test_without_prices_a_look_is_of_a_single_launch() -> None:
    gemm, how, family = Gemm(2048, 2048, 2048), config(TileShape(128, 128, 64)), kernel_family(Gemm(1, 1, 1))
    look = quick_look(family, gemm, Candidate(parse_order("row"), how), RATES, None)
    assert look.sustained is None and look.ranked_seconds == look.seconds > 0


def test_what_does_not_fit_the_cache_is_not_looked_at() -> None:
    gemm, how, family = (
        Gemm(2048, 2048, 64),
        config(TileShape(256, 256, 64), "lru", 1 << 16),
        kernel_family(Gemm(1, 1, 1)),
    )
    look = quick_look(family, gemm, Candidate(parse_order("row"), how), RATES, POWER)
    assert math.isinf(look.dram_bytes) and math.isinf(look.ranked_seconds)


def test_nobody_waits_for_compulsory_bytes() -> None:
    gemm, tile = Gemm(4096, 4096, 4096), TileShape(128, 256, 64)
    seconds = coarse_seconds(gemm, tile, 4, 132, 1, RATES)
    family = kernel_family(gemm)
    moves = family.simulate(gemm, parse_order("row"), config(tile, "lru"))
    assert seconds <= coarse_time(gemm, tile, 4, 132, 1, RATES, moves).seconds

"""A quick look at the time of a kernel, before anything is simulated: counts in place of a trace.

It is the wave model of `pebble.timing.waves`: the slowest of compute, shared memory, L2, DRAM and latency in a full
wave, times the waves, and in the last one; attention's shared memory is left out. DRAM moves what `estimated_traffic`
says, or the compulsory bytes, evenly. It only decides what is simulated, in which order; what is shown is the model
itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pebble.errors import InputError
from pebble.families.family import KernelFamily
from pebble.families.spaces.candidate import Candidate, estimated_traffic, program_of
from pebble.schedules.execution import FREE
from pebble.schedules.kernel import Work
from pebble.schedules.last_round import LastRound, last_round
from pebble.schedules.tables.registry import KERNELS
from pebble.schedules.tile import TileShape
from pebble.simulation import Traffic
from pebble.timing.modelled import ModelledTime, Wave, in_turn, throttled_seconds, time_of_waves
from pebble.timing.power import Power, Sustained, both_times
from pebble.timing.sustained import Rates
from pebble.traces import LINE_BYTES
from pebble.units import ceil_div
from pebble.workloads.workload import Workload

_SAMPLED_WAVES = 3  # in which who shares what is looked at
_L2_BYTES = 50 << 20  # of the chips for which files are exported that cut their last round


def step_ns(launch: Work, rates: Rates, sms: int, together: int = 1) -> tuple[float, float]:
    """Nanoseconds of a step of one of the blocks that share an SM: to compute, and to load while all SMs load."""
    compute = in_turn(together, *rates.compute(launch.step_flops, launch.step_exps, launch.overlapped)) / together
    lines = launch.bytes / launch.blocks / launch.steps / LINE_BYTES
    return max(compute, launch.step_shared / rates.shared), lines / min(rates.port, rates.lines / sms)


def coarse_seconds(
    workload: Workload, tile: TileShape, stages: int, sms: int, blocks_per_sm: int, rates: Rates
) -> float:  # fmt: skip
    """About the least time that a kernel takes: as if it moved the compulsory bytes, and nobody waited for them."""
    work = KERNELS[workload.family].work(workload, tile)
    alike = _waves(work, workload.compulsory_bytes / LINE_BYTES, 0.0, tile, stages, sms, blocks_per_sm, rates)
    launches = _launches(work, tile, sms * blocks_per_sm, rates)
    return sum(count * wave.seconds for wave, count in alike) + launches * rates.launch / 1e9


def coarse_time(
    workload: Workload,
    tile: TileShape,
    stages: int,
    sms: int,
    blocks_per_sm: int,
    rates: Rates,
    moves: Traffic | None = None,
) -> ModelledTime:
    """About the time of a kernel that moves what was counted; by default the compulsory bytes, for which nobody waits.

    Of a product each wave fetches what it misses by the closed form; what stays dirty at the end is written in the
    first, as in a stream of equal launches.
    """
    rates = rates if moves is None else rates.with_writes(moves.counts.written_share)
    work = KERNELS[workload.family].work(workload, tile)
    lines = (workload.compulsory_bytes if moves is None else moves.dram_bytes) / LINE_BYTES
    alike = _waves(work, lines, 0.0 if moves is None else lines, tile, stages, sms, blocks_per_sm, rates)
    waves = [wave for wave, count in alike for _ in range(count)]
    if moves is not None and len(moves.counts.read_misses_of_waves) == len(waves):
        waves = _with_misses(waves, moves, rates)
    traffic, loaded = round(lines) * LINE_BYTES, sum(launch.bytes for launch in work)
    launches = _launches(work, tile, sms * blocks_per_sm, rates)
    return time_of_waves(waves, launches * rates.launch / 1e9, traffic, loaded)


def _waves(
    work: Sequence[Work],
    lines: float,
    waited: float,
    tile: TileShape,
    stages: int,
    sms: int,
    blocks_per_sm: int,
    rates: Rates,
) -> Iterator[tuple[Wave, int]]:
    """The waves of each launch, and how many are alike; ``lines`` from DRAM, for ``waited`` of which a block waits."""
    operations = [launch.blocks * launch.steps * launch.step_flops for launch in work]
    for launch, share in zip(work, operations, strict=True):
        full, last = divmod(launch.blocks, sms * blocks_per_sm)
        dram = lines * share / sum(operations) / launch.blocks / rates.dram_lines
        missed = waited * share / sum(operations) / (launch.bytes / LINE_BYTES)
        latency = rates.hit + rates.miss * min(1.0, missed)
        rest = _last_round(launch, tile, sms * blocks_per_sm, rates)
        for running, count, end in ((sms * blocks_per_sm, full, LastRound()), (last, int(last > 0), rest)):
            if not count:
                continue
            busiest = ceil_div(running, sms)
            step, load = step_ns(launch, rates, sms, busiest)
            chain = end.share * launch.steps * (latency + busiest * (step + load)) / stages
            chain = max(chain, end.steps * launch.steps * rates.step)
            needs = (
                end.share * busiest * launch.steps * step, 0.0, end.loads * launch.steps * load * running / sms,
                dram * running, chain, rates.hit + rates.drain + busiest * launch.activations / rates.exps,
            )  # fmt: skip
            yield Wave(running, *(need / 1e9 for need in needs)), count


def _launches(work: Sequence[Work], tile: TileShape, slots: int, rates: Rates) -> int:
    """Of the whole kernel: one, and one more for each last round that is a launch of its own."""
    return 1 + sum(_last_round(launch, tile, slots, rates).launches for launch in work)


def _last_round(launch: Work, tile: TileShape, slots: int, rates: Rates) -> LastRound:
    """What the last round takes of whole tiles, those in it side by side."""
    if not rates.exported:
        return LastRound()
    apart, held = 2 * math.sqrt(launch.blocks % slots), _L2_BYTES // (tile.bk * (tile.bm + tile.bn))
    return last_round(launch.cut_rest, launch.blocks, launch.steps, slots, tile, apart, held)


def _with_misses(waves: list[Wave], moves: Traffic, rates: Rates) -> list[Wave]:
    """Waves that each fetch what they miss, and write their share of the results."""
    resident = moves.residue_bytes / LINE_BYTES
    written = moves.dram_write_bytes / LINE_BYTES - resident
    blocks = sum(wave.blocks for wave in waves)
    results: list[Wave] = []
    for wave, missed in zip(waves, moves.counts.read_misses_of_waves, strict=True):
        here, compute, shared, l2, _, latency, around = wave
        lines = missed + written * here / blocks + (0.0 if results else resident)
        results.append(Wave(here, compute, shared, l2, lines / rates.dram_lines / 1e9, latency, around))
    return results


class QuickLook(NamedTuple):
    """What a kernel moves and takes, about.

    Attributes
    ----------
    dram_bytes : float
        Infinite for what does not fit the cache or takes clearly longer than full waves.
    seconds : float
        Of a single launch.
    sustained : Sustained or None
        Run again and again; None where that is not modelled.
    """

    dram_bytes: float
    seconds: float
    sustained: Sustained | None

    @property
    def ranked_seconds(self) -> float:
        """What `pebble time` ranks by."""
        return self.seconds if self.sustained is None else self.sustained.seconds


def quick_look(
    family: KernelFamily[Any, Any],
    workload: Workload,
    candidate: Candidate,
    rates: Rates,
    power: Power | None,
    free: bool = False,
) -> QuickLook:
    """Bytes, time and energy of one tile and order in waves, without a simulation: half a ms for a product.

    Bytes are those of an LRU in closed form (`estimated_traffic`), time is that of its waves in counts, and requests
    those of a few of them. ``benchmarks/quick_look.py`` sets it beside the full simulation on random layers.

    Parameters
    ----------
    family : KernelFamily
    workload : Workload
    candidate : Candidate
    rates : Rates
    power : Power or None
        Of the chip, as `power_of` gives it.
    free : bool
        Whether requests are merged as those of blocks that run free; bytes are those of waves all the same.
    """
    config = candidate.config
    if family.space is None:
        raise InputError(
            f"{workload.label}: expected a family whose schedules are searched; `pebble time` simulates it."
        )
    moves = estimated_traffic(family, family.space, workload, candidate)
    if moves is None:
        return QuickLook(math.inf, math.inf, None)
    traffic = float(moves.dram_bytes)
    time = coarse_time(
        workload, config.tile, config.stages, config.sms, config.blocks_per_sm, rates, moves
    )  # fmt: skip
    program = program_of(family, workload, candidate)
    if throttled := throttled_seconds(program.flops, config.sms, rates, time.seconds):
        time = replace(time, seconds=time.seconds + throttled, throttled_seconds=throttled)
    there = replace(config, execution=FREE) if free else config
    time, again = both_times(program, there, time, power, _SAMPLED_WAVES)
    return QuickLook(traffic, time.seconds, again)

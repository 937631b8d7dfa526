"""A quick look at the time of a kernel, before anything is simulated: as if DRAM moved the compulsory bytes evenly.

It is the wave model of `pebble.timing.waves` with counts in place of a trace: the slowest of compute, shared memory,
L2, DRAM and latency in a full wave, times the waves; attention's shared memory is left out. It only decides what is
simulated, in which order; what is shown is the model itself.
"""

from __future__ import annotations

from pebble.schedules.kernel import Work
from pebble.schedules.tables.registry import KERNELS
from pebble.schedules.tile import TileShape
from pebble.timing.sustained import Rates
from pebble.traces import LINE_BYTES
from pebble.units import ceil_div
from pebble.workloads.base import Workload


def step_ns(launch: Work, rates: Rates, sms: int) -> tuple[float, float]:
    """Nanoseconds of a step of a block alone on its SM: to compute, and to load while all SMs load."""
    compute = launch.step_flops / rates.flops + launch.step_exps / rates.exps
    lines = launch.bytes / launch.blocks / launch.steps / LINE_BYTES
    return max(compute, launch.step_shared / rates.shared), lines / min(rates.port, rates.lines / sms)


def coarse_seconds(
    workload: Workload, tile: TileShape, stages: int, sms: int, blocks_per_sm: int, rates: Rates
) -> float:  # fmt: skip
    """About the least time that a kernel takes."""
    work = KERNELS[workload.family].work(workload, tile)
    operations = [launch.blocks * launch.steps * launch.step_flops for launch in work]
    lines = workload.compulsory_bytes / LINE_BYTES
    total = rates.launch
    for launch, share in zip(work, operations, strict=True):
        full, last = divmod(launch.blocks, sms * blocks_per_sm)
        step, load = step_ns(launch, rates, sms)
        dram = lines * share / sum(operations) / launch.blocks / rates.dram_lines
        for running, count in ((sms * blocks_per_sm, full), (last, last > 0)):
            if not count:
                continue
            busiest = ceil_div(running, sms)
            chain = launch.steps * max(rates.step, (rates.hit + busiest * (step + load)) / stages)
            slowest = max(busiest * launch.steps * max(step, load * running / sms / busiest), dram * running, chain)
            total += count * (slowest + rates.hit + rates.drain)
    return total / 1e9

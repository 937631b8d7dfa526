"""The kernel whose modelled time is least under the chip's own cache model.

Tried are block tiles that fit the chip with an output tile, barriers and scales, as many stages as the latency of a
miss asks for, and one to three blocks an SM. All are timed at a glance, as if DRAM moved no more than the compulsory
bytes. From the least of these on, the orders in daily use are run through the cache model and timed wave by wave
(`pebble.timing.waves`): a dozen tiles, and more as long as one may still be faster than the best found. What the other
advisors choose is timed beside, so the first is never slower than theirs. Of equal times the fewer DRAM bytes win.

The model knows no multicast: where a rule multicasts, its reads of L2 are counted as if it did not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from pebble.errors import InputError
from pebble.families import KernelFamily, kernel_family
from pebble.models.kernel_fit import KernelNeeds, fits, most_stages
from pebble.models.machine import Machine
from pebble.models.tile_model import BARRIER_BYTES, least_threads
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.system.clock import Clock
from pebble.timing.sustained import sustained_rates
from pebble.timing.waves import ModelledTime, modelled_time
from pebble.tuning.advisors.base import Advice, Advisor
from pebble.tuning.advisors.coarse import coarse_seconds, step_ns
from pebble.tuning.progress import Progress, silent
from pebble.units import ceil_div
from pebble.workloads.base import Workload

ROWS = (16, 32, 64, 128, 192, 256)
COLUMNS = (16, 32, 64, 96, 128, 192, 256)
LEAST_SIDE = 64  # of a tile in a problem that is larger
SECONDS = 20.0
MOST_LINES = 1 << 29  # loaded from L2, that a simulation follows: about 3 s; a kernel that loads more is done in part
MOST_SINGLE_LINES = MOST_LINES >> 5  # where the trace is one of single lines, in the same time
_BLOCKS = (1, 2, 3)
_MOST_STAGES = 8
_SHOWN, _TILES = 12, 36  # tiles that are simulated: so many, and at most, while one may still be faster


@dataclass(frozen=True)
class Timed:
    """A kernel and its modelled time."""

    advice: Advice
    time: ModelledTime


class Ours(Advisor):
    """``ours``."""

    name = "ours"
    what = "least modelled time under the chip's own cache model"
    source = "pebble.tuning.advisors.ours"

    def advise(self, workload: Workload, machine: Machine, sms: int) -> list[Advice]:
        """What was timed, the fastest first."""
        return [timed.advice for timed in best_timed(workload, machine, sms, ())]


class Timer:
    """Times kernels on a chip, each schedule under a tile once.

    Raises
    ------
    InputError
        No kernels of the family, or a machine file without the numbers.
    """

    def __init__(self, workload: Workload, machine: Machine, progress: Progress = silent) -> None:
        self.workload, self.machine, self.progress = workload, machine, progress
        self.family: KernelFamily[Any, Any] = kernel_family(workload)
        self.rates = sustained_rates(machine, workload.dtype)
        self._known: dict[tuple[Any, ...], ModelledTime] = {}

    def needs(self, tile: TileShape, stages: int) -> KernelNeeds:
        """As the family says, with the threads that the chip asks for."""
        needs = self.family.advised_needs(self.workload, tile, stages)
        return replace(needs, threads=max(least_threads(self.machine), fits(self.machine, needs).threads))

    def timed(self, advice: Advice) -> Timed:
        """Run through the cache model, the first part of a long kernel, and time.

        Raises
        ------
        InputError
            Too large to simulate.
        """
        tile = self.family.cut_tile(advice.tile, self.workload)
        policy = self.machine.default_model.policy
        config = KernelConfig(
            tile, advice.sms, advice.blocks_per_sm, self.machine.l2_bytes, policy,
            stages=advice.stages,
        )  # fmt: skip
        key = config, advice.schedule.name
        if key not in self._known:
            self.family.check(self.workload, config)
            program = self.family.program(self.workload, advice.schedule, config)
            self.progress(f"tile {self.family.tile_text(tile)}, {advice.schedule.name}", len(self._known), 0)
            most = MOST_SINGLE_LINES if program.layout.splits_lines else MOST_LINES
            self._known[key] = modelled_time(program, config, self.rates, most_lines=most)
        found = self._known[key]
        return Timed(replace(advice, score=found.seconds), found)

    def fastest(self, advice: Advice) -> Timed:
        """With the order in daily use that takes least."""
        orders = [self.family.parse_schedule(name) for name in self.family.daily]
        return min((self.timed(replace(advice, schedule=order)) for order in orders), key=_rank)


def _rank(timed: Timed) -> tuple[float, int]:
    return timed.time.seconds, timed.time.dram_bytes


def best_timed(
    workload: Workload, machine: Machine, sms: int, seeds: tuple[Advice, ...], progress: Progress = silent
) -> list[Timed]:
    """Kernels with their modelled time, the fastest first, each tile with its best order.

    Parameters
    ----------
    workload : Workload
        GEMM, grouped GEMM, FFN or attention.
    machine : Machine
    sms : int
    seeds : tuple of Advice
        Of other advisors, timed beside.
    progress : callable
        Called with each kernel that is about to be timed.

    Returns
    -------
    list of Timed
        At most some 40; cost: seconds, and after 20 nothing new is begun. A simulation takes 3 s at most.

    Raises
    ------
    InputError
        As `Timer`, or nothing fits.
    """
    timer, clock = Timer(workload, machine, progress), Clock(SECONDS)
    found, refused = [], None
    for advice in seeds:
        try:
            found.append(timer.timed(advice))
        except InputError as error:
            refused = error
    best = min((timed.time.seconds for timed in found), default=float("inf"))
    kernels = list(_kernels(timer, sms))
    hopeful = sorted((kernel.score, i) for i, kernel in enumerate(kernels))
    for tried, (seconds, i) in enumerate(hopeful[:_TILES]):
        if tried and ((tried >= _SHOWN and seconds >= best) or clock.why_over()):
            break
        try:
            found.append(timer.fastest(kernels[i]))
        except InputError as error:  # too many of these tiles to simulate; a larger one may do
            refused = error
            continue
        best = min(best, found[-1].time.seconds)
    if not found and refused is not None:
        raise refused
    if not found:
        raise InputError(f"tile: got {workload.label}, expected a workload with a tile that fits {machine.name}.")
    return sorted(found, key=_rank)


def _kernels(timer: Timer, sms: int) -> Iterator[Advice]:
    """All that fit, timed at a glance, with the first order in daily use for the time being."""
    workload, machine, family = timer.workload, timer.machine, timer.family
    schedule = family.parse_schedule(family.daily[0])
    for tile in _tiles(timer):
        work = family.kernel.work(workload, tile)
        launch, most = work[0], max(each.blocks for each in work)
        # ceil(latency / time of a step) + 1, for a latency that holds the way to DRAM; and a round of all stages, in
        # which a buffer waits for its tiles and is computed with, takes no longer than their work
        latency, step = timer.rates.hit + timer.rates.miss, step_ns(launch, timer.rates, sms)
        wanted = max(1 + ceil(latency / max(step)), ceil((latency + sum(step)) / max(step)))
        for blocks in _BLOCKS[: ceil_div(most, sms)]:  # more would stay empty
            one = timer.needs(tile, 1)
            stages = min(wanted, _MOST_STAGES, most_stages(machine, one, blocks))
            needs = timer.needs(tile, stages)
            barriers = BARRIER_BYTES * (needs.stage_more_bytes > 0)
            fit = fits(machine, needs, blocks)
            if not fit.fits or stages < 2:
                break
            glance = coarse_seconds(workload, tile, stages, sms, blocks, timer.rates)
            yield Advice(
                tile, stages, fit.threads, sms, blocks, needs, schedule, "none", glance, Ours.name,
                stages * (needs.stage_more_bytes - barriers), stages * barriers,
            )  # fmt: skip


def _tiles(timer: Timer) -> Iterator[TileShape]:
    """Sides from 64 up, smaller ones where the problem is smaller, and none beyond the first that covers it.

    Columns are whole cache lines: blocks that share lines would load them twice, and FFNs read H in steps of BK.
    """
    workload, family = timer.workload, timer.family
    depth = family.default_tile(workload).bk  # a cache line, or 1 where a step takes whole rows
    widest = family.cut_tile(TileShape(1 << 16, 1 << 16, depth), workload)
    for bm in _sides(ROWS, widest.bm, 1):
        for bn in _sides(COLUMNS, widest.bn, depth):
            yield TileShape(bm, bn, depth)


def _sides(sides: tuple[int, ...], extent: int, line: int) -> tuple[int, ...]:
    covering = tuple(side for i, side in enumerate(sides) if i == 0 or sides[i - 1] < extent)
    least = min(LEAST_SIDE, covering[-1])
    whole = tuple(side for side in covering if side >= least and side % line == 0)
    return whole or covering[-1:]

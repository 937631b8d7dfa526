"""The kernel whose modelled time is least under the chip's own cache model.

Tried are block tiles that fit the chip with an output tile, barriers and scales, as many stages as the latency of a
miss asks for, and one to three blocks an SM. All are timed at a glance, as if DRAM moved no more than the compulsory
bytes. From the least of these on, the orders in common use are run through the cache model and timed wave by wave
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
from pebble.models.rates import speeds_of
from pebble.models.tile_model import BARRIER_BYTES, least_threads
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.timing.modelled import ModelledTime
from pebble.timing.power import Power, Sustained, both_times, power_of
from pebble.timing.sustained import sustained_rates
from pebble.timing.waves import modelled_time
from pebble.traces.program import Program
from pebble.tuning.advisors.advisor import Advice, Advisor
from pebble.tuning.advisors.coarse import coarse_seconds, step_ns
from pebble.tuning.progress import Progress, silent
from pebble.units import ceil_div
from pebble.workloads.workload import Workload

ROWS = (16, 32, 64, 128, 192, 256)
COLUMNS = (16, 32, 64, 96, 128, 192, 256)
LEAST_SIDE = 64  # of a tile in a problem that is larger
# loaded from L2, that a simulation follows: about 0.2 s; a kernel that loads more is done in part. Four times as many
# change modelled times of large layers by less than 0.1 %, and bytes by up to 3 %
MOST_LINES = 3 << 25
MOST_SINGLE_LINES = MOST_LINES >> 5  # where the trace is one of single lines, in the same time
FREE = 2.75  # times as long as in waves is a simulation of blocks that run free
_BLOCKS = (1, 2, 3)
_TOGETHER, _MOST_PADDING = 16, 1 / 256  # lines that the cache model moves together, where tiles are made of such
_MOST_STAGES = 8
_SHOWN, _TILES = 12, 36  # tiles that are simulated: so many, and at most, while one may still be faster


@dataclass(frozen=True)
class TimedKernel:
    """A kernel and its modelled time: of a single launch, and sustained where that was measured on such a chip."""

    advice: Advice
    time: ModelledTime
    sustained: Sustained | None = None

    @property
    def seconds(self) -> float:
        """Sustained, where that is modelled."""
        return self.time.seconds if self.sustained is None else self.sustained.seconds


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
        self.execution = self.family.advised_execution(workload)
        self.speeds = speeds_of(machine, workload.dtype)
        self._known: dict[tuple[Any, ...], tuple[ModelledTime, Sustained | None]] = {}

    def needs(self, tile: TileShape, stages: int) -> KernelNeeds:
        """As the family says, with the threads that the chip asks for."""
        needs = self.family.advised_needs(self.workload, tile, stages)
        return replace(needs, threads=max(least_threads(self.machine), fits(self.machine, needs).threads))

    def config(self, advice: Advice) -> KernelConfig:
        """The kernel as it is simulated, whatever its order."""
        tile, policy = self.family.cut_tile(advice.tile, self.workload), self.machine.default_model.policy
        return KernelConfig(
            tile, advice.sms, advice.blocks_per_sm, self.machine.l2_bytes, policy, self.execution, advice.stages,
            self.speeds,
        )  # fmt: skip

    def power(self, config: KernelConfig) -> Power | None:
        """What the chip takes, where sustained runs are modelled."""
        return power_of(self.machine, self.workload.dtype, config.sms)

    def timed(self, advice: Advice) -> TimedKernel:
        """Run through the cache model, the first part of a long kernel, and time.

        Raises
        ------
        InputError
            Too large to simulate.
        """
        config = self.config(advice)
        key = config, advice.schedule.name
        if key not in self._known:
            self.family.check(self.workload, config)
            program = self.family.program(self.workload, advice.schedule, config)
            self.progress(f"tile {self.family.tile_text(config.tile)}, {advice.schedule.name}", len(self._known), 0)
            most = most_lines(program, config.execution.is_asynchronous)
            time = modelled_time(program, config, self.rates, most_lines=most)
            self._known[key] = both_times(program, config, time, self.power(config))
        time, often = self._known[key]
        return TimedKernel(replace(advice, score=time.seconds), time, often)

    def fastest(self, advice: Advice) -> TimedKernel:
        """With the order in common use that takes least."""
        orders = [self.family.parse_schedule(name) for name in self.family.baseline]
        return min((self.timed(replace(advice, schedule=order)) for order in orders), key=rank)


def rank(timed: TimedKernel) -> tuple[float, int]:
    """What kernels are ranked by: modelled time, sustained where that is known; in a tie the bytes."""
    return timed.seconds, timed.time.dram_bytes


def most_lines(program: Program, free: bool) -> int:
    """How many loads from L2 of a kernel are followed where an answer is due in seconds.

    Fewer where lines are told apart one by one, where tiles share them, or many tiles have a few alone; and where
    blocks run ``free``.
    """
    lines = -(-program.layout.tile_sectors() // 4)
    few = int((-lines % _TOGETHER).sum()) > lines.sum() * _MOST_PADDING
    most = MOST_SINGLE_LINES if program.layout.splits_lines or few else MOST_LINES
    return int(most / FREE) if free else most


def best_timed(
    workload: Workload, machine: Machine, sms: int, seeds: tuple[Advice, ...], timer: Timer | None = None
) -> list[TimedKernel]:
    """Kernels with their modelled time, the fastest first, each tile with its best order.

    Parameters
    ----------
    workload : Workload
        GEMM, grouped GEMM, FFN or attention.
    machine : Machine
    sms : int
    seeds : tuple of Advice
        Of other advisors, timed beside.
    timer : Timer, optional
        Which knows some times already, and tells of each kernel that is about to be timed.

    Returns
    -------
    list of Timed
        At most some 40; cost: seconds, and of each a few simulations of some 0.3 s at most. No clock decides.

    Raises
    ------
    InputError
        As `Timer`, or nothing fits.
    """
    timer = timer or Timer(workload, machine)
    result, refused = [], None
    for advice in seeds:
        try:
            result.append(timer.timed(advice))
        except InputError as error:
            refused = error
    best = min((timed.seconds for timed in result), default=float("inf"))
    kernels = list(kernels_that_fit(timer, sms)) or list(kernels_that_fit(timer, sms, least=ROWS[0]))
    hopeful = sorted((kernel.score, i) for i, kernel in enumerate(kernels))
    for tried, (seconds, i) in enumerate(hopeful[:_TILES]):
        if tried >= _SHOWN and seconds >= best:
            break
        try:
            result.append(timer.fastest(kernels[i]))
        except InputError as error:  # too many of these tiles to simulate; a larger one may do
            refused = error
            continue
        best = min(best, result[-1].seconds)
    if not result and refused is not None:
        raise refused
    if not result:
        raise InputError(f"tile: got {workload.label}, expected a workload with a tile that fits {machine.name}.")
    return sorted(result, key=rank)


def kernels_that_fit(
    timer: Timer, sms: int, blocks_per_sm: int | None = None, stages: int | None = None, least: int = LEAST_SIDE
) -> Iterator[Advice]:
    """All that fit, timed at a glance (`Advice.score`), with the first order in common use for the time being.

    ``blocks_per_sm`` and ``stages`` where they are asked for; by default what looks fastest, of two stages at least
    where two of any tile fit. ``least``: the least side of a tile in a problem that is larger.
    """
    alone, result = [], False
    workload, machine, family = timer.workload, timer.machine, timer.family
    schedule = family.parse_schedule(family.baseline[0])
    for tile in _tiles(timer, least):
        work = family.kernel.work(workload, tile)
        launch, most = work[0], max(each.blocks for each in work)
        # ceil(latency / time of a step) + 1, for a latency that holds the way to DRAM; and a round of all stages, in
        # which a buffer waits for its tiles and is computed with, takes no longer than their work
        latency, step = timer.rates.hit + timer.rates.miss, step_ns(launch, timer.rates, sms)
        wanted = max(1 + ceil(latency / max(step)), ceil((latency + sum(step)) / max(step)))
        more_stay_empty = _BLOCKS[: ceil_div(most, sms)]
        for blocks in more_stay_empty if blocks_per_sm is None else (blocks_per_sm,):
            single = timer.needs(tile, 1)
            held = min(wanted, _MOST_STAGES, most_stages(machine, single, blocks)) if stages is None else stages
            needs = timer.needs(tile, held)
            barriers = BARRIER_BYTES * (needs.stage_more_bytes > 0)
            fit = fits(machine, needs, blocks)
            if not fit.fits:
                break
            seconds = coarse_seconds(workload, tile, held, sms, blocks, timer.rates)
            kernel = Advice(
                tile, held, fit.threads, sms, blocks, needs, schedule, "none", seconds, Ours.name,
                held * (needs.stage_more_bytes - barriers), held * barriers,
            )  # fmt: skip
            if stages is None and held < 2:
                alone.append(kernel)
                break
            result = True
            yield kernel
    if not result:
        yield from alone


def _tiles(timer: Timer, least: int) -> Iterator[TileShape]:
    """Sides from the least up, smaller ones where the problem is smaller, and none beyond the first that covers it.

    Columns are whole cache lines: blocks that share lines would load them twice, and FFNs read H in steps of BK.
    """
    workload, family = timer.workload, timer.family
    depth = family.default_tile(workload).bk  # a cache line, or 1 where a step takes whole rows
    widest = family.cut_tile(TileShape(1 << 16, 1 << 16, depth), workload)
    for bm in _sides(ROWS, widest.bm, 1, least):
        for bn in _sides(COLUMNS, widest.bn, depth, least):
            yield TileShape(bm, bn, depth)


def _sides(sides: tuple[int, ...], extent: int, line: int, least: int) -> tuple[int, ...]:
    covering = tuple(side for i, side in enumerate(sides) if i == 0 or sides[i - 1] < extent)
    least = min(least, covering[-1])
    whole = tuple(side for side in covering if side >= least and side % line == 0)
    return whole or covering[-1:]

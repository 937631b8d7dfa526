"""Which kernel to run, found in seconds: of the tiles that look fastest, the tile and order of least modelled time.

Every tile that fits the chip, and that `pebble export` can write, is timed at a glance
(`pebble.tuning.advisors.coarse`). Under the one that looks fastest the orders in common use are run through the cache
model and timed wave by wave; the few that look nearly as fast run the best of these. Under the tile of least time so
found all orders are run, or, where that takes long, such as look fastest at a glance.

Where one tile looks fastest alone, which is so for most products, its kernel is known before anything is simulated.
What was found is kept: in one process every command asks for the same kernel, and gets it at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from pebble.errors import InputError
from pebble.models.machine import Machine
from pebble.models.tile_model import WARPGROUPS
from pebble.system.parallel import each
from pebble.tuning.advisors.advisor import Advice
from pebble.tuning.advisors.ours import LEAST_SIDE, ROWS, TimedKernel, Timer, kernels_that_fit, rank
from pebble.tuning.progress import Progress, silent
from pebble.tuning.worth import pick, tried_first, worth_simulating
from pebble.workloads.workload import Workload

_NEAR = 1.02  # times the least at a glance: such a tile is tried as well
_TILES = 3
_CACHED = 64  # questions of which the answer is kept


@dataclass(frozen=True)
class Choice:
    """A kernel, and what else was tried.

    Attributes
    ----------
    orders : tuple of Timed
        Orders under one tile, each walk once: the one to run first, then the others by time.
    tiles : tuple of Timed
        Other tiles, each with its fastest order that was tried.
    """

    orders: tuple[TimedKernel, ...]
    tiles: tuple[TimedKernel, ...]

    @property
    def best(self) -> TimedKernel:
        """Of all that were tried, the least modelled time, sustained where that is known; in a tie the fewest bytes.

        One in common use where it is as fast, as far as the model can tell (`pick`).
        """
        return self.orders[0]


@dataclass(frozen=True)
class Question:
    """What a kernel is chosen for.

    Attributes
    ----------
    workload : Workload
        GEMM, grouped GEMM, FFN or attention.
    machine : Machine
    sms : int
        That it may use.
    blocks_per_sm, stages : int, optional
        That are asked for.
    """

    workload: Workload
    machine: Machine
    sms: int
    blocks_per_sm: int | None = None
    stages: int | None = None


class Chooser:
    """Answers a question, and keeps what it timed.

    Parameters
    ----------
    question : Question

    Raises
    ------
    InputError
        No kernels of the family, a machine file without the rates, or nothing fits.
    """

    def __init__(self, question: Question) -> None:
        self.question = question
        self.timer = Timer(question.workload, question.machine)
        for least in (LEAST_SIDE, ROWS[0]):  # wide heads in a small shared memory need a narrow tile
            looks = self._looks(question.stages, least)
            if looks:
                break
        self.looks = self._of_the_file() or looks
        if not self.looks:
            label, name = question.workload.label, question.machine.name
            raise InputError(f"advise: got {label}, expected a workload with a tile that fits {name}.")
        self.near = [advice for advice in self.looks[:_TILES] if advice.score <= _NEAR * self.looks[0].score]

    @property
    def kernel(self) -> Advice:
        """Tile, stages and blocks of an SM; nothing is simulated where one tile looks fastest alone."""
        return self.near[0] if len(self.near) == 1 else self.choice.best.advice

    @cached_property
    def choice(self) -> Choice:
        """The kernel with its best order, and what else was tried."""
        near, named = self.near, self._named(self.near[0])
        by_tile = {near[0]: self._timed([replace(near[0], schedule=schedule) for schedule in named])}
        fastest = by_tile[near[0]][0].advice.schedule
        for advice in near[1:]:
            by_tile[advice] = self._timed([replace(advice, schedule=fastest)])
        best = min((tried[0] for tried in by_tile.values()), key=rank)
        own = next(advice for advice, tried in by_tile.items() if tried[0] is best)
        orders = self._timed([replace(own, schedule=schedule) for schedule in self._worth_it(own)])
        known = set(tried_first(self.question.workload))
        picked = pick(orders, rank, lambda timed: timed.advice.schedule.name in known)
        others = tuple(tried[0] for advice, tried in by_tile.items() if advice != own)
        return Choice((picked, *(timed for timed in orders if timed is not picked)), others)

    def _schedules(self, advice: Advice) -> list[Any]:
        """All that may run under a tile, those in common use first."""
        family, workload = self.timer.family, self.question.workload
        every = {s.name: s for s in family.every_schedule(workload, family.cut_tile(advice.tile, workload))}
        first = [name for name in tried_first(workload) if name in every]
        return [every.pop(name) for name in first] + list(every.values())

    def _named(self, advice: Advice) -> list[Any]:
        """Those in common use and the few besides; all where a workload admits none of these."""
        schedules, known = self._schedules(advice), set(tried_first(self.question.workload))
        return [schedule for schedule in schedules if schedule.name in known] or schedules

    def _worth_it(self, advice: Advice) -> list[Any]:
        """One of each walk that is worth a simulation."""
        schedules, timer, config = self._schedules(advice), self.timer, self.timer.config(advice)
        power = timer.power(config)
        walks = worth_simulating(self.question.workload, config, schedules, timer.rates, power)
        return [schedules[same[0]] for same in walks]

    def _looks(self, stages: int | None, least: int) -> list[Advice]:
        """What fits and can be exported, the fastest at a glance first."""
        fit = kernels_that_fit(self.timer, self.question.sms, self.question.blocks_per_sm, stages, least)
        return sorted(filter(self._can_be_exported, fit), key=_score)

    def _of_the_file(self) -> list[Advice]:
        """With the tile and the stages that the file of `pebble export` is fastest with, where a chip has its own.

        Under that tile alone the file overlaps exponentials and products; other tiles are timed as plain kernels.
        """
        kernel = self.timer.family.kernel
        tile = kernel.exported_tile(self.question.workload)
        if tile is None or self.question.machine.capability != WARPGROUPS:
            return []
        stages = kernel.exported_stages(tile) if self.question.stages is None else self.question.stages
        return [look for look in self._looks(stages, min(tile.bm, tile.bn, LEAST_SIDE)) if look.tile == tile]

    def _can_be_exported(self, advice: Advice) -> bool:
        """Whether `pebble export` writes its kernel: Triton's blocks have powers of two as sides, or all of a side."""
        tile = advice.tile
        lengths = self.timer.family.kernel.extents(self.timer.workload)
        return all(
            side & (side - 1) == 0 or side >= length
            for side, length in zip((tile.bm, tile.bn, tile.bk), lengths, strict=True)
        )

    def _timed(self, kernels: Sequence[Advice]) -> list[TimedKernel]:
        """The fastest first; in a tie in the order of the kernels, whichever answer came first."""
        answers = dict(each(self.timer.timed, kernels))
        return sorted((answers[at] for at in range(len(kernels))), key=rank)


@lru_cache(_CACHED)
def chooser(question: Question) -> Chooser:
    """Who answers a question, the same for all who ask it."""
    return Chooser(question)


def choose(workload: Workload, machine: Machine, sms: int, progress: Progress = silent) -> Choice:
    """The kernel to run.

    Parameters
    ----------
    workload : Workload
        GEMM, grouped GEMM, FFN or attention.
    machine : Machine
    sms : int
        That it may use.
    progress : callable
        Called with each kernel that is about to be timed.

    Returns
    -------
    Choice
        Cost: seconds; a kernel that loads many lines is simulated in part.

    Raises
    ------
    InputError
        No kernels of the family, a machine file without the rates, or nothing fits.
    """
    who = chooser(Question(workload, machine, sms))
    who.timer.progress = progress
    try:
        return who.choice
    finally:
        who.timer.progress = silent


def _score(advice: Advice) -> float:
    return advice.score

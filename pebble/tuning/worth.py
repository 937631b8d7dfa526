"""Which schedules of a kernel are worth a simulation where an answer is due in seconds, and which of them is picked."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.families.spaces.candidate import Candidate
from pebble.schedules.tables.own import OwnSchedule
from pebble.simulation import KernelConfig
from pebble.system.parallel import each
from pebble.timing.power import Power
from pebble.timing.sample import wave_loads
from pebble.timing.sustained import Rates
from pebble.tuning.advisors.coarse import quick_look
from pebble.tuning.advisors.ours import FREE, MOST_LINES, most_lines
from pebble.workloads.workload import Workload

SAME = 1.01  # times as long is as fast: the model knows no better
LIMIT = 0.8e9  # lines that are followed for an answer: a second and a half on one core
BY_ESTIMATE = 3  # schedules that look fastest, simulated beside those in common use
_CACHED = 1024  # schedules of which the loads are kept: several questions of one command ask for the same
_LOOKED_AT = 6  # times the limit, whole: a glance at more takes as long as simulating their first parts

Timed = TypeVar("Timed")


def tried_first(workload: Workload) -> list[str]:
    """Schedules in common use, and those that ``advise`` tries beside them, in the order of its preference."""
    family = kernel_family(workload)
    return list(dict.fromkeys((*family.baseline, *family.advised, *family.library[1:])))


def pick(timed: Sequence[Timed], rank: Callable[[Timed], tuple[float, ...]], known: Callable[[Timed], bool]) -> Timed:
    """Of all the one of least time; one that is known where it is as fast, as far as the model can tell."""
    first = min(timed, key=rank)
    own = min(filter(known, timed), key=rank, default=first)
    return own if rank(own)[0] <= SAME * rank(first)[0] else first


def walk_alike(workload: Workload, schedules: Sequence[Any], config: KernelConfig) -> list[list[int]]:
    """The numbers of schedules, those together that walk alike: they move the same and take as long."""
    family = kernel_family(workload)
    alike: dict[Hashable, list[int]] = {}
    for number, schedule in enumerate(schedules):
        alike.setdefault(family.walk(workload, schedule, config), []).append(number)
    return list(alike.values())


class LineLoads(NamedTuple):
    """Lines that simulations follow, those told apart one by one counted as many; 0 where nothing can be said.

    ``in_part``: where the first part of a long one is simulated.
    """

    whole: float = 0.0
    in_part: float = 0.0


def line_loads(
    workload: Workload, config: KernelConfig, schedules: Sequence[Any], enough: LineLoads | None = None
) -> LineLoads:
    """What simulating some schedules takes; of the first of them where that is more than ``enough``."""
    whole = in_part = 0.0
    try:
        for schedule in schedules:
            loads = _loads(workload, config, schedule)
            whole, in_part = whole + loads.whole, in_part + loads.in_part
            if enough is not None and whole > enough.whole and in_part > enough.in_part:
                break
    except InputError:
        return LineLoads()
    return LineLoads(whole, in_part)


@lru_cache(_CACHED)
def _loads(workload: Workload, config: KernelConfig, schedule: Any) -> LineLoads:
    program = kernel_family(workload).program(workload, schedule, config)
    sectors = program.layout.tile_sectors()
    phases = [(phase, group.wave_blocks) for group in program.groups for phase in group.phases]
    loads = sum(float(wave_loads(phase, sectors, wave_blocks).sum()) for phase, wave_blocks in phases)
    most, free = (
        most_lines(program, config.execution.is_asynchronous),
        FREE if config.execution.is_asynchronous else 1.0,
    )
    effort = MOST_LINES / most_lines(program, False) * free
    return LineLoads(loads * effort, min(loads, float(most)) * effort)


def worth_simulating(
    workload: Workload, config: KernelConfig, schedules: Sequence[Any], rates: Rates, power: Power | None
) -> list[list[int]]:  # fmt: skip
    """Walks to simulate, each as the numbers of the schedules that walk so.

    All, where that takes a second and a half at most. Else those in common use, such as look fastest at a
    glance, as many as the limit admits and three at least, and the one that looks slowest; of kernels so large that a
    glance takes as long as a simulation of their first part, those in common use alone.
    """
    family, walks = kernel_family(workload), walk_alike(workload, schedules, config)
    first, enough = [schedules[same[0]] for same in walks], LineLoads(_LOOKED_AT * LIMIT, LIMIT)
    whole, lines = line_loads(workload, config, first, enough)
    if lines <= LIMIT:
        return walks
    known = set(tried_first(workload))
    common = [
        at
        for at, same in enumerate(walks)
        if any(isinstance(schedules[i], OwnSchedule) or schedules[i].name in known for i in same)
    ]
    rest = [at for at in range(len(walks)) if at not in common]
    if family.space is None or whole > _LOOKED_AT * LIMIT:
        return [walks[at] for at in common]

    def seconds(at: int) -> float:
        candidate = Candidate(schedules[walks[at][0]], config)
        return quick_look(family, workload, candidate, rates, power).ranked_seconds

    estimates = dict(each(seconds, rest))
    ranked = sorted((i for i in estimates if estimates[i] < math.inf), key=lambda i: estimates[i])
    places = max(BY_ESTIMATE, int(len(walks) * LIMIT / lines) - len(common) - 1)
    names = {*common, *(rest[i] for i in (*ranked[:places], *ranked[-1:]))}
    return [walks[at] for at in sorted(names)]

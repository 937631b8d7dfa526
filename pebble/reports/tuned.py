"""The schedules that ``tune`` found, one by one, and what they move where they were not tuned for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pebble.errors import InputError
from pebble.models.machine import Machine
from pebble.reports.simulated_kernel import Bounded, KernelOptions, SimulatedKernel
from pebble.reports.tune_target import check_execution
from pebble.schedules.execution import FREE, WAVES, Execution
from pebble.simulation import Traffic
from pebble.system.parallel import each
from pebble.tuning import OtherLaunch, Scored, Search, SetAside, measure

LESS_CACHE = 10  # percent, to see how near a cliff is
LESS = f"with {LESS_CACHE} % less cache"
SAME = 1.005  # times as much is no more
_SKEWED = Execution("dynamic", 5)
_CAPABILITY = re.compile(r"(\d+)\.\d+")
_AMPERE = 8  # compute capability of the first chips with a set-aside


@dataclass(frozen=True)
class Tuned:
    """One schedule that was found.

    Attributes
    ----------
    name : str
        Of a named schedule, or of the table.
    words : str
        What it does, for a reader.
    kernel : Kernel
        The kernel that runs it: tile, stages, cache model.
    schedule : object
        A named schedule, or a `TileTable`; `pebble.simulate` and `pebble.export` take either.
    traffic : tuple of Traffic
        Under each execution that was asked for.
    values : tuple of float
        What was to be least, under each: bytes, seconds or joules.
    bound : Bounded
        What no schedule of this kernel moves less than.
    named : bool
        Whether it has a name of its own.
    """

    name: str
    words: str
    kernel: SimulatedKernel
    schedule: Any
    traffic: tuple[Traffic, ...]
    values: tuple[float, ...]
    bound: Bounded
    named: bool

    @property
    def worst(self) -> Traffic:
        """Where it moves most."""
        return max(self.traffic, key=lambda t: t.dram_bytes)

    @property
    def worst_value(self) -> float:
        """What was to be least, where it is largest."""
        return max(self.values)

    @property
    def ratio(self) -> float:
        """Its worst case over the bound."""
        return self.worst.dram_bytes / self.bound.bound.bytes

    def to_json(self, executions: Sequence[str]) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name,
            "words": self.words,
            "tile": self.kernel.tile,
            "stages": self.kernel.stages,
            "named": self.named,
            "executions": {
                name: {"dram_read_bytes": t.dram_read_bytes, "dram_write_bytes": t.dram_write_bytes}
                for name, t in zip(executions, self.traffic, strict=True)
            },
            "worst_dram_bytes": self.worst.dram_bytes,
            "worst_value": self.worst_value,
            "lower_bound_bytes": self.bound.bound.bytes,
            "ratio_to_lower_bound": self.ratio,
        }


@dataclass(frozen=True)
class Beyond:
    """What the best and the best common schedule move where they were not tuned for."""

    what: str
    best_bytes: int
    baseline_bytes: int

    @property
    def takes_back(self) -> bool:
        """Whether the best moves more there than the best common one, so that its gain is none."""
        return self.best_bytes > SAME * self.baseline_bytes


def set_aside_json(set_aside: SetAside[Tuned]) -> dict[str, Any]:
    """Plain data."""
    s = set_aside.schedule
    return {
        "name": s.name, "tile": s.kernel.tile, "operand": set_aside.operand, "share": set_aside.share,
        "policy": set_aside.policy(s.kernel.config.policy), "run_with": set_aside.flag, **_traffic(set_aside.traffic),
        "saved_bytes": set_aside.traffic.saved_bytes,
    }  # fmt: skip


def launch_json(launch: OtherLaunch[Tuned]) -> dict[str, Any]:
    """Plain data."""
    s = launch.schedule
    about = {"execution": launch.execution, "name": s.name, "tile": s.kernel.tile}
    return {**about, **_traffic(launch.traffic), "ranked_dram_bytes": s.traffic[0].dram_bytes}


def _traffic(traffic: Traffic) -> dict[str, int]:
    return {
        "dram_read_bytes": traffic.dram_read_bytes,
        "dram_write_bytes": traffic.dram_write_bytes,
        "dram_bytes": traffic.dram_bytes,
    }


def has_set_aside(machine: Machine | None) -> bool:
    """Whether a chip can keep a part of its L2 for an address range: NVIDIA's from compute capability 8.0 on."""
    if machine is None or machine.vendor != "NVIDIA":
        return False
    known = _CAPABILITY.fullmatch(machine.compute_capability)
    return known is not None and int(known[1]) >= _AMPERE


def tried_beyond(search: Search, options: KernelOptions, best: Scored, baseline: Scored) -> tuple[Beyond, ...]:
    """What both move with less cache, and without a barrier, or with one where blocks run free."""
    family, workload, conditions = search.family, search.workload, search.conditions
    first = conditions[0]
    other, barrier = WAVES, "with a barrier before each wave"
    if not first.execution.is_asynchronous:
        other, barrier = _SKEWED if best.candidate.config.speeds is None else FREE, "without a barrier"
    tried = {
        LESS: replace(first, cache_percent=first.cache_percent - LESS_CACHE),
        f"{barrier} ({other.name})": replace(first, execution=other),
    }
    results = []
    for what, condition in tried.items():
        if condition in conditions or condition.cache_percent < 1:
            continue
        try:
            check_execution(workload, options, condition)
            work = partial(measure, family, workload, condition=condition)
            candidates = [s.candidate for s in (best, baseline)]
            traffic = {at: answer.dram_bytes for at, answer in each(work, candidates, over=search.is_late)}
        except InputError:  # a family or a schedule that runs in waves only
            continue
        if len(traffic) == len(candidates):
            results.append(Beyond(what, traffic[0], traffic[1]))
    return tuple(results)

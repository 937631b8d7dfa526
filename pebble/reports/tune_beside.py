"""What stands beside the schedules that ``tune`` found: less cache, no barrier, a set-aside, other launches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.models.machine import Machine
from pebble.reports.target import KernelOptions
from pebble.reports.tune_target import check_execution
from pebble.schedules.execution import FREE, WAVES, Execution
from pebble.simulation import Traffic
from pebble.tuning import Condition, Scored, measure
from pebble.workloads.base import Workload

if TYPE_CHECKING:
    from pebble.reports.tune import Tuned

LESS_CACHE = 10  # percent, to see how near a cliff is
LESS = f"with {LESS_CACHE} % less cache"
SAME = 1.005  # times as much is no more
_SKEWED = Execution("dynamic", 5)
_CAPABILITY = re.compile(r"(\d+)\.\d+")
_AMPERE = 8  # compute capability of the first chips with a set-aside


@dataclass(frozen=True)
class Beyond:
    """What the best and the best daily schedule move where they were not tuned for."""

    what: str
    best_bytes: int
    daily_bytes: int

    @property
    def takes_back(self) -> bool:
        """Whether the best moves more there than the best daily one, so that its gain is none."""
        return self.best_bytes > SAME * self.daily_bytes


@dataclass(frozen=True)
class SetAside:
    """A schedule of which an operand is kept in a set-aside of L2, by an access-policy window.

    Attributes
    ----------
    schedule : Tuned
        Without it.
    operand : str
    share : float
        Of the cache, at most set aside.
    traffic : Traffic
        Under the first execution, with it; ``saved_bytes`` is what it saves.
    """

    schedule: Tuned
    operand: str
    share: float
    traffic: Traffic

    @property
    def flag(self) -> str:
        """What runs an exported file with it."""
        return f"--persist {self.operand}:{self.share:g}"

    @property
    def policy(self) -> str:
        """The cache model that simulates it."""
        return f"{self.schedule.kernel.config.policy}+persist-{self.operand}-{self.share:g}"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.schedule.name, "tile": self.schedule.kernel.tile, "operand": self.operand,
            "share": self.share, "policy": self.policy, "run_with": self.flag, **_moved(self.traffic),
            "saved_bytes": self.traffic.saved_bytes,
        }  # fmt: skip


@dataclass(frozen=True)
class OtherLaunch:
    """What a schedule moves launched otherwise.

    Attributes
    ----------
    execution : str
    schedule : Tuned
        As it was ranked.
    traffic : Traffic
    """

    execution: str
    schedule: Tuned
    traffic: Traffic

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        ranked = self.schedule.traffic[0].dram_bytes
        about = {"execution": self.execution, "name": self.schedule.name, "tile": self.schedule.kernel.tile}
        return {**about, **_moved(self.traffic), "ranked_dram_bytes": ranked}


def _moved(traffic: Traffic) -> dict[str, int]:
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


def tried_beyond(
    workload: Workload, options: KernelOptions, best: Scored, daily: Scored, conditions: Sequence[Condition]
) -> tuple[Beyond, ...]:
    """What both move with less cache, and without a barrier, or with one where blocks run free."""
    family = kernel_family(workload)
    first = conditions[0]
    other, barrier = WAVES, "with a barrier before each wave"
    if not first.execution.is_free:
        other, barrier = _SKEWED if best.candidate.config.speeds is None else FREE, "without a barrier"
    tried = {
        LESS: replace(first, cache_percent=first.cache_percent - LESS_CACHE),
        f"{barrier} ({other.name})": replace(first, execution=other),
    }
    found = []
    for what, condition in tried.items():
        if condition in conditions or condition.cache_percent < 1:
            continue
        try:
            check_execution(workload, options, condition)
            moved = [measure(family, workload, s.candidate, condition).dram_bytes for s in (best, daily)]
        except InputError:  # a family or a schedule that runs in waves only
            continue
        found.append(Beyond(what, moved[0], moved[1]))
    return tuple(found)

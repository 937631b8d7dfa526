"""What a candidate moves: in full under an execution, or at a quick look."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from pebble.errors import InputError
from pebble.families.family import KernelFamily
from pebble.families.spaces.space import Space
from pebble.schedules.execution import WAVES, Execution
from pebble.schedules.recipes import Recipe
from pebble.schedules.tables import Launch, TileTable
from pebble.simulation import KernelConfig, Traffic
from pebble.simulation.table import simulate_table, table_program
from pebble.traces.program import Program
from pebble.workloads.workload import Workload

_AS_LRU = 0.6  # of the capacity: an LRU of so much does about what partitions that draw their victims do

_SLOWER = 1.06  # times as long as full waves: no schedule is offered that wastes more


@dataclass(frozen=True)
class Condition:
    """How the blocks run in time, and how much of the cache is there."""

    execution: Execution = WAVES
    cache_percent: int = 100

    @property
    def name(self) -> str:
        """As the user writes it."""
        return self.execution.name + f"@{self.cache_percent}" * (self.cache_percent != 100)

    def of(self, config: KernelConfig) -> KernelConfig:
        """The kernel under it."""
        cache_bytes = config.cache_bytes * self.cache_percent // 100
        return replace(config, execution=self.execution, cache_bytes=cache_bytes)


IN_WAVES = Condition()


@dataclass(frozen=True)
class Candidate:
    """A schedule with a name of its family, or a recipe, with the kernel that runs it."""

    plan: Any
    config: KernelConfig

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others: schedule and tile."""
        return self.plan.name, str(self.config.tile)


def runnable(workload: Workload, candidate: Candidate, **about: Any) -> Any:
    """What a family simulates: the named schedule itself, or the table of a recipe."""
    config = candidate.config
    if not isinstance(candidate.plan, Recipe):
        return candidate.plan
    launch = Launch(config.tile, config.sms, config.blocks_per_sm, policy=config.policy, **about)
    return candidate.plan.table(workload, replace(launch, cache_bytes=config.cache_bytes))


def program_of(family: KernelFamily[Any, Any], workload: Workload, candidate: Candidate) -> Program:
    """What it does, block by block; a table that a search made is not checked again."""
    schedule = runnable(workload, candidate)
    if isinstance(schedule, TileTable):
        return table_program(schedule, candidate.config)
    return family.program(workload, schedule, candidate.config)


def measure(
    family: KernelFamily[Any, Any],
    workload: Workload,
    candidate: Candidate,
    condition: Condition = IN_WAVES,
    policy: str | None = None,
) -> Traffic:
    """What it moves, through another cache model if one is given; errors as `KernelFamily.simulate`."""
    there = condition.of(candidate.config)
    there = replace(there, policy=policy or there.policy)
    return traffic_of(family, workload, runnable(workload, candidate), there)


def traffic_of(family: KernelFamily[Any, Any], workload: Workload, schedule: Any, config: KernelConfig) -> Traffic:
    """What a named schedule or a table moves."""
    if isinstance(schedule, TileTable):
        return simulate_table(schedule, config)
    return family.simulate(workload, schedule, config)


def estimated_bytes(
    family: KernelFamily[Any, Any], space: Space[Any, Any], workload: Workload, candidate: Candidate
) -> float:
    """About what it moves, in bytes; infinite where `estimated_traffic` finds nothing."""
    result = estimated_traffic(family, space, workload, candidate)
    return math.inf if result is None else result.dram_bytes


def estimated_traffic(
    family: KernelFamily[Any, Any], space: Space[Any, Any], workload: Workload, candidate: Candidate
) -> Traffic | None:  # fmt: skip
    """About what it moves, many times faster: with longer steps of k, and with LRU for any other model.

    Within 2 % of the full simulation for most on the chips of two partitions (``benchmarks/quick_look.md``). None for
    what takes clearly longer than full waves, and for what does not fit the cache.
    """
    config = candidate.config
    lines = config.cache_bytes if config.policy == "lru" else int(_AS_LRU * config.cache_bytes)
    for tile in dict.fromkeys((space.coarse(workload, config.tile), config.tile)):  # a long step may not fit
        quick = replace(config, tile=tile, policy="lru", cache_bytes=lines, execution=WAVES)
        try:
            schedule = runnable(workload, replace(candidate, config=quick))
            if isinstance(schedule, TileTable) and space.time(workload, schedule) > _SLOWER * space.least_time(
                workload, quick
            ):
                return None
            return traffic_of(family, workload, schedule, quick)
        except InputError:
            continue
    return None

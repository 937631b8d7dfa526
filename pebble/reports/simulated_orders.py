"""The schedules of a comparison, simulated on all cores: what each moves, and how long it takes by the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pebble.families import kernel_family
from pebble.models.caches import parse_policy
from pebble.models.caches.persisting import without_persisting
from pebble.reports.kernel_time import power_of_kernel, time_schedule
from pebble.reports.ranking import Ranked, rates_of
from pebble.reports.simulated_kernel import SimulatedKernel
from pebble.simulation import KernelConfig, Traffic
from pebble.simulation.merging import Requested
from pebble.system.parallel import each
from pebble.tuning.worth import walk_alike
from pebble.workloads.workload import Workload

Progress = Callable[[str], None]


def simulated(workload: Workload, schedule: Any, config: KernelConfig, residual: bool = False) -> Traffic:
    """What one schedule moves; where the policy has a set-aside, beside what it moves without."""
    simulate = kernel_family(workload).simulate
    traffic = simulate(workload, schedule, config, residual)
    plain = without_persisting(config.policy, parse_policy(config.policy))
    if plain is None:
        return traffic
    without = simulate(workload, schedule, replace(config, policy=plain), residual)
    return replace(traffic, plain_bytes=without.dram_bytes)


class Simulated(NamedTuple):
    """What schedules move: as asked, with one thing otherwise by name; what they ask of L2; whether all were done.

    ``ranked`` has each walk once, with its modelled time.
    """

    orders: list[Traffic]
    alternatives: dict[str, dict[str, Traffic]]
    requested: dict[str, Requested]
    ranked: list[Ranked]
    complete: bool


def simulate_all(
    workload: Workload, kernel: SimulatedKernel, orders: Sequence[Any], residual: bool, show: Progress
) -> Simulated:
    """Simulate schedules, each walk once, in all cores; those that were done by then where it is interrupted."""
    family, config, configs = kernel_family(workload), kernel.config, kernel.alternatives
    alternatives: dict[str, dict[str, Traffic]] = {name: {} for name in configs}
    traffic: dict[int, Traffic] = {}
    requested: dict[str, Requested] = {}
    ranked: dict[int, Ranked] = {}  # by walk: answers come in any order
    rates, power = rates_of(workload, kernel), power_of_kernel(workload, kernel)

    def run(same: Sequence[int]) -> tuple[Requested | None, list[Traffic], Ranked]:
        single = orders[same[0]]
        others = [family.simulate(workload, single, other, residual) for other in configs.values()]
        timed = None if rates is None else time_schedule(workload, single, kernel, rates, power, residual)
        if timed is None or timed.time.counts is None or kernel.keeps_aside:
            result = simulated(workload, single, config, residual)
        else:
            result = Traffic(single.name, timed.time.counts)  # of the same run
        alike = tuple(str(orders[i].name) for i in same)
        rank = Ranked(alike[0], result.dram_bytes, timed, alike)
        return kernel.requested(workload, single, result, residual), [result, *others], rank

    complete = True
    try:
        walks = walk_alike(workload, orders, config)
        for walk, (wanted, (result, *others), rank) in each(run, walks):
            ranked[walk] = rank
            for i in walks[walk]:
                requested |= {orders[i].name: wanted} if wanted else {}
                for by_name, other in zip(alternatives.values(), others, strict=True):
                    by_name[orders[i].name] = replace(other, order=orders[i].name)
                traffic[i] = replace(result, order=orders[i].name)  # last: what is in it is whole
                show(orders[i].name)
    except KeyboardInterrupt:
        complete = False
    return Simulated(
        [traffic[i] for i in sorted(traffic)],
        alternatives,
        requested,
        [ranked[walk] for walk in sorted(ranked)],
        complete,
    )

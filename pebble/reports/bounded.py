"""A capacity and the bound that it gives; of a kernel, what its simulated trace can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pebble.bounds.base import LowerBound
from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.models.caches import parse_policy
from pebble.reports.capacity import Capacity, trace_capacity
from pebble.reports.simulated_kernel import SimulatedKernel
from pebble.workloads.base import Workload


@dataclass(frozen=True)
class Bounded:
    """A capacity and the bound that it gives."""

    capacity: Capacity  #: what can be held, and how it adds up
    bound: LowerBound  #: no schedule that holds so much moves less

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "bytes": self.bound.bytes,
            "elements": self.bound.elements,
            "method": self.bound.method,
            "theorem": self.bound.theorem.to_json(),
            "capacity_bytes": self.capacity.bytes,
            "capacity_elements": self.capacity.elements,
            "what": self.capacity.what,
        }


def trace_bound(workload: Workload, kernel: SimulatedKernel) -> Bounded:
    """The bound at what the simulated kernel can hold.

    Raises
    ------
    InputError
        A cache that starts warm: the bounds count every first load.
    """
    config, policy = kernel.config, parse_policy(kernel.config.policy)
    if policy.warm:
        raise InputError("--policy: got a policy with +warm, expected a cold start: the bounds count every first load.")
    return bounded(workload, held_by_trace(workload, kernel, config.cache_bytes))


def held_by_trace(workload: Workload, kernel: SimulatedKernel, cache_bytes: int) -> Capacity:
    """What the simulated kernel can hold with a cache of so many bytes."""
    family, config = kernel_family(workload), kernel.config
    # every line once, however many partitions keep it; a memory-side cache holds lines too
    return trace_capacity(
        cache_bytes + parse_policy(config.policy).last_level_bytes,
        workload,
        family.values_held(workload, config, kernel.stages),
        config.wave_blocks,
        held_bytes=family.bytes_held(workload, config, kernel.stages),
        accumulator_bytes=kernel.target.accumulator_bytes,
        rounded=family.rounds_partial_sums,
    )


def bounded(workload: Workload, capacity: Capacity) -> Bounded:
    """The bound at a capacity."""
    bound = kernel_family(workload).lower_bound(workload, capacity.elements, memory=capacity.memory)
    return Bounded(capacity, bound)

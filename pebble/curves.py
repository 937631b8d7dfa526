"""Traffic against capacity: every schedule of a kernel at all cache sizes, over the proved bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pebble.bounds import LowerBound, gemm_lower_bound
from pebble.bounds.attention import attention_lower_bound
from pebble.bounds.ffn import ffn_lower_bound
from pebble.capacity import trace_capacity
from pebble.errors import InputError
from pebble.models.caches import parse_policy
from pebble.models.caches.base import check_capacity
from pebble.simulation import Kernel, KernelConfig, Schedule, held_values, trace_of, walk_key
from pebble.traces import LINE_BYTES, Trace
from pebble.workloads import Ffn, Gemm

MOST_POINTS = 4096


@dataclass(frozen=True)
class ScheduleCurve:
    """One schedule's DRAM bytes at each capacity of the report."""

    name: str
    read_bytes: tuple[int, ...]
    write_bytes: tuple[int, ...]

    @property
    def dram_bytes(self) -> tuple[int, ...]:
        """Bytes read and written."""
        return tuple(r + w for r, w in zip(self.read_bytes, self.write_bytes, strict=True))


@dataclass(frozen=True)
class CurveReport:
    """What ``pebble curve`` found.

    Attributes
    ----------
    workload : Gemm, Ffn or Attention
    config : KernelConfig
        ``cache_bytes`` is the capacity to look at first.
    capacities_bytes : tuple of int
        Cache sizes, rising.
    bounds : tuple of LowerBound
        At the trace capacity that belongs to each cache size.
    schedules : tuple of ScheduleCurve
        Least traffic at ``config.cache_bytes`` first.
    """

    workload: Kernel
    config: KernelConfig
    capacities_bytes: tuple[int, ...]
    bounds: tuple[LowerBound, ...]
    schedules: tuple[ScheduleCurve, ...]

    @property
    def reference(self) -> int:
        """Index of the capacity to look at first."""
        return self.capacities_bytes.index(self.config.cache_bytes)

    def to_json(self) -> dict[str, Any]:
        """The document of ``pebble curve --json``."""
        return {
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "kernel": {
                "tile": str(self.config.tile),
                "sms": self.config.sms,
                "blocks_per_sm": self.config.blocks_per_sm,
                "policy": self.config.policy,
            },
            "capacities_bytes": list(self.capacities_bytes),
            "lower_bound_bytes": [bound.bytes for bound in self.bounds],
            "schedules": [
                {
                    "name": curve.name,
                    "dram_bytes": list(curve.dram_bytes),
                    "dram_read_bytes": list(curve.read_bytes),
                    "dram_write_bytes": list(curve.write_bytes),
                }
                for curve in self.schedules
            ],
        }


def bound_of(workload: Kernel) -> Callable[[int], LowerBound]:
    """The lower bound of a workload for a capacity in elements."""
    if isinstance(workload, Gemm):
        return lambda capacity: gemm_lower_bound(workload, capacity)
    if isinstance(workload, Ffn):
        return lambda capacity: ffn_lower_bound(workload, capacity)
    return lambda capacity: attention_lower_bound(workload, capacity)


def curve_of(name: str, trace: Trace, policy: str, capacities_lines: Sequence[int]) -> ScheduleCurve:
    """DRAM bytes at each capacity: LRU and OPT from one curve, other policies by one simulation each.

    Raises
    ------
    InputError
        A capacity below the largest tile.
    """
    check_capacity(trace, min(capacities_lines), what="curve")
    moved = parse_policy(policy).curve(trace, capacities_lines)
    return ScheduleCurve(name, *(tuple(value * LINE_BYTES for value in part) for part in zip(*moved, strict=True)))


def curve_report(
    workload: Kernel,
    config: KernelConfig,
    schedules: Sequence[Schedule],
    capacities_bytes: Sequence[int],
    stages: int = 1,
    residual: bool = False,
    progress: Callable[[str], None] = lambda name: None,
) -> CurveReport:
    """Curves of all schedules over the bound.

    Parameters
    ----------
    workload, config, schedules
        What runs and how; ``config.cache_bytes`` is added to the capacities.
    capacities_bytes : sequence of int
        Cache sizes.
    stages : int
        A and B tiles that each block holds, for the bound's capacity.
    residual, progress
        As for the comparisons.

    Raises
    ------
    InputError
        A capacity below the largest tile, more than 4096 of them, or a policy that starts warm.
    """
    policy = parse_policy(config.policy)
    if policy.warm:
        raise InputError("curve: got a policy with +warm, expected a cold start: the bounds count every first load.")
    capacities = sorted({*capacities_bytes, config.cache_bytes})
    if len(capacities) > MOST_POINTS:
        raise InputError(f"curve: got {len(capacities)} capacities, expected at most {MOST_POINTS}.")
    held = held_values(workload, config, stages)
    bound = bound_of(workload)
    bounds = [
        bound(trace_capacity(c + policy.last_level_bytes, workload, held, config.wave_blocks).elements)
        for c in capacities
    ]
    lines = [c // LINE_BYTES for c in capacities]
    seen: dict[str, ScheduleCurve] = {}
    curves = []
    for schedule in schedules:
        key = walk_key(workload, schedule, config)
        if key not in seen:
            seen[key] = curve_of(schedule.name, trace_of(workload, schedule, config, residual), config.policy, lines)
        curves.append(replace(seen[key], name=schedule.name))
        progress(schedule.name)
    at = capacities.index(config.cache_bytes)
    curves.sort(key=lambda c: c.dram_bytes[at])
    return CurveReport(workload, config, tuple(capacities), tuple(bounds), tuple(curves))

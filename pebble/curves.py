"""Traffic against capacity: every schedule of a kernel at all cache sizes, over the proved bound."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pebble.bounds import LowerBound, lower_bound
from pebble.capacity import trace_capacity
from pebble.errors import InputError
from pebble.models.cache_policy import parse_policy
from pebble.models.caches import cache_model
from pebble.models.caches.base import LINE_BYTES
from pebble.models.caches.lru_curve import lru_curve
from pebble.models.caches.opt_curve import opt_curve
from pebble.schedules.attention import AttentionKernel, AttentionSchedule, attention_trace
from pebble.schedules.ffn import FfnKernel, FfnSchedule, ffn_trace
from pebble.schedules.lockstep import lockstep_trace, values_held_by_blocks
from pebble.schedules.orders import TileOrder
from pebble.schedules.trace import Trace
from pebble.simulation import KernelConfig, timed_trace
from pebble.workloads import Attention, Ffn, Gemm

Schedule = TileOrder | FfnSchedule | AttentionSchedule
Kernel = Gemm | Ffn | Attention
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


def held_values(workload: Kernel, config: KernelConfig, stages: int = 1) -> int:
    """Values that the running blocks hold besides the cache."""
    if isinstance(workload, Gemm):
        return values_held_by_blocks(config.tile, config.wave_blocks, stages)
    if isinstance(workload, Ffn):
        return config.wave_blocks * FfnKernel(workload, config.tile).values_held(stages)
    kernel = AttentionKernel(workload, config.tile.bm, config.tile.bn)
    return config.wave_blocks * kernel.values_held(stages)


def trace_of(workload: Kernel, schedule: Schedule, config: KernelConfig, residual: bool = False) -> Trace:
    """The lock-step trace of one schedule.

    Raises
    ------
    InputError
        A schedule of another family, or a trace that is too long.
    """
    if isinstance(workload, Gemm) and isinstance(schedule, TileOrder):
        if not config.execution.is_reference:
            return timed_trace(workload, schedule, config)
        rows, cols, _ = config.tile.grid(workload)
        tiles = schedule.tiles(rows, cols, config.order_params)
        granularity = "line" if parse_policy(config.policy).needs_lines else "auto"
        return lockstep_trace(
            workload, tiles, config.tile, config.wave_blocks, schedule.sawtooth, granularity, config.sms
        )
    if isinstance(workload, Ffn) and isinstance(schedule, FfnSchedule):
        kernel = FfnKernel(workload, config.tile, residual=residual)
        return ffn_trace(kernel, schedule, config.wave_blocks, config.sms)
    if isinstance(workload, Attention) and isinstance(schedule, AttentionSchedule):
        tile = config.tile
        return attention_trace(workload, schedule, tile.bm, tile.bn, config.sms, config.blocks_per_sm)
    raise InputError(f"schedule: got {schedule.name}, expected one for {workload.label}.")


def curve_of(name: str, trace: Trace, policy: str, capacities_lines: Sequence[int]) -> ScheduleCurve:
    """DRAM bytes at each capacity: LRU and OPT from one curve, other policies by one simulation each.

    Raises
    ------
    InputError
        A capacity below the largest tile.
    """
    parsed = parse_policy(policy)
    least = int(trace.tile_lines.max())
    if min(capacities_lines) < least:
        raise InputError(
            f"curve: got a capacity of {min(capacities_lines) * LINE_BYTES} bytes, expected at least "
            f"{least * LINE_BYTES}, the largest tile."
        )
    if parsed == parse_policy("lru"):
        curve = lru_curve(trace)
        found = [curve.at(capacity) for capacity in capacities_lines]
        moved = [(read, back) for read, _, back in found]
    elif parsed == parse_policy("opt") and _writes_once(trace):
        # each written line is a miss and a write-back, whatever the capacity
        written = int(trace.tile_lines[_written(trace)].sum())
        misses = opt_curve(trace, max(capacities_lines))
        moved = [(misses.at(capacity) - written, written) for capacity in capacities_lines]
    else:
        counts = [cache_model(parsed)(trace, capacity) for capacity in capacities_lines]
        moved = [
            (sum(c.read_misses) * c.unit_bytes // LINE_BYTES, sum(c.write_backs) * c.unit_bytes // LINE_BYTES)
            for c in counts
        ]
    return ScheduleCurve(name, *(tuple(value * LINE_BYTES for value in part) for part in zip(*moved, strict=True)))


def _written(trace: Trace) -> np.ndarray[Any, np.dtype[np.bool_]]:
    written = np.zeros(len(trace.tile_lines), bool)
    for chunk in trace.chunks():
        written[chunk.ids[chunk.ops == 1]] = True
    return written


def _writes_once(trace: Trace) -> bool:
    """Whether every written tile is touched that one time only."""
    touched = np.zeros(len(trace.tile_lines), np.int64)
    for chunk in trace.chunks():
        touched += np.bincount(chunk.ids, minlength=len(touched))
    return bool(np.all(touched[_written(trace)] == 1))


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
    bounds = [
        lower_bound(workload, trace_capacity(c + policy.last_level_bytes, workload, held, config.wave_blocks).elements)
        for c in capacities
    ]
    lines = [c // LINE_BYTES for c in capacities]
    seen: dict[bytes, ScheduleCurve] = {}
    curves = []
    for schedule in schedules:
        key = schedule.name.encode()
        plain = config.execution.blocks_in_cluster == 1  # with clusters the order walks another grid
        if plain and isinstance(schedule, TileOrder) and isinstance(workload, Gemm):
            tiles = schedule.tiles(*config.tile.grid(workload)[:2], config.order_params)
            key = hashlib.sha256(tiles.tobytes()).digest() + bytes([schedule.sawtooth])
        if key not in seen:
            trace = trace_of(workload, schedule, config, residual)
            seen[key] = curve_of(schedule.name, trace, config.policy, lines)
        curves.append(ScheduleCurve(schedule.name, seen[key].read_bytes, seen[key].write_bytes))
        progress(schedule.name)
    at = capacities.index(config.cache_bytes)
    curves.sort(key=lambda c: c.dram_bytes[at])
    return CurveReport(workload, config, tuple(capacities), tuple(bounds), tuple(curves))

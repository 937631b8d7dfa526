"""``pebble simulate --trace file``: a user's own trace through a cache, and against the bound of a workload."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from pebble.capacity import trace_capacity
from pebble.cli import _output
from pebble.cli._kernel import read_cache_model, read_kernel
from pebble.cli._schedules import traced
from pebble.cli._target import read_target
from pebble.cli._traffic import print_traffic, traffic_json
from pebble.cli._workload import read_workload
from pebble.curves import bound_of
from pebble.errors import InputError
from pebble.models.caches import parse_policy
from pebble.simulation import held_values, simulate_trace
from pebble.traces import LINE_BYTES, Trace
from pebble.traces.files import read_trace
from pebble.units import format_bytes, format_capacity


def _footprint_bytes(trace: Trace) -> int:
    touched = np.zeros(len(trace.tile_lines), bool)
    for chunk in trace.chunks():
        touched[chunk.ids] = True
    return int(trace.tile_lines[touched].sum(dtype=np.int64)) * LINE_BYTES


def _bound(args: argparse.Namespace, cache_bytes: int, policy: str) -> dict[str, Any] | None:
    """The bound of the workload beside the trace, at what its kernel can hold; None without one."""
    if args.workload is None:
        return None
    if parse_policy(policy).warm:
        raise InputError("--trace: got +warm beside a workload, expected a cold start: bounds count every first load.")
    workload = traced(read_workload(args))
    config, stages, _ = read_kernel(args, workload, read_target(args))
    size = cache_bytes + parse_policy(policy).last_level_bytes
    capacity = trace_capacity(size, workload, held_values(workload, config, stages), config.wave_blocks)
    bound = bound_of(workload)(capacity.elements)
    return {"bytes": bound.bytes, "capacity_bytes": capacity.bytes, "what": "trace", "workload": workload.label}


def run_trace(args: argparse.Namespace) -> int:
    """Simulate the file and print."""
    for option in ("schedule", "write_trace", "beside", "sensitivity"):
        if getattr(args, option):
            raise InputError(
                f"--trace: got --{option.replace('_', '-')} beside it; a trace says itself what runs when."
            )
    target = read_target(args)
    policy, cache_bytes, notes = read_cache_model(args.policy, target, 1)
    bound = _bound(args, cache_bytes, policy)
    trace = read_trace(args.trace)
    traffic = simulate_trace(Path(args.trace).name, trace, cache_bytes, policy)
    footprint = _footprint_bytes(trace)
    if args.json:
        document = {
            "trace": str(args.trace),
            "touches": trace.touches,
            "sms": trace.sms,
            "cache_bytes": cache_bytes,
            "policy": policy,
            **traffic_json(traffic),
            "footprint_bytes": footprint,
            "lower_bound": bound,
            "ratio_to_lower_bound": traffic.dram_bytes / bound["bytes"] if bound else None,
            "notes": notes,
        }
        _output.print_json(document)
        return 0
    _output.say(
        f"{args.trace}: {trace.touches:,} touches, {parse_policy(policy).title} cache of "
        f"{format_capacity(cache_bytes)}; its tiles have {format_bytes(footprint)} in all"
    )
    print_traffic(traffic)
    if bound:
        _output.say(
            f"proved bound {format_bytes(bound['bytes'])} for {bound['workload']} and a kernel that can hold "
            f"{format_capacity(bound['capacity_bytes'])}: the trace moves {traffic.dram_bytes / bound['bytes']:.2f}x"
        )
    for note in notes:
        _output.say(f"note: {note}")
    return 0

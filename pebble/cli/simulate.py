"""One tile order through one cache: DRAM traffic by operand, hits, and the share of block steps that hit.

examples:
  pebble simulate gemm -m 8192 -n 8192 -k 8192 --schedule grouped-8 --tile 128x128x64 --sms 108 --cache 40MiB
  pebble simulate gemm -m 8192 -n 8192 -k 8192 --schedule morton+sawtooth --gpu a40 --policy opt
  pebble simulate gemm -m 8192 -n 8192 -k 8192 --schedule orders.py:spiral --gpu l40s
  pebble simulate llama-2-7b:mlp --tokens 8192 --schedule row-fused-16 --gpu a40
  pebble simulate gemm -m 4096 -n 4096 -k 4096 --schedule row --gpu h20 --sensitivity
  pebble simulate gemm -m 4096 -n 4096 -k 4096 --schedule row --gpu h20 --execution stream-k --write-trace t.npz
  pebble simulate --trace t.npz --cache 60MiB --policy partitions-2
"""

from __future__ import annotations

import argparse

from pebble.api.traffic import simulate
from pebble.cli import _output
from pebble.cli._arguments import (
    add_kernel_arguments,
    add_machine_arguments,
    add_residual_argument,
    add_workload_arguments,
    kernel,
    optional_workload,
)
from pebble.families import schedules_help
from pebble.reports.sensitivity import Sensitivity
from pebble.reports.simulate import Simulation, TraceSimulation, WrittenTrace
from pebble.schedules.tables.source import OWN_HELP
from pebble.simulation import Traffic
from pebble.units import format_bytes, format_capacity, format_ratio


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble simulate``."""
    add_workload_arguments(parser, required=False, kernels=True)
    parser.add_argument(
        "--schedule",
        metavar="NAME",
        help=f"{schedules_help()}; {OWN_HELP}",
    )
    parser.add_argument(
        "--sensitivity", action="store_true", help="gemm: how far the answer moves with its assumptions"
    )
    group = parser.add_argument_group("traces (format: `pebble.traces.files`, and docs/traces.md)")
    group.add_argument("--trace", metavar="FILE", help="simulate this .csv or .npz; with WORKLOAD, against its bound")
    group.add_argument("--write-trace", metavar="FILE", help="write the schedule's trace as .csv or .npz and stop")
    add_residual_argument(parser)
    group = parser.add_argument_group("side by side (attention and an FFN on one GPU)")
    group.add_argument("--beside", metavar="MODEL:mlp", help="run this FFN, of the same tokens, on some of the SMs")
    group.add_argument("--beside-sms", metavar="P", help="how many SMs it gets")
    group.add_argument("--beside-schedule", metavar="NAME", help="its schedule (row-fused-16)")
    add_machine_arguments(parser)
    add_kernel_arguments(parser, advised=False)


def run(args: argparse.Namespace) -> int:
    """Simulate and print."""
    result = simulate(
        optional_workload(args),
        args.schedule,
        trace=args.trace,
        write_trace=args.write_trace,
        residual=args.residual,
        sensitivity=args.sensitivity,
        beside=args.beside,
        beside_sms=args.beside_sms,
        beside_schedule=args.beside_schedule,
        **kernel(args),
    )
    if isinstance(result, WrittenTrace):
        _output.tell(f"trace: {result.path}")
    if args.json:
        _output.print_report(result)
    elif isinstance(result, Simulation):
        _print(result)
    elif isinstance(result, TraceSimulation):
        _print_trace(result)
    return 0


def _print(result: Simulation) -> None:
    _output.say(f"{result.workload.label}, {result.traffic.order}: {result.kernel.runs_and_why}, {result.kernel.cache}")
    _print_traffic(result.traffic)
    if result.requested:
        received, at_l2, once, across = (
            format_bytes(count)
            for count in (
                result.requested.received_bytes,
                result.requested.request_bytes,
                result.requested.once_bytes,
                result.requested.fabric_bytes,
            )
        )
        _output.say(
            f"between L2 and SMs, modelled: SMs receive {received}; L2 serves {at_l2} of it, as requests of a GPC for "
            f"one line are merged (perfect merging: {once}); {across} cross between its partitions"
        )
    if result.sensitivity:
        _print_sensitivity(result.sensitivity)
    for note in result.notes:
        _output.say(f"note: {note}")


def _print_trace(result: TraceSimulation) -> None:
    _output.say(result.summary())
    _print_traffic(result.traffic)
    if result.bound:
        _output.say(
            f"proved bound {format_bytes(result.bound['bytes'])} for {result.bound['workload']} and a kernel that can "
            f"hold {format_capacity(result.bound['capacity_bytes'])}: the trace moves "
            f"{format_ratio(result.traffic.dram_bytes / result.bound['bytes'], '.2f')}x"
        )
    for note in result.notes:
        _output.say(f"note: {note}")


def _print_traffic(traffic: Traffic) -> None:
    counts = traffic.counts
    rows = [
        [name, format_bytes(traffic_bytes["read_bytes"]), format_bytes(traffic_bytes["write_bytes"])]
        for name, traffic_bytes in traffic.by_operand().items()
    ]
    rows.append(["total", format_bytes(traffic.dram_read_bytes), format_bytes(traffic.dram_write_bytes)])
    print(_output.table(["operand", "DRAM read", "DRAM write"], rows))
    unit = "lines" if counts.unit_bytes == 128 else "sectors"
    _output.say(
        f"{unit} touched {counts.accesses_lines:,}, without a fetch {counts.hits_lines:,} ({traffic.hit_rate:.2%})"
    )
    if traffic.saved_bytes is not None:
        verb = "saves" if traffic.saved_bytes >= 0 else "costs"
        _output.say(
            f"the set-aside {verb} {format_bytes(abs(traffic.saved_bytes))}: without it the schedule moves "
            f"{format_bytes(traffic.dram_bytes + traffic.saved_bytes)}"
        )
    if traffic.residue_bytes:
        _output.say(f"of the writes {format_bytes(traffic.residue_bytes)} are lines still dirty at the end")
    if counts.block_steps:
        _output.say(f"block steps with both tiles in the cache: {traffic.both_hit_share:.2%}")


def _print_sensitivity(traffic: Sensitivity) -> None:
    print()
    rows = [
        [
            m.what,
            format_bytes(m.least_bytes),
            format_bytes(m.most_bytes),
            f"{m.most_bytes / traffic.base_bytes - 1:+.1%}",
        ]
        for m in (*traffic.skew, *traffic.capacity, *traffic.maps)
    ]
    print(_output.table(["assumption changed", "least", "most", "most / answer"], rows))
    for warning in traffic.warnings:
        _output.say(f"warning: {warning}")
    if not traffic.warnings:
        _output.say("steady: no cliff within 10 % of the cache size, nor up to 5 % of skew")

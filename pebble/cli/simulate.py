"""One tile order through one cache: DRAM traffic by operand, hits, and the share of block steps that hit.

examples:
  pebble simulate gemm -m 8192 -n 8192 -k 8192 --schedule grouped-8 --tile 128x128x64 --sms 108 --cache 40MiB
  pebble simulate gemm -m 8192 -n 8192 -k 8192 --schedule morton+sawtooth --gpu a40 --policy opt
  pebble simulate llama-2-7b:mlp --tokens 8192 --schedule row-fused-16 --gpu a40
  pebble simulate gemm -m 4096 -n 4096 -k 4096 --schedule row --gpu h20 --policy hardware --sensitivity
  pebble simulate gemm -m 4096 -n 4096 -k 4096 --schedule row --gpu h20 --execution stream-k --write-trace t.npz
  pebble simulate --trace t.npz --cache 60MiB --policy partitions-2
"""

from __future__ import annotations

import argparse
import sys

from pebble.cli import _output
from pebble.cli._kernel import read_kernel
from pebble.cli._schedules import beside, chosen_schedules, simulate, traced
from pebble.cli._target import add_kernel_arguments, add_machine_arguments, read_target
from pebble.cli._trace import run_trace
from pebble.cli._traffic import print_traffic, traffic_json
from pebble.cli._workload import add_workload_arguments, read_workload
from pebble.curves import trace_of
from pebble.errors import InputError
from pebble.files import check_output
from pebble.models.cache_policy import policy_title
from pebble.schedules.orders import parse_order
from pebble.schedules.trace_write import write_trace
from pebble.sensitivity import Sensitivity, sensitivity
from pebble.simulation import KernelConfig
from pebble.units import format_bytes, format_capacity
from pebble.workloads import Attention, Ffn, Gemm


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble simulate``."""
    add_workload_arguments(parser, required=False)
    parser.add_argument(
        "--schedule",
        metavar="NAME",
        help="gemm: a tile order of `pebble schedules`; ffn, attention: as for `pebble compare`",
    )
    parser.add_argument(
        "--sensitivity", action="store_true", help="gemm: how far the answer moves with its assumptions"
    )
    group = parser.add_argument_group("traces (format: `pebble.schedules.trace_file`, and docs/traces.md)")
    group.add_argument("--trace", metavar="FILE", help="simulate this .csv or .npz; with WORKLOAD, against its bound")
    group.add_argument("--write-trace", metavar="FILE", help="write the schedule's trace as .csv or .npz and stop")
    parser.add_argument("--residual", action="store_true", help="ffn: read the input again to add it to the output")
    group = parser.add_argument_group("side by side (attention and an FFN on one GPU)")
    group.add_argument("--beside", metavar="MODEL:mlp", help="run this FFN, of the same tokens, on some of the SMs")
    group.add_argument("--beside-sms", metavar="P", help="how many SMs it gets")
    group.add_argument("--beside-schedule", default="row-fused-16", metavar="NAME", help="its schedule (row-fused-16)")
    add_machine_arguments(parser)
    add_kernel_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Simulate and print."""
    if args.write_trace:
        check_output(args.write_trace, "--write-trace", (".csv", ".npz"))
    if args.trace:
        return run_trace(args)
    if args.workload is None or args.schedule is None:
        raise InputError(
            "simulate: expected WORKLOAD and --schedule NAME, or --trace FILE; see `pebble simulate --help`."
        )
    workload = traced(read_workload(args))
    target = read_target(args)
    config, _, notes = read_kernel(args, workload, target)
    if args.write_trace:
        return _write(args, workload, config)
    if args.beside:
        traffic = beside(args, workload, config)
    else:
        traffic = simulate(args.schedule, workload, config, args.residual)
    moved = None
    if args.sensitivity:
        if not isinstance(workload, Gemm) or args.beside:
            raise InputError(f"--sensitivity: got {workload.label}, expected a gemm.")
        moved = sensitivity(workload, parse_order(args.schedule), config)
    if args.json:
        _output.print_json(
            {
                "workload": {"label": workload.label, **workload.to_json()},
                "schedule": traffic.order,
                "tile": str(config.tile),
                "sms": config.sms,
                "blocks_per_sm": config.blocks_per_sm,
                "cache_bytes": config.cache_bytes,
                "policy": config.policy,
                "execution": config.execution.name,
                "cluster": list(config.execution.cluster),
                **traffic_json(traffic),
                **({"sensitivity": moved.to_json()} if moved else {}),
                "notes": notes,
            }
        )
        return 0
    _output.say(
        f"{workload.label}, {traffic.order}, tile {config.tile}, {config.wave_blocks} blocks at once, "
        f"{policy_title(config.policy)} cache of {format_capacity(config.cache_bytes)}"
    )
    print_traffic(traffic)
    if moved:
        _print_sensitivity(moved)
    for note in notes:
        _output.say(f"note: {note}")
    return 0


def _write(args: argparse.Namespace, workload: Gemm | Ffn | Attention, config: KernelConfig) -> int:
    if args.beside:
        raise InputError("--write-trace: got --beside with it, expected one workload.")
    schedule = chosen_schedules(args.schedule, workload, config.tile)[0]
    trace = trace_of(workload, schedule, config, args.residual)
    write_trace(trace, args.write_trace)
    print(f"trace: {args.write_trace}", file=sys.stderr)
    if args.json:
        operands = list(trace.operand_names)
        _output.print_json({"trace": args.write_trace, "schedule": schedule.name, "touches": trace.touches,
                            "sms": trace.sms, "operands": operands})  # fmt: skip
    return 0


def _print_sensitivity(moved: Sensitivity) -> None:
    print()
    rows = [
        [m.what, format_bytes(m.least_bytes), format_bytes(m.most_bytes), f"{m.most_bytes / moved.base_bytes - 1:+.1%}"]
        for m in (*moved.skew, *moved.capacity, *moved.maps)
    ]
    print(_output.table(["assumption changed", "least", "most", "most / answer"], rows))
    for warning in moved.warnings:
        _output.say(f"warning: {warning}")
    if not moved.warnings:
        print("steady: no cliff within 10 % of the cache size, nor up to 5 % of skew")

"""Simulated traffic of every schedule at every cache size, with the proved bound beneath.

examples:
  pebble curve gemm -m 8192 -n 8192 -k 8192 --gpu a100-sxm4-40gb --figure curve.pdf
  pebble curve llama-2-7b:mlp --tokens 8192 --gpu a40 --schedules separate:row,row-fused-16
  pebble curve gemm -m 4096 -n 4096 -k 4096 --cache 6MiB --sms 84 --policy opt --from 1MiB --to 64MiB --points 24
"""

from __future__ import annotations

import argparse

import numpy as np

from pebble.api.kernels import curve
from pebble.cli import _output
from pebble.cli._arguments import (
    add_kernel_arguments,
    add_machine_arguments,
    add_schedules_arguments,
    add_workload_arguments,
    kernel,
    workload_of,
)
from pebble.cli._look import add_look_arguments, check_figure, write_figure
from pebble.cli._ranking import tell_patience_of
from pebble.models.caches import parse_policy
from pebble.reports.curve import POINTS, SIMULATED_POINTS, CurveReport, simulations
from pebble.reports.ranking import common_orders

_COLUMNS = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble curve``."""
    add_workload_arguments(parser, kernels=True)
    add_schedules_arguments(parser, own=False)
    parser.add_argument("--all", action="store_true", help="every schedule (those in common use)")
    parser.add_argument("--from", dest="least", metavar="SIZE", help="smallest cache (the largest tile, 64KiB or more)")
    parser.add_argument("--to", dest="most", metavar="SIZE", help="largest cache (all operands)")
    parser.add_argument(
        "--points",
        metavar="N",
        help=f"cache sizes between the two ({POINTS}; {SIMULATED_POINTS} or fewer where each is simulated)",
    )
    add_look_arguments(parser)
    add_machine_arguments(parser)
    add_kernel_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Draw and print."""
    check_figure(args)
    workload = workload_of(args)
    sizes = {"least": args.least, "most": args.most, "points": args.points}
    schedules, left_out = args.schedules, 0
    if schedules == "all" and not (args.all or args.json):
        schedules, left_out = common_orders(workload, **kernel(args))
    tell_patience_of(
        workload,
        schedules,
        runs=lambda target, orders: simulations(workload, target, orders, args.points),
        **kernel(args),
    )
    report = curve(workload, schedules, residual=args.residual, **sizes, **kernel(args))
    if args.json:
        _output.print_report(report)
    else:
        _print(report)
        if left_out:
            _output.say(f"more: {left_out} more schedules with --all")
    if args.figure and report.schedules:
        write_figure(args, report.figure)
    return 0 if report.complete else 130


def _short(capacity: int) -> str:
    for limit, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if capacity >= limit:
            return f"{capacity / limit:.3g}{unit}"
    return f"{capacity}B"


def _print(report: CurveReport) -> None:
    kernel, capacities = report.kernel, report.capacities_bytes
    model = parse_policy(kernel.config.policy).title
    _output.say(f"{report.workload.label}: {kernel.runs_and_why}, {model}: DRAM MB at each cache size")
    print()
    at = sorted({*np.linspace(0, len(capacities) - 1, _COLUMNS).astype(int).tolist(), report.reference})
    names = [_short(capacities[i]) + ("*" if i == report.reference else "") for i in at]
    rows = [[c.name, *(f"{c.dram_bytes[i] / 1e6:,.1f}" for i in at)] for c in report.schedules]
    rows.append(["proved bound", *(f"{report.bounds[i].bytes / 1e6:,.1f}" for i in at)])
    print(_output.table(["schedule", *names], rows, keep=[name for name in names if name.endswith("*")]))
    _output.say("* the cache of the GPU or of --cache; the bound is for each cache and what the blocks keep on the SMs")
    if not report.complete:
        _output.say("note: interrupted; the rest was not simulated")
    for note in report.notes:
        _output.say(f"note: {note}")

"""A model from PyTorch or an ONNX file: the floor of each operation, alone and fused, and what fusing can save at most.

A Python file has a module, a class of modules or a function, and `get_inputs()` or `example_inputs`; a class that takes
arguments also `get_init_inputs()`. It is run, on tensors that have shapes and no values.

examples:
  pebble audit model.py:Model --gpu h100
  pebble audit model.onnx --gpu a100 --json
  pebble audit model.py:Model --gpu h100 --measured kernels.csv --report audit.html

The floor of the graph counts inputs, weights and outputs once: everything between may stay on chip.
"""

from __future__ import annotations

import argparse

from pebble.api.audits import audit
from pebble.cli import _output
from pebble.reports.audit import Audit
from pebble.reports.target import whole
from pebble.units import format_bytes, format_ratio, format_seconds
from pebble.webpage.report import check_page, save_answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble audit``."""
    parser.add_argument("target", metavar="FILE", help="FILE.py:NAME, or model.onnx")
    parser.add_argument("--gpu", metavar="SKU", help="a GPU of `pebble machines`, such as a100-sxm4-40gb")
    parser.add_argument("--machine", metavar="FILE", help="a machine file of your own (`pebble machines --help`)")
    parser.add_argument(
        "--measured", metavar="FILE", help="DRAM bytes of kernels: a .csv with the columns operation, dram_bytes"
    )
    parser.add_argument("--report", metavar="FILE", help="a page for a browser: the graph as a picture (.html)")
    parser.add_argument("--top", metavar="N", default="20", help="operations to show (20)")


def run(args: argparse.Namespace) -> int:
    """Audit and print."""
    top = whole("--top", args.top, 1, 100_000)
    if args.report:
        check_page(args.report, "--report")
    result = audit(args.target, gpu=args.gpu, machine=args.machine, measured=args.measured)
    if args.report:
        save_answer(result, args.report)
    if args.json:
        _output.print_report(result)
    else:
        _print(result, top)
    return 0


def _print(result: Audit, top: int) -> None:
    say = _output.say
    say(f"{result.graph.name}, {result.gpu.name}: {len(result.floors)} operations, {result.graph.views} views")
    once = ", every value computed once" if result.computed_once else ""
    say(
        f"floor        {format_bytes(result.floor_bytes)}, {format_seconds(result.floor_seconds)}: no kernels move "
        f"less, however they are fused{once}"
    )
    say(
        f"unfused      {format_bytes(result.alone_bytes)}, {format_seconds(result.alone_seconds)} at least: one kernel "
        "an operation, each from memory to memory"
    )
    over = result.measured_over_alone
    if over is not None:
        text = "1 kernel moves" if len(result.measured) == 1 else f"{len(result.measured)} kernels move"
        say(f"measured     {text} {format_ratio(over, '.2f')} times the proved least{_below(result)}")
    say(f"fusing       saves {format_bytes(max(0, result.alone_bytes - result.floor_bytes))} of that at most")
    if result.unknown:
        names = dict.fromkeys(floor.operation.kind for floor in result.unknown)
        traffic = sum(floor.alone_bytes for floor in result.unknown)
        say(
            f"not known    {len(result.unknown)} operations ({', '.join(names)}): what they read is in none of these "
            f"figures; their operands and results once would be {format_bytes(traffic)}"
        )
    print()
    shown = sorted(result.floors, key=lambda floor: -floor.alone_bytes)[:top]
    rows = [
        [
            floor.operation.name,
            floor.operation.kind if floor.operation.known else f"{floor.operation.kind}, not known",
            format_bytes(floor.alone_bytes),
            format_seconds(floor.alone_seconds),
            format_bytes(floor.fused_bytes + floor.part_bytes),
            floor.theorem,
        ]
        for floor in shown
    ]
    headers = ["operation", "kind", "alone", "time", "fused", "alone by"]
    print(_output.table(headers, rows, left=2, keep=("alone", "fused")))
    if len(shown) < len(result.floors):
        say(f"{len(result.floors) - len(shown)} operations that move less: --top N")
    if result.written_out:
        print()
    for case in result.written_out[:3]:
        say(
            f"attention is written out in {', '.join(case.operations)}: {format_bytes(case.alone_bytes)} at least in "
            f"kernels of their own, {format_bytes(case.fused_bytes)} in one"
        )
    if result.between:
        print()
        say("kept on chip, these save most, at most:")
        for item in result.between[:3]:
            say(f"{format_bytes(item.bytes)}: {item.name}, from {item.writer} to {', '.join(item.readers[:4])}", "  ")


def _below(result: Audit) -> str:
    """Kernels that a counter saw move less than is proved."""
    traffic = result.measured
    names = [
        floor.operation.name
        for floor in result.floors
        if traffic.get(floor.operation.name, floor.alone_bytes) < floor.alone_bytes
    ]
    if not names:
        return ""
    return f"; less than is proved: {', '.join(names[:4])}: were operands in the cache, or is it another kernel?"

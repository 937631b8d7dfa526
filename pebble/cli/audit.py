"""A model by name, from PyTorch or ONNX: the floor of each operation, alone and fused, and what fusing saves at most.

A model of `pebble workloads` by its name, with --tokens T for a prefill or --context N for a decode step; or one with
experts: deepseek-v3, mixtral-8x7b, mixtral-8x22b, qwen3-30b-a3b, qwen3-235b-a22b. A Python file has a module, a class
of modules or a function, and `get_inputs()` or `example_inputs`; a class that takes arguments also
`get_init_inputs()`. It is run, on tensors that have shapes and no values.

examples:
  pebble audit llama-3-8b --tokens 4096 --gpu h100
  pebble audit llama-3-8b --context 8192 --batch 8 --gpu h100
  pebble audit model.py:Model --gpu h100
  pebble audit mixtral-8x7b --context 4096 --batch 16 --routing even --gpu h200
  pebble audit model.onnx --gpu a100 --json
  pebble audit model.py:Model --gpu h100 --measured kernels.csv --report audit.html

The floor of the graph counts inputs, weights and outputs once: everything between may stay on chip.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from pebble.api.audits import audit
from pebble.cli import _output
from pebble.errors import InputError
from pebble.graphs.layers import in_any_layer, saved_between
from pebble.reports.audit import Audit, OperationFloor
from pebble.reports.target import whole
from pebble.system.files import write_text
from pebble.units import format_bytes, format_ratio, format_seconds
from pebble.webpage.report import check_page, save_answer
from pebble.workloads.workload import MAX_DIMENSION


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble audit``."""
    parser.add_argument("target", metavar="MODEL", help="llama-3-8b ..., FILE.py:NAME, or model.onnx")
    parser.add_argument("--tokens", metavar="T", help="of a named model: new tokens of each sequence")
    parser.add_argument("--context", metavar="N", help="of a named model: keys that the last token sees; alone: decode")
    parser.add_argument("--batch", metavar="B", help="of a named model: sequences (1)")
    parser.add_argument("--dtype", help="of a named model: weights, activations, KV cache (bf16)")
    parser.add_argument("--routing", help="of a named model with experts: any (the fewest, by default) or even")
    parser.add_argument("--gpu", metavar="SKU", help="a GPU of `pebble machines`, such as a100-sxm4-40gb")
    parser.add_argument("--machine", metavar="FILE", help="a machine file of your own (`pebble machines --help`)")
    parser.add_argument(
        "--measured", metavar="FILE", help="DRAM bytes of kernels: a .csv with the columns operation, dram_bytes"
    )
    parser.add_argument("--report", metavar="FILE", help="a page for a browser: the graph as a picture (.html)")
    parser.add_argument("--badge", metavar="FILE", help="with --measured: the ratio, as JSON that shields.io draws")
    parser.add_argument("--top", metavar="N", default="20", help="operations to show (20)")


def run(args: argparse.Namespace) -> int:
    """Audit and print."""
    top = whole("--top", args.top, 1, 100_000)
    if args.report:
        check_page(args.report, "--report")
    if args.badge is not None and args.measured is None:
        raise InputError("--badge: got no --measured, expected a table of the bytes that kernels move.")
    sizes = {name: vars(args)[name] for name in ("tokens", "context", "batch")}
    given: dict[str, Any] = {
        name: whole(f"--{name}", value, 1, MAX_DIMENSION) for name, value in sizes.items() if value is not None
    }
    given |= {name: vars(args)[name] for name in ("gpu", "machine", "measured", "dtype", "routing")}
    result = audit(args.target, **given)
    if args.report:
        save_answer(result, args.report)
    if args.badge is not None:
        save_badge(result, args.badge)
    if args.json:
        _output.print_report(result)
    else:
        _print(result, top)
    return 0


def save_badge(result: Audit, path: str) -> None:
    """Write the ratio of measured kernels to their floors; InputError where none of them has a floor."""
    badge = result.badge
    if badge is None:
        raise InputError("--badge: no kernel that was measured has a floor, expected one that moves something.")
    write_text(path, json.dumps(badge, indent=1) + "\n", "--badge: ")


def _print(result: Audit, top: int) -> None:
    say = _output.say
    say(f"{result.graph.name}, {result.gpu.name}: {len(result.floors)} operations, {result.graph.views} views")
    if result.graph.assumption:
        say(f"experts      {result.graph.assumption}")
    once = ", every value computed once" if result.computed_once else ""
    say(
        f"floor        {format_bytes(result.floor_bytes)}, {format_seconds(result.floor_seconds)}: no kernels move "
        f"less, however they are fused{once}"
    )
    parts = [f"{format_bytes(n)} of {name}" for name, n in result.floor_parts.items() if n and name != "products"]
    beyond = result.floor_parts["products"]
    parts += [f"{format_bytes(beyond)} more by theorems on products"] if beyond else []
    say(f"that is      {', '.join(parts)}")
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
    equal: dict[tuple[str, ...], list[OperationFloor]] = {}
    for floor in result.floors:
        operation = floor.operation
        kind = operation.kind if operation.known else f"{operation.kind}, not known"
        equal.setdefault((in_any_layer(operation.name), kind, floor.theorem), []).append(floor)
    ranked = sorted(equal.items(), key=lambda item: -sum(floor.alone_bytes for floor in item[1]))
    rows = [
        [
            name if len(floors) > 1 else floors[0].operation.name,
            kind,
            str(len(floors)),
            format_bytes(sum(floor.alone_bytes for floor in floors)),
            format_seconds(sum(floor.alone_seconds for floor in floors)),
            format_bytes(sum(floor.fused_bytes + floor.part_bytes for floor in floors)),
            theorem,
        ]
        for (name, kind, theorem), floors in ranked[:top]
    ]
    headers = ["operation", "kind", "layers", "alone", "time", "fused", "alone by"]
    if len(equal) == len(result.floors):  # no layers that are alike
        headers, rows = [*headers[:2], *headers[3:]], [[*row[:2], *row[3:]] for row in rows]
    print(_output.table(headers, rows, left=2, keep=("alone", "fused")))
    if len(rows) < len(equal):
        say(f"{len(equal) - len(rows)} operations that move less: --top N")
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
        for text in saved_between((t.name, t.bytes, t.writer, t.readers) for t in result.between)[:3]:
            say(text, "  ")


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

"""A decode step of one layer: the KV cache's share of the least traffic, and whether the intermediates fit on chip.

Read once per step: the KV cache (proved: no schedule reads it less) and the weights. Rows are context lengths,
columns batch sizes.

examples:
  pebble decode llama-3-8b --gpu h100-sxm5-80gb
  pebble decode llama-2-7b --gpu a40 --dtype fp8 --json
  pebble decode llama-3-8b --gpu h100-sxm5-80gb --figure decode.pdf
"""

from __future__ import annotations

import argparse

from pebble.cli import _output
from pebble.cli._arguments import add_machine_arguments, where
from pebble.cli._floor import add_time_arguments, rates_line
from pebble.cli._look import add_look_arguments, check_figure, write_figure
from pebble.reports.decode import BATCHES, CONTEXTS, Decode, decode
from pebble.units import format_bytes, format_capacity, format_seconds
from pebble.workloads import DTYPE_BYTES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble decode``."""
    parser.add_argument("model", metavar="MODEL", help="a model of `pebble workloads`")
    parser.add_argument("--dtype", default="bf16", help="weights, activations and KV cache: " + ", ".join(DTYPE_BYTES))
    add_look_arguments(parser)
    add_machine_arguments(parser)
    add_time_arguments(parser, energy=False)


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    check_figure(args)
    result = decode(args.model, args.dtype, args.accumulator, **where(args))
    if args.json:
        _output.print_report(result)
    else:
        _print(result)
    if args.figure is not None:
        write_figure(args, result.figure)
    return 0


def _print(result: Decode) -> None:
    say, on_chip = _output.say, result.on_chip_bytes
    steps = {(step.context, step.batch): step for step in result.steps}
    say(f"{result.model}, one layer, one decode step, on {result.where} ({format_capacity(on_chip)} on chip)")
    say(f"weights of the layer {format_bytes(result.steps[0].weight_bytes)}, read once for the batch")
    print()
    say("share of the KV cache in the layer's least traffic (* intermediates do not fit on chip):")
    rows = []
    for context in CONTEXTS:
        row = [f"{context // 1024}k"]
        for batch in BATCHES:
            step = steps[context, batch]
            row.append(f"{step.kv_share:.1%}" + ("*" if step.intermediate_bytes > on_chip else ""))
        rows.append(row)
    print(_output.table(["context", *(f"batch {b}" for b in BATCHES)], rows))
    print()
    say("proved bound of the attention, each K and V value read once:")
    rows = [
        [f"{context // 1024}k", *(format_bytes(steps[context, batch].attention_bound_bytes) for batch in BATCHES)]
        for context in CONTEXTS
    ]
    print(_output.table(["context", *(f"batch {b}" for b in BATCHES)], rows))
    if not result.floors:
        return
    print()
    first = result.floors[0]
    if not first.parts:
        say(f"least time of the layer: none: {'; '.join(first.missing)}")
        return
    floors = {(step.context, step.batch): floor for step, floor in zip(result.steps, result.floors, strict=True)}
    say(f"least time of the layer, proved ({rates_line(first, result.dtype)}; * compute-bound):")
    rows = []
    for context in CONTEXTS:
        row = [f"{context // 1024}k"]
        for batch in BATCHES:
            floor = floors[context, batch]
            compute = floor.binds is not None and floor.binds.name == "operations"
            row.append(format_seconds(floor.seconds) + ("*" if compute else ""))
        rows.append(row)
    print(_output.table(["context", *(f"batch {b}" for b in BATCHES)], rows))
    for missing in first.missing:
        say(missing)
    say(result.verdict)

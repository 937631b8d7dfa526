"""A kernel that memory binds: items a thread and vector width, from the bytes that must be in flight.

Latency times bandwidth must be under way for the whole bandwidth (Little's law); each way of writing the loads is shown
with what it keeps under way on an SM, the one to take first.

examples:
  pebble stream elementwise --items 268435456 --inputs 2 --gpu h100-sxm5-80gb
  pebble stream softmax --items 134217728 --row 32768 --gpu a100-sxm4-80gb
  pebble stream dequantize --items 58720256 --bits 4 --group 128 --gpu l40s
  pebble stream adam --items 8000000000 --gpu h200-sxm-141gb
  pebble stream momentum --items 8000000000 --gradient-dtype fp32 --master-dtype none --gpu h200-sxm-141gb
  pebble stream halo --items 16777216 --side 16 --radius 1 --gpu a40
"""

from __future__ import annotations

import argparse

from pebble.cli import _output
from pebble.models.stream_model import KINDS
from pebble.reports.cycles import number
from pebble.reports.stream import Stream, stream
from pebble.reports.target import whole
from pebble.units import format_bytes, format_seconds
from pebble.workloads.workload import DTYPE_BYTES

_OPTIONS = {
    "inputs": "arrays that an elementwise kernel reads (1)",
    "row": "items of a row of softmax and norm (all)",
    "bits": "of a packed weight (4)",
    "group": "weights that share a scale (128)",
    "side": "of the square tile of a halo (16)",
    "radius": "of its filter (1)",
    "threads": "of a block (256)",
}
_TYPES = {
    "gradient-dtype": "of an optimizer step: type of the gradients (the parameters')",
    "moment-dtype": "type of the moments (fp32)",
    "master-dtype": "type of the weights kept beside narrower parameters (fp32), or none",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble stream``."""
    kinds = "; ".join(f"{name}: {text}" for name, text in KINDS.items())
    parser.add_argument("kind", metavar="KERNEL", help=kinds)
    parser.add_argument("--items", metavar="N", required=True, help="of the output; of a reduction's input; parameters")
    parser.add_argument("--dtype", default="bf16", help="of the items: " + ", ".join(DTYPE_BYTES) + " (bf16)")
    parser.add_argument("--gpu", metavar="SKU", help="a GPU of `pebble machines`, such as a100-sxm4-40gb")
    parser.add_argument("--machine", metavar="FILE", help="a machine file of your own (`pebble machines --help`)")
    parser.add_argument("--dram-latency", metavar="CYCLES", help="instead of the machine file's")
    for name, text in _OPTIONS.items():
        parser.add_argument(f"--{name}", metavar="N", help=text)
    for name, text in _TYPES.items():
        parser.add_argument(f"--{name}", metavar="TYPE", help=text)
    parser.add_argument("--top", metavar="N", default="6", help="ways to show (6)")


def run(args: argparse.Namespace) -> int:
    """Model and print."""
    top = whole("--top", args.top, 1, 1000)
    latency = None if args.dram_latency is None else number("dram_latency", args.dram_latency)
    options = {name: vars(args)[name] for name in (*_OPTIONS, *(name.replace("-", "_") for name in _TYPES))}
    result = stream(
        args.kind, args.items, dtype=args.dtype, gpu=args.gpu, machine=args.machine, dram_latency=latency, **options
    )
    if args.json:
        _output.print_report(result)
    else:
        _print(result, top)
    return 0


def _print(result: Stream, top: int) -> None:
    say, model, kernel, c = _output.say, result.model, result.model.kernel, result.latency
    say(
        f"{kernel.kind} of {kernel.items:,} items on {result.gpu.name}: loads {format_bytes(kernel.load_bytes)}"
        + (" in two passes" if kernel.passes > 1 else "")
        + f", stores {format_bytes(kernel.store_bytes)}; {format_seconds(model.least_seconds)} at least for the "
        f"{format_bytes(kernel.compulsory_bytes)} that must cross DRAM"
    )
    if kernel.arrays:
        each = kernel.compulsory_bytes // kernel.items
        told = (
            f"{array.name} {array.item_bytes} B {' and '.join(['read'] * array.read + ['written'] * array.written)}"
            for array in kernel.arrays
        )
        say(f"{each} bytes a parameter, exactly, where each array crosses once: {'; '.join(told)}")
    say(
        f"in flight on an SM: {c.value:g} cycles x {result.rate.value:.2f} B/clk = {model.needed_bytes:,.0f} "
        f"bytes for the whole bandwidth (latency: {c.mark}, {c.source})"
    )
    print()
    headers = ["loads", "items/thread", "registers", "threads/SM", "bytes in flight", "of needed", "waves"]
    rows = [
        [
            f"{plan.unroll} x {plan.vector_bytes} B",
            f"{plan.items_per_thread}",
            f"{plan.registers_per_thread}",
            f"{plan.threads_per_sm:,}",
            f"{plan.bytes_in_flight:,.0f}",
            f"{plan.share:.0%}",
            f"{plan.waves:,}",
        ]
        for plan in model.plans[:top]
    ]
    print(_output.table(headers, rows, keep=("of needed", "bytes in flight")))
    if model.best.share < 1:
        say(f"note: no way keeps enough in flight; at most {model.best.share:.0%} of the bandwidth can be reached")

"""The proof of a lower bound for a reader, with the numbers of the instance filled in.

examples:
  pebble prove gemm -m 8192 -n 8192 -k 8192 --cache 40MiB --out proof.md
  pebble prove attention --queries 32768 --keys 32768 --head-dim 128 --cache 228KiB --out proof.tex
"""

from __future__ import annotations

import argparse
import sys

from pebble.bounds import WeightedBound
from pebble.cli import _output
from pebble.cli._arguments import (
    add_accumulate_argument,
    add_machine_arguments,
    add_workload_arguments,
    where,
    workload_of,
)
from pebble.reports.proof import prove
from pebble.system.files import check_output, write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble prove``."""
    add_workload_arguments(parser)
    add_machine_arguments(parser)
    add_accumulate_argument(parser)
    parser.add_argument(
        "--recompute",
        choices=("forbidden", "allowed"),
        default="forbidden",
        help="whether a value may be computed twice",
    )
    parser.add_argument(
        "--cases", metavar="N", help="ffn, attention: cases that the proof may tell apart, as for bound"
    )
    parser.add_argument("--out", metavar="FILE", help="proof.md or proof.tex; without it, Markdown on the terminal")


def run(args: argparse.Namespace) -> int:
    """Write the proof."""
    if args.out is not None:
        check_output(args.out, "--out", (".md", ".tex"))
    form = "latex" if (args.out or "").lower().endswith(".tex") else "markdown"
    again = args.recompute == "allowed"
    options = {"recompute": again, "cases": args.cases, "accumulators": args.accumulate}
    result = prove(workload_of(args), form, **options, **where(args))
    if args.out is not None:
        write_text(args.out, result.text, "--out: ")
    if args.json:
        _output.print_report(result, out=args.out)
    elif args.out is None:
        sys.stdout.write(result.text)
    else:
        lower = result.bound.lower
        least = f"{lower.bytes:,} bytes" if isinstance(lower.proof, WeightedBound) else f"{lower.elements:,} elements"
        _output.say(f"{args.out}: at least {least} for {result.bound.workload.label}")
    return 0

"""The proof of a lower bound for a reader, with the numbers of the instance filled in.

examples:
  pebble prove gemm -m 8192 -n 8192 -k 8192 --cache 40MiB --out proof.md
  pebble prove attention --queries 32768 --keys 32768 --head-dim 128 --cache 228KiB --out proof.tex
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pebble.cli import _output
from pebble.cli._target import add_machine_arguments, where
from pebble.cli._workload import add_workload_arguments, workload_of
from pebble.errors import InputError
from pebble.reports.proof import prove


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble prove``."""
    add_workload_arguments(parser)
    add_machine_arguments(parser)
    parser.add_argument(
        "--recompute",
        choices=("forbidden", "allowed"),
        default="forbidden",
        help="whether a value may be computed twice",
    )
    parser.add_argument("--out", metavar="FILE", help="proof.md or proof.tex; without it, Markdown on the terminal")


def run(args: argparse.Namespace) -> int:
    """Write the proof."""
    suffix = Path(args.out or "proof.md").suffix.lower()
    if suffix not in (".md", ".tex"):
        raise InputError(f"--out: got {args.out!r}, expected a name that ends in .md or .tex.")
    form = "latex" if suffix == ".tex" else "markdown"
    found = prove(workload_of(args), form, recompute=args.recompute == "allowed", **where(args))
    if args.out is not None:
        try:
            Path(args.out).write_text(found.text, encoding="utf-8")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"--out: {args.out[:80]} cannot be written: {reason}.") from None
    if args.json:
        _output.print_report(found, out=args.out)
    elif args.out is None:
        sys.stdout.write(found.text)
    else:
        elements = found.certificate["claims"][0]["elements"]
        _output.say(f"{args.out}: at least {elements:,} elements for {found.bound.workload.label}")
    return 0

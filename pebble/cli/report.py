"""One page for a browser, from what other commands printed with --json: tables, curves, tile walks, pebblings.

FILE is what compare, curve, bound, solve, replay, simulate, tune, audit or
results printed, a store of a sweep (.duckdb), a certificate, or measured rows (.csv).
The page is one file and loads nothing from a network; it has sections for what
the files hold.

examples:
  pebble compare gemm -m 8192 -n 8192 -k 8192 --gpu a100-sxm4-40gb --json > compare.json
  pebble curve gemm -m 8192 -n 8192 -k 8192 --gpu a100-sxm4-40gb --json > curve.json
  pebble report compare.json curve.json --out report.html
"""

from __future__ import annotations

import argparse

from pebble.cli import _output
from pebble.webpage.report import check_page, report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble report``."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="what `pebble ... --json` printed")
    parser.add_argument("--out", metavar="FILE", default="report.html", help="the page (report.html)")
    parser.add_argument("--title", metavar="TEXT", help="of the page (what the files are about)")


def run(args: argparse.Namespace) -> int:
    """Make the page and write it."""
    check_page(args.out)
    page = report(*args.files, title=args.title)
    page.save(args.out)
    if args.json:
        _output.print_report(page, out=args.out)
    else:
        text = ", ".join(f"{name} ({count})" for name, count in page.sections.items())
        _output.say(f"{args.out}: {len(page.html) / 1e6:.2f} MB: {text}")
    return 0

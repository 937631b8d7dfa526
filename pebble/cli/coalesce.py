"""Requests and sectors of the warps that load or store an array, from the addresses of their lanes.

examples:
  pebble coalesce --cols 8192                                    256 requests, 1,024 sectors
  pebble coalesce --cols 8192 --stride 2                         256 requests, 2,048 sectors
  pebble coalesce --rows 2048 --cols 2048 --threads 16x16 --each 4x4
  pebble coalesce --rows 128 --cols 4096 --bytes 2 --vector 8 --figure sectors.svg
"""

from __future__ import annotations

import argparse

from pebble.api.kernels import coalesce
from pebble.cli import _output
from pebble.cli._look import add_look_arguments, check_figure, write_figure
from pebble.errors import InputError
from pebble.reports.target import whole
from pebble.units import format_ratio

_MOST = 2**40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble coalesce``."""
    parser.add_argument("--cols", required=True, metavar="N", help="values of a row that are touched")
    parser.add_argument("--rows", default="1", metavar="N", help="rows (1)")
    parser.add_argument("--bytes", default="4", metavar="B", help="bytes of a value: 1, 2, 4, 8 or 16 (4)")
    parser.add_argument("--vector", default="1", metavar="N", help="values that a lane moves in one instruction (1)")
    parser.add_argument("--stride", default="1", metavar="N", help="distance of neighbouring values, in values (1)")
    parser.add_argument("--offset", default="0", metavar="B", help="bytes of the first value from a 128-byte line (0)")
    parser.add_argument("--pitch", default="0", metavar="N", help="distance of rows, in values (what the columns take)")
    parser.add_argument("--threads", metavar="XxY", help="2-D tiles: threads of a block along columns and rows")
    parser.add_argument("--each", default="1x1", metavar="XxY", help="values of each thread, side by side (1x1)")
    add_look_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Count and print."""
    check_figure(args)
    result = coalesce(
        whole("--cols", args.cols, 1, _MOST),
        whole("--rows", args.rows, 1, _MOST),
        value_bytes=whole("--bytes", args.bytes, 1, 16),
        vector=whole("--vector", args.vector, 1, 16),
        stride=whole("--stride", args.stride, 1, 2**32),
        offset_bytes=whole("--offset", args.offset, 0, _MOST),
        pitch=whole("--pitch", args.pitch, 0, _MOST),
        threads=_sides("--threads", args.threads) if args.threads else None,
        each=_sides("--each", args.each),
    )
    if args.figure is not None:
        write_figure(args, result.figure)
    if args.json:
        _output.print_report(result)
        return 0
    rows = [
        [
            str(row["name"]),
            f"{row['requests']:,}",
            f"{row['sectors']:,}",
            format_ratio(row["sectors_per_request"]),
            f"{row['efficiency']:.1%}",
        ]
        for row in result.rows()
    ]
    print(_output.table(["", "requests", "sectors", "a request", "used"], rows))
    print()
    counts = result.counted
    _output.say(
        f"any pattern of so many values takes {counts.least_sectors:,} to {counts.most_sectors:,} sectors of 32 bytes: "
        "every byte once, or a sector a value"
    )
    return 0


def _sides(option: str, text: str) -> tuple[int, int]:
    parts = text.lower().split("x")
    if len(parts) != 2:
        raise InputError(f"{option}: got {text[:40]!r}, expected two numbers such as 16x16.")
    return whole(option, parts[0], 1, 2**20), whole(option, parts[1], 1, 2**20)

"""A figure of a proof: ski-slope, projections, segments, pebbling, walk, gap, fusion, buffers, omega,
placement, roofline, stationarity, bands, energy.

examples:
  pebble figure ski-slope --out ski-slope.pdf
  pebble figure projections gemm -m 4096 -n 4096 -k 4096 --cache 6MiB --out box.svg
  pebble figure segments gemm -m 24 -n 24 -k 24 --cache 60el --out segments.svg
  pebble figure pebbling --solution solved.json --out pebbling.svg     (from `pebble solve ... --json`)
  pebble figure walk --schedules row,hilbert --grid 16x16 --out walk.png
  pebble figure fusion llama-2-7b:mlp --tokens 8192 --out fusion.pdf
  pebble figure buffers --out buffers.svg
  pebble figure omega gemm -m 8192 -n 8192 -k 8192 --gpu h100-sxm5-80gb --out omega.svg
  pebble figure placement --grid 16x16 --sms 8 --out placement.svg
  pebble figure roofline gemm -m 8192 -n 8192 -k 8192 --gpu h100-sxm5-80gb --out roofline.svg
  pebble figure stationarity --cache 6MiB --out stationarity.svg
  pebble figure bands ffn --tokens 8192 --d-model 4096 --hidden 11008 --out bands.svg
  pebble figure energy llama-2-7b:mlp --tokens 8192 --gpu a40 --schedules row-fused-8,separate:row --out energy.svg
"""

from __future__ import annotations

import argparse
from typing import Any

from pebble.api.drawn import FIGURES
from pebble.api.figures import FigureOptions, check_data_path, figure
from pebble.cli import _output
from pebble.cli._arguments import add_workload_arguments, explicit_parameters, optional_workload
from pebble.cli._look import add_look_arguments, look_arguments
from pebble.errors import InputError, UnknownNameError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble figure``."""
    parser.add_argument("name", metavar="NAME", help=", ".join(FIGURES))
    add_workload_arguments(parser, required=False)
    parser.add_argument("--out", metavar="FILE", help="a name that ends in .pdf, .svg or .png; default NAME.svg")
    parser.add_argument("--data", metavar="FILE", help="write the numbers that are drawn as .csv (--json has them too)")
    parser.add_argument(
        "--cache", metavar="SIZE", help="projections, segments, pebbling, stationarity: fast memory, such as 60el"
    )
    parser.add_argument(
        "--schedules",
        metavar="A,B",
        help="ski-slope, walk: tile orders, up to four; roofline, energy: any number (all)",
    )
    parser.add_argument("--gpu", metavar="SKU", help="omega, roofline, bands, energy: a GPU of `pebble machines`")
    parser.add_argument("--machine", metavar="FILE", help="omega, roofline, bands, energy: a machine file of your own")
    parser.add_argument("--accumulator", metavar="TYPE", help="roofline: of sums, fp32 or fp16 (fp32)")
    parser.add_argument("--energy", metavar="TABLE", help="energy: the table, 7nm, k40 or h100 (7nm)")
    parser.add_argument("--sms", metavar="P", help="ski-slope, walk: SMs of the kernel (108); placement: SMs (8)")
    parser.add_argument("--grid", metavar="RxC", help="walk, placement: the tile grid (32x32, 16x16)")
    parser.add_argument("--segments", metavar="H", help="segments: how many (as many as prove most)")
    parser.add_argument("--solution", metavar="FILE", help="pebbling: what `pebble solve ... --json` printed")
    add_look_arguments(parser, figure=None)


def run(args: argparse.Namespace) -> int:
    """Draw the figure and write it."""
    from pebble.plots.save import check_figure_path

    if args.name not in FIGURES:
        raise UnknownNameError("figure", args.name, FIGURES, "pebble figure --help")
    path = args.out or f"{args.name}.svg"
    check_figure_path(path, "--out")
    if args.data is not None:
        check_data_path(args.data)
    look = look_arguments(args)
    if args.workload is None and explicit_parameters(args) and "workload" not in FIGURES[args.name][1]:
        raise InputError(f"{args.name}: got the shape of a workload, which this figure does not take; leave it out.")
    options: dict[str, Any] = {key: vars(args)[key] for key in FigureOptions.__annotations__}
    result = figure(args.name, optional_workload(args), **look, **options)
    result.save(path)
    if args.data is not None:
        result.save(args.data)
    if args.json:
        _output.print_json({**result.document(), "out": path})
    else:
        _output.say(f"{args.name}: written to {path}" + (f", its numbers to {args.data}" if args.data else ""))
    return 0

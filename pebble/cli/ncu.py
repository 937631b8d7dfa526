"""Reports of Nsight Compute: their kernels, what those compute, and how far they are from the proved least.

  pebble ncu report FILE     the kernels: time, bytes, sectors, hit rates, what limits the critical one, what is missing
  pebble ncu which FILE      what the critical kernel computes: data type, shape, heads
  pebble ncu compare FILE    measured beside proved and beside each simulated order
  pebble ncu dims FILES      the dimensions of a model from counters of several sequence lengths
  pebble ncu law FILES       the law that each counter follows over a sweep of sizes N, or that none fits
  pebble ncu model FILE      the model of a whole forward pass: layers, widths, heads, vocabulary, data type
  pebble ncu row FILE        a row of the library of measurements: measured, predicted, proved

FILE is a .ncu-rep (needs `pip install ncu-report`), or what `ncu --csv` printed, with or without
`--page raw`.

examples:
  pebble ncu report mine.ncu-rep
  pebble ncu which mine.csv --rows 2048 --cols 2048
  pebble ncu compare mine.ncu-rep --workload gemm -m 8192 -n 8192 -k 8192 --gpu h200-sxm-141gb --figure out.svg
  pebble ncu dims a.csv b.csv c.csv d.csv --tokens 256,512,1024,2048
  pebble ncu law sweep.csv --sizes 256,512,1024,2048
  pebble ncu model forward.csv --tokens 512
  pebble ncu row mine.csv --workload llama-2-7b:o --tokens 4096 --schedule grouped-8 --append rows.csv
"""

from __future__ import annotations

import argparse
import sys

from pebble.cli import _counters, _output
from pebble.cli._arguments import (
    add_kernel_arguments,
    add_machine_arguments,
    add_workload_option,
    kernel,
    optional_workload,
)
from pebble.cli._look import add_look_arguments, check_figure, write_figure
from pebble.cli._output import schedules_bar
from pebble.errors import InputError
from pebble.reports.ncu import ncu
from pebble.reports.ncu_compare import judge
from pebble.reports.ncu_dims import recover_dims
from pebble.reports.ncu_law import recover_laws
from pebble.reports.ncu_model import recover_model
from pebble.reports.ncu_row import RunNotes, append_rows, kit_rows, measured_row
from pebble.reports.target import whole
from pebble.system.files import check_output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble ncu``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (add, _) in _ACTIONS.items():
        action = actions.add_parser(
            name, allow_abbrev=False, description=parser.description, formatter_class=parser.formatter_class
        )
        action.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="one JSON document on stdout"
        )
        add(action)


def _file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .ncu-rep, or what `ncu --csv` printed")


def _which(parser: argparse.ArgumentParser) -> None:
    _file(parser)
    parser.add_argument("--launch", metavar="L", help="ID or part of a name (the critical kernel)")
    parser.add_argument("--rows", metavar="N", help="rows of the result: tells the data type, and heads of attention")
    parser.add_argument("--cols", metavar="N", help="columns of the result")


def _measured(parser: argparse.ArgumentParser) -> None:
    _file(parser)
    add_workload_option(parser)
    parser.add_argument(
        "--launch", action="append", default=[], metavar="L",
        help="ID or part of a name of a launch (the critical one); several are added up",
    )  # fmt: skip
    parser.add_argument(
        "--warm", action="store_true", help="L2 was not emptied before (`ncu --cache-control none`; a .ncu-rep says it)"
    )
    add_machine_arguments(parser)
    add_kernel_arguments(parser, advised=False)


def _compare(parser: argparse.ArgumentParser) -> None:
    _measured(parser)
    parser.add_argument("--schedules", default="all", metavar="NAMES", help="all, or names separated by commas (all)")
    add_look_arguments(parser)


def _dims(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a report a length, or one table of counters")
    # not the option of the workloads, which has one number
    parser.add_argument("--tokens", metavar="A,B,...", help="sequence lengths, in the order of the reports")
    parser.add_argument("--launch", metavar="L", help="ID or part of a name, the same in each report")
    parser.add_argument("--tile-side", metavar="T", help="side of the block tile (as fits best)")
    parser.add_argument("--bytes", metavar="B", help="bytes of a value: 1, 2, 4 or 8 (as fits best)")


def _law(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a report a size, one with a launch a size, or a table with a column n"
    )
    parser.add_argument("--sizes", metavar="A,B,...", help="N of each report or launch, in their order")
    parser.add_argument("--launch", metavar="L", help="ID or part of a name (of one report: all launches)")


def _model(parser: argparse.ArgumentParser) -> None:
    _file(parser)
    # not the option of the workloads
    parser.add_argument("--tokens", metavar="T", help="rows of the products, where known: batch times length")


def _row(parser: argparse.ArgumentParser) -> None:
    _measured(parser)
    parser.add_argument(
        "--schedule", metavar="NAME", help="the order that the kernel walks, where known: it is predicted"
    )
    parser.add_argument("--launched", metavar="HOW", help="persistent, block-per-tile or library (told by the grid)")
    parser.add_argument("--plan", metavar="PLAN", help="the report is of benchmarks/gpu: a row a case of its plan")
    parser.add_argument("--append", metavar="FILE", help="add the row to this table of the library, .csv")
    parser.add_argument("--note", default="", metavar="TEXT", help="for the row")
    parser.add_argument("--date", metavar="DATE", help="of the measurement (today)")


def run(args: argparse.Namespace) -> int:
    """Answer one of them."""
    return _ACTIONS[args.action][1](args)


def _run_report(args: argparse.Namespace) -> int:
    result = ncu(args.file)
    if args.json:
        _output.print_report(result)
    else:
        _counters.print_launches(result)
    return 0


def _run_which(args: argparse.Namespace) -> int:
    rows, cols = (
        None if text is None else whole(name, text, 1, 2**32)
        for name, text in (("--rows", args.rows), ("--cols", args.cols))
    )  # fmt: skip
    result = ncu(args.file).which(args.launch, rows, cols)
    if args.json:
        _output.print_report(result)
    else:
        known = [f"{side:,} {what}" for side, what in ((rows, "rows"), (cols, "columns")) if side is not None]
        _counters.print_identified(result, " and ".join(known))
    return 0


def _run_compare(args: argparse.Namespace) -> int:
    check_figure(args)
    profile = ncu(args.file).profile
    workload, options = optional_workload(args, "--workload"), {"cold": _cold(args), **kernel(args)}
    if sys.stderr.isatty():
        with schedules_bar() as bar:
            result = judge(profile, workload, args.launch, args.schedules, progress=bar, **options)
    else:
        result = judge(profile, workload, args.launch, args.schedules, **options)
    if args.figure is not None and result.comparison.complete:
        write_figure(args, result.figure)
    if args.json:
        _output.print_report(result)
    else:
        _counters.print_judgement(result)
    return 0 if result.comparison.complete else 130


def _cold(args: argparse.Namespace) -> bool | None:
    return False if args.warm else None


def _run_dims(args: argparse.Namespace) -> int:
    result = recover_dims(
        args.files, args.tokens, launch=args.launch, tile_side=args.tile_side, value_bytes=args.bytes
    )  # fmt: skip
    if args.json:
        _output.print_report(result)
    else:
        _counters.print_dims(result)
    return 0


def _run_law(args: argparse.Namespace) -> int:
    result = recover_laws(args.files, args.sizes, launch=args.launch)
    if args.json:
        _output.print_report(result)
    else:
        _counters.print_laws(result)
    return 0


def _run_model(args: argparse.Namespace) -> int:
    result = recover_model(args.file, args.tokens)
    if args.json:
        _output.print_report(result)
    else:
        _counters.print_model(result)
    return 0


def _run_row(args: argparse.Namespace) -> int:
    if args.append is not None:
        check_output(args.append, "--append", (".csv",))
    profile, workload = ncu(args.file).profile, optional_workload(args, "--workload")
    if args.plan is not None:
        if workload is not None or args.launch or args.schedule or args.launched:
            raise InputError(
                "--plan: got it with a workload, kernel, schedule or launch, which the plan says; leave them out."
            )
        result = list(kit_rows(profile, args.plan, **kernel(args)))
    else:
        spec = RunNotes(args.launched, args.note, args.date)
        result = [measured_row(profile, workload, args.launch, args.schedule, spec, cold=_cold(args), **kernel(args))]
    if args.append is not None:
        append_rows(args.append, result)
    if args.json:
        _output.print_json({"rows": [element.document() for element in result], "appended_to": args.append})
        return 0
    for item in result:
        _output.say(item.summary())
    if args.append is not None:
        _output.say(f"{len(result)} row{'s' * (len(result) != 1)} added to {args.append}")
    else:
        _output.say("`--append FILE.csv` writes it in the columns of the library of measurements")
    return 0


_ACTIONS = {
    "report": (_file, _run_report),
    "which": (_which, _run_which),
    "compare": (_compare, _run_compare),
    "dims": (_dims, _run_dims),
    "law": (_law, _run_law),
    "model": (_model, _run_model),
    "row": (_row, _run_row),
}

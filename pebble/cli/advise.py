"""What to run for a workload on a GPU: tile, stages, warps and order, what that takes, and what is proved at least.

Tiles that look fastest run the orders in common use, and a few more, through the chip's own cache model; the least
modelled time wins, and of equal ones the fewest bytes. It takes seconds; `pebble tune` searches longer for fewer bytes.

examples:
  pebble advise gemm -m 4096 -n 28672 -k 4096 --gpu h200
  pebble advise llama-3-8b:mlp --tokens 4096 --gpu h100 --save best.json
  pebble advise attention --queries 1 --keys 8192 --head-dim 128 --heads 32 --kv-heads 8 --gpu a100 --json
"""

from __future__ import annotations

import argparse
import shlex

from pebble.cli import _output
from pebble.cli._arguments import add_workload_arguments, workload_of
from pebble.cli._output import search_bar
from pebble.errors import InputError
from pebble.families import command_words, kernel_family
from pebble.reports.advise import KernelAdvice, advise
from pebble.reports.kernel_notes import evidence
from pebble.reports.kernel_time import floor_word
from pebble.tuning.advisors import TimedKernel
from pebble.tuning.worth import SAME
from pebble.units import format_bytes, format_ratio, format_seconds

_BINDS = {"shared": "shared memory"}  # in full


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble advise``."""
    add_workload_arguments(parser, kernels=True)
    parser.add_argument(
        "--save", metavar="FILE", help="write the schedule as a table (.json), which `pebble export` reads"
    )
    parser.add_argument("--explain", action="store_true", help="say where each figure comes from")
    parser.add_argument("--gpu", metavar="SKU", help="a GPU of `pebble machines`, such as h100")
    parser.add_argument("--machine", metavar="FILE", help="a machine file of your own (`pebble machines --help`)")
    parser.add_argument("--sms", metavar="P", help="SMs that the kernel may use (all)")
    parser.add_argument("--cache", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Choose and print."""
    if args.cache is not None:
        raise InputError(
            f"advise: got --cache {args.cache}, expected --gpu or --machine, whose rates tell which kernel is fastest; "
            "`pebble compare` ranks orders by bytes for a --cache."
        )
    workload = workload_of(args)
    with search_bar() as show:
        result = advise(workload, gpu=args.gpu, machine=args.machine, sms=args.sms, progress=show)
    refused = None
    if args.save is not None:
        try:
            result = result.saved(args.save)
        except InputError as error:  # what was found is printed first
            refused = error
    if args.json:
        _output.print_report(result)
    else:
        _print(result, args.explain)
    if refused is not None:
        raise refused
    return 0


def _print(result: KernelAdvice, explain: bool) -> None:
    kernel, time, floor = result.kernel, result.best.time, result.floor
    blocks = f", {kernel.config.blocks_per_sm} blocks an SM" if kernel.config.blocks_per_sm > 1 else ""
    stages = f"{kernel.stages} stage{'s' * (kernel.stages != 1)}"
    about = "" if time.simulated_share == 1 else "about "  # its first part is simulated
    lines = {
        "use": f"{kernel.tile}, {stages}, {result.warps} warps{blocks}, order {result.order}",
        "expect": f"{_takes(result.best)}, {about}{format_bytes(time.dram_bytes)} of DRAM traffic: modelled",
    }
    if result.against:
        lines["against"] = f"{_against(result, about)}: modelled, in the same kernel"
    word = floor_word(floor)
    least = f"{format_seconds(floor.seconds)} ({word}) and " if word else ""
    lines["limit"] = f"at least {least}{format_bytes(result.bound.bound.bytes)} in any order of this kernel: proved"
    over = f", {result.best.seconds / floor.seconds:.2f} in time" if word else ""
    lines["ratio"] = f"{about}{format_ratio(result.over_bound, '.2f')} in bytes{over}, modelled to proved"
    limited = result.best.sustained is not None and result.best.sustained.at_limit
    power = ", at the power limit; fewer bytes allow a higher clock" if limited else ""
    lines["binds"] = f"{_BINDS.get(bound_by := next(iter(time.binds)), bound_by)}{power}: modelled"
    if (files := result.exported) is not None:
        lines["trust"] = (
            f"measured: {files.layers} exported layers on this chip took {files.least:.2f} to {files.most:.2f} of the "
            "modelled sustained time"
        )
    elif (known := result.launches) is not None:
        share, of = known.within_10_percent / known.measured, f"{known.measured} plain {result.workload.family} kernels"
        lines["trust"] = f"measured: {share:.0%} of {of} on this chip within 10 % of the modelled time"
    command, note = _next(result)
    if note:
        lines["note"] = note
    _output.say(f"{result.workload.label}, {result.machine.sku}")
    for name, text in lines.items():
        _output.say(f"{name:<9} {text}")
    _output.say_command(f"{'next':<9} ", command, "  ")
    if explain:
        _explain(result)


def _against(result: KernelAdvice, about: str) -> str:
    """Time and bytes of other orders, one of those that are the same; a library's walk by the library's name."""
    library = kernel_family(result.workload).library
    said = {(result.best.seconds, result.best.time.dram_bytes): "the order to use"}
    parts = []
    for item in sorted(result.against, key=lambda other: (other.order in library, other.timed.seconds)):
        name = f"{library[0]}'s walk" if library and item.order == library[1] else item.order
        over = item.timed.seconds / result.best.seconds - 1
        slower = f"{over:+.0%}" if abs(over) > SAME - 1 else "the same time"
        bytes_ = format_ratio(item.timed.time.dram_bytes / result.best.time.dram_bytes, ".2f")
        known = said.setdefault((item.timed.seconds, item.timed.time.dram_bytes), name)
        if known == name:
            parts.append(f"{name} {slower}, {about}{bytes_}x the bytes")
        elif library and name.startswith(library[0]):
            parts.append(f"{name} the same as {known}")
    return "; ".join(parts) or "the other orders tried take the same time and move the same bytes"


def _takes(best: TimedKernel) -> str:
    """Sustained and alone, with joules, where these are modelled."""
    alone = format_seconds(best.time.seconds)
    if best.sustained is None:
        return f"{alone} a launch"
    return f"{format_seconds(best.seconds)} sustained, {alone} alone, {best.sustained.total_joules:.2g} J"


def _next(result: KernelAdvice) -> tuple[str, str]:
    """The command that writes the kernel, and, where its order has no table, what is written in its place."""
    if result.writable is None:
        return f"pebble compare {shlex.join(_words(result))}", f"pebble writes no kernel for {result.order}"
    writable, form = result.writable
    order, slower = str(writable.advice.schedule.name), writable.seconds / result.best.seconds - 1
    which = [result.table] if result.table else [order, *_words(result)]
    file, notes = {"triton": "kernel.py", "csv": "table.csv"}[form], []
    if writable is not result.best:
        notes += [f"pebble writes no kernel for {result.order}; next writes {order}, {slower:+.0%} in time: modelled"]
    if form == "csv":
        notes += [
            "a table is written, not a kernel: files for Triton run bf16 and fp16 on NVIDIA, tiles of powers of two"
        ]
    return f"pebble export {shlex.join(which)} --format {form} -o {file}", "; ".join(notes)


def _words(result: KernelAdvice) -> list[str]:
    """The workload, where it runs and the kernel as options."""
    kernel = result.kernel
    how = ["--tile", str(kernel.config.tile), "--stages", f"{kernel.stages}"]
    if kernel.config.blocks_per_sm > 1:
        how += ["--blocks-per-sm", f"{kernel.config.blocks_per_sm}"]
    if not kernel.config.execution.is_reference:
        how += ["--execution", kernel.config.execution.name]
    if kernel.config.sms != result.machine.sms:
        how += ["--sms", f"{kernel.config.sms}"]
    return [*command_words(result.workload), *kernel.target.words, *how]


def _explain(result: KernelAdvice) -> None:
    """Where each figure comes from, and what else was tried."""
    say, kernel = _output.say, result.kernel
    print()
    rows = [
        [row["tile"], row["order"], f"{row['stages']}", f"{row['blocks_per_sm']}", f"{row['sustained_ms']:,.4g}",
         f"{row['single_ms']:,.4g}", f"{row['dram_bytes'] / 1e6:,.1f}"]
        for row in result.rows()
    ]  # fmt: skip
    headers = ["tile", "order", "stages", "per SM", "sustained ms", "alone ms", "MB"]
    print(_output.table(headers, rows, left=2, keep=("sustained ms",)))
    print()
    share = result.best.time.simulated_share
    partly = "" if share == 1 else f", {share:.0%} of its loads simulated"
    say(f"bytes: {kernel.cache}{partly}; its evidence: {evidence(result.machine)}")
    for part in result.floor.parts:
        say(f"limit, {part.name}: {part.amount:,} {part.unit}, {part.theorem}; rate: {part.rate.mark}")
    proved = result.bound.bound.theorem
    say(f"limit, bytes: {result.bound.capacity.detail}; {proved}")
    if result.launches is not None:
        say(
            "trust: kernels in plain Triton, on which no rate of the model was chosen; exported files copy tiles by "
            "tensor descriptors from Hopper on, and may take less"
        )
    for note in result.notes:
        say(f"note: {note}")

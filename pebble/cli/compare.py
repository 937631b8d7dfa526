"""Simulated traffic of each tile order between L2 and DRAM, against the least that any schedule can move.

Ranked by modelled time, as `advise` and `time` do, bytes beside it: the best, those in common use and the worst. --all
shows every order, --explain all bounds and notes. The cache is the chip's own model (`pebble machines SKU --explain`).

examples:
  pebble compare gemm -m 8192 -n 8192 -k 8192 --gpu a100-sxm4-40gb
  pebble compare llama-3-8b:gate_up --tokens 8192 --gpu h100-sxm5-80gb --figure out.pdf
  pebble compare gemm -m 4096 -n 4096 -k 4096 --cache 6MiB --sms 84 --schedules row,morton,grouped-8+sawtooth
  pebble compare llama-2-7b:mlp --tokens 8192 --gpu a40 --figure out.pdf
  pebble compare gemm -m 8192 -n 8192 -k 8192 --gpu l40s --schedules row,hilbert --schedule tiles.csv
  pebble compare gemm -m 8192 -n 8192 -k 8192 --gpu h100-sxm5-80gb --schedules row,grouped-8 --energy 7nm
  pebble compare gemm -m 256 -n 256 -k 384 --tile 128x128x128 --cache 160KiB --exact
  pebble compare gemm -m 8192 -n 8192 -k 8192 --gpu h200-sxm-141gb --buffers connected --topology cluster-16
  pebble compare ffn --tokens 4096 --d-model 4096 --hidden 11008 --gpu google-tpu-v4

On a machine of scratchpads (no GPU) dataflows are compared: what stays in the cores, per product of a chain. There
--explain tells what the best does step by step, with --all what each does; --buffers what each costs between cores.
Of a backward pass, or with block scales, schedules under explicit control are compared: what stays in one memory.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from pebble.api.traffic import compare
from pebble.cli import _output
from pebble.cli._arguments import (
    add_accumulate_argument,
    add_kernel_arguments,
    add_machine_arguments,
    add_schedules_arguments,
    add_workload_arguments,
    kernel,
    seconds,
    workload_of,
)
from pebble.cli._dataflows import print_dataflows
from pebble.cli._floor import add_time_arguments, print_energy, print_floor
from pebble.cli._look import add_look_arguments, check_figure, write_figure
from pebble.cli._output import schedules_bar
from pebble.cli._ranking import print_short, print_verdict, ranking_bar, simulations_per_order, tell_patience_of
from pebble.cli._sms import add_buffer_arguments, print_sm_comparison
from pebble.families import family_of, kernel_family
from pebble.reports.dataflows import DataflowComparison
from pebble.reports.exact import ExactComparison
from pebble.reports.explicit_schedules import ScheduleComparison
from pebble.reports.kernel_compare import Comparison
from pebble.reports.ranking import rank_orders
from pebble.reports.target import scratchpads_of
from pebble.system.clock import interruptible
from pebble.units import column_of_bytes, format_bytes, format_capacity, format_ratio, format_seconds

if TYPE_CHECKING:
    from pebble.solvers.result import Progress

_HEADS = {"lru": "LRU"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble compare``."""
    add_workload_arguments(parser)
    add_schedules_arguments(parser)
    add_look_arguments(parser)
    parser.add_argument(
        "--exact",
        action="store_true",
        help="solve the tile game of a small grid exactly and play the orders in it, one tile operation at a time",
    )
    parser.add_argument("--time-limit", metavar="S", help="seconds for --exact (60)")
    parser.add_argument(
        "--all", action="store_true", help="every schedule, with what else it moves: free-running, through one LRU"
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="all bounds, the floor on time, and notes; of a dataflow what it does step by step",
    )
    add_machine_arguments(parser)
    add_accumulate_argument(parser)
    add_kernel_arguments(parser)
    add_time_arguments(parser)
    add_buffer_arguments(parser)
    parser.add_argument("--level", metavar="L", help="boundary: dram, or l2 for L2 to SMs (l2 with --buffers)")


def run(args: argparse.Namespace) -> int:
    """Compare and print."""
    check_figure(args)
    explicit = scratchpads_of(kernel(args)) is not None or family_of(workload_of(args)).side_by_side
    if _is_short(args) and not explicit:
        return _rank(args)
    dram = not explicit and args.level != "l2" and args.buffers in (None, "single")
    if dram and not args.exact:
        tell_patience_of(workload_of(args), args.schedules, args.schedule, simulations_per_order, **kernel(args))
    limit = None if args.time_limit is None else seconds("--time-limit", args.time_limit)
    stop = threading.Event()
    with interruptible(stop) if args.exact else nullcontext(), _progress(args.exact) as show:
        result = compare(
            workload_of(args),
            args.schedules,
            args.schedule,
            residual=args.residual,
            level=args.level,
            buffers=args.buffers,
            omega=args.omega,
            topology=args.topology,
            accumulator=args.accumulator,
            energy=args.energy,
            exact=args.exact,
            time_limit=limit,
            progress=show,
            stop=stop,
            **kernel(args),
        )
    interrupted = stop.is_set() or (isinstance(result, Comparison) and not result.complete)
    if args.figure is not None and not interrupted:  # before the table: a reader who leaves early (`| head`) gets it
        write_figure(args, result.figure)
    if args.json:
        _output.print_report(result)
    elif isinstance(result, Comparison):
        _print(result, args.all, args.explain)
    elif isinstance(result, ExactComparison):
        print_exact(result)
    elif isinstance(result, DataflowComparison):
        print_dataflows(result, (len(result.flows) if args.all else 1) if args.explain else 0)
    elif isinstance(result, ScheduleComparison):
        _print_explicit(result, args.explain)
    else:
        print_sm_comparison(result)
    return 130 if interrupted else 0


def _progress(exact: bool) -> AbstractContextManager[Callable[[Any], Any] | None]:
    if not sys.stderr.isatty():
        return nullcontext(None)
    return interval_line() if exact else schedules_bar()


def _times(ratio: float) -> str:
    return format_ratio(ratio, ".2f") + "x"


def _is_short(args: argparse.Namespace) -> bool:
    """Whether a few rows are asked for, which take one simulation each."""
    more = args.json or args.all or args.explain or args.figure or args.energy or args.accumulator
    return not (more or args.exact or args.time_limit or args.level or args.buffers or args.omega or args.topology)


def _rank(args: argparse.Namespace) -> int:
    """Simulate once, rank by time and print the short screen."""
    workload = workload_of(args)
    kernel_family(workload)
    with ranking_bar(workload) as (begin, show):
        result = rank_orders(
            workload, args.schedules, args.schedule, args.residual, begin=begin, show=show, **kernel(args)
        )  # fmt: skip
    print_short(result, "compare")
    return 0 if result.complete else 130


def _print(result: Comparison, everything: bool, explain: bool) -> None:
    say = _output.say
    assert result.ranking is not None
    if not (everything or explain):
        print_short(result.ranking, "compare")
    else:
        print_verdict(result.ranking)
    if explain:
        print()
        _print_bounds(result)
        if result.timed is not None:
            print_floor(result.timed.floor, result.verdict, result.workload.dtype)
    if result.orders and (everything or explain):
        print()
        _print_schedules(result)
    if result.timed is not None and result.energy is not None:
        print()
        energies = {tied[0].order: result.energy_of(tied[0]) for tied in result.equals}
        print_energy(result.timed, {name: energy for name, energy in energies.items() if energy is not None})
    for note in result.notes if explain else result.notes[-1:] if not result.complete else ():
        say(f"note: {note}")


def _print_explicit(result: ScheduleComparison, explain: bool) -> None:
    """The best schedule, the bound, then a row for all that are the same; ``explain`` also what each keeps."""
    say, bound, rows = _output.say, result.bound, result.rows()
    machine = f", {bound.machine.name}" if bound.machine is not None else ""
    say(f"{bound.workload.label}{machine}: a memory of {format_capacity(bound.capacity.bytes)}, managed by hand")
    best = rows[0]
    say(f"best      {best['name']}: {format_bytes(best['dram_bytes'])}, a legal schedule")
    say(f"limit     at least {format_bytes(bound.lower.bytes)} in any schedule: proved")
    print()
    scale, mb = column_of_bytes(max(row["dram_bytes"] for row in rows))
    same: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in rows:
        same.setdefault((row["dram_bytes"], row["schedule"]), []).append(row)
    cells = []
    for (total, _), (row, *others) in same.items():
        name = row["name"] + f" and {len(others)} more" * bool(others)
        cells.append([name, f"{total / scale:,.1f}", f"{row['ratio_to_lower_bound']:.2f}"])
    print(_output.table(["schedule", mb, "x bound"], cells, keep=(mb, "x bound")))
    for (_, schedule), alike in same.items() if explain else ():
        say(f"{', '.join(row['name'] for row in alike)}: {schedule}")
    if not explain:
        say("more      what each keeps with --explain; the proof with `pebble prove`")


def _print_bounds(result: Comparison) -> None:
    say, trace, cache = _output.say, result.trace, result.cache_only
    upper_bytes, _ = result.best_known
    say(
        f"proved bound     {format_bytes(trace.bound.bytes)}: no order of this kernel moves less (it can hold "
        f"{format_capacity(trace.capacity.bytes)}: the cache and what its blocks keep)"
    )
    say(
        f"best schedule    {format_bytes(upper_bytes)} ({_times(result.ratio(upper_bytes))} the bound): "
        f"{result.best_described}"
    )
    if result.stateless is not None:
        free = result.stateless
        say(
            f"without state    {format_bytes(free.bytes)} ({_times(result.ratio(free.bytes))} the bound, which counts "
            f"no softmax state either): {free.name}"
        )
    if result.chip is not None:
        chip = result.chip
        say(
            f"chip bound       {format_bytes(chip.bound.bytes)}: nothing this chip runs moves less "
            f"({format_capacity(chip.capacity.bytes)} in all its on-chip stores)"
        )
    if result.separate is not None:
        say(
            f"separate kernels {format_bytes(result.separate.bound.bytes)}: the least when every intermediate goes "
            f"through DRAM ({_times(result.ratio(result.separate.bound.bytes))} the bound)"
        )
    beyond = "; a kernel also holds values on its SMs and may go below"
    if cache.bound.bytes <= result.trace.bound.bytes:
        beyond = "; what a kernel holds besides lowers it no further"
    say(
        f"cache-only bound {format_bytes(cache.bound.bytes)}: for one explicitly managed memory of "
        f"{format_capacity(cache.capacity.bytes)} alone{beyond}"
    )
    band = result.best_band
    if band is not None:
        ratio = result.ratio(band.dram_bytes)
        say(
            f"best band        {format_bytes(band.dram_bytes)} ({_times(ratio)} the bound): {band.order}, in bytes "
            "alone; `pebble time` ranks by time"
        )


def _print_schedules(result: Comparison) -> None:
    ranking = result.ranking
    assert ranking is not None
    times = {name: item.ranked_seconds for name, item in ranking.times.items()}
    unit = format_seconds(max(times.values())).split()[1] if times else ""
    again = bool(times) and all(value.sustained for value in ranking.times.values())
    scale, mb = column_of_bytes(max(t.dram_bytes for t in result.orders))
    rows = [
        [
            result.name_of(tied),
            f"{t.dram_read_bytes / scale:,.1f}",
            f"{t.dram_write_bytes / scale:,.1f}",
            f"{t.dram_bytes / scale:,.1f}",
            f"{t.hit_rate:.1%}",
            f"{result.ratio(t.dram_bytes):.2f}",
            *([format_seconds(times[t.order], max(times.values())).split()[0]] if times else []),
            *(f"{traffic[t.order] / scale:,.1f}" for traffic in result.alternatives.values()),
            *([] if t.saved_bytes is None else [f"{t.saved_bytes / scale:,.1f}"]),
        ]
        for t, tied in ((tied[0], tied) for tied in result.equals)
    ]
    header = ["schedule", f"read {mb}", f"write {mb}", f"total {mb}", "L2 hit", "x bound"]
    header += [f"{'sustained' if again else 'modelled'} {unit}"] if times else []
    header += [f"{_HEADS.get(name, name)} {mb}" for name in result.alternatives]
    header += [f"saved {mb}"] if any(t.saved_bytes is not None for t in result.orders) else []
    print(_output.table(header, rows, keep=(f"total {mb}", "x bound")))
    for tied in result.equals:
        if len(tied) > 1:
            _output.say(f"the same: {', '.join(t.order for t in tied)}")


@contextmanager
def interval_line() -> Iterator[Callable[[Progress], None]]:
    """The interval on one line of stderr."""

    def show(now: Progress) -> None:
        upper = "-" if now.upper_bound is None else str(now.upper_bound)
        print(f"\rsolving: {now.lower_bound} to {upper} units, {now.seconds:.0f} s ", end="", file=sys.stderr)

    yield show
    print("\r" + " " * 50 + "\r", end="", file=sys.stderr)


def print_exact(result: ExactComparison) -> None:
    """The comparison for a reader."""
    say = _output.say
    grid = "x".join(map(str, result.grid))
    say(
        f"{result.gemm.label}: {grid} tiles of {result.tile}, one memory of {format_capacity(result.capacity_bytes)}, "
        "one tile operation at a time"
    )
    print()
    if result.optimal:
        say(f"optimum   {format_bytes(result.upper_bytes)}: no tile schedule moves less (proved)")
    else:
        say(
            f"optimum   between {format_bytes(result.lower_bytes)} (proved) and {format_bytes(result.upper_bytes)} "
            f"(found): {result.solved.stop_reason}"
        )
    say(f"solver    {result.solved.solver}, {result.solved.seconds:.1f} s; proof: {', '.join(result.solved.proof)}")
    print()
    rows = [
        [
            p.order,
            p.eviction,
            f"{p.load_bytes / 1e6:,.3f}",
            f"{p.store_bytes / 1e6:,.3f}",
            f"{p.bytes / 1e6:,.3f}",
            f"{p.bytes / result.upper_bytes:.3f}",
        ]
        for p in result.orders
    ]
    last = "x optimum" if result.optimal else "x best found"
    print(
        _output.table(
            ["order", "eviction", "load MB", "store MB", "total MB", last], rows, left=2, keep=("total MB", last)
        )
    )

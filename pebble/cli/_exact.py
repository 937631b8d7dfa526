"""``pebble compare --exact``: the tile game of a small grid, solved, and the orders played in it."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from pebble.cli import _output
from pebble.cli._target import seconds, where
from pebble.reports.exact import ExactComparison, compare_exactly
from pebble.system.clock import interruptible
from pebble.units import format_bytes, format_capacity
from pebble.workloads.base import Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pebble.solvers.result import Progress


def run_exact(args: argparse.Namespace, workload: Workload) -> int:
    """Solve, play, print."""
    limit = seconds("--time-limit", args.time_limit)
    stop = threading.Event()
    with interruptible(stop), _progress() as show:
        result = compare_exactly(
            workload, args.schedules, tile=args.tile, time_limit=limit, progress=show, stop=stop, **where(args)
        )
    if args.figure is not None:
        from pebble.plots.exact import exact_figure
        from pebble.plots.save import save_figure

        save_figure(exact_figure(result), args.figure)
        print(f"figure: {args.figure}", file=sys.stderr)
    if args.json:
        _output.print_report(result)
    else:
        _print(result)
    return 130 if stop.is_set() else 0


def _progress() -> AbstractContextManager[Callable[[Progress], None] | None]:
    return _line() if sys.stderr.isatty() else nullcontext(None)


@contextmanager
def _line() -> Iterator[Callable[[Progress], None]]:
    def show(now: Progress) -> None:
        upper = "-" if now.upper_bound is None else str(now.upper_bound)
        print(f"\rsolving: {now.lower_bound} to {upper} units, {now.seconds:.0f} s ", end="", file=sys.stderr)

    yield show
    print("\r" + " " * 50 + "\r", end="", file=sys.stderr)


def _print(result: ExactComparison) -> None:
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
    print(_output.table(["order", "eviction", "load MB", "store MB", "total MB", last], rows, left=2))

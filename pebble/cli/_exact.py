"""``pebble compare --exact``: the tile game of a small grid, solved, and the orders played in it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pebble.cli import _output
from pebble.reports.exact import ExactComparison
from pebble.units import format_bytes, format_capacity

if TYPE_CHECKING:
    from pebble.solvers.result import Progress


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

"""The short screen of some orders in one kernel: the verdict, the best, those in common use and the worst."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Unpack

from pebble.cli import _output
from pebble.cli._output import schedules_bar
from pebble.families import kernel_family
from pebble.reports.default_kernel import advised_kernel
from pebble.reports.kernel_notes import evidence
from pebble.reports.kernel_time import floor_word
from pebble.reports.patience import about_seconds
from pebble.reports.ranking import Ranked, Ranking
from pebble.reports.schedule_names import Schedules, named_schedules
from pebble.reports.simulated_kernel import KernelOptions, SimulatedKernel
from pebble.tuning.worth import SAME, walk_alike
from pebble.units import column_of_bytes, format_bytes, format_ratio, format_seconds
from pebble.workloads.workload import Workload

LONG_SECONDS = 10.0  # what takes longer says so before it begins
_RUNS = {"free": 2.2, "waves": 0.8, "lru": 0.3}  # of what a simulation of blocks in waves takes
FEW = 12  # orders that are all shown


def tell_patience(
    workload: Workload, kernel: SimulatedKernel, schedules: Sequence[Any], runs: float = 1.0, in_part: bool = True
) -> None:
    """On stderr, how long it takes where that is long; ``runs`` simulations of each schedule."""
    seconds = about_seconds(workload, kernel, schedules, runs, in_part)
    if seconds > LONG_SECONDS:
        say_patience(f"{len(schedules)} schedules take about {_rounded(seconds)}; Ctrl-C shows what is done by then")


def say_patience(how_long: str) -> None:
    """On stderr, before what takes long begins."""
    _output.tell(f"pebble: {how_long}")


def tell_patience_of(
    workload: Workload,
    schedules: Schedules,
    own: Any = None,
    runs: Callable[[SimulatedKernel, Sequence[Any]], float] = lambda kernel, orders: 1.0,
    **options: Unpack[KernelOptions],
) -> None:
    """The same of schedules by name, each simulated whole so many times."""
    target = advised_kernel(workload, **options)
    orders = named_schedules(workload, target, schedules, own, timed=True)
    walks = [orders[same[0]] for same in walk_alike(workload, orders, target.config)]
    tell_patience(workload, target, walks, runs(target, orders), in_part=False)


def simulations_per_order(kernel: SimulatedKernel, orders: Sequence[Any] = ()) -> float:
    """How many simulations an order takes where it runs free and through one LRU, too."""
    return 1.0 + sum(_RUNS[name] for name in kernel.alternatives)


def _rounded(seconds: float) -> str:
    return f"{round(seconds / 10) * 10:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


@contextmanager
def ranking_bar(
    workload: Workload,
) -> Iterator[tuple[Callable[[SimulatedKernel, Sequence[Any]], None], Callable[[str], None]]]:
    """What `rank_orders` takes as ``begin`` and ``show``: how long, and a bar on a terminal."""
    if not sys.stderr.isatty():
        yield lambda kernel, walks: tell_patience(workload, kernel, walks), lambda name: None
        return
    with schedules_bar() as bar:
        step: list[Callable[[str], None]] = []

        def begin(kernel: SimulatedKernel, walks: Sequence[Any]) -> None:
            tell_patience(workload, kernel, walks)
            step.append(bar(len(walks)))

        yield begin, lambda name: step[0](name)


def print_verdict(result: Ranking) -> None:
    """What to run, what moves least, and what is proved."""
    say, machine = _output.say, result.kernel.target.machine
    where = f", {machine.name}" if machine is not None else f", {result.kernel.cache}"
    say(f"{result.workload.label}: {result.kernel.runs_and_why}{where}")
    if not result.orders:
        say(f"interrupted before the first of {result.requested} schedules was done")
        return
    best, least, floor = result.best, result.least, result.floor
    traffic = f"{_about(best)}{format_bytes(best.dram_bytes)}"
    over = format_ratio(best.dram_bytes / result.bound.bound.bytes, ".2f")
    if best.seconds is None or best.timed is None:
        say(f"best      {result.name(best)}: {traffic}, {over} times the bound: simulated")
    else:
        alone, again = format_seconds(best.timed.time.seconds), best.timed.sustained
        takes = f"{alone} a launch" if again is None else f"{format_seconds(best.seconds)} sustained, {alone} alone"
        ties = as_fast(result)
        say(f"use       {result.name(best)}: {takes}, {traffic}: modelled{ties}")
        if least.dram_bytes < best.dram_bytes:
            more = (result.over(least) or 1.0) - 1
            slower = f"+{more:.1%} in time" if more > SAME - 1 else "the same time"
            say(f"least     {result.name(least)}: {_about(least)}{format_bytes(least.dram_bytes)}, {slower}: modelled")
    word = "" if floor is None else floor_word(floor)
    proved = format_bytes(result.bound.bound.bytes)
    if floor is None or not word:
        say(f"limit     at least {proved} in any order of this kernel: proved")
        return
    ratio = "" if best.seconds is None else f"; {best.seconds / floor.seconds:.2f} times that in time, {over} in bytes"
    say(f"limit     at least {format_seconds(floor.seconds)} ({word}) and {proved}: proved{ratio}")


def as_fast(result: Ranking) -> str:
    """How many others the model cannot tell from the best: some may look faster by less than it knows."""
    if not result.ties:
        return ""
    others = "1 other is" if result.ties == 1 else f"{result.ties} others are"
    return f"; {others} within {SAME - 1:.0%}"


def print_short(result: Ranking, command: str) -> None:
    """The verdict, a table of a few rows, what to trust, and how to see the rest."""
    print_verdict(result)
    if not result.orders:
        return
    print()
    shown = result.orders if len(result.orders) <= FEW else result.short
    print(_table(result, shown))
    hidden = sum(len(order.alike) for order in result.orders) - sum(len(each_item.alike) for each_item in shown)
    parts = [item for item in shown if item.share < 1]
    if parts:
        least = min(part.share for part in parts)
        _output.say(f"~ from the first {least:.0%} of its loads or more; `pebble {command} --all` simulates all")
    if not result.complete:
        done = sum(len(element.alike) for element in result.orders)
        _output.say(f"interrupted after {done} of {result.requested} schedules; the rest are missing")
    print_trust(result, hidden, result.left_out, "bounds, floors and notes")


def print_trust(result: Ranking, hidden: int, left_out: int, rest: str) -> None:
    """What stands below a short table: how far to trust it, and how to see the rest."""
    hidden += left_out
    slower = f" ({left_out} not simulated)" if left_out else ""
    more = f"{hidden} more schedules{slower} with --all; " if hidden else ""
    if walks := kernel_family(result.workload).walks:
        _output.say(f"names     {walks}")
    _output.say(f"trust     {_trust(result)}")
    _output.say(f"more      {more}{rest} with --explain")


def _trust(result: Ranking) -> str:
    """How far its figures can be trusted, in a line."""
    machine = result.kernel.target.machine
    if machine is None:
        return "bytes are simulated, the limit is proved"
    own = machine.default_model
    model = "the cache model asked for"
    if result.kernel.cache_model.default:
        model = f"a {'guessed' if own.mark == 'guess' else own.mark} cache model"
    times = ", times by a model" if result.timed else ""
    return f"bytes by {model}{times}; {evidence(machine)}"


def _about(ranked: Ranked) -> str:
    return "~" if ranked.share < 1 else ""


def _table(result: Ranking, shown: Sequence[Ranked]) -> str:
    bound = result.bound.bound.bytes
    scale, bytes_unit = column_of_bytes(max(item.dram_bytes for item in shown))
    if not result.timed:
        rows = [
            [_name(result, each_item), f"{each_item.dram_bytes / scale:,.1f}", f"{each_item.dram_bytes / bound:.2f}"]
            for each_item in shown
        ]
        return _output.table(["schedule", bytes_unit, "x bound"], rows, keep=(bytes_unit,))
    longest = max(item.seconds or 0.0 for item in shown)
    unit = format_seconds(longest).split()[1]
    again = result.best.timed is not None and result.best.timed.sustained is not None
    heads = ["schedule", *([f"sustained {unit}"] if again else []), f"alone {unit}", "over best", bytes_unit, "x bound"]
    rows = []
    for element in shown:
        alone = 0.0 if element.timed is None else element.timed.time.seconds
        often = None if element.timed is None or element.timed.sustained is None else element.timed.sustained.seconds
        times = [often, alone] if again else [alone]
        over = result.over(element)
        slower = "" if over is None else "same" if 1 / SAME <= over <= SAME else f"{over - 1:+.1%}"
        rows.append(
            [
                _name(result, element),
                *("-" if each is None else format_seconds(each, longest).split()[0] for each in times),
                "" if element is result.best else slower,
                f"{_about(element)}{element.dram_bytes / scale:,.1f}",
                f"{element.dram_bytes / bound:.2f}",
            ]
        )
    return _output.table(heads, rows, keep=(heads[1], bytes_unit))


def _name(result: Ranking, ranked: Ranked) -> str:
    more = len(ranked.alike) - 1
    return result.name(ranked) + f" and {more} more" * (more > 0)

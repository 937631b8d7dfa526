"""The schedule of a workload that takes least time, moves least, or costs least energy, under the GPU's own models.

With a GPU modelled time is least (sustained, where it was measured on such a chip), in a tie the bytes; `--objective
bytes` and `--objective energy` ask for those.
The kernel is the one that `pebble advise` picks; `--tile all` tries every tile that costs no time, `--tile A,B` these.
Tried are tile orders by name and number, bands of any heights along either axis, waves that end with a column, the
direction in which k is walked and where each tile begins in it, parts of k, fused and separate kernels, groups of
heads. What looks best is simulated in full. Ctrl-C keeps the best so far.

examples:
  pebble tune gemm -m 8192 -n 8192 -k 8192 --gpu l40s
  pebble tune ffn --tokens 8192 --d-model 4096 --hidden 11008 --gpu h100-sxm5-80gb --save best.json
  pebble tune llama-3-8b:gate_up --tokens 8192 --gpu a100-sxm4-40gb --robust waves,dynamic-5 --top 5
  pebble tune llama-3-8b:attention --tokens 8192 --gpu h100-sxm5-80gb --json
"""

from __future__ import annotations

import argparse

from pebble.cli import _output
from pebble.cli._arguments import (
    add_kernel_arguments,
    add_machine_arguments,
    add_workload_arguments,
    kernel,
    seconds,
    workload_of,
)
from pebble.cli._output import search_bar
from pebble.cli._ranking import LONG_SECONDS, say_patience
from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.reports.target import whole
from pebble.reports.tune import SECONDS, Tuning, tune
from pebble.reports.tune_target import ROBUST, ROBUST_IN_TIME, UNEVEN
from pebble.reports.tune_time import TunedTime, TuneTimes
from pebble.reports.tuned import Tuned
from pebble.system.files import check_output
from pebble.tuning import BYTES, NAMES, OtherLaunch, SetAside
from pebble.units import format_bytes, format_seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble tune``."""
    add_workload_arguments(parser, kernels=True)
    parser.add_argument(
        "--objective", metavar="NAME",
        help=f"what is to be least: {', '.join(NAMES)} (time on a GPU whose rates are known, else bytes)",
    )  # fmt: skip
    parser.add_argument(
        "--robust", metavar="NAMES",
        help="executions, @90 with 90 percent of the cache, such as waves,waves@90,dynamic-5; schedules are ranked by "
        f"the worst of them ({ROBUST_IN_TIME} by time or energy, {ROBUST} by bytes; {UNEVEN} for causal attention on a "
        "GPU)",
    )  # fmt: skip
    parser.add_argument("--top", metavar="N", help="schedules to show (5; 10 with --explain and --json)")
    parser.add_argument(
        "--explain", action="store_true",
        help="what the best moves under each execution, with a set-aside of L2 and launched otherwise; notes",
    )  # fmt: skip
    parser.add_argument("--time-limit", default=f"{SECONDS:g}", metavar="S", help=f"seconds ({SECONDS:g})")
    parser.add_argument(
        "--save", metavar="FILE", help="write the best that has a table (.json), which `pebble export` reads"
    )
    parser.add_argument(
        "--save-pinned", metavar="FILE",
        help="write the schedule that moves least with a set-aside as a table (.json), as --save does the best",
    )  # fmt: skip
    add_machine_arguments(parser)
    add_kernel_arguments(parser, execution=False)


def run(args: argparse.Namespace) -> int:
    """Search and print."""
    workload = workload_of(args)
    kernel_family(workload)  # refused before anything else is looked at
    top = whole("--top", args.top or ("10" if args.explain or args.json else "5"), 1, 10_000)
    limit = seconds("--time-limit", args.time_limit)
    for option, path in (("--save", args.save), ("--save-pinned", args.save_pinned)):
        if path is not None:
            check_output(path, option, (".json",))
    if limit > LONG_SECONDS:
        say_patience(f"searching for up to {limit:g} s; Ctrl-C shows what is found by then")
    with search_bar() as show:
        result = tune(
            workload, objective=args.objective, robust=args.robust, time_limit=limit, progress=show, **kernel(args)
        )
    if args.json:
        document = result.document()
        _output.print_report(result, schedules=document["schedules"][:top])
    else:
        _print(result, top, args.explain)
    if args.save is not None:
        _save(result, args.save)
    if args.save_pinned is not None:
        if result.set_aside is None:
            _output.tell("no set-aside moves less than the best without: --save-pinned writes nothing")
        else:
            result.save(args.save_pinned, result.set_aside.schedule)
            _output.tell(f"table: {args.save_pinned}, run with {result.set_aside.flag}")
    return 130 if result.ended == "interrupted" else 0


def _save(result: Tuning, path: str) -> None:
    """Write the best schedule, or the best of those that have a table, and say which."""
    table = result.best_table
    if table is None:
        raise InputError("--save: no schedule that was found has a table; it writes nothing.")
    result.save(path, table)
    which = ""
    if table is not result.best:
        over = table.worst.dram_bytes / result.best.worst.dram_bytes - 1
        which = f", the best of those that have one: tile {table.kernel.tile}, {table.name}, which moves {over:.1%} "
        which += f"more than {result.best.name}, of which there is none"
    _output.tell(f"table: {path}{which}")


def _print(result: Tuning, top: int, explain: bool) -> None:
    say, best, baseline, least = _output.say, result.best, result.baseline, result.objective
    blocks, by_bytes = best.kernel.config.wave_blocks, least.name == BYTES

    def least_of(s: Tuned) -> str:
        return "" if by_bytes else f"{least.text(s.worst_value)}, "

    say(
        f"{result.workload.label}: {blocks} blocks at once, {best.kernel.cache}, "
        f"ranked by {'' if by_bytes else f'{least.what} in the worst of '}{', '.join(result.executions)}"
    )
    print()
    say(
        f"best found       {least_of(best)}{format_bytes(best.worst.dram_bytes)} ({best.ratio:.2f}x the bound): tile "
        f"{best.kernel.tile}, {best.name}" + ("" if best.named else f": {best.words}")
    )
    if baseline is not None:
        say(
            f"best common order {least_of(baseline)}{format_bytes(baseline.worst.dram_bytes)} of the tiles tried "
            f"({_against_baseline(result, baseline)}): tile "
            f"{baseline.kernel.tile}, {baseline.name}"
        )
    say(
        f"proved bound     {format_bytes(best.bound.bound.bytes)}: no schedule of this kernel moves less; at most "
        f"{1 - 1 / best.ratio:.0%} of what the best moves can be saved"
    )
    if result.times is not None:
        say(f"modelled time    {_times(result.times)}")
    if explain:
        _print_otherwise(result)
    print()
    _print_table(result, top)
    looked, simulated, named, all_named = result.counts
    print()
    say(
        f"{looked:,} schedules looked at, {simulated:,} simulated in full, {named:,} of {all_named:,} named ones among "
        f"them; {result.seconds:.1f} s"
    )
    say(f"tiles tried: {', '.join(result.tiles)}; another may move less or be faster: --tile, `pebble tile`")
    for note in result.notes if explain else ():
        say(f"note: {note}")
    if not explain:
        say("more: other executions, set-asides of L2 and notes with --explain")


def _print_otherwise(result: Tuning) -> None:
    """What the best moves under each execution, and what others move pinned or launched otherwise."""
    say = _output.say
    for i, name in enumerate(result.executions):
        say(f"under {name:<11}{_under(result, i)}")
    for b in result.beyond:
        say(f"{b.what}: {format_bytes(b.best_bytes)}, the common order {format_bytes(b.baseline_bytes)}")
    for table in result.set_asides:
        say(_pinned(result, table))
    for launch in _least_launches(result):
        s = launch.schedule
        traffic, ranked = format_bytes(launch.traffic.dram_bytes), format_bytes(s.traffic[0].dram_bytes)
        say(
            f"launched {launch.execution}: {traffic}: tile {s.kernel.tile}, {s.name} ({result.executions[0]}: {ranked})"
        )


def _under(result: Tuning, at: int) -> str:
    """What the best does under one of the executions, and what is the least there."""
    best, least, objective = result.best, result.least_by_execution[at], result.objective
    here = best.traffic[at]
    value = "" if objective.name == BYTES else f"{objective.text(best.values[at])}, "
    over = best.values[at] / least.values[at] - 1
    excess = f", {over:.1%} above {least.name}, tile {least.kernel.tile}" if over else ", the least there"
    return f"{value}{format_bytes(here.dram_bytes)}, {format_bytes(here.dram_read_bytes)} of it read{excess}"


def _print_table(result: Tuning, top: int) -> None:
    """The best schedules: what was to be least, and bytes under each execution."""
    least = result.objective
    heads = [f"{result.executions[0]} read MB", *(f"{name} MB" for name in result.executions)]
    rows = [_row(tied) for tied in result.distinct[:top]]
    if least.name != BYTES:
        heads.insert(0, least.unit)
        rows = [
            [*row[:2], least.number(tied[0].worst_value), *row[2:]]
            for row, tied in zip(rows, result.distinct[:top], strict=True)
        ]
    keep = (heads[0] if least.name != BYTES else heads[1], "x bound")
    print(_output.table(["schedule", "tile", *heads, "x bound"], rows, left=2, keep=keep))


def _against_baseline(result: Tuning, baseline: Tuned) -> str:
    """What the best found saves over the best common order, and where it moves more."""
    less = 1 - result.best.worst_value / baseline.worst_value
    if result.objective.name == BYTES:
        text = f"the best found moves {less:.0%} less" if round(less, 2) else "the best found moves as much"
    else:
        takes = "costs" if result.objective.unit == "J" else "takes"
        text = f"the best found {takes} " + (f"{less:.1%} less" if round(less, 3) else "as much")
    more = [f"{b.best_bytes / b.baseline_bytes - 1:.0%} more {b.what}" for b in result.beyond if b.takes_back]
    return text + (f" under {' and '.join(result.executions)}, but {', '.join(more)}" if more else "")


def _times(times: TuneTimes) -> str:
    """The modelled times of the best, the best common order and the fastest, and what this moves."""
    best, baseline, fastest = times.best, times.baseline, times.fastest
    text = f"{times.execution}: {_time(best)} for the best found"
    text += f", {_time(baseline)} for the best common order" if baseline else ""
    if fastest.ranked_seconds >= 0.995 * min(item.ranked_seconds for item in (best, baseline) if item):
        return f"{text}; nothing else that was simulated is faster by half a per cent"
    s = fastest.schedule
    more = s.traffic[0].dram_bytes / best.schedule.traffic[0].dram_bytes - 1
    moves = f"moves {more:.1%} more" if round(more, 3) > 0 else "moves as much as the best"
    return (
        f"{text}; the fastest that was simulated takes {_time(fastest)}: tile {s.kernel.tile}, {s.name}, which {moves}"
    )


def _time(timed: TunedTime) -> str:
    """Sustained where that is modelled, with the joules; else of a single launch."""
    again = timed.sustained
    if again is None:
        return format_seconds(timed.seconds)
    return (
        f"{format_seconds(again.seconds)} sustained ({format_seconds(timed.seconds)} alone, {again.total_joules:.3g} J)"
    )


def _pinned(result: Tuning, table: SetAside[Tuned]) -> str:
    """What a set-aside saves, and how to run it."""
    s, plain, traffic = table.schedule, table.schedule.traffic[0].dram_bytes, table.traffic.dram_bytes
    if (s.name, s.kernel.tile) == (result.best.name, result.best.kernel.tile):
        which, how = "the best", f"`python best.py {table.flag}`"
    else:
        which = f"tile {s.kernel.tile}, {s.name},"
        file = "the table of --save-pinned" if table is result.set_aside else "the order by its name"
        how = f"export {file}, `python pinned.py {table.flag}`"
    return (
        f"pinned: {which} moves {format_bytes(traffic)} with {table.operand} in up to {table.share:.0%} of L2 set "
        f"aside, {format_bytes(plain)} without (saves {format_bytes(plain - traffic)}): {how}"
    )


def _least_launches(result: Tuning) -> list[OtherLaunch[Tuned]]:
    """Of each launch what moves least."""
    return list({launch.execution: launch for launch in reversed(result.launches)}.values())[::-1]


def _row(tied: tuple[Tuned, ...]) -> list[str]:
    s = tied[0]
    traffic = [s.traffic[0].dram_read_bytes, *(t.dram_bytes for t in s.traffic)]
    name = s.name if len(tied) == 1 else f"{s.name} and {len(tied) - 1} more"
    return [name, s.kernel.tile, *(f"{value / 1e6:,.1f}" for value in traffic), f"{s.ratio:.2f}"]

"""How long each schedule takes on a GPU by the model, beside the floor that is proved, and what binds.

A wave takes as long as its slowest resource, at rates that kernels sustain: compute, L2, DRAM at what the cache model
misses in that wave. On an H100 or H200 schedules are ranked by sustained time: run again and again the chip is at its
limit of power, and bytes cost clock. Estimates, checked against measured launches; the floor is proved.

examples:
  pebble time gemm -m 8192 -n 8192 -k 8192 --gpu h100-sxm5-80gb --schedules row,grouped-8
  pebble time gemm -m 8192 -n 8192 -k 8192 --gpu h100-sxm5-80gb --tile 128x256x64 --execution free --json
  pebble time llama-2-7b:mlp --tokens 8192 --gpu a40 --sweep tokens=16,64,256,1024,4096
  pebble time attention --queries 1 --keys 8192 --head-dim 128 --heads 32 --kv-heads 8 --batch 64 --gpu a100-sxm4-40gb
    --beside "ffn --tokens 1024 --d-model 4096 --hidden 14336 --gated" --figure beside.svg
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

from pebble.api.kernels import time
from pebble.cli import _output
from pebble.cli._arguments import (
    add_kernel_arguments,
    add_machine_arguments,
    add_schedules_arguments,
    add_workload_arguments,
    kernel,
    workload_of,
)
from pebble.cli._dataflows import print_dataflows
from pebble.cli._look import add_look_arguments, check_figure, write_figure
from pebble.cli._ranking import FEW, as_fast, print_trust, tell_patience_of
from pebble.errors import InputError
from pebble.reports.dataflows import DataflowComparison
from pebble.reports.kernel_time import IN_TURN, PING_PONG, Timing, floor_word
from pebble.reports.ranking import Ranking, likely_orders, ranking_of
from pebble.reports.target import scratchpads_of
from pebble.reports.time_concurrent import SideBySide
from pebble.reports.time_sweep import Sweep
from pebble.timing.modelled import ModelledTime
from pebble.units import format_ratio

_SUMS = {"compute": "compute", "dram": "DRAM", "l2": "L2", "shared": "shared"}  # a narrow screen leaves out the last
_TAKES = {"operations": "operations", "l2": "L2", "fabric": "its fabric", "dram": "DRAM", "static": "the rest"}
_FEW_SECONDS = 1e-4  # a table whose longest time is below is in microseconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble time``."""
    add_workload_arguments(parser, kernels=True)
    add_schedules_arguments(parser)
    group = parser.add_argument_group("two workloads, or many sizes")
    group.add_argument(
        "--beside", metavar="WORKLOAD",
        help='side by side with a second one, such as "ffn --tokens 512 --d-model 4096 --hidden 11008"',
    )  # fmt: skip
    group.add_argument("--beside-schedules", metavar="NAMES", help="of the second; the fastest (those in common use)")
    group.add_argument("--beside-sms", metavar="P,P", help="SMs of the second (seven splits)")
    group.add_argument("--sweep", metavar="NAME=V,V", help="one size in many values: tokens=16,256,4096")
    parser.add_argument("--all", action="store_true", help="every schedule, also those that look slower")
    parser.add_argument("--explain", action="store_true", help="every schedule, and notes; of a dataflow its steps")
    add_look_arguments(parser, "with --beside or --sweep, write the figure")
    add_machine_arguments(parser, cache=False)
    add_kernel_arguments(parser).add_argument(
        "--promote-every", metavar="STEPS", help="fp8: add sums to others, in fp32, every so many steps of k (never)"
    )


def run(args: argparse.Namespace) -> int:
    """Model and print."""
    if args.figure is not None and args.beside is None and args.sweep is None:
        raise InputError("--figure: expected --beside or --sweep with it.")
    check_figure(args)
    schedules, left_out, one = args.schedules, 0, args.beside is None and args.sweep is None
    short = one and not (args.json or args.all or args.explain)
    if one and args.cache is None and scratchpads_of(kernel(args)) is None:
        if short and schedules == "all":
            likely, left_out = likely_orders(workload_of(args), **kernel(args))
            schedules = likely if left_out else schedules
        tell_patience_of(workload_of(args), schedules, args.schedule, **kernel(args))
    result = time(
        workload_of(args),
        schedules,
        args.schedule,
        residual=args.residual,
        beside=args.beside,
        beside_schedules=args.beside_schedules,
        beside_sms=args.beside_sms,
        sweep=args.sweep,
        promote_every=args.promote_every,
        **kernel(args),
    )
    if args.figure is not None and not isinstance(result, Timing):
        write_figure(args, result.figure)
    if args.json:
        more = {"verdict": ranking_of(result).to_json()} if isinstance(result, Timing) else {}
        _output.print_report(result, **more)
    elif isinstance(result, Timing):
        _print(result, short, left_out)
    elif isinstance(result, DataflowComparison):
        print_dataflows(result, (len(result.flows) if args.all else 1) if args.explain else 0)
    elif isinstance(result, SideBySide):
        _print_concurrent(result)
    else:
        _print_sweep(result)
    return 0 if not isinstance(result, Timing) or result.complete else 130


class _Unit(NamedTuple):
    """Of all times that stand together."""

    name: str
    scale: float

    @classmethod
    def of(cls, longest: float) -> _Unit:
        """Milliseconds, or microseconds where all are short."""
        return cls("us", 1e6) if longest < _FEW_SECONDS else cls("ms", 1e3)

    def __call__(self, seconds: float) -> str:
        value = seconds * self.scale
        if 0 < value < 5e-4:  # no floor is 0.000
            return f"{value:.3g}"
        return f"{value:,.3f}" if value < 1e3 else f"{value:,.1f}"

    def sums(self, time: ModelledTime) -> list[str]:
        """What each resource needs; a dash for shared memory where the chip's way is not known."""
        times = dict(
            zip(_SUMS, (time.compute_seconds, time.dram_seconds, time.l2_seconds, time.shared_seconds), strict=True)
        )
        return ["-" if of == "shared" and not seconds else self(seconds) for of, seconds in times.items()]

    @property
    def heads(self) -> list[str]:
        """Of these columns."""
        return [f"{title} {self.name}" for title in _SUMS.values()]


def _binds(time: ModelledTime) -> str:
    if not time.waves:
        return next(iter(time.binds))
    return ", ".join(f"{name} in {count}" for name, count in time.binds.items())


def _notes(notes: tuple[str, ...]) -> None:
    for note in notes:
        _output.say(f"note: {note}")


def _print(result: Timing, short: bool, left_out: int) -> None:
    """The verdict, then a row for each time: of a short screen few, and no notes."""
    say = _output.say
    say(f"{result.workload.label}: {result.kernel.runs_and_why}, {result.kernel.cache}")
    print()
    unit, floor = _Unit.of(max(order.time.seconds for order in result.orders)), result.floor
    parts = ", ".join(
        f"{'DRAM' if p.name == 'dram' else p.name.replace('l2', 'L2')} {unit(p.seconds)}" for p in floor.parts
    )
    say(
        f"proved floor     {unit(floor.seconds)} {unit.name}, {floor_word(floor)}: no launch of this kernel is "
        f"faster ({parts})"
    )
    ranking = ranking_of(result)
    best = ranking.best.timed
    assert best is not None
    again = best.sustained
    took = f"{unit(best.time.seconds)} {unit.name}"
    if again is not None:
        took = f"{unit(again.seconds)} {unit.name} sustained ({took} alone)"
    tflops = result.workload.flops / best.ranked_seconds / 1e12
    rate = f"{tflops:,.0f}" if tflops >= 1 else f"{tflops:.2g}"
    say(
        f"fastest          {took} by the model, of {len(result.orders)} timed with tile {result.kernel.tile}: "
        f"{best.order}, {rate} TFLOPS{as_fast(ranking)}; `pebble tile` times other tiles"
    )
    if again is not None:
        shares = ", ".join(f"{_TAKES[name]} {joules / again.total_joules:.0%}" for name, joules in again.joules.items())
        say(
            f"its energy       {again.total_joules:.3g} J a launch, modelled, at {again.watts:,.0f} W and "
            f"{again.clock_mhz:,.0f} MHz: {shares}"
        )
    _print_losses(best.time, unit)
    if result.programs:
        slower = result.programs[IN_TURN].ranked_seconds
        say(
            "its program      two warp groups take turns, as in FlashAttention-3 and the exported file; exponentials "
            f"after products, as in FlashAttention-2: {unit(slower)} {unit.name}, "
            f"{format_ratio(slower / result.programs[PING_PONG].ranked_seconds, '.2f')}x, by the model"
        )
    for each in result.handed_over:
        say(f"handed over      {each}")
    print()
    hidden = _print_orders(result, ranking, unit, short)
    if not result.complete:
        _output.say("note: interrupted; the rest was not simulated")
    if short:
        print_trust(ranking, hidden, left_out, "notes")
    else:
        _notes(result.notes)


def _print_losses(time: ModelledTime, unit: _Unit) -> None:
    """Its waves, and what a launch takes beyond what its busiest resource needs."""
    if time.waves and time.slots:
        _output.say(f"its waves        {len(time.waves)}, the last of {time.waves[-1].blocks} of {time.slots} blocks")
    parts = {name.replace("_", " "): part for name, part in time.lost.items() if part > 5e-4 * time.seconds}
    if parts:
        shares = ", ".join(f"{name} {unit(part)}" for name, part in sorted(parts.items(), key=lambda item: -item[1]))
        _output.say(
            f"its losses       {unit(sum(time.lost.values()))} of {unit(time.seconds)} {unit.name} in which its "
            f"busiest resource, {time.busiest}, rests: {shares}"
        )


def _print_orders(result: Timing, ranking: Ranking, unit: _Unit, short: bool) -> int:
    """A row for each time that schedules take; of a short screen few where there are many: how many are not shown."""
    modelled = f"modelled {unit.name}"
    often_too = any(order.sustained is not None for order in result.orders)
    ranked = [f"sustained {unit.name}", "x floor", "joules", modelled] if often_too else [modelled, "x floor"]
    binds = "binds in waves" if result.orders[0].time.waves else "binds"
    heads = ["schedule", *ranked, *unit.heads, binds]
    rows: dict[tuple[str, ...], list[str]] = {}
    for timed in result.orders:
        again, t = timed.sustained, timed.time
        over = format_ratio(timed.ranked_seconds / result.floor.seconds, ".2f")  # what they are ranked by, as `compare`
        over += " alone" * (often_too and again is None)
        often = ("-" if again is None else f"{again.total_joules:.3g}", unit(t.seconds)) if often_too else ()
        takes = ("-" if often_too and again is None else unit(timed.ranked_seconds), over, *often)
        rows.setdefault((*takes, *unit.sums(t), _binds(t)), []).append(timed.order)
    few = {each.order for each in ranking.short}
    shown = rows
    if short and len(rows) > FEW:
        shown = {row: tied for row, tied in rows.items() if few.intersection(tied)}
    named = [[tied[0] + f" and {len(tied) - 1} more" * (len(tied) > 1), *row] for row, tied in shown.items()]
    print(_output.table(heads, named, keep=(ranked[0], "x floor", modelled, binds)))
    for tied in () if short else rows.values():
        if len(tied) > 1:
            _output.say(f"the same: {', '.join(tied)}")
    return sum(map(len, rows.values())) - sum(map(len, shown.values()))


def _print_concurrent(result: SideBySide) -> None:
    say, sms = _output.say, result.kernels[0].config.sms
    unit = _Unit.of(max(result.in_turn_seconds, *(split.time.seconds for split in result.splits)))
    for number, what in enumerate(("first", "second")):
        timed = result.alone[number]
        say(
            f"{what:<8} {result.workloads[number].label}: {timed.order}, tile {result.kernels[number].tile}; alone "
            f"{unit(timed.time.seconds)} {unit.name}, {_binds(timed.time)}-bound"
        )
    print()
    say(f"one after the other  {unit(result.in_turn_seconds)} {unit.name}, each on all {sms} SMs")
    say(
        f"best split           {unit(result.best.time.seconds)} {unit.name}, {sms - result.best.sms} SMs and "
        f"{result.best.sms}: {result.gain:.2f}x"
    )
    say(
        f"busiest resource     {unit(result.least_seconds)} {unit.name} for both together: no split is faster by the "
        "model"
    )
    print()
    rows = [
        [
            f"{sms - split.sms} + {split.sms}",
            unit(split.time.seconds),
            *(unit(ended) for ended in split.time.ended_seconds),
            f"{result.in_turn_seconds / split.time.seconds:.2f}",
        ]
        for split in result.splits
    ]
    print(_output.table(["SMs", f"both {unit.name}", "first done", "second done", "gain"], rows))
    _notes(result.notes)


def _print_sweep(result: Sweep) -> None:
    _output.say(result.summary())
    print()
    unit = _Unit.of(max(s.best.time.seconds for s in result.steps))
    ranked = all(s.best.sustained for s in result.steps)
    rows = [
        [
            f"{s.value:,}", s.best.order, s.kernel.tile, *([unit(s.best.ranked_seconds)] if ranked else []),
            unit(s.best.time.seconds), *unit.sums(s.best.time), _binds(s.best.time), unit(s.floor.seconds),
            floor_word(s.floor),
        ]
        for s in result.steps
    ]  # fmt: skip
    heads = [
        result.size,
        "schedule",
        "tile",
        *([f"sustained {unit.name}"] if ranked else []),
        f"modelled {unit.name}",
        *unit.heads,
        "binds",
        f"floor {unit.name}",
        "floor is",
    ]
    print(_output.table(heads, rows, left=3, keep=(f"modelled {unit.name}", f"floor {unit.name}", "binds")))
    _notes(result.notes)

"""How long each schedule takes on a GPU by the model, beside the floor that is proved, and what binds.

A wave takes as long as its slowest resource, at rates that kernels sustain: compute, L2, DRAM at what the cache model
misses in that wave. Estimates, checked against measured launches; the floor is proved.

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
from pebble.cli._look import add_look_arguments, check_figure, write_figure
from pebble.cli._schedules_argument import add_schedules_arguments
from pebble.cli._target import add_kernel_arguments, add_machine_arguments, kernel
from pebble.cli._workload_argument import add_workload_arguments, workload_of
from pebble.errors import InputError
from pebble.reports.kernel_time import Timing, floor_word
from pebble.reports.time_beside import SideBySide
from pebble.reports.time_sweep import Sweep
from pebble.timing.waves import ModelledTime
from pebble.units import format_ratio

_SUMS = {"compute": "compute", "shared": "shared", "l2": "L2", "dram": "DRAM"}
_FEW_SECONDS = 1e-4  # a table whose longest time is below is in microseconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble time``."""
    add_workload_arguments(parser)
    add_schedules_arguments(parser)
    group = parser.add_argument_group("two workloads, or many sizes")
    group.add_argument(
        "--beside", metavar="WORKLOAD",
        help='side by side with a second one, such as "ffn --tokens 512 --d-model 4096 --hidden 11008"',
    )  # fmt: skip
    group.add_argument("--beside-schedules", metavar="NAMES", help="of the second; the fastest (those in daily use)")
    group.add_argument("--beside-sms", metavar="P,P", help="SMs of the second (seven splits)")
    group.add_argument("--sweep", metavar="NAME=V,V", help="one size in many values: tokens=16,256,4096")
    add_look_arguments(parser, "with --beside or --sweep, write the figure")
    add_machine_arguments(parser, cache=False)
    add_kernel_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Model and print."""
    if args.figure is not None and args.beside is None and args.sweep is None:
        raise InputError("--figure: expected --beside or --sweep with it.")
    check_figure(args)
    found = time(
        workload_of(args),
        args.schedules,
        args.schedule,
        residual=args.residual,
        beside=args.beside,
        beside_schedules=args.beside_schedules,
        beside_sms=args.beside_sms,
        sweep=args.sweep,
        **kernel(args),
    )
    if args.figure is not None and not isinstance(found, Timing):
        write_figure(args, found.figure)
    if args.json:
        _output.print_report(found)
    elif isinstance(found, Timing):
        _print(found)
    elif isinstance(found, SideBySide):
        _print_beside(found)
    else:
        _print_sweep(found)
    return 0


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
        return f"{value:,.3f}" if value < 1e3 else f"{value:,.1f}"

    def sums(self, time: ModelledTime) -> list[str]:
        """What each resource needs; a dash for shared memory where the chip's way is not known."""
        times = {of: getattr(time, f"{of}_seconds") for of in _SUMS}
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


def _print(found: Timing) -> None:
    say = _output.say
    say(f"{found.workload.label}: {found.kernel.runs_and_why}, {found.kernel.cache}")
    print()
    unit, floor = _Unit.of(max(t.seconds for _, t in found.orders)), found.floor
    parts = ", ".join(
        f"{'DRAM' if p.name == 'dram' else p.name.replace('l2', 'L2')} {unit(p.seconds)}" for p in floor.parts
    )
    say(
        f"proved floor     {unit(floor.seconds)} {unit.name}, {floor_word(floor)}: no launch of this kernel is "
        f"faster ({parts})"
    )
    best = found.orders[0]
    say(
        f"fastest          {unit(best.time.seconds)} {unit.name} by the model, of {len(found.orders)} timed with tile "
        f"{found.kernel.tile}: "
        f"{best.order}, {found.workload.flops / best.time.seconds / 1e12:,.0f} TFLOPS; `pebble tile` times other tiles"
    )
    waves = len(best.time.waves)
    if waves:
        last = best.time.waves[-1]
        say(
            f"its waves        {waves}, the last of {last.blocks} blocks; fill and drain "
            f"{unit(best.time.around_seconds)} {unit.name}, launch {unit(best.time.launch_seconds)} {unit.name}"
        )
    print()
    heads = ["schedule", f"modelled {unit.name}", "x floor", *unit.heads, "binds in waves" if waves else "binds"]
    rows: dict[tuple[str, ...], list[str]] = {}
    for order, t in found.orders:
        row = (unit(t.seconds), format_ratio(t.seconds / floor.seconds, ".2f"), *unit.sums(t), _binds(t))
        rows.setdefault(row, []).append(order)
    named = [[tied[0] + f" and {len(tied) - 1} more" * (len(tied) > 1), *row] for row, tied in rows.items()]
    print(_output.table(heads, named, keep=(*heads[1:3], heads[-1])))
    for tied in rows.values():
        if len(tied) > 1:
            say(f"the same: {', '.join(tied)}")
    _notes(found.notes)


def _print_beside(found: SideBySide) -> None:
    say, sms = _output.say, found.kernels[0].config.sms
    unit = _Unit.of(max(found.in_turn_seconds, *(split.time.seconds for split in found.splits)))
    for number, what in enumerate(("first", "second")):
        timed = found.alone[number]
        say(
            f"{what:<8} {found.workloads[number].label}: {timed.order}, tile {found.kernels[number].tile}; alone "
            f"{unit(timed.time.seconds)} {unit.name}, {_binds(timed.time)}-bound"
        )
    print()
    say(f"one after the other  {unit(found.in_turn_seconds)} {unit.name}, each on all {sms} SMs")
    say(
        f"best split           {unit(found.best.time.seconds)} {unit.name}, {sms - found.best.sms} SMs and "
        f"{found.best.sms}: {found.gain:.2f}x"
    )
    say(
        f"busiest resource     {unit(found.least_seconds)} {unit.name} for both together: no split is faster by the "
        "model"
    )
    print()
    rows = [
        [
            f"{sms - split.sms} + {split.sms}",
            unit(split.time.seconds),
            *(unit(ended) for ended in split.time.ended_seconds),
            f"{found.in_turn_seconds / split.time.seconds:.2f}",
        ]
        for split in found.splits
    ]
    print(_output.table(["SMs", f"both {unit.name}", "first done", "second done", "gain"], rows))
    _notes(found.notes)


def _print_sweep(found: Sweep) -> None:
    _output.say(found.summary())
    print()
    unit = _Unit.of(max(s.best.time.seconds for s in found.steps))
    rows = [
        [
            f"{s.value:,}", s.best.order, s.kernel.tile, unit(s.best.time.seconds), *unit.sums(s.best.time),
            _binds(s.best.time), unit(s.floor.seconds), floor_word(s.floor),
        ]
        for s in found.steps
    ]  # fmt: skip
    heads = [
        found.size,
        "schedule",
        "tile",
        f"modelled {unit.name}",
        *unit.heads,
        "binds",
        f"floor {unit.name}",
        "floor is",
    ]
    print(_output.table(heads, rows, left=3, keep=(f"modelled {unit.name}", f"floor {unit.name}", "binds")))
    _notes(found.notes)

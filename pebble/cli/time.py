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

from pebble.cli import _output
from pebble.cli._look import add_look_arguments, check_figure, write_figure
from pebble.cli._target import add_kernel_arguments, add_machine_arguments, kernel
from pebble.cli._workload_argument import add_workload_arguments, workload_of
from pebble.errors import InputError
from pebble.families import schedules_help
from pebble.plots.time import time_figure
from pebble.reports.kernel_time import Timing, floor_word
from pebble.reports.time import time
from pebble.reports.time_beside import SideBySide
from pebble.reports.time_sweep import Sweep
from pebble.schedules.tables.source import OWN_HELP
from pebble.timing.waves import ModelledTime

_SUMS = ("compute", "shared", "l2", "dram")
_HEADS = ("compute ms", "shared ms", "L2 ms", "DRAM ms")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble time``."""
    add_workload_arguments(parser)
    parser.add_argument(
        "--schedules", default="all", metavar="NAMES",
        help=f"all, or names separated by commas (all): {schedules_help()}",
    )  # fmt: skip
    parser.add_argument(
        "--schedule", action="append", metavar="FILE", help=f"beside these, {OWN_HELP}; may be given more than once"
    )
    parser.add_argument("--residual", action="store_true", help="ffn: read the input again to add it to the output")
    group = parser.add_argument_group("two workloads, or many sizes")
    group.add_argument(
        "--beside", metavar="WORKLOAD",
        help='side by side with a second one, such as "ffn --tokens 512 --d-model 4096 --hidden 11008"',
    )  # fmt: skip
    group.add_argument("--beside-schedules", metavar="NAMES", help="of the second; the fastest (those in daily use)")
    group.add_argument("--beside-sms", metavar="P,P", help="SMs of the second (seven splits)")
    group.add_argument("--sweep", metavar="NAME=V,V", help="one size in many values: tokens=16,256,4096")
    add_look_arguments(parser, "with --beside or --sweep, write the figure")
    add_machine_arguments(parser)
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
        write_figure(args, lambda: time_figure(found))
    if args.json:
        _output.print_report(found)
    elif isinstance(found, Timing):
        _print(found)
    elif isinstance(found, SideBySide):
        _print_beside(found)
    else:
        _print_sweep(found)
    return 0


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.3f}" if seconds < 1 else f"{seconds * 1e3:,.1f}"


def _sums(time: ModelledTime) -> list[str]:
    return [_ms(getattr(time, f"{of}_seconds")) for of in _SUMS]


def _binds(time: ModelledTime) -> str:
    if not time.waves:
        return next(iter(time.binds))
    return ", ".join(f"{name} in {count}" for name, count in time.binds.items())


def _notes(notes: tuple[str, ...]) -> None:
    for note in notes:
        _output.say(f"note: {note}")


def _print(found: Timing) -> None:
    say = _output.say
    say(f"{found.workload.label}: {found.kernel.runs}, {found.kernel.cache}")
    print()
    parts = ", ".join(
        f"{'DRAM' if p.name == 'dram' else p.name.replace('l2', 'L2')} {_ms(p.seconds)}" for p in found.floor.parts
    )
    say(
        f"proved floor     {_ms(found.floor.seconds)} ms, {floor_word(found.floor)}: no launch of this kernel is "
        f"faster ({parts})"
    )
    best = found.orders[0]
    say(
        f"fastest          {_ms(best.time.seconds)} ms by the model: {best.order}, "
        f"{found.workload.flops / best.time.seconds / 1e12:,.0f} TFLOPS"
    )
    waves = len(best.time.waves)
    if waves:
        last = best.time.waves[-1]
        say(
            f"its waves        {waves}, the last of {last.blocks} blocks; fill and drain "
            f"{_ms(best.time.around_seconds)} ms, launch {_ms(best.time.launch_seconds)} ms"
        )
    print()
    heads = ["schedule", "modelled ms", "x floor", *_HEADS, "binds in waves" if waves else "binds"]
    rows = [
        [order, _ms(t.seconds), f"{t.seconds / found.floor.seconds:.2f}", *_sums(t), _binds(t)]
        for order, t in found.orders
    ]
    print(_output.table(heads, rows, keep=heads[1:3]))
    _notes(found.notes)


def _print_beside(found: SideBySide) -> None:
    say, sms = _output.say, found.kernels[0].config.sms
    for number, what in enumerate(("first", "second")):
        timed = found.alone[number]
        say(
            f"{what:<8} {found.workloads[number].label}: {timed.order}, tile {found.kernels[number].tile}; alone "
            f"{_ms(timed.time.seconds)} ms, {_binds(timed.time)}-bound"
        )
    print()
    say(f"one after the other  {_ms(found.in_turn_seconds)} ms, each on all {sms} SMs")
    say(
        f"best split           {_ms(found.best.time.seconds)} ms, {sms - found.best.sms} SMs and {found.best.sms}: "
        f"{found.gain:.2f}x"
    )
    say(f"busiest resource     {_ms(found.least_seconds)} ms for both together: no split is faster by the model")
    print()
    rows = [
        [
            f"{sms - split.sms} + {split.sms}",
            _ms(split.time.seconds),
            *map(_ms, split.time.ended_seconds),
            f"{found.in_turn_seconds / split.time.seconds:.2f}",
        ]
        for split in found.splits
    ]
    print(_output.table(["SMs", "both ms", "first done", "second done", "gain"], rows))
    _notes(found.notes)


def _print_sweep(found: Sweep) -> None:
    _output.say(found.summary())
    print()
    rows = [
        [
            f"{s.value:,}", s.best.order, s.kernel.tile, _ms(s.best.time.seconds), *_sums(s.best.time),
            _binds(s.best.time), _ms(s.floor.seconds), floor_word(s.floor),
        ]
        for s in found.steps
    ]  # fmt: skip
    heads = [found.size, "schedule", "tile", "modelled ms", *_HEADS, "binds", "floor ms", "floor is"]
    print(_output.table(heads, rows, left=3, keep=("modelled ms", "floor ms")))
    _notes(found.notes)

"""The schedules of each family: how ``--schedules`` is read, compared and simulated."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TypeVar

from pebble.cli._kernel import default_tile
from pebble.cli._workload import AnyWorkload, whole_number
from pebble.comparison import Comparison, compare_attention, compare_ffn, compare_orders
from pebble.comparison.beside import simulate_beside
from pebble.comparison.core import Progress
from pebble.errors import InputError
from pebble.models.machine import Machine
from pebble.schedules.attention import AttentionSchedule, all_attention_schedules, parse_attention_schedule
from pebble.schedules.ffn import FfnSchedule, all_ffn_schedules, parse_ffn_schedule
from pebble.schedules.orders import TileOrder, all_schedules, parse_order
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig, Schedule, Traffic
from pebble.simulation import simulate as simulate_schedule
from pebble.workloads import Attention, Conv2d, Ffn, Gemm, named_workload

T = TypeVar("T")

SCHEDULES_HELP = (
    "all, or names separated by commas (all): gemm: the orders of `pebble schedules`; ffn: separate:ORDER, "
    "row-fused-R, row-fused-R-split-S, interleaved-R; attention: fa1, fa2, fa2-heads-first, fa3, flash-decoding, "
    "split-kv-N, unfused"
)


def traced(workload: AnyWorkload) -> Gemm | Ffn | Attention:
    """The workload, if it has GPU traces.

    Raises
    ------
    InputError
        A convolution.
    """
    if isinstance(workload, Conv2d):
        raise InputError(
            "conv2d: there is no GPU trace of a convolution, expected gemm, ffn or attention; use `pebble bound`."
        )
    return workload


def read_schedules(text: str, everything: Sequence[T], parse: Callable[[str], T]) -> list[T]:
    """All, or the names given, each once.

    Raises
    ------
    InputError
        No name at all.
    UnknownNameError
        An unknown name.
    """
    if text.strip().lower() == "all":
        return list(everything)
    names = [name for name in (part.strip() for part in text.split(",")) if name]
    if not names:
        raise InputError(f"--schedules: got {text!r}, expected all, or names separated by commas.")
    return list(dict.fromkeys(parse(name) for name in names))


def chosen_schedules(
    text: str, workload: Gemm | Ffn | Attention, tile: TileShape
) -> Sequence[TileOrder | FfnSchedule | AttentionSchedule]:
    """The schedules that ``--schedules`` names for the family."""
    if isinstance(workload, Gemm):
        return read_schedules(text, all_schedules(), parse_order)
    if isinstance(workload, Ffn):
        return read_schedules(text, all_ffn_schedules(workload, tile), parse_ffn_schedule)
    return read_schedules(text, all_attention_schedules(), parse_attention_schedule)


def compare(
    args: argparse.Namespace,
    workload: Gemm | Ffn | Attention,
    config: KernelConfig,
    machine: Machine | None,
    stages: int,
    notes: Sequence[str],
    progress: Callable[[int], Progress],
) -> Comparison:
    """Read ``--schedules`` for the family and compare; ``progress`` is told how many there are."""
    text = args.schedules
    if isinstance(workload, Gemm):
        orders = read_schedules(text, all_schedules(), parse_order)
        return compare_orders(workload, config, orders, machine, stages, notes, progress(len(orders)))
    if isinstance(workload, Ffn):
        chains = read_schedules(text, all_ffn_schedules(workload, config.tile), parse_ffn_schedule)
        show = progress(len(chains))
        return compare_ffn(workload, config, chains, machine, stages, notes, show, args.residual)
    kernels = read_schedules(text, all_attention_schedules(), parse_attention_schedule)
    return compare_attention(workload, config, kernels, machine, stages, notes, progress(len(kernels)))


def beside(args: argparse.Namespace, workload: Gemm | Ffn | Attention, config: KernelConfig) -> Traffic:
    """An attention and, on ``--beside-sms`` of the SMs, the FFN named by ``--beside``, as one trace.

    Raises
    ------
    InputError
        The workload is no attention or the other no MODEL:mlp, or --beside-sms is missing.
    """
    other = (
        named_workload(args.beside, whole_number("--tokens", args.tokens or "0"), args.dtype, args.out_dtype)
        if (":" in args.beside and args.tokens)
        else None
    )
    if not isinstance(workload, Attention) or not isinstance(other, Ffn) or args.beside_sms is None:
        raise InputError(
            f"--beside: got {args.beside!r} beside {args.workload!r}, expected MODEL:attention --tokens T --beside "
            "MODEL:mlp --beside-sms P."
        )
    return simulate_beside(
        workload,
        parse_attention_schedule(args.schedule),
        other,
        parse_ffn_schedule(args.beside_schedule),
        default_tile(other),
        config,
        whole_number("--beside-sms", args.beside_sms),
    )


def one_schedule(name: str, workload: Gemm | Ffn | Attention) -> Schedule:
    """The schedule of that name of the family."""
    if isinstance(workload, Gemm):
        return parse_order(name)
    return parse_ffn_schedule(name) if isinstance(workload, Ffn) else parse_attention_schedule(name)


def simulate(name: str, workload: Gemm | Ffn | Attention, config: KernelConfig, residual: bool) -> Traffic:
    """One schedule of the family."""
    return simulate_schedule(workload, one_schedule(name, workload), config, residual)

"""The schedules of each family: how ``--schedules`` is read, compared and simulated."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TypeVar

from pebble.cli._workload import AnyWorkload
from pebble.comparison import Comparison, compare_attention, compare_ffn, compare_orders
from pebble.comparison.attention import simulate_attention
from pebble.comparison.core import Progress
from pebble.comparison.ffn import simulate_ffn
from pebble.errors import InputError
from pebble.models.machine import Machine
from pebble.schedules.attention import all_attention_schedules, parse_attention_schedule
from pebble.schedules.ffn import all_ffn_schedules, parse_ffn_schedule
from pebble.schedules.orders import all_schedules, parse_order
from pebble.simulation import KernelConfig, Traffic, simulate_gemm
from pebble.workloads import Attention, Conv2d, Ffn, Gemm

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


def simulate(name: str, workload: Gemm | Ffn | Attention, config: KernelConfig, residual: bool) -> Traffic:
    """One schedule of the family."""
    if isinstance(workload, Gemm):
        return simulate_gemm(workload, parse_order(name), config)
    if isinstance(workload, Ffn):
        return simulate_ffn(workload, parse_ffn_schedule(name), config, residual)
    return simulate_attention(workload, parse_attention_schedule(name), config)

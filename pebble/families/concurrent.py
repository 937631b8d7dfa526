"""Attention and an FFN side by side on one GPU: some SMs in one, the rest in the other, one cache."""

from __future__ import annotations

from dataclasses import replace

from pebble.errors import InputError
from pebble.families.attention import ATTENTION
from pebble.families.ffn import FFN
from pebble.schedules.attention_names import AttentionSchedule
from pebble.schedules.ffn import FfnSchedule
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig, Traffic, simulate_trace
from pebble.workloads import Attention, Ffn, named_workload
from pebble.workloads.workload import Workload


def concurrent_pairs(workload: Workload, beside: str, has_sms: bool) -> tuple[Attention, Ffn]:
    """The attention of a named model, and the model's FFN of the same tokens and types.

    Raises
    ------
    InputError
        Something else, or nobody said how many SMs the FFN gets.
    UnknownNameError
        No such model or layer.
    """
    other = None
    if ":" in beside and isinstance(workload, Attention) and workload.name:
        other = named_workload(beside.lower(), workload.queries, workload.dtype, workload.out_dtype)
    if not isinstance(workload, Attention) or not isinstance(other, Ffn) or not has_sms:
        raise InputError(
            f"--beside: got {beside!r} beside {workload.label!r}, expected MODEL:attention --tokens T --beside "
            "MODEL:mlp --beside-sms P."
        )
    return workload, other


def simulate_concurrent(
    attention: Attention,
    attention_schedule: AttentionSchedule,
    ffn: Ffn,
    ffn_schedule: FfnSchedule,
    ffn_tile: TileShape,
    config: KernelConfig,
    ffn_sms: int,
) -> Traffic:
    """One trace of both: a step of an attention wave and a step of an FFN wave in turn, until both are done.

    Parameters
    ----------
    attention, ffn : Attention, Ffn
        The two problems; they share no data.
    attention_schedule, ffn_schedule : AttentionSchedule, FfnSchedule
        What each runs; not ``interleaved``, which already needs two sets of SMs.
    ffn_tile : TileShape
        Block tile of the FFN; ``config.tile`` is the attention's.
    config : KernelConfig
        SMs of the chip, cache and policy.
    ffn_sms : int
        SMs that run the FFN; the rest run the attention.

    Raises
    ------
    InputError
        No SM is left for one of them, or the FFN schedule is interleaved.
    """
    if not 1 <= ffn_sms < config.sms:
        raise InputError(f"--beside-sms: got {ffn_sms} of {config.sms} SMs, expected 1 to {config.sms - 1}.")
    if ffn_schedule.kind == "interleaved":
        raise InputError("--beside-schedule: got an interleaved schedule, expected separate:ORDER or row-fused-R.")
    sms = config.sms - ffn_sms
    single = ATTENTION.program(attention, attention_schedule, replace(config, sms=sms))
    two = FFN.program(ffn, ffn_schedule, replace(config, sms=ffn_sms, tile=ffn_tile))
    name = f"{attention_schedule.name} on {sms} SMs beside {ffn_schedule.name} on {ffn_sms}"
    return simulate_trace(name, config.trace(single.concurrent_with(two)), config.cache_bytes, config.policy)

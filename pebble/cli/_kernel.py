"""From arguments to a kernel configuration, with the notes a reader needs."""

from __future__ import annotations

import argparse

from pebble.cli._target import MAX_SMS, Target, natural, positive
from pebble.errors import InputError
from pebble.models.cache_policy import parse_policy
from pebble.models.machine import Machine
from pebble.schedules.execution import parse_execution
from pebble.schedules.lockstep import TileShape
from pebble.schedules.trace import LINE_BYTES
from pebble.simulation import KernelConfig
from pebble.units import format_capacity
from pebble.workloads import Attention, Ffn, Gemm

HARDWARE = "hardware"


def default_tile(workload: Gemm | Ffn | Attention) -> TileShape:
    """128 x 128 and 128 bytes of k; for attention FlashAttention-2's, 128 queries by 128 keys, 64 above head-dim 64."""
    if isinstance(workload, Attention):
        return TileShape(128, 128 if workload.head_dim <= 64 else 64, 1)
    return TileShape(128, 128, LINE_BYTES // workload.in_bytes)


def _cut(tile: TileShape, workload: Gemm | Ffn | Attention) -> TileShape:
    if isinstance(workload, Gemm):
        return tile.cut_to(workload)
    if isinstance(workload, Ffn):
        return TileShape(min(tile.bm, workload.tokens), tile.bn, tile.bk)
    return TileShape(min(tile.bm, workload.queries), min(tile.bn, workload.keys), 1)


def _tile_text(tile: TileShape, workload: Gemm | Ffn | Attention) -> str:
    return f"{tile.bm}x{tile.bn}" if isinstance(workload, Attention) else str(tile)


def _about_the_model(machine: Machine, policy: str, partitions: int) -> str:
    """What the simulated cache is, and where the chip differs."""
    text = f"the cache model is one {policy.upper()} of the nominal L2 size; "
    if machine.memory_side_cache_bytes:
        return text + (
            f"{machine.name} has {partitions} private L2s, each with its own copies, and a memory-side cache of "
            f"{format_capacity(machine.memory_side_cache_bytes)}, which is not modelled: traffic is "
            "what leaves the L2s; `--policy hardware` models both"
        )
    if partitions > 1:
        return text + (
            f"{machine.name} has {partitions} L2 partitions, which may keep a line twice, so measured traffic can be "
            "higher; `--policy hardware` models them"
        )
    return text + "hardware replacement and set conflicts differ"


def read_cache_model(name: str, target: Target, element_bytes: int) -> tuple[str, int, list[str]]:
    """The policy's name, its capacity in bytes, and notes on what is simulated.

    Raises
    ------
    InputError
        An unknown policy, or ``hardware`` without a machine.
    """
    machine = target.machine
    if name == HARDWARE:
        if machine is None:
            raise InputError("--policy hardware: expected --gpu or --machine beside it, whose cache model is meant.")
        model = machine.default_model
        policy = model.parsed
        notes = [f"cache model of {machine.name} ({model.mark}): {model.policy}: {policy.description}; {model.source}"]
        return model.policy, machine.l2_bytes, notes
    policy = parse_policy(name)
    notes = []
    if machine is not None:
        cache_bytes = machine.l2_bytes
        if policy.structure == "full":
            notes.append(_about_the_model(machine, name, machine.l2_partitions))
    else:
        assert target.cache is not None
        cache_bytes = target.cache.to_bytes(element_bytes)
        if cache_bytes < LINE_BYTES:
            raise InputError(
                f"--cache: got {target.cache.text} ({cache_bytes} bytes), expected at least a line, {LINE_BYTES} bytes."
            )
    return name, cache_bytes, [*notes, f"cache policy {name}: {policy.description}"]


def read_kernel(
    args: argparse.Namespace, workload: Gemm | Ffn | Attention, target: Target
) -> tuple[KernelConfig, int, list[str]]:
    """The kernel configuration, its stages, and notes on what was cut or assumed.

    Raises
    ------
    InputError
        A malformed option, or --sms missing where no GPU is named.
    """
    notes = []
    default = default_tile(workload)
    asked = default if args.tile is None else TileShape.parse(args.tile, default.bk)
    tile = _cut(asked, workload)
    if _tile_text(tile, workload) != _tile_text(asked, workload):
        notes.append(
            f"the tile {_tile_text(asked, workload)} is larger than the problem and is cut short to "
            f"{_tile_text(tile, workload)}"
        )
    if args.sms is not None:
        sms = positive("--sms", args.sms, MAX_SMS)
    elif target.machine is not None:
        sms = target.machine.sms
    else:
        raise InputError("--sms missing: expected --sms NUMBER beside --cache, the number of SMs of the GPU.")
    blocks = positive("--blocks-per-sm", args.blocks_per_sm, 64)
    stages = positive("--stages", args.stages, 64)
    execution = parse_execution(args.execution, args.cluster, natural("--seed", args.seed, 10**6))
    if not execution.is_reference:
        if not isinstance(workload, Gemm):
            raise InputError(f"--execution: got {execution.name} with {workload.label}, which runs in lockstep only.")
        cluster = "x".join(map(str, execution.cluster))
        notes.append(f"execution {execution.name}, clusters of {cluster}; the reference is lockstep, 1x1")
    policy, cache_bytes, model_notes = read_cache_model(args.policy, target, workload.narrowest_bytes)
    return KernelConfig(tile, sms, blocks, cache_bytes, policy, execution), stages, notes + model_notes

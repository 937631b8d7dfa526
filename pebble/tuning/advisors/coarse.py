"""A quick look at the time of a kernel, before anything is simulated: as if DRAM moved the compulsory bytes evenly.

It is the wave model of `pebble.timing.waves` with counts in place of a trace: the slowest of compute, L2, DRAM and
latency in a full wave, times the waves. It only decides what is simulated, in which order; what is shown is the model
itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pebble.schedules.attention import AttentionKernel
from pebble.schedules.tile import TileShape
from pebble.timing.waves import BUSY
from pebble.traces import LINE_BYTES
from pebble.traces.free import Speeds
from pebble.units import ceil_div
from pebble.workloads import Attention, Ffn, Gemm, GroupedGemm
from pebble.workloads.base import Workload

_QUERIES = 1024  # tiles of queries that are looked at to know how many keys one sees on the mean


@dataclass(frozen=True)
class Launch:
    """Blocks that run together.

    Attributes
    ----------
    blocks : int
    steps : float
        Of a block, on the mean.
    step_flops, step_exps : int
        Operations and exponentials of a step.
    bytes : int
        Between L2 and the SMs, all blocks.
    """

    blocks: int
    steps: float
    step_flops: int
    step_exps: int
    bytes: int


def launches(workload: Workload, tile: TileShape) -> list[Launch]:
    """The launches of a workload under a tile, one after the other."""
    return _WORK[type(workload)](workload, tile)


def step_ns(launch: Launch, speeds: Speeds) -> float:
    """Nanoseconds of a step of a block that has its SM to itself."""
    return launch.step_flops / speeds.flops + launch.step_exps / speeds.exps


def load_ns(launch: Launch, speeds: Speeds) -> float:
    """Nanoseconds that the bytes of a step take from L2."""
    return launch.bytes / launch.blocks / launch.steps / LINE_BYTES / speeds.lines


def coarse_seconds(
    workload: Workload, tile: TileShape, stages: int, sms: int, blocks_per_sm: int, speeds: Speeds
) -> float:  # fmt: skip
    """About the least time that a kernel takes."""
    work = launches(workload, tile)
    operations = [launch.blocks * launch.steps * launch.step_flops for launch in work]
    lines = workload.compulsory_bytes / LINE_BYTES
    total = 0.0
    for launch, share in zip(work, operations, strict=True):
        full, last = divmod(launch.blocks, sms * blocks_per_sm)
        step, load = step_ns(launch, speeds), load_ns(launch, speeds)
        dram = lines * share / sum(operations) / launch.blocks / speeds.dram_lines
        latency = launch.steps * (speeds.hit + step * blocks_per_sm) / stages
        for running, count in ((sms * blocks_per_sm, full), (last, last > 0)):
            busiest = ceil_div(running, sms)
            slowest = max(busiest * launch.steps * max(step, load), dram * running, latency)
            total += count * (slowest / BUSY + speeds.hit + speeds.turn)
    return total / 1e9


def _product(m: int, n: int, k: int, tile: TileShape, size: int, out: int, ups: int = 1) -> Launch:
    rows, cols, steps = ceil_div(m, tile.bm), ceil_div(n, tile.bn), ceil_div(k, tile.bk)
    loads = (cols * m * k + ups * rows * n * k) * size
    return Launch(rows * cols, steps, 2 * ups * tile.bm * tile.bn * tile.bk, 0, loads + m * n * out)


def _gemm(gemm: Gemm, tile: TileShape) -> list[Launch]:
    out = gemm.out_bytes * (2 if gemm.accumulate else 1)
    return [_product(gemm.m, gemm.n, gemm.k, tile, gemm.in_bytes, out)]


def _grouped(grouped: GroupedGemm, tile: TileShape) -> list[Launch]:
    parts = [_gemm(gemm, tile)[0] for gemm in grouped.gemms]
    one = parts[0]
    blocks, moved = sum(part.blocks for part in parts), sum(part.bytes for part in parts)
    return [Launch(blocks, one.steps, one.step_flops, 0, moved)]


def _ffn(ffn: Ffn, tile: TileShape) -> list[Launch]:
    size = ffn.in_bytes
    return [
        _product(ffn.tokens, ffn.hidden, ffn.d_model, tile, size, size, ffn.up_products),
        _product(ffn.tokens, ffn.d_out, ffn.hidden, tile, size, ffn.out_bytes),
    ]


def _attention(a: Attention, tile: TileShape) -> list[Launch]:
    kernel = AttentionKernel(a, tile.bm, tile.bn)
    some = np.linspace(0, kernel.q_tiles - 1, min(kernel.q_tiles, _QUERIES)).astype(np.int64)
    steps = float(kernel.visible(some).mean())
    blocks, heads = kernel.q_tiles * kernel.copies, a.head_dim + a.value_dim
    loads = round(blocks * (steps * tile.bn * heads + tile.bm * a.head_dim)) * a.in_bytes
    scores = tile.bm * tile.bn
    return [Launch(blocks, steps, 2 * scores * heads, scores, loads + blocks * tile.bm * a.value_dim * a.out_bytes)]


_WORK: dict[type, Callable[[Any, TileShape], list[Launch]]] = {
    Gemm: _gemm,
    GroupedGemm: _grouped,
    Ffn: _ffn,
    Attention: _attention,
}

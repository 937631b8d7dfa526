"""A quick look at the time of a kernel, before anything is simulated: as if DRAM moved the compulsory bytes evenly.

It is the wave model of `pebble.timing.waves` with counts in place of a trace: the slowest of compute, shared memory,
L2, DRAM and latency in a full wave, times the waves; attention's shared memory is left out. It only decides what is
simulated, in which order; what is shown is the model itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pebble.schedules.attention import AttentionKernel
from pebble.schedules.tile import TileShape, product_bytes
from pebble.timing.sustained import Rates
from pebble.traces import LINE_BYTES
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
        From L2 to the SMs, all blocks.
    step_shared : int
        Bytes that a step moves through shared memory.
    """

    blocks: int
    steps: float
    step_flops: int
    step_exps: int
    bytes: int
    step_shared: int = 0


def launches(workload: Workload, tile: TileShape) -> list[Launch]:
    """The launches of a workload under a tile, one after the other."""
    return _WORK[type(workload)](workload, tile)


def step_ns(launch: Launch, rates: Rates, sms: int) -> tuple[float, float]:
    """Nanoseconds of a step of a block alone on its SM: to compute, and to load while all SMs load."""
    compute = launch.step_flops / rates.flops + launch.step_exps / rates.exps
    lines = launch.bytes / launch.blocks / launch.steps / LINE_BYTES
    return max(compute, launch.step_shared / rates.shared), lines / min(rates.port, rates.lines / sms)


def coarse_seconds(
    workload: Workload, tile: TileShape, stages: int, sms: int, blocks_per_sm: int, rates: Rates
) -> float:  # fmt: skip
    """About the least time that a kernel takes."""
    work = launches(workload, tile)
    operations = [launch.blocks * launch.steps * launch.step_flops for launch in work]
    lines = workload.compulsory_bytes / LINE_BYTES
    total = rates.launch
    for launch, share in zip(work, operations, strict=True):
        full, last = divmod(launch.blocks, sms * blocks_per_sm)
        step, load = step_ns(launch, rates, sms)
        dram = lines * share / sum(operations) / launch.blocks / rates.dram_lines
        for running, count in ((sms * blocks_per_sm, full), (last, last > 0)):
            if not count:
                continue
            busiest = ceil_div(running, sms)
            chain = launch.steps * max(rates.step, (rates.hit + busiest * (step + load)) / stages)
            slowest = max(busiest * launch.steps * max(step, load * running / sms / busiest), dram * running, chain)
            total += count * (slowest + rates.hit + rates.drain)
    return total / 1e9


def _product(m: int, n: int, k: int, tile: TileShape, size: int, ups: int = 1) -> Launch:
    rows, cols, steps = ceil_div(m, tile.bm), ceil_div(n, tile.bn), ceil_div(k, tile.bk)
    loads = (cols * m * k + ups * rows * n * k) * size
    flops = 2 * ups * tile.bm * tile.bn * tile.bk
    return Launch(rows * cols, steps, flops, 0, loads, product_bytes(tile, size, ups))


def _gemm(gemm: Gemm, tile: TileShape) -> list[Launch]:
    return [_product(gemm.m, gemm.n, gemm.k, tile, gemm.in_bytes)]


def _grouped(grouped: GroupedGemm, tile: TileShape) -> list[Launch]:
    parts = [_gemm(gemm, tile)[0] for gemm in grouped.gemms]
    one = parts[0]
    blocks, moved = sum(part.blocks for part in parts), sum(part.bytes for part in parts)
    return [Launch(blocks, one.steps, one.step_flops, 0, moved, one.step_shared)]


def _ffn(ffn: Ffn, tile: TileShape) -> list[Launch]:
    size = ffn.in_bytes
    return [
        _product(ffn.tokens, ffn.hidden, ffn.d_model, tile, size, ffn.up_products),
        _product(ffn.tokens, ffn.d_out, ffn.hidden, tile, size),
    ]


def _attention(a: Attention, tile: TileShape) -> list[Launch]:
    kernel = AttentionKernel(a, tile.bm, tile.bn)
    some = np.linspace(0, kernel.q_tiles - 1, min(kernel.q_tiles, _QUERIES)).astype(np.int64)
    steps = float(kernel.visible(some).mean())
    blocks, heads = kernel.q_tiles * kernel.copies, a.head_dim + a.value_dim
    loads = round(blocks * (steps * tile.bn * heads + tile.bm * a.head_dim)) * a.in_bytes
    scores = tile.bm * tile.bn
    return [Launch(blocks, steps, 2 * scores * heads, scores, loads)]


_WORK: dict[type, Callable[[Any, TileShape], list[Launch]]] = {
    Gemm: _gemm,
    GroupedGemm: _grouped,
    Ffn: _ffn,
    Attention: _attention,
}

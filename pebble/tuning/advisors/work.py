"""What the blocks of a kernel do, by family: how many there are, what each multiplies and loads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pebble.schedules.attention import AttentionKernel, AttentionSchedule
from pebble.schedules.orders.base import Multicast
from pebble.schedules.tile import TileShape
from pebble.units import ceil_div
from pebble.workloads import Attention, Ffn, Gemm, GroupedGemm
from pebble.workloads.base import Workload


@dataclass(frozen=True)
class Launch:
    """Blocks that run together.

    Attributes
    ----------
    blocks : int
    steps : float
        Of a block, on the mean.
    longest : int
        Steps of the longest.
    step_flops, step_exps : int
        Operations and exponentials of a step, of the padded tile.
    load_bytes, store_bytes : int
        From L2 to the SMs and back, all blocks; loads that two blocks share once.
    received_bytes : int
        The same loads as the SMs receive them, each block its own.
    resident_bytes : int
        That a block loads before its first step, and reads from shared memory in each.
    step_rescales : int
        Accumulators that are multiplied anew in a step.
    """

    blocks: int
    steps: float
    longest: int
    step_flops: int
    step_exps: int
    load_bytes: int
    store_bytes: int
    received_bytes: int
    resident_bytes: int = 0
    step_rescales: int = 0

    @property
    def flops(self) -> float:
        """Operations of all blocks, padding included."""
        return self.blocks * self.steps * self.step_flops


def launches(workload: Workload, tile: TileShape, schedule: Any, multicast: Multicast, sms: int) -> list[Launch]:
    """The launches of a workload, one after the other.

    Parameters
    ----------
    workload : Workload
        Of a family that an advisor takes.
    tile : TileShape
        As the kernel is written, not cut to the problem.
    schedule : object
        Only attention asks: some split the keys.
    multicast : str
        The operand whose loads two blocks of a cluster share.
    sms : int
    """
    return _WORK[type(workload)](workload, tile, schedule, multicast, sms)


def _product(m: int, n: int, k: int, tile: TileShape, size: int, out: int, multicast: Multicast, ups: int = 1) -> Launch:
    rows, cols, steps = ceil_div(m, tile.bm), ceil_div(n, tile.bn), ceil_div(k, tile.bk)
    a, b = cols * m * k, ups * rows * n * k
    received = (a + b) * size
    loads = received - {"none": 0, "a": a, "b": b}[multicast] * size // 2
    flops = 2 * ups * tile.bm * tile.bn * tile.bk
    return Launch(rows * cols, steps, steps, flops, 0, loads, m * n * out, received)


def _gemm(gemm: Gemm, tile: TileShape, schedule: Any, multicast: Multicast, sms: int) -> list[Launch]:
    out = gemm.out_bytes * (2 if gemm.accumulate else 1)
    return [_product(gemm.m, gemm.n, gemm.k, tile, gemm.in_bytes, out, multicast)]


def _grouped(grouped: GroupedGemm, tile: TileShape, schedule: Any, multicast: Multicast, sms: int) -> list[Launch]:
    parts = [_gemm(gemm, tile, schedule, multicast, sms)[0] for gemm in grouped.gemms]
    one = parts[0]
    names = ("blocks", "load_bytes", "store_bytes", "received_bytes")
    blocks, loads, stores, received = (sum(getattr(part, name) for part in parts) for name in names)
    return [Launch(blocks, one.steps, one.longest, one.step_flops, 0, loads, stores, received)]


def _ffn(ffn: Ffn, tile: TileShape, schedule: Any, multicast: Multicast, sms: int) -> list[Launch]:
    size = ffn.in_bytes
    up = _product(ffn.tokens, ffn.hidden, ffn.d_model, tile, size, size, multicast, ffn.up_products)
    return [up, _product(ffn.tokens, ffn.d_out, ffn.hidden, tile, size, ffn.out_bytes, multicast)]


def _attention(attention: Attention, tile: TileShape, schedule: Any, multicast: Multicast, sms: int) -> list[Launch]:
    kernel, a = AttentionKernel(attention, tile.bm, tile.bn), attention
    assert isinstance(schedule, AttentionSchedule)
    splits = 1
    if schedule.kind in ("flash-decoding", "split-kv"):
        splits = min(schedule.splits or kernel.decoding_splits(sms), kernel.kv_tiles)
    seen = kernel.visible(np.arange(kernel.q_tiles, dtype=np.int64))
    blocks = kernel.q_tiles * kernel.copies * splits
    steps, longest = float(seen.mean()) / splits, ceil_div(int(seen.max()), splits)
    heads = a.head_dim + a.value_dim
    queries = tile.bm * a.head_dim * a.in_bytes
    loads = round(blocks * steps * tile.bn * heads * a.in_bytes) + blocks * queries
    out = a.queries * kernel.copies * a.value_dim
    stores = out * a.out_bytes + (splits > 1) * 2 * splits * out * 4  # partial sums in fp32, written and read
    flops, exps = 2 * tile.bm * tile.bn * heads, tile.bm * tile.bn
    return [Launch(blocks, steps, longest, flops, exps, loads, stores, loads, queries, tile.bm * a.value_dim)]


_WORK: dict[type, Callable[[Any, TileShape, Any, Multicast, int], list[Launch]]] = {
    Gemm: _gemm,
    GroupedGemm: _grouped,
    Ffn: _ffn,
    Attention: _attention,
}

"""The schedules that have names as tables."""

from __future__ import annotations

import numpy as np

from pebble.errors import InputError
from pebble.schedules.attention import AttentionKernel, AttentionSchedule
from pebble.schedules.ffn import FfnKernel, FfnSchedule, by_columns
from pebble.schedules.gemm import GemmKernel
from pebble.schedules.grouped import GroupedKernel
from pebble.schedules.orders import OrderParams, TileOrder, parse_order
from pebble.schedules.tables.table import Blocks, Launch, TileTable, deal
from pebble.schedules.tables.walk import kernel_of
from pebble.units import ceil_div
from pebble.workloads.base import Workload

WITH_TABLE = (
    "a tile order of `pebble schedules` (gemm, grouped), separate:ORDER, row-fused-R or row-fused-R-split-S (ffn), "
    "fa2, fa2-heads-first or fa3 (attention)"
)

Named = TileOrder | FfnSchedule | AttentionSchedule


def named_table(workload: Workload, schedule: Named, launch: Launch) -> TileTable:
    """The table of a tile order, of separate or row-fused kernels, or of FlashAttention.

    Raises
    ------
    InputError
        A schedule whose blocks do not each make one tile in waves: interleaved kernels, fa1, split KV, unfused.
    """
    kernel = kernel_of(workload, launch.tile, name=schedule.name)
    blocks: list[Blocks] | None = None
    if isinstance(kernel, GemmKernel) and isinstance(schedule, TileOrder):
        blocks = [Blocks(schedule.tiles(*kernel.grid, launch.order_params), kernel.depth)]
    elif isinstance(kernel, GroupedKernel) and isinstance(schedule, TileOrder):
        blocks = [Blocks(kernel.tiles(schedule, launch.order_params), kernel.depth)]
    elif isinstance(kernel, FfnKernel) and isinstance(schedule, FfnSchedule):
        blocks = _ffn_blocks(kernel, schedule, launch)
    elif isinstance(kernel, AttentionKernel) and isinstance(schedule, AttentionSchedule):
        blocks = _attention_blocks(kernel, schedule)
    if blocks is None:
        raise InputError(f"{schedule.name}: there is no table of it, expected {WITH_TABLE}.")
    return TileTable(schedule.name, workload, launch, deal(blocks, launch.wave_blocks, schedule.sawtooth))


def _ffn_blocks(kernel: FfnKernel, schedule: FfnSchedule, launch: Launch) -> list[Blocks] | None:
    depth, units, per_tile = kernel.x.grid[1], kernel.units, kernel.per_tile
    if schedule.kind == "separate":
        order = parse_order(schedule.order)
        params = OrderParams(sms=launch.wave_blocks, tile_m=kernel.tile.bm, tile_n=kernel.tile.bn)
        tiles = [order.tiles(kernel.rows, cols, params) for cols in (kernel.hidden_cols, kernel.out_cols)]
        return [Blocks(tiles[0], depth), Blocks(tiles[1], units, phase=1, product=1)]
    if schedule.kind != "row-fused":
        return None
    part = ceil_div(kernel.hidden_cols, min(schedule.split, kernel.hidden_cols))
    blocks: list[Blocks] = []
    for rows in kernel.bands(schedule.band):
        for start in range(0, kernel.hidden_cols, part):
            end, phase = min(start + part, kernel.hidden_cols), len(blocks)
            first, last = start * per_tile, min(end * per_tile, units)
            h, y = (by_columns(rows, cols) for cols in (range(start, end), range(kernel.out_cols)))
            blocks.append(Blocks(h, depth, phase=phase))
            blocks.append(Blocks(y, last - first, first, phase=phase + 1, product=1, adds=start > 0))
    return blocks


def _attention_blocks(kernel: AttentionKernel, schedule: AttentionSchedule) -> list[Blocks] | None:
    if schedule.kind not in ("fa2", "fa2-heads-first", "fa3"):
        return None
    longest = schedule.kind == "fa3"
    tile, head = kernel.longest_first() if longest else kernel.blocks(schedule.kind == "fa2-heads-first")
    tiles = np.stack([tile, head], axis=1)
    return [Blocks(tiles, kernel.visible(tile), k_direction=-1)]

"""The schedules that have names as tables."""

from __future__ import annotations

from typing import Any

from pebble.errors import InputError
from pebble.schedules.tables.registry import kernel_of
from pebble.schedules.tables.table import Launch, TileTable, deal
from pebble.workloads.base import Workload

WITH_TABLE = (
    "a tile order of `pebble schedules` (gemm, grouped), separate:ORDER, row-fused-R or row-fused-R-split-S (ffn), "
    "fa2, fa2-heads-first or fa3 (attention)"
)


def named_table(workload: Workload, schedule: Any, launch: Launch) -> TileTable:
    """The table of a tile order, of separate or row-fused kernels, or of FlashAttention.

    Raises
    ------
    InputError
        A schedule whose blocks do not each make one tile in waves: interleaved kernels, fa1, split KV, unfused.
    """
    kernel = kernel_of(workload, launch.tile, name=schedule.name)
    blocks = kernel.named_blocks(schedule, launch)
    if blocks is None:
        raise InputError(f"{schedule.name}: there is no table of it, expected {WITH_TABLE}.")
    return TileTable(schedule.name, workload, launch, deal(blocks, launch.wave_blocks, schedule.sawtooth))

"""The kernels that walk tables, each by the word of its family, and the schedules that have names as tables."""

from __future__ import annotations

from typing import Any

from pebble.errors import InputError
from pebble.schedules import attention, ffn, gemm, grouped
from pebble.schedules.kernel import KERNELS, TableKernel
from pebble.schedules.tables.table import Launch, TileTable, deal
from pebble.schedules.tile import TileShape
from pebble.workloads.base import Workload

__all__ = ["KERNELS", "kernel_of", "table_kernel"]
_DEFINED_IN = (gemm, grouped, ffn, attention)  # a kernel registers itself when its module is read


def kernel_of(workload: Workload, tile: TileShape, residual: bool = False, name: str = "schedule") -> TableKernel:
    """The kernel of a workload under a tile; ``name`` begins the message.

    Raises
    ------
    InputError
        A workload without a kernel, or as `TableKernel.of`.
    """
    if workload.family not in KERNELS:
        raise InputError(f"{name}: got {workload.label}, expected one of {', '.join(KERNELS)}.")
    return KERNELS[workload.family].of(workload, tile, residual)


def table_kernel(table: TileTable, residual: bool = False) -> TableKernel:
    """The kernel of the table's workload under its tile; errors as for `kernel_of`."""
    return kernel_of(table.workload, table.launch.tile, residual, table.name)


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

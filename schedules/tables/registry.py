"""The kernels that walk tables, each by the word of its family."""

from __future__ import annotations

from pebble.errors import InputError
from pebble.schedules import attention, ffn, gemm, grouped
from pebble.schedules.kernel import KERNELS, TableKernel
from pebble.schedules.tables.table import TileTable
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

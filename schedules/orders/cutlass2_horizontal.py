"""CUTLASS 2.x horizontal swizzle: launch grid (Tn, Tm), m = by, n = bx, hence row-first."""

from __future__ import annotations

from pebble.schedules.orders.base import OrderInfo
from pebble.schedules.orders.row import row_first

INFO = OrderInfo(
    base="cutlass2-horizontal",
    what="GemmHorizontal: launch grid (N tiles, M tiles), the same as row",
    source="CUTLASS 2.x include/cutlass/gemm/threadblock/threadblock_swizzle.h",
    build=lambda rows, cols, number, params: row_first(rows, cols),
)

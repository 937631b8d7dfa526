"""CUTLASS 2.x horizontal swizzle."""

from __future__ import annotations

import numpy as np

from pebble.schedules.grid import Tiles, pairs
from pebble.schedules.orders.base import OrderInfo


def cutlass2_horizontal(rows: int, cols: int) -> Tiles:
    """GemmHorizontalThreadblockSwizzle: launch grid (Tn, Tm), m = by, n = bx, hence row-first.

    Examples
    --------
    >>> cutlass2_horizontal(2, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    by, bx = np.indices((rows, cols), dtype=np.int32).reshape(2, -1)
    return pairs(by, bx)


INFO = OrderInfo(
    base="cutlass2-horizontal",
    what="GemmHorizontal: launch grid (N tiles, M tiles), the same as row",
    source="CUTLASS 2.x include/cutlass/gemm/threadblock/threadblock_swizzle.h",
    build=lambda rows, cols, number, params: cutlass2_horizontal(rows, cols),
)

"""CUTLASS 2.x identity swizzle: strips of 2^t columns, row-first inside."""

from __future__ import annotations

from pebble.schedules.grid import Tiles, pairs, tile_ids
from pebble.schedules.orders.base import OrderInfo
from pebble.units import ceil_div


def log_swizzle(number: int, side: int) -> int:
    """The logarithm t of the swizzle that CUTLASS allows: never above 3, and less on a small side.

    Examples
    --------
    >>> [log_swizzle(4, side) for side in (1, 2, 3, 9)]
    [0, 1, 2, 2]
    """
    thresholds = ((3, 8, 6), (2, 4, 3), (1, 2, 2))
    return next((t for t, at_least, tiles in thresholds if number >= at_least and side >= tiles), 0)


def cutlass2_identity(rows: int, cols: int, number: int) -> Tiles:
    """Launch grid (Tm 2^t, ceil(Tn / 2^t)) of GemmIdentityThreadblockSwizzle<N>.

    m = bx >> t, n = (by << t) + bx % 2^t; blocks with n >= Tn leave at once. CUTLASS uses N = 1, 2, 4, 8;
    other numbers follow the same thresholds.

    Examples
    --------
    >>> cutlass2_identity(2, 3, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [1, 2]]
    """
    t = log_swizzle(number, cols)
    width = 1 << t
    by, bx = divmod(tile_ids(rows, ceil_div(cols, width) * width), rows * width)
    row, col = bx >> t, (by << t) + bx % width
    inside = col < cols
    return pairs(row[inside], col[inside])


INFO = OrderInfo(
    base="cutlass2",
    what="GemmIdentity<N>: strips of up to N columns (at most 8), row-first inside; N = 1 is column-first",
    source="CUTLASS 2.x include/cutlass/gemm/threadblock/threadblock_swizzle.h",
    build=lambda rows, cols, number, params: cutlass2_identity(rows, cols, number),
    number=4,
    number_means="N of GemmIdentity<N>",
)

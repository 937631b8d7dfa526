"""Morton (Z) order: the bits of tile row and tile column interleaved."""

from __future__ import annotations

from pebble.schedules.grid import Tiles
from pebble.schedules.orders._quadtree import quadtree
from pebble.schedules.orders.base import OrderInfo


def morton(rows: int, cols: int) -> Tiles:
    """Tiles by increasing key, where each bit of m stands directly above the same bit of n in the key.

    Cells of the next power-of-two square that lie outside the grid are skipped.

    Examples
    --------
    >>> morton(2, 3).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [1, 2]]
    """
    return quadtree(rows, cols, [[0, 0, 1, 1]], [[0, 1, 0, 1]], [[0, 0, 0, 0]])


INFO = OrderInfo(
    base="morton",
    what="Z-order: bits interleaved, row bit above column bit, outside cells skipped",
    source="Halide PR #1050; Apple's Metal GEMM advice",
    build=lambda rows, cols, number, params: morton(rows, cols),
)

"""Hilbert curve on the next power-of-two square."""

from __future__ import annotations

from pebble.schedules.grid import Tiles
from pebble.schedules.orders._quadtree import quadtree
from pebble.schedules.orders.base import OrderInfo

# Orientations: 0 as drawn, 1 transposed, 2 turned by 180 degrees, 3 both (transposed across the other
# diagonal). The first quadrant of a curve is transposed, the last one across the other diagonal, those
# between keep it; the four orientations combine by exclusive or.
_ROW = [[0, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 1]]
_COL = [_ROW[1], _ROW[0], _ROW[3], _ROW[2]]
_STATE = [[state ^ turn for turn in (1, 0, 0, 3)] for state in range(4)]


def hilbert(rows: int, cols: int) -> Tiles:
    """The standard d -> (x, y) curve, x the tile row and y the tile column; outside cells are skipped.

    Examples
    --------
    >>> hilbert(2, 2).tolist()
    [[0, 0], [0, 1], [1, 1], [1, 0]]
    """
    return quadtree(rows, cols, _ROW, _COL, _STATE)


INFO = OrderInfo(
    base="hilbert",
    what="Hilbert curve on the next power-of-two square, outside cells skipped",
    source="fast.cu examples/matmul/matmul_11.cuh, matmul_12.cuh",
    build=lambda rows, cols, number, params: hilbert(rows, cols),
)

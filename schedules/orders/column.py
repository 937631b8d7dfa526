"""Column-first: along M within a tile column, then the next tile column."""

from __future__ import annotations

from pebble.schedules.grid import Tiles, pairs, tile_ids
from pebble.schedules.orders.base import OrderInfo


def column_first(rows: int, cols: int) -> Tiles:
    """n = p / Tm, m = p % Tm, the mirror of row-first.

    Examples
    --------
    >>> column_first(2, 2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    col, row = divmod(tile_ids(rows, cols), rows)
    return pairs(row, col)


INFO = OrderInfo(
    base="column",
    what="column-first: along M, then the next tile column",
    source="mirror of row-first: grid(x = M tiles, y = N tiles)",
    build=lambda rows, cols, number, params: column_first(rows, cols),
)

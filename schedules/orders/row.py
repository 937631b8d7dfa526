"""Row-first: along N within a tile row, then the next tile row."""

from __future__ import annotations

from pebble.schedules.grid import Tiles, pairs, tile_ids
from pebble.schedules.orders.base import OrderInfo


def row_first(rows: int, cols: int) -> Tiles:
    """m = p / Tn, n = p % Tn.

    Examples
    --------
    >>> row_first(2, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    return pairs(*divmod(tile_ids(rows, cols), cols))


INFO = OrderInfo(
    base="row",
    what="row-first: along N, then the next tile row",
    source="any kernel launched with grid(x = N tiles, y = M tiles)",
    build=lambda rows, cols, number, params: row_first(rows, cols),
)

"""Snake (boustrophedon): row-first, every odd tile row reversed."""

from __future__ import annotations

import numpy as np

from pebble.schedules.grid import Tiles, pairs, tile_ids
from pebble.schedules.orders.base import OrderInfo


def snake(rows: int, cols: int) -> Tiles:
    """Row-first, with n := Tn - 1 - n in odd tile rows, so that consecutive tiles are always neighbours.

    Examples
    --------
    >>> snake(2, 2).tolist()
    [[0, 0], [0, 1], [1, 1], [1, 0]]
    """
    row, col = divmod(tile_ids(rows, cols), cols)
    return pairs(row, np.where(row % 2 == 1, cols - 1 - col, col))


INFO = OrderInfo(
    base="snake",
    what="row-first, every odd tile row reversed",
    source="boustrophedon",
    build=lambda rows, cols, number, params: snake(rows, cols),
)

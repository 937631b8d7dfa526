"""Grouped order of the Triton tutorial: groups of tile rows, each walked column by column."""

from __future__ import annotations

import numpy as np

from pebble.schedules.grid import Tiles, pairs, tile_ids
from pebble.schedules.orders.base import OrderInfo


def grouped(rows: int, cols: int, group: int) -> Tiles:
    """W = G Tn, g = p / W, s = min(Tm - g G, G), m = g G + (p % W) % s, n = (p % W) / s.

    Examples
    --------
    >>> grouped(3, 2, 2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1], [2, 0], [2, 1]]
    """
    number, inside = divmod(tile_ids(rows, cols), group * cols)
    first = number * group
    col, row = divmod(inside, np.minimum(rows - first, group))
    return pairs(first + row, col)


INFO = OrderInfo(
    base="grouped",
    what="groups of tile rows, each walked column by column",
    source="triton python/tutorials/03-matrix-multiplication.py",
    build=lambda rows, cols, number, params: grouped(rows, cols, number),
    number=8,
    number_means="tile rows in a group",
)

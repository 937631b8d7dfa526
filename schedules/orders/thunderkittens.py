"""ThunderKittens' snake of super-groups."""

from __future__ import annotations

import numpy as np

from pebble.schedules.grid import Tiles, pairs, tile_ids
from pebble.schedules.orders.base import OrderInfo


def thunderkittens(rows: int, cols: int, group: int) -> Tiles:
    """g = p / (Tm G), r = (p % (Tm G)) / G, c = g G + p % G, with r reversed for odd g.

    A remainder strip is Tn % G wide and walked the same way. The result equals a snake in strips of width G.

    Examples
    --------
    >>> thunderkittens(2, 3, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [0, 2]]
    """
    strip, inside = divmod(tile_ids(rows, cols), rows * group)
    row, col = divmod(inside, np.minimum(cols - strip * group, group))
    return pairs(np.where(strip % 2 == 1, rows - 1 - row, row), strip * group + col)


INFO = OrderInfo(
    base="thunderkittens",
    what="super-groups of columns, row-first inside, down one and up the next",
    source="ThunderKittens include/common/util.cuh, get_swizzled_2d_idx",
    build=lambda rows, cols, number, params: thunderkittens(rows, cols, number),
    number=8,
    number_means="tile columns in a super-group",
)

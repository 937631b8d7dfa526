"""Snake over strips of columns: down one strip, up the next."""

from __future__ import annotations

import numpy as np

from pebble.schedules.grid import Tiles, pairs
from pebble.schedules.orders.base import OrderInfo
from pebble.units import ceil_div


def snake_strips(rows: int, cols: int, width: int) -> Tiles:
    """Launch grid (x = width, y = Tm, z = strips): n = width z + x, m = y, or Tm - 1 - y for odd z.

    Blocks with n >= Tn leave at once, which makes the last strip narrower. The last tile rows of a strip are
    the first of the next one, so their part of A is still in cache.

    Examples
    --------
    >>> snake_strips(2, 3, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [0, 2]]
    """
    width = min(width, cols)  # a wider strip only adds blocks that leave at once
    strip, y, x = np.indices((ceil_div(cols, width), rows, width), dtype=np.int32).reshape(3, -1)
    col = width * strip + x
    row = np.where(strip % 2 == 1, rows - 1 - y, y)
    inside = col < cols
    return pairs(row[inside], col[inside])


INFO = OrderInfo(
    base="snake-strips",
    what="strips of columns, row-first inside, down one strip and up the next",
    source="Bruce-Lee-LY/cuda_hgemm src/wmma/wmma_base.cu (0d26c2e)",
    build=lambda rows, cols, number, params: snake_strips(rows, cols, number),
    number=16,
    number_means="tile columns in a strip",
)

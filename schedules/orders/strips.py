"""Orders in rows, columns and strips of the grid."""

from __future__ import annotations

import numpy as np

from pebble.schedules.orders.order import OrderInfo
from pebble.schedules.tile import Tiles, pairs, tile_ids
from pebble.units import ceil_div


def row_first(rows: int, cols: int) -> Tiles:
    """m = p / Tn, n = p % Tn.

    Examples
    --------
    >>> row_first(2, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    return pairs(*divmod(tile_ids(rows, cols), cols))


ROW = OrderInfo(
    base="row",
    what="row-first: along N, then the next tile row",
    source="any kernel launched with grid(x = N tiles, y = M tiles)",
    build=lambda rows, cols, number, params: row_first(rows, cols),
)


def column_first(rows: int, cols: int) -> Tiles:
    """n = p / Tm, m = p % Tm, the mirror of row-first.

    Examples
    --------
    >>> column_first(2, 2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    col, row = divmod(tile_ids(rows, cols), rows)
    return pairs(row, col)


COLUMN = OrderInfo(
    base="column",
    what="column-first: along M, then the next tile column",
    source="mirror of row-first: grid(x = M tiles, y = N tiles)",
    build=lambda rows, cols, number, params: column_first(rows, cols),
)


def snake(rows: int, cols: int) -> Tiles:
    """Row-first, with n := Tn - 1 - n in odd tile rows, so that consecutive tiles are always neighbours.

    Examples
    --------
    >>> snake(2, 2).tolist()
    [[0, 0], [0, 1], [1, 1], [1, 0]]
    """
    row, col = divmod(tile_ids(rows, cols), cols)
    return pairs(row, np.where(row % 2 == 1, cols - 1 - col, col))


SNAKE = OrderInfo(
    base="snake",
    what="row-first, every odd tile row reversed",
    source="boustrophedon",
    build=lambda rows, cols, number, params: snake(rows, cols),
)


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


SNAKE_STRIPS = OrderInfo(
    base="snake-strips",
    what="strips of columns, row-first inside, down one strip and up the next",
    source="Bruce-Lee-LY/cuda_hgemm src/wmma/wmma_base.cu (0d26c2e)",
    build=lambda rows, cols, number, params: snake_strips(rows, cols, number),
    number=16,
    number_means="tile columns in a strip",
)


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


GROUPED = OrderInfo(
    base="grouped",
    what="groups of tile rows, each walked column by column",
    source="triton python/tutorials/03-matrix-multiplication.py",
    build=lambda rows, cols, number, params: grouped(rows, cols, number),
    number=8,
    number_means="tile rows in a group",
)

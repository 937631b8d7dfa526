"""The grid of output tiles. An order is an array of (tile row, tile column) pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.units import ceil_div
from pebble.workloads import check_dimension

Tiles = NDArray[np.int32]  # shape (tiles, 2): tile row, tile column
Index = NDArray[np.int64]

MAX_TILES = 2**23  # every order is made in seconds; a grid above this is a mistyped tile size


def cut_sides(most: int, *sides: tuple[int, int], longest: int = 0) -> list[int]:
    """Lengths cut in proportion so that the longest has at most ``most`` tiles; each is (length, side of its tile).

    ``longest``: tiles on the longest side, where that is none of these.

    Examples
    --------
    >>> cut_sides(8, (4096, 128), (1024, 128))
    [1024, 256]
    """
    counts = [ceil_div(length, side) for length, side in sides]
    share = max(1, (longest or max(counts)) / most)
    return [
        min(length, side * min(most, max(1, round(count / share))))
        for (length, side), count in zip(sides, counts, strict=True)
    ]


def round_up(a: int, multiple: int) -> int:
    """The least multiple of ``multiple`` that is not below a.

    Examples
    --------
    >>> round_up(9, 4)
    12
    """
    return ceil_div(a, multiple) * multiple


def check_grid(rows: object, cols: object) -> tuple[int, int]:
    """A grid of tiles as two positive whole numbers, or one clear sentence.

    Parameters
    ----------
    rows, cols : int
        Tiles along M and along N.

    Raises
    ------
    InputError
        A side that is not a positive whole number, or more than 2^26 tiles.
    """
    m, n = check_dimension("tile rows", rows), check_dimension("tile columns", cols)
    if m * n > MAX_TILES:
        raise InputError(
            f"grid: got {m}x{n} = {m * n} tiles, expected at most {MAX_TILES}; use larger tiles or a smaller problem."
        )
    return m, n


def tile_ids(rows: int, cols: int) -> Index:
    """The ids 0, 1, ... of a grid, which each order maps to tiles. Shape (rows * cols,)."""
    return np.arange(rows * cols, dtype=np.int64)


def pairs(row: NDArray[Any], col: NDArray[Any]) -> Tiles:
    """Join tile rows and tile columns into pairs, shape (tiles, 2)."""
    tiles = np.empty((row.size, 2), dtype=np.int32)
    tiles[:, 0] = row
    tiles[:, 1] = col
    return tiles

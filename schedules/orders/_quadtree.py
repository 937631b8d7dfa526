"""Curves that fill a power-of-two square quadrant by quadrant, restricted to a rectangle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pebble.schedules.grid import Tiles, pairs


def quadtree(
    rows: int,
    cols: int,
    quadrant_row: Sequence[Sequence[int]],
    quadrant_col: Sequence[Sequence[int]],
    quadrant_state: Sequence[Sequence[int]],
) -> Tiles:
    """Expand the smallest power-of-two square that holds the grid, level by level, dropping what is outside.

    Squares outside the grid are dropped as soon as they appear, so a long thin grid costs no more than its
    own tiles: time and memory are O(tiles + max(rows, cols)).

    Parameters
    ----------
    rows, cols : int
        The grid.
    quadrant_row, quadrant_col : sequence, shape (states, 4)
        Half of the square that the i-th visited quadrant lies in, for each orientation of the curve.
    quadrant_state : sequence, shape (states, 4)
        The orientation of the curve inside that quadrant. The whole square has orientation 0.
    """
    d_row, d_col, d_state = (np.array(t, dtype=np.int32) for t in (quadrant_row, quadrant_col, quadrant_state))
    size = 1 << (max(rows, cols) - 1).bit_length()
    row, col, state = (np.zeros(1, dtype=np.int32) for _ in range(3))
    while size > 1:
        size //= 2
        row = (row[:, None] + size * d_row[state]).ravel()
        col = (col[:, None] + size * d_col[state]).ravel()
        state = d_state[state].ravel()
        inside = (row < rows) & (col < cols)
        if not inside.all():
            row, col, state = row[inside], col[inside], state[inside]
    return pairs(row, col)

"""Space-filling curves: Morton and Hilbert fill a power-of-two square, cut to the grid; Gilbert fills the grid
itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pebble.schedules.orders.order import OrderInfo
from pebble.schedules.tile import Index, Tiles, pairs


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


def morton(rows: int, cols: int) -> Tiles:
    """Tiles by increasing key, where each bit of m stands directly above the same bit of n in the key.

    Cells of the next power-of-two square that lie outside the grid are skipped.

    Examples
    --------
    >>> morton(2, 3).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [1, 2]]
    """
    return quadtree(rows, cols, [[0, 0, 1, 1]], [[0, 1, 0, 1]], [[0, 0, 0, 0]])


MORTON = OrderInfo(
    base="morton",
    what="Z-order: bits interleaved, row bit above column bit, outside cells skipped",
    source="Halide PR #1050; Apple's Metal GEMM advice",
    build=lambda rows, cols, number, params: morton(rows, cols),
)


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


HILBERT = OrderInfo(
    base="hilbert",
    what="Hilbert curve on the next power-of-two square, outside cells skipped",
    source="fast.cu examples/matmul/matmul_11.cuh, matmul_12.cuh",
    build=lambda rows, cols, number, params: hilbert(rows, cols),
)


def gilbert(rows: int, cols: int) -> Tiles:
    """The generalised Hilbert curve of a rectangle, x the tile column and y the tile row.

    A block is an origin, a major vector a and a minor vector b. A block one cell wide is a straight line. A
    long block (2|a| > 3|b|) is cut across a in two; any other one in three: up along half of b, across along
    a, back down. Blocks are cut level by level instead of by recursion, each carrying its place in the curve,
    so that one numpy step handles all blocks of a level. Time and memory O(tiles).

    Consecutive tiles are neighbours, except for at most one diagonal step, which needs the longer side to be
    odd and the shorter one even.

    Examples
    --------
    >>> gilbert(2, 3).tolist()
    [[0, 0], [1, 0], [1, 1], [1, 2], [0, 2], [0, 1]]
    """
    tiles = np.empty((rows * cols, 2), dtype=np.int32)
    a, b = ((cols, 0), (0, rows)) if cols >= rows else ((0, rows), (cols, 0))
    blocks = np.array([[0], [0], [a[0]], [a[1]], [b[0]], [b[1]], [0]], dtype=np.int64)
    while blocks.size:
        _, _, ax, ay, bx, by, _ = blocks
        w, h = np.abs(ax + ay), np.abs(bx + by)
        line = (w == 1) | (h == 1)
        long = 2 * w > 3 * h
        _draw(tiles, blocks[:, line])
        blocks = np.concatenate([_cut_long(blocks[:, ~line & long]), _cut_square(blocks[:, ~line & ~long])], axis=1)
    return tiles


def _draw(tiles: Tiles, blocks: Index) -> None:
    """Write the cells of blocks that are one cell wide, each at its place in the curve."""
    x, y, ax, ay, bx, by, start = blocks
    w, h = np.abs(ax + ay), np.abs(bx + by)
    count = np.maximum(w, h)
    along_a = h == 1
    dx, dy = np.sign(np.where(along_a, ax, bx)), np.sign(np.where(along_a, ay, by))
    block = np.repeat(np.arange(count.size), count)
    step = np.arange(block.size) - np.repeat(np.cumsum(count) - count, count)
    place = start[block] + step
    tiles[place, 0] = y[block] + step * dy[block]
    tiles[place, 1] = x[block] + step * dx[block]


def _half(x: Index, y: Index) -> tuple[Index, Index, Index, Index]:
    """Half of a vector, its floor and the same made even in length where the whole allows it."""
    x2, y2 = x // 2, y // 2
    odd = (np.abs(x2 + y2) % 2 == 1) & (np.abs(x + y) > 2)
    return x2, y2, x2 + odd * np.sign(x), y2 + odd * np.sign(y)


def _cut_long(blocks: Index) -> Index:
    """Two blocks, one behind the other along a."""
    x, y, ax, ay, bx, by, start = blocks
    _, _, ax2, ay2 = _half(ax, ay)
    first = np.abs(ax2 + ay2) * np.abs(bx + by)
    return np.concatenate(
        [
            np.stack([x, y, ax2, ay2, bx, by, start]),
            np.stack([x + ax2, y + ay2, ax - ax2, ay - ay2, bx, by, start + first]),
        ],
        axis=1,
    )


def _cut_square(blocks: Index) -> Index:
    """Three blocks: up along half of b, across along a, back down to the end of a."""
    x, y, ax, ay, bx, by, start = blocks
    ax2, ay2, _, _ = _half(ax, ay)
    _, _, bx2, by2 = _half(bx, by)
    first = np.abs(bx2 + by2) * np.abs(ax2 + ay2)
    second = np.abs(ax + ay) * np.abs(bx - bx2 + by - by2)
    last_x = x + (ax - np.sign(ax)) + (bx2 - np.sign(bx))
    last_y = y + (ay - np.sign(ay)) + (by2 - np.sign(by))
    return np.concatenate(
        [
            np.stack([x, y, bx2, by2, ax2, ay2, start]),
            np.stack([x + bx2, y + by2, ax, ay, bx - bx2, by - by2, start + first]),
            np.stack([last_x, last_y, -bx2, -by2, ax2 - ax, ay2 - ay, start + first + second]),
        ],
        axis=1,
    )


GILBERT = OrderInfo(
    base="gilbert",
    what="generalised Hilbert curve of the rectangle, starting along the longer side",
    source="jakubcerveny/gilbert gilbert2d.py",
    build=lambda rows, cols, number, params: gilbert(rows, cols),
)

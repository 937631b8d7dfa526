"""Whether a table is a schedule: every tile once over all of its k, each part after what it needs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.schedules.attention import AttentionKernel
from pebble.schedules.ffn import FfnKernel
from pebble.schedules.gemm import GemmKernel
from pebble.schedules.grouped import GroupedKernel
from pebble.schedules.tables.table import Column, TileTable
from pebble.schedules.tables.walk import Kernel, table_kernel


def check_tiles(where: str, row: Column, col: Column, grid: tuple[int, int], what: str) -> None:
    """Every tile of a grid once.

    Parameters
    ----------
    where : str
        Begins the message.
    row, col : ndarray of int64
        Tiles, in order.
    grid : tuple of int
        Tile rows and columns.
    what : str
        Whose tiles they are: ``"C under tile 128x128x64"``.

    Raises
    ------
    InputError
        Names the first that is outside, missing or there twice.
    """
    rows, cols = grid
    outside = (row < 0) | (row >= rows) | (col < 0) | (col >= cols)
    expected = f"expected each of the {rows} x {cols} tiles of {what} once"
    if len(row) and _is_grid(row, col, other := (int(row.max()) + 1, int(col.max()) + 1)) and other != grid:
        raise InputError(
            f"{where}: its tiles fill a grid of {other[0]} x {other[1]}, {expected}; "
            "was it made for another tile or problem?"
        )
    if outside.any():
        at = int(np.flatnonzero(outside)[0])
        raise InputError(f"{where}: tile ({row[at]}, {col[at]}), number {at}, is outside; {expected}.")
    number = row * cols + col
    count = np.bincount(number, minlength=rows * cols)
    twice = np.flatnonzero(count[number] > 1)
    missing = np.flatnonzero(count == 0)
    if len(twice):
        tile = (int(row[twice[0]]), int(col[twice[0]]))
        again = np.flatnonzero(number == number[twice[0]])[:2].tolist()
        raise InputError(
            f"{where}: tile {tile} is there {count[number[twice[0]]]} times, as number {again[0]} and {again[1]}; "
            f"{expected}."
        )
    if len(missing):
        tile = divmod(int(missing[0]), cols)
        more = f" and {len(missing) - 1} more are" if len(missing) > 1 else " is"
        raise InputError(f"{where}: tile {tile}{more} missing; {expected}.")


def _is_grid(row: Column, col: Column, grid: tuple[int, int]) -> bool:
    """Whether the tiles are all of a grid, each once."""
    if min(int(row.min()), int(col.min())) < 0 or len(row) != grid[0] * grid[1]:
        return False
    return bool(np.all(np.bincount(row * grid[1] + col, minlength=len(row)) == 1))


def _full(count: int, value: int) -> Column:
    return np.full(count, value, np.int64)


def product_grids(kernel: Kernel) -> list[tuple[str, tuple[int, int], Column]]:
    """The result of each product, its grid, and the k steps of each tile row."""
    if isinstance(kernel, GemmKernel | GroupedKernel):
        return [("C", kernel.grid, _full(kernel.grid[0], kernel.depth))]
    if isinstance(kernel, AttentionKernel):
        grid = (kernel.q_tiles, kernel.copies)
        seen = kernel.visible(np.arange(kernel.q_tiles, dtype=np.int64)).astype(np.int64)
        return [("O (Q tile, head)", grid, seen)]
    rows = kernel.rows
    return [
        ("H", (rows, kernel.hidden_cols), _full(rows, kernel.x.grid[1])),
        ("Y", (rows, kernel.out_cols), _full(rows, kernel.units)),
    ]


def check_table(table: TileTable, kernel: Kernel | None = None) -> None:
    """Whether the table computes its workload.

    Raises
    ------
    InputError
        A tile missing, twice or outside; a k step outside the block's; k left out or taken twice; a part that adds to
        what no earlier phase wrote; a tile of Y before the H that it reads.
    """
    kernel = kernel or table_kernel(table)
    product, row, col, first, steps, start, phase, adds = (
        table.column(name) for name in ("product", "row", "col", "first", "steps", "k_start", "phase", "adds")
    )
    grids = product_grids(kernel)
    if product.min() < 0 or product.max() >= len(grids):
        raise InputError(f"{table.name}: expected products 0 to {len(grids) - 1} of {table.workload.label}.")
    _first_bad(table, (start < first) | (start >= first + steps), "begins at a k step that is not its own", start)
    for number, (name, grid, depth) in enumerate(grids):
        at = np.flatnonzero(product == number)
        whole = at[adds[at] == 0]
        what = f"{name} under tile {table.launch.tile}"
        check_tiles(table.name, row[whole], col[whole], grid, what)
        more = at[adds[at] != 0]
        if np.any((row[more] < 0) | (row[more] >= grid[0]) | (col[more] < 0) | (col[more] >= grid[1])):
            check_tiles(table.name, row[at], col[at], grid, what)
        order = at[np.lexsort((first[at], row[at] * grid[1] + col[at]))]
        tile = row[order] * grid[1] + col[order]
        new = np.diff(tile, prepend=-1) > 0
        ends = first[order] + steps[order]
        follows = np.where(new, 0, np.concatenate([[0], ends[:-1]]))
        last = np.append(new[1:], True)
        wrong = np.zeros(table.blocks, np.bool_)
        wrong[order] = (first[order] != follows) | (last & (ends != depth[row[order]]))
        _first_bad(table, wrong, f"leaves out k steps of its tile of {name} or takes them twice, from", first)
        by_phase = at[np.lexsort((phase[at], row[at] * grid[1] + col[at]))]
        begins = np.diff(row[by_phase] * grid[1] + col[by_phase], prepend=-1) > 0
        wrong[:] = False
        wrong[by_phase] = (adds[by_phase] == 0) != begins
        wrong[by_phase[1:]] |= ~begins[1:] & (np.diff(phase[by_phase]) == 0)
        _first_bad(table, wrong, "adds to a tile that no earlier phase began, in phase", phase)
    if isinstance(kernel, FfnKernel):
        _check_hidden(table, kernel)


def _check_hidden(table: TileTable, kernel: FfnKernel) -> None:
    """A tile of Y is computed after every tile of H that it reads."""
    product, row, col, first, steps, phase = (
        table.column(name) for name in ("product", "row", "col", "first", "steps", "phase")
    )
    written = np.zeros((kernel.rows, kernel.hidden_cols), np.int64)
    h = product == 0
    written[row[h], col[h]] = phase[h]
    at = np.flatnonzero(~h)
    left, right = first[at] // kernel.per_tile, -(-(first[at] + steps[at]) // kernel.per_tile)
    keys, which = np.unique(np.stack([row[at], left, right], axis=1), axis=0, return_inverse=True)
    latest = np.array([written[r, a:b].max() for r, a, b in keys.tolist()])
    wrong = np.zeros(table.blocks, np.bool_)
    wrong[at] = latest[which.ravel()] >= phase[at]
    _first_bad(table, wrong, "reads H that no earlier phase wrote, in phase", phase)


def _first_bad(table: TileTable, wrong: NDArray[np.bool_], what: str, value: Column) -> None:
    """One sentence on the first block where something is wrong."""
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        wave, slot, row, col = table.entries[at, :4].tolist()
        raise InputError(
            f"{table.name}: block {at} (wave {wave}, slot {slot}, tile ({row}, {col})) {what} {int(value[at])}."
        )

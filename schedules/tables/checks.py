"""Whether a table is a schedule: every tile once over all of its k, each part after what it needs."""

from __future__ import annotations

import numpy as np

from pebble.errors import InputError
from pebble.schedules.kernel import TableKernel
from pebble.schedules.tables.registry import table_kernel
from pebble.schedules.tables.table import Column, TileTable


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


def check_table(table: TileTable, kernel: TableKernel | None = None) -> None:
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
    products = kernel.products
    if product.min() < 0 or product.max() >= len(products):
        raise InputError(f"{table.name}: expected products 0 to {len(products) - 1} of {table.workload.label}.")
    table.refuse((start < first) | (start >= first + steps), "begins at a k step that is not its own", start)
    for number, (name, grid, depth) in enumerate(products):
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
        table.refuse(wrong, f"leaves out k steps of its tile of {name} or takes them twice, from", first)
        by_phase = at[np.lexsort((phase[at], row[at] * grid[1] + col[at]))]
        begins = np.diff(row[by_phase] * grid[1] + col[by_phase], prepend=-1) > 0
        wrong[:] = False
        wrong[by_phase] = (adds[by_phase] == 0) != begins
        wrong[by_phase[1:]] |= ~begins[1:] & (np.diff(phase[by_phase]) == 0)
        table.refuse(wrong, "adds to a tile that no earlier phase began, in phase", phase)
    early = kernel.too_early(table)
    if early is not None:
        table.refuse(early, f"reads {products[0].result} that no earlier phase wrote, in phase", phase)

"""Tables of slots: reading them, and dealing a kernel's phases into waves. NumPy only.

Three kinds, told apart by their columns (a ``.csv`` names them, a ``.npy`` has 2 or 4 columns, 7 or 9):

- GEMM and attention: ``row, col [, k_start, k_direction]``, one row a tile in issue order. For attention ``row`` is the
  Q tile and ``col`` the head, batch by batch.
- FFN: ``phase, product, row, col, first, steps, adds``: product 0 computes a tile of H, 1 a tile of Y over ``steps`` k
  steps from ``first``, adding to Y if ``adds``. A phase begins when the one before it is complete.
- Any family: the nine columns that kernels read, every slot of every wave, as `pebble` exports a schedule.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TILE_COLUMNS = ("row", "col", "k_start", "k_direction")
FFN_COLUMNS = ("phase", "product", "row", "col", "first", "steps", "adds")
SLOT_COLUMNS = ("product", "row", "col", "first", "steps", "k_start", "k_direction", "adds", "depends")
Table = NDArray[np.int32]


def read_table(path: str | Path) -> Table:
    """A table file.

    Raises
    ------
    ValueError
        Columns of neither kind.
    """
    if str(path).endswith(".npy"):
        table = np.load(path)
        known = table.ndim == 2 and table.shape[1] in (2, 4, len(FFN_COLUMNS), len(SLOT_COLUMNS))
    else:
        with open(path, newline="") as file:
            rows = list(csv.reader(file))
        known = tuple(rows[0]) in (TILE_COLUMNS[:2], TILE_COLUMNS, FFN_COLUMNS, SLOT_COLUMNS)
        table = np.array(rows[1:], dtype=np.int64) if known else np.empty((0, 0))
    if not known:
        raise ValueError(f"{path}: expected columns {TILE_COLUMNS}, the first two, {FFN_COLUMNS} or {SLOT_COLUMNS}.")
    return np.ascontiguousarray(table, dtype=np.int32)


def write_table(path: str | Path, table: Table) -> None:
    """A table as ``.npy`` or ``.csv``, by the name's ending."""
    if str(path).endswith(".npy"):
        np.save(path, table.astype(np.int16 if table.size and table.max() < 2**15 else np.int32))
        return
    many = {len(FFN_COLUMNS): FFN_COLUMNS, len(SLOT_COLUMNS): SLOT_COLUMNS}
    names = many.get(table.shape[1], TILE_COLUMNS[: table.shape[1]])
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([names, *table.tolist()])


def is_ready(table: Table) -> bool:
    """Whether these are slots as kernels read them."""
    return table.shape[1] == len(SLOT_COLUMNS)


def check_cover(table: Table, rows: int, cols: int) -> None:
    """Every tile of a grid once.

    Raises
    ------
    ValueError
        A tile missing, twice, or outside the grid.
    """
    inside = ((table[:, :2] >= 0) & (table[:, :2] < (rows, cols))).all()
    count = np.bincount(table[:, 0].astype(np.int64) * cols + table[:, 1], minlength=rows * cols) if inside else [0]
    if len(table) != rows * cols or not np.all(np.asarray(count) == 1):
        raise ValueError(f"table of {len(table)} slots: expected each tile of a {rows} x {cols} grid once.")


def tile_slots(
    table: Table, steps: int | NDArray[np.integer], wave_blocks: int, sawtooth: bool, backwards: bool = False
) -> Table:
    """Slots of `gemm_kernel` and `attention_kernel`, nine columns as `kernels` says; ``steps`` of k for each row.

    A table that says where k starts and which way it goes is used as it is. Otherwise k runs from first to last (with
    ``backwards`` from last to first), and with ``sawtooth`` the other way in every second wave of ``wave_blocks``.
    """
    steps = np.broadcast_to(steps, len(table))
    if table.shape[1] == len(TILE_COLUMNS):
        start, direction = table[:, 2], table[:, 3]
    else:
        wave = np.arange(len(table)) // wave_blocks
        turned = (sawtooth & (wave % 2 == 1)) ^ backwards
        start, direction = np.where(turned, steps - 1, 0), np.where(turned, -1, 1)
    none = np.zeros(len(table), np.int32)
    columns = (none, table[:, 0], table[:, 1], none, steps, start, direction, none, none)
    return np.ascontiguousarray(np.column_stack(columns), dtype=np.int32)


def ffn_slots(table: Table, wave_blocks: int, sawtooth: bool) -> Table:
    """Slots of `ffn_kernel`, nine columns as `kernels` says, each phase filled up to whole waves."""
    waves = []
    number = 0
    for phase in np.unique(table[:, 0]):
        blocks = table[table[:, 0] == phase]
        for begin in range(0, len(blocks), wave_blocks):
            here = blocks[begin : begin + wave_blocks]
            turned = sawtooth and number % 2 == 1
            out = np.zeros((wave_blocks, 9), np.int32)
            out[:, 0:2] = -1  # a slot that stays empty
            out[: len(here), 0:5] = here[:, 1:6]
            out[: len(here), 5] = here[:, 4] + (here[:, 5] - 1 if turned else 0)
            out[:, 6] = -1 if turned else 1
            out[: len(here), 7] = here[:, 6]
            out[:, 8] = begin == 0 and number > 0
            waves.append(out)
            number += 1
    return np.concatenate(waves)

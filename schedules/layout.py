"""Where tiles lie: operands cut into units that no two touches split, with their numbers and their lines.

Rows are padded to whole 128-byte lines and every operand starts on its own line, so a unit is its rows times the
lines of its width. Unit widths must be whole lines (edge units excepted), else units would share lines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.schedules.trace import LINE_BYTES, OperandTiles, check_tiles


@dataclass(frozen=True)
class Region:
    """One operand, or one copy of it (a head), as a grid of units numbered row by row from ``first``.

    Attributes
    ----------
    operand : int
        Index of the operand's name.
    first : int
        Number of its first unit.
    grid : tuple of int
        Copies, unit rows, unit columns.
    """

    operand: int
    first: int
    grid: tuple[int, int, int]

    def ids(
        self, row: NDArray[np.int64] | int, col: NDArray[np.int64] | int, copy: NDArray[np.int64] | int = 0
    ) -> NDArray[np.int64]:
        """Unit numbers, broadcast over the arguments."""
        _, rows, cols = self.grid
        return np.asarray(self.first + (np.asarray(copy) * rows + row) * cols + col, dtype=np.int64)


class Layout:
    """Collects operands; gives each unit a number and a number of lines."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._lines: list[NDArray[np.int32]] = []
        self._operand: list[NDArray[np.uint8]] = []
        self._shapes: list[OperandTiles] = []
        self._next = 0

    def add(
        self,
        name: str,
        rows: int,
        cols: int,
        unit_rows: int,
        unit_cols: int,
        element_bytes: int,
        copies: int = 1,
        tiled: bool = False,
    ) -> Region:
        """Lay out one operand.

        Parameters
        ----------
        name : str
            Its name; copies share it.
        rows, cols : int
            Shape of one copy, in values.
        unit_rows, unit_cols : int
            Unit of a touch, in values; edge units are short.
        element_bytes : int
            Bytes of one value.
        copies : int
            How many matrices of this shape, one after the other (heads).
        tiled : bool
            Stored unit by unit, as a kernel may do with an intermediate of its own: units of any width share no line.

        Raises
        ------
        InputError
            Units that are not whole lines wide, or too many units.
        """
        grid = (copies, -(-rows // unit_rows), -(-cols // unit_cols))
        if not tiled and grid[2] > 1 and unit_cols * element_bytes % LINE_BYTES:
            raise InputError(
                f"tile: {name} would be touched {unit_cols} values ({unit_cols * element_bytes} bytes) wide, expected "
                f"a multiple of {LINE_BYTES} bytes; choose a tile of whole lines."
            )
        count = grid[0] * grid[1] * grid[2]
        check_tiles(self._next + count)
        heights = np.full(grid[1], unit_rows, np.int64)
        heights[-1] = rows - (grid[1] - 1) * unit_rows
        widths = np.full(grid[2], unit_cols, np.int64)
        widths[-1] = cols - (grid[2] - 1) * unit_cols
        lines = np.multiply.outer(heights, -(-widths * element_bytes // LINE_BYTES)).ravel()
        self._lines.append(np.tile(lines, copies).astype(np.int32))
        self._operand.append(np.full(count, len(self.names), np.uint8))
        self._shapes.append(
            OperandTiles(len(self.names), self._next, copies, rows, cols, unit_rows, unit_cols, element_bytes)
        )
        region = Region(len(self.names), self._next, grid)
        self.names.append(name)
        self._next += count
        return region

    def shapes(self) -> tuple[OperandTiles, ...]:
        """Shapes of all operands."""
        return tuple(self._shapes)

    def tile_lines(self) -> NDArray[np.int32]:
        """Lines of each unit."""
        return np.concatenate(self._lines)

    def tile_operand(self) -> NDArray[np.uint8]:
        """Operand of each unit."""
        return np.concatenate(self._operand)

"""Where tiles lie: operands cut into tiles, with their numbers and their 128-byte lines.

Rows are padded to whole lines and every operand starts on its own line. A tile whose width is not a whole number of
lines shares lines with its neighbours. Where as many tiles as share a line fill it, they have all their lines in
common, and the trace is followed in tiles of whole lines; else line by line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.system.parallel import check_memory
from pebble.units import ceil_div

LINE_BYTES = 128
SECTOR_BYTES = 32
_TILE_BYTES = 64  # of all tables together that have an entry per tile, those of a cache included

Index = NDArray[np.integer[Any]]


class Strided(NamedTuple):
    """Tiles whose numbers rise evenly: ``base + k * stride``, a base for each block."""

    base: Index
    stride: int


@dataclass(frozen=True)
class OperandTiles:
    """One operand (or one array of equal copies, such as heads) as a grid of tiles, numbered row by row.

    Attributes
    ----------
    operand : int
        Index of the operand's name.
    first : int
        Number of its first tile.
    copies : int
        Matrices of this shape, one after the other.
    rows, cols : int
        Shape of one copy, in values.
    tile_rows, tile_cols : int
        Tile, in values; edge tiles are short.
    element_bytes : int
        Bytes of one value.
    padded : bool
        Each tile's rows are padded to whole lines, as a kernel may do with an intermediate of its own.
    """

    operand: int
    first: int
    copies: int
    rows: int
    cols: int
    tile_rows: int
    tile_cols: int
    element_bytes: int
    padded: bool = False

    @cached_property
    def grid(self) -> tuple[int, int]:
        """Tile rows and columns of one copy."""
        return ceil_div(self.rows, self.tile_rows), ceil_div(self.cols, self.tile_cols)

    @property
    def tiles(self) -> int:
        """Tiles of all copies."""
        return self.copies * self.grid[0] * self.grid[1]

    @property
    def shares_lines(self) -> bool:
        """Whether a tile's edge falls inside a line."""
        return self.grid[1] > 1 and not self.padded and self.tile_cols * self.element_bytes % LINE_BYTES != 0

    @property
    def splits_lines(self) -> bool:
        """Whether a tile shares some of its lines with one neighbour and others with another, or with none."""
        return self.shares_lines and LINE_BYTES % (self.tile_cols * self.element_bytes) != 0

    def a_line_wide(self, first: int) -> OperandTiles:
        """The operand in tiles of the same rows, one line wide, numbered from ``first``."""
        return replace(self, first=first, tile_cols=LINE_BYTES // self.element_bytes)

    def ids(self, row: Index | int, col: Index | int, copy: Index | int = 0) -> Index:
        """Tile numbers, broadcast over the arguments."""
        rows, cols = self.grid
        return np.asarray(self.first + (copy * rows + row) * cols + col)

    def along(self, row: Index, copy: Index | int = 0) -> Strided:
        """The tiles of a row; k is the column."""
        return Strided(self.ids(row, 0, copy).astype(np.int32), 1)

    def down(self, col: Index | int, copy: Index | int = 0) -> Strided:
        """The tiles of a column; k is the row."""
        return Strided(self.ids(0, col, copy).astype(np.int32), self.grid[1])

    def copies_of(self, row: Index, copy: Index) -> Strided:
        """A tile of the first column in each copy from ``copy`` on; k counts them."""
        return Strided(self.ids(row, 0, copy).astype(np.int32), self.grid[0] * self.grid[1])

    @property
    def heights(self) -> Index:
        """Rows of each tile row."""
        return _heights(self.rows, self.tile_rows)

    @property
    def columns(self) -> tuple[Index, Index, Index, Index]:
        """Of each tile column: its first line in the row, its lines, and the sectors of the first line before it and
        of the last line after it."""
        return _columns(self.cols * self.element_bytes, self.tile_cols * self.element_bytes, self.padded)

    def each(self, of_row: Index | int, of_col: Index | int) -> Index:
        """A number for each tile, the product of one of its row and one of its column."""
        one_copy = np.empty(self.grid, np.int64)
        np.multiply(np.reshape(of_row, (-1, 1)), of_col, out=one_copy)
        return one_copy.ravel() if self.copies == 1 else np.tile(one_copy.ravel(), self.copies)


@lru_cache(maxsize=64)
def _heights(rows: int, tile_rows: int) -> Index:
    """`OperandTiles.heights`: operands share them, and the layouts that a search tries."""
    heights = np.full(ceil_div(rows, tile_rows), tile_rows, np.int64)
    heights[-1] = rows - (len(heights) - 1) * tile_rows
    heights.setflags(write=False)
    return heights


@lru_cache(maxsize=64)
def _columns(row_bytes: int, width: int, padded: bool) -> tuple[Index, Index, Index, Index]:
    """`OperandTiles.columns`, shared likewise."""
    left = np.arange(ceil_div(row_bytes, width), dtype=np.int64) * width
    right = np.minimum(left + width, row_bytes)
    shift = left * 0
    if padded:
        left, right, shift = shift, right - left, np.arange(len(left)) * ceil_div(width, LINE_BYTES)
    first, last = left // LINE_BYTES, (right - 1) // LINE_BYTES
    before, after = left % LINE_BYTES // SECTOR_BYTES, 3 - (right - 1) % LINE_BYTES // SECTOR_BYTES
    result = shift + first, last - first + 1, before, after
    for part in result:
        part.setflags(write=False)
    return result


class Placement(NamedTuple):
    """Where each tile lies, in lines: ``height`` rows of ``span`` lines, ``stride`` apart, from ``base``.

    ``before`` and ``after`` count the 32-byte sectors of a row's first and last line that are not the tile's;
    ``line_operand`` is the operand of each line.
    """

    base: Index
    height: Index
    span: Index
    stride: Index
    before: Index
    after: Index
    line_operand: NDArray[np.uint8]


def row_major(operands: tuple[OperandTiles, ...], pad_lines: int = 0) -> Placement:
    """Row-major addresses: operands one after the other, rows of whole lines, ``pad_lines`` more between rows."""
    parts = []
    start = 0
    for o in operands:
        first, lines, before, after = o.columns
        pitch = int(first[-1] + lines[-1]) + pad_lines
        size = o.rows * pitch
        top = np.arange(o.grid[0], dtype=np.int64)[:, None] * (o.tile_rows * pitch)
        corner = start + np.arange(o.copies, dtype=np.int64)[:, None] * size + (top + first).ravel()
        each = [o.each(1, column) for column in (lines, pitch, before, after)]
        parts.append([corner.ravel(), o.each(o.heights, 1), *each, np.full(o.copies * size, o.operand, np.uint8)])
        start += o.copies * size
    return Placement(*(np.concatenate(part) for part in zip(*parts, strict=True)))


class Layout:
    """Collects operands and numbers their tiles."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.operands: list[OperandTiles] = []
        self._sectors: Index | None = None

    def add(
        self, name: str, rows: int, cols: int, tile_rows: int, tile_cols: int, element_bytes: int, copies: int = 1,
        padded: bool = False,
    ) -> OperandTiles:  # fmt: skip
        """Lay out one operand; the parameters are those of `OperandTiles`, copies share the name.

        A name that is there already gets further matrices, of another shape.

        Raises
        ------
        InputError
            Too many tiles.
        """
        first = self.operands[-1].first + self.operands[-1].tiles if self.operands else 0
        shape = (copies, rows, cols, tile_rows, tile_cols, element_bytes, padded)
        known = name in self.names
        self._sectors = None
        added = OperandTiles(self.names.index(name) if known else len(self.names), first, *shape)
        advice = "use larger tiles or a smaller problem"
        check_memory("trace", first + added.tiles, "tiles", _TILE_BYTES, advice)  # before their tables are made
        self.names += [] if known else [name]
        self.operands.append(added)
        return added

    @property
    def shares_lines(self) -> bool:
        """Whether some tile shares a line with its neighbour."""
        return any(o.shares_lines for o in self.operands)

    @property
    def splits_lines(self) -> bool:
        """Whether some tile shares a line with its neighbour, and not all its lines: lines must be told apart."""
        return any(o.splits_lines for o in self.operands)

    def tile_lines(self) -> NDArray[np.int32]:
        """Lines of each tile."""
        return np.concatenate([o.each(o.heights, o.columns[1]) for o in self.operands]).astype(np.int32)

    def tile_sectors(self) -> Index:
        """32-byte sectors of each tile: less than its lines where it shares some with others."""
        if self._sectors is None:
            of = [(o, o.columns) for o in self.operands]
            parts = [o.each(o.heights, 4 * lines - left - right) for o, (_, lines, left, right) in of]
            self._sectors = np.concatenate(parts)
        return self._sectors

    def tile_operand(self) -> NDArray[np.uint8]:
        """Operand of each tile."""
        return np.repeat(np.array([o.operand for o in self.operands], np.uint8), [o.tiles for o in self.operands])

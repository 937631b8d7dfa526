"""A trace: the tiles that a kernel touches, in order, with the layout that says how many lines each tile has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.memory import check_memory

LINE_BYTES = 128
_TILE_BYTES = 64  # of all tables together that have an entry per tile, those of a cache included
_LINE_BYTES_KEPT = 40
READ, WRITE = 0, 1


def check_tiles(tiles: int) -> None:
    """Refuse a trace over more tiles than fit in memory, before their tables are made."""
    check_memory("trace", tiles, "tiles", _TILE_BYTES, "use larger tiles or a smaller problem")


def check_lines(lines: int) -> None:
    """Refuse a trace over more lines than fit in memory, where each is followed."""
    check_memory(
        "trace",
        lines,
        "lines of 128 bytes",
        _LINE_BYTES_KEPT,
        "use tiles of whole lines, another cache model or a smaller problem",
    )


@dataclass(frozen=True)
class TraceChunk:
    """Consecutive touches (a wave, say), so that long traces need not stand in memory at once.

    Attributes
    ----------
    ids : ndarray of int32, shape (touches,)
        Tile numbers.
    ops : ndarray of uint8, shape (touches,)
        READ or WRITE; a write allocates its lines without fetching them.
    step_starts : ndarray of int64, shape (block steps,)
        Where each block step (its A tile and its B tile) begins; the steps come first in the chunk.
    step_end : int
        Where the last block step ends.
    sm_source : callable, optional
        Makes the SM of each touch, int32, for the cache models that ask.
    sector_source : callable, optional
        Makes the 32-byte sectors meant by each touch of a line, uint8 bit masks; without one, all four.
    """

    ids: NDArray[np.int32]
    ops: NDArray[np.uint8]
    step_starts: NDArray[np.int64]
    step_end: int
    sm_source: Callable[[], NDArray[np.int32]] | None = None
    sector_source: Callable[[], NDArray[np.uint8]] | None = None

    @property
    def sm(self) -> NDArray[np.int32] | None:
        """The SM of each touch, or None when the trace does not say."""
        return None if self.sm_source is None else self.sm_source()

    @property
    def sectors(self) -> NDArray[np.uint8] | None:
        """The sectors that each touch means, or None for whole lines."""
        return None if self.sector_source is None else self.sector_source()


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
        Tile, in values; edge tiles are short. Tiles are whole lines wide, edge tiles excepted.
    element_bytes : int
        Bytes of one value.
    """

    operand: int
    first: int
    copies: int
    rows: int
    cols: int
    tile_rows: int
    tile_cols: int
    element_bytes: int

    @property
    def grid(self) -> tuple[int, int]:
        """Tile rows and columns of one copy."""
        return -(-self.rows // self.tile_rows), -(-self.cols // self.tile_cols)

    @property
    def tiles(self) -> int:
        """Tiles of all copies."""
        return self.copies * self.grid[0] * self.grid[1]

    @property
    def row_lines(self) -> int:
        """Lines of one row, the last one padded."""
        return -(-self.cols * self.element_bytes // LINE_BYTES)

    def extents(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of each tile row, and lines across each tile column."""
        grid_rows, grid_cols = self.grid
        heights = np.full(grid_rows, self.tile_rows, np.int64)
        heights[-1] = self.rows - (grid_rows - 1) * self.tile_rows
        widths = np.full(grid_cols, self.tile_cols, np.int64)
        widths[-1] = self.cols - (grid_cols - 1) * self.tile_cols
        return heights, -(-widths * self.element_bytes // LINE_BYTES)


@dataclass(frozen=True)
class RowMajor:
    """Where each tile lies, in lines: ``height`` rows of ``span`` lines, ``stride`` apart, from ``base``."""

    base: NDArray[np.int64]
    height: NDArray[np.int64]
    span: NDArray[np.int64]
    stride: NDArray[np.int64]
    line_operand: NDArray[np.uint8]


def row_major(operands: tuple[OperandTiles, ...], pad_lines: int = 0) -> RowMajor:
    """Row-major addresses: operands one after the other, rows of whole lines, ``pad_lines`` more between rows."""
    check_lines(sum(o.copies * o.rows * (o.row_lines + pad_lines) for o in operands))
    parts: list[list[NDArray[np.int64]]] = [[], [], [], []]
    owner = []
    start = 0
    for operand in sorted(operands, key=lambda o: o.first):
        heights, spans = operand.extents()
        pitch = operand.row_lines + pad_lines
        copy_lines = operand.rows * pitch
        top = np.arange(len(heights), dtype=np.int64)[:, None] * operand.tile_rows * pitch
        left = np.arange(len(spans), dtype=np.int64) * operand.tile_cols * operand.element_bytes // LINE_BYTES
        corner = (top + left).ravel()
        base = start + np.arange(operand.copies, dtype=np.int64)[:, None] * copy_lines + corner
        shape = (operand.copies, len(heights), len(spans))
        for part, values in zip(
            parts,
            (base, np.broadcast_to(heights[:, None], shape), np.broadcast_to(spans, shape), np.full(shape, pitch)),
            strict=True,
        ):
            part.append(np.asarray(values, np.int64).ravel())
        owner.append(np.full(operand.copies * copy_lines, operand.operand, np.uint8))
        start += operand.copies * copy_lines
    base, height, span, stride = (np.concatenate(part) for part in parts)
    return RowMajor(base, height, span, stride, np.concatenate(owner))


@dataclass(frozen=True)
class Trace:
    """Tile touches in order.

    Attributes
    ----------
    operand_names : tuple of str
        ``("A", "B", "C")``.
    tile_lines : ndarray of int32, shape (tiles,)
        128-byte lines of each tile. Tiles share no line.
    tile_operand : ndarray of uint8, shape (tiles,)
        Index into ``operand_names``.
    touches : int
        Length of the trace.
    source : callable
        Makes a fresh iterator over the chunks.
    granularity : str
        ``"tile"``, or ``"line"`` when each "tile" is one line (tiles whose edges fall inside a line).
    operands : tuple of OperandTiles
        Shapes, so that tiles have addresses and names; empty when not known.
    sms : int
        SMs that make the touches; 0 when the chunks do not say which.
    """

    operand_names: tuple[str, ...]
    tile_lines: NDArray[np.int32]
    tile_operand: NDArray[np.uint8]
    touches: int
    source: Callable[[], Iterator[TraceChunk]]
    granularity: str = "tile"
    operands: tuple[OperandTiles, ...] = ()
    sms: int = 0

    def chunks(self) -> Iterator[TraceChunk]:
        """The touches from the start."""
        return self.source()

    def placement(self, pad_lines: int = 0) -> RowMajor | None:
        """Row-major addresses, or None when shapes are not known."""
        return row_major(self.operands, pad_lines) if self.operands else None

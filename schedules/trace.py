"""A trace: the tiles that a kernel touches, in order, with the layout that says how many lines each tile has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LINE_BYTES = 128
READ, WRITE = 0, 1


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
    """

    ids: NDArray[np.int32]
    ops: NDArray[np.uint8]
    step_starts: NDArray[np.int64]
    step_end: int


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
    """

    operand_names: tuple[str, ...]
    tile_lines: NDArray[np.int32]
    tile_operand: NDArray[np.uint8]
    touches: int
    source: Callable[[], Iterator[TraceChunk]]
    granularity: str = "tile"

    def chunks(self) -> Iterator[TraceChunk]:
        """The touches from the start."""
        return self.source()

"""A stream of tiles as a stream of single lines, for the policies that tell lines apart.

Lines are numbered tile by tile, or by their row-major address where sets or sectors matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from pebble.memory import check_memory
from pebble.models.caches.base import Chunk, Piece, Placement, Touches

_LINE_BYTES_KEPT = 40


@numba.njit(cache=True, nogil=True)
def _expand(ids, ops, base, height, span, stride, out_ids, out_ops, ends):  # type: ignore[no-untyped-def]
    t = 0
    for i in range(ids.shape[0]):
        tile = ids[i]
        at = base[tile]
        for _ in range(height[tile]):
            for line in range(span[tile]):
                out_ids[t] = at + line
                out_ops[t] = ops[i]
                t += 1
            at += stride[tile]
        ends[i + 1] = t


@dataclass(frozen=True)
class _Dense:
    """Tiles one after the other, each in one piece."""

    base: NDArray[np.int64]
    height: NDArray[np.int64]
    span: NDArray[np.int64]
    stride: NDArray[np.int64]
    line_operand: NDArray[np.uint8]


def dense_placement(stream: Touches) -> _Dense:
    """Lines numbered tile by tile."""
    lines = stream.tile_lines.astype(np.int64)
    ones = np.ones_like(lines)
    return _Dense(np.cumsum(lines) - lines, ones, lines, ones, np.repeat(stream.tile_operand, lines))


class LineStream:
    """The lines of a stream of tiles, itself a stream.

    Parameters
    ----------
    stream : Touches
        Tiles.
    placement : Placement, optional
        Addresses; without one, tile by tile.

    Raises
    ------
    InputError
        More lines to tell apart than fit in memory.
    """

    def __init__(self, stream: Touches, placement: Placement | None = None) -> None:
        lines = int(stream.tile_lines.sum(dtype=np.int64))
        check_memory("policy", lines, "lines to tell apart", _LINE_BYTES_KEPT, "use lru or a smaller problem")
        self._stream = stream
        self._at = placement or dense_placement(stream)
        self.operand_names = stream.operand_names
        self.tile_operand = self._at.line_operand
        self.tile_lines = np.ones(len(self.tile_operand), np.int32)
        self.touches = stream.touches  # of tiles: the number of lines is known only by walking the stream
        self.sms = stream.sms

    def placement(self, pad_lines: int = 0) -> Placement | None:
        """Lines are their own addresses, fixed when the stream was made."""
        return None

    def chunks(self) -> Iterator[Chunk]:
        """The lines from the start."""
        at, size = self._at, self._stream.tile_lines
        for chunk in self._stream.chunks():
            counts = size[chunk.ids]
            total = int(counts.sum())
            ids, ops = np.empty(total, np.int32), np.empty(total, np.uint8)
            ends = np.zeros(len(chunk.ids) + 1, np.int64)
            _expand(chunk.ids, chunk.ops, at.base, at.height, at.span, at.stride, ids, ops, ends)
            sm = None if chunk.sm is None else np.repeat(chunk.sm, counts)
            yield Piece(ids, ops, ends[chunk.step_starts], int(ends[chunk.step_end]), sm)

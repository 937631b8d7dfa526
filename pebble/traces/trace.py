"""A trace: the tiles that a kernel touches, in order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.traces.layout import LINE_BYTES, OperandTiles

__all__ = ["LINE_BYTES", "READ", "WRITE", "LockstepGemm", "Trace", "TraceChunk"]

READ, WRITE = 0, 1
CHUNK = 1 << 20

Made = TypeVar("Made", bound=np.generic)


def part(values: NDArray[Made] | None, at: slice) -> Callable[[], NDArray[Made]] | None:
    """The source of a part of what is there already."""
    return None if values is None else lambda: values[at]


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
        Where each block step (its A tile and its B tile) begins.
    step_end : int
        Where the last block step ends.
    sm_source : callable, optional
        Makes the SM of each touch, int32, for the cache models that ask.
    sector_source : callable, optional
        Makes the 32-byte sectors that each touch means, of every line of its tile, uint8 bit masks; without one, all.
    """

    ids: NDArray[np.int32]
    ops: NDArray[np.uint8]
    step_starts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    step_end: int = 0
    sm_source: Callable[[], NDArray[np.int32]] | None = None
    sector_source: Callable[[], NDArray[np.uint8]] | None = None

    def pieces(self, most: int) -> Iterator[tuple[TraceChunk, slice]]:
        """The chunk in pieces of at most so many touches, without block steps; itself, if it is no longer."""
        count = len(self.ids)
        if count <= most:
            yield self, slice(0, count)
            return
        sm, sectors = self.sm, self.sectors
        for start in range(0, count, most):
            at = slice(start, min(start + most, count))
            ids, ops = self.ids[at], self.ops[at]
            yield TraceChunk(ids, ops, sm_source=part(sm, at), sector_source=part(sectors, at)), at

    @property
    def sm(self) -> NDArray[np.int32] | None:
        """The SM of each touch, or None when the trace does not say."""
        return None if self.sm_source is None else self.sm_source()

    @property
    def sectors(self) -> NDArray[np.uint8] | None:
        """The sectors that each touch means, or None for whole lines."""
        return None if self.sector_source is None else self.sector_source()


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
    operands : tuple of OperandTiles
        Shapes, so that tiles have addresses and names; empty when not known.
    sms : int
        SMs that make the touches; 0 when the chunks do not say which.
    follows : bool
        Whether what comes next depends on what missed: see `following`.
    """

    operand_names: tuple[str, ...]
    tile_lines: NDArray[np.int32]
    tile_operand: NDArray[np.uint8]
    touches: int
    source: Callable[[], Iterator[TraceChunk]]
    operands: tuple[OperandTiles, ...] = ()
    sms: int = 0
    follows: bool = False

    @property
    def footprint_bytes(self) -> int:
        """Of the tiles that it touches, each once."""
        touched = np.zeros(len(self.tile_lines), bool)
        for chunk in self.chunks():
            touched[chunk.ids] = True
        return int(self.tile_lines[touched].sum(dtype=np.int64)) * LINE_BYTES

    def chunks(self) -> Iterator[TraceChunk]:
        """The touches from the start; to one that follows its cache, what missed is sent: `following`."""
        return self.source()

    def chunks_alone(self) -> Iterator[TraceChunk]:
        """The touches from the start, for a reader that has no cache at work.

        Raises
        ------
        InputError
            The order depends on the cache.
        """
        if self.follows:
            raise InputError(
                "execution free: what comes next depends on what the cache missed, so there is no trace without one "
                "to write down or to look ahead in; use --execution waves, or another --policy than opt."
            )
        return self.chunks()


def following(source: Iterator[TraceChunk], missed: NDArray[np.int32] | None) -> TraceChunk | None:
    """The next chunk from a source that is told how many lines each touch of the last one missed; None at the end."""
    try:
        return source.send(missed) if isinstance(source, Generator) else next(source)
    except StopIteration:
        return None


def chunked(
    ids: NDArray[np.int32], ops: NDArray[np.uint8], sm: NDArray[np.int32] | None
) -> Callable[[], Iterator[TraceChunk]]:
    """The source of a trace that stands in memory: chunks of about a million touches."""

    def chunks() -> Iterator[TraceChunk]:
        for start in range(0, len(ids), CHUNK):
            at = slice(start, start + CHUNK)
            yield TraceChunk(ids[at], ops[at], sm_source=part(sm, at))

    return chunks


@dataclass(frozen=True)
class LockstepGemm:
    """What a closed form needs to know of a GEMM whose blocks advance in lock step; its tiles share no line."""

    a: OperandTiles
    b: OperandTiles
    c: OperandTiles
    #: output tiles in issue order, shape (output tiles,)
    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    wave_blocks: int  #: blocks that run at once
    sawtooth: bool = False  #: whether every second wave walks k backwards
    accumulate: bool = False  #: whether each tile of C is read just before it is written

"""A trace: the tiles that a kernel touches, in order; and one of tiles that share lines as one of tiles that share
none, or of single lines.

Tiles that have all their lines in common are one tile as far as whole lines go: that is exact and, with a hundred lines
in a tile, as many times faster as to tell them apart. Tiles that share lines otherwise, and models that ask for single
lines, get a trace of lines.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.system.parallel import check_memory
from pebble.traces.jit import jit
from pebble.traces.layout import LINE_BYTES, Index, OperandTiles, Placement, row_major

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


_LINE_BYTES_CACHED = 40


@jit
def _expand(
    ids: NDArray[np.int32], ops: NDArray[np.uint8], base: Index, height: Index, span: Index, stride: Index,
    out_ids: NDArray[np.int32], out_ops: NDArray[np.uint8], ends: NDArray[np.int64],
) -> None:  # fmt: skip
    # Every line of each touched tile, row by row.
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


@jit
def _masks(
    ids: NDArray[np.int32], height: Index, span: Index, before: Index, after: Index, out: NDArray[np.uint8]
) -> None:
    # The 32-byte sectors of each line that lie in the tile: all but those before its left and after its right edge.
    t = 0
    for i in range(ids.shape[0]):
        tile = ids[i]
        for _ in range(height[tile]):
            for line in range(span[tile]):
                mask = 15
                if line == 0:
                    mask &= 15 << before[tile]
                if line == span[tile] - 1:
                    mask &= 15 >> after[tile]
                out[t] = mask
                t += 1


def _packed(trace: Trace) -> Placement:
    """Lines numbered tile by tile, each tile in one piece."""
    lines = trace.tile_lines.astype(np.int64)
    single, none = np.ones_like(lines), np.zeros_like(lines)
    return Placement(np.cumsum(lines) - lines, single, lines, lines, none, none, np.repeat(trace.tile_operand, lines))


def _line_shapes(operands: tuple[OperandTiles, ...]) -> tuple[OperandTiles, ...]:
    """The operands as tiles of one line; nothing where a line is no whole number of values or rows are padded."""
    shapes = []
    first = 0
    for o in operands:
        if o.padded or LINE_BYTES % o.element_bytes:
            return ()
        width = LINE_BYTES // o.element_bytes
        shapes.append(OperandTiles(o.operand, first, o.copies, o.rows, o.cols, 1, width, o.element_bytes))
        first += shapes[-1].tiles
    return tuple(shapes)


def by_wide_tiles(trace: Trace) -> Trace:
    """The same touches, of tiles as wide as a line where tiles share lines; with the sectors that each touch means.

    Parameters
    ----------
    trace : Trace
        Of tiles with their shapes, none of which splits lines (`OperandTiles.splits_lines`).
    """
    wide: list[OperandTiles] = []
    into, sectors = [], []
    for o in trace.operands:
        first = wide[-1].first + wide[-1].tiles if wide else 0
        wide.append(o.a_line_wide(first) if o.shares_lines else replace(o, first=first))
        column, _, before, after = o.columns
        across = column if o.shares_lines else np.arange(o.grid[1])
        rows = np.arange(o.copies * o.grid[0])[:, None] * wide[-1].grid[1]
        into.append((first + rows + across).ravel())
        meant = (15 << before) & (15 >> after) if o.shares_lines else np.full(o.grid[1], 15)
        sectors.append(o.each(1, meant))
    number, mask = np.concatenate(into).astype(np.int32), np.concatenate(sectors).astype(np.uint8)

    def chunks() -> Generator[TraceChunk, NDArray[np.int32] | None, None]:
        source = trace.chunks()
        chunk = next(source, None)
        while chunk is not None:
            missed = yield replace(chunk, ids=number[chunk.ids], sector_source=partial(np.take, mask, chunk.ids))
            chunk = following(source, missed)

    lines = np.concatenate([o.each(o.heights, o.columns[1]) for o in wide]).astype(np.int32)
    operand = np.repeat(np.array([o.operand for o in wide], np.uint8), [o.tiles for o in wide])
    return replace(trace, tile_lines=lines, tile_operand=operand, source=chunks, operands=tuple(wide))


def by_lines(trace: Trace, pad_lines: int = 0) -> Trace:
    """The lines of a trace of tiles, with the sectors that each touch means.

    Parameters
    ----------
    trace : Trace
        Tiles. Where their shapes are known the lines are row-major addresses, operands one after the other; else they
        are numbered tile by tile.
    pad_lines : int
        Lines added to the pitch of rows.

    Raises
    ------
    InputError
        More lines to tell apart than fit in memory.
    """
    advice = "use tiles of whole lines, another cache model or a smaller problem"
    lines = int(trace.tile_lines.sum(dtype=np.int64))
    if trace.operands:
        lines = max(
            lines,
            sum(o.copies * o.rows * (int(sum(o.columns[i][-1] for i in (0, 1))) + pad_lines) for o in trace.operands),
        )
    check_memory("trace", lines, "lines of 128 bytes", _LINE_BYTES_CACHED, advice)
    at = row_major(trace.operands, pad_lines) if trace.operands else _packed(trace)
    sizes = at.height * at.span

    def masks(chunk: TraceChunk, total: int) -> NDArray[np.uint8]:
        out = np.empty(total, np.uint8)
        _masks(chunk.ids, at.height, at.span, at.before, at.after, out)
        meant = chunk.sectors  # of every line of a tile
        return out if meant is None else out & np.repeat(meant, sizes[chunk.ids])

    def sms(chunk: TraceChunk) -> NDArray[np.int32]:
        of_touch = chunk.sm
        assert of_touch is not None
        return np.repeat(of_touch, sizes[chunk.ids])

    def chunks() -> Generator[TraceChunk, NDArray[np.int32] | None, None]:
        source = trace.chunks()
        chunk = next(source, None)
        while chunk is not None:
            total = int(sizes[chunk.ids].sum())
            ids, ops, ends = (
                np.empty(total, np.int32),
                np.empty(total, np.uint8),
                np.zeros(len(chunk.ids) + 1, np.int64),
            )
            _expand(chunk.ids, chunk.ops, at.base, at.height, at.span, at.stride, ids, ops, ends)
            missed = yield TraceChunk(
                ids, ops, ends[chunk.step_starts], int(ends[chunk.step_end]),
                None if chunk.sm_source is None else partial(sms, chunk),
                partial(masks, chunk, total),
            )  # fmt: skip
            if missed is not None:
                missed = np.diff(np.concatenate([[0], np.cumsum(missed)])[ends]).astype(np.int32)
            chunk = following(source, missed)

    touches = sum(int(sizes[chunk.ids].sum()) for chunk in trace.chunks())
    shapes = _line_shapes(trace.operands) if not pad_lines else ()
    ones = np.ones(len(at.line_operand), np.int32)
    return Trace(trace.operand_names, ones, at.line_operand, touches, chunks, shapes, trace.sms, trace.follows)

"""A trace of tiles that share lines as one of tiles that share none, or of single lines.

Tiles that have all their lines in common are one tile as far as whole lines go: that is exact and, with a hundred lines
in a tile, as many times faster as to tell them apart. Tiles that share lines otherwise, and models that ask for single
lines, get a trace of lines.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pebble.system.parallel import check_memory
from pebble.traces.jit import jit
from pebble.traces.layout import LINE_BYTES, Index, OperandTiles, Placement, row_major
from pebble.traces.trace import Trace, TraceChunk, following

_LINE_BYTES_KEPT = 40


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
    check_memory("trace", lines, "lines of 128 bytes", _LINE_BYTES_KEPT, advice)
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

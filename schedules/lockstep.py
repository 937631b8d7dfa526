"""The reference trace: a tiled GEMM whose blocks advance in lock step, wave by wave.

Output tiles are taken in traversal order, P at a time (a wave). Inside a wave each block advances one k-tile per
step; in a step the blocks, in issue order, each touch their A tile and then their B tile. After the last step the
wave's C tiles are written in issue order (C += AB reads each just before it is written). The next wave starts when
all have finished. With ``sawtooth`` every second wave walks k backwards.

Rows of each operand are padded to whole 128-byte lines and every operand starts on its own line. A tile whose
width is not a whole number of lines shares lines with its neighbour; such a trace is written out line by line.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numba
import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.schedules.lockstep_shape import check_length, edges, line_spans, sector_edges, shares_lines
from pebble.schedules.tile import TileShape, values_held_by_blocks
from pebble.schedules.trace import LINE_BYTES, READ, WRITE, OperandTiles, Trace, TraceChunk, check_lines, check_tiles
from pebble.workloads import Gemm

__all__ = ["TileShape", "check_length", "lockstep_trace", "values_held_by_blocks"]


_CHUNK = 1 << 18  # touches, about: a wave of many steps comes in pieces


@numba.njit(cache=True, nogil=True)
def _fill_wave(rows, cols, steps, first, last, backwards, cols_of_b, first_b, ids):  # type: ignore[no-untyped-def]
    t = 0
    for step in range(first, last):
        k = steps - 1 - step if backwards else step
        for block in range(rows.shape[0]):
            ids[t] = rows[block] * steps + k
            ids[t + 1] = first_b + k * cols_of_b + cols[block]
            t += 2


@numba.njit(cache=True, nogil=True)
def _expand(ids, ops, base, row_lines, height, span, out_ids, out_ops):  # type: ignore[no-untyped-def]
    # Every line of each touched tile, row by row.
    t = 0
    for i in range(ids.shape[0]):
        tile = ids[i]
        for row in range(height[tile]):
            at = base[tile] + row * row_lines[tile]
            for line in range(span[tile]):
                out_ids[t] = at + line
                out_ops[t] = ops[i]
                t += 1


@numba.njit(cache=True, nogil=True)
def _masks(ids, height, span, left, right, out):  # type: ignore[no-untyped-def]
    # The 32-byte sectors of each line that lie in the tile: all but those before its left and after its right edge.
    t = 0
    for i in range(ids.shape[0]):
        tile = ids[i]
        for _ in range(height[tile]):
            for line in range(span[tile]):
                mask = 15
                if line == 0:
                    mask &= 15 << left[tile]
                if line == span[tile] - 1:
                    mask &= 15 >> right[tile]
                out[t] = mask
                t += 1


def _slots(blocks: int, steps: int, per_block: int, sms: int) -> NDArray[np.int32]:
    """The SM of each touch of so many steps of a wave, and of the C tiles after them."""
    sm = np.arange(blocks, dtype=np.int32) % np.int32(sms)
    return np.concatenate([np.tile(np.repeat(sm, 2), steps), np.repeat(sm, per_block)])


def lockstep_trace(
    gemm: Gemm,
    tiles: NDArray[np.int32],
    tile: TileShape,
    wave_blocks: int,
    sawtooth: bool = False,
    granularity: str = "auto",
    sms: int | None = None,
) -> Trace:
    """The reference trace of one traversal.

    Parameters
    ----------
    gemm : Gemm
        The problem.
    tiles : ndarray of int32, shape (tile rows * tile columns, 2)
        Output tiles (row, column) in traversal order.
    tile : TileShape
        Block tile.
    wave_blocks : int
        P, blocks that run at once: SMs times blocks per SM.
    sawtooth : bool
        Reverse k in every second wave.
    granularity : {"auto", "tile", "line"}
        ``"auto"`` writes lines out only where tiles share them.
    sms : int, optional
        SMs; block slots are dealt to them in turn. By default as many as block slots.

    Raises
    ------
    InputError
        The trace is too long, or tiles share lines and ``granularity="tile"`` was asked for.
    """
    tile = tile.cut_to(gemm)
    grid_m, grid_n, grid_k = tile.grid(gemm)
    touches, counts = check_length(gemm, tile)
    check_tiles(sum(counts))
    shares = shares_lines(gemm, tile)
    if granularity == "tile" and shares:
        raise InputError(
            f"tile {tile}: its width is not a whole number of 128-byte lines, expected granularity 'line'."
        )

    rows, cols = np.ascontiguousarray(tiles[:, 0]), np.ascontiguousarray(tiles[:, 1])
    first_b, first_c = counts[0], counts[0] + counts[1]
    sms = min(sms or wave_blocks, wave_blocks)

    def waves() -> Iterator[TraceChunk]:
        for index, start in enumerate(range(0, len(rows), wave_blocks)):
            r, c = rows[start : start + wave_blocks], cols[start : start + wave_blocks]
            backwards = sawtooth and index % 2 == 1
            piece = max(1, _CHUNK // (2 * len(r)))
            for first in range(0, grid_k, piece):
                last = min(first + piece, grid_k)
                paired = 2 * (last - first) * len(r)
                per_block = 1 + gemm.accumulate if last == grid_k else 0
                ids = np.empty(paired + per_block * len(r), np.int32)
                ops = np.full(len(ids), READ, np.uint8)
                _fill_wave(r, c, grid_k, first, last, backwards, grid_n, first_b, ids)
                if per_block:
                    output = first_c + r.astype(np.int64) * grid_n + c
                    ids[paired:] = np.repeat(output, per_block)
                    ops[paired + per_block - 1 :: per_block] = WRITE
                yield TraceChunk(
                    ids,
                    ops,
                    np.arange(0, paired, 2, dtype=np.int64),
                    paired,
                    partial(_slots, len(r), last - first, per_block, sms),
                )

    height_m, height_k = edges(gemm.m, tile.bm), edges(gemm.k, tile.bk)
    a_first, a_span = line_spans(gemm.k, tile.bk, gemm.in_bytes)
    b_first, b_span = line_spans(gemm.n, tile.bn, gemm.in_bytes)
    c_first, c_span = line_spans(gemm.n, tile.bn, gemm.out_bytes)
    height = np.concatenate(
        [np.repeat(height_m, grid_k), np.repeat(height_k, grid_n), np.repeat(height_m, grid_n)]
    )  # rows of each tile
    span = np.concatenate([np.tile(a_span, grid_m), np.tile(b_span, grid_k), np.tile(c_span, grid_m)])
    operand = np.repeat(np.arange(3, dtype=np.uint8), counts)
    names = tuple(o.name for o in gemm.operands)
    if not shares and granularity != "line":
        tiles_of = ((tile.bm, tile.bk), (tile.bk, tile.bn), (tile.bm, tile.bn))
        shapes = tuple(
            OperandTiles(i, first, 1, o.rows, o.cols, *size, o.element_bytes)
            for i, (first, o, size) in enumerate(zip((0, first_b, first_c), gemm.operands, tiles_of, strict=True))
        )
        return Trace(names, (height * span).astype(np.int32), operand, touches, waves, "tile", shapes, sms)

    row_lines = [-(-o.cols * o.element_bytes // LINE_BYTES) for o in gemm.operands]
    operand_lines = [o.rows * width for o, width in zip(gemm.operands, row_lines, strict=True)]
    check_lines(sum(operand_lines))
    starts = np.concatenate([[0], np.cumsum(operand_lines)]).astype(np.int64)
    top = [np.repeat(np.arange(g, dtype=np.int64) * b, w) for g, b, w in
           ((grid_m, tile.bm, grid_k), (grid_k, tile.bk, grid_n), (grid_m, tile.bm, grid_n))]  # fmt: skip
    left = [np.tile(a_first, grid_m), np.tile(b_first, grid_k), np.tile(c_first, grid_m)]
    base = np.concatenate([starts[o] + top[o] * row_lines[o] + left[o] for o in range(3)])
    stride = np.repeat(np.array(row_lines, np.int64), counts)
    sizes = height * span
    cuts = [
        sector_edges(gemm.k, tile.bk, gemm.in_bytes),
        sector_edges(gemm.n, tile.bn, gemm.in_bytes),
        sector_edges(gemm.n, tile.bn, gemm.out_bytes),
    ]
    left_edge, right_edge = (
        np.concatenate([np.tile(e[side], g) for e, g in zip(cuts, (grid_m, grid_k, grid_m), strict=True)])
        for side in (0, 1)
    )

    def sectors(wave: TraceChunk, total: int) -> NDArray[np.uint8]:
        out = np.empty(total, np.uint8)
        _masks(wave.ids, height, span, left_edge, right_edge, out)
        return out

    def line_sms(wave: TraceChunk) -> NDArray[np.int32]:
        assert wave.sm is not None
        return np.repeat(wave.sm, sizes[wave.ids])

    def lines() -> Iterator[TraceChunk]:
        for wave in waves():
            total = int(sizes[wave.ids].sum())
            ids, ops = np.empty(total, np.int32), np.empty(total, np.uint8)
            _expand(wave.ids, wave.ops, base, stride, height, span, ids, ops)
            ends = np.concatenate([[0], np.cumsum(sizes[wave.ids])]).astype(np.int64)
            yield TraceChunk(
                ids, ops, ends[wave.step_starts], int(ends[wave.step_end]), partial(line_sms, wave),
                partial(sectors, wave, total),
            )  # fmt: skip

    per_visit = int(sizes[: counts[0]].sum()) * grid_n + int(sizes[counts[0] : first_c].sum()) * grid_m
    length = per_visit + int(sizes[first_c:].sum()) * (1 + gemm.accumulate)
    every_line = np.repeat(np.arange(3, dtype=np.uint8), operand_lines)
    line_shapes = tuple(
        OperandTiles(i, int(starts[i]), 1, o.rows, o.cols, 1, LINE_BYTES // o.element_bytes, o.element_bytes)
        for i, o in enumerate(gemm.operands)
    )
    return Trace(names, np.ones(len(every_line), np.int32), every_line, length, lines, "line", line_shapes, sms)

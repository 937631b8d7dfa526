"""The shape of a tiled GEMM in lines: sizes of edge tiles, and what a closed form needs to know."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.schedules.grid import check_grid
from pebble.schedules.tile import TileShape
from pebble.schedules.trace import LINE_BYTES
from pebble.workloads import Gemm

MAX_TOUCHES = 4_000_000_000


def edges(extent: int, tile: int) -> NDArray[np.int64]:
    """Sizes of the tiles that cover ``extent``: all ``tile`` but the last."""
    count = -(-extent // tile)
    sizes = np.full(count, tile, np.int64)
    sizes[-1] = extent - (count - 1) * tile
    return sizes


def line_spans(extent: int, tile: int, element_bytes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First line of each tile along a row and the number of lines that it covers."""
    count = -(-extent // tile)
    starts = np.arange(count, dtype=np.int64) * tile
    ends = np.minimum(starts + tile, extent)
    first = starts * element_bytes // LINE_BYTES
    return first, (ends * element_bytes - 1) // LINE_BYTES - first + 1


def sector_edges(extent: int, tile: int, element_bytes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sectors of each tile's first line before it, and of its last line after it."""
    starts = np.arange(-(-extent // tile), dtype=np.int64) * tile * element_bytes
    ends = np.minimum(starts + tile * element_bytes, extent * element_bytes)
    return starts % LINE_BYTES // 32, 3 - (ends - 1) % LINE_BYTES // 32


def check_length(gemm: Gemm, tile: TileShape) -> tuple[int, tuple[int, int, int]]:
    """Tile touches of the trace and tiles of A, B and C, known before anything is made.

    Raises
    ------
    InputError
        More than 4e9 touches, or more tiles of C than an order may have.
    """
    grid_m, grid_n, grid_k = tile.grid(gemm)
    check_grid(grid_m, grid_n)
    touches = grid_m * grid_n * (2 * grid_k + 1 + gemm.accumulate)
    counts = (grid_m * grid_k, grid_k * grid_n, grid_m * grid_n)
    if touches > MAX_TOUCHES:
        raise InputError(
            f"tile {tile}: got a trace of {touches} tile touches, expected at most {MAX_TOUCHES}; use larger tiles or "
            "a smaller problem."
        )
    return touches, counts


def shares_lines(gemm: Gemm, tile: TileShape) -> bool:
    """Whether a tile's edge falls inside a line."""
    _, grid_n, grid_k = tile.grid(gemm)
    return (
        (grid_k > 1 and tile.bk * gemm.in_bytes % LINE_BYTES != 0)
        or (grid_n > 1 and tile.bn * gemm.in_bytes % LINE_BYTES != 0)
        or (grid_n > 1 and tile.bn * gemm.out_bytes % LINE_BYTES != 0)
    )


def lockstep_shape(
    gemm: Gemm, tiles: NDArray[np.int32], tile: TileShape, wave_blocks: int, sawtooth: bool = False
) -> dict[str, Any] | None:
    """What a closed form needs to know of the trace, in lines; None when tiles share lines.

    Parameters as for `lockstep_trace`; the keys are the fields of `pebble.models.caches.lockstep_lru.LockstepGemm`.
    """
    tile = tile.cut_to(gemm)
    if shares_lines(gemm, tile):
        return None
    _, a_spans = line_spans(gemm.k, tile.bk, gemm.in_bytes)
    b_heights = edges(gemm.k, tile.bk)
    return {
        "rows": np.ascontiguousarray(tiles[:, 0]),
        "cols": np.ascontiguousarray(tiles[:, 1]),
        "steps": len(a_spans),
        "wave_blocks": wave_blocks,
        "row_heights": edges(gemm.m, tile.bm),
        "col_spans": line_spans(gemm.n, tile.bn, gemm.in_bytes)[1],
        "c_spans": line_spans(gemm.n, tile.bn, gemm.out_bytes)[1],
        "a_span": int(a_spans[0]),
        "a_last": int(a_spans[-1]),
        "b_height": int(b_heights[0]),
        "b_last": int(b_heights[-1]),
        "sawtooth": sawtooth,
        "accumulate": gemm.accumulate,
    }

"""Line traces for the comparison: real kernels, written out line by line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pebble.families import kernel_family
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.traces import Trace, TraceChunk
from pebble.workloads import Attention, Ffn, Gemm, Workload

CACHE_BYTES = 40 * 2**20
ORACLE = np.dtype([("time", "<u4"), ("line", "<u8"), ("size", "<u4"), ("next", "<i8")])


def in_memory(trace: Trace) -> Trace:
    """The same trace as one chunk in memory, all touches reads: other simulators do not tell them apart."""
    ids = np.concatenate([chunk.ids for chunk in trace.chunks()])
    chunk = TraceChunk(ids, np.zeros(len(ids), np.uint8), np.empty(0, np.int64), 0)
    return Trace(trace.operand_names, trace.tile_lines, trace.tile_operand, len(ids), lambda: iter([chunk]),
                 operands=trace.operands)  # fmt: skip


def waves(problem: Workload, schedule: str, sms: int) -> Trace:
    """Of a bf16 kernel, tile 128x128x64 (128x64 of attention), one block an SM, in lock step."""
    family = kernel_family(problem)
    tile = TileShape.parse("128x64" if isinstance(problem, Attention) else "128x128x64")
    return in_memory(family.trace(problem, family.parse_schedule(schedule), KernelConfig(tile, sms, 1, CACHE_BYTES)))


def gemm(m: int = 8192, n: int = 8192, k: int = 8192) -> Trace:
    """The anchor: 132 blocks a wave, row first."""
    return waves(Gemm(m, n, k), "row", 132)


def gate(small: bool = False) -> dict[str, Trace]:
    """Three kernels on which there must be no difference; ``small``: the first of them at an eighth of its sides."""
    if small:
        return {"GEMM 384x384x128": gemm(384, 384, 128)}
    return {
        "GEMM 3072x3072x1024": gemm(3072, 3072, 1024),
        "FFN, row-fused-4": waves(Ffn(1024, 1024, 2816), "row-fused-4", 66),
        "attention, fa2": waves(Attention(2048, 2048, 128, heads=8, kv_heads=2), "fa2", 66),
    }


def ids_of(trace: Trace) -> NDArray[np.int32]:
    """The touches of a trace in memory."""
    return next(trace.chunks()).ids


def flat(trace: Trace) -> NDArray[np.int32]:
    """Line by line; tiles are numbered one after the other."""
    ids, size = ids_of(trace), trace.tile_lines.astype(np.int64)
    first = np.cumsum(size) - size
    out = np.empty(int(size[ids].sum()), np.int32)
    at = 0
    for start in range(0, len(ids), 1 << 14):  # in parts, so that no array of 8 bytes a line is needed
        part = ids[start : start + (1 << 14)]
        counts = size[part]
        ends = np.cumsum(counts)
        lines = np.repeat(first[part] - (ends - counts), counts) + np.arange(ends[-1])
        out[at : at + len(lines)] = lines
        at += len(lines)
    return out


def write_oracle(trace: Trace, lines: NDArray[np.int32], path: Path) -> None:
    """libcachesim's oracleGeneral format: with the time of each line's next access, -1 for never."""
    ids, size = ids_of(trace), trace.tile_lines.astype(np.int64)
    begin = np.cumsum(size[ids]) - size[ids]
    following = np.full(len(ids), -1, np.int64)
    last = np.full(len(size), -1, np.int64)
    for touch in range(len(ids) - 1, -1, -1):
        tile = ids[touch]
        following[touch] = begin[last[tile]] if last[tile] >= 0 else -1
        last[tile] = touch
    with path.open("wb") as file:
        for start in range(0, len(ids), 1 << 14):
            part = slice(start, min(len(ids), start + (1 << 14)))
            counts = size[ids[part]]
            ends = np.cumsum(counts)
            inside = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
            there = np.repeat(following[part], counts)
            rows = np.zeros(len(inside), ORACLE)
            first = int(begin[start])
            rows["line"] = lines[first : first + len(inside)]
            rows["time"] = (first + np.arange(len(inside))) & 0xFFFFFFFF
            rows["size"] = 1
            rows["next"] = np.where(there >= 0, there + inside, -1)
            rows.tofile(file)

"""Line traces for the comparison: real kernels, written out line by line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pebble.schedules.attention import attention_trace, parse_attention_schedule
from pebble.schedules.ffn import FfnKernel, ffn_trace, parse_ffn_schedule
from pebble.schedules.gemm import GemmKernel
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.traces import Trace, TraceChunk
from pebble.workloads import Attention, Ffn, Gemm

ORACLE = np.dtype([("time", "<u4"), ("line", "<u8"), ("size", "<u4"), ("next", "<i8")])


def in_memory(trace: Trace) -> Trace:
    """The same trace as one chunk in memory, all touches reads: other simulators do not tell them apart."""
    ids = np.concatenate([chunk.ids for chunk in trace.chunks()])
    chunk = TraceChunk(ids, np.zeros(len(ids), np.uint8), np.empty(0, np.int64), 0)
    return Trace(trace.operand_names, trace.tile_lines, trace.tile_operand, len(ids), lambda: iter([chunk]),
                 operands=trace.operands)  # fmt: skip


def gemm(m: int = 8192, n: int = 8192, k: int = 8192) -> Trace:
    """The anchor: bf16, tile 128x128x64, 132 blocks a wave, lock step, row first."""
    problem, tile = Gemm(m, n, k), TileShape(128, 128, 64)
    kernel = GemmKernel(problem, tile)
    return in_memory(kernel.lockstep(kernel.phase(parse_order("row").tiles(*kernel.grid)), 132))


def ffn() -> Trace:
    """A row-fused FFN."""
    kernel = FfnKernel(Ffn(1024, 1024, 2816), TileShape(128, 128, 64))
    return in_memory(ffn_trace(kernel, parse_ffn_schedule("row-fused-4"), 66))


def attention() -> Trace:
    """FlashAttention-2 with grouped heads."""
    problem = Attention(2048, 2048, 128, heads=8, kv_heads=2)
    return in_memory(attention_trace(problem, parse_attention_schedule("fa2"), 128, 64, 66))


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

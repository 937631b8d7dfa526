"""The trace of a tiled GEMM under an execution model: segments of work become touches in order of time.

At one time, results of what has just ended are written first, then steps begin, in order of slots; so with equal speeds
the trace is the lock-step one. A block that owns a tile reads the partial tiles of the others when the last of them has
ended.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.memory import check_memory
from pebble.schedules.execution import Execution, Segments, run_split_k, run_stream_k, run_tiles
from pebble.schedules.grid import Tiles
from pebble.schedules.layout import Layout, Region
from pebble.schedules.orders import OrderParams, TileOrder
from pebble.schedules.tile import TileShape
from pebble.schedules.trace import READ, WRITE, Trace, TraceChunk
from pebble.workloads import Gemm

_STEP_BYTES = 150
_PARTIAL_BYTES = 4
_TICKS = 1 << 16
_CHUNK = 1 << 20


def cluster_tiles(
    order: TileOrder, rows: int, cols: int, params: OrderParams, cluster: tuple[int, int]
) -> tuple[Tiles, NDArray[np.int64]]:
    """Tiles cluster by cluster, the order walking over clusters; and the cluster of each tile."""
    m, n = cluster
    if cluster == (1, 1):
        tiles = order.tiles(rows, cols, params)
        return tiles, np.arange(len(tiles), dtype=np.int64)
    corners = order.tiles(-(-rows // m), -(-cols // n), params).astype(np.int64) * (m, n)
    inside = np.array([(i, j) for i in range(m) for j in range(n)], np.int64)
    every = (corners[:, None] + inside).reshape(-1, 2)
    there = (every[:, 0] < rows) & (every[:, 1] < cols)
    which = np.repeat(np.arange(len(corners), dtype=np.int64), m * n)
    return np.ascontiguousarray(every[there].astype(np.int32)), which[there]


class _Events:
    """Touches with their times; sorted once at the end."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8], NDArray[np.int32]]] = []

    def add(
        self, time: NDArray[np.float64], phase: int, slot: NDArray[np.int64], ids: NDArray[np.int64], op: int, rank: int
    ) -> None:
        """Touches at a time; ``phase`` 0 for results, 1 for steps; ``rank`` orders the touches of one block."""
        tick = np.rint(time * _TICKS).astype(np.int64)
        key = ((tick * 2 + phase) * self._slots + slot) * 4 + rank
        ops = np.full(len(ids), op, np.uint8)
        self._parts.append((key, ids.astype(np.int32), ops, slot.astype(np.int32)))

    def sorted(self) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int32]]:
        """Tiles, operations and slots in order of time."""
        key, ids, ops, slots = (np.concatenate([part[i] for part in self._parts]) for i in range(4))
        order = np.argsort(key, kind="stable")
        return ids[order].astype(np.int32), ops[order].astype(np.uint8), slots[order].astype(np.int32)


def _steps(s: Segments, sawtooth: bool) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """For every step of every segment: the segment, its k, its time."""
    length = s.end - s.begin
    segment = np.repeat(np.arange(len(length), dtype=np.int64), length)
    step = np.arange(len(segment), dtype=np.int64) - np.repeat(np.cumsum(length) - length, length)
    backwards = (s.turn[segment] % 2 == 1) & sawtooth
    k = np.where(backwards, s.end[segment] - 1 - step, s.begin[segment] + step)
    return segment, k, s.start[segment] + step * s.pace[segment]


class TimedGemm:
    """One GEMM under one execution model: its layout, and its touches in order of time."""

    def __init__(
        self,
        gemm: Gemm,
        order: TileOrder,
        tile: TileShape,
        slots: int,
        execution: Execution,
        params: OrderParams | None = None,
    ) -> None:
        self._gemm, self._execution = gemm, execution
        tile = tile.cut_to(gemm)
        grid_m, grid_n, self._depth = tile.grid(gemm)
        check_memory(
            f"execution {execution.name}, tile {tile}", grid_m * grid_n * self._depth, "block steps", _STEP_BYTES,
            "use larger tiles or lockstep",
        )  # fmt: skip
        inside = execution.blocks_in_cluster
        if slots < inside:
            raise InputError(
                f"cluster: got {inside} blocks in a cluster and {slots} at once, expected as many or more."
            )
        self._sawtooth = order.sawtooth
        self._tiles, self._cluster = cluster_tiles(order, grid_m, grid_n, params or OrderParams(), execution.cluster)
        self._slots = slots
        self.layout = Layout()
        add = self.layout.add
        self._a = add("A", gemm.m, gemm.k, tile.bm, tile.bk, gemm.in_bytes)
        self._b = add("B", gemm.k, gemm.n, tile.bk, tile.bn, gemm.in_bytes)
        self._c = add("C", gemm.m, gemm.n, tile.bm, tile.bn, gemm.out_bytes)
        self._segments = self._run()
        self._pieces = self._partial_numbers()
        copies = int(self._pieces.max(initial=-1)) + 1
        self._partial: Region | None = None
        if copies:
            self._partial = add("partials", gemm.m, gemm.n, tile.bm, tile.bn, _PARTIAL_BYTES, copies)

    def _run(self) -> Segments:
        execution, count = self._execution, len(self._tiles)
        if execution.kind == "split-k" and min(execution.number, self._depth) > 1:
            return run_split_k(count, self._depth, self._slots, execution.number)
        if execution.kind in ("stream-k", "stream-k-hybrid"):
            return run_stream_k(count, self._depth, self._slots, execution.kind == "stream-k-hybrid")
        inside = execution.blocks_in_cluster
        if inside == 1:
            return run_tiles(count, self._depth, self._slots, execution)
        # clusters are dispatched as one; their blocks sit side by side
        whole = run_tiles(int(self._cluster.max()) + 1, self._depth, self._slots // inside, execution)
        of = self._cluster
        rows, cols = self._tiles[:, 0].astype(np.int64), self._tiles[:, 1].astype(np.int64)
        place = rows % execution.cluster[0] * execution.cluster[1] + cols % execution.cluster[1]
        slot = whole.slot[of] * inside + place
        tile = np.arange(count, dtype=np.int64)
        return Segments(
            tile, whole.begin[of], whole.end[of], whole.owner[of], slot, whole.start[of], whole.pace[of], whole.turn[of]
        )

    def _partial_numbers(self) -> NDArray[np.int64]:
        """Which partial tile of its tile each segment writes; -1 where it writes none."""
        s = self._segments
        number = np.full(len(s.tile), -1, np.int64)
        seen: dict[int, int] = {}
        for i in np.flatnonzero(~s.owner).tolist():
            tile = int(s.tile[i])
            number[i] = seen.get(tile, 0)
            seen[tile] = int(number[i]) + 1
        return number

    def _touches(self) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int32]]:
        s, gemm = self._segments, self._gemm
        rows, cols = (self._tiles[s.tile, i].astype(np.int64) for i in (0, 1))
        events = _Events(self._slots)
        segment, k, time = _steps(s, self._sawtooth)
        m, n = self._execution.cluster
        at = np.flatnonzero((cols % n == 0)[segment])  # the first block of a cluster row fetches A for all of it
        events.add(time[at], 1, s.slot[segment[at]], self._a.ids(rows[segment[at]], k[at]), READ, 0)
        at = np.flatnonzero((rows % m == 0)[segment])
        events.add(time[at], 1, s.slot[segment[at]], self._b.ids(k[at], cols[segment[at]]), READ, 1)
        end = s.start + (s.end - s.begin) * s.pace
        owners = np.flatnonzero(s.owner)
        final, slot_of, tile_of = end[owners], s.slot[owners], s.tile[owners]
        if self._partial is not None:
            writes = np.flatnonzero(self._pieces >= 0)
            ids = self._partial.ids(rows[writes], cols[writes], self._pieces[writes])
            events.add(end[writes], 0, s.slot[writes], ids, WRITE, 0)
            if len(owners):  # an owner waits for the last of its tile
                last = np.zeros(len(self._tiles))
                np.maximum.at(last, s.tile, end)
                final = np.maximum(final, last[tile_of])
            else:  # split-K: a second kernel, one block per tile
                tile_of = np.arange(len(self._tiles), dtype=np.int64)
                slot_of = tile_of % self._slots
                final = (end.max() + 1 + tile_of // self._slots).astype(np.float64)
            final = final + 1 / _TICKS  # partials are written before they are read
            reader = np.full(len(self._tiles), -1, np.int64)
            reader[tile_of] = np.arange(len(tile_of))
            by = reader[s.tile[writes]]
            events.add(final[by], 0, slot_of[by], ids, READ, 1)
        out = self._c.ids(self._tiles[tile_of, 0].astype(np.int64), self._tiles[tile_of, 1].astype(np.int64))
        if gemm.accumulate:
            events.add(final, 0, slot_of, out, READ, 2)
        events.add(final, 0, slot_of, out, WRITE, 3)
        return events.sorted()

    def trace(self, sms: int) -> Trace:
        """The touches; block slots are dealt to ``sms`` SMs in turn."""
        none: NDArray[np.int64] = np.empty(0, np.int64)
        count = min(sms, self._slots)
        ids, ops, slots = self._touches()

        def chunks() -> Iterator[TraceChunk]:
            for start in range(0, len(ids), _CHUNK):
                part = slice(start, start + _CHUNK)
                sm = slots[part] % np.int32(count)
                yield TraceChunk(ids[part], ops[part], none, 0, lambda sm=sm: sm)  # type: ignore[misc]

        lines, operand = self.layout.tile_lines(), self.layout.tile_operand()
        return Trace(
            tuple(self.layout.names), lines, operand, len(ids), chunks, operands=self.layout.shapes(), sms=count
        )

"""Fully associative FIFO, whole tiles at a time: a hit does not renew a tile's place in the queue."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from pebble.models.caches.base import CacheCounts, Chunk, Scratch, Touches, check_capacity, drive, sum_by_operand


@numba.njit(cache=True, nogil=True)
def _run(ids, ops, lines, operand, resident, dirty, queue, state, capacity, allocate, missed, write_backs):  # type: ignore[no-untyped-def]
    # The queue is a ring with room for every tile: a tile stands in it at most once. Only the first in it can be there
    # in part: then partial lines of it are left. resident[tile] is 0, 1, or 2 when it is there in part.
    size = queue.shape[0]
    head, tail, used, partial = state[0], state[1], state[2], state[3]
    for t in range(ids.shape[0]):
        tile = np.uint32(ids[t])  # unsigned: no test for a negative index
        if resident[tile] == 1:
            missed[t] = 0
            if ops[t] == 1:
                dirty[tile] = 1
            continue
        missed[t] = lines[tile]
        if resident[tile] == 2:  # each line that is left leaves just before it is reached
            head = head + 1 if head + 1 < size else 0
            used -= partial
            if dirty[tile]:
                dirty[tile] = 0
                write_backs[operand[tile]] += partial
            partial = 0
        elif ops[t] == 1 and not allocate:
            write_backs[operand[tile]] += lines[tile]
            continue
        used += lines[tile]
        while used > capacity:
            victim = np.uint32(queue[head])
            kept = partial if partial else lines[victim]
            gone = min(kept, used - capacity)
            if dirty[victim]:
                write_backs[operand[victim]] += gone
            used -= gone
            partial = kept - gone
            resident[victim] = 2
            if partial == 0:
                head = head + 1 if head + 1 < size else 0
                resident[victim] = 0
                dirty[victim] = 0
        resident[tile] = 1
        queue[tail] = tile
        tail = tail + 1 if tail + 1 < size else 0
        if ops[t] == 1:
            dirty[tile] = 1
    state[0], state[1], state[2], state[3] = head, tail, used, partial


class FifoEngine:
    """State of a FIFO; see `simulate_fifo`, and `LruEngine` for ``allocate``."""

    def __init__(self, stream: Touches, capacity_lines: int, allocate: bool = True) -> None:
        check_capacity(stream, capacity_lines)
        self._stream, self._capacity, self._allocate = stream, capacity_lines, allocate
        n = len(stream.tile_lines)
        self._resident, self._dirty = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
        self._queue = np.zeros(n + 1, np.int32)
        self._state = np.zeros(4, np.int64)
        self._missed = Scratch()
        self.write_backs = np.zeros(len(stream.operand_names), np.int64)

    def touch(self, chunk: Chunk) -> NDArray[np.int32]:
        """Missed lines of each touch."""
        missed = self._missed.of(len(chunk.ids))
        _run(
            chunk.ids,
            chunk.ops,
            self._stream.tile_lines,
            self._stream.tile_operand,
            self._resident,
            self._dirty,
            self._queue,
            self._state,
            self._capacity,
            self._allocate,
            missed,
            self.write_backs,
        )
        return missed

    def dirty(self) -> NDArray[np.int64]:
        """Lines that are dirty now, by operand."""
        left = self._dirty * self._stream.tile_lines
        first, partial = int(self._queue[self._state[0]]), int(self._state[3])
        if partial and left[first]:
            left[first] = partial
        return sum_by_operand(self._stream, left)


def simulate_fifo(stream: Touches, capacity_lines: int, warm: bool = False) -> CacheCounts:
    """FIFO over a touch stream; parameters, result and errors as `simulate_lru`."""
    return drive(FifoEngine(stream, capacity_lines), stream, warm)

"""Fully associative LRU, whole tiles at a time.

A tile hits exactly when the distinct lines touched since its last touch, its own included, fit in the cache;
a tile that has lost its oldest lines loses each next line just before it is reached, so it misses as a whole.

There is no list to relink: touches are logged in order, and the cache is what was logged at or after ``head``. The
oldest tile is found by moving ``head`` over entries that a later touch of the same tile has made void.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from pebble.models.caches.base import CacheCounts, Chunk, Scratch, Touches, check_capacity, drive, sum_by_operand

_NEVER = -1
_LEAST_LOG = 1 << 14


@numba.njit(cache=True, nogil=True)
def _pack(log, last, head, now):  # type: ignore[no-untyped-def]
    # Entries that still count, moved to the front of the log.
    at = 0
    for i in range(head, now):
        tile = log[i]
        if last[tile] == i:
            log[at] = tile
            last[tile] = at
            at += 1
    return at


@numba.njit(cache=True, nogil=True)
def _run(ids, ops, lines, operand, last, log, dirty, state, capacity, allocate, missed, write_backs):  # type: ignore[no-untyped-def]
    # last[tile] is the tile's newest entry in the log; it is in the cache if that is at or after head. Only the oldest
    # tile can be there in part: then head stands on it and partial lines of it are left.
    room = log.shape[0]
    used, partial, head, now = state[0], state[1], state[2], state[3]
    for t in range(ids.shape[0]):
        tile = np.uint32(ids[t])  # unsigned: no test for a negative index
        if now == room:
            for i in range(head):  # forget what left the cache, before its entries are overwritten
                if last[log[i]] == i:
                    last[log[i]] = _NEVER
            now = _pack(log, last, head, now)
            head = 0
        at = last[tile]
        if at > head or (at == head and partial == 0):
            missed[t] = 0
        else:
            missed[t] = lines[tile]
            if at == head and partial > 0:  # each line that is left leaves just before it is reached
                used -= partial
                if dirty[tile]:
                    dirty[tile] = 0
                    write_backs[operand[tile]] += partial
                partial = 0
            elif ops[t] == 1 and not allocate:
                write_backs[operand[tile]] += lines[tile]
                continue
            last[tile] = _NEVER
            used += lines[tile]
            while used > capacity:
                victim = np.uint32(log[head])
                if last[victim] != head:
                    head += 1
                    continue
                kept = partial if partial else lines[victim]
                gone = min(kept, used - capacity)
                if dirty[victim]:
                    write_backs[operand[victim]] += gone
                used -= gone
                partial = kept - gone
                if partial == 0:
                    head += 1
                    dirty[victim] = 0
        last[tile] = now
        log[now] = tile
        now += 1
        if ops[t] == 1:
            dirty[tile] = 1
    while partial == 0 and head < now and last[log[head]] != head:
        head += 1
    state[0], state[1], state[2], state[3] = used, partial, head, now


class LruEngine:
    """State of an LRU; see `simulate_lru`. Without ``allocate`` written lines that are not there go straight to DRAM:
    exact only on a stream of lines, because a tile may then be there in part.
    """

    def __init__(self, stream: Touches, capacity_lines: int, allocate: bool = True) -> None:
        check_capacity(stream, capacity_lines)
        self._stream, self._capacity, self._allocate = stream, capacity_lines, allocate
        n = len(stream.tile_lines)
        self._last: NDArray[np.int32] = np.full(n, _NEVER, np.int32)
        self._log = np.empty(max(4 * n, _LEAST_LOG), np.int32)
        self._dirty = np.zeros(n, np.uint8)
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
            self._last,
            self._log,
            self._dirty,
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
        oldest, partial = int(self._log[self._state[2]]), int(self._state[1])
        if partial and left[oldest]:
            left[oldest] = partial
        return sum_by_operand(self._stream, left)


def simulate_lru(stream: Touches, capacity_lines: int, warm: bool = False) -> CacheCounts:
    """LRU over a touch stream.

    Parameters
    ----------
    stream : Touches
        Tile touches in order.
    capacity_lines : int
        Capacity in 128-byte lines, at least the largest tile.
    warm : bool
        Begin with what a first run of the same stream leaves in the cache.

    Returns
    -------
    CacheCounts
        Misses and write-backs in lines, by operand. Cost: O(touches).

    Raises
    ------
    InputError
        The cache is smaller than the largest tile.
    """
    return drive(LruEngine(stream, capacity_lines), stream, warm)

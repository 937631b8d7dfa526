"""Fully associative LRU, whole tiles at a time.

A tile hits exactly when the distinct lines touched since its last touch, its own included, fit in the cache;
a tile that has lost its oldest lines loses each next line just before it is reached, so it misses as a whole.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from pebble.models.caches.base import CacheCounts, Chunk, Touches, check_capacity, drive, sum_by_operand

_ABSENT = -2


@numba.njit(cache=True, nogil=True)
def _run(ids, ops, lines, operand, newer, older, dirty, state, capacity, allocate, missed, write_backs):  # type: ignore[no-untyped-def]
    # A doubly linked list over tile numbers; its sentinel sits at index n, newest first. Only the oldest tile can be
    # there in part: then partial lines of it are left.
    n = lines.shape[0]
    used, partial = state[0], state[1]
    for t in range(ids.shape[0]):
        tile = ids[t]
        if newer[tile] != _ABSENT:
            newer[older[tile]] = newer[tile]
            older[newer[tile]] = older[tile]
            if partial == 0 or older[tile] != n:
                missed[t] = 0
            else:  # each line that is left leaves just before it is reached
                missed[t] = lines[tile]
                used += lines[tile] - partial
                if dirty[tile]:
                    dirty[tile] = 0
                    write_backs[operand[tile]] += partial
                partial = 0
        else:
            missed[t] = lines[tile]
            if ops[t] == 1 and not allocate:
                write_backs[operand[tile]] += lines[tile]
                continue
            used += lines[tile]
        while used > capacity:
            victim = newer[n]  # the sentinel's "newer" end is the oldest tile
            kept = partial if partial else lines[victim]
            gone = min(kept, used - capacity)
            if dirty[victim]:
                write_backs[operand[victim]] += gone
            used -= gone
            partial = kept - gone
            if partial == 0:
                newer[n] = newer[victim]
                older[newer[victim]] = n
                newer[victim] = _ABSENT
                dirty[victim] = 0
        head = older[n]
        older[n] = tile
        newer[tile] = n
        older[tile] = head
        newer[head] = tile
        if ops[t] == 1:
            dirty[tile] = 1
    state[0], state[1] = used, partial


class LruEngine:
    """State of an LRU; see `simulate_lru`. Without ``allocate`` written lines that are not there go straight to DRAM:
    exact only on a stream of lines, because a tile may then be there in part.
    """

    def __init__(self, stream: Touches, capacity_lines: int, allocate: bool = True) -> None:
        check_capacity(stream, capacity_lines)
        self._stream, self._capacity, self._allocate = stream, capacity_lines, allocate
        n = len(stream.tile_lines)
        self._newer: NDArray[np.int32] = np.full(n + 1, _ABSENT, np.int32)
        self._older: NDArray[np.int32] = np.full(n + 1, _ABSENT, np.int32)
        self._newer[n] = self._older[n] = n
        self._dirty = np.zeros(n, np.uint8)
        self._state = np.zeros(2, np.int64)
        self.write_backs = np.zeros(len(stream.operand_names), np.int64)

    def touch(self, chunk: Chunk) -> NDArray[np.int32]:
        """Missed lines of each touch."""
        missed = np.empty(len(chunk.ids), np.int32)
        _run(
            chunk.ids,
            chunk.ops,
            self._stream.tile_lines,
            self._stream.tile_operand,
            self._newer,
            self._older,
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
        oldest, partial = int(self._newer[-1]), int(self._state[1])
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

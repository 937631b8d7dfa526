"""Fully associative LRU, whole tiles at a time.

A tile hits exactly when the distinct lines touched since its last touch, its own included, fit in the cache;
a tile that has lost its oldest lines loses each next line just before it is reached, so it misses as a whole.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from pebble.models.caches.base import CacheCounts, Tally, Touches, check_capacity

_ABSENT = -2


@numba.njit(cache=True, nogil=True)
def _run(ids, ops, lines, operand, newer, older, dirty, state, capacity, missed, write_backs):  # type: ignore[no-untyped-def]
    # A doubly linked list over tile numbers; its sentinel sits at index n, newest first.
    n = lines.shape[0]
    used = state[0]
    for t in range(ids.shape[0]):
        tile = ids[t]
        if newer[tile] != _ABSENT:
            missed[t] = 0
            newer[older[tile]] = newer[tile]
            older[newer[tile]] = older[tile]
        else:
            missed[t] = lines[tile]
            used += lines[tile]
            while used > capacity:
                victim = newer[n]  # the sentinel's "newer" end is the oldest tile
                newer[n] = newer[victim]
                older[newer[victim]] = n
                newer[victim] = _ABSENT
                used -= lines[victim]
                if dirty[victim]:
                    dirty[victim] = 0
                    write_backs[operand[victim]] += lines[victim]
        head = older[n]
        older[n] = tile
        newer[tile] = n
        older[tile] = head
        newer[head] = tile
        if ops[t] == 1:
            dirty[tile] = 1
    state[0] = used


def simulate_lru(stream: Touches, capacity_lines: int) -> CacheCounts:
    """LRU over a touch stream.

    Parameters
    ----------
    stream : Touches
        Tile touches in order.
    capacity_lines : int
        Capacity in 128-byte lines, at least the largest tile.

    Returns
    -------
    CacheCounts
        Misses and write-backs in lines, by operand. Cost: O(touches).

    Raises
    ------
    InputError
        The cache is smaller than the largest tile.
    """
    check_capacity(stream, capacity_lines)
    lines, operand = stream.tile_lines, stream.tile_operand
    n = len(lines)
    newer: NDArray[np.int32] = np.full(n + 1, _ABSENT, np.int32)
    older: NDArray[np.int32] = np.full(n + 1, _ABSENT, np.int32)
    newer[n] = older[n] = n
    dirty = np.zeros(n, np.uint8)
    state = np.zeros(1, np.int64)
    write_backs = np.zeros(len(stream.operand_names), np.int64)
    tally = Tally(stream)
    for chunk in stream.chunks():
        missed = np.empty(len(chunk.ids), np.int32)
        _run(
            chunk.ids,
            chunk.ops,
            lines,
            operand,
            newer,
            older,
            dirty,
            state,
            capacity_lines,
            missed,
            write_backs,
        )
        tally.add(chunk, missed)
    left = dirty.astype(bool)
    write_backs += np.bincount(operand[left], weights=lines[left], minlength=len(write_backs)).astype(np.int64)
    return tally.counts(write_backs)

"""An L2 in partitions, as on A100, H100, H200, B200: each line has a home part, and other parts keep copies of it.

A read looks in the requester's part; a line that lives elsewhere is then looked up at its home, and if it misses there
too it is fetched once from DRAM and kept in both parts. A write goes to the home, updates the writer's copy and makes
every other copy out of date. Lines of a tile have their homes in turn, part by part. Each part has its share of
the capacity and its own LRU; an out-of-date copy keeps its place until it is read again or leaves.

Shared operands are so held once per part: the capacity that a kernel sees is well below the nominal one.
The two parts, "each L2 partition caches data for the SMs directly connected to it", are NVIDIA's (A100 white paper);
the rest is the simplest rule that agrees with measurements (``benchmarks/hardware_check.py``).
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from pebble.memory import check_memory
from pebble.models.caches.base import CacheCounts, Chunk, Scratch, Touches, check_capacity, drive, sum_by_operand
from pebble.models.caches.sm_map import part_of_sm, sm_of

_ABSENT = -2


@numba.njit(cache=True, nogil=True)
def _access(part, piece, parts, capacity, newer, older, state, sizes, dirty, operand, write_backs):  # type: ignore[no-untyped-def]
    # True on a hit; in any case the piece is the newest of that part afterwards. As in `lru`, the oldest piece of a
    # part may be there with state[1, part] lines only.
    n = newer.shape[1] - 1
    hit = False
    if newer[part, piece] != _ABSENT:
        newer[part, older[part, piece]] = newer[part, piece]
        older[part, newer[part, piece]] = older[part, piece]
        partial = state[1, part]
        hit = partial == 0 or older[part, piece] != n
        if not hit:
            state[0, part] += sizes[piece] - partial
            if piece % parts == part and dirty[piece]:
                dirty[piece] = 0
                write_backs[operand[piece // parts]] += partial
            state[1, part] = 0
    else:
        state[0, part] += sizes[piece]
    while state[0, part] > capacity:
        victim = newer[part, n]
        kept = state[1, part] if state[1, part] else sizes[victim]
        gone = min(kept, state[0, part] - capacity)
        home = victim % parts == part
        if home and dirty[victim]:
            write_backs[operand[victim // parts]] += gone
        state[0, part] -= gone
        state[1, part] = kept - gone
        if kept == gone:
            newer[part, n] = newer[part, victim]
            older[part, newer[part, victim]] = n
            newer[part, victim] = _ABSENT
            if home:
                dirty[victim] = 0
    head = older[part, n]
    older[part, n] = piece
    newer[part, piece] = n
    older[part, piece] = head
    newer[part, head] = piece
    return hit


@numba.njit(cache=True, nogil=True)
def _run(  # type: ignore[no-untyped-def]
    ids, ops, where, parts, sizes, operand, newer, older, stale, dirty, state, capacity, missed, write_backs,
):  # fmt: skip
    for t in range(ids.shape[0]):
        here = where[t]
        absent = 0
        for home in range(parts):
            piece = ids[t] * parts + home
            size = sizes[piece]
            if size == 0:
                continue
            if ops[t] == 1:
                if not _access(home, piece, parts, capacity, newer, older, state, sizes, dirty, operand, write_backs):
                    absent += size
                dirty[piece] = 1
                for other in range(parts):
                    if other != home:
                        stale[other, piece] = other != here
                continue
            if home != here:
                copied = _access(here, piece, parts, capacity, newer, older, state, sizes, dirty, operand, write_backs)
                copied = copied and not stale[here, piece]
                stale[here, piece] = 0
                if copied:
                    continue
            if not _access(home, piece, parts, capacity, newer, older, state, sizes, dirty, operand, write_backs):
                absent += size
        missed[t] = absent


def piece_lines(tile_lines: NDArray[np.int32], parts: int) -> NDArray[np.int32]:
    """Lines of each tile at home in each part, tile by tile: line i of a tile t, counted over all tiles, is at home in
    part (i + t) modulo ``parts``.

    Examples
    --------
    >>> piece_lines(np.array([3, 3], np.int32), 2).tolist()
    [2, 1, 2, 1]
    """
    lines = tile_lines.astype(np.int64)
    first = (np.cumsum(lines) - lines + np.arange(len(lines))) % parts
    offset = (np.arange(parts) - first[:, None]) % parts
    return np.asarray(np.maximum(0, -(-(lines[:, None] - offset) // parts)).ravel(), np.int32)


class PartitionedLruEngine:
    """State of such a cache; see `simulate_partitions`."""

    def __init__(self, stream: Touches, capacity_lines: int, parts: int, sm_map: str, seed: int) -> None:
        check_capacity(stream, capacity_lines, parts)
        self._stream, self._parts, self._capacity = stream, parts, capacity_lines // parts
        places = len(stream.tile_lines) * parts * (parts + 2)
        check_memory("policy", places, "tiles in parts", 9, "use fewer parts or larger tiles")
        self._sizes = piece_lines(stream.tile_lines, parts)
        n = len(self._sizes)
        self._newer: NDArray[np.int32] = np.full((parts, n + 1), _ABSENT, np.int32)
        self._older: NDArray[np.int32] = np.full((parts, n + 1), _ABSENT, np.int32)
        self._newer[:, n] = self._older[:, n] = n
        self._stale = np.zeros((parts, n), np.uint8)
        self._dirty = np.zeros(n, np.uint8)
        self._state = np.zeros((2, parts), np.int64)
        self._part = part_of_sm(stream.sms, parts, sm_map, seed)
        self._missed = Scratch()
        self.write_backs = np.zeros(len(stream.operand_names), np.int64)

    def touch(self, chunk: Chunk) -> NDArray[np.int32]:
        """Missed lines of each touch."""
        missed = self._missed.of(len(chunk.ids))
        where = sm_of(chunk, self._part)
        _run(
            chunk.ids, chunk.ops, where, self._parts, self._sizes, self._stream.tile_operand, self._newer, self._older,
            self._stale, self._dirty, self._state, self._capacity, missed, self.write_backs,
        )  # fmt: skip
        return missed

    def dirty(self) -> NDArray[np.int64]:
        """Lines that are dirty now, by operand."""
        left = self._dirty * self._sizes
        for part in range(self._parts):
            oldest, partial = int(self._newer[part, -1]), int(self._state[1, part])
            if partial and oldest % self._parts == part and left[oldest]:
                left[oldest] = partial
        return sum_by_operand(self._stream, left.reshape(-1, self._parts).sum(axis=1))


def simulate_partitions(
    stream: Touches, capacity_lines: int, parts: int = 2, sm_map: str = "random", seed: int = 0, warm: bool = False
) -> CacheCounts:
    """Partitions with LRU; parameters as for `simulate_oldest_of_k`. Cost: O(touches times parts)."""
    return drive(PartitionedLruEngine(stream, capacity_lines, parts, sm_map, seed), stream, warm)

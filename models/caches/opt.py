"""Belady's OPT, exact at line level, a whole tile touch at a time.

A line must be in the cache when it is touched, and on a miss the line whose next touch is farthest away leaves.
All lines of a tile are touched together, so tiles are ordered by their next touch, and inside a tile the
highest line is the farthest. A touched tile may itself be the farthest one: then each of its missing lines takes
the place of the line just before it, and of a whole gap only its last line stays. So the resident lines of a tile
are a few runs; whole-tile OPT would be wrong, and so would keeping "C - 1 lines between touches".

OPT is optimal for misses. With write-backs counted as well the offline optimum is NP-complete; the two are
reported apart.
"""

from __future__ import annotations

import numba
import numpy as np
from numba.cpython.unsafe.numbers import leading_zeros
from numpy.typing import NDArray

from pebble.memory import check_memory
from pebble.models.caches.base import CacheCounts, Tally, Touches, check_capacity

# Two whole-trace arrays of 4 bytes a touch; beyond this the machine's memory is at risk.
_TOUCH_BYTES = 20
_NEVER = 2**31 - 1


@numba.njit(cache=True, nogil=True)
def _next_touches(ids, following, last):  # type: ignore[no-untyped-def]
    for t in range(ids.shape[0] - 1, -1, -1):
        following[t] = last[ids[t]]
        last[ids[t]] = t


@numba.njit(cache=True, nogil=True)
def _mark(words, offsets, depth, position):  # type: ignore[no-untyped-def]
    for level in range(depth):
        at = np.uint64(offsets[level] + (position >> 6))
        word = words[at]
        words[at] = word | np.uint64(1) << np.uint64(position & 63)
        if word:  # the levels above know already
            return
        position >>= 6


@numba.njit(cache=True, nogil=True)
def _unmark(words, offsets, depth, position):  # type: ignore[no-untyped-def]
    for level in range(depth):
        at = offsets[level] + (position >> 6)
        words[at] &= ~(np.uint64(1) << np.uint64(position & 63))
        if words[at]:
            return
        position >>= 6


@numba.njit(cache=True, nogil=True)
def _farthest(words, offsets, depth):  # type: ignore[no-untyped-def]
    if words[offsets[depth - 1]] == 0:
        return -1
    position = np.int64(0)
    for level in range(depth - 1, -1, -1):
        word = words[offsets[level] + position]
        position = (position << 6) + 63 - np.int64(leading_zeros(word))  # type: ignore[call-arg]
    return position


@numba.njit(cache=True, nogil=True)
def _drop_highest(tile, count, runs, starts, ends):  # type: ignore[no-untyped-def]
    while count > 0:
        last = runs[tile] - 1
        length = ends[tile, last] - starts[tile, last]
        if length > count:
            ends[tile, last] -= count
            return
        count -= length
        runs[tile] = last


@numba.njit(cache=True, nogil=True)
def _run(  # type: ignore[no-untyped-def]
    ids, ops, following, lines, operand, kept, dirty, runs, starts, ends, words, offsets, depth, capacity,
    missed, write_backs,
):  # fmt: skip
    # A mark at position t says: the tile touched at t has resident lines until then. Marks that have passed stay: they
    # are never the farthest while there is a later one, and without one the tile at hand is the farthest itself.
    # Returns False when a tile needs more runs than there is room for.
    room = starts.shape[1]
    new_starts, new_ends = np.empty(3 * room + 4, np.int32), np.empty(3 * room + 4, np.int32)
    total = 0
    for t in range(ids.shape[0]):
        tile = np.uint32(ids[t])
        size = lines[tile]
        had = kept[tile]
        missed[t] = size - had
        upcoming = following[t] if following[t] >= 0 else _NEVER
        if had == size and upcoming != _NEVER:
            _mark(words, offsets, depth, upcoming)
            if ops[t] == 1:
                dirty[tile] = size
            continue
        count = 0
        at = 0
        for r in range(runs[tile] + 1):
            begin = starts[tile, r] if r < runs[tile] else size
            finish = ends[tile, r] if r < runs[tile] else size
            gap = begin - at
            if gap > 0:
                placed = min(gap, capacity - total)
                total += placed
                while placed < gap:
                    position = _farthest(words, offsets, depth)
                    own = position <= upcoming  # this tile's own lines are the farthest
                    if own and count + placed > 0:
                        break
                    victim = ids[position]
                    drop = min(gap - placed, kept[victim])
                    if own:
                        drop = 1
                    _drop_highest(victim, drop, runs, starts, ends)
                    kept[victim] -= drop
                    if dirty[victim] > kept[victim]:
                        write_backs[operand[victim]] += dirty[victim] - kept[victim]
                        dirty[victim] = kept[victim]
                    if kept[victim] == 0:
                        _unmark(words, offsets, depth, position)
                    placed += drop
                if placed > 0:
                    if count > 0 and new_ends[count - 1] == at:
                        new_ends[count - 1] = at + placed
                    else:
                        new_starts[count], new_ends[count] = at, at + placed
                        count += 1
                if placed < gap:  # each further line replaces the one before it; the gap's last line stays
                    new_ends[count - 1] -= 1
                    if new_ends[count - 1] == new_starts[count - 1]:
                        count -= 1
                    if count > 0 and new_ends[count - 1] == begin - 1:
                        new_ends[count - 1] = begin
                    else:
                        new_starts[count], new_ends[count] = begin - 1, begin
                        count += 1
            if finish > begin:
                if count > 0 and new_ends[count - 1] == begin:
                    new_ends[count - 1] = finish
                else:
                    new_starts[count], new_ends[count] = begin, finish
                    count += 1
            at = finish
        if count > room:
            return False
        now = 0
        for r in range(count):
            starts[tile, r], ends[tile, r] = new_starts[r], new_ends[r]
            now += new_ends[r] - new_starts[r]
        if upcoming == _NEVER:  # nothing of it is needed again: its lines are free at once
            total -= now
            now = 0
            count = 0
        runs[tile] = count
        kept[tile] = now
        if ops[t] == 1:
            dirty[tile] = size
        if dirty[tile] > now:  # where a tile is dirty in part, its clean lines are taken to leave first
            write_backs[operand[tile]] += dirty[tile] - now
            dirty[tile] = now
        if now > 0:
            _mark(words, offsets, depth, upcoming)
    return True


class OptRuns:
    """A stream made ready for OPT: any number of runs share one look ahead.

    Raises
    ------
    InputError
        The stream is too long.
    """

    def __init__(self, stream: Touches) -> None:
        advice = "OPT must see the whole trace, so use larger tiles or --policy lru"
        check_memory("policy opt", stream.touches, "touches", _TOUCH_BYTES, advice)
        self.stream = stream
        self.chunks = list(stream.chunks())
        one = len(self.chunks) == 1
        self._ids = self.chunks[0].ids if one else np.concatenate([c.ids for c in self.chunks])
        self._ops = self.chunks[0].ops if one else np.concatenate([c.ops for c in self.chunks])
        lines = stream.tile_lines
        self._following = np.empty(len(self._ids), np.int32)
        _next_touches(self._ids, self._following, np.full(len(lines), -1, np.int32))
        sizes = [len(self._ids) // 64 + 1]
        while sizes[-1] > 1:
            sizes.append((sizes[-1] - 1) // 64 + 1)
        self._depth = len(sizes)
        self._offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._missed = np.empty(len(self._ids), np.int32)
        self._most_runs = (int(lines.max()) + 1) // 2
        self._room = min(4, self._most_runs)

    def run(self, capacity_lines: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Missed lines of each touch (the array is used again by the next run), and write-backs by operand."""
        check_capacity(self.stream, capacity_lines)
        lines, operand = self.stream.tile_lines, self.stream.tile_operand
        while True:
            words = np.zeros(self._offsets[-1], np.uint64)
            kept, dirty, runs = (np.zeros(len(lines), np.int32) for _ in range(3))
            starts, ends = (np.zeros((len(lines), self._room), np.int32) for _ in range(2))
            write_backs = np.zeros(len(self.stream.operand_names), np.int64)
            if _run(
                self._ids, self._ops, self._following, lines, operand, kept, dirty, runs, starts, ends, words,
                self._offsets, self._depth, capacity_lines, self._missed, write_backs,
            ):  # fmt: skip
                return self._missed, write_backs
            self._room = min(4 * self._room, self._most_runs)

    def misses_lines(self, capacity_lines: int) -> int:
        """Lines that miss, reads and writes."""
        return int(self.run(capacity_lines)[0].sum(dtype=np.int64))


def simulate_opt(stream: Touches, capacity_lines: int) -> CacheCounts:
    """OPT over a touch stream: the fewest misses of any replacement policy of this capacity.

    Parameters
    ----------
    stream : Touches
        Tile touches in order, at most 4e8 of them (the whole stream is needed to look ahead).
    capacity_lines : int
        Capacity in 128-byte lines, at least the largest tile.

    Returns
    -------
    CacheCounts
        Misses and write-backs in lines, by operand. Cost: O(touches), 13 bytes a touch.

    Raises
    ------
    InputError
        The cache is smaller than the largest tile, or the stream is too long.

    Notes
    -----
    Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966.
    """
    runs = OptRuns(stream)
    missed, write_backs = runs.run(capacity_lines)
    tally = Tally(stream)
    start = 0
    for chunk in runs.chunks:
        tally.add(chunk, missed[start : start + len(chunk.ids)])
        start += len(chunk.ids)
    # a tile that nobody touches again leaves at once, so nothing is dirty at the end
    return tally.counts(write_backs, np.zeros_like(write_backs))

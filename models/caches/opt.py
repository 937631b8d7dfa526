"""Belady's OPT, exact at line level, a whole tile touch at a time.

A line must be in the cache when it is touched, and on a miss the line whose next touch is farthest away leaves.
All lines of a tile are touched together, so tiles are ordered by their next touch, and inside a tile the
highest line is the farthest. A touched tile may itself be the farthest one: then each of its missing lines takes
the place of the line just before it, and of a whole gap only its last line stays. So the resident lines of a tile
are a few runs; whole-tile OPT would be wrong, and so would keeping "C - 1 lines between touches".

OPT is optimal for misses (Belady, IBM Systems Journal 5(2), 1966). With write-backs counted as well the offline optimum
is NP-complete; the two are reported apart.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pebble.models.caches.policy import Bytes, CachePolicy, Counts, Engine, Numbers
from pebble.system.parallel import check_memory
from pebble.traces import WRITE, Trace, TraceChunk
from pebble.traces.jit import inner, intrinsic, jit

# Two whole-trace arrays of 4 bytes a touch; beyond this the machine's memory is at risk.
_TOUCH_BYTES = 20
_NEVER = 2**31 - 1

leading_zeros = intrinsic("numba.cpython.unsafe.numbers", "leading_zeros")


# A tile, and what the cache holds of it: lines that are absent, lines that are dirty, the runs of those that are there,
# and lines written back so far.
_TILE = np.dtype([("lines", "i4"), ("absent", "i4"), ("dirty", "i4"), ("runs", "i4"), ("backs", "i8")])
_RUN = np.dtype([("begin", "i4"), ("end", "i4")])  # consecutive lines of a tile
Records = NDArray[np.void]
Words = NDArray[np.uint64]


@jit
def _next_touches(ids: Numbers, following: Numbers, last: Numbers) -> None:
    for t in range(ids.shape[0] - 1, -1, -1):
        tile = np.uint32(ids[t])  # unsigned: no test for a negative index
        following[t] = last[tile]
        last[tile] = t


@inner
def _mark(words: Words, offsets: Counts, position: int) -> None:
    for level in range(offsets.shape[0] - 1):
        at = np.uint64(offsets[level] + (position >> 6))
        word = words[at]
        words[at] = word | np.uint64(1) << np.uint64(position & 63)
        if word:  # the levels above know already
            return
        position >>= 6


@inner
def _unmark(words: Words, offsets: Counts, position: np.int64) -> None:
    for level in range(offsets.shape[0] - 1):
        at = np.uint64(offsets[level] + (position >> 6))
        words[at] &= ~(np.uint64(1) << np.uint64(position & 63))
        if words[at]:
            return
        position >>= 6


@inner
def _farthest(words: Words, offsets: Counts) -> np.int64:
    depth = offsets.shape[0] - 1
    if words[offsets[depth - 1]] == 0:
        return np.int64(-1)
    position = np.int64(0)
    for level in range(depth - 1, -1, -1):
        word = words[np.uint64(offsets[level] + position)]
        position = (position << 6) + 63 - np.int64(leading_zeros(word))
    return position


@inner
def _drop(tile: np.uint32, count: int, tiles: Records, runs: Records) -> None:
    # The highest lines of a tile leave.
    tiles[tile].absent += count
    left = tiles[tile].lines - tiles[tile].absent
    if tiles[tile].dirty > left:  # its clean lines are taken to leave first
        tiles[tile].backs += tiles[tile].dirty - left
        tiles[tile].dirty = left
    if left == 0:
        tiles[tile].runs = 0
        return
    while count > 0:
        last = tiles[tile].runs - 1
        length = runs[tile, last].end - runs[tile, last].begin
        if length > count:
            runs[tile, last].end -= count
            return
        count -= length
        tiles[tile].runs = last


@inner
def _join(begin: int, end: int, count: int, runs: Records) -> int:
    # More lines behind the runs that there are; how many runs there are then.
    if count > 0 and runs[count - 1].end == begin:
        runs[count - 1].end = end
        return count
    runs[count].begin, runs[count].end = begin, end
    return count + 1


@jit
def _run(
    ids: Numbers, ops: Bytes, following: Numbers, capacity: int, tiles: Records, runs: Records, result: Records,
    words: Words, offsets: Counts, missed: Numbers,
) -> bool:  # fmt: skip
    # A mark at position t says: the tile touched at t has resident lines until then. Marks that have passed stay: they
    # are never the farthest while there is a later one, and without one the tile at hand is the farthest itself.
    # Returns False when a tile needs more runs than there is room for. found: room for the runs of one tile.
    free_capacity = runs.shape[1]
    total = 0
    for t in range(ids.shape[0]):
        tile = np.uint32(ids[t])
        absent = tiles[tile].absent
        missed[t] = absent
        upcoming = following[t]
        if absent == 0 and upcoming != _NEVER:
            _mark(words, offsets, upcoming)
            if ops[t] == WRITE:
                tiles[tile].dirty = tiles[tile].lines
            continue
        size = tiles[tile].lines
        count = 0
        at = 0
        for r in range(tiles[tile].runs + 1):
            begin = runs[tile, r].begin if r < tiles[tile].runs else size
            end = runs[tile, r].end if r < tiles[tile].runs else size
            gap = begin - at
            if gap > 0:
                placed = min(gap, capacity - total)
                total += placed
                while placed < gap:
                    position = _farthest(words, offsets)
                    own = position <= upcoming  # this tile's own lines are the farthest
                    if own and count + placed > 0:
                        break
                    victim = np.uint32(ids[position])
                    drop = 1 if own else min(gap - placed, tiles[victim].lines - tiles[victim].absent)
                    _drop(victim, drop, tiles, runs)
                    if tiles[victim].runs == 0:
                        _unmark(words, offsets, position)
                    placed += drop
                if placed > 0:
                    count = _join(at, at + placed, count, result)
                if placed < gap:  # each further line replaces the one before it; the gap's last line stays
                    result[count - 1].end -= 1
                    count -= result[count - 1].end == result[count - 1].begin
                    count = _join(begin - 1, begin, count, result)
            if end > begin:
                count = _join(begin, end, count, result)
            at = end
        if count > free_capacity:
            return False
        now = 0
        for r in range(count):
            runs[tile, r].begin, runs[tile, r].end = result[r].begin, result[r].end
            now += result[r].end - result[r].begin
        if upcoming == _NEVER:  # nothing of it is needed again: its lines are free at once
            total -= now
            now = 0
            count = 0
        tiles[tile].runs = count
        tiles[tile].absent = size - now
        if ops[t] == WRITE:
            tiles[tile].dirty = size
        if tiles[tile].dirty > now:
            tiles[tile].backs += tiles[tile].dirty - now
            tiles[tile].dirty = now
        if now > 0:
            _mark(words, offsets, upcoming)
    return True


class OptEngine(Engine):
    """OPT sees the whole trace: one look ahead serves runs at any number of capacities.

    Raises
    ------
    InputError
        The trace is too long.
    """

    def start(self) -> None:
        trace = self.trace
        advice = "OPT must see the whole trace, so use larger tiles or --policy lru"
        check_memory("policy opt", trace.touches, "touches", _TOUCH_BYTES, advice)
        self._chunks = list(trace.chunks_alone())
        whole, *more = self._chunks
        self._ids, self._ops = whole.ids, whole.ops
        if more:
            self._ids = np.concatenate([chunk.ids for chunk in self._chunks])
            self._ops = np.concatenate([chunk.ops for chunk in self._chunks])
        self._following = np.empty(len(self._ids), np.int32)
        _next_touches(self._ids, self._following, np.full(self.tiles, _NEVER, np.int32))
        sizes = [len(self._ids) // 64 + 1]
        while sizes[-1] > 1:
            sizes.append((sizes[-1] - 1) // 64 + 1)
        self._offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._all_missed = np.empty(len(self._ids), np.int32)
        self._most_runs = (int(self.lines.max()) + 1) // 2
        self._free_capacity = min(4, self._most_runs)
        self._at = 0

    def misses(self, capacity_lines: int) -> int:
        """Lines that miss at a capacity, reads and writes."""
        return int(self._at_capacity(capacity_lines).sum(dtype=np.int64))

    def _at_capacity(self, capacity_lines: int) -> NDArray[np.int32]:
        """Missed lines of each touch; the array is used again by the next run."""
        while True:
            tiles = np.zeros(self.tiles, _TILE)
            tiles["lines"] = tiles["absent"] = self.lines
            runs, result = (
                np.zeros((self.tiles, self._free_capacity), _RUN),
                np.zeros(3 * self._free_capacity + 4, _RUN),
            )
            words = np.zeros(self._offsets[-1], np.uint64)
            if _run(
                self._ids, self._ops, self._following, capacity_lines, tiles, runs, result, words, self._offsets,
                self._all_missed,
            ):  # fmt: skip
                self.write_backs[:] = self.by_operand(np.ascontiguousarray(tiles["backs"]))
                return self._all_missed
            self._free_capacity = min(4 * self._free_capacity, self._most_runs)

    def chunks(self) -> Sequence[TraceChunk]:
        return self._chunks

    def begin(self) -> None:
        self._at_capacity(self.capacity)

    def touch(self, chunk: TraceChunk) -> NDArray[np.int32]:
        self._at += len(chunk.ids)
        return self._all_missed[self._at - len(chunk.ids) : self._at]

    def dirty(self) -> NDArray[np.int64]:
        return self.zeros()  # a tile that nobody touches again leaves at once


def opt_misses(trace: Trace, capacities_lines: Sequence[int]) -> dict[int, int]:
    """Lines that OPT misses at each capacity, exactly, from few runs.

    Misses are convex in the capacity (all lines are alike). Between two capacities they are a straight line as soon as
    the slope at one end equals the chord. Else the lines that continue both ends cross between them, and there the
    rest is cut in two. Cost: up to three OPT runs for each corner between the capacities.

    Raises
    ------
    InputError
        The least capacity is smaller than the largest tile, or the trace too long.
    """
    wanted = sorted(set(capacities_lines))
    engine = OptEngine(trace, wanted[0], Opt(name="opt"))
    everything = int(trace.tile_lines.sum(dtype=np.int64))
    misses = cache(lambda capacity: engine.misses(min(capacity, everything)))
    result: dict[int, int] = {}
    todo = [(wanted[0], wanted[-1])]
    while todo:
        a, b = todo.pop()
        inside = wanted[bisect.bisect_left(wanted, a) : bisect.bisect_right(wanted, b)]
        rise, run = misses(b) - misses(a), b - a
        if len(inside) <= 4:  # proving a line takes as many runs
            result |= {capacity: misses(capacity) for capacity in inside}
            continue
        after, before = misses(a + 1) - misses(a), misses(b) - misses(b - 1)
        if rise in (after * run, before * run):
            result |= {capacity: misses(a) + rise * (capacity - a) // run for capacity in inside}
            continue
        middle = a + (rise - before * run) // (after - before)
        middle = min(max(middle, a + 1), b - 1)
        todo += [(a, middle), (middle, b)]
    return result


@dataclass(frozen=True, kw_only=True)
class Opt(CachePolicy):
    """``opt``: the fewest misses of any policy, with all of the trace known."""

    runs = OptEngine
    pattern = "opt"
    examples = ("opt",)
    options = frozenset()
    looks_ahead = True

    @property
    def what(self) -> str:
        return "fewest misses possible for this touch order (Belady), fully associative, exact at line level"

    @property
    def curve_note(self) -> str:
        return ""

    def curve(self, trace: Trace, capacities_lines: Sequence[int]) -> list[tuple[int, int]]:
        """From a few exact runs, where every written tile is touched that one time only."""
        touched, written = np.zeros((2, len(trace.tile_lines)), np.int64)
        for chunk in trace.chunks_alone():
            touched += np.bincount(chunk.ids, minlength=len(touched))
            written[chunk.ids[chunk.ops == WRITE]] = 1
        if np.any(touched[written == 1] != 1):
            return super().curve(trace, capacities_lines)
        backs = int((trace.tile_lines * written).sum())  # each is a miss and a write-back, whatever the capacity
        misses = opt_misses(trace, capacities_lines)
        return [(misses[capacity] - backs, backs) for capacity in capacities_lines]

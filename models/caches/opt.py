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

from pebble.models.caches.base import CachePolicy, Engine
from pebble.system.memory import check_memory
from pebble.traces import WRITE, Trace, TraceChunk
from pebble.traces.jit import intrinsic, jit

# Two whole-trace arrays of 4 bytes a touch; beyond this the machine's memory is at risk.
_TOUCH_BYTES = 20
_NEVER = 2**31 - 1

leading_zeros = intrinsic("numba.cpython.unsafe.numbers", "leading_zeros")


@jit
def _next_touches(ids, following, last):  # type: ignore[no-untyped-def]
    for t in range(ids.shape[0] - 1, -1, -1):
        following[t] = last[ids[t]]
        last[ids[t]] = t


@jit
def _mark(words, offsets, depth, position):  # type: ignore[no-untyped-def]
    for level in range(depth):
        at = np.uint64(offsets[level] + (position >> 6))
        word = words[at]
        words[at] = word | np.uint64(1) << np.uint64(position & 63)
        if word:  # the levels above know already
            return
        position >>= 6


@jit
def _unmark(words, offsets, depth, position):  # type: ignore[no-untyped-def]
    for level in range(depth):
        at = offsets[level] + (position >> 6)
        words[at] &= ~(np.uint64(1) << np.uint64(position & 63))
        if words[at]:
            return
        position >>= 6


@jit
def _farthest(words, offsets, depth):  # type: ignore[no-untyped-def]
    if words[offsets[depth - 1]] == 0:
        return -1
    position = np.int64(0)
    for level in range(depth - 1, -1, -1):
        word = words[offsets[level] + position]
        position = (position << 6) + 63 - np.int64(leading_zeros(word))
    return position


@jit
def _drop_highest(tile, count, runs, starts, ends):  # type: ignore[no-untyped-def]
    while count > 0:
        last = runs[tile] - 1
        length = ends[tile, last] - starts[tile, last]
        if length > count:
            ends[tile, last] -= count
            return
        count -= length
        runs[tile] = last


@jit
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
        one = len(self._chunks) == 1
        self._ids, self._ops = (
            getattr(self._chunks[0], name) if one else np.concatenate([getattr(c, name) for c in self._chunks])
            for name in ("ids", "ops")
        )
        self._following = np.empty(len(self._ids), np.int32)
        _next_touches(self._ids, self._following, np.full(self.tiles, -1, np.int32))
        sizes = [len(self._ids) // 64 + 1]
        while sizes[-1] > 1:
            sizes.append((sizes[-1] - 1) // 64 + 1)
        self._depth = len(sizes)
        self._offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._all_missed = np.empty(len(self._ids), np.int32)
        self._most_runs = (int(self.lines.max()) + 1) // 2
        self._room = min(4, self._most_runs)
        self._at = 0

    def misses(self, capacity_lines: int) -> int:
        """Lines that miss at a capacity, reads and writes."""
        return int(self._at_capacity(capacity_lines).sum(dtype=np.int64))

    def _at_capacity(self, capacity_lines: int) -> NDArray[np.int32]:
        """Missed lines of each touch; the array is used again by the next run."""
        while True:
            self.write_backs[:] = 0
            words = np.zeros(self._offsets[-1], np.uint64)
            kept, dirty, runs = np.zeros((3, self.tiles), np.int32)
            starts, ends = np.zeros((2, self.tiles, self._room), np.int32)
            if _run(
                self._ids, self._ops, self._following, self.lines, self.operand, kept, dirty, runs, starts, ends, words,
                self._offsets, self._depth, capacity_lines, self._all_missed, self.write_backs,
            ):  # fmt: skip
                return self._all_missed
            self._room = min(4 * self._room, self._most_runs)

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
    found: dict[int, int] = {}
    todo = [(wanted[0], wanted[-1])]
    while todo:
        a, b = todo.pop()
        inside = wanted[bisect.bisect_left(wanted, a) : bisect.bisect_right(wanted, b)]
        rise, run = misses(b) - misses(a), b - a
        if len(inside) <= 4:  # proving a line takes as many runs
            found |= {capacity: misses(capacity) for capacity in inside}
            continue
        after, before = misses(a + 1) - misses(a), misses(b) - misses(b - 1)
        if rise in (after * run, before * run):
            found |= {capacity: misses(a) + rise * (capacity - a) // run for capacity in inside}
            continue
        middle = a + (rise - before * run) // (after - before)
        middle = min(max(middle, a + 1), b - 1)
        todo += [(a, middle), (middle, b)]
    return found


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

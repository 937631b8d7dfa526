"""Random replacement, and its relative that hardware comes close to: evict the oldest of k randomly drawn lines.

k = 1 is random replacement; a large k approaches LRU. A line's age is when it was last touched in this cache.
With ``parts`` > 1 the cache is cut into partitions, as in `partitions`.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from pebble.memory import check_memory
from pebble.models.caches.base import CacheCounts, Chunk, Scratch, Touches, check_capacity, drive
from pebble.models.caches.sm_map import part_of_sm, sm_of


@numba.njit(cache=True, nogil=True, inline="always")
def _insert(at, part, line, k, capacity, stamps, slots, used, dirty, operand, random, write_backs):  # type: ignore[no-untyped-def]
    # The line takes a free slot, or that of the oldest of k drawn ones.
    if used[part] < capacity:
        slots[part, used[part]] = line
        used[part] += 1
    else:
        best = np.int64(0)
        oldest = np.int64(1) << 62
        x = random[0]
        for _ in range(k):
            x ^= x << np.uint64(13)
            x ^= x >> np.uint64(7)
            x ^= x << np.uint64(17)
            slot = np.int64(((x >> np.uint64(32)) * np.uint64(capacity)) >> np.uint64(32))
            age = stamps[part, slots[part, slot]]
            if age < oldest:
                best, oldest = slot, age
        random[0] = x
        victim = slots[part, best]
        stamps[part, victim] = 0
        if dirty[victim] == part + 1:
            dirty[victim] = 0
            write_backs[operand[victim]] += 1
        slots[part, best] = line
    stamps[part, line] = at


@numba.njit(cache=True, nogil=True)
def _run(  # type: ignore[no-untyped-def]
    ids, ops, where, first, count, operand, parts, k, capacity, allocate, stamps, stale, slots, used, dirty, random,
    clock, missed, write_backs,
):  # fmt: skip
    # dirty[line] is 0, or 1 + the partition that holds the dirty line: always its home.
    now = clock[0]
    for t in range(ids.shape[0]):
        tile = ids[t]
        here = where[t]
        absent = 0
        for line in range(first[tile], first[tile] + count[tile]):
            now += 1
            home = (line + tile) % parts if parts > 1 else 0
            if ops[t] == 1:
                if stamps[home, line] > 0:
                    stamps[home, line] = now
                    dirty[line] = home + 1
                else:
                    absent += 1
                    if allocate:
                        _insert(now, home, line, k, capacity, stamps, slots, used, dirty, operand, random, write_backs)
                        dirty[line] = home + 1
                    else:
                        write_backs[operand[line]] += 1
                if parts > 1:
                    for other in range(parts):  # copies elsewhere are out of date; the writer's own is updated
                        if other != home and stamps[other, line] > 0:
                            stale[other, line] = other != here
                continue
            if home != here:  # look for a copy first
                if stamps[here, line] > 0:
                    stamps[here, line] = now
                    if not stale[here, line]:
                        continue
                    stale[here, line] = 0
                else:
                    stale[here, line] = 0
                    _insert(now, here, line, k, capacity, stamps, slots, used, dirty, operand, random, write_backs)
            if stamps[home, line] > 0:
                stamps[home, line] = now
            else:
                absent += 1
                _insert(now, home, line, k, capacity, stamps, slots, used, dirty, operand, random, write_backs)
        missed[t] = absent
    clock[0] = now


class OldestOfKEngine:
    """State of such a cache; see `simulate_oldest_of_k`. All sizes are in granules of ``granule`` lines."""

    def __init__(
        self,
        stream: Touches,
        capacity_lines: int,
        k: int,
        parts: int = 1,
        sm_map: str = "random",
        seed: int = 0,
        allocate: bool = True,
        granule: int = 1,
    ) -> None:
        check_capacity(stream, capacity_lines, parts)
        self._granule = granule
        count = stream.tile_lines.astype(np.int64) // granule
        total = int(count.sum())
        check_memory("policy", total * parts, "lines to tell apart", 10, "use lru or a smaller problem")
        self._count, self._first = count, np.cumsum(count) - count
        self._operand = np.repeat(stream.tile_operand, count)
        self._names = len(stream.operand_names)
        self._parts, self._k, self._allocate = parts, k, allocate
        self._capacity = min(capacity_lines // granule // parts, total)  # more is never filled
        self._stamps = np.zeros((parts, total), np.int64)
        self._stale = np.zeros((parts, total if parts > 1 else 1), np.uint8)
        self._slots = np.zeros((parts, self._capacity), np.int32)
        self._used = np.zeros(parts, np.int64)
        self._dirty = np.zeros(total, np.uint8)
        self._random = np.array([np.random.default_rng(seed).integers(1, 2**63)], np.uint64)
        self._clock = np.zeros(1, np.int64)
        self._part = part_of_sm(stream.sms, parts, sm_map, seed)
        self._backs = np.zeros(self._names, np.int64)
        self._missed = Scratch()
        self.write_backs = self._backs

    def touch(self, chunk: Chunk) -> NDArray[np.int32]:
        """Missed lines of each touch."""
        missed = self._missed.of(len(chunk.ids))
        where = sm_of(chunk, self._part)
        _run(
            chunk.ids, chunk.ops, where, self._first, self._count, self._operand, self._parts, self._k, self._capacity,
            self._allocate, self._stamps, self._stale, self._slots, self._used, self._dirty, self._random, self._clock,
            missed, self._backs,
        )  # fmt: skip
        self.write_backs = self._backs * self._granule
        return missed * np.int32(self._granule)

    def dirty(self) -> NDArray[np.int64]:
        """Lines that are dirty now, by operand."""
        return np.bincount(self._operand[self._dirty > 0], minlength=self._names).astype(np.int64) * self._granule


def common_granule(stream: Touches, parts: int, most: int) -> int:
    """The largest power of two up to ``most`` that divides every tile's share of a partition."""
    granule = most
    while granule > 1 and np.any(stream.tile_lines % (granule * parts)):
        granule //= 2
    return granule


def simulate_oldest_of_k(
    stream: Touches,
    capacity_lines: int,
    k: int,
    parts: int = 1,
    sm_map: str = "random",
    seed: int = 0,
    allocate: bool = True,
    granule: int = 1,
    warm: bool = False,
) -> CacheCounts:
    """Evict the oldest of ``k`` lines drawn at random.

    Parameters
    ----------
    stream, capacity_lines, warm
        As for `simulate_lru`; the capacity is that of all partitions together.
    k : int
        Lines drawn for each eviction, from 1.
    parts : int
        Partitions; see `partitions`.
    sm_map : str
        Which SM is in which partition; see `sm_map`.
    seed : int
        Of the drawing and of a random ``sm_map``.
    allocate : bool
        False: a written line that is not in the cache goes straight to DRAM.
    granule : int
        Lines that move together, dividing every tile's share of a partition. 1 is the model itself; more is the same
        model on a coarser scale, about that many times faster.

    Returns
    -------
    CacheCounts
        Cost: O(lines touched), and k draws for each miss.
    """
    engine = OldestOfKEngine(stream, capacity_lines, k, parts, sm_map, seed, allocate, granule)
    return drive(engine, stream, warm)

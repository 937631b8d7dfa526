"""The oldest of k drawn granules as its text says: every granule's own stamp, in every part, one draw at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from pebble.models.caches.oldest_of_k import OldestOfKEngine
from pebble.models.caches.replacement import seeded
from pebble.traces import TraceChunk


class Granules(NamedTuple):
    """What a granule is: its operand, how many lines it stands for, and where those of each tile begin."""

    first: np.ndarray
    count: np.ndarray
    operand: np.ndarray
    sizes: np.ndarray


class Parts(NamedTuple):
    """What each part of the cache holds; ``dirty`` is 0, or 1 + the part that holds the dirty line: always its home."""

    stamps: np.ndarray
    stale: np.ndarray
    slots: np.ndarray
    used: np.ndarray
    dirty: np.ndarray
    random: np.ndarray
    clock: np.ndarray
    write_backs: np.ndarray


@njit(cache=True)
def drawn(random, limit):
    x = random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = x
    return np.int64(((x >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))


@njit(cache=True)
def _insert(at, part, line, k, granules, held):
    capacity = held.slots.shape[1]
    # The line takes a free slot, or that of the oldest of k drawn ones.
    if held.used[part] < capacity:
        held.slots[part, held.used[part]] = line
        held.used[part] += 1
    else:
        best = np.int64(0)
        oldest = np.int64(1) << 62
        for _ in range(k):
            slot = drawn(held.random, capacity)
            age = held.stamps[part, held.slots[part, slot]]
            if age < oldest:
                best, oldest = slot, age
        victim = held.slots[part, best]
        held.stamps[part, victim] = 0
        if held.dirty[victim] == part + 1:
            held.dirty[victim] = 0
            held.write_backs[granules.operand[victim]] += granules.sizes[victim]
        held.slots[part, best] = line
    held.stamps[part, line] = at


@njit(cache=True)
def _run(ids, ops, where, k, allocate, granules, held, missed):
    stamps, stale, dirty, sizes, parts = held.stamps, held.stale, held.dirty, granules.sizes, len(held.used)
    now = held.clock[0]
    for t in range(ids.shape[0]):
        tile = ids[t]
        here = where[t]
        absent = 0
        for line in range(granules.first[tile], granules.first[tile] + granules.count[tile]):
            now += 1
            home = (line + tile) % parts if parts > 1 else 0
            if ops[t] == 1:
                if stamps[home, line] > 0:
                    stamps[home, line] = now
                    dirty[line] = home + 1
                else:
                    absent += sizes[line]
                    if allocate:
                        _insert(now, home, line, k, granules, held)
                        dirty[line] = home + 1
                    else:
                        held.write_backs[granules.operand[line]] += sizes[line]
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
                    _insert(now, here, line, k, granules, held)
            if stamps[home, line] > 0:
                stamps[home, line] = now
            else:
                absent += sizes[line]
                _insert(now, home, line, k, granules, held)
        missed[t] = absent
    held.clock[0] = now


class EveryGranule(OldestOfKEngine):
    """The same sizes, granules and seed; nothing else is shared."""

    def start(self) -> None:
        super().start()
        parts = self.policy.parts
        self.count = -(-self.lines.astype(np.int64) // self._granule)
        total = int(self.count.sum())
        self.sizes = np.full(total, self._granule)
        pads = self.count * self._granule - self.lines
        self.sizes[(np.cumsum(self.count) - 1)[self.count > 0]] -= pads[self.count > 0]
        self.first = np.cumsum(self.count) - self.count
        self.granule_operand = np.repeat(self.operand, self.count)
        self.stamps = np.zeros((parts, total), np.int64)
        self.stale = np.zeros((parts, total), np.uint8)
        self.slots = np.zeros((parts, self.capacity // self._granule), np.int32)
        self.used, self.clock = np.zeros(parts, np.int64), np.zeros(1, np.int64)
        self.is_dirty, self.random = np.zeros(total, np.uint8), seeded(self.policy.seed)

    def run(self, chunk: TraceChunk, missed: np.ndarray) -> None:
        granules = Granules(self.first, self.count, self.granule_operand, self.sizes)
        held = Parts(self.stamps, self.stale, self.slots, self.used, self.is_dirty, self.random, self.clock,
                     self.write_backs)  # fmt: skip
        policy = self.policy
        _run(chunk.ids, chunk.ops, self._where.of(chunk), policy.drawn, policy.write_allocate, granules, held, missed)

    def dirty(self) -> np.ndarray:
        result = self.zeros()
        np.add.at(result, self.granule_operand[self.is_dirty > 0], self.sizes[self.is_dirty > 0])
        return result

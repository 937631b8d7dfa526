"""Random replacement, and its relative that hardware comes close to: evict the oldest of k randomly drawn lines.

k = 1 is random replacement; a large k approaches LRU. A line's age is when it was last touched in this cache.
With ``parts`` > 1 the cache is cut into partitions, as in `partitions`. Cost: O(lines touched), and k draws a miss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches.base import CachePolicy, Engine, draw, seeded
from pebble.models.caches.sm_map import PartsOfSms
from pebble.traces import TraceChunk
from pebble.traces.jit import inlined, jit

_MAX_LINES = 2_000_000_000
_MAX_K = 1024


@inlined
def _insert(at, part, line, k, capacity, stamps, slots, used, dirty, operand, random, granule, write_backs):  # type: ignore[no-untyped-def]
    # The line takes a free slot, or that of the oldest of k drawn ones.
    if used[part] < capacity:
        slots[part, used[part]] = line
        used[part] += 1
    else:
        best = np.int64(0)
        oldest = np.int64(1) << 62
        for _ in range(k):
            slot = draw(random, capacity)
            age = stamps[part, slots[part, slot]]
            if age < oldest:
                best, oldest = slot, age
        victim = slots[part, best]
        stamps[part, victim] = 0
        if dirty[victim] == part + 1:
            dirty[victim] = 0
            write_backs[operand[victim]] += granule
        slots[part, best] = line
    stamps[part, line] = at


@jit
def _run(  # type: ignore[no-untyped-def]
    ids, ops, where, first, count, operand, parts, k, capacity, allocate, stamps, stale, slots, used, dirty, random,
    granule, clock, missed, write_backs,
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
                        _insert(
                            now, home, line, k, capacity, stamps, slots, used, dirty, operand, random, granule,
                            write_backs,
                        )  # fmt: skip
                        dirty[line] = home + 1
                    else:
                        write_backs[operand[line]] += granule
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
                    _insert(
                        now, here, line, k, capacity, stamps, slots, used, dirty, operand, random, granule, write_backs
                    )  # fmt: skip
            if stamps[home, line] > 0:
                stamps[home, line] = now
            else:
                absent += 1
                _insert(
                    now, home, line, k, capacity, stamps, slots, used, dirty, operand, random, granule, write_backs
                )  # fmt: skip
        missed[t] = absent * granule
    clock[0] = now


class OldestOfKEngine(Engine):
    """The oldest of the policy's ``k`` drawn lines leaves.

    In partitions up to 16 lines move together, as many as divide every tile's share of each: the same to 0.5 % and
    several times faster. The arrays count these granules.
    """

    most_granule = 16

    def start(self) -> None:
        parts = self.policy.parts
        self._where = PartsOfSms(self.trace, self.policy)
        self._granule = self.most_granule if parts > 1 else 1
        while np.any(self.lines % (self._granule * parts)) and self._granule > 1:
            self._granule //= 2
        self._count = self.lines.astype(np.int64) // self._granule
        total = int(self._count.sum())
        if total * parts > _MAX_LINES:
            raise InputError(f"policy: got {total} lines to tell apart, expected at most {_MAX_LINES // parts}.")
        self._first = np.cumsum(self._count) - self._count
        self._line_operand = np.repeat(self.operand, self._count)
        self._stamps = np.zeros((parts, total), np.int64)
        self._stale = np.zeros((parts, total if parts > 1 else 1), np.uint8)
        self._slots = np.zeros((parts, self.capacity // self._granule), np.int32)
        self._used = np.zeros(parts, np.int64)
        self._dirty = np.zeros(total, np.uint8)
        self._random = seeded(self.policy.seed)
        self._clock = np.zeros(1, np.int64)

    def run(self, chunk: TraceChunk, missed: NDArray[np.int32]) -> None:
        p = self.policy
        _run(
            chunk.ids, chunk.ops, self._where.of(chunk), self._first, self._count, self._line_operand, p.parts, p.drawn,
            self._slots.shape[1], p.write_allocate, self._stamps, self._stale, self._slots, self._used, self._dirty,
            self._random, self._granule, self._clock, missed, self.write_backs,
        )  # fmt: skip

    def dirty(self) -> NDArray[np.int64]:
        return np.bincount(self._line_operand[self._dirty > 0], minlength=len(self.write_backs)) * self._granule


@dataclass(frozen=True, kw_only=True)
class OldestOfK(CachePolicy):
    """``random`` and ``oldest-of-K``: one cache, the oldest of K lines drawn at random leaves."""

    runs = OldestOfKEngine
    pattern = "(?P<replacement>random|oldest-of-[0-9]{1,4})"
    examples = ("random", "oldest-of-4")

    @property
    def what(self) -> str:
        return f"{self.order}, fully associative"

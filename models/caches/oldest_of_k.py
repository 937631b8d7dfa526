"""Random replacement, and its relative that hardware comes close to: evict the oldest of k randomly drawn lines.

k = 1 is random replacement; a large k approaches LRU. A line's age is when it was last touched in this cache.
With ``parts`` > 1 the cache is cut into partitions, as in `partitions`. Cost: O(lines touched), and k draws a miss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches.base import CachePolicy, Engine
from pebble.models.caches.draws import Draws, refill
from pebble.models.caches.sm_map import PartsOfSms
from pebble.traces import TraceChunk
from pebble.traces.jit import inlined, jit

_MAX_LINES = 2_000_000_000
_LATEST = (1 << 63) - 1


@jit
def _run(  # type: ignore[no-untyped-def]
    ids, ops, where, first, parts, k, capacity, allocate, bits, shift, groups, slot_of, slots, dirty, used, drawn,
    cursor, states, ahead, operand, granule_lines, clock, missed, write_backs,
):  # fmt: skip
    mask = (np.int64(1) << bits) - 1
    whole = np.int64(1) << shift
    now = clock[0]
    at = cursor[0]
    for t in range(ids.shape[0]):
        tile = np.int64(ids[t])
        part = np.int64(where[t])
        write = ops[t] == 1
        now += 1
        time = now << bits
        absent = 0
        for group in range(first[tile], first[tile + 1]):
            if not write and (groups[group * parts + part] & mask) == whole:
                groups[group * parts + part] = time | whole
                continue
            home = ((group << shift) + tile) % parts
            for granule in range(group << shift, (group + 1) << shift):
                key = time | granule
                asked = home if write else part  # a read looks for a copy first
                while True:
                    place = granule * parts + asked
                    held = np.int64(slot_of[place])
                    fetched = True
                    if held != 0:
                        fetched = held < 0
                        slot = abs(held) - 1
                        slots[slot] = key
                        if fetched:
                            slot_of[place] = -held
                            groups[group * parts + asked] += 1
                    elif asked == home and write and not allocate:
                        write_backs[operand[group]] += granule_lines
                        absent += 1
                    else:
                        absent += asked == home
                        slot = asked * capacity
                        if used[asked] < capacity:
                            slot += used[asked]
                            used[asked] += 1
                        else:
                            if at == drawn.shape[0]:
                                refill(states, ahead, capacity, drawn)
                                at = 0
                            start = slot
                            oldest = np.int64(_LATEST)
                            for i in range(at, at + k):
                                touched = slots[np.uint64(start + np.int64(drawn[np.uint64(i)]))]
                                other = touched & mask
                                read = (groups[np.uint64((other >> shift) * parts + asked)] & ~mask) | other
                                oldest = min(max(touched, read), oldest)
                            at += k
                            gone = oldest & mask
                            left = np.int64(slot_of[gone * parts + asked])
                            slot = abs(left) - 1
                            slot_of[gone * parts + asked] = 0
                            groups[(gone >> shift) * parts + asked] -= left > 0
                            if dirty[slot]:
                                dirty[slot] = 0
                                write_backs[operand[gone >> shift]] += granule_lines
                        slots[slot] = key
                        slot_of[place] = slot + 1
                        groups[group * parts + asked] += 1
                    if asked == home or not fetched:
                        break
                    asked = home
                if write:
                    held = np.int64(slot_of[granule * parts + home])
                    if held != 0:
                        dirty[held - 1] = 1
                    for other in range(parts):  # copies elsewhere are out of date; the writer's own is updated
                        held = np.int64(slot_of[granule * parts + other])
                        if other != home and held != 0 and (held < 0) != (other != part):
                            slot_of[granule * parts + other] = -held
                            groups[group * parts + other] += 1 if held < 0 else -1
                home += 1
                if home == parts:
                    home = 0
        missed[t] = absent * granule_lines
    clock[0] = now
    cursor[0] = at


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
        counts = self.lines.astype(np.int64) // self._granule
        total = int(counts.sum())
        if total * parts > _MAX_LINES:
            raise InputError(f"policy: got {total} lines to tell apart, expected at most {_MAX_LINES // parts}.")
        self._shift = 0
        while not np.any(counts % (2 << self._shift)):
            self._shift += 1
        counts >>= self._shift
        self._first = np.concatenate([[0], np.cumsum(counts)])
        self._group_operand = np.repeat(self.operand, counts)
        slots = self.capacity // self._granule
        self._bits = total.bit_length()
        self._groups = np.zeros((total >> self._shift) * parts, np.int64)
        self._slot_of = np.zeros(total * parts, np.int32)
        self._slots = np.zeros(parts * slots, np.int64)
        self._dirty = np.zeros(parts * slots, np.uint8)
        self._used = np.zeros(parts, np.int64)
        self._draws = Draws(self.policy.seed, self.policy.drawn)
        self._clock = np.zeros(1, np.int64)

    @property
    def enough_lines(self) -> int | None:
        most = int(self._used.max())  # granules in any part
        return most * self._granule * self.policy.parts if most < len(self._slots) // self.policy.parts else None

    def run(self, chunk: TraceChunk, missed: NDArray[np.int32]) -> None:
        p, draws = self.policy, self._draws
        _run(
            chunk.ids, chunk.ops, self._where.of(chunk), self._first, p.parts, p.drawn, len(self._slots) // p.parts,
            p.write_allocate, self._bits, self._shift, self._groups, self._slot_of, self._slots, self._dirty,
            self._used, draws.drawn, draws.cursor, draws.states, draws.ahead, self._group_operand, self._granule,
            self._clock, missed, self.write_backs,
        )  # fmt: skip

    def dirty(self) -> NDArray[np.int64]:
        left = self._slots[self._dirty > 0] & ((1 << self._bits) - 1)
        operands = self._group_operand[left >> self._shift]
        return np.bincount(operands, minlength=len(self.write_backs)) * self._granule


@dataclass(frozen=True, kw_only=True)
class OldestOfK(CachePolicy):
    """``random`` and ``oldest-of-K``: one cache, the oldest of K lines drawn at random leaves."""

    runs = OldestOfKEngine
    pattern = "(?P<replacement>random|oldest-of-[0-9]{1,4})"
    examples = ("random", "oldest-of-4")

    @property
    def what(self) -> str:
        return f"{self.order}, fully associative"

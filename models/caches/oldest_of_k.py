"""Random replacement, and its relative that hardware comes close to: evict the oldest of k randomly drawn lines.

k = 1 is random replacement; a large k approaches LRU. A line's age is when it was last touched in this cache.
With ``parts`` > 1 the cache is cut into partitions, as in `partitions`.

The engine finds what a line by line simulation finds, to the last victim, without looking at every line. Lines stand
in groups, each within one tile. A read of a group of which a part holds all lines, none out of date, touches just
these, in order; so it is put down once, as the group's. A line's age in a part is the later of its own last touch and
its group's: within one touch of a tile lines come in the order of their numbers, so (touch, line) orders all touches.
The last group of a tile may be smaller than the others; the numbers of the lines that it lacks stay unused.
Cost: O(1) for a group that is there, else O(its lines), and k draws for each line that is placed in a full part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches.base import CachePolicy, Engine
from pebble.models.caches.draws import Draws, refill
from pebble.models.caches.sm_map import PartsOfSms
from pebble.system.parallel import reserve
from pebble.traces import TraceChunk
from pebble.traces.jit import jit

_MAX_LINES = 2_000_000_000
_MAX_SHIFT = 6
_MOST_UNUSED = 1 / 4  # numbers of lines, of those in use
_LATEST = (1 << 63) - 1


@jit
def _run(  # type: ignore[no-untyped-def]
    ids, ops, where, first, sizes, ranks, lasts, parts, k, capacity, allocate, bits, shift, groups, slot_of, slots,
    dirty, used, drawn, cursor, states, ahead, operand, granule_lines, clock, missed, write_backs,
):  # fmt: skip
    # Times are (touch << bits) | granule. groups[group * parts + part]: (the last touch of all its granules << bits) |
    # how many of its sizes[group] are there and up to date. slot_of[granule * parts + part]: 0 where absent, else the
    # slot + 1, negative where the copy is out of date. slots: the last touch of the granule in it alone; it names the
    # granule. ranks[group]: how many granules come before it; lasts[group]: lines of its last one.
    # One loop without calls: arrays that are handed on cost atomic counts, which no processor overlaps.
    number = (np.int64(1) << bits) - 1
    now = clock[0]
    at = cursor[0]
    for t in range(ids.shape[0]):
        tile = np.int64(ids[t])
        part = np.int64(where[t])
        write = ops[t] == 1
        now += 1
        absent = 0
        for group in range(first[tile], first[tile + 1]):
            whole = sizes[group]
            if not write and (groups[group * parts + part] & number) == whole:
                groups[group * parts + part] = now << bits | whole
                continue
            home = (ranks[group] + tile) % parts
            end = (group << shift) + whole
            for granule in range(group << shift, end):
                time = now << bits | granule
                here = granule_lines if granule + 1 < end else lasts[group]
                asked = home if write else part  # a read looks for a copy first
                while True:
                    place = granule * parts + asked
                    held = np.int64(slot_of[place])
                    found = held > 0
                    if held != 0:
                        slot = abs(held) - 1
                        slots[slot] = time
                        if not found:
                            slot_of[place] = -held
                            groups[group * parts + asked] += 1
                    elif write and not allocate:
                        absent += here
                        write_backs[operand[group]] += here
                    else:  # it takes a free slot, or that of the oldest of k drawn ones
                        if asked == home:
                            absent += here
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
                                alone = slots[np.uint64(start + np.int64(drawn[np.uint64(i)]))]
                                other = alone & number
                                together = (groups[np.uint64((other >> shift) * parts + asked)] & ~number) | other
                                oldest = min(max(alone, together), oldest)
                            at += k
                            gone = oldest & number
                            left = np.int64(slot_of[gone * parts + asked])
                            slot = abs(left) - 1
                            slot_of[gone * parts + asked] = 0
                            groups[(gone >> shift) * parts + asked] -= left > 0
                            if dirty[slot]:
                                dirty[slot] = 0
                                lost = gone >> shift
                                whole_lost = gone + 1 < (lost << shift) + sizes[lost]
                                write_backs[operand[lost]] += granule_lines if whole_lost else lasts[lost]
                        slots[slot] = time
                        slot_of[place] = slot + 1
                        groups[group * parts + asked] += 1
                    if found or asked == home:
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
        missed[t] = absent
    clock[0] = now
    cursor[0] = at


def _padding(counts: NDArray[np.int64], of: int) -> int:
    """What rounding each count up to a multiple adds."""
    return int((-counts % of).sum())


class OldestOfKEngine(Engine):
    """The oldest of the policy's ``k`` drawn lines leaves.

    In partitions up to 16 lines move together, as many as divide every tile's share of each: the same to 0.5 % and
    several times faster. A few small tiles at an edge that they do not divide may take a little more room than they
    have lines; lines are counted as they are. The arrays count these granules.
    """

    most_granule = 16
    most_padding = 1 / 256  # of all lines

    def start(self) -> None:
        parts = self.policy.parts
        self._where = PartsOfSms(self.trace, self.policy)
        self._granule = self.most_granule if parts > 1 else 1
        lines = self.lines.astype(np.int64)
        while self._granule > 1 and _padding(lines, self._granule * parts) > self.most_padding * lines.sum():
            self._granule //= 2
        counts = -(-lines // self._granule)
        self._shift = _MAX_SHIFT
        while self._shift and _padding(counts, 1 << self._shift) > _MOST_UNUSED * counts.sum():
            self._shift -= 1
        groups_of = -(-counts >> self._shift)
        total = int(groups_of.sum()) << self._shift
        self._bits = total.bit_length()
        if total * parts > _MAX_LINES or 2 * self.trace.touches >= 1 << (63 - self._bits):  # twice: +warm
            raise InputError(f"policy: got {total} lines to tell apart, expected at most {_MAX_LINES // parts}.")
        self._first = np.concatenate([[0], np.cumsum(groups_of)])
        self._group_operand = np.repeat(self.operand, groups_of)
        last = self._first[1:][counts > 0] - 1  # the last group of each tile
        self._sizes = np.full(len(self._group_operand), 1 << self._shift)
        self._sizes[last] -= ((groups_of << self._shift) - counts)[counts > 0]
        self._ranks = np.cumsum(self._sizes) - self._sizes
        self._lasts = np.full(len(self._group_operand), self._granule)
        self._lasts[last] -= (counts * self._granule - lines)[counts > 0]
        self._most = min(self.capacity // self._granule, total + 1)  # granules of a part; more are never there
        groups = parts * len(self._group_operand)
        reserve(8 * groups + 24 * len(self._sizes) + 4 * parts * total + 9 * parts * self._most)
        self._groups = np.zeros(groups, np.int64)
        self._slot_of = np.zeros(parts * total, np.int32)
        self._slots = np.zeros(parts * self._most, np.int64)
        self._dirty = np.zeros(parts * self._most, np.uint8)
        self._used = np.zeros(parts, np.int64)
        self._k = self.policy.drawn
        self._draws = Draws(self.policy.seed, self._k)
        self._clock = np.zeros(1, np.int64)

    @property
    def enough_lines(self) -> int | None:
        fullest = int(self._used.max())
        return fullest * self._granule * self.policy.parts if fullest < self._most else None

    def run(self, chunk: TraceChunk, missed: NDArray[np.int32]) -> None:
        p, draws = self.policy, self._draws
        _run(
            chunk.ids, chunk.ops, self._where.of(chunk), self._first, self._sizes, self._ranks, self._lasts, p.parts,
            self._k, self._most, p.write_allocate, self._bits, self._shift, self._groups, self._slot_of, self._slots,
            self._dirty, self._used, draws.drawn, draws.cursor, draws.states, draws.ahead, self._group_operand,
            self._granule, self._clock, missed, self.write_backs,
        )  # fmt: skip

    def dirty(self) -> NDArray[np.int64]:
        left = self._slots[self._dirty > 0] & ((1 << self._bits) - 1)
        groups = left >> self._shift
        ends = left + 1 == (groups << self._shift) + self._sizes[groups]
        lines = np.where(ends, self._lasts[groups], self._granule)
        found = self.zeros()
        np.add.at(found, self._group_operand[groups], lines)
        return found


@dataclass(frozen=True, kw_only=True)
class OldestOfK(CachePolicy):
    """``random`` and ``oldest-of-K``: one cache, the oldest of K lines drawn at random leaves."""

    runs = OldestOfKEngine
    pattern = "(?P<replacement>random|oldest-of-[0-9]{1,4})"
    examples = ("random", "oldest-of-4")

    @property
    def what(self) -> str:
        return f"{self.order}, fully associative"

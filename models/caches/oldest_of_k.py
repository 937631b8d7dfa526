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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches.policy import Bytes, Counts, Engine, Numbers
from pebble.models.caches.replacement import Draws, Replacing, refill
from pebble.models.caches.sm_map import PartitionsOfSms
from pebble.system.parallel import reserve
from pebble.traces import TraceChunk
from pebble.traces.jit import inlined, jit

_MAX_LINES = 2_000_000_000
_MAX_SHIFT = 6
_MOST_UNUSED = 1 / 4  # numbers of lines, of those in use
_LATEST = (1 << 63) - 1


class Groups(NamedTuple):
    """Lines of a tile that stand together, ``1 << shift`` granules but for a tile's last group."""

    first: Counts  #: the first group of each tile, and the end, shape (tiles + 1,)
    sizes: Counts  #: granules of each
    ranks: Counts  #: how many granules come before it
    lasts: Counts  #: lines of its last granule
    operand: Bytes


class Cache(NamedTuple):
    """What is there. A time is ``touch << bits | granule``."""

    #: (last touch of all of a group's granules << bits) | how many are there and up to date, at group * parts + part
    groups: Counts
    #: 0 where absent, else the slot + 1, negative where the copy is out of date, at granule * parts + part
    slot_of: Numbers
    slots: Counts  #: the last touch of the granule in it alone; it names the granule
    dirty: Bytes  #: by slot
    used: Counts  #: slots of each part


class Setting(NamedTuple):
    """Numbers that stay as they are."""

    parts: int
    k: int
    capacity: int  #: slots of a part
    allocate: bool
    bits: int
    shift: int
    granule_lines: int


class _Block(NamedTuple):
    """`Draws`, as the loop reads it."""

    drawn: NDArray[np.uint32]
    cursor: Counts
    states: NDArray[np.uint64]
    ahead: NDArray[np.uint64]


@inlined
def _oldest(
    alone: Counts, groups: Counts, drawn: NDArray[np.uint32], at: int, setting: Setting, part: np.int64
) -> np.int64:
    # The time that is the least of k drawn slots of a part.
    start = part * setting.capacity
    number = (np.int64(1) << setting.bits) - 1
    oldest = np.int64(_LATEST)
    for i in range(at, at + setting.k):
        time = alone[np.uint64(start + np.int64(drawn[np.uint64(i)]))]
        other = time & number
        together = (groups[np.uint64((other >> setting.shift) * setting.parts + part)] & ~number) | other
        oldest = min(max(time, together), oldest)
    return oldest


@jit
def _run(
    ids: Numbers, ops: Bytes, where: Numbers, tiles: Groups, cache: Cache, setting: Setting, draws: _Block,
    clock: Counts, missed: Numbers, write_backs: Counts,
) -> None:  # fmt: skip
    # One loop without calls: arrays that are handed on cost atomic counts, which no processor overlaps.
    first, sizes, ranks, lasts, operand = tiles
    groups, slot_of, slots, dirty, used = cache
    parts, _, capacity, allocate, bits, shift, granule_lines = setting
    drawn, cursor, states, ahead = draws
    number = (np.int64(1) << bits) - 1
    now, at = clock[0], cursor[0]
    for t in range(ids.shape[0]):
        tile, part = np.int64(ids[t]), np.int64(where[t])
        write = ops[t] == 1
        now, absent = now + 1, 0
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
                requested = home if write else part  # a read looks for a copy first
                while True:
                    place = granule * parts + requested
                    held = np.int64(slot_of[place])
                    result = held > 0
                    if held != 0:
                        slot = abs(held) - 1
                        slots[slot] = time
                        if not result:
                            slot_of[place] = -held
                            groups[group * parts + requested] += 1
                    elif write and not allocate:
                        absent += here
                        write_backs[operand[group]] += here
                    else:  # it takes a free slot, or that of the oldest of k drawn ones
                        if requested == home:
                            absent += here
                        slot = requested * capacity
                        if used[requested] < capacity:
                            slot += used[requested]
                            used[requested] += 1
                        else:
                            if at == drawn.shape[0]:
                                refill(states, ahead, capacity, drawn)
                                at = 0
                            gone = _oldest(slots, groups, drawn, at, setting, requested) & number
                            at += setting.k
                            left = np.int64(slot_of[gone * parts + requested])
                            slot = abs(left) - 1
                            slot_of[gone * parts + requested] = 0
                            groups[(gone >> shift) * parts + requested] -= left > 0
                            if dirty[slot]:
                                dirty[slot] = 0
                                lost = gone >> shift
                                whole_lost = gone + 1 < (lost << shift) + sizes[lost]
                                write_backs[operand[lost]] += granule_lines if whole_lost else lasts[lost]
                        slots[slot] = time
                        slot_of[place] = slot + 1
                        groups[group * parts + requested] += 1
                    if result or requested == home:
                        break
                    requested = home
                if write:
                    held = np.int64(slot_of[granule * parts + home])
                    if held != 0:
                        dirty[held - 1] = 1
                    for other in range(parts):  # copies elsewhere are out of date; the writer's own is updated
                        held = np.int64(slot_of[granule * parts + other])
                        if other != home and held != 0 and (held < 0) != (other != part):
                            slot_of[granule * parts + other] = -held
                            groups[group * parts + other] += 1 if held < 0 else -1
                home = home + 1 if home + 1 < parts else 0
        missed[t] = absent
    clock[0], cursor[0] = now, at


def _padding(counts: NDArray[np.int64], of: int) -> int:
    """What rounding each count up to a multiple adds."""
    return int((-counts % of).sum())


class OldestOfKEngine(Engine):
    """The oldest of the policy's ``k`` drawn lines leaves.

    In partitions up to 16 lines move together, as many as divide every tile's share of each: the same to 0.5 % and
    several times faster. A few small tiles at an edge that they do not divide may take a little more room than they
    have lines; lines are counted as they are. The arrays count these granules.
    """

    policy: Replacing
    most_granule = 16
    most_padding = 1 / 256  # of all lines

    def start(self) -> None:
        parts = self.policy.parts
        self._where = PartitionsOfSms(self.trace, self.policy)
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
        first = np.concatenate([[0], np.cumsum(groups_of)])
        last = first[1:][counts > 0] - 1  # the last group of each tile
        sizes, lasts = np.full(first[-1], 1 << self._shift), np.full(first[-1], self._granule)
        sizes[last] -= ((groups_of << self._shift) - counts)[counts > 0]
        lasts[last] -= (counts * self._granule - lines)[counts > 0]
        self._most = min(self.capacity // self._granule, total + 1)  # granules of a part; more are never there
        groups = parts * len(sizes)
        reserve(8 * groups + 24 * len(sizes) + 4 * parts * total + 9 * parts * self._most)
        self._cache = Cache(
            np.zeros(groups, np.int64), np.zeros(parts * total, np.int32), np.zeros(parts * self._most, np.int64),
            np.zeros(parts * self._most, np.uint8), np.zeros(parts, np.int64),
        )  # fmt: skip
        self._tiles = Groups(first, sizes, np.cumsum(sizes) - sizes, lasts, np.repeat(self.operand, groups_of))
        p = self.policy
        self._setting = Setting(parts, p.drawn, self._most, p.write_allocate, self._bits, self._shift, self._granule)
        self._draws = Draws(p.seed, p.drawn)
        self._clock = np.zeros(1, np.int64)

    @property
    def enough_lines(self) -> int | None:
        fullest = int(self._cache.used.max())
        return fullest * self._granule * self.policy.parts if fullest < self._most else None

    def run(self, chunk: TraceChunk, missed: NDArray[np.int32]) -> None:
        draws = self._draws
        _run(
            chunk.ids, chunk.ops, self._where.of(chunk), self._tiles, self._cache, self._setting,
            _Block(draws.drawn, draws.cursor, draws.states, draws.ahead), self._clock, missed, self.write_backs,
        )  # fmt: skip

    def dirty(self) -> NDArray[np.int64]:
        left = self._cache.slots[self._cache.dirty > 0] & ((1 << self._bits) - 1)
        groups = left >> self._shift
        ends = left + 1 == (groups << self._shift) + self._tiles.sizes[groups]
        lines = np.where(ends, self._tiles.lasts[groups], self._granule)
        result = self.zeros()
        np.add.at(result, self._tiles.operand[groups], lines)
        return result


@dataclass(frozen=True, kw_only=True)
class OldestOfK(Replacing):
    """``random`` and ``oldest-of-K``: one cache, the oldest of K lines drawn at random leaves."""

    runs = OldestOfKEngine
    pattern = "(?P<replacement>random|oldest-of-[0-9]{1,4})"
    examples = ("random", "oldest-of-4")

"""A private L2 on each chiplet and one memory-side cache in front of DRAM, as on MI300X.

A chiplet's L2 keeps what its own SMs touch; what it misses is looked up in the memory-side cache, which keeps a copy of
all that passes. A written tile is dirty in the writer's L2, and other chiplets' copies are out of date; it reaches the
memory-side cache when it leaves that L2 or another chiplet reads it. Both levels are LRU over whole tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches.policy import Bytes, Counts, Engine, Numbers, check_capacity
from pebble.models.caches.replacement import ABSENT, Replacing, empty_lists, leave, place
from pebble.models.caches.sm_map import PartitionsOfSms, check_parts
from pebble.system.parallel import check_memory
from pebble.traces import LINE_BYTES, TraceChunk
from pebble.traces.jit import inner, jit


class Levels(NamedTuple):
    """What is in the L2 of each chiplet, and at the last level in the memory-side cache, by tile."""

    newer: Numbers
    older: Numbers  #: lists by recency, `recency`
    stale: Bytes  #: whether the copy in an L2 is out of date, shape (chiplets, tiles)
    owner: Numbers  #: the chiplet whose L2 has it dirty, or -1
    dirty: Bytes  #: in the memory-side cache
    used: Counts  #: lines of each level
    limits: Counts  #: the most of them


@inner
def _last_level(
    tile: int, dirties: bool, lines: Numbers, operand: Bytes, newer: Numbers, older: Numbers, used: Counts,
    limits: Counts, dirty: Bytes, write_backs: Counts,
) -> bool:  # fmt: skip
    # A touch of the memory-side cache; True on a hit.
    parts, n = newer.shape[0] - 1, lines.shape[0]
    hit: bool = newer[parts, tile] != ABSENT
    if hit:
        leave(parts, tile, newer, older)
    else:
        used[parts] += lines[tile]
        while used[parts] > limits[parts]:
            victim = newer[parts, n]
            leave(parts, victim, newer, older)
            newer[parts, victim] = ABSENT
            used[parts] -= lines[victim]
            if dirty[victim]:
                dirty[victim] = 0
                write_backs[operand[victim]] += lines[victim]
    place(parts, tile, newer, older)
    if dirties:
        dirty[tile] = 1
    return hit


@jit
def _run(
    ids: Numbers, ops: Bytes, where: Numbers, lines: Numbers, operand: Bytes, cache: Levels, missed: Numbers,
    write_backs: Counts,
) -> None:  # fmt: skip
    newer, older, stale, owner, dirty, used, limits = cache
    parts, n = newer.shape[0] - 1, lines.shape[0]
    for t in range(ids.shape[0]):
        tile, here = ids[t], where[t]
        hit = newer[here, tile] != ABSENT
        if hit:
            leave(here, tile, newer, older)
        else:
            used[here] += lines[tile]
            while used[here] > limits[here]:
                victim = newer[here, n]
                leave(here, victim, newer, older)
                newer[here, victim] = ABSENT
                used[here] -= lines[victim]
                if owner[victim] == here:
                    owner[victim] = -1
                    _last_level(victim, True, lines, operand, newer, older, used, limits, dirty, write_backs)
        place(here, tile, newer, older)
        valid = hit and not stale[here, tile]
        stale[here, tile] = 0
        missed[t] = 0
        if ops[t] == 1:
            if not valid:
                missed[t] = lines[tile]
            owner[tile] = here
            for other in range(parts):
                stale[other, tile] = other != here
        elif not valid:
            if owner[tile] >= 0:
                owner[tile] = -1
                _last_level(tile, True, lines, operand, newer, older, used, limits, dirty, write_backs)
            if not _last_level(tile, False, lines, operand, newer, older, used, limits, dirty, write_backs):
                missed[t] = lines[tile]


class ChipletEngine(Engine):
    """The L2s and the memory-side cache."""

    def start(self) -> None:
        parts, last_level_lines = self.policy.parts, self.policy.last_level_bytes // LINE_BYTES
        check_capacity(self.trace, self.capacity)
        check_capacity(self.trace, last_level_lines)
        self._where = PartitionsOfSms(self.trace, self.policy, default="interleaved")
        check_memory("policy", self.tiles * (parts + 1), "tiles in parts", 9, "use fewer parts or larger tiles")
        marks, owner = np.zeros((parts + 1, self.tiles), np.uint8), np.full(self.tiles, -1, np.int32)
        used, limits = np.zeros(parts + 1, np.int64), np.array([self.capacity] * parts + [last_level_lines], np.int64)
        self._cache = Levels(*empty_lists(parts + 1, self.tiles), marks[:-1], owner, marks[-1], used, limits)

    def run(self, chunk: TraceChunk, missed: NDArray[np.int32]) -> None:
        """A read misses lines fetched from DRAM; a write those that the writer's L2 did not hold."""
        _run(
            chunk.ids, chunk.ops, self._where.of(chunk), self.lines, self.operand, self._cache, missed,
            self.write_backs,
        )  # fmt: skip

    def dirty(self) -> NDArray[np.int64]:
        """At either level, each line counted once."""
        return self.by_operand(((self._cache.dirty > 0) | (self._cache.owner >= 0)) * self.lines)


@dataclass(frozen=True, kw_only=True)
class Chiplets(Replacing):
    """``chiplets-P+llc-SIZE``: a private LRU on each of P chiplets, and a memory-side cache."""

    runs = ChipletEngine
    pattern = "chiplets-(?P<parts>[0-9]{1,2})"
    examples = ("chiplets-8+llc-256MiB",)
    structure = "chiplets"
    replacements = "lru"
    options = frozenset({"warm", "llc"})

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parts(self)
        if self.last_level_bytes == 0:
            raise InputError(f"policy: got {self.name!r}, expected +llc-SIZE with chiplets.")

    def least_lines(self, tile_lines: int) -> int:
        """Each chiplet's L2 holds a whole tile."""
        return tile_lines * self.parts

    @property
    def what(self) -> str:
        last = f"{self.last_level_bytes / 2**20:g} MiB"
        return f"{self.order} in a private L2 on each of {self.parts} chiplets, then a memory-side cache of {last}"

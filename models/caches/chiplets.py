"""A private L2 on each chiplet and one memory-side cache in front of DRAM, as on MI300X.

A chiplet's L2 keeps what its own SMs touch; what it misses is looked up in the memory-side cache, which keeps a copy of
all that passes. A written tile is dirty in the writer's L2, and other chiplets' copies are out of date; it reaches the
memory-side cache when it leaves that L2 or another chiplet reads it. Both levels are LRU over whole tiles.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from pebble.memory import check_memory
from pebble.models.caches.base import CacheCounts, Chunk, Scratch, Touches, check_capacity, drive, sum_by_operand
from pebble.models.caches.sm_map import part_of_sm, sm_of

_ABSENT = -2


@numba.njit(cache=True, nogil=True)
def _place(level, tile, newer, older):  # type: ignore[no-untyped-def]
    n = newer.shape[1] - 1
    head = older[level, n]
    older[level, n] = tile
    newer[level, tile] = n
    older[level, tile] = head
    newer[level, head] = tile


@numba.njit(cache=True, nogil=True)
def _leave(level, tile, newer, older):  # type: ignore[no-untyped-def]
    newer[level, older[level, tile]] = newer[level, tile]
    older[level, newer[level, tile]] = older[level, tile]


@numba.njit(cache=True, nogil=True)
def _last_level(tile, dirties, parts, lines, operand, newer, older, used, limits, dirty, write_backs):  # type: ignore[no-untyped-def]
    # A touch of the memory-side cache, level ``parts``; True on a hit.
    n = lines.shape[0]
    hit = newer[parts, tile] != _ABSENT
    if hit:
        _leave(parts, tile, newer, older)
    else:
        used[parts] += lines[tile]
        while used[parts] > limits[parts]:
            victim = newer[parts, n]
            _leave(parts, victim, newer, older)
            newer[parts, victim] = _ABSENT
            used[parts] -= lines[victim]
            if dirty[victim]:
                dirty[victim] = 0
                write_backs[operand[victim]] += lines[victim]
    _place(parts, tile, newer, older)
    if dirties:
        dirty[tile] = 1
    return hit


@numba.njit(cache=True, nogil=True)
def _run(  # type: ignore[no-untyped-def]
    ids, ops, where, parts, lines, operand, newer, older, stale, owner, used, limits, dirty, missed, write_backs,
):  # fmt: skip
    # owner[tile] is the chiplet whose L2 has it dirty, or -1.
    n = lines.shape[0]
    for t in range(ids.shape[0]):
        tile, here = ids[t], where[t]
        hit = newer[here, tile] != _ABSENT
        if hit:
            _leave(here, tile, newer, older)
        else:
            used[here] += lines[tile]
            while used[here] > limits[here]:
                victim = newer[here, n]
                _leave(here, victim, newer, older)
                newer[here, victim] = _ABSENT
                used[here] -= lines[victim]
                if owner[victim] == here:
                    owner[victim] = -1
                    _last_level(victim, True, parts, lines, operand, newer, older, used, limits, dirty, write_backs)
        _place(here, tile, newer, older)
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
                _last_level(tile, True, parts, lines, operand, newer, older, used, limits, dirty, write_backs)
            if not _last_level(tile, False, parts, lines, operand, newer, older, used, limits, dirty, write_backs):
                missed[t] = lines[tile]


class ChipletEngine:
    """State of such a memory; see `simulate_chiplets`."""

    def __init__(
        self, stream: Touches, capacity_lines: int, last_level_lines: int, parts: int, sm_map: str, seed: int
    ) -> None:
        check_capacity(stream, capacity_lines // parts)
        check_capacity(stream, last_level_lines)
        self._stream, self._parts = stream, parts
        n = len(stream.tile_lines)
        levels = parts + 1
        check_memory("policy", n * levels, "tiles in parts", 9, "use fewer parts or larger tiles")
        self._newer: NDArray[np.int32] = np.full((levels, n + 1), _ABSENT, np.int32)
        self._older: NDArray[np.int32] = np.full((levels, n + 1), _ABSENT, np.int32)
        self._newer[:, n] = self._older[:, n] = n
        self._stale = np.zeros((parts, n), np.uint8)
        self._owner: NDArray[np.int32] = np.full(n, -1, np.int32)
        self._dirty = np.zeros(n, np.uint8)
        self._used = np.zeros(levels, np.int64)
        self._limits = np.array([capacity_lines // parts] * parts + [last_level_lines], np.int64)
        self._part = part_of_sm(stream.sms, parts, sm_map, seed)
        self._missed = Scratch()
        self.write_backs = np.zeros(len(stream.operand_names), np.int64)

    def touch(self, chunk: Chunk) -> NDArray[np.int32]:
        """Lines of each touch fetched from DRAM; for a write, lines that the writer's L2 did not hold."""
        missed = self._missed.of(len(chunk.ids))
        where = sm_of(chunk, self._part)
        _run(
            chunk.ids, chunk.ops, where, self._parts, self._stream.tile_lines, self._stream.tile_operand, self._newer,
            self._older, self._stale, self._owner, self._used, self._limits, self._dirty, missed, self.write_backs,
        )  # fmt: skip
        return missed

    def dirty(self) -> NDArray[np.int64]:
        """Lines that are dirty now at either level, by operand, each counted once."""
        return sum_by_operand(self._stream, ((self._dirty > 0) | (self._owner >= 0)) * self._stream.tile_lines)


def simulate_chiplets(
    stream: Touches,
    capacity_lines: int,
    last_level_lines: int,
    parts: int = 8,
    sm_map: str = "interleaved",
    seed: int = 0,
    warm: bool = False,
) -> CacheCounts:
    """Private L2s behind one memory-side cache; ``capacity_lines`` is that of all L2s together."""
    return drive(ChipletEngine(stream, capacity_lines, last_level_lines, parts, sm_map, seed), stream, warm)

"""Sectored lines: room is kept for whole 128-byte lines, data move in 32-byte sectors. Fully associative LRU.

A touch that needs part of a line (a tile narrower than a line, or the end of a row) fetches and writes back only the
sectors that it means. Counts are in sectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.models.caches.policy import Bytes, Counts, Engine, Numbers
from pebble.models.caches.replacement import ABSENT, Replacing, empty_lists, leave, place
from pebble.traces import Trace, TraceChunk, by_lines
from pebble.traces.jit import jit
from pebble.traces.layout import SECTOR_BYTES

_ALL = 0b1111
_SET_BITS = np.array([mask.bit_count() for mask in range(16)], np.int64)


class Held(NamedTuple):
    """What is there, by line."""

    newer: Numbers
    older: Numbers  #: lists by recency, `recency`
    valid: Bytes  #: sectors that are there
    dirty: Bytes  #: those of them that are dirty
    used: Counts  #: lines, and the most of them


@jit
def _run(
    ids: Numbers, ops: Bytes, sectors: Bytes, bits: Counts, operand: Bytes, cache: Held, missed: Numbers,
    touched: Counts, write_backs: Counts,
) -> None:  # fmt: skip
    newer, older, valid, dirty, used = cache
    n = operand.shape[0]
    for t in range(ids.shape[0]):
        line = ids[t]
        mask = sectors[t]
        if newer[0, line] != ABSENT:
            leave(0, line, newer, older)
        elif used[0] < used[1]:
            used[0] += 1
        else:
            victim = newer[0, n]
            leave(0, victim, newer, older)
            newer[0, victim] = ABSENT
            write_backs[operand[victim]] += bits[dirty[victim]]
            valid[victim] = 0
            dirty[victim] = 0
        place(0, line, newer, older)
        missed[t] = bits[mask & ~valid[line]]
        touched[operand[line]] += bits[mask]
        valid[line] |= mask
        if ops[t] == 1:
            dirty[line] |= mask


class SectoredEngine(Engine):
    """Over a trace of lines; all counts are of sectors."""

    unit_bytes = SECTOR_BYTES

    def start(self) -> None:
        valid, dirty = np.zeros((2, self.tiles), np.uint8)
        self._cache = Held(*empty_lists(1, self.tiles), valid, dirty, np.array([0, self.capacity], np.int64))
        self._touched = self.zeros()

    def run(self, chunk: TraceChunk, missed: NDArray[np.int32]) -> None:
        sectors = np.full(len(chunk.ids), _ALL, np.uint8) if chunk.sectors is None else chunk.sectors
        _run(
            chunk.ids, chunk.ops, sectors, _SET_BITS, self.operand, self._cache, missed, self._touched,
            self.write_backs,
        )  # fmt: skip

    def begin(self) -> None:
        super().begin()
        self._touched[:] = 0

    def accesses(self, touched: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._touched

    def dirty(self) -> NDArray[np.int64]:
        return self.by_operand(_SET_BITS[self._cache.dirty])


@dataclass(frozen=True, kw_only=True)
class Sectored(Replacing):
    """``sectored``: room for 128-byte lines, data in 32-byte sectors, LRU."""

    runs = SectoredEngine
    pattern = "sectored"
    examples = ("sectored",)
    structure = "sectored"
    replacements = "lru"
    options = frozenset({"warm"})

    @property
    def what(self) -> str:
        return f"{self.order}, fully associative, 128-byte lines fetched by 32-byte sectors"

    def view(self, trace: Trace) -> Trace:
        return by_lines(trace)

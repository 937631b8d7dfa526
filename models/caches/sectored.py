"""Sectored lines: room is kept for whole 128-byte lines, data move in 32-byte sectors. Fully associative LRU.

A touch that needs part of a line (a tile narrower than a line, or the end of a row) fetches and writes back only the
sectors that it means. Counts are in sectors.
"""

from __future__ import annotations

from dataclasses import replace

import numba
import numpy as np
from numpy.typing import NDArray

from pebble.models.caches.base import CacheCounts, Chunk, Scratch, Touches, as_tuple, check_capacity, drive
from pebble.models.caches.lines import LineStream

SECTOR_BYTES = 32
_ABSENT = -2
_ALL = 0b1111
_SET_BITS = np.array([bin(mask).count("1") for mask in range(16)], np.int64)


@numba.njit(cache=True, nogil=True)
def _run(  # type: ignore[no-untyped-def]
    ids, ops, sectors, bits, operand, newer, older, valid, dirty, used, capacity, missed, touched, write_backs,
):  # fmt: skip
    n = operand.shape[0]
    for t in range(ids.shape[0]):
        line = ids[t]
        mask = sectors[t]
        if newer[line] != _ABSENT:
            newer[older[line]] = newer[line]
            older[newer[line]] = older[line]
        elif used[0] < capacity:
            used[0] += 1
        else:
            victim = newer[n]
            newer[n] = newer[victim]
            older[newer[victim]] = n
            newer[victim] = _ABSENT
            write_backs[operand[victim]] += bits[dirty[victim]]
            valid[victim] = 0
            dirty[victim] = 0
        head = older[n]
        older[n] = line
        newer[line] = n
        older[line] = head
        newer[head] = line
        missed[t] = bits[mask & ~valid[line]]
        touched[operand[line]] += bits[mask]
        valid[line] |= mask
        if ops[t] == 1:
            dirty[line] |= mask


class SectoredEngine:
    """State of such a cache over a stream of lines; ``touched`` counts sectors by operand."""

    def __init__(self, stream: Touches, capacity_lines: int) -> None:
        check_capacity(stream, capacity_lines)
        n = len(stream.tile_lines)
        self._stream, self._capacity = stream, capacity_lines
        self._newer: NDArray[np.int32] = np.full(n + 1, _ABSENT, np.int32)
        self._older: NDArray[np.int32] = np.full(n + 1, _ABSENT, np.int32)
        self._newer[n] = self._older[n] = n
        self._valid, self._dirty = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
        self._used = np.zeros(1, np.int64)
        self.touched = np.zeros(len(stream.operand_names), np.int64)
        self._missed = Scratch()
        self.write_backs = np.zeros(len(stream.operand_names), np.int64)

    def touch(self, chunk: Chunk) -> NDArray[np.int32]:
        """Missed sectors of each touch."""
        missed = self._missed.of(len(chunk.ids))
        sectors = np.full(len(chunk.ids), _ALL, np.uint8) if chunk.sectors is None else chunk.sectors
        _run(
            chunk.ids, chunk.ops, sectors, _SET_BITS, self._stream.tile_operand, self._newer, self._older, self._valid,
            self._dirty, self._used, self._capacity, missed, self.touched, self.write_backs,
        )  # fmt: skip
        return missed

    def dirty(self) -> NDArray[np.int64]:
        """Sectors that are dirty now, by operand."""
        weights = _SET_BITS[self._dirty]
        found = np.bincount(self._stream.tile_operand, weights=weights, minlength=len(self.write_backs))
        return found.astype(np.int64)


def simulate_sectored(stream: Touches, capacity_lines: int, warm: bool = False) -> CacheCounts:
    """Sectored LRU; parameters as for `simulate_lru`, counts in 32-byte sectors.

    A stream of tiles larger than a line is taken to mean whole lines.
    """
    lines: Touches = stream if int(stream.tile_lines.max()) == 1 else LineStream(stream)
    engine = SectoredEngine(lines, capacity_lines)
    counts = drive(engine, lines, warm)
    touched = engine.touched // 2 if warm else engine.touched
    return replace(counts, accesses=as_tuple(touched), unit_bytes=SECTOR_BYTES)

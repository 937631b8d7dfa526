"""Set-associative caches over row-major addresses: W ways, sets picked by modulo or by a hash of the line address.

Rows of an operand are its lines padded to whole lines, ``stride`` apart, operands one after the other. Lines of a tile
column then lie a pitch apart and may crowd into few sets; fully associative models do not see that.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.memory import check_memory
from pebble.models.caches.base import CacheCounts, Chunk, Scratch, Touches, drive
from pebble.models.caches.lines import LineStream, dense_placement

LRU, FIFO, RANDOM = 0, 1, 2
_MAX_WAYS = 64


@numba.njit(cache=True, nogil=True, inline="always")
def set_of(line, sets, hashed):  # type: ignore[no-untyped-def]
    """Set of a line address: modulo the sets, or the high bits of a multiplicative (Fibonacci) hash."""
    if not hashed:
        return np.int64(line % sets)
    mixed = (np.uint64(line) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return np.int64((mixed * np.uint64(sets)) >> np.uint64(32))


@numba.njit(cache=True, nogil=True)
def _run(ids, ops, operand, tags, sets, ways, hashed, order, allocate, random, missed, write_backs):  # type: ignore[no-untyped-def]
    # A tag is 2 (line + 1) + dirty; 0 is free. Newest first within a set.
    for t in range(ids.shape[0]):
        line = ids[t]
        row = tags[set_of(line, sets, hashed)]
        clean = np.int64(2) * (np.int64(line) + 1)
        at = np.int64(-1)
        for way in range(ways):
            if row[way] >> 1 == clean >> 1:
                at = np.int64(way)
                break
        missed[t] = at < 0
        if at < 0:
            if ops[t] == 1 and not allocate:
                write_backs[operand[line]] += 1
                continue
            tag = clean
            at = np.int64(ways - 1)
            if order == 2 and row[at] != 0:
                x = random[0]
                x ^= x << np.uint64(13)
                x ^= x >> np.uint64(7)
                x ^= x << np.uint64(17)
                random[0] = x
                at = np.int64(((x >> np.uint64(32)) * np.uint64(ways)) >> np.uint64(32))
            if row[at] & 1:
                write_backs[operand[(row[at] >> 1) - 1]] += 1
        else:
            tag = row[at]
            if order != 0:
                if ops[t] == 1:
                    row[at] = tag | 1
                continue
        for way in range(at, 0, -1):
            row[way] = row[way - 1]
        row[0] = tag | (ops[t] == 1)


class SetAssociativeEngine:
    """State of such a cache; see `simulate_sets`. The stream must be one of lines."""

    def __init__(
        self, stream: Touches, capacity_lines: int, ways: int, hashed: bool, order: int, allocate: bool, seed: int
    ) -> None:
        if not 1 <= ways <= _MAX_WAYS:
            raise InputError(f"policy: got {ways} ways, expected 1 to {_MAX_WAYS}.")
        self._sets = capacity_lines // ways
        if self._sets < 1:
            raise InputError(f"cache: got {capacity_lines} lines, expected at least one set of {ways} ways.")
        self._stream, self._ways, self._hashed, self._order, self._allocate = stream, ways, hashed, order, allocate
        check_memory("policy", self._sets * ways, "lines of cache", 8, "use a smaller cache, or lru")
        self._tags = np.zeros((self._sets, ways), np.int64)
        self._random = np.array([np.random.default_rng(seed).integers(1, 2**63)], np.uint64)
        self._missed = Scratch()
        self.write_backs = np.zeros(len(stream.operand_names), np.int64)

    def touch(self, chunk: Chunk) -> NDArray[np.int32]:
        """1 for each touch that missed."""
        missed = self._missed.of(len(chunk.ids))
        _run(
            chunk.ids, chunk.ops, self._stream.tile_operand, self._tags, self._sets, self._ways, self._hashed,
            self._order, self._allocate, self._random, missed, self.write_backs,
        )  # fmt: skip
        return missed

    def dirty(self) -> NDArray[np.int64]:
        """Lines that are dirty now, by operand."""
        lines = (self._tags[self._tags & 1 == 1] >> 1) - 1
        return np.bincount(self._stream.tile_operand[lines], minlength=len(self.write_backs)).astype(np.int64)


def simulate_sets(
    stream: Touches,
    capacity_lines: int,
    ways: int = 16,
    hashed: bool = False,
    order: int = LRU,
    allocate: bool = True,
    seed: int = 0,
    pad_lines: int = 0,
    warm: bool = False,
) -> CacheCounts:
    """A set-associative cache.

    Parameters
    ----------
    stream : Touches
        Tiles; their row-major addresses are used where the stream knows them, else tiles lie one after the other.
    capacity_lines : int
        Capacity; the number of sets is this over ``ways``, rounded down, and need not be a power of two.
    ways : int
        1 to 64.
    hashed : bool
        Pick sets by a hash of the address instead of modulo.
    order : int
        LRU, FIFO or RANDOM within a set.
    allocate : bool
        False: a written line that is not in the cache goes straight to DRAM.
    seed : int
        For RANDOM.
    pad_lines : int
        Lines added to the pitch of every operand's rows.
    warm : bool
        Begin with what a first run of the same stream leaves in the cache.

    Returns
    -------
    CacheCounts
        Cost: O(lines touched times ways), some 5 ns a line.
    """
    lines = LineStream(stream, stream.placement(pad_lines) or dense_placement(stream))
    return drive(SetAssociativeEngine(lines, capacity_lines, ways, hashed, order, allocate, seed), lines, warm)

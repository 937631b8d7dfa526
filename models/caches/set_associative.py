"""Set-associative caches over row-major addresses: W ways, sets picked by modulo or by a hash of the line address.

Rows of an operand are its lines padded to whole lines, ``stride`` apart, operands one after the other. Lines of a tile
column then lie a pitch apart and may crowd into few sets; fully associative models do not see that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches.policy import Bytes, Counts, Engine, Numbers
from pebble.models.caches.replacement import Replacing, draw, seeded
from pebble.system.parallel import check_memory
from pebble.traces import Trace, TraceChunk, by_lines
from pebble.traces.jit import inlined, jit

_MAX_WAYS = 64


@inlined
def set_of(line: int, sets: int, hashed: bool) -> np.int64:
    """Set of a line address: modulo the sets, or the high bits of a multiplicative (Fibonacci) hash."""
    if not hashed:
        return np.int64(line % sets)
    mixed = (np.uint64(line) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return np.int64((mixed * np.uint64(sets)) >> np.uint64(32))


@jit
def _run(
    ids: Numbers, ops: Bytes, operand: Bytes, tags: Counts, sets: int, ways: int, settings: tuple[bool, int, bool],
    random: NDArray[np.uint64], missed: Numbers, write_backs: Counts,
) -> None:  # fmt: skip
    # A tag is 2 (line + 1) + dirty; 0 is free. Newest first within a set.
    hashed, order, allocate = settings
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
                at = draw(random, ways)
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


class SetAssociativeEngine(Engine):
    """Over a trace of lines; the number of sets need not be a power of two. Cost: some 5 ns a line."""

    policy: SetAssociative

    def start(self) -> None:
        ways = self.policy.ways
        if self.capacity < ways:
            raise InputError(f"cache: got {self.capacity} lines, expected at least one set of {ways} ways.")
        check_memory("policy", self.capacity, "lines of cache", 8, "use a smaller cache, or lru")
        self._tags = np.zeros((self.capacity // ways, ways), np.int64)
        self._random = seeded(self.policy.seed)

    def run(self, chunk: TraceChunk, missed: NDArray[np.int32]) -> None:
        p = self.policy
        settings = bool(p.hashed), ("lru", "fifo", "random").index(p.replacement), p.write_allocate
        _run(
            chunk.ids, chunk.ops, self.operand, self._tags, *self._tags.shape, settings, self._random, missed,
            self.write_backs,
        )  # fmt: skip

    def dirty(self) -> NDArray[np.int64]:
        lines = (self._tags[self._tags & 1 == 1] >> 1) - 1
        return np.bincount(self.operand[lines], minlength=len(self.write_backs))


@dataclass(frozen=True, kw_only=True)
class SetAssociative(Replacing):
    """``set-W`` and ``set-W-hashed``: W ways, row-major addresses; LRU, FIFO or random within a set.

    Attributes
    ----------
    ways : int
        Lines of a set.
    hashed : str
        Not empty: the set of a line is a hash of its address.
    pad_lines : int
        ``+pad-N``: lines between the rows of an operand in memory.
    """

    runs = SetAssociativeEngine
    pattern = "set-(?P<ways>[0-9]{1,2})(?P<hashed>-hashed)?"
    examples = ("set-16", "set-16-hashed")
    structure = "sets"
    replacements = "lru|fifo|random"
    options = frozenset({"warm", "no-write-allocate", "pad"})

    ways: int
    hashed: str = ""
    pad_lines: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.ways <= _MAX_WAYS:
            raise InputError(f"policy: got {self.name!r}, expected 1 to {_MAX_WAYS} ways.")

    @property
    def what(self) -> str:
        index = "hashed" if self.hashed else "modulo"
        return f"{self.order} in sets of {self.ways} ways, {index}, row-major addresses"

    def view(self, trace: Trace) -> Trace:
        return by_lines(trace, self.pad_lines)

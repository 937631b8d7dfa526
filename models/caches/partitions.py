"""An L2 in partitions, as on A100, H100, H200, B200: each line has a home part, and other parts keep copies of it.

A read looks in the requester's part; a line that lives elsewhere is then looked up at its home, and if it misses there
too it is fetched once from DRAM and kept in both parts. A write goes to the home, updates the writer's copy and makes
every other copy out of date. Lines of a tile have their homes in turn, part by part. Each part has its share of
the capacity and its own LRU; an out-of-date copy keeps its place until it is read again or leaves.

Shared operands are so held once per part: the capacity that a kernel sees is well below the nominal one.
The two parts, "each L2 partition caches data for the SMs directly connected to it", are NVIDIA's (A100 white paper);
the rest is the simplest rule that agrees with measurements (``benchmarks/hardware_check.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches.oldest_of_k import OldestOfKEngine
from pebble.models.caches.policy import Bytes, Counts, Engine, Numbers
from pebble.models.caches.replacement import ABSENT, Replacing, empty_lists, leave, place
from pebble.models.caches.sm_map import PartitionsOfSms, check_parts
from pebble.system.parallel import check_memory
from pebble.traces import TraceChunk
from pebble.traces.jit import inner, jit


class PartitionStates(NamedTuple):
    """What is in each part, by piece: the lines of a tile that have their home in one."""

    newer: Numbers
    older: Numbers  #: lists by recency, `recency`
    stale: Bytes  #: whether a copy is out of date, shape (parts, pieces)
    dirty: Bytes  #: at home
    state: Counts  #: by part: lines used, those of its oldest piece where that is there in part, and its capacity


@inner
def _access(
    part: int, piece: int, newer: Numbers, older: Numbers, state: Counts, sizes: Numbers, dirty: Bytes, operand: Bytes,
    write_backs: Counts,
) -> bool:  # fmt: skip
    # True on a hit; in any case the piece is the newest of that part afterwards. As in `queues`, the oldest piece of a
    # part may be there with state[1, part] lines only.
    parts, n = newer.shape[0], newer.shape[1] - 1
    hit = False
    if newer[part, piece] != ABSENT:
        partial = state[1, part]
        hit = partial == 0 or older[part, piece] != n
        leave(part, piece, newer, older)
        if not hit:
            state[0, part] += sizes[piece] - partial
            if piece % parts == part and dirty[piece]:
                dirty[piece] = 0
                write_backs[operand[piece // parts]] += partial
            state[1, part] = 0
    else:
        state[0, part] += sizes[piece]
    while state[0, part] > state[2, part]:
        victim = newer[part, n]
        left = state[1, part] if state[1, part] else sizes[victim]
        gone = min(left, state[0, part] - state[2, part])
        home = victim % parts == part
        if home and dirty[victim]:
            write_backs[operand[victim // parts]] += gone
        state[0, part] -= gone
        state[1, part] = left - gone
        if left == gone:
            leave(part, victim, newer, older)
            newer[part, victim] = ABSENT
            if home:
                dirty[victim] = 0
    place(part, piece, newer, older)
    return hit


@jit
def _run(
    ids: Numbers, ops: Bytes, where: Numbers, sizes: Numbers, operand: Bytes, cache: PartitionStates, missed: Numbers,
    write_backs: Counts,
) -> None:  # fmt: skip
    newer, older, stale, dirty, state = cache
    parts = newer.shape[0]
    for t in range(ids.shape[0]):
        here = where[t]
        absent = 0
        for home in range(parts):
            piece = ids[t] * parts + home
            size = sizes[piece]
            if size == 0:
                continue
            if ops[t] == 1:
                if not _access(home, piece, newer, older, state, sizes, dirty, operand, write_backs):
                    absent += size
                dirty[piece] = 1
                for other in range(parts):
                    if other != home:
                        stale[other, piece] = other != here
                continue
            if home != here:
                copied = _access(here, piece, newer, older, state, sizes, dirty, operand, write_backs)
                copied = copied and not stale[here, piece]
                stale[here, piece] = 0
                if copied:
                    continue
            if not _access(home, piece, newer, older, state, sizes, dirty, operand, write_backs):
                absent += size
        missed[t] = absent


def piece_lines(tile_lines: NDArray[np.int32], parts: int) -> NDArray[np.int32]:
    """Lines of each tile at home in each part, tile by tile: line i of a tile t, counted over all tiles, is at home in
    part (i + t) modulo ``parts``.

    Examples
    --------
    >>> piece_lines(np.array([3, 3], np.int32), 2).tolist()
    [2, 1, 2, 1]
    """
    lines = tile_lines.astype(np.int64)
    first = (np.cumsum(lines) - lines + np.arange(len(lines))) % parts
    offset = (np.arange(parts) - first[:, None]) % parts
    return np.asarray(np.maximum(0, -((offset - lines[:, None]) // parts)).ravel(), np.int32)


class PartitionedLruEngine(Engine):
    """The newest lines of each part; cost O(touches times parts)."""

    def start(self) -> None:
        parts = self.policy.parts
        self._where = PartitionsOfSms(self.trace, self.policy)
        self._sizes = piece_lines(self.lines, parts)
        places = len(self._sizes) * (parts + 2)
        check_memory("policy", places, "tiles in parts", 9, "use fewer parts or larger tiles")
        marks = np.zeros((parts + 1, len(self._sizes)), np.uint8)
        state = np.zeros((3, parts), np.int64)
        state[2] = self.capacity
        self._cache = PartitionStates(*empty_lists(parts, len(self._sizes)), marks[:-1], marks[-1], state)

    def run(self, chunk: TraceChunk, missed: NDArray[np.int32]) -> None:
        _run(
            chunk.ids, chunk.ops, self._where.of(chunk), self._sizes, self.operand, self._cache, missed,
            self.write_backs,
        )  # fmt: skip

    def dirty(self) -> NDArray[np.int64]:
        cache, parts = self._cache, self.policy.parts
        left = cache.dirty * self._sizes
        for part in range(parts):
            oldest, partial = int(cache.newer[part, -1]), int(cache.state[1, part])
            if partial and oldest % parts == part and left[oldest]:
                left[oldest] = partial
        return self.by_operand(left.reshape(-1, parts).sum(axis=1))


@dataclass(frozen=True, kw_only=True)
class Partitions(Replacing):
    """``partitions-P``: P parts; a line has a home in one and copies in others. LRU, or oldest of K drawn lines."""

    pattern = "partitions-(?P<parts>[0-9]{1,2})"
    examples = ("partitions-2", "partitions-2:oldest-of-4")
    structure = "partitions"
    replacements = "lru|random|oldest-of-[0-9]{1,4}"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parts(self)
        if self.drawn == 0 and not self.write_allocate:
            raise InputError(f"policy: got {self.name!r}, expected +no-write-allocate with oldest-of-K only.")

    @property
    def runs(self) -> type[Engine]:
        return OldestOfKEngine if self.drawn else PartitionedLruEngine

    @property
    def what(self) -> str:
        return f"{self.order} in each of {self.parts} partitions, a line at home in one and copied into others"

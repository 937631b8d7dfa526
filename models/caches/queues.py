"""Fully associative LRU and FIFO, whole tiles at a time.

The lines of a tile come together, so they leave one after the other, and only the oldest tile can be there in part. It
misses as a whole: each line that is left of it leaves just before it is reached. So a tile hits in LRU exactly when the
distinct lines touched since its last touch, its own included, fit in the cache, and in FIFO when those that missed do.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pebble.models.caches.lockstep_lru import lockstep_lru
from pebble.models.caches.lru_curve import lru_curve
from pebble.models.caches.policy import Bytes, CacheCounts, Counts, Engine, Numbers
from pebble.models.caches.replacement import Replacing
from pebble.traces import WRITE, LockstepGemm, Trace, TraceChunk, by_lines
from pebble.traces.jit import inner, jit

_NEVER = -1
_LEAST_LOG = 1 << 14
_WHOLE, _PARTIAL = 1, 2


@jit
def _fifo(
    ids: Numbers, ops: Bytes, lines: Numbers, operand: Bytes, there: Bytes, dirty: Bytes, queue: Numbers,
    state: Counts, missed: Numbers, write_backs: Counts,
) -> None:  # fmt: skip
    # The queue is a ring with room for every tile: a tile stands in it at most once. partial: the lines that are left
    # of its first tile, where that is there in part.
    size = queue.shape[0]
    capacity, allocate, used, partial, head, tail = state[0], state[1], state[2], state[3], state[4], state[5]
    for t in range(ids.shape[0]):
        tile = np.uint32(ids[t])  # unsigned: no test for a negative index
        if there[tile] == _WHOLE:
            missed[t] = 0
            if ops[t] == WRITE:
                dirty[tile] = 1
            continue
        missed[t] = lines[tile]
        if there[tile] == _PARTIAL:
            head = head + 1 if head + 1 < size else 0
            used -= partial
            if dirty[tile]:
                dirty[tile] = 0
                write_backs[operand[tile]] += partial
            partial = 0
        elif ops[t] == WRITE and not allocate:
            write_backs[operand[tile]] += lines[tile]
            continue
        used += lines[tile]
        while used > capacity:
            victim = np.uint32(queue[head])
            left = partial if partial else lines[victim]
            gone = min(left, used - capacity)
            used -= gone
            partial = left - gone
            if dirty[victim]:
                write_backs[operand[victim]] += gone
                dirty[victim] = partial > 0
            if partial:
                there[victim] = _PARTIAL
                break
            there[victim] = 0
            head = head + 1 if head + 1 < size else 0
        there[tile] = _WHOLE
        queue[tail] = tile
        tail = tail + 1 if tail + 1 < size else 0
        if ops[t] == WRITE:
            dirty[tile] = 1
    state[2], state[3], state[4], state[5] = used, partial, head, tail


@inner
def _pack(log: Numbers, last: Numbers, head: int, now: int) -> int:
    # Entries that still count, moved to the front of the log; what left the cache is forgotten.
    for i in range(head):
        if last[log[i]] == i:
            last[log[i]] = _NEVER
    at = 0
    for i in range(head, now):
        tile = log[i]
        if last[tile] == i:
            log[at] = tile
            last[tile] = at
            at += 1
    return at


@jit
def _lru(
    ids: Numbers, ops: Bytes, lines: Numbers, operand: Bytes, last: Numbers, dirty: Bytes, log: Numbers,
    state: Counts, missed: Numbers, write_backs: Counts,
) -> None:  # fmt: skip
    # There is no list to relink: touches are logged in order, and the cache is what was logged at or after head. The
    # oldest tile is found by moving head over entries that a later touch of the same tile has made void.
    # last[tile] is the tile's newest entry; partial: the lines that are left of the tile at head, where that is there
    # in part.
    free_capacity = log.shape[0]
    capacity, allocate, used, partial, head, now = state[0], state[1], state[2], state[3], state[4], state[5]
    for t in range(ids.shape[0]):
        tile = np.uint32(ids[t])  # unsigned: no test for a negative index
        if now == free_capacity:
            now = _pack(log, last, head, now)
            head = 0
        at = last[tile]
        if at > head or (at == head and partial == 0):
            missed[t] = 0
        else:
            missed[t] = lines[tile]
            if at == head and partial > 0:
                used -= partial
                if dirty[tile]:
                    dirty[tile] = 0
                    write_backs[operand[tile]] += partial
                partial = 0
            elif ops[t] == WRITE and not allocate:
                write_backs[operand[tile]] += lines[tile]
                continue
            last[tile] = _NEVER
            used += lines[tile]
            while used > capacity:
                victim = np.uint32(log[head])
                if last[victim] != head:
                    head += 1
                    continue
                left = partial if partial else lines[victim]
                gone = min(left, used - capacity)
                if dirty[victim]:
                    write_backs[operand[victim]] += gone
                used -= gone
                partial = left - gone
                if partial == 0:
                    head += 1
                    dirty[victim] = 0
        last[tile] = now
        log[now] = tile
        now += 1
        if ops[t] == WRITE:
            dirty[tile] = 1
    while partial == 0 and head < now and last[log[head]] != head:
        head += 1
    state[2], state[3], state[4], state[5] = used, partial, head, now


class QueueEngine(Engine):
    """Without write-allocate exact only on a trace of lines, because a tile may then be there in part."""

    def start(self) -> None:
        self._dirty = np.zeros(self.tiles, np.uint8)
        self._state = np.array([self.capacity, self.policy.write_allocate, 0, 0, 0, 0], np.int64)
        self._queue = self.queue()

    @abstractmethod
    def queue(self) -> Numbers:
        """Make the room for what is in the cache, in order; the oldest will stand at ``_state[4]``."""

    def dirty(self) -> Counts:
        left = self._dirty * self.lines
        oldest, partial = int(self._queue[self._state[4]]), int(self._state[3])
        if partial and left[oldest]:
            left[oldest] = partial
        return self.by_operand(left)


class FifoEngine(QueueEngine):
    """A hit does not renew a tile's place."""

    def queue(self) -> Numbers:
        self._there = np.zeros(self.tiles, np.uint8)
        return np.zeros(self.tiles + 1, np.int32)

    def run(self, chunk: TraceChunk, missed: Numbers) -> None:
        _fifo(
            chunk.ids, chunk.ops, self.lines, self.operand, self._there, self._dirty, self._queue, self._state, missed,
            self.write_backs,
        )  # fmt: skip


class LruEngine(QueueEngine):
    """Every touch renews a tile's place."""

    def queue(self) -> Numbers:
        self._last: Numbers = np.full(self.tiles, _NEVER, np.int32)
        return np.empty(max(4 * self.tiles, _LEAST_LOG), np.int32)

    def run(self, chunk: TraceChunk, missed: Numbers) -> None:
        _lru(
            chunk.ids, chunk.ops, self.lines, self.operand, self._last, self._dirty, self._queue, self._state, missed,
            self.write_backs,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Queue(Replacing):
    """One cache, the line at the head of the queue leaves."""

    def view(self, trace: Trace) -> Trace:
        return trace if self.write_allocate else by_lines(trace)


@dataclass(frozen=True, kw_only=True)
class Fifo(Queue):
    """``fifo``: one cache, the line that came first leaves."""

    runs = FifoEngine
    pattern = "(?P<replacement>fifo)"
    examples = ("fifo",)


@dataclass(frozen=True, kw_only=True)
class Lru(Queue):
    """``lru``: one cache, the line touched longest ago leaves."""

    runs = LruEngine
    pattern = "lru"
    examples = ("lru",)

    @property
    def _one_pass(self) -> bool:
        return self.write_allocate and not self.warm

    def closed_form(self, gemm: LockstepGemm, capacity_lines: int) -> CacheCounts | None:
        return lockstep_lru(gemm, capacity_lines) if self._one_pass else None

    @property
    def curve_note(self) -> str:
        return "" if self._one_pass else super().curve_note

    def curve(self, trace: Trace, capacities_lines: Sequence[int]) -> list[tuple[int, int]]:
        """From the stack distances of one pass."""
        if trace.follows or not self._one_pass:
            return super().curve(trace, capacities_lines)
        curve = lru_curve(trace)
        return [(read, back) for read, _, back in map(curve.at, capacities_lines)]

"""Fully associative LRU and FIFO, whole tiles at a time.

A tile hits exactly when the distinct lines touched since its last touch, its own included, fit in the cache;
a tile that has lost its oldest lines loses each next line just before it is reached, so it misses as a whole.

There is no list to relink: touches are logged in order, and the cache is what was logged at or after ``head``. The
oldest tile is found by moving ``head`` over entries that a later touch of the same tile has made void. FIFO is the same
with a log of misses: a hit does not renew a tile's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.models.caches.base import CacheCounts, CachePolicy, Engine
from pebble.models.caches.lockstep_lru import lockstep_lru
from pebble.models.caches.lru_curve import lru_curve
from pebble.traces import LockstepGemm, Trace, TraceChunk, by_lines
from pebble.traces.jit import jit

_NEVER = -1
_LEAST_LOG = 1 << 14


@jit
def _pack(log, last, head, now):  # type: ignore[no-untyped-def]
    # Entries that still count, moved to the front of the log.
    at = 0
    for i in range(head, now):
        tile = log[i]
        if last[tile] == i:
            log[at] = tile
            last[tile] = at
            at += 1
    return at


@jit
def _run(ids, ops, lines, operand, last, log, dirty, state, capacity, renews, allocate, missed, write_backs):  # type: ignore[no-untyped-def]
    # last[tile] is the tile's newest entry in the log; it is in the cache if that is at or after head. Only the oldest
    # tile can be there in part: then head stands on it and partial lines of it are left.
    room = log.shape[0]
    used, partial, head, now = state[0], state[1], state[2], state[3]
    for t in range(ids.shape[0]):
        tile = np.uint32(ids[t])  # unsigned: no test for a negative index
        if now == room:
            for i in range(head):  # forget what left the cache, before its entries are overwritten
                if last[log[i]] == i:
                    last[log[i]] = _NEVER
            now = _pack(log, last, head, now)
            head = 0
        at = last[tile]
        if at > head or (at == head and partial == 0):
            missed[t] = 0
            if not renews:
                if ops[t] == 1:
                    dirty[tile] = 1
                continue
        else:
            missed[t] = lines[tile]
            if at == head and partial > 0:  # each line that is left leaves just before it is reached
                used -= partial
                if dirty[tile]:
                    dirty[tile] = 0
                    write_backs[operand[tile]] += partial
                partial = 0
            elif ops[t] == 1 and not allocate:
                write_backs[operand[tile]] += lines[tile]
                continue
            last[tile] = _NEVER
            used += lines[tile]
            while used > capacity:
                victim = np.uint32(log[head])
                if last[victim] != head:
                    head += 1
                    continue
                kept = partial if partial else lines[victim]
                gone = min(kept, used - capacity)
                if dirty[victim]:
                    write_backs[operand[victim]] += gone
                used -= gone
                partial = kept - gone
                if partial == 0:
                    head += 1
                    dirty[victim] = 0
        last[tile] = now
        log[now] = tile
        now += 1
        if ops[t] == 1:
            dirty[tile] = 1
    while partial == 0 and head < now and last[log[head]] != head:
        head += 1
    state[0], state[1], state[2], state[3] = used, partial, head, now


class LruEngine(Engine):
    """Without write-allocate exact only on a trace of lines, because a tile may then be there in part."""

    def start(self) -> None:
        self._last: NDArray[np.int32] = np.full(self.tiles, _NEVER, np.int32)
        self._log = np.empty(max(4 * self.tiles, _LEAST_LOG), np.int32)
        self._dirty = np.zeros(self.tiles, np.uint8)
        self._state = np.zeros(4, np.int64)

    def run(self, chunk: TraceChunk, missed: NDArray[np.int32]) -> None:
        _run(
            chunk.ids, chunk.ops, self.lines, self.operand, self._last, self._log, self._dirty, self._state,
            self.capacity, self.policy.replacement == "lru", self.policy.write_allocate, missed, self.write_backs,
        )  # fmt: skip

    def dirty(self) -> NDArray[np.int64]:
        left = self._dirty * self.lines
        oldest, partial = int(self._log[self._state[2]]), int(self._state[1])
        if partial and left[oldest]:
            left[oldest] = partial
        return self.by_operand(left)


@dataclass(frozen=True, kw_only=True)
class Fifo(CachePolicy):
    """``fifo``: one cache, the line that came first leaves."""

    runs = LruEngine
    pattern = "(?P<replacement>fifo)"
    examples = ("fifo",)

    def view(self, trace: Trace) -> Trace:
        return trace if self.write_allocate else by_lines(trace)


@dataclass(frozen=True, kw_only=True)
class Lru(Fifo):
    """``lru``: one cache, the line touched longest ago leaves."""

    pattern = "lru"
    examples = ("lru",)

    def closed_form(self, gemm: LockstepGemm, capacity_lines: int) -> CacheCounts | None:
        return None if self.warm or not self.write_allocate else lockstep_lru(gemm, capacity_lines)

    def curve(self, trace: Trace, capacities_lines: Sequence[int]) -> list[tuple[int, int]]:
        """From the stack distances of one pass."""
        if self.warm or not self.write_allocate or trace.follows:
            return super().curve(trace, capacities_lines)
        curve = lru_curve(trace)
        return [(read, back) for read, _, back in map(curve.at, capacities_lines)]

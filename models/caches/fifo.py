"""Fully associative FIFO, whole tiles at a time: a hit does not renew a tile's place in the queue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.models.caches.base import CachePolicy, Engine
from pebble.traces import Trace, TraceChunk, by_lines
from pebble.traces.jit import jit


@jit
def _run(ids, ops, lines, operand, resident, dirty, queue, state, capacity, allocate, missed, write_backs):  # type: ignore[no-untyped-def]
    # The queue is a ring with room for every tile: a tile stands in it at most once. Only the first in it can be there
    # in part: then partial lines of it are left. resident[tile] is 0, 1, or 2 when it is there in part.
    size = queue.shape[0]
    head, tail, used, partial = state[0], state[1], state[2], state[3]
    for t in range(ids.shape[0]):
        tile = np.uint32(ids[t])  # unsigned: no test for a negative index
        if resident[tile] == 1:
            missed[t] = 0
            if ops[t] == 1:
                dirty[tile] = 1
            continue
        missed[t] = lines[tile]
        if resident[tile] == 2:  # each line that is left leaves just before it is reached
            head = head + 1 if head + 1 < size else 0
            used -= partial
            if dirty[tile]:
                dirty[tile] = 0
                write_backs[operand[tile]] += partial
            partial = 0
        elif ops[t] == 1 and not allocate:
            write_backs[operand[tile]] += lines[tile]
            continue
        used += lines[tile]
        while used > capacity:
            victim = np.uint32(queue[head])
            kept = partial if partial else lines[victim]
            gone = min(kept, used - capacity)
            if dirty[victim]:
                write_backs[operand[victim]] += gone
            used -= gone
            partial = kept - gone
            resident[victim] = 2
            if partial == 0:
                head = head + 1 if head + 1 < size else 0
                resident[victim] = 0
                dirty[victim] = 0
        resident[tile] = 1
        queue[tail] = tile
        tail = tail + 1 if tail + 1 < size else 0
        if ops[t] == 1:
            dirty[tile] = 1
    state[0], state[1], state[2], state[3] = head, tail, used, partial


class FifoEngine(Engine):
    """Without write-allocate exact only on a trace of lines, as `LruEngine`."""

    def start(self) -> None:
        self._resident, self._dirty = np.zeros((2, self.tiles), np.uint8)
        self._queue = np.zeros(self.tiles + 1, np.int32)
        self._state = np.zeros(4, np.int64)

    def run(self, chunk: TraceChunk, missed: NDArray[np.int32]) -> None:
        _run(
            chunk.ids, chunk.ops, self.lines, self.operand, self._resident, self._dirty, self._queue, self._state,
            self.capacity, self.policy.write_allocate, missed, self.write_backs,
        )  # fmt: skip

    def dirty(self) -> NDArray[np.int64]:
        left = self._dirty * self.lines
        first, partial = int(self._queue[self._state[0]]), int(self._state[3])
        if partial and left[first]:
            left[first] = partial
        return self.by_operand(left)


@dataclass(frozen=True, kw_only=True)
class Fifo(CachePolicy):
    """``fifo``: one cache, the line that came first leaves."""

    runs = FifoEngine
    pattern = "fifo"
    examples = ("fifo",)

    @property
    def what(self) -> str:
        return "first in, first out, fully associative"

    def view(self, trace: Trace) -> Trace:
        return trace if self.write_allocate else by_lines(trace)

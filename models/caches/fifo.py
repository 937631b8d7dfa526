"""Fully associative FIFO, whole tiles at a time: a hit does not renew a tile's place in the queue."""

from __future__ import annotations

import numba
import numpy as np

from pebble.models.caches.base import CacheCounts, Tally, Touches, check_capacity


@numba.njit(cache=True, nogil=True)
def _run(ids, ops, lines, operand, resident, dirty, queue, state, capacity, missed, write_backs):  # type: ignore[no-untyped-def]
    # The queue is a ring with room for every tile: a tile stands in it at most once.
    size = queue.shape[0]
    head, tail, used = state[0], state[1], state[2]
    for t in range(ids.shape[0]):
        tile = ids[t]
        if resident[tile]:
            missed[t] = 0
        else:
            missed[t] = lines[tile]
            used += lines[tile]
            while used > capacity:
                victim = queue[head]
                head += 1
                if head == size:
                    head = 0
                resident[victim] = 0
                used -= lines[victim]
                if dirty[victim]:
                    dirty[victim] = 0
                    write_backs[operand[victim]] += lines[victim]
            resident[tile] = 1
            queue[tail] = tile
            tail += 1
            if tail == size:
                tail = 0
        if ops[t] == 1:
            dirty[tile] = 1
    state[0], state[1], state[2] = head, tail, used


def simulate_fifo(stream: Touches, capacity_lines: int) -> CacheCounts:
    """FIFO over a touch stream; parameters, result and errors as `simulate_lru`."""
    check_capacity(stream, capacity_lines)
    lines, operand = stream.tile_lines, stream.tile_operand
    n = len(lines)
    resident, dirty = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
    queue = np.zeros(n + 1, np.int32)
    state = np.zeros(3, np.int64)
    write_backs = np.zeros(len(stream.operand_names), np.int64)
    tally = Tally(stream)
    for chunk in stream.chunks():
        missed = np.empty(len(chunk.ids), np.int32)
        _run(
            chunk.ids,
            chunk.ops,
            lines,
            operand,
            resident,
            dirty,
            queue,
            state,
            capacity_lines,
            missed,
            write_backs,
        )
        tally.add(chunk, missed)
    left = dirty.astype(bool)
    write_backs += np.bincount(operand[left], weights=lines[left], minlength=len(write_backs)).astype(np.int64)
    return tally.counts(write_backs)

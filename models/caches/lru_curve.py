"""LRU at every capacity in one pass: stack distances in lines, a whole tile touch at a time.

A touch hits exactly when the distinct lines touched since the tile's last touch, its own included, fit. A dirty tile
is written back between two of its writes exactly when one of the reuses between them does not fit, so the largest
distance since the last write decides. Both are histograms over distances, kept in units of the greatest common divisor
of the tile sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches.policy import Bytes, Counts, Numbers
from pebble.traces import Trace
from pebble.traces.jit import inner, jit
from pebble.units import ceil_div

_MAX_BINS = 400_000_000
_FAN, _SHIFT = 16, 4


@dataclass(frozen=True)
class LruCurve:
    """Traffic of one trace as a function of capacity."""

    unit_lines: int  #: lines of a bin
    #: lines at a capacity of ``bin * unit_lines`` lines, dirty lines at the end included, shape (bins,)
    read_misses: NDArray[np.int64]
    write_misses: NDArray[np.int64]
    write_backs: NDArray[np.int64]
    accesses_lines: int  #: lines touched

    def at(self, capacity_lines: int) -> tuple[int, int, int]:
        """Lines fetched, lines allocated by writes, and lines written back at one capacity."""
        at = min(capacity_lines // self.unit_lines, len(self.read_misses) - 1)
        return int(self.read_misses[at]), int(self.write_misses[at]), int(self.write_backs[at])


@inner
def _after(slot: int, now: int, sums: Counts, offsets: Counts) -> np.int64:
    # Sum of the weights at slot and later: up a tree whose nodes add up 16, until few are left. Short steps on purpose:
    # wide loads of numbers stored a moment ago would wait for them.
    total = np.int64(0)
    low, high, level = slot, now - 1, 0
    while high - low >= 2 * _FAN:
        base = offsets[level]
        end = (low | (_FAN - 1)) + 1
        for i in range(base + low, base + end):
            total += sums[np.uint64(i)]
        low, high = end >> _SHIFT, high >> _SHIFT
        level += 1
    for i in range(offsets[level] + low, offsets[level] + high + 1):
        total += sums[np.uint64(i)]
    return total


@inner
def _add(slot: int, size: int, sums: Counts, offsets: Counts) -> None:
    for level in range(offsets.shape[0]):
        sums[np.uint64(offsets[level] + (slot >> (_SHIFT * level)))] += size


@inner
def _pack(capacity: int, sums: Counts, offsets: Counts, holder: Numbers, slot_of: Counts) -> int:
    # Move every tile to the lowest slots, in order.
    at = 0
    for i in range(capacity):
        size = sums[i]
        if size > 0:
            sums[i] = 0
            sums[at], holder[at] = size, holder[i]
            slot_of[holder[at]] = at
            at += 1
    sums[capacity:] = 0
    for level in range(1, offsets.shape[0]):
        for i in range(at):
            sums[offsets[level] + (i >> (_SHIFT * level))] += sums[i]
    return at


@jit
def _run(
    ids: Numbers, ops: Bytes, weight: Counts, slot_of: Counts, sums: Counts, offsets: Counts, holder: Numbers, now: int,
    farthest: Counts, counts: Counts,
) -> int:  # fmt: skip
    # Every touched tile stands at a slot, later touches at higher ones; when slots run out they are packed. counts:
    # lines read, written and written back by distance; those of no earlier touch last. Returns the slot that is next.
    reads, writes, backs = counts[0], counts[1], counts[2]
    capacity, cold = holder.shape[0], counts.shape[1] - 1
    for t in range(ids.shape[0]):
        tile = np.uint32(ids[t])
        size = weight[tile]
        if now == capacity:
            now = _pack(capacity, sums, offsets, holder, slot_of)
        slot = slot_of[tile]
        if slot >= 0:
            distance = _after(slot, now, sums, offsets)
            if ops[t] == 1:
                writes[distance] += size
            else:
                reads[distance] += size
            _add(slot, -size, sums, offsets)
            if farthest[tile] >= 0:
                farthest[tile] = max(farthest[tile], distance)
        else:
            counts[ops[t], cold] += size
        if ops[t] == 1:
            backs[farthest[tile] if farthest[tile] >= 0 else cold] += size
            farthest[tile] = 0
        slot_of[tile], holder[now] = now, tile
        _add(now, size, sums, offsets)
        now += 1
    return now


def lru_curve(trace: Trace) -> LruCurve:
    """The curve of one trace.

    Parameters
    ----------
    trace : Trace
        Tile touches in order.

    Returns
    -------
    LruCurve
        Exact at every capacity from the largest tile up. Cost: one pass, some 15 ns a touch, and 24 bytes for each bin.

    Raises
    ------
    InputError
        More than 4e8 bins.

    Notes
    -----
    Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970.
    """
    lines = trace.tile_lines
    unit = int(np.gcd.reduce(lines))
    weight = (lines // unit).astype(np.int64)
    bins = int(weight.sum()) + 1
    if bins > _MAX_BINS:
        raise InputError(f"curve: got {bins} distinct capacities, expected at most {_MAX_BINS}; use larger tiles.")
    n = len(lines)
    depth = 2  # the top of the tree has few enough nodes to be added up one by one, and room is 256 at least
    while _FAN**depth < 3 * n:
        depth += 1
    capacity = _FAN ** max(2, depth - 1) * ceil_div(3 * n, _FAN ** max(2, depth - 1))
    levels = [ceil_div(capacity, _FAN**level) + 1 for level in range(depth)]
    offsets = np.concatenate([[0], np.cumsum(levels)[:-1]]).astype(np.int64)
    offsets[1:] += capacity - levels[0]  # the slots themselves come first, exactly room of them
    slot_of, farthest = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    sums, holder = np.zeros(capacity + sum(levels[1:]), np.int64), np.zeros(capacity, np.int32)
    counts, now = np.zeros((3, bins + 1), np.int64), 0
    for chunk in trace.chunks():
        now = _run(chunk.ids, chunk.ops, weight, slot_of, sums, offsets, holder, now, farthest, counts)
    total = int(counts[:2].sum())
    # what misses at capacity c: all with a distance above c
    curves = [(int(h.sum()) - np.cumsum(h[:-1])) * unit for h in counts]
    return LruCurve(unit, curves[0], curves[1], curves[2], total * unit)

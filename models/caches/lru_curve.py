"""LRU at every capacity in one pass: stack distances in lines, a whole tile touch at a time.

A touch hits exactly when the distinct lines touched since the tile's last touch, its own included, fit. A dirty tile
is written back between two of its writes exactly when one of the reuses between them does not fit, so the largest
distance since the last write decides. Both are histograms over distances, kept in units of the greatest common divisor
of the tile sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches.base import Touches, check_capacity

_MAX_BINS = 400_000_000
_BLOCK, _SHIFT = 64, 6


@dataclass(frozen=True)
class LruCurve:
    """Traffic of one stream as a function of capacity.

    Attributes
    ----------
    unit_lines : int
        Lines of a bin.
    read_misses, write_misses, write_backs : ndarray of int64, shape (bins,)
        Lines at a capacity of ``bin * unit_lines`` lines, dirty lines at the end included.
    least_lines : int
        The largest tile: below it no tile can be read through.
    accesses_lines : int
        Lines touched.
    """

    unit_lines: int
    read_misses: NDArray[np.int64]
    write_misses: NDArray[np.int64]
    write_backs: NDArray[np.int64]
    least_lines: int
    accesses_lines: int

    def at(self, capacity_lines: int) -> tuple[int, int, int]:
        """Lines fetched, lines allocated by writes, and lines written back at one capacity."""
        at = min(capacity_lines // self.unit_lines, len(self.read_misses) - 1)
        return int(self.read_misses[at]), int(self.write_misses[at]), int(self.write_backs[at])

    @property
    def knees_lines(self) -> NDArray[np.int64]:
        """Capacities at which traffic falls."""
        moved = self.read_misses + self.write_backs
        return (np.flatnonzero(np.diff(moved)) + 1) * self.unit_lines


@numba.njit(cache=True, nogil=True)
def _after(slot, now, ones, blocks, supers):  # type: ignore[no-untyped-def]
    # Sum of the weights at slot and later.
    total = np.int64(0)
    if now - slot <= 2 * _BLOCK:
        for i in range(slot, now):
            total += ones[i]
        return total
    block = (slot >> _SHIFT) + 1
    for i in range(slot, block << _SHIFT):
        total += ones[i]
    last = (now - 1) >> _SHIFT
    if last - block <= 2 * _BLOCK:
        for i in range(block, last + 1):
            total += blocks[i]
        return total
    top = (block >> _SHIFT) + 1
    for i in range(block, top << _SHIFT):
        total += blocks[i]
    for i in range(top, (last >> _SHIFT) + 1):
        total += supers[i]
    return total


@numba.njit(cache=True, nogil=True)
def _run(ids, ops, weight, slot_of, ones, blocks, supers, holder, state, farthest, reads, writes, backs, cold):  # type: ignore[no-untyped-def]
    # Every touched tile stands at a slot, later touches at higher ones; when slots run out they are packed.
    room = ones.shape[0]
    now = state[0]
    for t in range(ids.shape[0]):
        tile = ids[t]
        size = weight[tile]
        if now == room:
            at = 0
            for i in range(room):
                if ones[i] > 0:
                    mover = holder[i]
                    size_here = ones[i]
                    ones[i] = 0
                    ones[at], holder[at] = size_here, mover
                    slot_of[mover] = at
                    at += 1
            now = at
            blocks[:] = 0
            supers[:] = 0
            for i in range(now):
                blocks[i >> _SHIFT] += ones[i]
                supers[i >> (2 * _SHIFT)] += ones[i]
        slot = slot_of[tile]
        if slot >= 0:
            distance = _after(slot, now, ones, blocks, supers)
            if ops[t] == 1:
                writes[distance] += size
            else:
                reads[distance] += size
            ones[slot] = 0
            blocks[slot >> _SHIFT] -= size
            supers[slot >> (2 * _SHIFT)] -= size
            if farthest[tile] >= 0:
                farthest[tile] = max(farthest[tile], distance)
        else:
            cold[ops[t]] += size
        if ops[t] == 1:
            if farthest[tile] >= 0:
                backs[farthest[tile]] += size
            else:
                cold[2] += size
            farthest[tile] = 0
        slot_of[tile] = now
        ones[now], holder[now] = size, tile
        blocks[now >> _SHIFT] += size
        supers[now >> (2 * _SHIFT)] += size
        now += 1
    state[0] = now


def lru_curve(stream: Touches) -> LruCurve:
    """The curve of one stream.

    Parameters
    ----------
    stream : Touches
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
    lines = stream.tile_lines
    unit = int(np.gcd.reduce(lines))
    weight = (lines // unit).astype(np.int64)
    bins = int(weight.sum()) + 1
    if bins > _MAX_BINS:
        raise InputError(f"curve: got {bins} distinct capacities, expected at most {_MAX_BINS}; use larger tiles.")
    n = len(lines)
    room = max(2 * n, 4096)
    room += -room % (_BLOCK * _BLOCK)
    slot_of, farthest = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    ones, holder = np.zeros(room, np.int64), np.zeros(room, np.int64)
    blocks, supers = np.zeros(room // _BLOCK, np.int64), np.zeros(room // _BLOCK**2, np.int64)
    state, cold = np.zeros(1, np.int64), np.zeros(3, np.int64)
    reads, writes, backs = (np.zeros(bins, np.int64) for _ in range(3))
    for chunk in stream.chunks():
        _run(
            chunk.ids, chunk.ops, weight, slot_of, ones, blocks, supers, holder, state, farthest, reads, writes, backs,
            cold,
        )  # fmt: skip
    total = int(reads.sum() + writes.sum() + cold[0] + cold[1])
    # what misses at capacity c: the cold lines and all with a distance above c
    curves = [(int(h.sum()) - np.cumsum(h) + int(cold[i])) * unit for i, h in enumerate((reads, writes, backs))]
    return LruCurve(unit, curves[0], curves[1], curves[2], int(lines.max()), total * unit)


def lru_curve_at(stream: Touches, capacities_lines: list[int]) -> list[tuple[int, int, int]]:
    """The curve at some capacities, each at least the largest tile."""
    for capacity in capacities_lines:
        check_capacity(stream, capacity)
    curve = lru_curve(stream)
    return [curve.at(capacity) for capacity in capacities_lines]

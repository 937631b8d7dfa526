"""Belady's OPT, exact at line level, a whole tile touch at a time.

A line must be in the cache when it is touched, and on a miss the line whose next touch is farthest away leaves.
All lines of a tile are touched together, so tiles are ordered by their next touch, and inside a tile the
highest line is the farthest. A touched tile may itself be the farthest one: then each of its missing lines takes
the place of the line just before it, and of a whole gap only its last line stays. So the resident lines of a tile
are a few runs; whole-tile OPT would be wrong, and so would keeping "C - 1 lines between touches".

OPT is optimal for misses. With write-backs counted as well the offline optimum is NP-complete; the two are
reported apart.
"""

from __future__ import annotations

import numba
import numpy as np

from pebble.errors import InputError
from pebble.models.caches.base import CacheCounts, Tally, Touches, check_capacity

# Two whole-trace arrays of 4 bytes a touch; beyond this the machine's memory is at risk.
MAX_TOUCHES = 400_000_000
_NEVER = 2**31 - 1


@numba.njit(cache=True, nogil=True)
def _next_touches(ids, following, last):  # type: ignore[no-untyped-def]
    for t in range(ids.shape[0] - 1, -1, -1):
        following[t] = last[ids[t]]
        last[ids[t]] = t


@numba.njit(cache=True, nogil=True)
def _highest_bit(word):  # type: ignore[no-untyped-def]
    bit = 0
    for shift in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(shift):
            word >>= np.uint64(shift)
            bit += shift
    return bit


@numba.njit(cache=True, nogil=True)
def _mark(words, offsets, depth, position):  # type: ignore[no-untyped-def]
    for level in range(depth):
        words[offsets[level] + (position >> 6)] |= np.uint64(1) << np.uint64(position & 63)
        position >>= 6


@numba.njit(cache=True, nogil=True)
def _unmark(words, offsets, depth, position):  # type: ignore[no-untyped-def]
    for level in range(depth):
        at = offsets[level] + (position >> 6)
        words[at] &= ~(np.uint64(1) << np.uint64(position & 63))
        if words[at]:
            return
        position >>= 6


@numba.njit(cache=True, nogil=True)
def _farthest(words, offsets, depth):  # type: ignore[no-untyped-def]
    if words[offsets[depth - 1]] == 0:
        return -1
    position = 0
    for level in range(depth - 1, -1, -1):
        position = (position << 6) + _highest_bit(words[offsets[level] + position])
    return position


@numba.njit(cache=True, nogil=True)
def _drop_highest(tile, count, runs, starts, ends):  # type: ignore[no-untyped-def]
    while count > 0:
        last = runs[tile] - 1
        length = ends[tile, last] - starts[tile, last]
        if length > count:
            ends[tile, last] -= count
            return
        count -= length
        runs[tile] = last


@numba.njit(cache=True, nogil=True)
def _run(  # type: ignore[no-untyped-def]
    ids, ops, following, lines, operand, kept, dirty, runs, starts, ends, words, offsets, depth, capacity,
    missed, write_backs,
):  # fmt: skip
    # A mark at position t says: the tile touched at t has resident lines until then.
    # Returns False when a tile needs more runs than there is room for.
    room = starts.shape[1]
    new_starts, new_ends = np.empty(3 * room + 4, np.int32), np.empty(3 * room + 4, np.int32)
    total = 0
    for t in range(ids.shape[0]):
        tile = ids[t]
        size = lines[tile]
        had = kept[tile]
        missed[t] = size - had
        upcoming = following[t] if following[t] >= 0 else _NEVER
        if had > 0:
            _unmark(words, offsets, depth, t)
        count = 0
        at = 0
        for r in range(runs[tile] + 1):
            begin = starts[tile, r] if r < runs[tile] else size
            finish = ends[tile, r] if r < runs[tile] else size
            gap = begin - at
            if gap > 0:
                placed = min(gap, capacity - total)
                total += placed
                while placed < gap:
                    position = _farthest(words, offsets, depth)
                    own = position <= upcoming  # this tile's own lines are the farthest
                    if own and count + placed > 0:
                        break
                    victim = ids[position]
                    drop = min(gap - placed, kept[victim])
                    if own:
                        drop = 1
                    _drop_highest(victim, drop, runs, starts, ends)
                    kept[victim] -= drop
                    if dirty[victim] > kept[victim]:
                        write_backs[operand[victim]] += dirty[victim] - kept[victim]
                        dirty[victim] = kept[victim]
                    if kept[victim] == 0:
                        _unmark(words, offsets, depth, position)
                    placed += drop
                if placed > 0:
                    if count > 0 and new_ends[count - 1] == at:
                        new_ends[count - 1] = at + placed
                    else:
                        new_starts[count], new_ends[count] = at, at + placed
                        count += 1
                if placed < gap:  # each further line replaces the one before it; the gap's last line stays
                    new_ends[count - 1] -= 1
                    if new_ends[count - 1] == new_starts[count - 1]:
                        count -= 1
                    if count > 0 and new_ends[count - 1] == begin - 1:
                        new_ends[count - 1] = begin
                    else:
                        new_starts[count], new_ends[count] = begin - 1, begin
                        count += 1
            if finish > begin:
                if count > 0 and new_ends[count - 1] == begin:
                    new_ends[count - 1] = finish
                else:
                    new_starts[count], new_ends[count] = begin, finish
                    count += 1
            at = finish
        if count > room:
            return False
        now = 0
        for r in range(count):
            starts[tile, r], ends[tile, r] = new_starts[r], new_ends[r]
            now += new_ends[r] - new_starts[r]
        if upcoming == _NEVER:  # nothing of it is needed again: its lines are free at once
            total -= now
            now = 0
            count = 0
        runs[tile] = count
        kept[tile] = now
        if ops[t] == 1:
            dirty[tile] = size
        if dirty[tile] > now:  # where a tile is dirty in part, its clean lines are taken to leave first
            write_backs[operand[tile]] += dirty[tile] - now
            dirty[tile] = now
        if now > 0:
            _mark(words, offsets, depth, upcoming)
    return True


def simulate_opt(stream: Touches, capacity_lines: int) -> CacheCounts:
    """OPT over a touch stream: the fewest misses of any replacement policy of this capacity.

    Parameters
    ----------
    stream : Touches
        Tile touches in order, at most 4e8 of them (the whole stream is needed to look ahead).
    capacity_lines : int
        Capacity in 128-byte lines, at least the largest tile.

    Returns
    -------
    CacheCounts
        Misses and write-backs in lines, by operand. Cost: O(touches), 13 bytes a touch.

    Raises
    ------
    InputError
        The cache is smaller than the largest tile, or the stream is too long.

    Notes
    -----
    Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966.
    """
    check_capacity(stream, capacity_lines)
    if stream.touches > MAX_TOUCHES:
        raise InputError(
            f"policy opt: got a trace of {stream.touches} touches, expected at most {MAX_TOUCHES}, because OPT "
            "must see the whole trace; use larger tiles or --policy lru."
        )
    lines, operand = stream.tile_lines, stream.tile_operand
    chunks = list(stream.chunks())
    ids = np.concatenate([c.ids for c in chunks])
    ops = np.concatenate([c.ops for c in chunks])
    following = np.empty(len(ids), np.int32)
    _next_touches(ids, following, np.full(len(lines), -1, np.int32))

    sizes = [len(ids) // 64 + 1]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] - 1) // 64 + 1)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    missed = np.empty(len(ids), np.int32)
    most_runs = (int(lines.max()) + 1) // 2
    room = min(4, most_runs)
    while True:
        words = np.zeros(offsets[-1], np.uint64)
        kept, dirty, runs = (np.zeros(len(lines), np.int32) for _ in range(3))
        starts, ends = (np.zeros((len(lines), room), np.int32) for _ in range(2))
        write_backs = np.zeros(len(stream.operand_names), np.int64)
        if _run(
            ids, ops, following, lines, operand, kept, dirty, runs, starts, ends, words, offsets, len(sizes),
            capacity_lines, missed, write_backs,
        ):  # fmt: skip
            break
        room = min(4 * room, most_runs)
    tally = Tally(stream)
    start = 0
    for chunk in chunks:
        tally.add(chunk, missed[start : start + len(chunk.ids)])
        start += len(chunk.ids)
    # a tile that nobody touches again leaves at once, so nothing is dirty at the end
    return tally.counts(write_backs, np.zeros_like(write_backs))

"""LRU misses of a lock-step tiled GEMM in closed form in k: no trace, cost independent of the depth.

All steps of a wave touch the same rows of A and columns of B, only at another k. So the distance of a reuse between a
wave w' and a later wave w at step s is

    C tiles written in between
    + (steps that lie after s in w', or before s in w) times the distinct lines of a step in the waves in between
    + the distance of the same reuse in a GEMM of that one step.

This is affine in s (for each direction of k; the last step may be short), so a division counts the steps that hit.
Reuses inside one step always hit when the cache holds the largest step. The one-step distances come from one list of
rows and columns by recency. Exact for whole tiles, hence for lines (see the package's text); not for FIFO, OPT, jitter
or split-K.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.models.caches.policy import Bytes, CacheCounts, Counts, Numbers
from pebble.traces import LockstepGemm
from pebble.traces.jit import inner, jit

_NONE = -1
Sizes = NDArray[np.integer[Any]]


class Sides(NamedTuple):
    """The trace. An item is a row of A tiles, or behind these a column of B tiles."""

    rows: Numbers  #: of the output tiles, in order
    cols: Numbers
    wave: int  #: blocks of one
    steps: int
    sawtooth: bool
    full: Counts  #: lines of each item at a step
    last: Counts  #: and at the last one
    heights: Sizes  #: of the rows of tiles
    spans: Sizes  #: lines across a tile of B, by column
    c_spans: Sizes  #: lines across a tile of C, by column


class Stack(NamedTuple):
    """Items by recency at one step, the most recent first."""

    items: Counts
    place: Counts  #: where an item stands
    wave_of: Counts  #: the last wave that touched it
    seen: Counts  #: the same while a wave is at work, then -2 less the wave
    sums: Counts  #: lines above each place, at a full and at the last step
    mine: Counts  #: the same, of items that this wave touches
    start: Counts  #: places of the items of one wave, from here
    end: Counts  #: to here


class OneWave(NamedTuple):
    """The items that a wave touches, in the order of their first touch."""

    listed: Counts
    is_first: Bytes  #: whether a block is the first to touch its A tile, its B tile
    low: Counts  #: the steps at which an item hits begin here
    high: Counts  #: and end here
    at_last: Counts  #: whether it hits at the last step


@inner
def _hits(start: np.int64, slope: np.int64, count: int, capacity: int) -> tuple[np.int64, np.int64]:
    # The s in 0 .. count - 1 with start + slope s <= capacity, as an interval [low, high).
    low, high = np.int64(0), np.int64(count)
    if count <= 0:
        high = np.int64(0)
    elif slope >= 0:
        if start > capacity:
            high = np.int64(0)
        elif slope > 0:
            high = min(high, (capacity - start) // slope + 1)
    elif start > capacity:
        low = min(high, -((capacity - start) // -slope))
    return low, high


@inner
def _listed(
    shape: Sides, stack: Stack, wave: OneWave, w: int, begin: int, end: int, counts: Counts
) -> tuple[int, np.int64, np.int64, np.int64]:
    # How many items the wave touches, their lines at a full and at the last step, and lines of C, of the largest tile.
    rows, cols, _, _, _, full, last, heights, spans, c_spans = shape
    seen, listed, is_first, first_col = stack.seen, wave.listed, wave.is_first, heights.shape[0]
    number = 0
    a_rows, b_lines, c_lines, largest = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    total_full, total_last = np.int64(0), np.int64(0)
    for b in range(begin, end):
        tile = heights[rows[b]] * c_spans[cols[b]]
        a_rows, b_lines, c_lines = a_rows + heights[rows[b]], b_lines + spans[cols[b]], c_lines + tile
        largest = max(largest, tile)
        for side in range(2):
            item = rows[b] if side == 0 else first_col + cols[b]
            new = seen[item] != w
            is_first[2 * (b - begin) + side] = new
            if new:
                seen[item] = w
                listed[number] = item
                number += 1
                total_full += full[item]
                total_last += last[item]
    counts[3] += a_rows
    counts[4] += b_lines
    counts[5] += c_lines
    return number, total_full, total_last, largest


@inner
def _add_up(shape: Sides, stack: Stack, w: int, depth: int) -> None:
    # The lines above each place of the stack, and the places of the items of one wave.
    items, _, wave_of, seen, sums, mine, start, end = stack
    full, last = shape.full, shape.last
    all_full, all_last, my_full, my_last = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    first, before = 0, np.int64(_NONE)
    for j in range(depth):
        item = items[j]
        here = seen[item] == w
        if wave_of[item] != before:
            first, before = j, wave_of[item]
        start[j] = first
        all_full += full[item]
        all_last += last[item]
        my_full += full[item] if here else 0
        my_last += last[item] if here else 0
        sums[0, j + 1], sums[1, j + 1], mine[0, j + 1], mine[1, j + 1] = all_full, all_last, my_full, my_last
    beyond = depth
    for j in range(depth - 1, -1, -1):
        end[j] = beyond
        if start[j] == j:
            beyond = j


@inner
def _reuses(
    shape: Sides, stack: Stack, wave: OneWave, w: int, number: int, totals: tuple[np.int64, np.int64], written: Counts,
    capacity: int, counts: Counts,
) -> None:  # fmt: skip
    # At which steps each item of the wave hits.
    items, place, wave_of, _, sums, mine, wave_start, wave_end = stack
    listed, _, low, high, at_last = wave
    full, last, steps, first_col = shape.full, shape.last, shape.steps, shape.heights.shape[0]
    backwards = shape.sawtooth and w % 2 == 1
    # places before the wave, beyond all others where an item is new, and sizes: the loop inside goes over them in a row
    was, size_full, size_last = np.empty((3, number), np.int64)
    for i in range(number):
        item = listed[i]
        was[i] = place[item] if place[item] != _NONE else items.shape[0]
        size_full[i], size_last[i] = full[item], last[item]
    for i in range(number):
        item = listed[i]
        operand = 1 if item >= first_col else 0
        j = place[item]
        if j == _NONE:
            low[item], high[item], at_last[item] = 0, 0, 0
            counts[operand] += (steps - 1) * full[item] + last[item]
            continue
        before = wave_of[item]
        was_backwards = shape.sawtooth and before % 2 == 1
        own_full, own_last = sums[0, j] + full[item], sums[1, j] + last[item]
        for earlier in range(np.uint64(i)):  # touched before this one in the step, and not yet counted above it
            below = was[earlier] > j
            own_full += size_full[earlier] if below else 0
            own_last += size_last[earlier] if below else 0
        between = written[w] - written[before]
        # k above s: in w' after s unless it ran backwards, in w before s only if it runs backwards
        edge = wave_start[j] if was_backwards else wave_end[j]
        up_full, up_last = sums[0, edge], sums[1, edge]
        if backwards:
            up_full += totals[0] - mine[0, edge]
            up_last += totals[1] - mine[1, edge]
        edge = wave_end[j] if was_backwards else wave_start[j]
        down_full = sums[0, edge]
        if not backwards:
            down_full += totals[0] - mine[0, edge]
        start = (steps - 2) * up_full + up_last + own_full + between
        low[item], high[item] = _hits(start, down_full - up_full, steps - 1, capacity)
        at_last[item] = (steps - 1) * down_full + own_last + between <= capacity
        counts[operand] += (steps - 1 - high[item] + low[item]) * full[item] + (1 - at_last[item]) * last[item]


@inner
def _both_hit(shape: Sides, wave: OneWave, begin: int, end: int) -> np.int64:
    # Steps of a block in which both its tiles hit. The later blocks of a wave find what its first one fetched.
    rows, cols, first_col = shape.rows, shape.cols, shape.heights.shape[0]
    _, is_first, low, high, at_last = wave
    result, last_step = np.int64(0), np.int64(shape.steps - 1)
    for b in range(begin, end):
        a, c = rows[b], first_col + cols[b]
        bottom, top, ends = np.int64(0), last_step, np.int64(1)
        if is_first[2 * (b - begin)]:
            bottom, top, ends = low[a], high[a], at_last[a]
        if is_first[2 * (b - begin) + 1]:
            bottom, top, ends = max(bottom, low[c]), min(top, high[c]), ends & at_last[c]
        result += max(np.int64(0), top - bottom) + ends
    return result


@inner
def _renew(shape: Sides, stack: Stack, w: int, depth: int, begin: int, end: int) -> int:
    # What the wave touched, last first, goes to the top of the stack; how many items it holds then.
    rows, cols, first_col = shape.rows, shape.cols, shape.heights.shape[0]
    items, place, wave_of, seen, done = stack.items, stack.place, stack.wave_of, stack.seen, -2 - w
    fresh = np.empty(items.shape[0], np.int64)
    renewed = 0
    for b in range(end - 1, begin - 1, -1):
        for side in range(1, -1, -1):
            item = rows[b] if side == 0 else first_col + cols[b]
            if seen[item] == w:
                seen[item] = done
                fresh[renewed] = item
                renewed += 1
    for j in range(depth):
        if seen[items[j]] != done:
            fresh[renewed] = items[j]
            renewed += 1
    for j in range(renewed):
        items[j] = fresh[j]
        place[items[j]] = j
        if seen[items[j]] == done:
            wave_of[items[j]] = w
    return renewed


@inner
def _residue(shape: Sides, stack: Stack, depth: int, written: Counts, capacity: int) -> np.int64:
    # Lines of C left in the cache, from the end: the tiles of a wave lie below all that later waves touched.
    items, wave_of, full, last = stack.items, stack.wave_of, shape.full, shape.last
    result, above = np.int64(0), np.int64(0)
    j, count = 0, written.shape[0] - 1
    for w in range(count - 1, -1, -1):
        below = above + written[count] - written[w + 1]
        if below >= capacity:
            break
        result += min(capacity - below, written[w + 1] - written[w])
        while j < depth and wave_of[items[j]] == w:
            above += (shape.steps - 1) * full[items[j]] + last[items[j]]
            j += 1
    return result


@jit
def _run(shape: Sides, capacity: int, counts: Counts, missed: Counts) -> np.int64:
    # Returns lines of C left in the cache, or -1 when a step or a tile of C does not fit. Adds to counts: missed lines
    # of A and of B, block steps that hit, and over all tiles rows of A, lines across B and lines of C; puts down the
    # missed lines of each wave.
    tiles, items = shape.rows.shape[0], shape.full.shape[0]
    sums, edges, lists = np.zeros((4, items + 1), np.int64), np.zeros((2, items), np.int64), np.full((8, items), _NONE)
    stack = Stack(lists[0], lists[1], lists[2], lists[3], sums[:2], sums[2:], edges[0], edges[1])
    wave = OneWave(lists[4], np.zeros(2 * shape.wave, np.uint8), lists[5], lists[6], lists[7])
    written = np.zeros((tiles + shape.wave - 1) // shape.wave + 1, np.int64)  # lines of C before each wave
    depth = 0
    for w in range(written.shape[0] - 1):
        begin, end = w * shape.wave, min(tiles, (w + 1) * shape.wave)
        before = counts[0] + counts[1]
        number, total_full, total_last, largest = _listed(shape, stack, wave, w, begin, end, counts)
        if max(largest, total_full, total_last) > capacity:
            return np.int64(-1)
        written[w + 1] = counts[5]
        _add_up(shape, stack, w, depth)
        _reuses(shape, stack, wave, w, number, (total_full, total_last), written, capacity, counts)
        missed[w] = counts[0] + counts[1] - before
        counts[2] += _both_hit(shape, wave, begin, end)
        depth = _renew(shape, stack, w, depth, begin, end)
    return _residue(shape, stack, depth, written, capacity)


def lockstep_lru(gemm: LockstepGemm, capacity_lines: int) -> CacheCounts | None:
    """What LRU finds for the lock-step trace of a GEMM with whole-line tiles, in closed form.

    Parameters
    ----------
    gemm : LockstepGemm
        The trace.
    capacity_lines : int
        Capacity in 128-byte lines.

    Returns
    -------
    CacheCounts or None
        None when the tiles of one step of a wave, or a tile of C, do not fit: then simulate. Cost: O(waves x (blocks
        + tile rows + tile columns) + waves x distinct tiles of a step squared), independent of k.
    """
    g = gemm
    steps = g.a.grid[1]
    col_spans, a_spans, b_heights = g.b.columns[1], g.a.columns[1], g.b.heights
    full = np.concatenate([g.a.heights * a_spans[0], col_spans * b_heights[0]])
    last = np.concatenate([g.a.heights * a_spans[-1], col_spans * b_heights[-1]])
    shape = Sides(g.rows, g.cols, g.wave_blocks, steps, g.sawtooth, full, last, g.a.heights, col_spans, g.c.columns[1])
    counts = np.zeros(6, np.int64)
    missed = np.zeros(-(-len(g.rows) // g.wave_blocks), np.int64)
    residue = _run(shape, capacity_lines, counts, missed)
    if residue < 0:
        return None
    a_missed, b_missed, both_hit, a_rows, b_lines, c = counts.tolist()
    return CacheCounts(
        operand_names=("A", "B", "C"),
        accesses=(a_rows * int(a_spans.sum()), b_lines * int(b_heights.sum()), c * (1 + g.accumulate)),
        read_misses=(a_missed, b_missed, c * g.accumulate),
        write_misses=(0, 0, c * (not g.accumulate)),
        write_backs=(0, 0, c),
        block_steps=len(g.rows) * steps,
        block_steps_both_hit=both_hit,
        residue=(0, 0, int(residue)),
        read_misses_of_waves=tuple(missed.tolist()),
    )

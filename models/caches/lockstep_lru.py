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

import numpy as np

from pebble.models.caches.base import CacheCounts
from pebble.traces import LockstepGemm
from pebble.traces.jit import jit

_NONE = -1


@jit
def _hits(start, slope, count, capacity):  # type: ignore[no-untyped-def]
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


@jit
def _run(  # type: ignore[no-untyped-def]
    rows, cols, steps, wave, sawtooth, full, last, heights, spans, c_spans, capacity, misses, touched, residue,
):  # fmt: skip
    # full[i], last[i]: lines of item i (a row of A tiles or a column of B tiles) at a full and at the last step.
    # Adds missed lines of A and B to misses, block steps that hit to misses[2]; residue[0]: C lines left in the cache.
    # touched: rows of A, lines across B and lines of C, added up over all tiles. Returns False when a step or a tile of
    # C does not fit the cache.
    first_col = heights.shape[0]
    items = full.shape[0]
    tiles = rows.shape[0]
    count = (tiles + wave - 1) // wave
    stack, fresh = np.empty(items, np.int64), np.empty(items, np.int64)  # items, most recent first
    place = np.full(items, _NONE, np.int64)  # where an item stands in the stack
    wave_of = np.full(items, _NONE, np.int64)  # the last wave that touched it
    seen = np.full(items, _NONE, np.int64)
    sums = np.zeros((2, items + 1), np.int64)  # lines above each place of the stack, full and last step
    mine = np.zeros((2, items + 1), np.int64)  # the same, of items that this wave touches
    group_start, group_end = np.empty(items + 1, np.int64), np.empty(items + 1, np.int64)
    low, high, at_last = np.empty(items, np.int64), np.empty(items, np.int64), np.empty(items, np.int64)
    is_first = np.zeros(2 * wave, np.uint8)
    listed, was = np.empty(items, np.int64), np.empty(items, np.int64)  # items of the wave; their places before it
    size_full, size_last = np.empty(items, np.int64), np.empty(items, np.int64)
    written = np.zeros(count + 1, np.int64)
    depth = 0
    for w in range(count):
        begin, end = w * wave, min(tiles, (w + 1) * wave)
        number = 0
        total_full, total_last = np.int64(0), np.int64(0)
        written[w + 1] = written[w]
        for b in range(begin, end):
            c_lines = heights[rows[b]] * c_spans[cols[b]]
            if c_lines > capacity:
                return False
            written[w + 1] += c_lines
            touched[0] += heights[rows[b]]
            touched[1] += spans[cols[b]]
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
        if total_full > capacity or total_last > capacity:
            return False
        for j in range(depth):
            item = stack[j]
            here = seen[item] == w
            sums[0, j + 1] = sums[0, j] + full[item]
            sums[1, j + 1] = sums[1, j] + last[item]
            mine[0, j + 1] = mine[0, j] + (full[item] if here else 0)
            mine[1, j + 1] = mine[1, j] + (last[item] if here else 0)
            group_start[j] = group_start[j - 1] if j and wave_of[stack[j - 1]] == wave_of[item] else j
        for j in range(depth - 1, -1, -1):
            same = j + 1 < depth and wave_of[stack[j + 1]] == wave_of[stack[j]]
            group_end[j] = group_end[j + 1] if same else j + 1
        backwards = sawtooth and w % 2 == 1
        for i in range(number):
            item = listed[i]
            was[i] = place[item] if place[item] != _NONE else items
            size_full[i], size_last[i] = full[item], last[item]
        for i in range(number):
            item = listed[i]
            j = place[item]
            if j == _NONE:
                low[item], high[item], at_last[item] = 0, 0, 0
                misses[1 if item >= first_col else 0] += (steps - 1) * full[item] + last[item]
                continue
            before = wave_of[item]
            was_backwards = sawtooth and before % 2 == 1
            own_full, own_last = sums[0, j] + full[item], sums[1, j] + last[item]
            for earlier in range(np.uint64(i)):  # touched before this one in the step, and not yet counted above it
                below = was[earlier] > j
                own_full += size_full[earlier] if below else 0
                own_last += size_last[earlier] if below else 0
            between = written[w] - written[before]
            # k above s: in w' after s unless it ran backwards, in w before s only if it runs backwards
            edge = group_start[j] if was_backwards else group_end[j]
            up_full, up_last = sums[0, edge], sums[1, edge]
            if backwards:
                up_full += total_full - mine[0, edge]
                up_last += total_last - mine[1, edge]
            edge = group_end[j] if was_backwards else group_start[j]
            down_full = sums[0, edge]
            if not backwards:
                down_full += total_full - mine[0, edge]
            start = (steps - 2) * up_full + up_last + own_full + between
            low[item], high[item] = _hits(start, down_full - up_full, steps - 1, capacity)
            at_last[item] = (steps - 1) * down_full + own_last + between <= capacity
            misses[1 if item >= first_col else 0] += (steps - 1 - high[item] + low[item]) * full[item]
            misses[1 if item >= first_col else 0] += (1 - at_last[item]) * last[item]
        for b in range(begin, end):  # steps in which both tiles hit
            a, c = rows[b], first_col + cols[b]
            bottom, top, ends = np.int64(0), np.int64(steps - 1), np.int64(1)
            if is_first[2 * (b - begin)]:
                bottom, top, ends = low[a], high[a], at_last[a]
            if is_first[2 * (b - begin) + 1]:
                bottom, top, ends = max(bottom, low[c]), min(top, high[c]), ends & at_last[c]
            if top > bottom:
                misses[2] += top - bottom
            misses[2] += ends
        renewed = 0
        for b in range(end - 1, begin - 1, -1):
            for side in range(1, -1, -1):
                item = rows[b] if side == 0 else first_col + cols[b]
                if seen[item] == w:
                    seen[item] = -2 - w
                    fresh[renewed] = item
                    renewed += 1
        for j in range(depth):
            if seen[stack[j]] != -2 - w:
                fresh[renewed] = stack[j]
                renewed += 1
        depth = renewed
        for j in range(depth):
            stack[j] = fresh[j]
            place[stack[j]] = j
            if seen[stack[j]] == -2 - w:
                wave_of[stack[j]] = w
    touched[2] = written[count]
    # from the end: the C tiles of wave w lie below all that later waves touched
    j = 0
    above = np.int64(0)
    for w in range(count - 1, -1, -1):
        depth_lines = above + written[count] - written[w + 1]
        if depth_lines >= capacity:
            break
        residue[0] += min(capacity - depth_lines, written[w + 1] - written[w])
        while j < depth and wave_of[stack[j]] == w:
            above += (steps - 1) * full[stack[j]] + last[stack[j]]
            j += 1
    return True


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
    misses, touched, residue = np.zeros(3, np.int64), np.zeros(3, np.int64), np.zeros(1, np.int64)
    if not _run(
        g.rows, g.cols, steps, g.wave_blocks, g.sawtooth, full, last, g.a.heights, col_spans, g.c.columns[1],
        capacity_lines, misses, touched, residue,
    ):  # fmt: skip
        return None
    c = int(touched[2])
    return CacheCounts(
        operand_names=("A", "B", "C"),
        accesses=(int(touched[0] * a_spans.sum()), int(touched[1] * b_heights.sum()), c * (1 + g.accumulate)),
        read_misses=(int(misses[0]), int(misses[1]), c * g.accumulate),
        write_misses=(0, 0, c * (not g.accumulate)),
        write_backs=(0, 0, c),
        block_steps=len(g.rows) * steps,
        block_steps_both_hit=int(misses[2]),
        residue=(0, 0, int(residue[0])),
    )

"""A* over positions (products done, red set) of the in-place GEMM, cost counted without the final stores.

Normal form, without loss of generality: items are loaded when a product needs them; an item is evicted only when
room is needed; a finished or useless item is dropped at once; a product whose three items are red runs at once; and
when a slot is free, an item that can be loaded, fully used with what is red, and dropped, is. An unfinished
accumulator that is evicted costs 2, its store now and its load later.

The search expands one level of f after the other and, of a position, only the successors of that level; a position
whose cheapest other successor lies higher is queued again there. The bound is consistent, so the first cost at which
a position is entered is its least.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pebble.solvers.search.bits import EXHAUSTED, FOUND, FULL, GROW, ONE, RUNNING, ZERO, bit, lowest, mix, popcount
from pebble.solvers.search.gemm_canon import class_of, least_image
from pebble.solvers.search.gemm_rules import compulsory_left, settle, table_bound

U64 = NDArray[np.uint64]
LEVELS = 512


class Positions(NamedTuple):
    """Positions met: canonical products done and red set, cost so far, and the queue of each level."""

    done: U64
    red: U64
    cost: NDArray[np.uint8]
    bound: NDArray[np.uint8]
    """Cost so far plus bound, as the beam ranks them."""
    parent: NDArray[np.int32]
    queue: NDArray[np.int32]
    """queue[s]: the position after s in the queue of its level, or -1."""
    head: NDArray[np.int64]
    counts: NDArray[np.int64]
    """counts[0]: positions, [1]: current level, [2]: expansions, [3]: goal or -1, [4]: successors looked at."""


def make_positions(most: int) -> Positions:
    """Empty arrays for at most `most` positions; untouched pages cost no memory."""
    head = np.full(LEVELS, -1, dtype=np.int64)
    counts = np.zeros(8, dtype=np.int64)
    counts[3] = -1
    return Positions(
        np.empty(most, dtype=np.uint64),
        np.empty(most, dtype=np.uint64),
        np.empty(most, dtype=np.uint8),
        np.empty(most, dtype=np.uint8),
        np.empty(most, dtype=np.int32),
        np.empty(most, dtype=np.int32),
        head,
        counts,
    )


@njit(cache=True, nogil=True)
def find_position(pos, table, D, R):  # type: ignore[no-untyped-def]
    """Slot of a position in the hash table, its own or the free one."""
    size = len(table)
    where = np.int64(mix(D, R) & np.uint64(size - 1))
    while table[where] != 0:
        s = table[where] - 1
        if pos.done[s] == D and pos.red[s] == R:
            break
        where = (where + 1) & (size - 1)
    return where


@njit(cache=True, nogil=True)
def rehash_positions(pos, table):  # type: ignore[no-untyped-def]
    """Fill a larger, zeroed table."""
    for s in range(pos.counts[0]):
        table[find_position(pos, table, pos.done[s], pos.red[s])] = s + 1


@njit(cache=True, nogil=True)
def _enter(pos, table, D, R, cost, parent, level, bound):  # type: ignore[no-untyped-def]
    """Enter a canonical position into the queue of a level, or improve it; False when the arrays are full."""
    where = find_position(pos, table, D, R)
    if table[where] != 0:
        s = table[where] - 1
        if cost >= pos.cost[s]:
            return True
        # cannot happen while the bound is consistent: counted, so that a test can see it
        pos.counts[5] += 1
        pos.done[s] = ~ZERO  # the dearer copy stays queued but is skipped; its slot goes to the better one
        pos.red[s] = ~ZERO
    s = pos.counts[0]
    if s >= len(pos.done):
        return False
    pos.counts[0] = s + 1
    pos.done[s] = D
    pos.red[s] = R
    pos.cost[s] = cost
    pos.bound[s] = bound
    pos.parent[s] = parent
    pos.queue[s] = pos.head[level]
    pos.head[level] = s
    table[where] = s + 1
    return True


@njit(cache=True, nogil=True)
def _expand(mod, cls, pat, nodes, V, offsets, pos, table, s, level, layered):  # type: ignore[no-untyped-def]
    """Enter the successors of position s up to this level; the next level at which it has one, or -1 when full.

    They queue at this level or, if `layered`, by the number of products done.
    """
    D, R, paid = pos.done[s], pos.red[s], np.int64(pos.cost[s])
    full = bit(mod.products_count) - ONE if mod.products_count < 64 else ~ZERO
    cbase = (mod.m + mod.n) * mod.k
    later = np.int64(LEVELS - 1)
    base = paid + compulsory_left(mod, D, R)
    room = mod.capacity - popcount(R)
    pick = np.zeros(4, np.int64)
    victims = np.zeros(64, np.int64)
    left = full & ~D
    while left:
        t = lowest(left)
        left &= left - ONE
        missing = mod.needs[t] & ~R
        evict = popcount(missing) - room
        if evict < 0:
            evict = 0
        load = paid
        rest = missing
        while rest:
            x = lowest(rest)
            rest &= rest - ONE
            if x < cbase or D & mod.touches[x]:
                load += 1
        count = 0
        rest = R & ~mod.needs[t]
        while rest:
            x = lowest(rest)
            rest &= rest - ONE
            victims[count] = x
            count += 1
        if count < evict:
            continue
        for q in range(evict):
            pick[q] = q
        while True:
            fine = base
            smaller = R
            stores = 0
            for q in range(evict):
                x = victims[pick[q]]
                smaller &= ~bit(x)
                if x >= cbase:
                    fine += 2
                    stores += 1
                else:
                    fine += 1
            if fine > level:
                later = min(later, fine)
            else:
                D2, R2, extra = settle(mod, D, smaller | mod.needs[t])
                paid2 = load + stores + extra
                pos.counts[4] += 1
                if full == D2:
                    f = paid2
                    c, g = np.int64(0), np.int64(0)
                else:
                    c, g = class_of(mod, cls, R2)
                    if c < 0:
                        return np.int64(-1)
                    f = paid2 + compulsory_left(mod, D2, R2)
                    if f <= level and V.shape[0] > 0:
                        f = max(f, paid2 + table_bound(mod, cls, pat, nodes, V, offsets, D2, R2, c, g))
                if f > level:
                    later = min(later, f)
                elif full == D2:
                    pos.counts[3] = s
                    pos.counts[6] = paid2
                    if not layered:
                        return later
                    level = paid2 - 1
                else:
                    line = popcount(D2) if layered else level
                    image = least_image(mod, cls, c, g, D2)
                    if not _enter(pos, table, image, cls.red[c], paid2, s, line, f):
                        return np.int64(-1)
            q = evict - 1
            while q >= 0 and pick[q] == count - evict + q:
                q -= 1
            if q < 0:
                break
            pick[q] += 1
            for r in range(q + 1, evict):
                pick[r] = pick[r - 1] + 1
    return later


@njit(cache=True, nogil=True)
def advance(mod, cls, pat, nodes, V, offsets, pos, table, upper, work):  # type: ignore[no-untyped-def]
    """Up to `work` expansions. Levels from counts[1] on; stops at `upper`, which is known to be reachable."""
    if pos.counts[0] == 0:
        pos.done[0] = ZERO
        pos.red[0] = ZERO
        pos.cost[0] = 0
        pos.parent[0] = -1
        pos.queue[0] = -1
        pos.bound[0] = 0
        pos.counts[0] = 1
        c, g = class_of(mod, cls, ZERO)
        f = compulsory_left(mod, ZERO, ZERO)
        if V.shape[0] > 0:
            f = max(f, table_bound(mod, cls, pat, nodes, V, offsets, ZERO, ZERO, c, g))
        pos.counts[1] = f
        pos.head[f] = 0
        table[find_position(pos, table, ZERO, ZERO)] = 1
    for _ in range(work):
        level = pos.counts[1]
        while level < upper and pos.head[level] < 0:
            level += 1
        pos.counts[1] = level
        if level >= upper:
            return EXHAUSTED
        if 2 * (pos.counts[0] + 4096) > len(table):
            return GROW
        s = pos.head[level]
        pos.head[level] = pos.queue[s]
        if pos.red[s] == ~ZERO:
            continue
        pos.counts[2] += 1
        later = _expand(mod, cls, pat, nodes, V, offsets, pos, table, s, level, False)
        if later < 0:
            pos.queue[s] = pos.head[level]
            pos.head[level] = s
            return FULL
        if pos.counts[3] >= 0:
            return FOUND
        if later < upper:
            pos.queue[s] = pos.head[later]
            pos.head[later] = s
    return RUNNING


@njit(cache=True, nogil=True)
def beam_layer(mod, cls, pat, nodes, V, offsets, pos, table, upper, layer, width, few):  # type: ignore[no-untyped-def]
    """Expand the best `width` positions with `layer` products done, while there is room; FULL or RUNNING.

    Only successors on a position's own level are entered, and where those are `few` or less, on its next level too.
    A play found is in counts[3] and [6].
    """
    tally = np.zeros(LEVELS, np.int64)
    s = pos.head[layer]
    while s >= 0:
        if pos.red[s] != ~ZERO:
            tally[pos.bound[s]] += 1
        s = pos.queue[s]
    last, total = 0, 0
    while last < LEVELS - 1 and total + tally[last] < width:
        total += tally[last]
        last += 1
    spare = width - total
    s = pos.head[layer]
    while s >= 0:
        following = pos.queue[s]
        bound = np.int64(pos.bound[s])
        if pos.red[s] != ~ZERO and (bound < last or (bound == last and spare > 0)):
            if bound == last:
                spare -= 1
            best = pos.counts[6] if pos.counts[3] >= 0 else np.int64(upper)
            if 4 * (pos.counts[0] + 4096) > 3 * len(table):
                return RUNNING
            if bound >= best:
                s = following
                continue
            before, line = pos.counts[0], bound
            while True:
                later = _expand(mod, cls, pat, nodes, V, offsets, pos, table, s, line, True)
                if later < 0:
                    return FULL
                best = pos.counts[6] if pos.counts[3] >= 0 else np.int64(upper)
                if later <= line or later >= best or pos.counts[0] >= before + few:
                    break
                line = later
        s = following
    return RUNNING

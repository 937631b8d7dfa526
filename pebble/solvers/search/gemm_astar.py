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

import numpy as np
from numba import njit

from pebble.solvers.search.bits import EXHAUSTED, FULL, GROW, ONE, RUNNING, ZERO, bit, borrowed, lowest, popcount
from pebble.solvers.search.gemm_canon import class_of, least_image
from pebble.solvers.search.gemm_model import touched_twice
from pebble.solvers.search.gemm_table import NEVER, find_node, scope
from pebble.solvers.search.positions import LEVELS, enter, expanded, next_position


@njit(cache=True, nogil=True)
def settle(mod, D, R, log):  # type: ignore[no-untyped-def]
    """Run what can run, drop what is useless, take what is free to take: (D, R, cost of the latter).

    A `log` that is not empty gets log[0, 0] rows: products done after a step, and the red set while they ran.
    """
    cost = 0
    if len(log) > 0:
        log[0, 0] = ZERO
    cbase = (mod.m + mod.n) * mod.k
    while True:
        _, _, thrice = touched_twice(mod, R)
        D |= thrice
        if len(log) > 0:
            log[0, 0] += ONE
            log[log[0, 0], 0], log[log[0, 0], 1] = D, R
        left = R
        while left:
            x = lowest(left)
            left &= left - ONE
            if (mod.touches[x] & ~D) == ZERO:
                R &= ~bit(x)
        if popcount(R) >= mod.capacity or mod.full == D:
            return D, R, cost
        _, twice, _ = touched_twice(mod, R)
        found = -1
        for x in range(mod.items_count):
            undone = mod.touches[x] & ~D
            if undone != ZERO and (undone & ~twice) == ZERO and not (R & bit(x)):
                found = x
                break
        if found < 0:
            return D, R, cost
        if found < cbase or D & mod.touches[found]:
            cost += 1
        D |= mod.touches[found]
        if len(log) > 0:
            log[0, 0] += ONE
            log[log[0, 0], 0], log[log[0, 0], 1] = D, R | bit(found)


@njit(cache=True, nogil=True)
def compulsory_left(mod, D, R):  # type: ignore[no-untyped-def]
    """What is certainly still to pay: a load per needed A or B, or touched unfinished C, that is not red."""
    cost = 0
    cbase = (mod.m + mod.n) * mod.k
    for x in range(mod.items_count):
        if not (R & bit(x)):
            word = mod.touches[x]
            if word & ~D and (x < cbase or word & D):
                cost += 1
    return cost


@njit(cache=True, nogil=True)
def table_bound(mod, cls, pat, nodes, V, offsets, D, R, c, g):  # type: ignore[no-untyped-def]
    """V of the position's pattern; 0 where the table has no entry, 255 where no play reaches the end."""
    undone = least_image(mod, cls, c, g, scope(mod, R) & ~D)
    slot = nodes[find_node(pat, nodes, c, undone)]
    if slot == 0:
        return np.int64(0)
    untouched, stored = 0, 0
    for x in range((mod.m + mod.n) * mod.k, mod.items_count):
        if (D & mod.touches[x]) == ZERO:
            untouched += 1
        elif mod.touches[x] & ~D and not R & bit(x):
            stored += 1
    left = popcount(mod.full & ~D)
    value = np.int64(V[offsets[untouched] + left - mod.k * untouched, slot - 1])
    # without detail V counts the store of an evicted accumulator with its reload, but it is paid already
    return value - stored if mod.detail == 0 and value != NEVER else value


@njit(cache=True, nogil=True)
def _is_goal(mod, cls, D, R, goal):  # type: ignore[no-untyped-def]
    """Whether (D, R) is an image of the canonical position sought."""
    if mod.full == D:
        return mod.full == goal[0]
    c, g = class_of(mod, cls, R)
    return cls.red[c] == goal[1] and least_image(mod, cls, c, g, D) == goal[0]


@njit(cache=True, nogil=True)
def expand(mod, cls, pat, nodes, V, offsets, pos, table, s, D, R, level, layered, goal, goal_cost, log):  # type: ignore[no-untyped-def]
    """Enter the successors of position s up to this level; the next level at which it has one, or -1 when full.

    (D, R) is the position or an image of it. Successors queue at this level or, if `layered`, by the number of
    products done. With a `goal` (a canonical position) nothing is entered: what runs on the way there, at `goal_cost`,
    is left in `log`, the image reached in `found`, and -2 returned.
    """
    paid = np.int64(pos.cost[s])
    state = np.empty(2, np.uint64)
    cbase = (mod.m + mod.n) * mod.k
    later = np.int64(LEVELS - 1)
    base = paid + compulsory_left(mod, D, R)
    room = mod.capacity - popcount(R)
    pick = np.zeros(4, np.int64)
    victims = np.zeros(64, np.int64)
    left = mod.full & ~D
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
                D2, R2, extra = settle(mod, D, smaller | mod.needs[t], log)
                paid2 = load + stores + extra
                pos.counts[4] += 1
                f = paid2
                c, g = np.int64(0), np.int64(0)
                if len(goal) > 0:
                    if paid2 == goal_cost and _is_goal(mod, cls, D2, R2, goal):
                        pos.found[0], pos.found[1] = D2, R2
                        return np.int64(-2)
                    f = level + 1
                elif mod.full != D2:
                    c, g = class_of(mod, cls, R2)
                    if c < 0:
                        return np.int64(-1)
                    f = paid2 + compulsory_left(mod, D2, R2)
                    if f <= level and V.shape[0] > 0:
                        f = max(f, paid2 + table_bound(mod, cls, pat, nodes, V, offsets, D2, R2, c, g))
                if f > level:
                    later = min(later, f)
                elif mod.full == D2:
                    pos.counts[3] = s
                    pos.counts[6] = paid2
                    if not layered:
                        return later
                    level = paid2 - 1
                else:
                    state[0], state[1] = least_image(mod, cls, c, g, D2), cls.red[c]
                    if not enter(pos, table, state, paid2, s, popcount(D2) if layered else level, f):
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
    mod, cls, pat, nodes, V, offsets, pos, table = borrowed((mod, cls, pat, nodes, V, offsets, pos, table))
    goal, log = np.empty(0, np.uint64), np.empty((0, 2), np.uint64)
    if pos.counts[0] == 0:
        c, g = class_of(mod, cls, ZERO)
        f = compulsory_left(mod, ZERO, ZERO)
        if V.shape[0] > 0:
            f = max(f, table_bound(mod, cls, pat, nodes, V, offsets, ZERO, ZERO, c, g))
        pos.counts[1] = f
        enter(pos, table, np.zeros(2, np.uint64), 0, -1, f, 0)
    for _ in range(work):
        if 2 * (pos.counts[0] + 4096) > len(table):
            return GROW
        s = next_position(pos, upper)
        if s < 0:
            return EXHAUSTED
        if pos.cost[s] < 0:
            continue
        pos.counts[2] += 1
        D, R, level = pos.words[s, 0], pos.words[s, 1], pos.counts[1]
        later = expand(mod, cls, pat, nodes, V, offsets, pos, table, s, D, R, level, False, goal, 0, log)
        status = expanded(pos, s, later, upper)
        if status != RUNNING:
            return status
    return RUNNING


@njit(cache=True, nogil=True)
def beam_layer(mod, cls, pat, nodes, V, offsets, pos, table, upper, layer, width, few):  # type: ignore[no-untyped-def]
    """Expand the best `width` positions with `layer` products done, while there is room; FULL or RUNNING.

    Only successors on a position's own level are entered, and where those are `few` or less, on its next level too.
    A play found is in counts[3] and [6].
    """
    mod, cls, pat, nodes, V, offsets, pos, table = borrowed((mod, cls, pat, nodes, V, offsets, pos, table))
    goal, log = np.empty(0, np.uint64), np.empty((0, 2), np.uint64)
    tally = np.zeros(LEVELS, np.int64)
    s = pos.head[layer, 0]
    while s >= 0:
        if pos.cost[s] >= 0:
            tally[pos.note[s]] += 1
        s = pos.queue[s]
    last, total = 0, 0
    while last < LEVELS - 1 and total + tally[last] < width:
        total += tally[last]
        last += 1
    spare = width - total
    s = pos.head[layer, 0]
    while s >= 0:
        following = pos.queue[s]
        bound = np.int64(pos.note[s])
        if pos.cost[s] >= 0 and (bound < last or (bound == last and spare > 0)):
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
                D, R = pos.words[s, 0], pos.words[s, 1]
                later = expand(
                    mod, cls, pat, nodes, V, offsets, pos, table, s, D, R, line, True, goal, 0, log
                )  # fmt: skip
                if later < 0:
                    return FULL
                best = pos.counts[6] if pos.counts[3] >= 0 else np.int64(upper)
                if later <= line or later >= best or pos.counts[0] >= before + few:
                    break
                line = later
        s = following
    return RUNNING

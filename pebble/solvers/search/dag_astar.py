"""A* over the positions of a game without recomputation, level by level of excess cost.

As in the search of the GEMM, only the successors of the present level are entered; a position whose cheapest other
successor lies higher is queued again there.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pebble.solvers.search.bits import EXHAUSTED, FOUND, GROW, RUNNING, ZERO, popcount
from pebble.solvers.search.dag_rules import (
    D0,
    D1,
    R0,
    R1,
    WORDS,
    clean,
    drop,
    excess_bound,
    has,
    last_use,
    perform,
    ready,
    settle_dag,
)
from pebble.solvers.search.positions import LEVELS, enter, expanded, find_position, next_position


@njit(cache=True, nogil=True)
def is_end(mod, state):  # type: ignore[no-untyped-def]
    """Whether all tasks are done."""
    return popcount(state[D0]) + popcount(state[D1]) == mod.tasks


@njit(cache=True, nogil=True)
def _try(mod, pos, table, s, state, t, source, cost, level, goal, log):  # type: ignore[no-untyped-def]
    """Play task t from `state` (victims are gone) and enter the result; its level, -1 when full, -2 when sought."""
    perform(mod, state, t, source)
    log[0, 0] = 0
    settle_dag(mod, state, log)
    pos.counts[4] += 1
    if len(goal) > 0:
        for w in range(WORDS):
            if state[w] != goal[w]:
                return cost
        return -2
    f = np.int64(cost)
    if is_end(mod, state):
        if f <= level:
            pos.counts[3] = s
            pos.counts[6] = cost
        return f
    where = find_position(pos.words, table, state)
    if table[where] != 0 and pos.cost[table[where] - 1] <= cost:
        return f  # met before: nothing new at any level
    f += excess_bound(mod, state, level - cost + 1)
    if f <= level and not enter(pos, table, state, cost, s, level, 0):
        return -1
    return f


@njit(cache=True, nogil=True)
def expand(mod, pos, table, s, level, goal, goal_cost, log):  # type: ignore[no-untyped-def]
    """Enter the successors of position s up to this level; the next level at which it has one, or -1 when full.

    With a `goal` (six words) nothing is entered: the move that leads there at `goal_cost` is put into `found`, and
    -2 returned.
    """
    state = pos.words[s].copy()
    trial = np.empty(WORDS, np.uint64)
    paid = np.int64(pos.cost[s])
    later = LEVELS - 1
    victims, price = np.empty(128, np.int64), np.empty(128, np.int64)
    pick = np.empty(128, np.int64)
    sources, fee = np.empty(130, np.int64), np.empty(130, np.int64)
    for t in range(mod.tasks):
        if not ready(mod, state, t):
            continue
        x = mod.target[t]
        o0, o1 = mod.operands[t, 0], mod.operands[t, 1]
        union = popcount(state[R0] | o0) + popcount(state[R1] | o1)
        fresh = not has(state[R0], state[R1], x)
        over = union + (1 if fresh else 0) - mod.capacity
        # ways to find room: evict `over` items beforehand, or one less and let the result slide
        ways = 0
        sources[0], fee[0] = -1, 0
        ways = 1
        if mod.sliding and fresh and over > 0:
            for y in range(mod.items):
                if has(o0, o1, y):
                    if last_use(mod, state, y, t):
                        sources[0], fee[0] = y, 0
                        ways = 1
                        break
                    blue = not has(state[R0], state[R1], y) or clean(mod, state, y)
                    sources[ways], fee[ways] = y, 1 if blue else 2
                    ways += 1
        count = 0
        for dear in range(1, 3):
            for y in range(mod.items):
                if y == x or not has(state[R0], state[R1], y) or has(o0, o1, y):
                    continue
                if clean(mod, state, y) == (dear == 1):
                    victims[count], price[count] = y, dear
                    count += 1
        for way in range(ways):
            evict = max(0, over - (1 if sources[way] >= 0 else 0))
            if evict > count:
                continue
            for q in range(evict):
                pick[q] = q
            while True:
                cost = paid + fee[way]
                for q in range(evict):
                    cost += price[pick[q]]
                if cost > level:
                    later = min(later, cost)
                else:
                    trial[:] = state
                    for q in range(evict):
                        drop(trial, 2, victims[pick[q]])
                        drop(trial, 4, victims[pick[q]])
                    if len(goal) == 0 or cost == goal_cost:
                        f = _try(mod, pos, table, s, trial, t, sources[way], cost, level, goal, log)
                        if f == -1:
                            return -1
                        if f == -2:
                            pos.found[0] = np.uint64(t)
                            pos.found[1] = np.uint64(sources[way] + 1)
                            pos.found[2], pos.found[3] = ZERO, ZERO
                            for q in range(evict):
                                y = victims[pick[q]]
                                pos.found[2 + (y >> 6)] |= np.uint64(1) << np.uint64(y & 63)
                            return -2
                        if f > level:
                            later = min(later, f)
                        elif pos.counts[3] >= 0 and len(goal) == 0:
                            return later
                # next choice; prices ascend, so once one is too dear, moving its lowest place on is no use
                q = evict - 1
                spent = paid + fee[way]
                while q >= 0 and (pick[q] == count - evict + q or _too_dear(price, pick, q, evict, spent, level)):
                    q -= 1
                if q < 0:
                    break
                pick[q] += 1
                for r in range(q + 1, evict):
                    pick[r] = pick[r - 1] + 1
    return later


@njit(cache=True, nogil=True)
def _too_dear(price, pick, q, evict, cost, level):  # type: ignore[no-untyped-def]
    """Whether every choice that moves place q on costs more than the level, no less than some choice seen."""
    for r in range(q):
        cost += price[pick[r]]
    return cost + (evict - q) * price[pick[q]] > level


@njit(cache=True, nogil=True)
def advance(mod, pos, table, upper, work):  # type: ignore[no-untyped-def]
    """Up to `work` expansions, from level counts[1] on; stops at `upper`, which is known to be reachable."""
    goal = np.empty(0, np.uint64)
    log = np.zeros((mod.tasks + 2, 2), np.int64)
    if pos.counts[0] == 0:
        state = np.zeros(WORDS, np.uint64)
        settle_dag(mod, state, log)
        level = excess_bound(mod, state, LEVELS)
        enter(pos, table, state, 0, -1, level, 0)
        pos.counts[1] = level
        if is_end(mod, state):
            pos.counts[3], pos.counts[6] = 0, 0
            return FOUND
    for _ in range(work):
        if 2 * (pos.counts[0] + 4096) > len(table):
            return GROW
        s = next_position(pos, upper)
        if s < 0:
            return EXHAUSTED
        if pos.cost[s] < 0:
            continue
        pos.counts[2] += 1
        status = expanded(pos, s, expand(mod, pos, table, s, pos.counts[1], goal, 0, log), upper)
        if status != RUNNING:
            return status
    return RUNNING

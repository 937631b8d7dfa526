"""A* over the positions of a game without recomputation, level by level of excess cost.

As in the search of the GEMM, only the successors of the present level are entered; a position whose cheapest other
successor lies higher is queued again there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pebble.solvers.search.bits import EXHAUSTED, FOUND, FULL, GROW, RUNNING, ZERO, mix, popcount
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

U64 = NDArray[np.uint64]
LEVELS = 512
DEEPEST = 128


class Positions(NamedTuple):
    """Positions met, cost so far, and the queues: of each level, one for each number of tasks done."""

    words: U64
    cost: NDArray[np.int16]
    parent: NDArray[np.int32]
    queue: NDArray[np.int32]
    head: NDArray[np.int64]
    counts: NDArray[np.int64]
    """counts[0]: positions, [1]: level, [2]: expansions, [3]: the goal's parent or -1, [4]: successors looked at,
    [5]: positions improved, [6]: the goal's cost."""
    found: U64
    """Of a move looked for: task, source + 1, evicted items (2 words)."""


def make_positions(most: int) -> Positions:
    """Empty arrays for at most `most` positions; untouched pages cost no memory."""
    counts = np.zeros(8, dtype=np.int64)
    counts[3] = -1
    return Positions(
        np.empty((most, WORDS), dtype=np.uint64),
        np.empty(most, dtype=np.int16),
        np.empty(most, dtype=np.int32),
        np.empty(most, dtype=np.int32),
        np.full((LEVELS, DEEPEST + 1), -1, dtype=np.int64),
        counts,
        np.zeros(4, dtype=np.uint64),
    )


POSITION_BYTES = 8 * WORDS + 10 + 8  # and a hash table that is at most half full


@njit(cache=True, nogil=True)
def find_position(pos, table, state):  # type: ignore[no-untyped-def]
    """Slot of a position in the hash table, its own or the free one."""
    size = len(table)
    h = mix(mix(mix(state[0], state[1]), mix(state[2], state[3])), mix(state[4], state[5]))
    where = np.int64(h & np.uint64(size - 1))
    while table[where] != 0:
        s = table[where] - 1
        same = True
        for w in range(WORDS):
            if pos.words[s, w] != state[w]:
                same = False
                break
        if same:
            break
        where = (where + 1) & (size - 1)
    return where


@njit(cache=True, nogil=True)
def rehash_positions(pos, table):  # type: ignore[no-untyped-def]
    """Fill a larger, zeroed table."""
    for s in range(pos.counts[0]):
        if pos.cost[s] >= 0:
            table[find_position(pos, table, pos.words[s])] = s + 1


@njit(cache=True, nogil=True)
def _queue(pos, s, level):  # type: ignore[no-untyped-def]
    """Put a position into its queue of a level."""
    depth = popcount(pos.words[s, D0]) + popcount(pos.words[s, D1])
    pos.queue[s] = pos.head[level, depth]
    pos.head[level, depth] = s


@njit(cache=True, nogil=True)
def _deepest(pos, level, depth):  # type: ignore[no-untyped-def]
    """The largest number of tasks done, at most `depth`, of a position queued at a level; -1 when there is none."""
    while depth >= 0 and pos.head[level, depth] < 0:
        depth -= 1
    return depth


@njit(cache=True, nogil=True)
def _enter(pos, table, state, cost, parent, line):  # type: ignore[no-untyped-def]
    """Enter a position into a queue, or improve it; False when the arrays are full."""
    where = find_position(pos, table, state)
    if table[where] != 0:
        s = table[where] - 1
        if cost >= pos.cost[s]:
            return True
        pos.counts[5] += 1
        pos.cost[s] = -1  # the dearer copy stays queued but is skipped
    s = pos.counts[0]
    if s >= len(pos.cost):
        return False
    pos.counts[0] = s + 1
    pos.words[s] = state
    pos.cost[s] = cost
    pos.parent[s] = parent
    _queue(pos, s, line)
    table[where] = s + 1
    return True


@njit(cache=True, nogil=True)
def is_end(mod, state):  # type: ignore[no-untyped-def]
    """Whether all tasks are done."""
    return popcount(state[D0]) + popcount(state[D1]) == mod.tasks


@njit(cache=True, nogil=True)
def _try(mod, pos, table, s, state, t, source, cost, level, use_bound, goal, log):  # type: ignore[no-untyped-def]
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
    where = find_position(pos, table, state)
    if table[where] != 0 and pos.cost[table[where] - 1] <= cost:
        return f  # met before: nothing new at any level
    if use_bound:
        f += excess_bound(mod, state, level - cost + 1)
    if f <= level and not _enter(pos, table, state, cost, s, level):
        return -1
    return f


@njit(cache=True, nogil=True)
def expand(mod, pos, table, s, level, use_bound, goal, goal_cost, log):  # type: ignore[no-untyped-def]
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
                        f = _try(mod, pos, table, s, trial, t, sources[way], cost, level, use_bound, goal, log)
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
def advance(mod, pos, table, upper, work, use_bound):  # type: ignore[no-untyped-def]
    """Up to `work` expansions, from level counts[1] on; stops at `upper`, which is known to be reachable."""
    goal = np.empty(0, np.uint64)
    log = np.zeros((mod.tasks + 2, 2), np.int64)
    if pos.counts[0] == 0:
        state = np.zeros(WORDS, np.uint64)
        settle_dag(mod, state, log)
        level = excess_bound(mod, state, LEVELS) if use_bound else 0
        _enter(pos, table, state, 0, -1, level)
        pos.counts[1] = level
        if is_end(mod, state):
            pos.counts[3], pos.counts[6] = 0, 0
            return FOUND
    for _ in range(work):
        level = pos.counts[1]
        depth = _deepest(pos, level, mod.tasks)  # the one nearest to the end, so that the last level ends soon
        while depth < 0 and level < upper:
            level += 1
            depth = _deepest(pos, level, mod.tasks)
        pos.counts[1] = level
        if level >= upper:
            return EXHAUSTED
        if 2 * (pos.counts[0] + 4096) > len(table):
            return GROW
        s = pos.head[level, depth]
        pos.head[level, depth] = pos.queue[s]
        if pos.cost[s] < 0:
            continue
        pos.counts[2] += 1
        later = expand(mod, pos, table, s, level, use_bound, goal, 0, log)
        if later < 0:
            _queue(pos, s, level)
            return FULL
        if pos.counts[3] >= 0:
            return FOUND
        if later < upper:
            _queue(pos, s, later)
    return RUNNING

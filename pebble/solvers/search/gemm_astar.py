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

from pebble.solvers.search.bits import (
    EXHAUSTED,
    FULL,
    GROW,
    I32,
    I64,
    ONE,
    RUNNING,
    U64,
    ZERO,
    bit,
    borrowed,
    flag,
    lowest,
    popcount,
    signed,
    stepped,
)
from pebble.solvers.search.gemm_model import Classes, Model, class_of, least_image, touched_twice
from pebble.solvers.search.gemm_table import NEVER, Table, find_node, scope
from pebble.solvers.search.levels import LEVELS, Positions, enter, expanded, next_position
from pebble.traces.jit import inlined, inner, jit


class SearchSpace(NamedTuple):
    """What a search reads and writes."""

    mod: Model
    cls: Classes
    known: Table
    """The pattern table, without values where there is none."""
    pos: Positions
    slots: I32
    """The hash table of positions."""


class Sought(NamedTuple):
    """A canonical position that the moves on the way are asked for; an empty one is none."""

    goal: U64
    cost: int
    log: U64
    """What runs on the way there, as `settle` writes it."""


@jit
def settle(mod: Model, D: np.uint64, R: np.uint64, log: U64) -> tuple[np.uint64, np.uint64, int]:
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
        result = -1
        for x in range(mod.items_count):
            undone = mod.touches[x] & ~D
            if undone != ZERO and (undone & ~twice) == ZERO and not (R & bit(x)):
                result = x
                break
        if result < 0:
            return D, R, cost
        if result < cbase or D & mod.touches[result]:
            cost += 1
        D |= mod.touches[result]
        if len(log) > 0:
            log[0, 0] += ONE
            log[log[0, 0], 0], log[log[0, 0], 1] = D, R | bit(result)


@inner
def compulsory_left(mod: Model, D: np.uint64, R: np.uint64) -> int:
    """What is certainly still to pay: a load per needed A or B, or touched unfinished C, that is not red."""
    cost = 0
    cbase = (mod.m + mod.n) * mod.k
    for x in range(mod.items_count):
        if not (R & bit(x)):
            word = mod.touches[x]
            if word & ~D and (x < cbase or word & D):
                cost += 1
    return cost


@jit
def table_bound(mod: Model, cls: Classes, known: Table, D: np.uint64, R: np.uint64, c: int, g: int) -> int:
    """V of the position's pattern; 0 where the table has no entry, 255 where no play reaches the end."""
    undone = least_image(mod, cls, c, g, scope(mod, R) & ~D)
    slot = known.nodes[find_node(known.patterns, known.nodes, c, undone)]
    if slot == 0:
        return 0
    untouched, stored = 0, 0
    for x in range((mod.m + mod.n) * mod.k, mod.items_count):
        if (D & mod.touches[x]) == ZERO:
            untouched += 1
        elif mod.touches[x] & ~D and not R & bit(x):
            stored += 1
    left = popcount(mod.full & ~D)
    value = signed(known.values[known.offsets[untouched] + left - mod.k * untouched, slot - 1])
    # without detail V counts the store of an evicted accumulator with its reload, but it is paid already
    return value - stored if mod.detail == 0 and value != NEVER else value


@inner
def _is_goal(mod: Model, cls: Classes, D: np.uint64, R: np.uint64, goal: U64) -> bool:
    """Whether (D, R) is an image of the canonical position sought."""
    if mod.full == D:
        there: bool = mod.full == goal[0]
        return there
    c, g = class_of(mod, cls, R)
    there = cls.red[c] == goal[1] and least_image(mod, cls, c, g, D) == goal[0]
    return there


@inlined
def _list(victims: I64, rest: np.uint64) -> int:
    """Enter the items of a word; how many."""
    count = 0
    while rest:
        victims[count] = lowest(rest)
        rest &= rest - ONE
        count += 1
    return count


@inlined
def _loads(mod: Model, D: np.uint64, missing: np.uint64) -> int:
    """How many of the missing items are loaded: all but accumulators that are fresh."""
    count = 0
    while missing:
        x = lowest(missing)
        missing &= missing - ONE
        if x < (mod.m + mod.n) * mod.k or D & mod.touches[x]:
            count += 1
    return count


@inlined
def _next_choice(pick: I64, evict: int, count: int) -> bool:
    """Choose the next items to leave; False after the last."""
    q = evict - 1
    while q >= 0 and pick[q] == count - evict + q:
        q -= 1
    return stepped(pick, evict, q)


@inlined
def _bound(at: SearchSpace, paid: int, D: np.uint64, R: np.uint64, c: int, g: int, level: int) -> int:
    """Cost so far plus bound, the table's where the cheap one does not exceed the level."""
    f = paid + compulsory_left(at.mod, D, R)
    if f <= level and at.known.values.shape[0] > 0:
        f = max(f, paid + table_bound(at.mod, at.cls, at.known, D, R, c, g))
    return f


@jit
def expand(at: SearchSpace, s: int, D: np.uint64, R: np.uint64, level: int, layered: bool, sought: Sought) -> int:
    """Enter the successors of position s up to this level; the next level at which it has one, or -1 when full.

    (D, R) is the position or an image of it. Successors queue at this level or, if `layered`, by the number of
    products done. Where a position is `sought` nothing is entered: what runs on the way there is left in its log, the
    image reached in `found`, and -2 returned.
    """
    at, sought = borrowed((at, sought))
    mod, cls, pos, goal, log = at.mod, at.cls, at.pos, sought.goal, sought.log
    paid = signed(pos.cost[s])
    state = np.empty(2, np.uint64)
    cbase = (mod.m + mod.n) * mod.k
    later = LEVELS - 1
    base = paid + compulsory_left(mod, D, R)
    capacity = mod.capacity - popcount(R)
    pick = np.zeros(4, np.int64)
    victims = np.zeros(64, np.int64)
    left = mod.full & ~D
    while left:
        t = lowest(left)
        left &= left - ONE
        missing = mod.needs[t] & ~R
        evict = max(0, popcount(missing) - capacity)
        load = paid + _loads(mod, D, missing)
        count = _list(victims, R & ~mod.needs[t])
        if count < evict:
            continue
        for q in range(evict):
            pick[q] = q
        while True:
            smaller, stores = R, 0
            for q in range(evict):
                x = victims[pick[q]]
                smaller &= ~bit(x)
                stores += 1 if x >= cbase else 0
            fine = base + evict + stores
            if fine > level:
                later = min(later, fine)
            else:
                D2, R2, extra = settle(mod, D, smaller | mod.needs[t], log)
                paid2 = load + stores + extra
                pos.counts[4] += 1
                f = paid2
                c, g = 0, 0
                if len(goal) > 0:
                    if paid2 == sought.cost and _is_goal(mod, cls, D2, R2, goal):
                        pos.found[0], pos.found[1] = D2, R2
                        return -2
                    f = level + 1
                elif mod.full != D2:
                    c, g = class_of(mod, cls, R2)
                    if c < 0:
                        return -1
                    f = _bound(at, paid2, D2, R2, c, g, level)
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
                    if not enter(pos, at.slots, state, paid2, s, popcount(D2) if layered else level, f):
                        return -1
            if not _next_choice(pick, evict, count):
                break
    return later


@jit
def advance(at: SearchSpace, upper: int, work: int) -> int:
    """Up to `work` expansions. Levels from counts[1] on; stops at `upper`, which is known to be reachable."""
    at = borrowed(at)
    pos, sought = at.pos, Sought(np.empty(0, np.uint64), 0, np.empty((0, 2), np.uint64))
    if pos.counts[0] == 0:
        c, g = class_of(at.mod, at.cls, ZERO)
        f = _bound(at, 0, ZERO, ZERO, c, g, LEVELS)
        pos.counts[1] = f
        enter(pos, at.slots, np.zeros(2, np.uint64), 0, -1, f, 0)
    for _ in range(work):
        if 2 * (pos.counts[0] + 4096) > len(at.slots):
            return GROW
        s = next_position(pos, upper)
        if s < 0:
            return EXHAUSTED
        if pos.cost[s] < 0:
            continue
        pos.counts[2] += 1
        D, R, level = pos.words[s, 0], pos.words[s, 1], pos.counts[1]
        later = expand(at, s, D, R, level, flag(False), sought)  # a literal is a type of its own
        status = expanded(pos, s, later, upper)
        if status != RUNNING:
            return status
    return RUNNING


@jit
def beam_layer(at: SearchSpace, upper: int, layer: int, width: int, few: int) -> int:
    """Expand the best `width` positions with `layer` products done, while there is room; FULL or RUNNING.

    Only successors on a position's own level are entered, and where those are `few` or less, on its next level too.
    A play found is in counts[3] and [6].
    """
    at = borrowed(at)
    pos, sought = at.pos, Sought(np.empty(0, np.uint64), 0, np.empty((0, 2), np.uint64))
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
        bound = signed(pos.note[s])
        if pos.cost[s] >= 0 and (bound < last or (bound == last and spare > 0)):
            if bound == last:
                spare -= 1
            best = pos.counts[6] if pos.counts[3] >= 0 else signed(upper)
            if 4 * (pos.counts[0] + 4096) > 3 * len(at.slots):
                return RUNNING
            if bound >= best:
                s = following
                continue
            before, line = pos.counts[0], bound
            while True:
                D, R = pos.words[s, 0], pos.words[s, 1]
                later = expand(at, s, D, R, line, flag(True), sought)
                if later < 0:
                    return FULL
                best = pos.counts[6] if pos.counts[3] >= 0 else signed(upper)
                if later <= line or later >= best or pos.counts[0] >= before + few:
                    break
                line = later
        s = following
    return RUNNING

"""A* over macro steps of the game with several memories, compiled.

A state is what is done, what each memory holds, which computed values are blue as well, and how many tasks each SM
did. It is looked at only after a computation or a push:

- **step**: a task at an SM. What it lacks is fetched then: copied from where it is held, or loaded, after a store
  where slow memory lacks it. Of what the SM holds besides, a least set that makes room leaves; the last copy of a
  value that slow memory lacks is stored as it goes.
- **push**: a value leaves an SM by a copy into another, where a least set makes room as before.

Nothing is lost by that. Loads and use-copies wait for the computation that needs them, stores for the last copy to go
or for a load elsewhere. A copy whose source stays can wait; so what is copied and not used at once is pushed. A push
from an SM in which the heaviest task still finds room can change places with whatever follows: the value fits there for
one step more, and its place elsewhere stays free. So pushes start only where that task finds no room; in nets where
the distance matters, a detour may save hops, and they start anywhere. A cell that is initialised and not complete is in
one place: an update makes its other copies worthless. A complete output is stored at once, which is due in any case.
With any split, a task that finds all it touches in one memory that may do it is done at once.
"""

from __future__ import annotations

import numpy as np

from pebble.solvers.search.bits import ONE, U64, ZERO, borrowed, lowest, popcount, signed
from pebble.solvers.several import ideals as ideal_table
from pebble.solvers.several.entering import above, do, enter
from pebble.solvers.several.estimate import ROUGH, estimate, tasks_of
from pebble.solvers.several.ideals import Ideals, find_ideal, weigh
from pebble.solvers.several.rules import (
    ALIKE,
    ANY_SPLIT,
    CAPACITY,
    EQUAL,
    INPUTS,
    MOST,
    NO_MULTIPLIER,
    UNIT,
    WIDEST,
    Rules,
)  # fmt: skip
from pebble.solvers.several.states import (
    CLEAN,
    COUNTS,
    DONE,
    FETCHES,
    LEAVES,
    MATCHED,
    MODE,
    NEVER,
    RED,
    SM,
    SOURCE,
    TASK,
    States,
)  # fmt: skip
from pebble.traces.jit import inner, merged


@merged
def leaving(rules: Rules, states: States, q: int, may_leave: np.uint64, lack: int, at: int) -> tuple[np.uint64, int]:
    """The next least set of values that frees enough room, after the combination ``at``: what leaves, and the new at.

    A combination is a mask over the values that may leave, in the order of their numbers; 0 begins, -1 means no more.
    """
    items = states.items
    count, rest = 0, may_leave
    while rest:
        items[count] = lowest(rest)
        rest &= rest - ONE
        count += 1
    equal = rules.sizes[EQUAL]
    size = popcount(np.uint64(at)) if at else (lack if equal else 1)
    while size <= count:
        if at == 0:
            at = (signed(1) << size) - 1
        else:  # the next number with as many bits
            low = at & -at
            ripple = at + low
            at = ripple | ((at ^ ripple) >> 2) // low
        if at >> count:
            if equal:
                return ZERO, signed(-1)
            at, size = 0, size + 1
            continue
        leaves, picked, freed, least = ZERO, at, signed(0), signed(NEVER)
        while picked:
            x = items[lowest(np.uint64(picked))]
            picked &= picked - 1
            leaves |= ONE << np.uint64(x)
            freed += rules.weight[x]
            least = min(least, rules.weight[x])
        if freed >= lack and freed - least < lack:
            return leaves, at
    return ZERO, signed(-1)


@merged
def _leave(rules: Rules, ideals: Ideals, words: U64, q: int, leaves: np.uint64) -> int:
    """Take values from an SM; what it costs to store those that are lost otherwise."""
    elsewhere = ZERO
    for p in range(RED, len(words)):
        if p != RED + q:
            elsewhere |= words[p]
    words[RED + q] &= ~leaves
    rest, stored = leaves & ~elsewhere & ~words[CLEAN], ZERO
    while rest:
        x = lowest(rest)
        rest &= rest - ONE
        if rules.updates[x] & words[DONE]:
            stored |= ONE << np.uint64(x)
    fee: int = rules.sizes[UNIT] * weigh(rules, stored)
    return fee


@inner
def _cheapest(rules: Rules, words: U64, x: int, q: int) -> int:
    """Price of a copy of value x into SM q from the nearest that holds it, per weight."""
    best = signed(NO_MULTIPLIER)
    for p in range(len(words) - RED):
        if p != q and words[RED + p] >> np.uint64(x) & ONE:
            best = min(best, rules.price[p, q])
    return best


@inner
def _fetch(rules: Rules, partial: np.uint64, words: U64, q: int, fetch: np.uint64, by_load: np.uint64) -> int:
    """What it costs to bring values into SM q, those of ``by_load`` stored and loaded; these are blue afterwards."""
    unit, paid = rules.sizes[UNIT], signed(0)
    while fetch:
        x = lowest(fetch)
        single = ONE << np.uint64(x)
        fetch &= fetch - ONE
        copy = _cheapest(rules, words, x, q)
        held = False
        for p in range(RED, len(words)):
            held = held or words[p] & single != ZERO
        blue = not held or words[CLEAN] & single or rules.updates[x] & words[DONE] == ZERO
        if blue:
            paid += rules.weight[x] * min(unit, copy)
            if rules.updates[x]:
                words[CLEAN] |= single
        elif partial & single:
            paid += rules.weight[x] * min(2 * unit, copy)
        elif by_load & single:
            paid += rules.weight[x] * 2 * unit
            words[CLEAN] |= single
        else:
            paid += rules.weight[x] * copy
    return paid


@inner
def _choices(rules: Rules, partial: np.uint64, words: U64, q: int, fetch: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Values to fetch that slow memory lacks: those that must be stored and loaded, and those that may be."""
    must, may = ZERO, ZERO
    anywhere = ZERO
    for p in range(RED, len(words)):
        anywhere |= words[p]
    rest = fetch & anywhere & ~words[CLEAN] & ~partial
    while rest:
        x = lowest(rest)
        rest &= rest - ONE
        if rules.updates[x] & words[DONE]:
            copy = _cheapest(rules, words, x, q)
            if copy >= 2 * rules.sizes[UNIT]:
                must |= ONE << np.uint64(x)
            elif copy > rules.sizes[UNIT]:
                may |= ONE << np.uint64(x)
    return must, may


@merged
def _make_room(
    rules: Rules, ideals: Ideals, states: States, s: int, i: int, q: int, may_leave: np.uint64, cost: int
) -> bool:
    """Enter ``states.base``, of ideal i and reached from s at a cost, after all ways to make room in SM q.

    False without room for states.
    """
    base, after = states.base, states.after
    lack, at = weigh(rules, base[RED + q]) - rules.sizes[CAPACITY], signed(0)
    if lack > 0 and above(states, cost + estimate(rules, ideals, i, base, ROUGH)):
        return True
    while True:
        leaves = ZERO
        if lack > 0:
            leaves, at = leaving(rules, states, q, may_leave, lack, at)
            if at < 0:
                return True
        for x in range(len(base)):
            after[x] = base[x]
        fee = _leave(rules, ideals, after, q, leaves)
        if not enter(rules, ideals, states, s, cost + fee, i):
            return False
        if states.counts[MODE] == MATCHED:
            states.move[SM], states.move[LEAVES] = q, signed(leaves)
            return True
        if lack <= 0:
            return True


@inner
def _step(rules: Rules, ideals: Ideals, states: States, s: int, i: int, task: int, q: int) -> bool:
    """All ways to do a task at an SM; False without room for states."""
    rules, ideals, states = borrowed((rules, ideals, states))
    now, base, move = states.now, states.base, states.move
    x = rules.target[task]
    target = ONE << np.uint64(x)
    red, partial = now[RED + q], ideals.words[i, ideal_table.PARTIAL]
    missing = rules.needs[task] & ~red
    fresh = rules.masks[INPUTS] & target == ZERO and rules.updates[x] & now[DONE] == ZERO
    fetch = missing & ~target if fresh else missing
    must, may = _choices(rules, partial, now, q, fetch)
    j = find_ideal(rules, ideals, now[DONE] | ONE << np.uint64(task))
    if j < 0:
        return False
    subset = may
    while True:
        for y in range(len(now)):
            base[y] = now[y]
        cost = states.costs[s] + _fetch(rules, partial, base, q, fetch, must | subset)
        for p in range(RED, len(now)):
            base[p] &= ~target
        base[RED + q] |= rules.needs[task]
        if not rules.sizes[ANY_SPLIT]:
            base[COUNTS] += ONE << np.uint64(8 * q)
        cost += do(rules, base, task)
        if not _make_room(rules, ideals, states, s, j, q, red & ~rules.needs[task], cost):
            return False
        if states.counts[MODE] == MATCHED:
            move[TASK], move[FETCHES] = task, signed(must | subset)
            return True
        if subset == ZERO:
            return True
        subset = (subset - ONE) & may


@inner
def _push(rules: Rules, ideals: Ideals, states: States, s: int, i: int, x: int, p: int, q: int) -> bool:
    """All ways to push a value from SM p to SM q; False without room for states."""
    rules, ideals, states = borrowed((rules, ideals, states))
    now, base, move = states.now, states.base, states.move
    single = ONE << np.uint64(x)
    for y in range(len(now)):
        base[y] = now[y]
    base[RED + p] &= ~single
    base[RED + q] |= single
    cost = states.costs[s] + rules.weight[x] * rules.price[p, q]
    if not _make_room(rules, ideals, states, s, i, q, now[RED + q], cost):
        return False
    if states.counts[MODE] == MATCHED:
        move[TASK], move[SOURCE] = -1 - x, p
    return True


@inner
def _pushes(rules: Rules, ideals: Ideals, states: States, s: int, i: int) -> bool:
    """All pushes; False without room for states."""
    now = states.now
    sms, unit = len(now) - RED, rules.sizes[UNIT]
    for p in range(sms):
        held = now[RED + p]
        if rules.sizes[ALIKE] and weigh(rules, held) + rules.sizes[WIDEST] <= rules.sizes[CAPACITY]:
            continue
        elsewhere = ZERO
        for q in range(sms):
            if q != p:
                elsewhere |= now[RED + q]
        while held:
            x = lowest(held)
            held &= held - ONE
            single = ONE << np.uint64(x)
            if rules.sizes[ALIKE] and elsewhere & single:
                continue
            blue = now[CLEAN] & single or rules.updates[x] & now[DONE] == ZERO
            for q in range(sms):
                price = rules.price[p, q]
                if q == p or now[RED + q] & single or price >= (unit if blue else 2 * unit):
                    continue
                if not _push(rules, ideals, states, s, i, x, p, q):
                    return False
                if states.counts[MODE] == MATCHED:
                    return True
    return True


@inner
def expand(rules: Rules, ideals: Ideals, states: States, s: int) -> bool:
    """Enter the successors of ``states.now``, which is state s up to symmetry; False without room.

    In mode READ look for the step to ``states.goal`` at the cost counts[LAST]; mode MATCHED tells that move has it.
    """
    now = states.now
    i = find_ideal(rules, ideals, now[DONE])
    if i < 0:
        return False
    sms = len(now) - RED
    ready = ideals.words[i, ideal_table.READY]
    while ready:
        task = lowest(ready)
        ready &= ready - ONE
        for q in range(sms):
            count = tasks_of(now, q)
            if not rules.sizes[ANY_SPLIT] and count >= rules.sizes[MOST]:
                continue
            if rules.allowed[task] >> np.uint64(q) & ONE == ZERO:
                continue
            seen = False
            if rules.sizes[ALIKE]:
                for p in range(q):
                    same = now[RED + p] == now[RED + q] and tasks_of(now, p) == count
                    seen = seen or (same and rules.kind[p] == rules.kind[q])
            if seen:
                continue
            if not _step(rules, ideals, states, s, i, task, q):
                return False
            if states.counts[MODE] == MATCHED:
                return True
    if rules.price.min() < 2 * rules.sizes[UNIT]:
        return _pushes(rules, ideals, states, s, i)
    return True

"""The moves of a search by layers, compiled: what may leave, what a task does to a position, which tasks are free.

All of these go into the loop that calls them (`pebble.solvers.search.dag_layers`, where the normal form is described):
to hand the arrays over for every position would cost as much as the moves.
"""

from __future__ import annotations

from pebble.solvers.search.bits import I64, ONE, U64, ZERO, Pair, holds, lowest, popcount, signed, single, stepped
from pebble.solvers.search.dag_model import DagModel
from pebble.solvers.search.ideals import INITIALISED, NEED, PAYS, PURE, READY, READY_END, STORED, Ideals, ideal_of
from pebble.traces.jit import inlined

NOT_FREE = -2


@inlined
def list_slides(sources: I64, fees: I64, needs: Pair, last: Pair, red: Pair, clean: Pair) -> int:
    """Enter the operands that may give their place to a result, and what each costs, behind none; how many ways."""
    y0, y1 = needs[0] & last[0], needs[1] & last[1]
    if y0 | y1:  # one that is needed no more is as good as any
        sources[0] = lowest(y0) if y0 else 64 + lowest(y1)
        return 1
    ways = 1
    y0, y1 = needs
    while y0 | y1:
        if y0:
            y = lowest(y0)
            y0 &= y0 - ONE
        else:
            y = 64 + lowest(y1)
            y1 &= y1 - ONE
        sources[ways], fees[ways] = y, 1 if holds((~red[0] | clean[0], ~red[1] | clean[1]), y) else 2
        ways += 1
    return ways


@inlined
def list_victims(victims: I64, free: Pair, clean: Pair) -> tuple[int, int]:
    """Enter what may leave, the clean first: how many there are, and how many of them are clean."""
    number, cheap = 0, 0
    for dear in range(2):
        y0, y1 = (free[0] & ~clean[0], free[1] & ~clean[1]) if dear else (free[0] & clean[0], free[1] & clean[1])
        while y0:
            victims[number] = lowest(y0)
            y0 &= y0 - ONE
            number += 1
        while y1:
            victims[number] = 64 + lowest(y1)
            y1 &= y1 - ONE
            number += 1
        if dear == 0:
            cheap = number
    return number, cheap


@inlined
def chosen(victims: I64, pick: I64, evict: int, cheap: int) -> tuple[int, Pair]:
    """What the eviction of those chosen costs, and which they are."""
    cost, gone0, gone1 = 0, ZERO, ZERO
    for q in range(evict):
        cost += 1 if pick[q] < cheap else 2
        own = single(victims[pick[q]])
        gone0 |= own[0]
        gone1 |= own[1]
    return cost, (gone0, gone1)


@inlined
def is_worse(choice: I64, better: U64, evict: int, free: Pair, gone: Pair) -> bool:
    """Whether one that stays may leave in place of one that is chosen."""
    worse = ZERO
    for q in range(evict):
        y = choice[0, choice[1, q]]
        worse |= (better[y, 0] & free[0] & ~gone[0]) | (better[y, 1] & free[1] & ~gone[1])
    some: bool = worse != ZERO
    return some


@inlined
def next_choice(pick: I64, evict: int, number: int, cheap: int, paid: int, limit: int) -> bool:
    """Choose the next items to leave; False after the last. The clean come first: once one is too dear, so are all."""
    q = evict - 1
    while q >= 0:
        if pick[q] < number - evict + q:
            least = paid
            for r in range(q):
                least += 1 if pick[r] < cheap else 2
            for r in range(q, evict):
                least += 1 if pick[q] + 1 + r - q < cheap else 2
            if least <= limit:
                break
        q -= 1
    return stepped(pick, evict, q)


@inlined
def ideal_after(mod: DagModel, ideals: Ideals, i: int, entry: int) -> int:
    """The ideal after a task that is ready in ideal i; -1 when an array is full."""
    ready = ideals.ready
    if ready[entry, 1] < 0:
        own = single(ready[entry, 0])
        ready[entry, 1] = ideal_of(mod, ideals, ideals.words[i, 0] | own[0], ideals.words[i, 1] | own[1])
    return signed(ready[entry, 1])


@inlined
def needed(ideals: Ideals, i: int, red: Pair, stored: Pair) -> tuple[Pair, Pair]:
    """What of a position is needed from ideal i on."""
    n0, n1 = red[0] & ideals.words[i, NEED], red[1] & ideals.words[i, NEED + 1]
    return (n0, n1), (stored[0] & n0, stored[1] & n1)


@inlined
def play(mod: DagModel, entry: tuple[int, int], source: int, gone: Pair, red: Pair, stored: Pair) -> tuple[Pair, Pair]:
    """A position after evictions and a task (its number and bits), which `source` may give its place."""
    o0, o1 = mod.operands[entry[0], 0], mod.operands[entry[0], 1]
    own = single(mod.target[entry[0]])
    n0, n1 = red[0] & ~gone[0], red[1] & ~gone[1]
    c0 = ((stored[0] & ~gone[0]) | (o0 & ~n0 & mod.computed[0, 0])) & ~own[0]
    c1 = ((stored[1] & ~gone[1]) | (o1 & ~n1 & mod.computed[0, 1])) & ~own[1]
    n0 |= o0 | own[0]
    n1 |= o1 | own[1]
    if source >= 0:
        slid = single(source)
        n0 &= ~slid[0]
        n1 &= ~slid[1]
    if entry[1] & STORED:
        c0 |= own[0]
        c1 |= own[1]
    return (n0, n1), (c0, c1)


@inlined
def run_free(mod: DagModel, ideals: Ideals, child: int, red: Pair, stored: Pair, log: I64) -> tuple[int, Pair, Pair]:
    """Run free tasks until there is none, into the log where it has rows; the ideal is -1 when an array is full."""
    numbers, ready = ideals.numbers, ideals.ready
    e, end = numbers[child, READY], numbers[child, READY_END]
    while e < end:
        u = ready[e, 0]
        a = mod.operands[u, 0], mod.operands[u, 1]
        last = ideals.ready_words[e, 0], ideals.ready_words[e, 1]
        own = single(mod.target[u])
        clean = stored[0] | ideals.words[child, PURE], stored[1] | ideals.words[child, PURE + 1]
        slid = _free_by(mod, ready[e, 2], a, last, own, red, clean)
        e += 1
        if slid == NOT_FREE:
            continue
        child = ideal_after(mod, ideals, child, e - 1)
        if child < 0:
            return -1, red, stored
        c0 = (stored[0] | (a[0] & ~red[0] & mod.computed[0, 0])) & ~own[0]
        c1 = (stored[1] | (a[1] & ~red[1] & mod.computed[0, 1])) & ~own[1]
        if ready[e - 1, 2] & STORED:
            c0 |= own[0]
            c1 |= own[1]
        red, stored = needed(ideals, child, (red[0] | a[0] | own[0], red[1] | a[1] | own[1]), (c0, c1))
        if len(log) > 0:
            log[0, 0] += 1
            log[log[0, 0], 0], log[log[0, 0], 1] = u, slid
        e, end = numbers[child, READY], numbers[child, READY_END]
    return child, red, stored


@inlined
def _free_by(mod: DagModel, bits: int, a: Pair, last: Pair, own: Pair, red: Pair, clean: Pair) -> int:
    """Whether a ready task with operands a is free: NOT_FREE, or the operand that gives the result its place, or -1."""
    if (a[0] & ~red[0] & ~last[0]) | (a[1] & ~red[1] & ~last[1]):
        return NOT_FREE
    held = (red[0] & own[0]) | (red[1] & own[1]) != ZERO
    if not held:
        if bits & INITIALISED:
            return NOT_FREE
        if not bits & PAYS:
            y0, y1 = a[0] & red[0] & last[0], a[1] & red[1] & last[1]
            if not bits & STORED:
                y0 &= ~clean[0]
                y1 &= ~clean[1]
            if y0 | y1 == ZERO:
                return NOT_FREE
    capacity = mod.capacity - popcount(red[0] | a[0]) - popcount(red[1] | a[1]) - (0 if held else 1)
    if capacity >= 0:
        return -1
    if capacity < -1 or held or not mod.sliding or last[0] | last[1] == ZERO:
        return NOT_FREE
    return lowest(last[0]) if last[0] else 64 + lowest(last[1])


@inlined
def sort_twins(mod: DagModel, red: Pair) -> Pair:
    """The same position with interchangeable inputs in order, the red ones first."""
    n0, n1 = red
    for w in range(len(mod.twins)):
        y = mod.twins[w]
        while mod.twin[y] >= 0:
            z = mod.twin[y]
            if not holds((n0, n1), y) or holds((n0, n1), z):
                break
            here, there = single(y), single(z)
            n0 = (n0 & ~here[0]) | there[0]
            n1 = (n1 & ~here[1]) | there[1]
            y = z
    return n0, n1

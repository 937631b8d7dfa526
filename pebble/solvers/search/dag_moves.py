"""The moves of a search by layers, compiled: what may leave, what a task does to a position, which tasks are free;
and which of two positions with the same tasks done makes the other one useless.

All of these go into the loop that calls them (`pebble.solvers.search.dag_layers`, where the normal form is described):
to hand the arrays over for every position would cost as much as the moves.

**Dominance.** Of two positions p, q of one ideal, p can be turned into q by evicting what only p holds (1 or 2
each), storing what is clean in q alone (1 each), and loading what only q holds: for nothing, since it was touched
and is needed, so it was paid for when p evicted it. If p's cost and that price do not exceed the cost of q, any
play on from q is one from p that costs no more, and q goes.

**Exchange.** Let p hold y and q hold z in its place, and let y be touched again no later than z in any play. Then p
plays as q: if q evicts z first, p evicts y; else when q loads y, or evicts z for it, p loads z if need be, for
nothing, and both hold the same. With y clean this costs p nothing, whatever z is. A dirty y is stored first (1) -
unless z is dirty and y is touched once more only: then z's eviction costs what y's does, and later y is gone. So of
what only p holds, each y that such a z of q stands for costs 0 or 1 in place of 1 or 2; a chain of exchanges, one
after the other, gives the price for several.
"""

from __future__ import annotations

import numpy as np

from pebble.solvers.search.bits import I32, I64, ONE, U64, ZERO, Pair, holds, lowest, popcount, signed, single, stepped
from pebble.solvers.search.dag_model import AFTER, COST, DagModel
from pebble.solvers.search.ideals import (
    HEAD,
    INITIALISED,
    LIVE,
    NEED,
    PAYS,
    PURE,
    READY,
    READY_END,
    ROW,
    SINGLE,
    STORED,
    Ideals,
    ideal_of,
)
from pebble.traces.jit import inlined, inner

NOT_FREE = -2


@inlined
def list_slides(sources: I64, fees: I64, needs: Pair, last: Pair, red: Pair, clean: Pair) -> int:
    """Enter the operands that may give their place to a result, and what each costs, behind none; how many ways."""
    y0, y1 = needs[0] & last[0], needs[1] & last[1]
    if y0 | y1:  # one that is needed no more is as good as any
        sources[0] = lowest(y0) if y0 else 64 + lowest(y1)
        return 1
    count = 1
    y0, y1 = needs
    while y0 | y1:
        if y0:
            y = lowest(y0)
            y0 &= y0 - ONE
        else:
            y = 64 + lowest(y1)
            y1 &= y1 - ONE
        sources[count], fees[count] = y, 1 if holds((~red[0] | clean[0], ~red[1] | clean[1]), y) else 2
        count += 1
    return count


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
def victims_of(victims: I64, pick: I64, evict: int, cheap: int) -> tuple[int, Pair]:
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


SCANNED = 2048  # positions of an ideal that a new one is held against


@inlined
def _transfer_cost(a: Pair, clean_a: Pair, b: Pair, clean_b: Pair) -> int:
    """What it costs, without exchanges, to make a position with red a as good as another one with red b."""
    only0, only1 = a[0] & ~b[0], a[1] & ~b[1]
    transfer = popcount(only0) + popcount(only1) + popcount(only0 & ~clean_a[0]) + popcount(only1 & ~clean_a[1])
    stored0, stored1 = a[0] & ~clean_a[0] & b[0] & clean_b[0], a[1] & ~clean_a[1] & b[1] & clean_b[1]
    return transfer + popcount(stored0) + popcount(stored1)


@inner
def _exchanged(
    words: U64, rows: U64, i: int, row: int, a: Pair, clean_a: Pair, b: Pair, clean_b: Pair, transfer: int
) -> int:
    """The same with exchanges, for two positions of ideal i, from what it costs without."""
    only0, only1, other0, other1 = a[0] & ~b[0], a[1] & ~b[1], b[0] & ~a[0], b[1] & ~a[1]
    live0, live1 = words[i, LIVE], words[i, LIVE + 1]
    while (other0 | other1) and (only0 | only1):
        if other0:
            z = other0 & (~other0 + ONE)
            other0 ^= z
            at = row + popcount(live0 & (z - ONE))
            dirty = z & ~clean_b[0]
        else:
            z = other1 & (~other1 + ONE)
            other1 ^= z
            at = row + popcount(live0) + popcount(live1 & (z - ONE))
            dirty = z & ~clean_b[1]
        y0, y1 = rows[at, 0] & only0, rows[at, 1] & only1
        if not (y0 | y1):
            continue
        transfer -= 1
        if dirty:
            s0, s1 = y0 & ~clean_a[0] & words[i, SINGLE], y1 & ~clean_a[1] & words[i, SINGLE + 1]
            if s0 | s1:
                transfer -= 1
                y0, y1 = s0, s1
        if y0:
            only0 ^= y0 & (~y0 + ONE)
        else:
            only1 ^= y1 & (~y1 + ONE)
    return transfer


@inner
def beaten(
    words: U64, ideal_words: U64, ideal_numbers: I32, rows: U64, i: int, red: Pair, clean: Pair, cost: int
) -> bool:
    """Whether a position there is as good as the one given; what the given one beats goes."""
    pure0, pure1 = ideal_words[i, PURE], ideal_words[i, PURE + 1]
    row = ideal_numbers[i, ROW]
    last = -1
    s = signed(ideal_numbers[i, HEAD])
    looked = transfer = 0
    while s >= 0 and looked < SCANNED:
        looked += 1
        there = words[s, 0], words[s, 1]
        clean_there = there[0] & (words[s, 2] | pure0), there[1] & (words[s, 3] | pure1)
        gap = cost - signed(words[s, COST])
        following = signed(words[s, AFTER]) - 1
        # an exchange saves 2 at most, and there are no more than items that only the other has
        if gap >= 0:
            transfer = _transfer_cost(there, clean_there, red, clean)
            if gap < transfer <= gap + 2 * (popcount(red[0] & ~there[0]) + popcount(red[1] & ~there[1])):
                transfer = _exchanged(ideal_words, rows, i, row, there, clean_there, red, clean, transfer)
        if gap >= 0 and transfer <= gap:
            if last >= 0:  # to the front: what beat one beats others soon
                words[last, AFTER] = np.uint64(following + 1)
                words[s, AFTER] = np.uint64(ideal_numbers[i, HEAD] + 1)
                ideal_numbers[i, HEAD] = s
            return True
        if gap <= 0:
            transfer = _transfer_cost(red, clean, there, clean_there)
            if -gap < transfer <= 2 * (popcount(there[0] & ~red[0]) + popcount(there[1] & ~red[1])) - gap:
                transfer = _exchanged(ideal_words, rows, i, row, red, clean, there, clean_there, transfer)
        if gap <= 0 and transfer <= -gap:
            if last < 0:
                ideal_numbers[i, HEAD] = following
            else:
                words[last, AFTER] = np.uint64(following + 1)
            s = following
            continue
        last = s
        s = following
    return False


@inner
def exchanges(better: U64, ideal_words: U64, ideal_numbers: I32, rows: U64, here: int, red: Pair, clean: Pair) -> None:
    """For each red item of a position, the red items (2 words of `better`) that may leave in its place, by exchange."""
    better[:] = ZERO
    row = ideal_numbers[here, ROW]
    x0, x1 = ideal_words[here, LIVE], ideal_words[here, LIVE + 1]
    while x0 | x1:
        z0, z1 = (x0 & (~x0 + ONE), ZERO) if x0 else (ZERO, x1 & (~x1 + ONE))
        x0 ^= z0
        x1 ^= z1
        row += 1
        if (z0 & red[0]) | (z1 & red[1]) == ZERO:
            continue
        y0, y1 = rows[row - 1, 0] & red[0] & ~z0, rows[row - 1, 1] & red[1] & ~z1
        if (z0 & ~clean[0]) | (z1 & ~clean[1]):
            y0 &= ideal_words[here, SINGLE] & ~clean[0]
            y1 &= ideal_words[here, SINGLE + 1] & ~clean[1]
        while y0:
            y = lowest(y0)
            y0 &= y0 - ONE
            better[y, 0] |= z0
            better[y, 1] |= z1
        while y1:
            y = 64 + lowest(y1)
            y1 &= y1 - ONE
            better[y, 0] |= z0
            better[y, 1] |= z1
    x0, x1 = red
    while x0 | x1:  # of two that each may leave in place of the other, the first goes
        z = lowest(x0) if x0 else 64 + lowest(x1)
        if x0:
            x0 &= x0 - ONE
        else:
            x1 &= x1 - ONE
        y0, y1 = better[z, 0] & x0, better[z, 1] & x1
        while y0 | y1:
            y = lowest(y0) if y0 else 64 + lowest(y1)
            if y0:
                y0 &= y0 - ONE
            else:
                y1 &= y1 - ONE
            if (better[y, z >> 6] >> np.uint64(z & 63)) & ONE:
                better[z, y >> 6] &= ~(ONE << np.uint64(y & 63))

"""Positions of a game without recomputation, their normal form and a bound, compiled.

A position is six words: tasks done (2), red items (2), and which red computed items are also in slow memory (2).
Cost is counted as excess over the compulsory: evicting an item that is needed again costs 1 when slow memory has it
and 2 when not; loading is then free. In slow memory are inputs, finished outputs (stored at once), and what was
loaded and not updated since.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pebble.solvers.search.bits import ONE, ZERO, lowest, popcount

D0, D1, R0, R1, K0, K1 = 0, 1, 2, 3, 4, 5
WORDS = 6


@njit(cache=True, nogil=True, inline="always")
def has(a, b, x):  # type: ignore[no-untyped-def]
    """Bit x of the two words (a, b)."""
    return ((a if x < 64 else b) >> np.uint64(x & 63)) & ONE != ZERO


@njit(cache=True, nogil=True, inline="always")
def put(state, word, x):  # type: ignore[no-untyped-def]
    """Set bit x of the pair that starts at this word."""
    state[word + (x >> 6)] |= ONE << np.uint64(x & 63)


@njit(cache=True, nogil=True, inline="always")
def drop(state, word, x):  # type: ignore[no-untyped-def]
    """Clear bit x of the pair that starts at this word."""
    state[word + (x >> 6)] &= ~(ONE << np.uint64(x & 63))


@njit(cache=True, nogil=True, inline="always")
def next_bit(a, b):  # type: ignore[no-untyped-def]
    """The lowest bit of two words that are not both zero."""
    return lowest(a) if a else 64 + lowest(b)


@njit(cache=True, nogil=True)
def begun(mod, state, x):  # type: ignore[no-untyped-def]
    """Whether item x has a value: it starts blue, or a task has computed it."""
    return has(mod.inputs[0, 0], mod.inputs[0, 1], x) or (
        (mod.updates[x, 0] & state[D0]) | (mod.updates[x, 1] & state[D1]) != ZERO
    )


@njit(cache=True, nogil=True)
def unfinished(mod, state, x):  # type: ignore[no-untyped-def]
    """Whether a task that computes or updates item x is still to come."""
    return (mod.updates[x, 0] & ~state[D0]) | (mod.updates[x, 1] & ~state[D1]) != ZERO


@njit(cache=True, nogil=True)
def needed(mod, state, x):  # type: ignore[no-untyped-def]
    """Whether a task still reads or updates item x."""
    return (mod.uses[x, 0] & ~state[D0]) | (mod.uses[x, 1] & ~state[D1]) != ZERO or unfinished(mod, state, x)


@njit(cache=True, nogil=True)
def clean(mod, state, x):  # type: ignore[no-untyped-def]
    """Whether slow memory has the present value of red item x."""
    if has(state[K0], state[K1], x):
        return True
    updated = (mod.updates[x, 0] & state[D0]) | (mod.updates[x, 1] & state[D1])
    return has(mod.inputs[0, 0], mod.inputs[0, 1], x) and updated == ZERO


@njit(cache=True, nogil=True)
def last_use(mod, state, x, t):  # type: ignore[no-untyped-def]
    """Whether nothing needs operand x once task t is done."""
    u0, u1 = mod.uses[x, 0] & ~state[D0], mod.uses[x, 1] & ~state[D1]
    if t < 64:
        u0 &= ~(ONE << np.uint64(t))
    else:
        u1 &= ~(ONE << np.uint64(t & 63))
    return u0 | u1 == ZERO and not unfinished(mod, state, x)


@njit(cache=True, nogil=True)
def ready(mod, state, t):  # type: ignore[no-untyped-def]
    """Whether task t is undone and all that must come before it is done."""
    if has(state[D0], state[D1], t):
        return False
    return (mod.before[t, 0] & ~state[D0]) | (mod.before[t, 1] & ~state[D1]) == ZERO


@njit(cache=True, nogil=True)
def perform(mod, state, t, source):  # type: ignore[no-untyped-def]
    """Load what task t needs, do it, let its result take the pebble of `source` (-1: none), drop what is useless."""
    a, b = mod.operands[t, 0], mod.operands[t, 1]
    m0, m1 = a & ~state[R0], b & ~state[R1]
    state[K0] |= m0 & mod.computed[0, 0]
    state[K1] |= m1 & mod.computed[0, 1]
    state[R0] |= a
    state[R1] |= b
    x = mod.target[t]
    put(state, D0, t)
    put(state, R0, x)
    drop(state, K0, x)
    if source >= 0:
        drop(state, R0, source)
        drop(state, K0, source)
    if has(mod.outputs[0, 0], mod.outputs[0, 1], x) and not unfinished(mod, state, x):
        put(state, K0, x)
    while a | b:
        y = next_bit(a, b)
        if y < 64:
            a &= a - ONE
        else:
            b &= b - ONE
        if not needed(mod, state, y):
            drop(state, R0, y)
            drop(state, K0, y)
    if not needed(mod, state, x):
        drop(state, R0, x)
        drop(state, K0, x)


@njit(cache=True, nogil=True)
def _free_task(mod, state):  # type: ignore[no-untyped-def]
    """A task that may run now without loss, and the operand its result takes over (-1: none); or (-1, -1).

    All it needs is red, or is loaded for the last time; there is room; and afterwards either no new item is held, or
    one is held in place of an operand that was at least as dear to evict.
    """
    red = popcount(state[R0]) + popcount(state[R1])
    for t in range(mod.tasks):
        if not ready(mod, state, t):
            continue
        x = mod.target[t]
        holds = has(state[R0], state[R1], x)
        if not holds and begun(mod, state, x):
            continue
        a, b = mod.operands[t, 0], mod.operands[t, 1]
        missing = 0
        source, pays, good = -1, holds, True
        finishes = popcount(mod.updates[x, 0] & ~state[D0]) + popcount(mod.updates[x, 1] & ~state[D1]) == 1
        stored = finishes and has(mod.outputs[0, 0], mod.outputs[0, 1], x)
        if finishes and mod.uses[x, 0] | mod.uses[x, 1] == ZERO:
            pays = True
        while a | b:
            y = next_bit(a, b)
            if y < 64:
                a &= a - ONE
            else:
                b &= b - ONE
            last = last_use(mod, state, y, t)
            if has(state[R0], state[R1], y):
                if last and (stored or not clean(mod, state, y)):
                    pays = True
            elif last:
                missing += 1
            else:
                good = False
                break
            if last and source < 0:
                source = y
        if not good or not pays:
            continue
        room = mod.capacity - red - missing
        if holds:
            if room >= 0:
                return t, -1
        elif room >= 1:
            return t, -1
        elif room == 0 and mod.sliding and source >= 0:
            return t, source
    return -1, -1


@njit(cache=True, nogil=True)
def settle_dag(mod, state, log):  # type: ignore[no-untyped-def]
    """Run what may run without loss; tasks and sources go to `log` from log[0, 0] on, their number."""
    while True:
        t, source = _free_task(mod, state)
        if t < 0:
            break
        perform(mod, state, t, source)
        log[0, 0] += 1
        log[log[0, 0], 0] = t
        log[log[0, 0], 1] = source
    # interchangeable inputs: the red ones first
    for y in mod.twins:
        while mod.twin[y] >= 0 and has(state[R0], state[R1], y) and not has(state[R0], state[R1], mod.twin[y]):
            drop(state, R0, y)
            y = mod.twin[y]
            put(state, R0, y)


@njit(cache=True, nogil=True)
def excess_bound(mod, state, enough):  # type: ignore[no-untyped-def]
    """Evictions still to be paid for, at least: the worst over tasks of what must be live around each.

    When task t runs, every item that something before it has touched and it or something after it reads is live.
    Those beyond the capacity are in slow memory by then; each that is not there yet is still to be paid for, at 1 if
    slow memory has or may have it at no further cost, else 2. The look at tasks ends at a bound that is `enough`.
    """
    live0, live1 = state[R0], state[R1]
    away0, away1 = ZERO, ZERO
    for t in range(mod.tasks):
        if has(state[D0], state[D1], t):
            away0 |= mod.operands[t, 0]
            away1 |= mod.operands[t, 1]
            x = mod.target[t]
            if x < 64:
                away0 |= ONE << np.uint64(x)
            else:
                away1 |= ONE << np.uint64(x & 63)
    used0, used1 = ZERO, ZERO
    for t in range(mod.tasks):
        if not has(state[D0], state[D1], t):
            used0 |= mod.operands[t, 0]
            used1 |= mod.operands[t, 1]
    away0 &= used0 & ~live0
    away1 &= used1 & ~live1
    live0 |= away0
    live1 |= away1
    cheap0 = mod.inputs[0, 0] | mod.outputs[0, 0] | state[K0]
    cheap1 = mod.inputs[0, 1] | mod.outputs[0, 1] | state[K1]
    worst = 0
    for t in range(mod.tasks):
        if has(state[D0], state[D1], t):
            continue
        x = mod.target[t]
        for moment in range(2 if mod.sliding else 1):
            if moment == 0:
                # operands and what is needed later, and the result's own place unless it slides
                f0 = (live0 | mod.touched_before[t, 0]) & mod.needed_from[t, 0] | mod.operands[t, 0]
                f1 = (live1 | mod.touched_before[t, 1]) & mod.needed_from[t, 1] | mod.operands[t, 1]
                place = 0 if mod.sliding else 1
            else:
                f0 = (live0 | mod.touched_before[t, 0]) & mod.needed_after[t, 0]
                f1 = (live1 | mod.touched_before[t, 1]) & mod.needed_after[t, 1]
                place = 1
            gone0, gone1 = f0 & away0, f1 & away1
            fixed0, fixed1 = ZERO, ZERO
            if moment == 0:
                fixed0, fixed1 = mod.operands[t, 0], mod.operands[t, 1]
                gone0 &= ~fixed0
                gone1 &= ~fixed1
            if place == 1:
                own = ONE << np.uint64(x & 63)
                if x < 64:
                    f0 &= ~own
                    gone0 &= ~own
                else:
                    f1 &= ~own
                    gone1 &= ~own
            total = popcount(f0) + popcount(f1) + place - popcount(gone0) - popcount(gone1)
            extra = total - mod.capacity
            if extra > worst or 2 * extra > worst:
                # operands of t are red at t, so what is away is chosen among the others
                low = popcount(f0 & ~gone0 & ~fixed0 & cheap0) + popcount(f1 & ~gone1 & ~fixed1 & cheap1)
                price = extra if extra <= low else low + 2 * (extra - low)
                if price > worst:
                    worst = price
                    if worst >= enough:
                        return worst
    return worst

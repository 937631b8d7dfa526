"""What becomes of a state that a step or a push leads to, compiled: settled, estimated, and entered if it is due."""

from __future__ import annotations

import numpy as np

from pebble.solvers.search.bits import ONE, U64, ZERO, lowest, popcount, signed
from pebble.solvers.several import ideals as ideal_table
from pebble.solvers.several.estimate import PRECISE, QUICK, estimate
from pebble.solvers.several.ideals import Ideals, find_ideal
from pebble.solvers.several.rules import ANY_SPLIT, OUTPUTS, UNIT, Rules
from pebble.solvers.several.states import (
    BEAM,
    BEFORE,
    CLEAN,
    DONE,
    DUE,
    EXACT,
    LAST,
    LEVEL,
    MATCHED,
    MODE,
    NEXT,
    READ,
    RED,
    UPPER,
    WIDTH,
    States,
    canonical,
    put,
)  # fmt: skip
from pebble.traces.jit import inner, merged


@inner
def settle(rules: Rules, ideals: Ideals, words: U64) -> tuple[int, int]:
    """Drop what is no longer needed and, with any split, do what needs nothing more; the ideal or -1, and the cost."""
    paid = signed(0)
    while True:
        i = find_ideal(rules, ideals, words[DONE])
        if i < 0:
            return signed(-1), paid
        anywhere = ZERO
        for q in range(RED, len(words)):
            words[q] &= ideals.words[i, ideal_table.LIVE]
            anywhere |= words[q]
        words[CLEAN] &= anywhere
        if not rules.sizes[ANY_SPLIT]:
            return i, paid
        before, ready = words[DONE], ideals.words[i, ideal_table.READY]
        while ready:
            t = lowest(ready)
            ready &= ready - ONE
            for q in range(RED, len(words)):
                if rules.needs[t] & ~words[q] == ZERO and rules.allowed[t] >> np.uint64(q - RED) & ONE:
                    paid += do(rules, words, t)
                    break
        if words[DONE] == before:
            return i, paid


@merged
def do(rules: Rules, words: U64, t: int) -> int:
    """Mark a task done whose target is held in one place; what storing a complete output costs."""
    words[DONE] |= ONE << np.uint64(t)
    x = rules.target[t]
    single = ONE << np.uint64(x)
    words[CLEAN] &= ~single
    if rules.masks[OUTPUTS] & single and rules.updates[x] & ~words[DONE] == ZERO:
        words[CLEAN] |= single
        fee: int = rules.sizes[UNIT] * rules.weight[x]
        return fee
    return signed(0)


@merged
def above(states: States, level: int) -> bool:
    """Whether a level is not due yet; the search is told of it."""
    counts = states.counts
    if counts[MODE] != EXACT or level <= counts[DUE]:
        return False
    counts[NEXT] = min(counts[NEXT], level)
    return True


@merged
def enter(rules: Rules, ideals: Ideals, states: States, s: int, cost: int, i: int) -> bool:
    """Settle ``states.after``, of ideal i and reached from s at a cost, and enter it if its level is due.

    False without room.
    """
    counts, words, level = states.counts, states.after, signed(0)
    if counts[MODE] != READ:
        for precision in (QUICK, PRECISE):
            level = cost + estimate(rules, ideals, i, words, precision)
            if above(states, level):
                return True
    j, paid = settle(rules, ideals, words)
    if j < 0:
        return False
    cost += paid
    if counts[MODE] != READ and j != i:
        level = max(level, cost + estimate(rules, ideals, j, words, PRECISE))
    if counts[MODE] == BEAM:
        if level >= min(counts[UPPER], counts[WIDTH]):
            return True
        level += counts[WIDTH] * popcount(words[DONE])
        counts[LEVEL] = min(counts[LEVEL], level)
    elif counts[MODE] == EXACT and (above(states, level) or level <= counts[BEFORE] or level >= counts[UPPER]):
        return True
    canonical(rules, ideals, j, words, states.best, states.image)
    if counts[MODE] == READ:
        same = cost == counts[LAST]
        for x in range(len(words)):
            same = same and states.best[x] == states.goal[x]
        counts[MODE] = MATCHED if same else counts[MODE]
        return True
    put(states, s, cost, level)
    return True

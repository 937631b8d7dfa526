"""A* and beam over the states of the game with several memories, compiled.

A state waits in the bucket of its estimate; expanded at a level, it enters only successors less than a load above, and
waits for the least level at which it has others (partial expansion, Yoshizumi, Miura and Ishida 2000).
"""

from __future__ import annotations

from pebble.solvers.search.bits import EXHAUSTED, FOUND, FULL, GROW, RUNNING, borrowed, popcount, signed
from pebble.solvers.several.entering import enter
from pebble.solvers.several.estimate import PRECISE, estimate
from pebble.solvers.several.ideals import Ideals, find_ideal
from pebble.solvers.several.rules import ALL, UNIT, Rules
from pebble.solvers.several.states import (
    BEFORE,
    DONE,
    DUE,
    ENTRIES,
    EXPANDED,
    FREE_ENTRY,
    GOAL,
    LEVEL,
    MODE,
    NEVER,
    NEXT,
    READ,
    STATES,
    UPPER,
    WIDTH,
    States,
    wait,
)  # fmt: skip
from pebble.solvers.several.steps import expand
from pebble.traces.jit import inlined, inner, jit


@inner
def _begin(rules: Rules, ideals: Ideals, states: States) -> bool:
    """Enter ``states.after``, at first the empty state; its estimate is the first level."""
    counts = states.counts
    counts[BEFORE], counts[NEXT] = -1, NEVER
    i = find_ideal(rules, ideals, states.after[DONE])
    if i < 0:
        return False
    counts[LEVEL] = counts[DUE] = estimate(rules, ideals, i, states.after, PRECISE)
    return enter(rules, ideals, states, signed(-1), signed(0), i)


@inlined
def _free_capacity(states: States) -> int:
    """Whether the arrays hold what one more state may enter: running, or what there is too little of."""
    counts = states.counts
    if counts[STATES] + 65536 > len(states.words) or counts[ENTRIES] + 65536 > len(states.queue):
        return FULL
    return GROW if 2 * (counts[STATES] + 65536) > len(states.table) else RUNNING


@inlined
def _taken(states: States, level: int) -> int:
    """The first entry of a level, taken from its queue."""
    entry = signed(states.heads[level])
    states.heads[level] = states.queue[entry, 3]
    return entry


@inlined
def _is_goal(rules: Rules, states: States, s: int) -> bool:
    """Make a state the current one; whether all is done in it."""
    for x in range(len(states.now)):
        states.now[x] = states.words[s, x]
    if states.now[DONE] != rules.masks[ALL]:
        return False
    states.counts[GOAL] = s
    return True


@inlined
def _passed_over(states: States, width: int) -> bool:
    """Whether a beam has had as many as ``width`` states with as many tasks done; then it goes on to one more done."""
    counts, done = states.counts, popcount(states.now[DONE])
    counts[NEXT] = counts[NEXT] + 1 if counts[BEFORE] == done else 1
    counts[BEFORE] = done
    if counts[NEXT] <= width:
        return False
    counts[LEVEL] = (done + 1) * counts[WIDTH]
    return True


@jit
def advance(rules: Rules, ideals: Ideals, states: States, width: int, steps: int) -> int:
    """Expand so many states; how it went. The first call enters the state to begin with.

    With a ``width`` a beam: of each number of done tasks the ``width`` states that promise most, and levels are
    counts[WIDTH] apart for each task done. What it finds is a pebbling, what it does not proves nothing.

    In mode READ instead: as `expand` of the state counts[GOAL]. All is one function, as compiling one takes long.
    """
    rules, ideals, states = borrowed((rules, ideals, states))
    counts, queue = states.counts, states.queue
    if counts[MODE] == READ:
        return RUNNING if expand(rules, ideals, states, counts[GOAL]) else FULL
    if counts[STATES] == 0 and not _begin(rules, ideals, states):
        return FULL
    for _ in range(steps):
        end = len(states.heads) if width else counts[UPPER]
        while counts[LEVEL] < end and states.heads[counts[LEVEL]] < 0:
            counts[LEVEL] += 1
        level = counts[LEVEL]
        if level >= end:
            return EXHAUSTED
        capacity = _free_capacity(states)
        if capacity != RUNNING:
            return capacity
        entry = _taken(states, level)
        s, cost, before = signed(queue[entry, 0]), queue[entry, 1], signed(queue[entry, 2])
        queue[entry, 3] = counts[FREE_ENTRY]
        counts[FREE_ENTRY] = entry
        if states.costs[s] != cost:
            continue
        if _is_goal(rules, states, s):
            return FOUND
        if width:
            if _passed_over(states, width):
                continue
        else:
            counts[BEFORE], counts[NEXT], counts[DUE] = before, NEVER, level + rules.sizes[UNIT] - 1
            counts[EXPANDED] += 1
        if not expand(rules, ideals, states, s):
            return FULL
        if not width and counts[NEXT] < counts[UPPER]:
            wait(states, s, cost, counts[DUE], counts[NEXT])
    return RUNNING

"""The states that the search for several memories keeps, compiled: numbered, hashed, and up to symmetry.

The one kept is the least image of a state under the maps that give what is done in it its canonical form, and under
the numbering of SMs that are alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.solvers.search.bits import ONE, ZERO, lowest, mix, signed
from pebble.solvers.several import ideals as ideal_table
from pebble.solvers.several.ideals import Ideals
from pebble.solvers.several.rules import ALIKE, I64, U64, Rules
from pebble.traces.jit import inner, jit, merged

I32 = NDArray[np.int32]
# words of a state
DONE, CLEAN, COUNTS, RED = range(4)
# columns of States.counts
STATES, LEVEL, ENTRIES, FREE_ENTRY, GOAL, EXPANDED, NEXT, LAST, UPPER, BEFORE, MODE, WIDTH, DUE = range(13)
# columns of States.move
TASK, SM, LEAVES, FETCHES, SOURCE = range(5)
EXACT, READ, MATCHED, BEAM = range(4)  # values of counts[MODE]
BYTES_PER_STATE = 8 + 16
NEVER = 1 << 60


class States(NamedTuple):
    """States by number, the queue of those that wait, and room to work in."""

    words: U64
    """DONE; CLEAN: computed values that are blue, of those held; COUNTS: tasks done by each SM, 8 bits each; RED + q:
    what SM q holds."""
    costs: I32
    parents: I32
    queue: I32
    """State, its cost then, the level up to which its successors were entered, next entry of the bucket."""
    heads: I32
    """First entry of the bucket of each level, or -1."""
    table: I32
    counts: I64
    now: U64
    """The state at hand."""
    base: U64
    """After a step or push, before anything leaves to make room."""
    after: U64
    best: U64
    image: U64
    goal: U64
    """The state that a recorded step leads to, while its moves are read."""
    move: I64
    """Of that step: task, or value pushed with a minus; SM it is made at, or pushed to; what leaves that SM; what is
    stored for a load; SM it is pushed from."""
    items: I64


def make_states(most: int, memories: int, levels: int) -> States:
    """Empty arrays; untouched pages cost no memory."""
    width = RED + memories
    words = [np.zeros(width, np.uint64) for _ in range(6)]
    counts = np.zeros(13, np.int64)
    counts[FREE_ENTRY] = counts[GOAL] = -1
    return States(
        np.empty((most, width), np.uint64),
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty((2 * most, 4), np.int32),
        np.full(levels, -1, np.int32),
        np.zeros(1 << 18, np.int32),
        counts,
        words[0],
        words[1],
        words[2],
        words[3],
        words[4],
        words[5],
        np.zeros(5, np.int64),
        np.empty(64, np.int64),
    )


@inner
def _hash(words: U64) -> np.uint64:
    total = ZERO
    for x in range(len(words)):
        total = mix(total ^ words[x], np.uint64(x))
    return total


@inner
def slot_of(states: States, words: U64) -> int:
    """Where a state is in the hash table, or belongs."""
    table, mask = states.table, signed(len(states.table) - 1)
    where = signed(_hash(words) & np.uint64(mask))
    while table[where] != 0:
        other = table[where] - 1
        same = True
        for x in range(len(words)):
            if states.words[other, x] != words[x]:
                same = False
                break
        if same:
            break
        where = (where + 1) & mask
    return where


@jit
def rehash(states: States) -> None:
    """Enter all states into a new table."""
    for s in range(states.counts[STATES]):
        states.table[slot_of(states, states.words[s])] = s + 1


@inner
def _map(rules: Rules, g: int, mask: np.uint64, ended: np.uint64) -> np.uint64:
    """Where a map takes values, of which some have had their last task."""
    image = ZERO
    while mask:
        x = lowest(mask)
        image |= ONE << np.uint64(rules.form_items[signed(ended >> np.uint64(x) & ONE), g, x])
        mask &= mask - ONE
    return image


@inner
def canonical(rules: Rules, ideals: Ideals, i: int, words: U64, best: U64, image: U64) -> None:
    """The least image of a state whose ideal is i, into ``best``."""
    sms = len(words) - RED
    best[DONE], ended = ideals.words[i, ideal_table.FORM], ideals.words[i, ideal_table.ENDED]
    image[DONE] = best[DONE]
    first = ideals.numbers[i, ideal_table.FIRST_MAP]
    for at in range(first, ideals.numbers[i, ideal_table.END_MAP]):
        g = signed(ideals.maps[at])
        image[CLEAN], image[COUNTS] = _map(rules, g, words[CLEAN], ended), words[COUNTS]
        for q in range(sms):
            image[RED + q] = _map(rules, g, words[RED + q], ended)
        if rules.sizes[ALIKE]:
            for q in range(1, sms):
                p = q
                while p and rules.kind[p] == rules.kind[p - 1] and _earlier(image, p):
                    p -= 1
        less = at == first
        if not less:
            for x in range(1, len(words)):
                if image[x] != best[x]:
                    less = image[x] < best[x]
                    break
        if less:
            for x in range(1, len(words)):
                best[x] = image[x]


@inner
def _earlier(image: U64, p: int) -> bool:
    """Exchange SM p and the one before where that is the order; whether they were exchanged."""
    low, high = np.uint64(8 * p - 8), np.uint64(8 * p)
    a, b = image[COUNTS] >> low & np.uint64(255), image[COUNTS] >> high & np.uint64(255)
    x, y = image[RED + p - 1], image[RED + p]
    if x < y or (x == y and a <= b):
        return False
    image[RED + p - 1], image[RED + p] = y, x
    image[COUNTS] ^= (a ^ b) << low | (a ^ b) << high
    return True


@inner
def wait(states: States, s: int, cost: int, before: int, level: int) -> None:
    """Put a state into a bucket."""
    counts, queue = states.counts, states.queue
    entry = counts[FREE_ENTRY]
    if entry >= 0:
        counts[FREE_ENTRY] = queue[entry, 3]
    else:
        entry = counts[ENTRIES]
        counts[ENTRIES] += 1
    queue[entry, 0], queue[entry, 1], queue[entry, 2] = s, cost, before
    queue[entry, 3] = states.heads[level]
    states.heads[level] = entry


@merged
def put(states: States, s: int, cost: int, level: int) -> None:
    """Enter ``states.best``, reached from s at a cost, to wait at a level, unless it is there and no dearer."""
    counts = states.counts
    where = slot_of(states, states.best)
    other = signed(states.table[where]) - 1
    if other < 0:
        other = counts[STATES]
        counts[STATES] += 1
        states.table[where] = other + 1
        states.words[other] = states.best
    elif states.costs[other] <= cost:
        return
    states.costs[other], states.parents[other] = cost, s
    wait(states, other, cost, -1, max(level, counts[LEVEL]))

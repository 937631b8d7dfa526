"""A bound on what a position still pays, from its tasks done and two counts, compiled.

**The counted game.** Of a position keep the tasks done, the number of red items and the number of those that are dirty
(evicting one costs 2). To run a task, any red items may pass for its operands, as many as are live and no more of them
dirty than can be; the others are loaded for nothing. Of the rest as many leave as room asks for, at 1 or 2 each, and
what the task no longer needs is dropped, the dirty first. Every move of the game is such a move at no higher cost, or
one to a position with no more red and no more dirty items, from which as much can be done at no higher cost: missing
items are free to load, and one dirty item in place of a clean one is worth its store, 1. So the least cost of the
counted game from there is a lower bound. Where it is too large to be played backwards, dirty items beyond `dirty` pass
for clean, or the table stays empty.

It knows what the lines of `pebble.solvers.search.ideals` do not: that every order of the tasks, not only what must
precede what, leads through moments at which much is live.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.solvers.search.bits import (
    EXHAUSTED,
    FULL,
    I32,
    I64,
    ONE,
    RUNNING,
    U64,
    ZERO,
    borrowed,
    mix,
    popcount,
    signed,
    slot_of,
)
from pebble.solvers.search.dag_model import DagModel
from pebble.traces.jit import inner, jit

MOST_IDEALS = 1 << 20
MOST_STATES = 1 << 25  # ideals times counts: some seconds
_STEPS = 1 << 21  # kept at once
_MOST_STEPS = 1 << 24  # of one kind of task
_HIGHEST = 255
_SLICE_IDEALS = 1 << 12


class Counted(NamedTuple):
    """The ideals of a game, layer after layer, and the least cost of each by the counts."""

    done: U64
    """Tasks done (2 words)."""
    table: I32
    values: NDArray[np.uint8]
    """values[i, red * (dirty + 1) + d]."""
    dirty: int
    """The most dirty items told apart."""


def no_counts() -> Counted:
    """An empty table, whose bound is 0."""
    return Counted(np.zeros((0, 2), np.uint64), np.zeros(1, np.int32), np.zeros((0, 1), np.uint8), 0)


def count_game(mod: DagModel, over: Callable[[], bool]) -> Counted:
    """The table of a game; the empty one where the game is too large, or time is over before it is made."""
    done, table = np.empty((MOST_IDEALS, 2), np.uint64), np.zeros(2 * MOST_IDEALS, np.int32)
    counts = np.zeros(2, np.int64)
    status = RUNNING
    while status == RUNNING:
        if over():
            return no_counts()
        status = _enter(mod, done, table, counts, _SLICE_IDEALS)
    size, reds = int(counts[0]), mod.capacity + 1
    if status == FULL or size * reds > MOST_STATES:
        return no_counts()
    dirty = min(mod.capacity, MOST_STATES // (size * reds) - 1, _MOST_STEPS // (reds * _steps_from_each(mod)) - 1)
    result = Counted(done[:size], table, np.zeros((size, reds * (dirty + 1)), np.uint8), dirty)
    steps, alive = _no_steps(mod, dirty), np.empty((size, 4), np.uint64)
    for end in range(size, 0, -_SLICE_IDEALS):
        if over():
            return no_counts()
        _cost_back(mod, result, steps, alive, max(0, end - _SLICE_IDEALS), end)
    return result


class _Steps(NamedTuple):
    """What tasks of a kind do to the counts, kind by kind: most tasks of a game are of few kinds."""

    kinds: I64
    """The kind in each row, or 0, and how many steps it has."""
    counts: I32
    """From and to, as columns of `Counted.values`, ascending in the first."""
    costs: NDArray[np.uint16]


class _Task(NamedTuple):
    """A kind of task by what the counts see of it."""

    free_slots: int
    """Places that are left beside its operands and its result."""
    stay: int
    """Operands that are needed again."""
    held: int
    """1 where the result is needed."""
    soiled: int
    """1 where it may be dirty then."""
    wanted: int
    """Operands, and a cell that was initialised, which may be red before."""
    may: int
    """Those of them that may be dirty, and ..."""
    lost: int
    """... those of these that are not needed again."""
    slides: int
    """1 where an operand that is needed again may give its place to the result."""


def _steps_from_each(mod: DagModel) -> int:
    """Most steps from one pair of counts: what passes for operands, what leaves, and whether the result slides."""
    touched = 1 + max(int(row.sum()) for row in np.bitwise_count(mod.operands))
    return (touched + 1) * (touched + 2) * (3 if mod.sliding else 1)


def _no_steps(mod: DagModel, dirty: int) -> _Steps:
    """Empty rows, each long enough for all steps of a kind."""
    longest = (mod.capacity + 1) * (dirty + 1) * _steps_from_each(mod)
    rows = 1 << max(0, min(10, (_STEPS // longest).bit_length() - 1))
    return _Steps(
        np.zeros((rows, 2), np.int64), np.empty((rows, longest, 2), np.int32), np.empty((rows, longest), np.uint16)
    )


@jit
def place_of(counted: Counted, d0: np.uint64, d1: np.uint64) -> int:
    """The number of an ideal in the table, or -1."""
    return signed(counted.table[slot_of(counted.done, counted.table, d0, d1)]) - 1


@jit
def counted_bound(values: NDArray[np.uint8], most: int, place: int, red: int, dirty: int) -> int:
    """What a position at that place still pays at least, by `Counted.values` and the most dirty items told apart."""
    if place < 0:
        return 0
    return signed(values[place, red * (most + 1) + min(dirty, most)])


@jit
def _enter(mod: DagModel, done: U64, table: I32, counts: I64, work: int) -> int:
    """Enter what up to `work` ideals lead to (counts: entered, looked at): RUNNING, EXHAUSTED at the end, or FULL."""
    mod, done, table = borrowed((mod, done, table))
    if counts[0] == 0:
        done[0] = 0
        table[slot_of(done, table, ZERO, ZERO)] = 1
        counts[0] = 1
    before = mod.before
    while work > 0 and counts[1] < counts[0]:
        d0, d1 = done[counts[1], 0], done[counts[1], 1]
        counts[1] += 1
        work -= 1
        for t in range(mod.tasks):
            if ((d0 if t < 64 else d1) >> np.uint64(t & 63)) & ONE:
                continue
            if (before[t, 0] & ~d0) | (before[t, 1] & ~d1):
                continue
            e0, e1 = (d0 | ONE << np.uint64(t), d1) if t < 64 else (d0, d1 | ONE << np.uint64(t - 64))
            where = slot_of(done, table, e0, e1)
            if table[where] == 0:
                new = counts[0]
                if new >= len(done):
                    return FULL
                done[new, 0], done[new, 1] = e0, e1
                table[where] = new + 1
                counts[0] = new + 1
    return RUNNING if counts[1] < counts[0] else EXHAUSTED


@inner
def _live(
    mod: DagModel, d0: np.uint64, d1: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]:
    """Items still needed, and of those that were touched, those that may be dirty (2 words each)."""
    need0, need1, live0, live1, dear0, dear1 = ZERO, ZERO, ZERO, ZERO, ZERO, ZERO
    for x in range(mod.items):
        touch0, touch1 = mod.uses[x, 0] | mod.updates[x, 0], mod.uses[x, 1] | mod.updates[x, 1]
        if (touch0 & ~d0) | (touch1 & ~d1) == ZERO:
            continue
        own = ONE << np.uint64(x & 63)
        word = x >> 6
        if word:
            need1 |= own
        else:
            need0 |= own
        if (touch0 & d0) | (touch1 & d1) == ZERO:
            continue
        if word:
            live1 |= own
        else:
            live0 |= own
        unfinished = (mod.updates[x, 0] & ~d0) | (mod.updates[x, 1] & ~d1)
        if mod.computed[0, word] & own != ZERO and (unfinished != ZERO or mod.outputs[0, word] & own == ZERO):
            if word:
                dear1 |= own
            else:
                dear0 |= own
    return need0, need1, live0, live1, dear0, dear1


@jit
def _cost_back(mod: DagModel, counted: Counted, steps: _Steps, alive: U64, start: int, end: int) -> None:
    """The least costs of the ideals from `start` to `end`; those after them are known, and what is `alive` there."""
    mod, counted, steps, alive = borrowed((mod, counted, steps, alive))
    capacity, most = mod.capacity, counted.dirty
    kinds, counts, costs = steps.kinds, steps.counts, steps.costs
    values = counted.values
    for i in range(end - 1, start - 1, -1):
        d0, d1 = counted.done[i, 0], counted.done[i, 1]
        need0, need1, live0, live1, dear0, dear1 = _live(mod, d0, d1)
        alive[i, 0], alive[i, 1], alive[i, 2], alive[i, 3] = need0, need1, dear0, dear1
        if i == len(counted.done) - 1:
            values[i] = 0
            continue
        values[i] = _HIGHEST
        # no position has more red items than are live
        over = (min(capacity, popcount(live0) + popcount(live1)) + 1) * (most + 1)
        for t in range(mod.tasks):
            if ((d0 if t < 64 else d1) >> np.uint64(t & 63)) & ONE:
                continue
            if (mod.before[t, 0] & ~d0) | (mod.before[t, 1] & ~d1):
                continue
            e0, e1 = (d0 | ONE << np.uint64(t), d1) if t < 64 else (d0, d1 | ONE << np.uint64(t - 64))
            child = place_of(counted, e0, e1)
            later0, later1, late0, late1 = alive[child, 0], alive[child, 1], alive[child, 2], alive[child, 3]
            x = mod.target[t]
            own = ONE << np.uint64(x & 63)
            own0, own1 = (own, ZERO) if x < 64 else (ZERO, own)
            o0, o1 = mod.operands[t, 0], mod.operands[t, 1]
            free_capacity = capacity - popcount(o0) - popcount(o1) - 1
            stay = popcount(o0 & later0) + popcount(o1 & later1)
            held = 1 if (own0 & later0) | (own1 & later1) != ZERO else 0
            soiled = 1 if (own0 & late0) | (own1 & late1) != ZERO else 0
            # a cell that was initialised is wanted as operands are, and comes back as the result
            wanted = popcount((o0 | own0) & live0) + popcount((o1 | own1) & live1)
            may = popcount((o0 | own0) & dear0) + popcount((o1 | own1) & dear1)
            lost = may - popcount(o0 & dear0 & later0) - popcount(o1 & dear1 & later1)
            slides = 1 if mod.sliding else 0
            if slides and (o0 & ~later0) | (o1 & ~later1) != ZERO:
                free_capacity += 1
                slides = 0
            kind = (
                ((((free_capacity * 256 + stay) * 256 + wanted) * 256 + may) * 256 + lost) * 8
                + held * 4
                + soiled * 2
                + slides
            )
            row = signed(mix(np.uint64(kind), ZERO) & np.uint64(len(kinds) - 1))
            if kinds[row, 0] != kind + 1:
                kinds[row, 0] = kind + 1
                task = _Task(free_capacity, stay, held, soiled, wanted, may, lost, slides)
                kinds[row, 1] = _steps_of(counts[row], costs[row], capacity, most, task)
            for e in range(kinds[row, 1]):
                at = counts[row, e, 0]
                if at >= over:
                    break
                values[i, at] = min(values[i, at], costs[row, e] + values[child, counts[row, e, 1]])


@inner
def _steps_of(counts: I32, costs: NDArray[np.uint16], capacity: int, most: int, task: _Task) -> int:
    """Write down what a kind of task does from each number of red and dirty items; how many steps there are."""
    free_capacity, stay, held, soiled, wanted, may, lost, slides = task
    width, e = most + 1, 0
    for red in range(capacity + 1):
        for dirty in range(min(red, most) + 1):
            for passed in range(min(dirty, may, wanted) + 1):  # dirty ones that pass for operands
                clean = red - dirty - min(red - dirty, wanted - passed)
                soil = dirty - passed
                carried = max(0, passed - lost) + soiled
                leave = max(0, clean + soil - free_capacity)
                after = clean + soil - leave + stay + held
                if leave <= clean + soil:
                    for gone in range(max(0, leave - clean), min(leave, soil) + 1):
                        counts[e, 0] = red * width + dirty
                        counts[e, 1] = after * width + min(soil - gone + carried, after, most)
                        costs[e] = leave + gone
                        e += 1
                if slides and 0 < leave <= clean + soil + 1:  # an operand that is needed again gives its place
                    for gone in range(max(0, leave - 1 - clean), min(leave - 1, soil) + 1):
                        worse = min(soil - gone + carried, after, most)
                        for cleaner in range(2 if carried > soiled else 1):
                            counts[e, 0] = red * width + dirty
                            counts[e, 1] = after * width + max(0, worse - cleaner)
                            costs[e] = leave + gone + cleaner
                            e += 1
    return e

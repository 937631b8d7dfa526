"""Branch and bound over the positions of a game without recomputation, layer by layer of tasks done, compiled.

A position is an ideal (the tasks done), the red items, and which red computed items slow memory has too. Cost is
counted as excess over the compulsory: evicting an item that is needed again costs 1 when slow memory has it and 2
when not; loading is then free. In slow memory are inputs, finished outputs (stored at once), and what was loaded and
not updated since.

One pass enters every position whose cost so far plus bound is within a limit. Since tasks are never undone, all
positions of an ideal are known before the first of them is expanded. What is left out, and why nothing is lost:

- **Normal form.** Items are loaded for the next task, evicted when room is needed, dropped when useless, outputs
  stored when finished: later loads, and evictions put off, never cost more.
- **Free tasks.** A ready task runs at once where all it needs is red, or is loaded for the last time, there is room,
  and afterwards either no new item is held, or one is held in place of an operand that was at least as dear to evict:
  what follows can do without the task as it did before, at the same price.
- **Dominance and exchange**, see `pebble.solvers.search.dag_moves`.
- **Interchangeable inputs.** Inputs with the same uses change places in a position: the red ones first.
"""

from __future__ import annotations

import numpy as np

from pebble.solvers.search.bits import (
    EXHAUSTED,
    FULL,
    I64,
    RUNNING,
    ZERO,
    Pair,
    borrowed,
    popcount,
    signed,
    single,
)
from pebble.solvers.search.dag_model import (
    AFTER,
    AT_IDEAL,
    AT_STATE,
    COST,
    CUT,
    DOMINATED,
    EXPANDED,
    GOAL,
    GOAL_COST,
    IDEAL,
    LAYER,
    LEVEL,
    LIMIT,
    PARENT,
    SPARE,
    STATES,
    SUCCESSORS,
    DagModel,
    LayerPositions,
)
from pebble.solvers.search.dag_moves import (
    beaten,
    exchanges,
    ideal_after,
    is_worse,
    list_slides,
    list_victims,
    needed,
    next_choice,
    play,
    run_free,
    sort_twins,
    victims_of,
)
from pebble.solvers.search.ideals import (
    HEAD,
    NEXT,
    PURE,
    READY,
    READY_END,
    Ideals,
    bound_of,
    ideal_of,
)
from pebble.traces.jit import inlined, inner, jit

LEVELS = 1 << 15

MATCH = 9


@jit
def begin(mod: DagModel, ideals: Ideals, pos: LayerPositions, limit: int) -> bool:
    """Begin a pass: forget all positions, enter the first; False when an array is full."""
    pos.layers[:] = -1
    for i in range(ideals.counts[0]):
        ideals.numbers[i, HEAD], ideals.numbers[i, NEXT] = -1, -2
    pos.counts[:] = 0
    first = ideal_of(mod, ideals, ZERO, ZERO)
    if first < 0:
        return False
    nothing = ZERO, ZERO
    level = bound_of(
        ideals.numbers, ideals.line_words, ideals.lines, ideals.counted.values, ideals.counted.dirty,
        first, nothing, nothing, nothing, limit,
    )  # fmt: skip
    pos.counts[LIMIT], pos.counts[GOAL], pos.counts[AT_IDEAL] = limit, -1, -2
    if mod.tasks == 0:
        pos.counts[GOAL] = 0
    pos.words[0] = 0
    pos.numbers[0, LEVEL], pos.numbers[0, PARENT], pos.numbers[0, IDEAL] = level, -1, first
    pos.counts[STATES] = 1
    ideals.numbers[first, HEAD], ideals.numbers[first, NEXT] = 0, -1
    pos.layers[0] = first
    return True


@inlined
def _is_goal(ideals: Ideals, pos: LayerPositions, goal: int, child: int, red: Pair, stored: Pair) -> bool:
    """Whether a position is the one sought, which may be the end (-1)."""
    same: bool = ideals.numbers[child, READY] == ideals.numbers[child, READY_END]
    if goal < 0:
        return same
    words = pos.words
    same = pos.numbers[goal, IDEAL] == child and words[goal, 0] == red[0] and words[goal, 1] == red[1]
    same = same and words[goal, 2] == stored[0] and words[goal, 3] == stored[1]
    return same


@inlined
def _arrive(
    ideals: Ideals,
    pos: LayerPositions,
    s: int,
    child: int,
    red: Pair,
    stored: Pair,
    finals: Pair,
    tasks: int,
    cost: int,
) -> bool:
    """Enter a successor of position s, unless it is too dear or beaten; False when an array is full."""
    words, numbers, counts = pos.words, pos.numbers, pos.counts
    ideal_words, ideal_numbers = ideals.words, ideals.numbers
    done = popcount(ideal_words[child, 0]) + popcount(ideal_words[child, 1])
    if done == tasks:
        counts[GOAL], counts[GOAL_COST], counts[LIMIT] = s, cost, cost - 1
        return True
    clean = red[0] & (stored[0] | ideal_words[child, PURE]), red[1] & (stored[1] | ideal_words[child, PURE + 1])
    level = cost + bound_of(
        ideal_numbers, ideals.line_words, ideals.lines, ideals.counted.values, ideals.counted.dirty,
        child, red, clean, (finals[0] | stored[0], finals[1] | stored[1]), counts[LIMIT] - cost,
    )  # fmt: skip
    if level > counts[LIMIT]:
        return True
    if beaten(words, ideal_words, ideal_numbers, ideals.rows, child, red, clean, cost):
        counts[DOMINATED] += 1
        return True
    new = counts[STATES]
    if new >= len(words):
        return False
    words[new, 0], words[new, 1], words[new, 2], words[new, 3] = red[0], red[1], stored[0], stored[1]
    words[new, COST] = np.uint64(cost)
    words[new, AFTER] = np.uint64(ideal_numbers[child, HEAD] + 1)
    numbers[new, LEVEL], numbers[new, PARENT], numbers[new, IDEAL] = level, s, child
    ideal_numbers[child, HEAD] = new
    if ideal_numbers[child, NEXT] == -2:
        ideal_numbers[child, NEXT] = pos.layers[done]
        pos.layers[done] = child
    counts[STATES] = new + 1
    return True


@jit
def expand(mod: DagModel, ideals: Ideals, pos: LayerPositions, s: int, goal: int, goal_cost: int, log: I64) -> int:
    """Enter the successors of position s; RUNNING, or FULL.

    With a `goal`, a position or -1 for the end, nothing is entered: the move that leads there at `goal_cost` is put
    into `found`, the free tasks after it into `log` (their number first), and MATCH returned. -2 is no goal, and wants
    an empty log.
    """
    mod, ideals, pos = borrowed((mod, ideals, pos))
    ideal_words, ready, counts = ideals.words, ideals.ready, pos.counts
    victims, pick, sources, fees = pos.choice[0], pos.choice[1], pos.choice[2], pos.choice[3]
    finals = mod.inputs[0, 0] | mod.outputs[0, 0], mod.inputs[0, 1] | mod.outputs[0, 1]
    here, paid = signed(pos.numbers[s, IDEAL]), signed(pos.words[s, COST])
    red, stored = (pos.words[s, 0], pos.words[s, 1]), (pos.words[s, 2], pos.words[s, 3])
    clean = stored[0] | ideal_words[here, PURE], stored[1] | ideal_words[here, PURE + 1]
    exchanges(pos.better, ideal_words, ideals.numbers, ideals.rows, here, red, clean)
    for entry in range(ideals.numbers[here, READY], ideals.numbers[here, READY_END]):
        t, bits = ready[entry, 0], ready[entry, 2]
        own, needs = single(mod.target[t]), (mod.operands[t, 0], mod.operands[t, 1])
        fresh = (red[0] & own[0]) | (red[1] & own[1]) == ZERO
        over = popcount(red[0] | needs[0]) + popcount(red[1] | needs[1]) + (1 if fresh else 0) - mod.capacity
        # ways to find room: evict `over` items beforehand, or one less and let the result slide
        sources[0], fees[0], count = -1, 0, 1
        if mod.sliding and fresh and over > 0:
            last = ideals.ready_words[entry, 0], ideals.ready_words[entry, 1]
            count = list_slides(sources, fees, needs, last, red, clean)
        free = red[0] & ~needs[0] & ~own[0], red[1] & ~needs[1] & ~own[1]
        number, cheap = list_victims(victims, free, clean)
        for way in range(count):
            source = sources[way]
            evict = max(0, over - (1 if source >= 0 else 0))
            if evict > number:
                continue
            for q in range(evict):
                pick[q] = q
            while True:
                fee, gone = victims_of(victims, pick, evict, cheap)
                cost = paid + fees[way] + fee
                limit = counts[LIMIT] if goal == -2 else LEVELS
                if cost <= limit and not is_worse(pos.choice, pos.better, evict, free, gone):
                    counts[SUCCESSORS] += 1
                    child = ideal_after(mod, ideals, here, entry)
                    if child < 0:
                        return FULL
                    after, kept = play(mod, (t, bits), source, gone, red, stored)
                    after, kept = needed(ideals, child, after, kept)
                    if goal > -2:
                        log[0, 0] = 0
                    child, after, kept = run_free(mod, ideals, child, after, kept, log)
                    if child < 0:
                        return FULL
                    after = sort_twins(mod, after)
                    if goal == -2:
                        if not _arrive(ideals, pos, s, child, after, kept, finals, mod.tasks, cost):
                            return FULL
                    elif cost == goal_cost and _is_goal(ideals, pos, goal, child, after, kept):
                        pos.found[0], pos.found[1] = np.uint64(t), np.uint64(source + 1)
                        pos.found[2], pos.found[3] = gone
                        return MATCH
                if not next_choice(pick, evict, number, cheap, paid + fees[way], limit):
                    break
    return RUNNING


@inner
def _cut(ideals: Ideals, pos: LayerPositions, width: int) -> None:
    """Find the level up to which the best `width` positions of the present layer lie."""
    counts = pos.counts
    tally = np.zeros(LEVELS, np.int64)
    i = pos.layers[counts[LAYER]]
    while i >= 0:
        s = ideals.numbers[i, HEAD]
        while s >= 0:
            tally[pos.numbers[s, LEVEL]] += 1
            s = signed(pos.words[s, AFTER]) - 1
        i = ideals.numbers[i, NEXT]
    cut, total = 0, 0
    while cut < LEVELS - 1 and total + tally[cut] < width:
        total += tally[cut]
        cut += 1
    counts[CUT], counts[SPARE] = cut, width - total


@jit
def advance(mod: DagModel, ideals: Ideals, pos: LayerPositions, width: int, work: int) -> int:
    """Up to `work` expansions of a pass: RUNNING, EXHAUSTED at its end, or FULL.

    With a `width`, only the best of each layer are expanded: the goal found is a play, but no proof.
    """
    mod, ideals, pos = borrowed((mod, ideals, pos))
    counts, numbers = pos.counts, pos.numbers
    log = np.zeros((0, 2), np.int64)
    # no literals: to numba they are types of their own, for which it would compile `expand` once more
    no_goal, no_cost = signed(-2), signed(0)
    while work > 0:
        if counts[AT_IDEAL] == -2:  # begin a layer
            if counts[LAYER] >= mod.tasks:
                return EXHAUSTED
            counts[AT_IDEAL] = pos.layers[counts[LAYER]]
            if counts[AT_IDEAL] >= 0:
                counts[AT_STATE] = ideals.numbers[counts[AT_IDEAL], HEAD]
                if width > 0:
                    _cut(ideals, pos, width)
        if counts[AT_IDEAL] < 0:
            counts[LAYER] += 1
            counts[AT_IDEAL] = -2
            continue
        s = counts[AT_STATE]
        if s < 0:
            i = ideals.numbers[counts[AT_IDEAL], NEXT]
            counts[AT_IDEAL] = i
            if i >= 0:
                counts[AT_STATE] = ideals.numbers[i, HEAD]
            continue
        counts[AT_STATE] = signed(pos.words[s, AFTER]) - 1
        level = numbers[s, LEVEL]
        if level > counts[LIMIT]:
            continue
        if width > 0:
            if level > counts[CUT] or (level == counts[CUT] and counts[SPARE] <= 0):
                continue
            if level == counts[CUT]:
                counts[SPARE] -= 1
        work -= 1
        counts[EXPANDED] += 1
        if expand(mod, ideals, pos, s, no_goal, no_cost, log) == FULL:
            return FULL
    return RUNNING

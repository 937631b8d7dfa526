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
- **Dominance and exchange**, see `pebble.solvers.search.dominance`.
- **Interchangeable inputs.** Inputs with the same uses change places in a position: the red ones first.
"""

from __future__ import annotations

import numpy as np

from pebble.solvers.search.bits import EXHAUSTED, FULL, ONE, RUNNING, ZERO, borrowed, lowest, popcount
from pebble.solvers.search.dag_positions import (
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
)
from pebble.solvers.search.dominance import beaten, exchanges
from pebble.solvers.search.ideals import (
    BEGUN,
    HEAD,
    NEED,
    NEXT,
    PAYS,
    PURE,
    READY,
    READY_END,
    STORED,
    bound_of,
    ideal_of,
)
from pebble.traces.jit import jit

LEVELS = 1 << 15

MATCH = 9


@jit
def begin(mod, ideals, pos, limit):  # type: ignore[no-untyped-def]
    """Begin a pass: forget all positions, enter the first; False when an array is full."""
    pos.layers[:] = -1
    for i in range(ideals.counts[0]):
        ideals.numbers[i, HEAD], ideals.numbers[i, NEXT] = -1, -2
    pos.counts[:] = 0
    first = ideal_of(mod, ideals, ZERO, ZERO)
    if first < 0:
        return False
    level = bound_of(
        ideals.numbers, ideals.line_words, ideals.lines, ideals.counted.values, ideals.counted.dirty,
        first, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, limit,
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


@jit
def expand(mod, ideals, pos, s, goal, goal_cost, log):  # type: ignore[no-untyped-def]
    """Enter the successors of position s; RUNNING, or FULL.

    With a `goal`, a position or -1 for the end, nothing is entered: the move that leads there at `goal_cost` is put
    into `found`, the free tasks after it into `log` (their number first), and MATCH returned. -2 is no goal.
    """
    operands, targets, capacity, sliding, count = mod.operands, mod.target, mod.capacity, mod.sliding, mod.tasks
    computed0, computed1 = mod.computed[0, 0], mod.computed[0, 1]
    finals0, finals1 = mod.inputs[0, 0] | mod.outputs[0, 0], mod.inputs[0, 1] | mod.outputs[0, 1]
    twins, twin = mod.twins, mod.twin
    ideal_words, ideal_numbers, ready_words, ready = ideals.words, ideals.numbers, ideals.ready_words, ideals.ready
    rows, line_words, lines = ideals.rows, ideals.line_words, ideals.lines
    values, most = ideals.counted.values, ideals.counted.dirty
    words, numbers, counts = pos.words, pos.numbers, pos.counts
    layers, better = pos.layers, pos.better
    victims, pick, sources, fees = pos.choice[0], pos.choice[1], pos.choice[2], pos.choice[3]
    here, paid = np.int64(numbers[s, IDEAL]), np.int64(words[s, COST])
    r0, r1, k0, k1 = words[s, 0], words[s, 1], words[s, 2], words[s, 3]
    clean0, clean1 = k0 | ideal_words[here, PURE], k1 | ideal_words[here, PURE + 1]
    exchanges(better, ideal_words, ideal_numbers, rows, here, r0, r1, clean0, clean1)
    for entry in range(ideal_numbers[here, READY], ideal_numbers[here, READY_END]):
        t = ready[entry, 0]
        x = targets[t]
        own = ONE << np.uint64(x & 63)
        own0, own1 = (own, ZERO) if x < 64 else (ZERO, own)
        o0, o1 = operands[t, 0], operands[t, 1]
        fresh = (r0 & own0) | (r1 & own1) == ZERO
        over = popcount(r0 | o0) + popcount(r1 | o1) + (1 if fresh else 0) - capacity
        # ways to find room: evict `over` items beforehand, or one less and let the result slide
        ways = 1
        sources[0], fees[0] = -1, 0
        if sliding and fresh and over > 0:
            y0, y1 = o0 & ready_words[entry, 0], o1 & ready_words[entry, 1]
            if y0 | y1:
                sources[0] = lowest(y0) if y0 else 64 + lowest(y1)
            else:
                y0, y1 = o0, o1
                while y0 | y1:
                    if y0:
                        y = lowest(y0)
                        y0 &= y0 - ONE
                        blue = (~r0 | clean0) >> np.uint64(y) & ONE
                    else:
                        y = lowest(y1)
                        y1 &= y1 - ONE
                        blue = (~r1 | clean1) >> np.uint64(y) & ONE
                        y += 64
                    sources[ways], fees[ways] = y, 1 if blue else 2
                    ways += 1
        # what may leave, the clean first
        v0, v1 = r0 & ~o0 & ~own0, r1 & ~o1 & ~own1
        number, cheap = 0, 0
        for dear in range(2):
            y0, y1 = (v0 & ~clean0, v1 & ~clean1) if dear else (v0 & clean0, v1 & clean1)
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
        for way in range(ways):
            source = sources[way]
            evict = max(0, over - (1 if source >= 0 else 0))
            if evict > number:
                continue
            for q in range(evict):
                pick[q] = q
            while True:
                cost = paid + fees[way]
                gone0, gone1 = ZERO, ZERO
                for q in range(evict):
                    cost += 1 if pick[q] < cheap else 2
                    y = victims[pick[q]]
                    if y < 64:
                        gone0 |= ONE << np.uint64(y)
                    else:
                        gone1 |= ONE << np.uint64(y - 64)
                worse = ZERO
                for q in range(evict):
                    y = victims[pick[q]]
                    worse |= (better[y, 0] & v0 & ~gone0) | (better[y, 1] & v1 & ~gone1)
                if worse == ZERO and (cost <= counts[LIMIT] or goal > -2):
                    counts[SUCCESSORS] += 1
                    if ready[entry, 1] < 0:
                        d0, d1 = ideal_words[here, 0], ideal_words[here, 1]
                        if t < 64:
                            d0 |= ONE << np.uint64(t)
                        else:
                            d1 |= ONE << np.uint64(t - 64)
                        child = ideal_of(mod, ideals, d0, d1)
                        if child < 0:
                            return FULL
                        ready[entry, 1] = child
                    # play the task
                    n0, n1 = r0 & ~gone0, r1 & ~gone1
                    c0, c1 = (k0 & ~gone0) | (o0 & ~n0 & computed0), (k1 & ~gone1) | (o1 & ~n1 & computed1)
                    n0 |= o0 | own0
                    n1 |= o1 | own1
                    c0 &= ~own0
                    c1 &= ~own1
                    if source >= 0:
                        if source < 64:
                            n0 &= ~(ONE << np.uint64(source))
                        else:
                            n1 &= ~(ONE << np.uint64(source - 64))
                    if ready[entry, 2] & STORED:
                        c0 |= own0
                        c1 |= own1
                    child = np.int64(ready[entry, 1])
                    n0 &= ideal_words[child, NEED]
                    n1 &= ideal_words[child, NEED + 1]
                    c0 &= n0
                    c1 &= n1
                    log[0, 0] = 0
                    # free tasks
                    e, end = ideal_numbers[child, READY], ideal_numbers[child, READY_END]
                    while e < end:
                        u = ready[e, 0]
                        a0, a1 = operands[u, 0], operands[u, 1]
                        m0, m1 = a0 & ~n0, a1 & ~n1
                        l0, l1 = ready_words[e, 0], ready_words[e, 1]
                        bits = ready[e, 2]
                        e += 1
                        if (m0 & ~l0) | (m1 & ~l1):
                            continue
                        z = targets[u]
                        own = ONE << np.uint64(z & 63)
                        z0, z1 = (own, ZERO) if z < 64 else (ZERO, own)
                        holds = (n0 & z0) | (n1 & z1) != ZERO
                        if not holds:
                            if bits & BEGUN:
                                continue
                            if not bits & PAYS:
                                y0, y1 = a0 & n0 & l0, a1 & n1 & l1
                                if not bits & STORED:
                                    y0 &= ~(c0 | ideal_words[child, PURE])
                                    y1 &= ~(c1 | ideal_words[child, PURE + 1])
                                if y0 | y1 == ZERO:
                                    continue
                        room = capacity - popcount(n0 | a0) - popcount(n1 | a1) - (0 if holds else 1)
                        slid = -1
                        if room < 0:
                            if room < -1 or holds or not sliding or l0 | l1 == ZERO:
                                continue
                            slid = lowest(l0) if l0 else 64 + lowest(l1)
                        if ready[e - 1, 1] < 0:
                            d0, d1 = ideal_words[child, 0], ideal_words[child, 1]
                            if u < 64:
                                d0 |= ONE << np.uint64(u)
                            else:
                                d1 |= ONE << np.uint64(u - 64)
                            following = ideal_of(mod, ideals, d0, d1)
                            if following < 0:
                                return FULL
                            ready[e - 1, 1] = following
                        child = np.int64(ready[e - 1, 1])
                        c0 = (c0 | (m0 & computed0)) & ~z0
                        c1 = (c1 | (m1 & computed1)) & ~z1
                        n0 |= a0 | z0
                        n1 |= a1 | z1
                        if bits & STORED:
                            c0 |= z0
                            c1 |= z1
                        n0 &= ideal_words[child, NEED]
                        n1 &= ideal_words[child, NEED + 1]
                        c0 &= n0
                        c1 &= n1
                        if goal > -2:
                            log[0, 0] += 1
                            log[log[0, 0], 0], log[log[0, 0], 1] = u, slid
                        e, end = ideal_numbers[child, READY], ideal_numbers[child, READY_END]
                    for w in range(len(twins)):
                        y = twins[w]
                        while twin[y] >= 0:
                            z = twin[y]
                            if not ((n0 if y < 64 else n1) >> np.uint64(y & 63)) & ONE:
                                break
                            if ((n0 if z < 64 else n1) >> np.uint64(z & 63)) & ONE:
                                break
                            if y < 64:
                                n0 &= ~(ONE << np.uint64(y))
                            else:
                                n1 &= ~(ONE << np.uint64(y - 64))
                            if z < 64:
                                n0 |= ONE << np.uint64(z)
                            else:
                                n1 |= ONE << np.uint64(z - 64)
                            y = z
                    d0, d1 = ideal_words[child, 0], ideal_words[child, 1]
                    done = popcount(d0) + popcount(d1)
                    if goal > -2:
                        same = goal < 0 and done == count
                        if goal >= 0:
                            same = numbers[goal, IDEAL] == child and words[goal, 0] == n0 and words[goal, 1] == n1
                            same = same and words[goal, 2] == c0 and words[goal, 3] == c1
                        if same and cost == goal_cost:
                            pos.found[0], pos.found[1] = np.uint64(t), np.uint64(source + 1)
                            pos.found[2], pos.found[3] = gone0, gone1
                            return MATCH
                    elif done == count:
                        counts[GOAL], counts[GOAL_COST], counts[LIMIT] = s, cost, cost - 1
                    else:
                        p0, p1 = n0 & (c0 | ideal_words[child, PURE]), n1 & (c1 | ideal_words[child, PURE + 1])
                        level = cost + bound_of(
                            ideal_numbers, line_words, lines, values, most,
                            child, n0, n1, p0, p1, finals0 | c0, finals1 | c1, counts[LIMIT] - cost,
                        )  # fmt: skip
                        if level <= counts[LIMIT]:
                            if beaten(words, ideal_words, ideal_numbers, rows, child, n0, n1, p0, p1, cost):
                                counts[DOMINATED] += 1
                            else:
                                new = counts[STATES]
                                if new >= len(words):
                                    return FULL
                                words[new, 0], words[new, 1], words[new, 2], words[new, 3] = n0, n1, c0, c1
                                words[new, COST] = np.uint64(cost)
                                words[new, AFTER] = np.uint64(ideal_numbers[child, HEAD] + 1)
                                numbers[new, LEVEL] = level
                                numbers[new, PARENT], numbers[new, IDEAL] = s, child
                                ideal_numbers[child, HEAD] = new
                                if ideal_numbers[child, NEXT] == -2:
                                    ideal_numbers[child, NEXT] = layers[done]
                                    layers[done] = child
                                counts[STATES] = new + 1
                # next choice; the clean come first, so once one is too dear, moving its lowest place on is no use
                q = evict - 1
                while q >= 0:
                    if pick[q] < number - evict + q:
                        least = paid + fees[way]
                        for r in range(q):
                            least += 1 if pick[r] < cheap else 2
                        for r in range(q, evict):
                            least += 1 if pick[q] + 1 + r - q < cheap else 2
                        if least <= counts[LIMIT] or goal > -2:
                            break
                    q -= 1
                if q < 0:
                    break
                pick[q] += 1
                for r in range(q + 1, evict):
                    pick[r] = pick[r - 1] + 1
    return RUNNING


@jit
def _cut(ideals, pos, width):  # type: ignore[no-untyped-def]
    """Find the level up to which the best `width` positions of the present layer lie."""
    counts = pos.counts
    tally = np.zeros(LEVELS, np.int64)
    i = pos.layers[counts[LAYER]]
    while i >= 0:
        s = ideals.numbers[i, HEAD]
        while s >= 0:
            tally[pos.numbers[s, LEVEL]] += 1
            s = np.int64(pos.words[s, AFTER]) - 1
        i = ideals.numbers[i, NEXT]
    cut, total = 0, 0
    while cut < LEVELS - 1 and total + tally[cut] < width:
        total += tally[cut]
        cut += 1
    counts[CUT], counts[SPARE] = cut, width - total


@jit
def advance(mod, ideals, pos, width, work):  # type: ignore[no-untyped-def]
    """Up to `work` expansions of a pass: RUNNING, EXHAUSTED at its end, or FULL.

    With a `width`, only the best of each layer are expanded: the goal found is a play, but no proof.
    """
    mod, ideals, pos = borrowed((mod, ideals, pos))
    counts, numbers = pos.counts, pos.numbers
    log = np.zeros((mod.tasks + 2, 2), np.int64)
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
        counts[AT_STATE] = np.int64(pos.words[s, AFTER]) - 1
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
        if expand(mod, ideals, pos, s, -2, 0, log) == FULL:
            return FULL
    return RUNNING

"""What the search for several memories keeps of a set of done tasks (an "ideal"), computed once, compiled.

Its canonical form is the least of its images under the automorphisms, with which it shares what is told of the tasks
left. States have a canonical form of their own, under the maps of settled states (`pebble.solvers.several.symmetry`);
which of these give it is kept, so that only they are tried on what the memories hold.

**Entries.** Of the tasks to come take those that touch most values (the "full" ones), r of them in all, in the order in
which one SM does its share. With x(w) the least weight of values that w of them touch, a window of w + 1 tasks of
which the first is the last of the window before sees at least x(w + 1) - S enter that SM, loaded, copied in or
initialised there; the first window of w tasks sees x(w) less what the SM holds of use. The first window may also be one
task, or two, which lack no less of what the SM holds than those that lack least. So with what an SM holds its entries
for r tasks are at least what the best chain of windows says, and a split of the tasks among the SMs decides the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.solvers.search.bits import ONE, ZERO, lowest, mix, popcount, signed
from pebble.solvers.search.dag_counts import Counted, no_counts, place_of
from pebble.solvers.several.rules import (
    ALL,
    AT_ONCE,
    CAPACITY,
    EQUAL,
    FULL,
    GRAIN,
    I64,
    INPUTS,
    LINES,
    MOST_ITEMS,
    MOST_MEMORIES,
    OUTPUTS,
    U64,
    WORK,
    Rules,
)
from pebble.traces.jit import inner, merged

I32 = NDArray[np.int32]

# columns of Ideals.words
DONE, OWED, PARTIAL, LIVE, READY, USEFUL, FORM, ENDED, WANTED, SENT, SUMS = range(11)
# columns of Ideals.numbers
OUT, UNINITIALISED, CANON, FIRST_MAP, END_MAP, FULL_LEFT, CHAIN, PLACE, ALONE = range(9)
SLOTS = 1 << 12  # for what SMs hold, of each SM: entries for 0, 1, ... tasks, at the beginning of the chains
LONGEST_ROW = MOST_ITEMS + 1
_LONGEST = 5  # windows of the tasks left; longer ones as in the whole game
_TRIES = 4000  # sets of tasks that are looked at for one length


class Ideals(NamedTuple):
    """Ideals by number."""

    words: U64
    """Tasks done; values owed a load where no memory holds them; of these those that are initialised and incomplete;
    values still needed; tasks that are ready; values that the full tasks left touch; tasks done in the canonical form
    of its states; values whose last task is done; values that tasks with
    operands left touch; of these computed ones that one SM stores, beside what is stored at the end, for tasks of
    another; bit n: n full tasks may be told from the others so that no such value is touched by both."""
    numbers: I32
    """Weight of outputs to store; values not initialised that full tasks left touch; its canonical form; the maps that
    lead to that of its states (first, end); full tasks left; its rows of chains, or -1; its places in the
    counted games, or -1."""
    maps: NDArray[np.int16]
    chains: I32
    """Per ideal one row for each weight of useful values held, 0 to S by grains: entries for r = 0, 1, ... tasks. Then
    one row of entries for r tasks after one during which as much as S is held."""
    table: I32
    counts: NDArray[np.int64]
    """Ideals, maps, chain entries, places of the table in use less one."""
    counted: Counted
    """Of all memories taken as one, which bounds loads and stores."""
    alone: Counted
    """Of one memory."""
    cached: U64
    """Per SM and slot, one more than the ideal of its entries, and what the SM holds of use."""
    sums: I64
    """Room to add up entries of SMs."""
    rows: I64
    """Per SM where its entries stand."""


def make_ideals(most: int, counted: Counted | None = None, alone: Counted | None = None) -> Ideals:
    """Empty arrays, beside the tables of counted games; untouched pages cost no memory."""
    size, slots = 1 << max(10, (2 * most).bit_length()), MOST_MEMORIES * SLOTS
    return Ideals(
        np.empty((most, 11), np.uint64),
        np.empty((most, 9), np.int32),
        np.empty(8 * most + 8192, np.int16),
        np.empty(slots * LONGEST_ROW + 40 * most + (1 << 18), np.int32),
        np.zeros(size, np.int32),
        np.array([0, 0, slots * LONGEST_ROW, 1023], np.int64),
        no_counts() if counted is None else counted,
        no_counts() if alone is None else alone,
        np.zeros((slots, 2), np.uint64),
        np.empty(LONGEST_ROW, np.int64),
        np.empty(MOST_MEMORIES, np.int64),
    )


@inner
def rows_of(rules: Rules) -> int:
    """Rows of chains of an ideal: grains of what an SM holds, from none to all."""
    rows: int = 1 + (rules.sizes[CAPACITY] + rules.sizes[GRAIN] - 1) // rules.sizes[GRAIN]
    return rows


@merged
def weigh(rules: Rules, mask: np.uint64) -> int:
    """Weight of a set of values."""
    if rules.sizes[EQUAL]:
        return popcount(mask)
    total = signed(0)
    while mask:
        total += rules.weight[lowest(mask)]
        mask &= mask - ONE
    return total


@merged
def _slot(ideals: Ideals, done: np.uint64) -> int:
    """Where an ideal is in the table, or belongs."""
    table, mask = ideals.table, ideals.counts[3]
    where = signed(mix(done, ZERO) & np.uint64(mask))
    while table[where] != 0 and ideals.words[table[where] - 1, DONE] != done:
        where = (where + 1) & mask
    return where


@inner
def find_ideal(rules: Rules, ideals: Ideals, done: np.uint64) -> int:
    """Number of an ideal, entered if it is new; -1 where there is no more room."""
    where = _slot(ideals, done)
    if ideals.table[where] != 0:
        return signed(ideals.table[where] - 1)
    i: int = ideals.counts[0]
    capacity = (len(rules.target) + 1) * (rows_of(rules) + 1)
    if i + 2 > len(ideals.words) or ideals.counts[1] + len(rules.form_tasks) > len(ideals.maps):
        return -1
    if ideals.counts[2] + capacity > len(ideals.chains):
        return -1
    ideals.counts[0] += 1
    ideals.table[where] = i + 1
    if 4 * i > ideals.counts[3] and ideals.counts[3] + 1 < len(ideals.table):  # a small one stays in the caches
        ideals.counts[3] = min(4 * ideals.counts[3] + 3, len(ideals.table) - 1)
        ideals.table[: ideals.counts[3] + 1] = 0
        ideals.words[i, DONE] = done
        for other in range(i + 1):
            ideals.table[_slot(ideals, ideals.words[other, DONE])] = other + 1
    _describe(rules, ideals, i, done)
    canon = _canonical(rules, done)
    _form(rules, ideals, i, done)
    if canon == done:
        ideals.numbers[i, CANON] = i
        _chain(rules, ideals, i)
    else:
        c = find_ideal(rules, ideals, canon)
        if c < 0:
            return -1
        ideals.numbers[i, CANON] = c
        ideals.numbers[i, CHAIN] = ideals.numbers[c, CHAIN]
    return i


@inner
def _describe(rules: Rules, ideals: Ideals, i: int, done: np.uint64) -> None:
    """Enter what is owed, needed and ready."""
    owed, partial, live, ready, useful, wanted, sent = ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO
    out = unbegun = 0
    full = rules.masks[FULL] & ~done
    for x in range(len(rules.weight)):
        single = ONE << np.uint64(x)
        updates, left = rules.updates[x], rules.touch[x] & ~done
        if rules.masks[OUTPUTS] & single and updates & ~done:
            out += rules.weight[x]
        if left == ZERO:
            continue
        live |= single
        if left & full:
            useful |= single
        if left & rules.masks[WORK]:
            wanted |= single
            if updates & left & rules.masks[WORK] or (updates and not rules.masks[OUTPUTS] & single):
                sent |= single
        if rules.masks[INPUTS] & single or updates & done:
            owed |= single
            if updates & ~done:
                partial |= single
        elif left & full:
            unbegun += rules.weight[x]
    for t in range(len(rules.target)):
        single = ONE << np.uint64(t)
        if not done & single and rules.before[t] & ~done == ZERO:
            ready |= single
    words, numbers = ideals.words, ideals.numbers
    words[i, DONE], words[i, OWED], words[i, PARTIAL] = done, owed, partial
    words[i, LIVE], words[i, READY], words[i, USEFUL] = live, ready, useful
    numbers[i, OUT], numbers[i, UNINITIALISED], numbers[i, FULL_LEFT] = out, unbegun, popcount(full)
    words[i, WANTED], words[i, SENT], words[i, SUMS] = wanted, sent, _sums(rules, done)
    numbers[i, CHAIN] = -1
    numbers[i, PLACE] = place_of(ideals.counted, done, ZERO)
    numbers[i, ALONE] = place_of(ideals.alone, done, ZERO)


@inner
def _sums(rules: Rules, done: np.uint64) -> np.uint64:
    """The numbers of full tasks of sets of those left that share no value, still to be updated, with the others.

    An output that is an operand, too, may be shared: what is stored of it at the end can serve the others.
    """
    rest, sums = rules.masks[ALL] & ~done, ONE
    while rest:
        part, reached = ZERO, rest & (~rest + ONE)
        while reached:
            part |= reached
            touched = ZERO
            while reached:
                touched |= rules.needs[lowest(reached)]
                reached &= reached - ONE
            while touched:
                x = lowest(touched)
                touched &= touched - ONE
                last = rules.masks[OUTPUTS] >> np.uint64(x) & ONE and rules.touch[x] & ~rules.updates[x] & ~done
                if rules.updates[x] & ~done and not last:
                    reached |= rules.touch[x] & ~done
            reached &= ~part
        rest &= ~part
        sums |= sums << np.uint64(min(63, popcount(part & rules.masks[FULL])))
    return sums


@inner
def _image(rules: Rules, maps: NDArray[np.int16], g: int, tasks: np.uint64) -> np.uint64:
    """Where a map takes tasks."""
    image = ZERO
    while tasks:
        image |= ONE << np.uint64(maps[g, lowest(tasks)])
        tasks &= tasks - ONE
    return image


@inner
def _canonical(rules: Rules, done: np.uint64) -> np.uint64:
    """The least image of the done tasks under the automorphisms."""
    least = ~ZERO
    for g in range(len(rules.task_maps)):
        least = min(least, _image(rules, rules.task_maps, g, done))
    return least


@inner
def _form(rules: Rules, ideals: Ideals, i: int, done: np.uint64) -> None:
    """Enter the least image of the done tasks under the maps of states, and the maps that give it."""
    least, ended = ~ZERO, ZERO
    first = ideals.counts[1]
    end = first
    for g in range(len(rules.form_tasks)):
        image = _image(rules, rules.form_tasks, g, done & ~rules.masks[AT_ONCE])
        rest = rules.masks[AT_ONCE]
        while rest:
            t = lowest(rest)
            rest &= rest - ONE
            if rules.before[t] & ~image == ZERO:
                image |= ONE << np.uint64(t)
        if image < least:
            least, end = image, first
        if image == least:
            ideals.maps[end] = g
            end += 1
    for x in range(len(rules.last)):
        if rules.last[x] & done:
            ended |= ONE << np.uint64(x)
    ideals.counts[1] = end
    ideals.numbers[i, FIRST_MAP], ideals.numbers[i, END_MAP] = first, end
    ideals.words[i, FORM], ideals.words[i, ENDED] = least, ended


@inner
def _fewest_left(rules: Rules, left: I64, w: int, known: int, picked: I64) -> int:
    """Least number of values that w of these full tasks touch, at least ``known``; that where it takes long to tell."""
    count = len(left)
    unions = np.zeros(w + 1, np.uint64)
    best, tries, depth = signed(1 << 40), 0, 0
    picked[0] = -1
    while depth >= 0:
        picked[depth] += 1
        if picked[depth] > count - (w - depth):
            depth -= 1
            continue
        tries += 1
        if tries > _TRIES:
            return known
        union = unions[depth] | rules.needs[left[picked[depth]]]
        size = weigh(rules, union)
        if size >= best:
            continue
        if depth == w - 1:
            best = size
            if best <= known:
                return known
            continue
        unions[depth + 1] = union
        depth += 1
        picked[depth] = picked[depth - 1]
    return best


@inner
def _chain(rules: Rules, ideals: Ideals, i: int) -> None:
    """Enter the entries of chains of windows of the tasks left."""
    if not rules.sizes[LINES]:
        return
    done = ideals.words[i, DONE]
    capacity = rules.sizes[CAPACITY]
    count = signed(ideals.numbers[i, FULL_LEFT])
    left = np.empty(count, np.int64)
    at = 0
    for t in range(len(rules.target)):
        if (rules.masks[FULL] & ~done) >> np.uint64(t) & ONE:
            left[at] = t
            at += 1
    least: I64 = np.zeros(count + 1, np.int64)
    picked = np.empty(_LONGEST + 1, np.int64)
    for w in range(1, count + 1):
        least[w] = max(least[w - 1], rules.fewest[w])
        if w <= _LONGEST:
            least[w] = max(least[w], _fewest_left(rules, left, w, least[w], picked))
    all_left = weigh(rules, ideals.words[i, USEFUL])
    least[count] = max(least[count], all_left)
    row = ideals.counts[2]
    ideals.numbers[i, CHAIN] = row
    ideals.counts[2] += (count + 1) * (rows_of(rules) + 1)
    later: I64 = np.zeros(count + 1, np.int64)
    windows = np.maximum(least - capacity, 0)
    for r in range(1, count + 1):
        best = later[r - 1]
        for w in range(1, r + 1 if r < count else r):
            best = max(best, later[r - w] + windows[w + 1])
        later[r] = best
        ideals.chains[row + rows_of(rules) * (count + 1) + r] = best
    ideals.chains[row + rows_of(rules) * (count + 1)] = 0
    for grains in range(rows_of(rules)):
        at, held = row + grains * (count + 1), grains * rules.sizes[GRAIN]
        ideals.chains[at] = 0
        for r in range(1, count + 1):
            most = signed(ideals.chains[at + r - 1])
            for w in range(1, r + 1):
                most = max(most, later[r - w] + max(signed(0), least[w] - held))
            ideals.chains[at + r] = most

"""A lower bound on what a state of the game with several memories still pays, compiled.

Loads and stores are at least what is due in any case, and with the counted game of all memories as one, what must
leave it. Loads, stores and copies together are at least the entries of `pebble.solvers.several.ideals`, less the
values initialised in them, and the stores due. A copy costs w = min(omega, 1) at least, so the cost is at least
(1 - w) times the first bound and w times the second; without copies, the second.

**Who does the tasks left**, where all values weigh the same. The second bound is the least of these:

- No SM does all full tasks. Then those of two SMs cost what their entries say; and without copies a store more, besides
  those of complete outputs, unless the tasks fall in parts that share no value that is still to be updated: that value
  goes from one SM to the other.
- One SM does all that is left, tasks without operands aside: it may do those too, each while its cell is there in any
  case, or at the very end, and they move nothing. What it lacks enters, what others
  hold dirty is stored for it where there are no copies, and the counted game of its memory says what must leave and
  come back.
- One SM does all full tasks, and another one of the others: it pays, beside the entries of the first, what it lacks for
  that task, which is stored before if it is dirty or the first one updates it, and where the first one does not, but
  uses it, the result is stored. With copies a value that another SM holds is as good as clean, and only what enters
  counts.
"""

from __future__ import annotations

import numpy as np

from pebble.solvers.search.bits import ONE, U64, ZERO, lowest, mix, popcount, signed
from pebble.solvers.search.dag_counts import counted_bound
from pebble.solvers.several import ideals as ideal_table
from pebble.solvers.several.ideals import I32, LONGEST_ROW, SLOTS, Ideals, weigh
from pebble.solvers.several.rules import (
    ANY_SPLIT,
    COMPUTED,
    EQUAL,
    FULL,
    GRAIN,
    INPUTS,
    LOCAL,
    MOST,
    OUTPUTS,
    SHARE,
    UNIT,
    WORK,
    Rules,
)  # fmt: skip
from pebble.solvers.several.states import CLEAN, COUNTS, NEVER, RED
from pebble.traces.jit import inner, merged

ROUGH, QUICK, PRECISE = range(3)


@merged
def _entered(rules: Rules, ideals: Ideals, i: int, words: U64, precision: int) -> int:
    """What at least enters the SMs, and is stored, by who does the full tasks left."""
    r, sms = signed(ideals.numbers[i, ideal_table.FULL_LEFT]), len(words) - RED
    always = signed(ideals.numbers[i, ideal_table.OUT]) - signed(ideals.numbers[i, ideal_table.UNINITIALISED])
    if r == 0:
        return always
    for q in range(sms):
        ideals.rows[q] = _entries_of(rules, ideals, i, q, words[RED + q], precision)
    if not rules.sizes[EQUAL]:
        return always + _entries(rules, ideals, i, words, r)
    bound = always + _entries(rules, ideals, i, words, r - 1) if r > 1 and sms > 1 else signed(NEVER)
    for q in range(sms):
        if rules.sizes[ANY_SPLIT] or rules.sizes[MOST] - tasks_of(words, q) >= r:
            entered = always + signed(ideals.chains[ideals.rows[q] + r])
            if entered < bound:
                alone = max(entered, _alone(rules, ideals, i, words, q, precision))
                bound = min(bound, max(entered, min(alone, entered + _elsewhere(rules, ideals, i, words, q))))
    return bound


@merged
def _entries(rules: Rules, ideals: Ideals, i: int, words: U64, longest: int) -> int:
    """What at least enters the SMs for the full tasks left, none of which does more than so many, and one store more
    where two SMs without copies do tasks of one value.
    """
    r, sms = signed(ideals.numbers[i, ideal_table.FULL_LEFT]), len(words) - RED
    chains, total = ideals.chains, ideals.sums
    entries: int = NEVER
    for q in range(sms):
        at = ideals.rows[q]
        most = longest if rules.sizes[ANY_SPLIT] else min(longest, rules.sizes[MOST] - tasks_of(words, q))
        if q == 0:
            for n in range(r + 1):
                total[n] = NEVER if n > most else signed(chains[at + n])
            entries = total[r]
        elif q + 1 == sms:
            entries = signed(NEVER)
            for n in range(most + 1):
                apart = ideals.words[i, ideal_table.SUMS] >> np.uint64(n) & ONE
                store = 0 if apart or sms > 2 or not rules.sizes[LOCAL] else 1
                entries = min(entries, total[r - n] + chains[at + n] + store)
        else:
            for n in range(r, -1, -1):
                best = signed(NEVER)
                for m in range(min(n, most) + 1):
                    best = min(best, total[n - m] + chains[at + m])
                total[n] = best
    return entries


@merged
def _alone(rules: Rules, ideals: Ideals, i: int, words: U64, q: int, precision: int) -> int:
    """What at least enters SM q and is stored if it does all tasks left."""
    held, others = words[RED + q] & ideals.words[i, ideal_table.LIVE], ZERO
    for p in range(RED, len(words)):
        if p != RED + q:
            others |= words[p]
    dirty = rules.masks[COMPUTED] & ~words[CLEAN]
    owed = ideals.words[i, ideal_table.OWED] & ideals.words[i, ideal_table.WANTED] & ~held
    bound = signed(ideals.numbers[i, ideal_table.OUT]) + popcount(owed)
    if rules.sizes[LOCAL]:
        bound += popcount(others & owed & dirty & ideals.words[i, ideal_table.SENT])
    else:
        dirty &= ~others
    place = signed(ideals.numbers[i, ideal_table.ALONE])
    if place >= 0 and precision > ROUGH:
        alone = ideals.alone  # all that is held was touched by a task done, so the table has a place for as many
        bound += counted_bound(alone.values, alone.dirty, place, popcount(held), popcount(held & dirty))
    return bound


@merged
def _elsewhere(rules: Rules, ideals: Ideals, i: int, words: U64, q: int) -> int:
    """What at least another SM pays for one of the other tasks left, where SM q does all full ones."""
    done, least = ideals.words[i, ideal_table.DONE], signed(NEVER)
    full, tasks = rules.masks[FULL] & ~done, rules.masks[WORK] & ~rules.masks[FULL] & ~done
    local, dirty = rules.sizes[LOCAL], ZERO
    for p in range(RED, len(words)):
        dirty |= words[p] & rules.masks[COMPUTED] & ~words[CLEAN]
    while tasks:
        t = lowest(tasks)
        tasks &= tasks - ONE
        x = rules.target[t]
        inner = rules.masks[OUTPUTS] >> np.uint64(x) & ONE == ZERO
        home = local if inner and rules.touch[x] & full and rules.updates[x] & full == ZERO else 0
        for p in range(RED, len(words)):
            if p == RED + q:
                continue
            paid, needs = signed(home), rules.needs[t]
            while needs:
                y = lowest(needs)
                needs &= needs - ONE
                single = ONE << np.uint64(y)
                stored = local if y == x or rules.masks[OUTPUTS] & single == ZERO else 0
                if rules.updates[y] & full:  # SM q has it before or after
                    paid += stored if words[p] & single else 1 + stored
                elif not words[p] & single and (rules.masks[INPUTS] & single or rules.updates[y] & done):
                    paid += 1 + stored if dirty & single else 1
            least = min(least, paid)
    return least


@merged
def tasks_of(words: U64, q: int) -> int:
    """Tasks that SM q did."""
    return signed(words[COUNTS] >> np.uint64(8 * q) & np.uint64(255))


@merged
def _entries_of(rules: Rules, ideals: Ideals, i: int, q: int, held: np.uint64, precision: int) -> int:
    """Where in the chains the entries of SM q for 0, 1, ... tasks stand; precise ones are computed where need be."""
    row, r = signed(ideals.numbers[i, ideal_table.CHAIN]), signed(ideals.numbers[i, ideal_table.FULL_LEFT])
    red = held & ideals.words[i, ideal_table.USEFUL]
    full = ideal_table.rows_of(rules)
    at = row + min((weigh(rules, red) + rules.sizes[GRAIN] - 1) // rules.sizes[GRAIN], full - 1) * (r + 1)
    if precision < PRECISE:
        return signed(at)
    slot = q * SLOTS + signed(mix(red, np.uint64(i)) & np.uint64(SLOTS - 1))
    to = slot * LONGEST_ROW
    if ideals.cached[slot, 0] != np.uint64(i + 1) or ideals.cached[slot, 1] != red:
        ideals.cached[slot, 0], ideals.cached[slot, 1] = np.uint64(i + 1), red
        lack, pair = _lacks(rules, rules.masks[FULL] & ~ideals.words[i, ideal_table.DONE], red)
        for n in range(r + 1):
            ideals.chains[to + n] = _first(ideals.chains, at, row + full * (r + 1), lack, pair, n)
    return to


@inner
def _lacks(rules: Rules, left: np.uint64, red: np.uint64) -> tuple[int, int]:
    """Of the full tasks left, what at least one lacks of what an SM holds, and what two do."""
    lack, pair = signed(NEVER), signed(NEVER)
    while left:
        missing = rules.needs[lowest(left)] & ~red
        left &= left - ONE
        own = weigh(rules, missing)
        lack = min(lack, own)
        others = left if own < pair else ZERO
        while others:
            pair = min(pair, own + weigh(rules, rules.needs[lowest(others)] & ~red & ~missing))
            others &= others - ONE
    return lack, pair


@merged
def _first(chains: I32, at: int, after: int, lack: int, pair: int, n: int) -> int:
    """Entries of an SM that does n tasks: the first window is one that lacks so much, a pair, or the best of any."""
    if n == 0:
        return signed(0)
    entries = max(signed(chains[at + n]), lack + signed(chains[after + n - 1]))
    if n > 1:
        entries = max(entries, pair + signed(chains[after + n - 2]))
    return entries


@merged
def estimate(rules: Rules, ideals: Ideals, i: int, words: U64, precision: int) -> int:
    """A lower bound on what is still to be paid, no less with more precision.

    A rough one holds as well where what SMs hold does not fit, for all ways to make room.
    """
    anywhere = ZERO
    for q in range(RED, len(words)):
        anywhere |= words[q] & ideals.words[i, ideal_table.LIVE]
    unit, share = rules.sizes[UNIT], rules.sizes[SHARE]
    out = signed(ideals.numbers[i, ideal_table.OUT])
    slow = out + weigh(rules, ideals.words[i, ideal_table.OWED] & ~anywhere)
    place = signed(ideals.numbers[i, ideal_table.PLACE])
    if place >= 0 and precision > ROUGH:
        dirty = popcount(anywhere & rules.masks[COMPUTED] & ~words[CLEAN])
        slow += counted_bound(ideals.counted.values, ideals.counted.dirty, place, popcount(anywhere), dirty)
    if ideals.numbers[i, ideal_table.CHAIN] < 0:
        bound: int = unit * slow
        return bound
    entered = _entered(rules, ideals, i, words, precision)
    bound = (unit - share) * slow + share * max(slow, entered)
    return bound

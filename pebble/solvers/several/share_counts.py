"""What one SM and its helpers still pay at least, from the tasks done and two counts, compiled.

The game is that of `pebble.solvers.several.shares`. Of a position keep the tasks done, the tasks that the SM did (where
their number is limited), how many values it holds, and how many of these are dirty. Any values held may pass for what
a task wants, as many as have been touched, dirty ones where they are best spent; what is missing is loaded, and the
clean ones leave first. One value less held is worth a load at most and a clean one is no worse than a dirty one, so
the least cost from there is a lower bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pebble.solvers.search.bits import I32, I64, ONE, U64, ZERO, lowest, popcount
from pebble.solvers.several import ideals as ideal_table
from pebble.solvers.several.ideals import Ideals, find_ideal
from pebble.solvers.several.rules import ALL, CAPACITY, COMPUTED, INPUTS, OUTPUTS, UNIT, Rules
from pebble.traces.jit import inner, jit

NO_WAY = 1 << 28
# columns of Shares.limits
MOST, MOST_OTHERS, LAYERS, BY_NUMBER = range(4)


class Shares(NamedTuple):
    """What the search for one SM's share asks, beside the rules of its memory."""

    costs: I64
    """Of a task that others do."""
    counted: U64
    """One word: tasks that count as a share."""
    ancestors: U64
    """Per task, all that must be done before it."""
    early: U64
    """Per value, its updates where others may do some before the SM's own: where a task waits for them."""
    limits: I64
    """Counted tasks that the SM does at most; that others do; rows of the table to a set of done tasks; 1 where
    states with different numbers of own tasks are told apart."""
    places: I32
    """Per ideal that is its own canonical form, its place in the table."""
    table: I32
    """By place, own tasks, values held, dirty ones."""
    least: I64
    """For n own tasks, the least cost and price of a finished game so far."""


@jit
def enter_ideals(rules: Rules, ideals: Ideals, most: int) -> bool:
    """Enter all ideals of the game up to symmetry; False where there are too many."""
    if find_ideal(rules, ideals, ZERO) < 0:
        return False
    i = 0
    while i < ideals.counts[0]:
        if ideals.numbers[i, ideal_table.CANON] == i:
            rest = ideals.words[i, ideal_table.READY]
            while rest:
                single = rest & (~rest + ONE)
                rest ^= single
                if (
                    ideals.counts[0] >= most
                    or find_ideal(rules, ideals, ideals.words[i, ideal_table.DONE] | single) < 0
                ):
                    return False
        i += 1
    return True


@inner
def rest_of(rules: Rules, ideals: Ideals, shares: Shares, i: int, own: int, words: U64) -> int:
    """A lower bound on cost and price from a state, whose ideal is i and in which the SM did so many tasks."""
    across = rules.sizes[CAPACITY] + 1
    held = words[len(words) - 1]
    dirty = popcount(held & rules.masks[COMPUTED] & ~words[1])
    place = shares.places[ideals.numbers[i, ideal_table.CANON]]
    row = place * shares.limits[LAYERS] + (own if shares.limits[LAYERS] > 1 else 0)
    bound: int = shares.table[(row * across + popcount(held)) * across + dirty]
    return bound


@inner
def _touched(rules: Rules, live: np.uint64, done: np.uint64) -> np.uint64:
    """Of the values still needed, those that done tasks touched."""
    touched = ZERO
    while live:
        x = lowest(live)
        live &= live - ONE
        if rules.touch[x] & done:
            touched |= ONE << np.uint64(x)
    return touched


@inner
def _initialised(rules: Rules, values: np.uint64, done: np.uint64) -> np.uint64:
    """Of some values, those that done tasks updated."""
    initialised = ZERO
    while values:
        x = lowest(values)
        values &= values - ONE
        if rules.updates[x] & done:
            initialised |= ONE << np.uint64(x)
    return initialised


@jit
def fill(rules: Rules, ideals: Ideals, shares: Shares, order: I64) -> None:
    """Fill the table for ideals in this order, of which the last tasks come first."""
    for at in range(len(order)):
        i = order[at]
        done = ideals.words[i, ideal_table.DONE]
        layers, across = shares.limits[LAYERS], rules.sizes[CAPACITY] + 1
        start = shares.places[i] * layers * across * across
        end = start + layers * across * across
        shares.table[start:end] = 0 if done == rules.masks[ALL] else NO_WAY
        rest = ideals.words[i, ideal_table.READY]
        while rest:
            t = lowest(rest)
            rest &= rest - ONE
            _set_cost(rules, ideals, shares, i, t)


@inner
def _set_cost(rules: Rules, ideals: Ideals, shares: Shares, i: int, t: int) -> None:
    """Lower the entries of an ideal to what they are where task t comes next."""
    done, live = ideals.words[i, ideal_table.DONE], ideals.words[i, ideal_table.LIVE]
    after = done | ONE << np.uint64(t)
    j = find_ideal(rules, ideals, after)
    later, x, needs = ideals.words[j, ideal_table.LIVE], rules.target[t], rules.needs[t]
    j = ideals.numbers[j, ideal_table.CANON]
    target = ONE << np.uint64(x)
    touched = _touched(rules, live, done)
    initialised = _initialised(rules, touched, done)
    fresh = rules.masks[INPUTS] & target == ZERO and rules.updates[x] & done == ZERO
    wanted, soiled = popcount(needs & touched), popcount(needs & initialised)
    new = popcount(needs) - wanted - (1 if fresh else 0)  # loaded in any case
    finished = rules.updates[x] & ~after == ZERO and rules.masks[OUTPUTS] & target != ZERO
    dying = popcount(needs & ~later)
    spent = popcount(needs & initialised & (~later | target))  # dirty ones that are no more, or are dirty anew
    dirtied = 1 if later & target and not finished else 0
    others_keep, others_soil = popcount(touched & later & ~target), popcount(initialised & later & ~needs)
    idle = popcount(initialised & ~needs)
    capacity, unit = rules.sizes[CAPACITY], rules.sizes[UNIT]
    across, layers = capacity + 1, shares.limits[LAYERS]
    counts = signed_bit(shares.counted[0], t)
    total = popcount(done & shares.counted[0])
    for own in range(layers):
        others = total - own
        if layers > 1 and (others < 0 or own > shares.limits[MOST] or others > shares.limits[MOST_OTHERS]):
            continue
        row = (shares.places[i] * layers + own) * across
        here = (shares.places[j] * layers + (own + counts if layers > 1 else 0)) * across
        there = (shares.places[j] * layers + own) * across
        may = layers == 1 or own + counts <= shares.limits[MOST]
        leave = layers == 1 or others + counts <= shares.limits[MOST_OTHERS]
        for red in range(min(capacity, popcount(touched)) + 1):
            for dirty in range(min(red, popcount(initialised)) + 1):
                best = shares.table[(row + red) * across + dirty]
                if may:
                    passed = min(wanted, red)
                    soil = min(dirty, min(soiled, passed))
                    gone = max(0, red + popcount(needs) - passed - capacity)
                    stored = max(0, gone - (red - passed - dirty + soil))
                    held = red + popcount(needs) - passed - gone - dying
                    dirty_left = max(0, min(held, dirty - min(soil, spent) + dirtied - stored))
                    cost = wanted - passed + new + stored + (1 if finished else 0)
                    best = min(best, unit * cost + shares.table[(here + held) * across + dirty_left])
                if leave:
                    stored = max(0, dirty - idle)
                    held = min(red, others_keep)
                    dirty_left = min(dirty - stored, min(others_soil, held))
                    cost = shares.costs[t] + unit * stored
                    best = min(best, cost + shares.table[(there + held) * across + dirty_left])
                shares.table[(row + red) * across + dirty] = best


@inner
def signed_bit(mask: np.uint64, t: int) -> int:
    """1 where a mask has bit t, 0 elsewhere."""
    return 1 if mask >> np.uint64(t) & ONE else 0

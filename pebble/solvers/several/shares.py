r"""What SMs without copies move at least: each one's share of the tasks, by a search of its own.

In the game of P memories that meet only in slow memory, take the loads and stores of one SM, and the tasks that the
others do as done for nothing, whenever it suits. What the others changed it must load, and what it changed and they
touch it must have stored, a cell that they update too. So with W(n) the least that an SM moves which does any n of the
N tasks that count, in any order that the game allows, every pebbling costs at least

.. math:: \min \{ W(n_1) + \dots + W(n_P) : n_1 + \dots + n_P = N \}.

With any split those tasks count that touch most values, and one that finds all it touches in one memory is done there
at once, as in `pebble.solvers.several.steps`; that may be one of others, so W(n) is then for n tasks or more. Where the
tasks of an SM are limited, all of them count, and nothing is done at once.

**Search.** All W(n) come from one A*: with a price of T / N on a task that others do, T the cost to be proved, the
least cost and price is about T for most n, so that what is worth nothing is not looked at. With any split a first
search does not tell shares of different n apart: where the least cost and price is m, P m - (P - 1) T is proved. A
state comes after a task of the SM. What others do waits until that task needs it or the end; only updates of a cell
that others wait for may also be done by them before the SM loads it. Other orders are no cheaper: a value that the SM
dirtied is stored once for the others, now or as it leaves. Levels are multiples of 1 / N, and the rest is bounded by
`pebble.solvers.several.share_counts`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pebble.bounds.splits import cheapest_split
from pebble.game import SINGLE
from pebble.solvers.result import Incumbent, Problem
from pebble.solvers.search.bits import (
    EXHAUSTED,
    FULL,
    GROW,
    ONE,
    RUNNING,
    U64,
    ZERO,
    borrowed,
    lowest,
    popcount,
    signed,
)
from pebble.solvers.several import ideals as ideal_table
from pebble.solvers.several import states as at
from pebble.solvers.several.entering import do, settle
from pebble.solvers.several.ideals import Ideals, find_ideal, make_ideals
from pebble.solvers.several.rules import (
    ALL,
    ANY_SPLIT,
    CAPACITY,
    COMPUTED,
    INPUTS,
    LINES,
    MOST,
    UNIT,
    Rules,
    read_rules,
)  # fmt: skip
from pebble.solvers.several.rules import FULL as FULL_TASKS
from pebble.solvers.several.share_counts import (
    BY_NUMBER,
    MOST_OTHERS,
    NO_WAY,
    Shares,
    enter_ideals,
    fill,
    rest_of,
    signed_bit,
)  # fmt: skip
from pebble.solvers.several.share_counts import MOST as MOST_OWN
from pebble.solvers.several.states import CLEAN, COUNTS, DONE, LEVEL, RED, STATES, States, canonical, put
from pebble.solvers.several.steps import leaving
from pebble.traces.jit import inner, jit

_MOST_IDEALS = 1 << 17
_MOST_ENTRIES = 1 << 26
_LEVELS = 1 << 14
_SLICE = 1 << 12


@inner
def _enter(rules: Rules, ideals: Ideals, states: States, shares: Shares, s: int, cost: int) -> bool:
    """Settle ``states.after``, reached from s at a cost, and enter it; False without room."""
    words, counted = states.after, shares.counted[0]
    before = words[DONE]
    i, paid = settle(rules, ideals, words)
    if i < 0:
        return False
    cost += paid
    if shares.limits[BY_NUMBER]:
        words[COUNTS] += np.uint64(popcount(words[DONE] & ~before & counted))
    own = signed(words[COUNTS])
    rest = rest_of(rules, ideals, shares, i, own, words)
    if rest >= NO_WAY or cost + rest >= len(states.heads):
        return True
    level = cost + rest
    end = cost + rules.sizes[UNIT] * popcount(words[RED] & rules.masks[COMPUTED] & ~words[CLEAN])
    left, others = rules.masks[ALL] & ~words[DONE], popcount(counted) - own
    while left:
        end += shares.costs[lowest(left)]
        left &= left - ONE
    if others <= shares.limits[MOST_OTHERS]:
        shares.least[own] = min(shares.least[own], end)
    canonical(rules, ideals, i, words, states.best, states.image)
    put(states, s, cost, level)
    return True


@inner
def _others(rules: Rules, shares: Shares, words: U64, tasks: np.uint64) -> int:
    """Have the others do some tasks; what that costs in stores and prices."""
    changed, touched, paid = ZERO, ZERO, signed(0)
    words[DONE] |= tasks
    while tasks:
        u = lowest(tasks)
        tasks &= tasks - ONE
        paid += shares.costs[u]
        touched |= rules.needs[u]
        changed |= ONE << np.uint64(rules.target[u])
    stored = touched & words[RED] & rules.masks[COMPUTED] & ~words[CLEAN]
    words[CLEAN] |= stored
    words[RED] &= ~changed
    words[CLEAN] &= words[RED]
    cost: int = paid + rules.sizes[UNIT] * popcount(stored)
    return cost


@inner
def _own(rules: Rules, ideals: Ideals, states: States, shares: Shares, s: int, t: int, tasks: np.uint64) -> bool:
    """All ways to do a task after the others did some; False without room."""
    base, after = states.goal, states.after
    base[:] = states.now
    cost = signed(states.costs[s]) + _others(rules, shares, base, tasks)
    counted, own = shares.counted[0], signed(base[COUNTS])
    mine = signed_bit(counted, t) if shares.limits[BY_NUMBER] else 0
    if own + mine > shares.limits[MOST_OWN] or popcount(base[DONE] & counted) - own > shares.limits[MOST_OTHERS]:
        return True
    i = find_ideal(rules, ideals, base[DONE])
    if i < 0:
        return False
    base[RED] &= ideals.words[i, ideal_table.LIVE]
    base[CLEAN] &= base[RED]
    x = rules.target[t]
    target = ONE << np.uint64(x)
    missing = rules.needs[t] & ~base[RED]
    fresh = rules.masks[INPUTS] & target == ZERO and rules.updates[x] & base[DONE] == ZERO
    cost += rules.sizes[UNIT] * popcount(missing & ~target if fresh else missing)
    lack, at_set = popcount(base[RED] | rules.needs[t]) - rules.sizes[CAPACITY], signed(0)
    while True:
        leaves = ZERO
        if lack > 0:
            leaves, at_set = leaving(rules, states, 0, base[RED] & ~rules.needs[t], lack, at_set)
            if at_set < 0:
                return True
        after[:] = base
        after[RED] = base[RED] & ~leaves | rules.needs[t]
        after[CLEAN] = (base[CLEAN] | missing & rules.masks[COMPUTED]) & after[RED]
        after[COUNTS] += np.uint64(mine)
        paid = rules.sizes[UNIT] * popcount(leaves & rules.masks[COMPUTED] & ~base[CLEAN])
        if not _enter(rules, ideals, states, shares, s, cost + paid + do(rules, after, t)):
            return False
        if lack <= 0:
            return True


@inner
def _expand(rules: Rules, ideals: Ideals, states: States, shares: Shares, s: int) -> bool:
    """Enter the successors of ``states.now``, which is state s; False without room."""
    done = states.now[DONE]
    for t in range(len(rules.target)):
        single, x = ONE << np.uint64(t), rules.target[t]
        if done & single:
            continue
        may = ZERO
        if states.now[RED] >> np.uint64(x) & ONE == ZERO:
            may = shares.early[x] & ~(done | single | shares.ancestors[t])
        subset = may
        while True:
            tasks, rest = shares.ancestors[t] | subset, subset
            while rest:
                tasks |= shares.ancestors[lowest(rest)]
                rest &= rest - ONE
            if tasks & single == ZERO and not _own(rules, ideals, states, shares, s, t, tasks & ~done):
                return False
            if subset == ZERO:
                break
            subset = (subset - ONE) & may
    return True


@jit
def advance(rules: Rules, ideals: Ideals, states: States, shares: Shares, steps: int) -> int:
    """Expand so many states, or begin; how it went."""
    rules, ideals, states, shares = borrowed((rules, ideals, states, shares))
    counts, queue = states.counts, states.queue
    if counts[STATES] == 0:
        states.after[:] = ZERO
        counts[LEVEL] = 0
        if not _enter(rules, ideals, states, shares, signed(-1), signed(0)):
            return FULL
    for _ in range(steps):
        while counts[LEVEL] < len(states.heads) and states.heads[counts[LEVEL]] < 0:
            counts[LEVEL] += 1
        if counts[LEVEL] == len(states.heads):
            return EXHAUSTED
        if counts[STATES] + 65536 > len(states.words) or counts[at.ENTRIES] + 65536 > len(states.queue):
            return FULL
        if 2 * (counts[STATES] + 65536) > len(states.table):
            return GROW
        entry = signed(states.heads[counts[LEVEL]])
        states.heads[counts[LEVEL]] = queue[entry, 3]
        s, cost = signed(queue[entry, 0]), queue[entry, 1]
        queue[entry, 3] = counts[at.FREE_ENTRY]
        counts[at.FREE_ENTRY] = entry
        if states.costs[s] != cost:
            continue
        states.now[:] = states.words[s]
        if not _expand(rules, ideals, states, shares, s):
            return FULL
    return RUNNING


class ShareBound:
    """The bound for an incumbent whose SMs have no copies and whose values weigh the same."""

    def __init__(self, best: Incumbent, most_states: int) -> None:
        problem = best.problem
        game, self.sms = problem.game, problem.buffers.memories
        tasks = len(game.tasks)
        most = tasks if problem.most_tasks_per_sm is None else min(tasks, problem.most_tasks_per_sm)
        rules = read_rules(Problem(game.anywhere(), problem.capacity, 0, SINGLE))
        limited = most < tasks
        counted = int(rules.masks[ALL if limited else FULL_TASKS])
        self.number = counted.bit_count()
        self.most = most if limited else self.number
        others = min(self.number, (self.sms - 1) * self.most)
        sizes = rules.sizes.copy()
        sizes[UNIT], sizes[LINES], sizes[ANY_SPLIT], sizes[MOST] = self.number, 0, not limited, tasks
        self.rules = rules._replace(sizes=sizes)
        self.target = (best.upper if best.upper is not None else best.lower) // best.unit
        costs = [self.target if counted >> t & 1 else 0 for t in range(tasks)]
        self.ideals = make_ideals(4 * _MOST_IDEALS)
        self.layers = self.number + 1 if limited else 1
        ancestors = _closed([sum(1 << u for u in preds) for preds in game.preds])
        waiting = [sum(1 << u for u in updates) for updates in game.updates]
        early = [mask if any(a & mask for a in ancestors) else 0 for mask in waiting]
        self.shares = Shares(
            np.array(costs, np.int64), np.array([counted], np.uint64), np.array(ancestors, np.uint64),
            np.array(early, np.uint64), np.array([self.most, others, self.layers, 1], np.int64), np.zeros(1, np.int32),
            np.zeros(1, np.int32), np.full(self.number + 1, NO_WAY, np.int64),
        )  # fmt: skip
        self.most_states = most_states

    def run(self, over: Callable[[], bool]) -> int:
        """What is proved until it is over, in values."""
        if not self._fill():
            return 0
        proved = self._search(0, over) if self.layers == 1 else 0
        return proved if proved >= self.target else max(proved, self._search(1, over))

    def _search(self, by_number: int, over: Callable[[], bool]) -> int:
        """What one search proves; it tells shares of different numbers of tasks apart or not."""
        self.shares.limits[BY_NUMBER], self.shares.least[:] = by_number, NO_WAY
        self.states = at.make_states(self.most_states, 1, _LEVELS)
        proved, status = 0, RUNNING
        while status in (RUNNING, GROW) and proved < self.target and not over():
            status = advance(self.rules, self.ideals, self.states, self.shares, _SLICE)
            if status == GROW:
                self.states = self.states._replace(table=np.zeros(4 * len(self.states.table), np.int32))
                at.rehash(self.states)
            elif status != FULL:
                proved, final = self._proved()
                if final:
                    break
        return proved

    def _fill(self) -> bool:
        """Fill the table of what the rest costs; False where the game is too large for it."""
        if not enter_ideals(self.rules, self.ideals, 2 * _MOST_IDEALS):
            return False
        numbers = self.ideals.numbers[: self.ideals.counts[0]]
        own = np.flatnonzero(numbers[:, ideal_table.CANON] == np.arange(len(numbers)))
        size = len(own) * self.layers * (int(self.rules.sizes[CAPACITY]) + 1) ** 2
        if size > _MOST_ENTRIES:
            return False
        places = np.zeros(len(numbers), np.int32)
        places[own] = np.arange(len(own))
        self.shares = self.shares._replace(places=places, table=np.zeros(size, np.int32))
        done = np.bitwise_count(self.ideals.words[own, ideal_table.DONE])
        fill(self.rules, self.ideals, self.shares, own[np.argsort(-done.astype(np.int64), kind="stable")])
        return True

    def _proved(self) -> tuple[int, bool]:
        """The bound as far as the search came, and whether it can rise no more."""
        level, each, number = int(self.states.counts[LEVEL]), self.target, self.number
        if not self.shares.limits[BY_NUMBER]:
            result = min(level, int(self.shares.least[0]))
            return -(-self.sms * result // number) - (self.sms - 1) * each, result < level
        least = [int(cost) for cost in self.shares.least]
        known = [cost <= level for cost in least]
        # a level is not done with while states wait in it
        values = [-(-(min(cost, level) - each * (number - n)) // number) for n, cost in enumerate(least)]
        ends = [value if exact else NO_WAY for value, exact in zip(values, known, strict=True)]
        if self.layers == 1:  # what is done at once may be more than the share: at least n tasks
            for n in range(number - 1, -1, -1):
                values[n], ends[n] = min(values[n : n + 2]), min(ends[n : n + 2])
        bound = cheapest_split([max(0, value) for value in values], self.sms, self.most)
        return bound, cheapest_split(ends, self.sms, self.most) <= bound


def _closed(before: list[int]) -> list[int]:
    """Per task, all that must be done before it, of masks of those that must be done just before."""
    results: dict[int, int] = {}

    def closed(t: int) -> int:
        if t not in results:
            mask = before[t]
            for u in range(len(before)):
                if before[t] >> u & 1:
                    mask |= closed(u)
            results[t] = mask
        return results[t]

    return [closed(t) for t in range(len(before))]

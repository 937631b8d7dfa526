"""The search for games with several memories, and the moves of what it finds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import exp, log

import numpy as np

from pebble.errors import InputError, PebbleError
from pebble.game import Game, Move, Op
from pebble.solvers.result import Incumbent
from pebble.solvers.search.bits import EXHAUSTED, FOUND, FULL, GROW, RUNNING, bits_of
from pebble.solvers.search.dag_counts import Counted, count_game, no_counts
from pebble.solvers.search.dag_model import build_dag_model
from pebble.solvers.several import astar
from pebble.solvers.several import states as state_table
from pebble.solvers.several.ends import has_ends, raise_by_ends
from pebble.solvers.several.ideals import Ideals, make_ideals
from pebble.solvers.several.rules import (
    ANY_SPLIT,
    CAPACITY,
    EQUAL,
    NO_MULTIPLIER,
    SHARE,
    UNIT,
    Rules,
    cost_unit,
    read_rules,
    weight_unit,
)
from pebble.solvers.several.shares import ShareBound
from pebble.system.parallel import memory_allowance
from pebble.units import ceil_div

_SLICE_SECONDS = 0.05
_LARGEST_SLICE = 1 << 14
_MOST_IDEALS = 1 << 22
_LEVELS = 1 << 20
_LEVELS_TOLD = 3  # that tell how fast they rise
_MOST_GROWTH = 100.0  # natural logarithm of how much longer a level may take; weighted games have thousands of levels
_MOST_COST = 1 << 18
_COUNT_SHARE = 0.2  # of the time left, for the counted game
_BEAM_WIDTHS = (30, 1000)
_BEAM_SHARE = 0.1  # of the time left, each
_SHARES_SHARE = 0.4  # of the time left, where that leaves a gap
_ALONE_SHARE = 0.6  # of the time left, before other bounds are looked for ...
_MORE_SHARE = 0.05  # ... and as much again while levels rise so that the search closes in time
_BYTES_PER_SHARE = 4 * 8 + 8 + 32 + 16


class BufferSearch:
    """One search for an incumbent."""

    def __init__(self, best: Incumbent) -> None:
        self.best, self.game = best, best.problem.game
        self.rules = read_rules(best.problem, settled=True)
        # units of the incumbent to a level
        self.level = weight_unit(self.game) * (best.unit // cost_unit(best.problem))
        if best.lower > _MOST_COST * self.level:
            raise InputError(
                f"solver search: with several memories it counts costs up to {_MOST_COST:,} steps, got weights and an "
                f"omega that make this one of {best.lower // self.level:,} at least; use --solver cpsat or heuristic."
            )
        self.sms = best.problem.buffers.memories
        self.memory = int(best.memory_share * memory_allowance())
        self.ideals: Ideals = make_ideals(_MOST_IDEALS, *self._counted())
        self.states = self._no_states(1)
        self.reached: list[tuple[int, float]] = []  # levels of the search, each with the seconds until it came there

    def _counted(self) -> tuple[Counted, Counted]:
        """The counted games of all memories as one, where loads and stores have a weight of their own, and of one."""
        sizes, until = self.rules.sizes, time.monotonic() + _COUNT_SHARE * self.best.seconds_left

        ones = (1,) * self.game.size
        game = replace(self.game, weights=ones, partial_weights=ones)

        def count(memories: int) -> Counted:
            model = build_dag_model(game, memories * int(sizes[CAPACITY]))
            return count_game(model, lambda: self.best.stopped or time.monotonic() > until)

        alone = count(1) if sizes[EQUAL] else no_counts()
        pooled = count(self.sms) if len(alone.done) and sizes[SHARE] < sizes[UNIT] else no_counts()
        return pooled, alone

    def _no_states(self, parts: int) -> state_table.States:
        """Room for states in a part of the memory allowed."""
        each = state_table.BYTES_PER_STATE + 8 * (state_table.RED + self.sms) + 32 + 16
        return state_table.make_states(max(1 << 17, self.memory * 3 // 4 // each // parts), self.sms, _LEVELS)

    def run(self) -> str:
        """Look for good pebblings, then search until the bounds meet; why it stopped."""
        for width in _BEAM_WIDTHS:
            self._beam(width)
        best = self.best
        self.states = self._no_states(1)
        counts = self.states.counts
        counts[state_table.UPPER] = self.upper
        status = self._alone()
        if status not in (FOUND, EXHAUSTED) and not best.stopped:
            if has_ends(best.problem):
                raise_by_ends(best)
            else:
                self._shares()
        status = self._work(status, float("inf"))
        if status == FOUND:
            best.offer(self.moves(), "search")
        elif status == EXHAUSTED:
            return best.none_cheaper("search")
        if best.closed:
            return "proved optimal"
        return f"memory limit of {self.memory / 2**30:.1f} GiB" if status == FULL else "stopped"

    def _alone(self) -> int:
        """Search for a share of the time left, and longer where that will do."""
        best, began, status = self.best, time.monotonic(), RUNNING
        whole, share = best.seconds_left, _ALONE_SHARE
        while True:
            status = self._work(status, time.monotonic() + share * whole, began=began)
            if status in (FOUND, EXHAUSTED, FULL) or best.stopped:
                return status
            if seconds_to_level(self.reached, self.upper, time.monotonic() - began) > whole:
                return status
            share = _MORE_SHARE

    def _beam(self, width: int) -> None:
        """Offer the best that a beam finds, in a share of the time left."""
        if self.best.stopped:
            return
        self.states = self._no_states(8)
        counts = self.states.counts
        counts[state_table.UPPER], counts[state_table.MODE] = self.upper, state_table.BEAM
        counts[state_table.WIDTH] = _LEVELS // (len(self.game.tasks) + 1)
        until = time.monotonic() + _BEAM_SHARE * self.best.seconds_left
        if self._work(RUNNING, until, width) == FOUND:
            self.best.offer(self.moves(), "beam")

    def _shares(self) -> None:
        """Raise the bound to what the shares of the SMs cost, in a part of the time left, where nothing is copied."""
        best, until = self.best, time.monotonic() + _SHARES_SHARE * self.best.seconds_left
        if not self.rules.sizes[EQUAL] or best.problem.buffers.copies_pay:
            return
        bound = ShareBound(best, max(1 << 17, self.memory // 4 // _BYTES_PER_SHARE))
        best.raise_lower(bound.run(lambda: best.stopped or time.monotonic() > until) * best.unit, "bound of shares")

    def _work(self, status: int, until: float, width: int = 0, began: float = 0.0) -> int:
        """Advance slice by slice, until there is a result or the time is up; when levels are reached is kept."""
        best, work = self.best, 64
        while status not in (FOUND, EXHAUSTED, FULL) and not best.stopped and time.monotonic() < until:
            started, counts = time.monotonic(), self.states.counts
            counts[state_table.UPPER] = self.upper
            status = astar.advance(self.rules, self.ideals, self.states, width, work)
            took = time.monotonic() - started
            if status == GROW:
                self.states = self.states._replace(table=np.zeros(4 * len(self.states.table), np.int32))
                state_table.rehash(self.states)
            else:
                work = min(_LARGEST_SLICE, 2 * work) if took < _SLICE_SECONDS else max(16, work // 2)
            if counts[state_table.MODE] == state_table.EXACT:
                if not self.reached or self.reached[-1][0] < counts[state_table.LEVEL]:
                    self.reached.append((int(counts[state_table.LEVEL]), time.monotonic() - began))
                level = int(counts[state_table.LEVEL]) * self.level
                best.raise_lower(level if best.upper is None else min(level, best.upper), "search")
                best.details |= {
                    "states": int(counts[state_table.STATES]),
                    "expanded": int(counts[state_table.EXPANDED]),
                    "ideals": int(self.ideals.counts[0]),
                }
        return status

    @property
    def upper(self) -> int:
        """The cost at which nothing need be looked at."""
        return _LEVELS - 1 if self.best.upper is None else min(ceil_div(self.best.upper, self.level), _LEVELS - 1)

    def moves(self) -> tuple[Move, ...]:
        """The moves on the way to the goal."""
        states, counts = self.states, self.states.counts
        chain = [int(counts[state_table.GOAL])]
        while states.parents[chain[-1]] >= 0:
            chain.append(int(states.parents[chain[-1]]))
        chain.reverse()
        states.now[:] = 0
        writer = _Writer(self.game, self.rules, self.sms)
        for s, following in pairwise(chain):
            states.goal[:] = states.words[following]
            counts[state_table.LAST], counts[state_table.MODE] = states.costs[following], state_table.READ
            counts[state_table.GOAL] = s
            status = astar.advance(self.rules, self.ideals, states, 0, 1)
            if status != RUNNING or counts[state_table.MODE] != state_table.MATCHED:
                raise PebbleError("search: a recorded state has no step to the next; please report this.")
            states.now[:] = states.after
            task, sm, leaves, fetches, source = map(int, states.move)
            leaving, loaded = bits_of(leaves & (1 << 64) - 1), bits_of(fetches & (1 << 64) - 1)
            if task < 0:
                writer.push(-1 - task, source, sm, leaving)
            else:
                writer.step(task, sm, leaving, loaded)
        return tuple(writer.moves)


def seconds_to_level(reached: Sequence[tuple[int, float]], level: int, now: float) -> float:
    """When a search comes to a level if each further one takes longer by the factor by which the last two did, or more
    where the next one should be there.

    Examples
    --------
    >>> round(seconds_to_level([(3, 1.0), (4, 3.0), (5, 9.0)], 7, 10.0))
    81
    >>> round(seconds_to_level([(3, 1.0), (4, 3.0), (5, 9.0)], 7, 36.0))
    144
    >>> seconds_to_level([(3, 1.0), (4, 3.0), (5, 9.0)], 1 << 20, 36.0)
    inf
    """
    if len(reached) < _LEVELS_TOLD:
        return float("inf")
    (first, early), (last, late) = reached[-_LEVELS_TOLD], reached[-1]
    late = max(late, _SLICE_SECONDS)
    factor: float = max((late / max(early, _SLICE_SECONDS)) ** (1 / (last - first)), now / late)
    growth = (level - last) * log(factor)
    return late * exp(growth) if growth < _MOST_GROWTH else float("inf")


class _Writer:
    """Writes steps and pushes as moves."""

    def __init__(self, game: Game, rules: Rules, sms: int) -> None:
        self.game, self.rules = game, rules
        self.moves: list[Move] = []
        self.held: list[set[int]] = [set() for _ in range(sms)]
        self.blue = {x for x, blue in enumerate(game.is_input) if blue}
        self.done: set[int] = set()

    def say(self, op: Op, x: int, sm: int, source: int | None = None) -> None:
        self.moves.append(Move(op, self.game.names[x], source, sm))

    def leave(self, x: int, sm: int) -> None:
        """Delete a value, stored before if it would be lost."""
        if x not in self.blue and not any(x in held for q, held in enumerate(self.held) if q != sm):
            self.store(x, sm)
        self.drop(x, sm)

    def store(self, x: int, sm: int) -> None:
        self.say("store", x, sm)
        self.blue.add(x)

    def drop(self, x: int, sm: int) -> None:
        self.say("delete", x, sm)
        self.held[sm].discard(x)

    def push(self, x: int, source: int, sm: int, leaving: list[int]) -> None:
        """Make room, copy, and drop at the source."""
        for y in leaving:
            self.leave(y, sm)
        self.copy(x, source, sm)
        self.drop(x, source)
        self.settle()

    def copy(self, x: int, source: int, sm: int) -> None:
        self.say("copy", x, sm, source)
        self.held[sm].add(x)

    def step(self, task: int, sm: int, leaving: list[int], by_load: list[int]) -> None:
        """Make room, fetch, compute, and what follows of itself."""
        game, target = self.game, self.game.tasks[task].target
        for y in leaving:
            self.leave(y, sm)
        initialised = game.is_input[target] or any(u in self.done for u in game.updates[target])
        for x in (*game.tasks[task].operands, *((target,) if initialised else ())):
            if x not in self.held[sm]:
                self.fetch(x, sm, x in by_load)
        self.compute(task, sm)
        self.settle()

    def settle(self) -> None:
        """What follows of itself: values that are no longer needed go, tasks that need nothing more are done."""
        self.tidy()
        while self.rules.sizes[ANY_SPLIT] and (free := self.free_task()):
            self.compute(*free)
            self.tidy()

    def fetch(self, x: int, sm: int, by_load: bool) -> None:
        unit, price = int(self.rules.sizes[UNIT]), self.rules.price
        holders = [q for q, held in enumerate(self.held) if x in held]
        nearest = min(holders, key=lambda q: int(price[q, sm]), default=None)
        copy = NO_MULTIPLIER if nearest is None else int(price[nearest, sm])
        load = unit if x in self.blue else 2 * unit
        partial = any(u not in self.done for u in self.game.updates[x])
        if nearest is None or by_load or (copy > load and (partial or x in self.blue)):
            if x not in self.blue:
                self.store(x, holders[0])
            self.say("load", x, sm)
            self.held[sm].add(x)
        else:
            self.copy(x, nearest, sm)

    def compute(self, task: int, sm: int) -> None:
        target = self.game.tasks[task].target
        self.moves.append(Move("compute", self.game.tasks[task].name, sm=sm))
        for held in self.held:
            held.discard(target)
        self.held[sm].add(target)
        self.blue.discard(target)
        self.done.add(task)
        if self.game.is_output[target] and self.done.issuperset(self.game.updates[target]):
            self.store(target, sm)

    def tidy(self) -> None:
        """Delete what no task to come touches."""
        for sm, held in enumerate(self.held):
            for x in sorted(held):
                if self.done.issuperset((*self.game.uses[x], *self.game.updates[x])):
                    self.drop(x, sm)

    def free_task(self) -> tuple[int, int] | None:
        """A task all of whose values lie in one memory, and where."""
        for t, task in enumerate(self.game.tasks):
            if t not in self.done and self.done.issuperset(self.game.preds[t]):
                for q, held in enumerate(self.held):
                    if held.issuperset((*task.operands, task.target)) and self.game.may_do(t, q):
                        return t, q
        return None

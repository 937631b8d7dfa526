"""The exact program of the game with several memories, and how its solution is read as moves.

Tasks are done one after another; position p is the p-th of them, gap p what happens just before it. Variables, for
task t, item i, SM q: ``at[t, p, q]``; ``red[i, p, q]`` held at q during position p; ``keep[i, p, q]`` held at q through
gap p + 1 as well; ``load[i, p, q]`` and ``copy[i, p, r, q]`` (from r) in gap p. What makes this exact:

- Loads wait for the task that needs them: slow copies stay valid until the next update of the cell, which itself needs
  it red. So only operands and target of the task at p are loaded in gap p, and only where it is done.
- Copies wait as well, until the value is used where it goes or its source must leave; what is held is used, kept on or
  copied from.
- A copy's source is held at position p - 1: one loaded in the same gap is a target or operand of p and is held at p,
  so the copy can wait. Hops are a metric, so no value passes through a third memory.
- A value loaded after it was computed was stored just after it was computed (cells: after their last update). A cell
  that is loaded unfinished cost a store for that load alone, since its next use is an update.
- The moves of a gap need an order: what leaves a memory as the source of a copy makes room only afterwards. With two
  memories and unit weights no order exists exactly when copies of leaving values go both ways and neither memory has
  a free place; a row forbids that. In other cases the program is a relaxation: its bound holds, and a solution
  without an order is mended through slow memory, at a cost that the referee counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pebble.bounds.splits import cheapest_split
from pebble.bounds.task_windows import fewest_touched, window_entries
from pebble.solvers.lower import bound_for_several
from pebble.solvers.result import Problem
from pebble.solvers.several.gaps import GapPlan
from pebble.solvers.several.rules import sm_kinds
from pebble.solvers.several.symmetry import task_orbits

_WINDOW = 8
Term = tuple[int, int]  # coefficient, variable


@dataclass
class BinaryProgram:
    """Minimise a sum of terms under rows (terms, sense, bound); all variables are 0 or 1.

    Plain data, so that CP-SAT and HiGHS solve the very same one.
    """

    variables: int = 0
    rows: list[tuple[list[Term], Literal["<=", "=="], int]] = field(default_factory=list)
    objective: list[Term] = field(default_factory=list)

    def binary(self) -> int:
        """A new variable."""
        self.variables += 1
        return self.variables - 1

    def at_most(self, terms: Iterable[Term], bound: int) -> None:
        """Sum of terms <= bound."""
        self.rows.append((list(terms), "<=", bound))

    def equal(self, terms: Iterable[Term], bound: int) -> None:
        """Sum of terms == bound."""
        self.rows.append((list(terms), "==", bound))

    def implies(self, left: int, *right: int) -> None:
        """If ``left`` is 1 some of ``right`` is."""
        self.at_most([(1, left), *((-1, r) for r in right)], 0)

    def value(self, variables: Iterable[int]) -> int:
        """Objective of a solution given as its values."""
        values = list(variables)
        return sum(c * values[v] for c, v in self.objective)


class BufferProgram:
    """The program of one game; costs are multiplied by ``unit``, the denominator of omega.

    Without ``cuts`` it has the rules of the game and what holds without loss, and none of the bounds.
    """

    def __init__(self, problem: Problem, cuts: bool = True) -> None:
        self.game, self.capacity, self.buffers = problem.game, problem.capacity, problem.buffers
        game, capacity, buffers = problem.game, problem.capacity, problem.buffers
        self.length, self.sms = len(game.tasks), buffers.memories
        self.unit = buffers.omega.denominator
        self.program = BinaryProgram()
        self.slow: list[tuple[int, int]] = []  # loads and stores
        self.copied: list[tuple[int, int]] = []  # copies, each its weight
        self.always = 0  # stores of outputs
        self.entering: dict[int, list[tuple[int, int]]] = defaultdict(list)  # loads and beginnings per gap
        self.arriving: dict[int, list[tuple[int, int]]] = defaultdict(list)  # copies per gap
        self.at: dict[tuple[int, int, int], int] = {}
        self.done: dict[tuple[int, int], int] = {}
        self.red: dict[tuple[int, int, int], int] = {}
        self.keep: dict[tuple[int, int, int], int] = {}
        self.load: dict[tuple[int, int, int], int] = {}
        self.copy: dict[tuple[int, int, int, int], int] = {}
        self._order(problem.most_tasks_per_sm)
        for item in range(game.size):
            if game.uses[item] or game.updates[item]:
                self._item(item)
        for p in range(self.length):
            for q in range(self.sms):
                held = [(game.weights[i], var) for (i, at, where), var in self.red.items() if (at, where) == (p, q)]
                self.program.at_most(held, capacity)
        if self.sms == 2 and buffers.kind == "connected" and set(game.weights) == {1}:
            self._orderable()
        self.program.objective += [(self.unit * w, var) for w, var in self.slow]
        self._useful()
        if not cuts:
            return
        self._windows()
        # cuts: the bounds on loads + stores, and on these with the copies
        bound, program = bound_for_several(problem), self.program
        program.at_most([(-w, var) for w, var in self.slow], self.always - bound.slow)
        program.at_most([(-w, var) for w, var in (*self.slow, *self.copied)], self.always - bound.everything)

    def _order(self, most_tasks: int | None) -> None:
        program, preds, length = self.program, self.game.preds, self.length
        for t in range(length):
            for p in range(length):
                for q in range(self.sms):
                    self.at[t, p, q] = program.binary()
                self.done[t, p] = program.binary()
        for t in range(length):
            for p in range(length):
                here = [(1, self.at[t, p, q]) for q in range(self.sms)]
                before = [(1, self.done[t, p - 1])] if p else []
                program.equal([*here, *before, (-1, self.done[t, p])], 0)
                for u in preds[t]:  # a task before its predecessors is impossible
                    program.at_most([*here, *([(-1, self.done[u, p - 1])] if p else [])], 0)
            program.equal([(1, self.done[t, length - 1])], 1)
        for p in range(length):
            program.equal([(1, self.at[t, p, q]) for t in range(length) for q in range(self.sms)], 1)
        if most_tasks is not None:
            for q in range(self.sms):
                terms = [(1, self.at[t, p, q]) for t in range(length) for p in range(length)]
                program.at_most(terms, most_tasks)
        for (t, _, q), var in self.at.items():
            if not self.game.may_do(t, q):
                program.equal([(1, var)], 0)
        if self.buffers.kind == "sm-local" or self.buffers.net.uniform:
            # SMs that may do the same are alike: the first task is at the first of its kind
            firsts = sorted(set(sm_kinds(self.game, self.sms)))
            program.equal([(1, self.at[t, 0, q]) for t in range(length) for q in firsts], 1)
        # tasks that an automorphism exchanges are alike: one of each kind may be the first
        first = task_orbits(self.game)[0]
        program.equal([(1, self.at[t, 0, q]) for t in first for q in range(self.sms)], 1)

    def _item(self, i: int) -> None:
        game, program = self.game, self.program
        weight, updates = game.weights[i], game.updates[i]
        touching = (*game.uses[i], *updates)
        several = len(updates) > 1 or (bool(updates) and game.is_input[i])
        initialised, complete = self._progress(i)
        stored = None
        if updates and game.is_output[i]:
            self.always += weight
        elif updates and (game.uses[i] or several):
            stored = program.binary()
            self.slow.append((weight, stored))
        for p in range(self.length):
            for q in range(self.sms):
                red = self.red[i, p, q] = program.binary()
                if p < self.length - 1:
                    keep = self.keep[i, p, q] = program.binary()
                    program.implies(keep, red)
        for p in range(self.length):
            loads = []
            for q in range(self.sms):
                red = self.red[i, p, q]
                uses = [self.at[t, p, q] for t in touching]
                program.at_most([*((1, use) for use in uses), (-1, red)], 0)
                entering = []
                if p:
                    held = self.keep[i, p - 1, q]
                    program.implies(held, red)
                    entering = [held, *self._copies(i, p, q)]
                load = self.load[i, p, q] = program.binary()
                loads.append(load)
                program.implies(load, *uses)
                self.entering[p].append((weight, load))
                if updates and not game.is_input[i]:
                    entering.append(self._start(i, p, q, initialised))
                    self.entering[p].append((weight, entering[-1]))
                program.implies(red, load, *entering)
                if several:  # an update leaves no other copy
                    other = [self.at[t, p, r] for t in updates for r in range(self.sms) if r != q]
                    program.at_most([(1, red), *((1, var) for var in other)], 1)
            self._pay(i, p, loads, initialised, complete, stored, several)

    def _pay(
        self,
        i: int,
        p: int,
        loads: Sequence[int],
        initialised: Sequence[int],
        complete: Sequence[int],
        stored: int | None,
        several: bool,
    ) -> None:
        game, program, weight = self.game, self.program, self.game.weights[i]
        self.slow += [(weight, load) for load in loads]
        if not game.updates[i]:
            return
        if not several:
            for load in loads:
                if not p:
                    program.equal([(1, load)], 0)
                else:
                    program.implies(load, initialised[p - 1])
                if stored is not None:
                    program.implies(load, stored)
            return
        if not p:
            if not game.is_input[i]:
                for load in loads:
                    program.equal([(1, load)], 0)
            return
        again = program.binary()  # loaded unfinished: it was stored for that
        self.slow.append((weight, again))
        for load in loads:
            if not game.is_input[i]:
                program.implies(load, initialised[p - 1])
            program.at_most([(1, load), (1, initialised[p - 1]), (-1, complete[p - 1]), (-1, again)], 1)
            if stored is not None:
                program.at_most([(1, load), (1, complete[p - 1]), (-1, stored)], 1)

    def _progress(self, i: int) -> tuple[list[int], list[int]]:
        """Per position, whether some and whether all updates of the item are done."""
        updates, program = self.game.updates[i], self.program
        if len(updates) <= 1:
            row = [self.done[updates[0], p] for p in range(self.length)] if updates else []
            return row, row
        initialised, complete = [], []
        for p in range(self.length):
            some, every = program.binary(), program.binary()
            rows = [(1, self.done[t, p]) for t in updates]
            for _, var in rows:
                program.implies(var, some)
                program.implies(every, var)
            program.at_most([(1, some), *((-1, var) for _, var in rows)], 0)
            program.at_most([*rows, (-1, every)], len(rows) - 1)
            initialised.append(some)
            complete.append(every)
        return initialised, complete

    def _start(self, i: int, p: int, q: int, initialised: Sequence[int]) -> int:
        """1 only when the task at p is at q and begins the item."""
        updates, program = self.game.updates[i], self.program
        if len(updates) == 1:
            return self.at[updates[0], p, q]
        start = program.binary()
        program.implies(start, *(self.at[t, p, q] for t in updates))
        if p:
            program.at_most([(1, start), (1, initialised[p - 1])], 1)
        return start

    def _copies(self, i: int, p: int, q: int) -> list[int]:
        results = []
        for r in range(self.sms):
            copy_cost = self.buffers.copy_cost(r, q)
            if copy_cost is None:
                continue
            var = self.copy[i, p, r, q] = self.program.binary()
            self.program.implies(var, self.red[i, p - 1, r])
            cost = copy_cost * self.unit * self.game.weights[i]
            self.program.objective.append((int(cost), var))
            self.copied.append((self.game.weights[i], var))
            self.arriving[p].append((self.game.weights[i], var))
            results.append(var)
        return results

    def _useful(self) -> None:
        """Rows that hold without loss: copies are not made early, and nothing is held that is not needed again."""
        program = self.program
        leaving_to: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for (i, p, r, q), copy in self.copy.items():
            leaving_to[i, p - 1, r].append(copy)
            uses = [self.at[t, p, q] for t in (*self.game.uses[i], *self.game.updates[i])]
            # used at once, or the source is about to go
            program.at_most([(1, copy), (1, self.keep[i, p - 1, r]), *((-1, use) for use in uses)], 1)
        for (i, p, q), red in self.red.items():
            uses = [self.at[t, p, q] for t in (*self.game.uses[i], *self.game.updates[i])]
            stays = [self.keep[i, p, q]] if p < self.length - 1 else []
            program.implies(red, *uses, *stays, *leaving_to[i, p, q])

    def _orderable(self) -> None:
        """Two memories, unit weights: not both full of what stays or leaves by a copy, with copies both ways."""
        program = self.program
        both: dict[int, list[int]] = {}
        capacity: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for p in range(1, self.length):
            both[p] = [program.binary(), program.binary()]  # copies of leaving values from 0, from 1
        for (_, p, _), keep in self.keep.items():
            capacity[p + 1].append((1, keep))
        for (i, p, r, _), copy in self.copy.items():
            leaving = program.binary()
            program.at_most([(1, copy), (-1, self.keep[i, p - 1, r]), (-1, leaving)], 0)
            program.implies(leaving, both[p][r])
            capacity[p].append((1, leaving))
        for p, flags in both.items():
            program.at_most([*capacity[p], *((1, flag) for flag in flags)], 2 * self.capacity + 1)

    def _windows(self) -> None:
        """Cuts: what enters in r positions in a row, into the pooled memory, and into each SM for its share of them.

        An SM holds at most the capacity during the position before the window. For the SM of that position this
        includes what its task touches, for the others it does not.
        """
        largest = min(self.length - 1, _WINDOW)
        if largest < 1:
            return
        group = self.buffers.net.group if self.buffers.kind == "connected" else 1
        pooled = window_entries(self.game, self.capacity * self.sms, largest)
        alone = window_entries(self.game, self.capacity, largest)
        touched = fewest_touched(self.game, largest)
        idle = [max(0, weight - self.capacity) for weight in touched]
        for r in range(1, largest + 1):
            split = min(alone[here] + cheapest_split(idle[: r - here + 1], self.sms - 1, r) for here in range(r + 1))
            for p in range(1, self.length - r + 1):
                window = range(p, p + r)
                loads = [(-w, var) for g in window for w, var in self.entering[g]]
                copies = [(-w, var) for g in window for w, var in self.arriving[g]]
                if group == self.sms and pooled[r]:
                    self.program.at_most(loads, -pooled[r])
                if split:
                    self.program.at_most([*loads, *copies], -split)

    def cost_below(self, units: int) -> None:
        """Only solutions that cost less, in units."""
        self.program.at_most(self.program.objective, units - 1 - self.unit * self.always)

    def cost_at_least(self, units: int) -> None:
        """Only solutions that cost at least this, in units."""
        self.program.at_most([(-c, var) for c, var in self.program.objective], self.unit * self.always - units)

    def plan(self, values: Sequence[int]) -> GapPlan:
        """The schedule that a solution stands for."""
        order = [(0, 0)] * self.length
        for (t, p, q), var in self.at.items():
            if values[var]:
                order[p] = (t, q)
        keep: list[set[tuple[int, int]]] = [set() for _ in range(self.length)]
        for (i, p, q), var in self.keep.items():
            if values[var]:
                keep[p].add((i, q))
        copies: list[list[tuple[int, int, int]]] = [[] for _ in range(self.length)]
        arrived: set[tuple[int, int, int]] = set()  # a copy that costs nothing may be chosen and not be used
        for (i, p, r, q), var in sorted(self.copy.items()):
            useful = values[self.red[i, p, q]] and not values[self.load[i, p, q]] and (i, q) not in keep[p - 1]
            if values[var] and useful and (i, p, q) not in arrived:
                copies[p].append((i, r, q))
                arrived.add((i, p, q))
        loads: list[list[tuple[int, int]]] = [[] for _ in range(self.length)]
        for (i, p, q), var in sorted(self.load.items()):
            if values[var] and not (p and (i, q) in keep[p - 1]):
                loads[p].append((i, q))
        return GapPlan(tuple(order), keep, copies, loads)

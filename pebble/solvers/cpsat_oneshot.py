"""The CP-SAT model of the games in which every task is done once: one task per position.

Variables, for task t, item i and position p: ``at[t, p]`` t is done at p; ``done[t, p]`` it is done at p or before;
``red[i, p]`` i is red while the task at p is done (its operands, its result, what waits); ``keep[i, p]`` i stays red
from p to p + 1, which red at both does not imply: a slide takes the pebble of an operand that may be loaded again
for the very next task. A load is red without keep, and costs twice where it brings back an unfinished cell, whose
eviction cost a store.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pebble.bounds.task_windows import window_entries
from pebble.game import Game, Move
from pebble.solvers.plan import Plan, write_moves

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    Var = cp_model.IntVar
    Expr = Any  # a variable, a sum, or 0 or 1

_WINDOW = 12


class OneShotModel:
    """The model of one game; ``objective`` is the cost of the pebbling, ``windows`` adds cuts that hold anyway."""

    def __init__(self, game: Game, capacity: int, windows: bool = True) -> None:
        from ortools.sat.python import cp_model

        self.game, self.capacity = game, capacity
        self.model = cp_model.CpModel()
        self.length = len(game.tasks)
        self.at: dict[tuple[int, int], Var] = {}
        self.done: list[list[Expr]] = []
        self.red: dict[tuple[int, int], Var] = {}
        self.keep: dict[tuple[int, int], Var] = {}
        self.slide: dict[tuple[int, int], Var] = {}
        self.costs: list[Expr] = []
        self.entering: list[list[Expr]] = [[] for _ in range(self.length)]
        self._hints: dict[int, tuple[Var, int]] = {}
        self._order()
        for item in range(game.size):
            if game.uses[item] or game.updates[item]:
                self._residency(item)
        self._capacity()
        if windows:
            self._windows()
        self.objective: Expr = sum(self.costs)

    def _order(self) -> None:
        game, model, length = self.game, self.model, self.length
        before = game.ancestors
        after = [[u for u in range(length) if t in before[u]] for t in range(length)]
        for t in range(length):
            possible = range(len(before[t]), length - len(after[t]))
            for p in possible:
                self.at[t, p] = model.new_bool_var(f"at{t},{p}")
            model.add_exactly_one(self.at[t, p] for p in possible)
            row: list[Expr] = []
            for p in range(length):
                if p < possible[0]:
                    row.append(0)
                elif p >= possible[-1]:
                    row.append(1)
                else:
                    var = model.new_bool_var(f"done{t},{p}")
                    model.add(var == row[-1] + self.at[t, p] if row else var == self.at[t, p])
                    row.append(var)
            self.done.append(row)
        for p in range(length):
            model.add_exactly_one(self.at[t, p] for t in range(length) if (t, p) in self.at)
        for t, direct in enumerate(game.preds):
            for p in range(1, length):
                if (t, p) in self.at:
                    for u in direct:
                        model.add(self.at[t, p] <= self.done[u][p - 1])

        # twins: of equal sub-DAGs that meet in one task, the first is finished first
        for twins in _twins(game):
            for first, second in pairwise(twins):
                for p in range(length):
                    model.add(self.done[second][p] <= self.done[first][p])

    def _residency(self, item: int) -> None:
        game, model, length = self.game, self.model, self.length
        weight, updates = game.weights[item], game.updates[item]
        touching = (*game.uses[item], *updates)
        initialised, complete = self._progress(item)
        stored: Var | None = None
        if updates and not game.is_output[item] and game.uses[item]:
            stored = model.new_bool_var(f"stored{item}")
            self.costs.append(weight * stored)
        elif updates:
            self.costs.append(weight)
        for p in range(length):
            red = self.red[item, p] = model.new_bool_var(f"red{item},{p}")
            if p < length - 1:
                self.keep[item, p] = model.new_bool_var(f"keep{item},{p}")
        for p in range(length):
            red = self.red[item, p]
            uses = [self.at[t, p] for t in touching if (t, p) in self.at]
            held = self.keep[item, p - 1] if p else None
            stays = self.keep[item, p] if p < length - 1 else None
            for use in uses:
                model.add_implication(use, red)
            if held is not None:
                model.add_implication(held, red)
            # red for a task that touches it, or on the way from one such task to the next
            model.add_bool_or([*uses, ~red, *([] if held is None else [held])])
            if stays is not None:
                model.add_implication(stays, red)
            model.add_bool_or([*uses, ~red, *([] if stays is None else [stays])])
            if updates:
                model.add(red <= (initialised[p] if not game.is_input[item] else 1))
            load = self._load(item, p, initialised, complete, stored)
            self.costs.append(weight * load)
            starts = (
                (initialised[p] - initialised[p - 1] if p else initialised[p])
                if updates and not game.is_input[item]
                else 0
            )
            self.entering[p].append(weight * (load + starts))

    def _progress(self, item: int) -> tuple[list[Expr], list[Expr]]:
        """Per position, whether some and whether all updates of the item are done."""
        updates, model = self.game.updates[item], self.model
        rows = [self.done[t] for t in updates]
        if len(rows) <= 1:
            row = rows[0] if rows else [1] * self.length
            return row, row
        initialised: list[Expr] = []
        complete: list[Expr] = []
        for p in range(self.length):
            some, every = model.new_bool_var(f"initialised{item},{p}"), model.new_bool_var(f"complete{item},{p}")
            for row in rows:
                model.add(some >= row[p])
                model.add(every <= row[p])
            total = sum(row[p] for row in rows)
            model.add(total >= some)
            model.add(total - every <= len(rows) - 1)
            initialised.append(some)
            complete.append(every)
        return initialised, complete

    def _load(self, item: int, p: int, initialised: list[Expr], complete: list[Expr], stored: Var | None) -> Var:
        """True where the item is red and neither held nor initialised here; in clauses, which suit CP-SAT."""
        game, model = self.game, self.model
        load = model.new_bool_var(f"load{item},{p}")
        enters = [load, ~self.red[item, p]] + ([self.keep[item, p - 1]] if p else [])
        if not game.updates[item]:
            model.add_bool_or(enters)
            return load
        before = initialised[p - 1] if p else 0
        if game.is_input[item]:  # an initial cell: its first update loads it too
            model.add_bool_or(enters)
        else:
            model.add_bool_or([*enters, _not(before)])
        several = len(game.updates[item]) > 1 or game.is_input[item]
        finished = complete[p - 1] if p else 0
        if several and p:
            # initialised and not complete: what was evicted had to be stored
            again = model.new_bool_var(f"again{item},{p}")
            model.add_bool_or([again, ~load, _lit(finished), _not(before)])
            self.costs.append(game.weights[item] * again)
        if stored is not None:
            model.add_bool_or([stored, ~load, *([_not(finished)] if several else [])])
        return load

    def _capacity(self) -> None:
        game, model = self.game, self.model
        items = sorted({i for i, _ in self.red})
        for p in range(self.length):
            held = [game.weights[i] * self.red[i, p] for i in items]
            if not game.variant.sliding:
                model.add(sum(held) <= self.capacity)
                continue
            row = []
            for i in items:
                uses = [self.at[t, p] for t in game.uses[i] if (t, p) in self.at]
                if uses:
                    gives = self.slide[i, p] = model.new_bool_var(f"slide{i},{p}")
                    row.append(gives)
                    model.add_bool_or([*uses, ~gives])
                    if p < self.length - 1:
                        model.add_implication(gives, ~self.keep[i, p])
            model.add_at_most_one(row)
            gone = sum(game.weights[i] * self.slide[i, p] for i in items if (i, p) in self.slide)
            model.add(sum(held) - gone <= self.capacity)
            if len(set(game.weights)) > 1:  # before the slide the result is not there yet
                results = [
                    game.weights[game.tasks[t].target] * self.at[t, p] for t in range(self.length) if (t, p) in self.at
                ]
                model.add(sum(held) - sum(results) <= self.capacity)

    def _windows(self) -> None:
        """Cuts: what r tasks in a row touch cannot all have been there before."""
        game, model, length = self.game, self.model, self.length
        largest = min(length - 1, _WINDOW)
        if largest < 1:
            return
        least = window_entries(game, self.capacity, largest)
        self.enter = []
        for p in range(length):
            var = model.new_int_var(0, sum(game.weights), f"enter{p}")
            model.add(var == sum(self.entering[p]))
            self.enter.append(var)
        for r in range(1, largest + 1):
            # a window that two shorter ones already imply is left out
            if least[r] <= max((least[a] + least[r - a] for a in range(1, r)), default=0):
                continue
            for p in range(1, length - r + 1):
                model.add(sum(self.enter[p : p + r]) >= least[r])

    def hint(self, plan: Plan) -> None:
        """Start from a plan."""
        model, where = self.model, {t: p for p, t in enumerate(plan.order)}
        for (t, p), var in self.at.items():
            model.add_hint(var, int(where[t] == p))
        for (item, p), var in self.keep.items():
            model.add_hint(var, int(item in plan.keep[p]))
        for (item, p), var in self.red.items():
            task = self.game.tasks[plan.order[p]]
            here = item in task.operands or item == task.target
            held = item in plan.keep[p] or (p > 0 and item in plan.keep[p - 1])
            model.add_hint(var, int(here or held))
        for (item, p), var in self.slide.items():
            model.add_hint(var, int(plan.sources[p] == item))

    def read(self, value: Callable[[Var], bool]) -> tuple[Move, ...]:
        """The moves of a solution."""
        at = {p: t for (t, p), var in self.at.items() if value(var)}
        sources = {p: item for (item, p), var in self.slide.items() if value(var)}
        keep: list[set[int]] = [set() for _ in range(self.length)]
        for (item, p), var in self.keep.items():
            if value(var):
                keep[p].add(item)
        order = range(self.length)
        plan = Plan(tuple(at[p] for p in order), tuple(map(frozenset, keep)), tuple(sources.get(p) for p in order))
        return write_moves(self.game, plan)


def _lit(value: Expr) -> Expr:
    """A literal, from a variable or a constant 0 or 1."""
    return bool(value) if isinstance(value, int) else value


def _not(value: Expr) -> Expr:
    return not value if isinstance(value, int) else ~value


def _twins(game: Game) -> list[list[int]]:
    """Groups of tasks that an automorphism may permute, each with all that only it depends on.

    The shape of a value is known where everything below it has one use and one task; operands of one task that have
    equal shapes can be exchanged with all that is below them, in every such place independently.
    """
    shapes: dict[tuple[object, ...], int] = {}
    shape: list[int | None] = []
    for i in range(game.size):  # operands come first
        private = len(game.uses[i]) <= 1 and len(game.updates[i]) <= 1 and not (game.updates[i] and game.is_input[i])
        below = [shape[o] for t in game.updates[i] for o in game.tasks[t].operands]
        if not private or None in below:
            shape.append(None)
            continue
        key = (game.weights[i], game.is_input[i], game.is_output[i], *sorted(b for b in below if b is not None))
        shape.append(shapes.setdefault(key, len(shapes)))
    results: list[list[int]] = []
    for task in game.tasks:
        groups: dict[int, list[int]] = {}
        for o in task.operands:
            known = shape[o]
            if known is not None and game.updates[o]:
                groups.setdefault(known, []).append(game.updates[o][0])
        results += [group for group in groups.values() if len(group) > 1]
    return results

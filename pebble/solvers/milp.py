"""The game as a mixed-integer program, in PuLP, solved by HiGHS: a second opinion on small games.

Time is the position in the schedule. Per task t and position p, ``done[t][p]`` says that t is among the first p + 1
tasks (it only ever rises, and the sum over t is p + 1). Per item, ``red`` is residency during a task, ``keep``
residency from a task to the next, ``load`` pays for red without keep; a value computed here pays one ``stored`` if it
ever comes back, an unfinished cell pays ``again`` for each return.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from pebble.bounds.task_windows import window_entries
from pebble.game import Game, Move
from pebble.solvers.cpsat import scaled
from pebble.solvers.plan import Plan, write_moves
from pebble.solvers.registry import first_pebbling
from pebble.solvers.result import Incumbent
from pebble.system.isolation import Library, solve_in_worker

MAX_VARIABLES = 20_000
_WINDOW = 12


class MilpModel:
    """The program of one game."""

    def __init__(self, game: Game, capacity: int) -> None:
        import pulp

        self.game, self.capacity = game, capacity
        self.length = len(game.tasks)
        self.program = pulp.LpProblem("pebbling", pulp.LpMinimize)
        self.costs: list[Any] = []
        self.enter: list[list[Any]] = [[] for _ in range(self.length)]
        self.done = [
            [self._binary(f"done_{t}_{p}") if p < self.length - 1 else 1 for p in range(self.length)]
            for t in range(self.length)
        ]
        self.red: dict[tuple[int, int], Any] = {}
        self.keep: dict[tuple[int, int], Any] = {}
        self.slide: dict[tuple[int, int], Any] = {}
        self._order()
        for i in range(game.size):
            if game.uses[i] or game.updates[i]:
                self._item(i)
        for p in range(self.length):
            self._free_capacity(p)
        least = window_entries(game, capacity, min(self.length - 1, _WINDOW))
        for r in range(1, len(least)):
            for p in range(1, self.length - r + 1):
                self.program += pulp.lpSum(chain(*self.enter[p : p + r])) >= least[r]
        self.objective = pulp.lpSum(self.costs)
        self.program.setObjective(self.objective)

    def _binary(self, name: str) -> Any:
        return self.program.add_variable(name, cat="Binary")

    def at(self, t: int, p: int) -> Any:
        """1 when task t is the one at position p."""
        return self.done[t][p] - self.done[t][p - 1] if p else self.done[t][p]

    def _order(self) -> None:
        preds = self.game.preds
        for p in range(self.length):
            self.program += sum(self.done[t][p] for t in range(self.length)) == p + 1
            for t in range(self.length):
                if p:
                    self.program += self.done[t][p] >= self.done[t][p - 1]
                for u in preds[t]:
                    self.program += self.done[t][p] <= (self.done[u][p - 1] if p else 0)

    def _item(self, i: int) -> None:
        game, add = self.game, self.program.__iadd__
        weight, updates = game.weights[i], game.updates[i]
        touching = (*game.uses[i], *updates)
        is_cell = len(updates) > 1 or (bool(updates) and game.is_input[i])
        stored = None
        if updates and game.is_output[i]:
            self.costs.append(weight)
        elif updates:
            stored = self._binary(f"stored_{i}")
            self.costs.append(weight * stored)
        before_initialised: Any = 0
        before_complete: Any = 0
        for p in range(self.length):
            red = self.red[i, p] = self._binary(f"red_{i}_{p}")
            held = self.keep.get((i, p - 1), 0)
            stays: Any = 0
            if p < self.length - 1:
                stays = self.keep[i, p] = self._binary(f"keep_{i}_{p}")
                add(stays <= red)
            uses = sum(self.at(t, p) for t in touching)
            add(red >= uses)
            add(red >= held)
            add(red <= uses + held)
            add(red <= uses + stays)
            load = self._binary(f"load_{i}_{p}")
            initialised: Any = 1
            starts: Any = 0
            if updates and not game.is_input[i]:
                initialised = self._initialised(i, p, before_initialised)
                starts = initialised - before_initialised
                add(red <= initialised)
            add(load >= red - held - starts)
            self.costs.append(weight * load)
            self.enter[p] += [weight * load, weight * starts]
            if stored is not None and not is_cell:
                add(stored >= load)
            if is_cell:
                if game.is_input[i]:
                    initialised = self._initialised(i, p, before_initialised)
                again = self._binary(f"again_{i}_{p}")
                add(again >= load + before_initialised - before_complete - 1)
                self.costs.append(weight * again)
                if stored is not None:
                    add(stored >= load + before_complete - 1)
                complete: Any = 1 if p == self.length - 1 else self._binary(f"complete_{i}_{p}")
                for t in updates:
                    add(complete <= self.done[t][p])
                if p < self.length - 1:
                    add(complete >= sum(self.done[t][p] for t in updates) - len(updates) + 1)
                before_complete = complete
            before_initialised = initialised

    def _initialised(self, i: int, p: int, before: Any) -> Any:
        """1 when some update of the item is done at p or before."""
        updates, add = self.game.updates[i], self.program.__iadd__
        if len(updates) == 1:
            return self.done[updates[0]][p]
        if p == self.length - 1:
            return 1
        initialised = self._binary(f"begun_{i}_{p}")
        for t in updates:
            add(initialised >= self.done[t][p])
        add(initialised <= before + sum(self.at(t, p) for t in updates))
        return initialised

    def _free_capacity(self, p: int) -> None:
        game, add = self.game, self.program.__iadd__
        held = sum(game.weights[i] * var for (i, q), var in self.red.items() if q == p)
        if not game.variant.sliding:
            add(held <= self.capacity)
            return
        gives: list[Any] = []
        for i in range(game.size):
            if game.uses[i]:
                var = self.slide[i, p] = self._binary(f"slide_{i}_{p}")
                add(var <= sum(self.at(t, p) for t in game.uses[i]))
                if (i, p) in self.keep:
                    add(var + self.keep[i, p] <= 1)
                gives.append((i, var))
        add(sum(var for _, var in gives) <= 1)
        add(held - sum(game.weights[i] * var for i, var in gives) <= self.capacity)
        # before the slide the result is not there yet
        results = sum(game.weights[task.target] * self.at(t, p) for t, task in enumerate(game.tasks))
        add(held - results <= self.capacity)

    def moves(self) -> tuple[Move, ...]:
        """Its moves."""
        import pulp

        def on(var: Any) -> bool:
            return bool(round(pulp.value(var)))

        order = [next(t for t in range(self.length) if on(self.at(t, p))) for p in range(self.length)]
        keep = [frozenset(i for (i, q), var in self.keep.items() if q == p and on(var)) for p in range(self.length)]
        sources = [
            next((i for (i, q), var in self.slide.items() if q == p and on(var)), None) for p in range(self.length)
        ]
        return write_moves(self.game, Plan(tuple(order), tuple(keep), tuple(sources)))


def solve_milp(best: Incumbent) -> str:
    """Prove or improve with HiGHS, from the heuristic's pebbling and above the bounds known."""
    game = best.problem.game
    reason = first_pebbling(best, "milp", 4 * game.size * len(game.tasks), MAX_VARIABLES)
    return reason or solve_in_worker(Library.HIGHS, "pebble.solvers.milp:_solve", best)


def _solve(best: Incumbent) -> str:
    """In the worker: look for a pebbling below the one that is known."""
    from pebble.system.isolation.highs import minimise, whole

    game, capacity, unit = scaled(best.problem.game, best.problem.capacity)
    assert best.upper is not None
    upper = best.upper
    model = MilpModel(game, capacity)
    model.program += model.objective <= upper // unit - 1
    model.program += model.objective >= -(-best.lower // unit)

    def report(bound: int) -> None:
        # above the upper bound only by the cut: the program asks for less
        best.raise_lower(min(upper, bound * unit), "milp")

    status = minimise(model.program, best.seconds_left, best.problem.seed, report)
    if status == "optimal":
        best.offer(model.moves(), "milp")
        report(whole(float(model.objective.value())))
    elif status == "infeasible":  # none is the proof
        best.raise_lower(upper, "milp")
    return "proved optimal" if best.closed else f"HiGHS: {status}"

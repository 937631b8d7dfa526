"""CP-SAT for the games that may compute a value again: at most ``steps`` computations, and why that is enough.

A pebbling may compute as often as it likes, so an optimum over at most T computations proves nothing by itself. Take a
cheapest pebbling with as few computations as possible. Between two moments of it with the same blue values, the later
one must hold a computed value that the earlier one does not: else the part between could be cut out, or replaced by
loads that it has paid for. If no beginning of T + 1 computations that obeys this rule can still end below the cost U,
then no pebbling below U has more than T computations. So two infeasible models prove U: the whole pebblings of at
most T computations, and the beginnings of T + 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pebble.game import Game, Move
from pebble.solvers.cpsat import MAX_VARIABLES, run_cpsat, scaled
from pebble.solvers.registry import first_pebbling
from pebble.solvers.result import Incumbent
from pebble.system.isolation import Library, solve_in_worker

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    Var = cp_model.IntVar
    Expr = Any  # a variable, a sum, or a number

_ROUNDS = 40


class RecomputeModel:
    """Pebblings of at most ``steps`` computations, or beginnings of exactly that many.

    ``objective`` is the cost; of a beginning, what the whole pebbling costs at least.
    """

    def __init__(self, game: Game, capacity: int, steps: int, beginning: bool = False) -> None:
        from ortools.sat.python import cp_model

        self.game, self.steps = game, steps
        self.model = model = cp_model.CpModel()
        items, positions = range(game.size), range(steps)
        self.task_of = [tasks[0] if tasks else None for tasks in game.updates]

        def grid(name: str) -> list[list[Var]]:
            return [[model.new_bool_var(f"{name}{i},{p}") for p in positions] for i in items]

        self.does = [[model.new_bool_var(f"does{t},{p}") for p in positions] for t in range(len(game.tasks))]
        self.red, self.keep, self.blue, self.load = grid("red"), grid("keep"), grid("blue"), grid("load")
        self.slide: dict[tuple[int, int], Var] = {}
        for p in positions:
            now = [row[p] for row in self.does]
            if beginning:
                model.add_exactly_one(now)
            else:
                model.add_at_most_one(now)
                if p:  # idle steps come last
                    model.add(sum(now) <= sum(row[p - 1] for row in self.does))
            for i in items:
                self._item_at(i, p)
            self._capacity(p, capacity)
        if beginning:
            self._nothing_to_cut()
        else:
            for i in items:
                if game.is_output[i]:
                    model.add(self.blue[i][-1] == 1)
                model.add(self.keep[i][-1] == 0)
        self.objective = self._cost(beginning)

    def _item_at(self, i: int, p: int) -> None:
        model, game = self.model, self.game
        red, keep, blue, load = self.red[i][p], self.keep[i][p], self.blue[i][p], self.load[i][p]
        task = self.task_of[i]
        computed = [] if task is None else [self.does[task][p]]
        uses = [self.does[t][p] for t in game.uses[i]]
        held = [self.keep[i][p - 1]] if p else []
        model.add_implication(keep, red)
        for use in (*uses, *computed, *held):
            model.add_implication(use, red)
        model.add_bool_or([*uses, *computed, *held, ~red])
        model.add_bool_or([*held, *computed, load, ~red])
        for var in held:  # what is red is not computed
            for own in computed:
                model.add_implication(var, ~own)
        if game.is_input[i]:
            model.add(blue == 1)
            model.add_bool_or([*uses, keep, ~red])
            return
        was_blue = [self.blue[i][p - 1]] if p else []
        for var in was_blue:
            model.add_implication(var, blue)
            model.add_implication(load, var)
        if not p:
            model.add(load == 0)
        model.add_bool_or([*was_blue, red, ~blue])
        # a stay ends with a use or a store
        model.add_bool_or([*uses, keep, ~red, blue])
        for var in was_blue:
            model.add_bool_or([*uses, keep, ~red, ~var])

    def _capacity(self, p: int, capacity: int) -> None:
        model, game = self.model, self.game
        held = sum(game.weights[i] * self.red[i][p] for i in range(game.size))
        if not game.variant.sliding:
            model.add(held <= capacity)
            return
        row, gone = [], []
        for i in range(game.size):
            if game.uses[i]:
                gives = self.slide[i, p] = model.new_bool_var(f"slide{i},{p}")
                model.add_bool_or([*(self.does[t][p] for t in game.uses[i]), ~gives])
                model.add_implication(gives, ~self.keep[i][p])
                row.append(gives)
                gone.append(game.weights[i] * gives)
        model.add_at_most_one(row)
        model.add(held - sum(gone) <= capacity)
        results = [game.weights[task.target] * self.does[t][p] for t, task in enumerate(game.tasks)]
        model.add(held - sum(results) <= capacity)  # before the slide the result is not there yet

    def _cost(self, beginning: bool) -> Expr:
        model, game = self.model, self.game
        costs: list[Expr] = []
        for i, weight in enumerate(game.weights):
            loads = sum(self.load[i])
            if game.is_input[i]:
                if not (game.uses[i]):
                    continue
                if beginning:  # what is not loaded yet will be
                    paid = model.new_int_var(1, max(1, self.steps), f"paid{i}")
                    model.add(paid >= loads)
                    costs.append(weight * paid)
                else:
                    model.add(loads >= 1)
                    costs.append(weight * loads)
            else:
                stores = 1 if game.is_output[i] else self.blue[i][-1]
                costs.append(weight * (loads + stores))
        return sum(costs)

    def _nothing_to_cut(self) -> None:
        """Between any two moments: a new blue value, or at the later one a computed value not held before."""
        model, game = self.model, self.game
        computed = [i for i in range(game.size) if game.updates[i]]
        own: dict[tuple[int, int], Var] = {}  # red after p, and since it was computed last
        for i in computed:
            task = self.task_of[i]
            assert task is not None
            for p in range(self.steps):
                own[i, p] = model.new_bool_var(f"own{i},{p}")
                model.add_implication(own[i, p], self.keep[i][p])
                before = [own[i, p - 1]] if p else []
                model.add_bool_or([self.does[task][p], *before, ~own[i, p]])
        for p in range(self.steps):
            for q in range(p + 1, self.steps):
                news: list[Var] = []
                for i in computed:
                    fresh = model.new_bool_var(f"fresh{i},{p},{q}")
                    model.add_implication(fresh, own[i, q])
                    model.add_implication(fresh, ~self.keep[i][p])
                    news.append(fresh)
                    stored = model.new_bool_var(f"stored{i},{p},{q}")
                    model.add_implication(stored, self.blue[i][q])
                    model.add_implication(stored, ~self.blue[i][p])
                    news.append(stored)
                model.add_bool_or(news)

    def read(self, value: Callable[[Var], bool]) -> tuple[Move, ...]:
        """The moves of a solution."""
        game, moves = self.game, list[Move]()
        blue = {i for i in range(game.size) if game.is_input[i]}
        red: set[int] = set()
        for p in range(self.steps):
            now = {
                i: Move("store", game.names[i]) for i in range(game.size) if i not in blue and value(self.blue[i][p])
            }
            blue.update(now)
            task = next((task for t, task in enumerate(game.tasks) if value(self.does[t][p])), None)
            if task is None:  # no computation left, but a value that stayed red may still be stored here
                moves += now.values()
                continue
            moves += [Move("load", game.names[i]) for i in task.operands if i not in red]
            red.update(task.operands)
            late = now.pop(task.target, None)
            moves += now.values()
            source = next((i for i in task.operands if (i, p) in self.slide and value(self.slide[i, p])), None)
            if source is None:
                moves.append(Move("compute", task.name))
            else:
                moves.append(Move("slide", task.name, game.names[source]))
                red.discard(source)
            red.add(task.target)
            moves += [] if late is None else [late]
            gone = [i for i in sorted(red) if not value(self.keep[i][p])]
            moves += [Move("delete", game.names[i]) for i in gone]
            red.difference_update(gone)
        return tuple(moves)


def solve_recompute(best: Incumbent) -> str:
    """Prove or improve with CP-SAT, from the heuristic's pebbling and above the bounds known."""
    game = best.problem.game
    reason = first_pebbling(best, "cpsat", 3 * game.size * len(game.tasks), MAX_VARIABLES)
    return reason or solve_in_worker(Library.ORTOOLS, "pebble.solvers.cpsat_recompute:_solve", best)


def _solve(best: Incumbent) -> str:
    """In the worker: widen the horizon until no cheaper pebbling can need a longer one."""
    from ortools.sat.python import cp_model

    problem = best.problem
    game, capacity, unit = scaled(problem.game, problem.capacity)
    tasks = len(game.tasks)
    solved = 0  # no pebbling of at most this many computations costs less than best.upper
    steps = tasks + 1
    for _ in range(_ROUNDS):
        best.details["horizon"] = solved
        model = RecomputeModel(game, capacity, steps)
        assert best.upper is not None
        model.model.add(model.objective <= best.upper // unit - 1)
        model.model.add(model.objective >= -(-best.lower // unit))
        model.model.minimize(model.objective)
        status = run_cpsat(
            model.model,
            best,
            unit,
            problem.seed,
            lambda value, model=model: best.offer(model.read(value), "cpsat"),
            report_bounds=False,
        )
        if best.closed:
            return "proved optimal"
        if status not in (cp_model.OPTIMAL, cp_model.INFEASIBLE):
            return f"no cheaper pebbling known; the horizon of {steps} computations was not searched in full"
        solved = steps
        best.details["horizon"] = solved
        while True:
            start = RecomputeModel(game, capacity, steps + 1, beginning=True)
            start.model.add(start.objective <= best.upper // unit - 1)
            status = run_cpsat(start.model, best, unit, problem.seed, None, report_bounds=False)
            if status == cp_model.INFEASIBLE or best.stopped:
                break
            if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
                break
            steps += max(1, tasks // 8)
        if status != cp_model.INFEASIBLE:
            return (
                f"optimal among pebblings of at most {solved} computations; "
                "that no cheaper one needs more is not proved"
            )
        if steps == solved:
            best.raise_lower(best.upper, "cpsat")
            best.details["horizon_proof"] = f"no cheaper pebbling has more than {solved} computations"
            return "proved optimal, the number of computations included"
    return f"optimal among pebblings of at most {solved} computations"

"""CP-SAT: proves small games of every variant.

A known fault of OR-Tools 9.15 (google/or-tools#5293) can certify a wrong optimum when coefficients grow, in a
presolve step that is switched off here; weights are divided by their greatest common divisor; and a claim that only
CP-SAT makes is tried a second time by a run without presolve that is asked for one unit less.

CP-SAT runs in a process of its own (:mod:`pebble.system.isolation`).
"""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pebble.errors import InputError, SolverDisagreementError
from pebble.game import Game
from pebble.solvers.plan import read_plan
from pebble.solvers.registry import first_pebbling
from pebble.solvers.result import Incumbent
from pebble.system.isolation import Library, solve_in_worker

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

MAX_VARIABLES = 60_000
_CONFIRM_SECONDS = 5.0
_INFEASIBLE = 3  # cp_model.INFEASIBLE, whose import takes seconds


def solve_cpsat(best: Incumbent) -> str:
    """Prove or improve with CP-SAT, from the heuristic's pebbling and above the bounds known."""
    game = best.problem.game
    reason = first_pebbling(best, "cpsat", 3 * game.size * len(game.tasks), MAX_VARIABLES)
    if reason is not None:
        return reason
    known = best.lower
    reason = solve_in_worker(Library.ORTOOLS, "pebble.solvers.cpsat:_solve_once", best)
    if not best.closed:
        return reason
    if best.lower == known:
        return "proved optimal"
    if _search_agrees(best):
        return "proved optimal, and again by search"
    return solve_in_worker(Library.ORTOOLS, "pebble.solvers.cpsat:_solve_again", best)


def scaled(game: Game, capacity: int) -> tuple[Game, int, int]:
    """The same game with weights divided by their greatest common divisor, its capacity, and the divisor."""
    unit = math.gcd(*game.weights)
    if unit == 1:
        return game, capacity, 1
    return replace(game, weights=tuple(w // unit for w in game.weights)), capacity // unit, unit


def _solve_once(best: Incumbent) -> str:
    """In the worker: improve and prove."""
    from pebble.solvers.cpsat_oneshot import OneShotModel

    problem = best.problem
    game, capacity, unit = scaled(problem.game, problem.capacity)
    model = OneShotModel(game, capacity)
    model.model.add(model.objective >= -(-best.lower // unit))
    model.model.minimize(model.objective)
    assert best.pebbling is not None
    plan = read_plan(game, best.pebbling)
    if plan is not None:
        model.hint(plan)
    status = run_cpsat(model.model, best, unit, problem.seed, lambda value: best.offer(model.read(value), "cpsat"))
    if status == _INFEASIBLE and not best.closed:
        raise SolverDisagreementError(
            f"solvers disagree: cpsat finds no pebbling that costs at least {best.lower}, but {best.upper_from} found "
            f"one that the referee replays at {best.upper} ({problem.game.variant}, capacity {problem.capacity})."
        )
    return "proved optimal" if best.closed else "stopped"


def _solve_again(best: Incumbent) -> str:
    """In the worker: have the optimum proved a second time."""
    from pebble.solvers.cpsat_oneshot import OneShotModel

    game, capacity, unit = scaled(best.problem.game, best.problem.capacity)
    model = OneShotModel(game, capacity)
    assert best.upper is not None
    model.model.add(model.objective <= best.upper // unit - 1)
    return confirm(best, model.model, min(_CONFIRM_SECONDS, 1 + best.seconds))


def confirm(best: Incumbent, model: cp_model.CpModel, seconds: float) -> str:
    """In the worker: solve a model of pebblings below the optimum with presolve off; name the outcome.

    SolverDisagreementError where there is one.
    """
    from ortools.sat.python import cp_model

    solver = new_solver(best.problem.seed + 1, min(best.seconds_left, seconds))
    solver.parameters.cp_model_presolve = False
    status = run_stoppable(solver, model, best, None, until_closed=False)
    if status == cp_model.INFEASIBLE:
        best.none_cheaper("cpsat without presolve")
        return "proved optimal, and again by a run without presolve"
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise SolverDisagreementError(
            f"solvers disagree: {' and '.join(best.proof)} proved {best.snapshot().upper_bound} optimal "
            f"({best.problem.game.variant}, capacity {best.problem.capacity}), cpsat without presolve finds less."
        )
    return "proved optimal by CP-SAT alone (the run without presolve did not finish)"


def _search_agrees(best: Incumbent) -> bool:
    """Whether the search, which knows nothing of CP-SAT, proves the same optimum within a few seconds.

    SolverDisagreementError where it proves more than the cost of the pebbling found, or finds a cheaper one.
    """
    from pebble.solvers.search import solve_search

    alone = Incumbent(best.problem, _CONFIRM_SECONDS, best.stop, within=best)  # compiling puts both limits off
    try:
        solve_search(alone)
    except InputError:  # too large for it
        return False
    if alone.pebbling is not None:
        best.offer(alone.pebbling.moves, "search")
    best.raise_lower(alone.lower, "search")
    return alone.closed


def run_cpsat(
    model: cp_model.CpModel, best: Incumbent, unit: int, seed: int, result: Any, report_bounds: bool = True
) -> int:
    """Minimise; report each solution and bound; return the status."""
    from ortools.sat.python import cp_model

    class Listener(cp_model.CpSolverSolutionCallback):
        def __init__(self) -> None:
            super().__init__()
            self.error: BaseException | None = None

        def on_solution_callback(self) -> None:
            try:
                result(self.boolean_value)
            except BaseException as error:  # an exception must not cross the C++ frame
                self.error = error
                self.stop_search()

    solver = new_solver(seed, best.seconds_left)
    if report_bounds:

        def report(bound: float) -> None:
            best.raise_lower(math.ceil(bound - 1e-6) * unit, "cpsat")

        solver.best_bound_callback = report
    listener = None if result is None else Listener()
    status = run_stoppable(solver, model, best, listener)
    if listener is not None and listener.error is not None:
        raise listener.error
    if report_bounds and status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        best.raise_lower(math.ceil(solver.best_objective_bound - 1e-6) * unit, "cpsat")
    return status


def new_solver(seed: int, seconds: float) -> cp_model.CpSolver:
    """One worker, a fixed seed, and the presolve step of google/or-tools#5293 off."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_time_in_seconds = max(seconds, 1e-3)
    solver.parameters.presolve_inclusion_work_limit = 0  # google/or-tools#5293
    solver.parameters.catch_sigint_signal = False
    return solver


def run_stoppable(
    solver: cp_model.CpSolver, model: cp_model.CpModel, best: Incumbent, listener: Any, until_closed: bool = True
) -> int:
    """Solve, with a second thread that stops the search when the incumbent says so."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            if best.stop.is_set() or best.seconds_left == 0 or (until_closed and best.closed):
                solver.stop_search()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        return int(solver.solve(model, listener))
    finally:
        over.set()
        watcher.join()

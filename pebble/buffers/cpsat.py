"""CP-SAT on the program of :mod:`pebble.buffers.model`; the precautions of :mod:`pebble.solvers.cpsat`."""

from __future__ import annotations

import math
from typing import Any

from pebble.buffers.model import BufferProgram
from pebble.buffers.state import Incumbent
from pebble.solvers.cpsat import new_solver, run_stoppable
from pebble.system.isolation import Library, solve_apart


def _read(program: BufferProgram) -> tuple[Any, list[Any]]:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    found = [model.new_bool_var(f"x{v}") for v in range(program.program.variables)]
    for terms, sense, bound in program.program.rows:
        total = cp_model.LinearExpr.weighted_sum([found[v] for _, v in terms], [c for c, _ in terms])
        if sense == "<=":
            model.add(total <= bound)
        else:
            model.add(total == bound)
    return model, found


def solve_by_cpsat(best: Incumbent) -> str:
    """Prove or improve; return why it stopped."""
    return solve_apart(Library.ORTOOLS, "pebble.buffers.cpsat:_solve", best)


def _solve(best: Incumbent) -> str:
    """In the worker."""
    from ortools.sat.python import cp_model

    program = best.program()
    model, found = _read(program)
    objective = program.program.objective
    model.minimize(cp_model.LinearExpr.weighted_sum([found[v] for _, v in objective], [c for c, _ in objective]))
    fixed = program.unit * program.always

    class Listener(cp_model.CpSolverSolutionCallback):
        def __init__(self) -> None:
            super().__init__()
            self.error: BaseException | None = None

        def on_solution_callback(self) -> None:
            try:
                best.offer_plan(program.plan([int(self.boolean_value(var)) for var in found]), "cpsat")
            except BaseException as error:  # an exception must not cross the C++ frame
                self.error = error
                self.stop_search()

    def report(bound: float) -> None:
        best.raise_lower(math.ceil(bound - 1e-6) + fixed, "cpsat")

    known = best.lower
    solver = new_solver(best.seed, best.seconds_left)
    solver.best_bound_callback = report
    listener = Listener()
    status = run_stoppable(solver, model, best, listener)
    if listener.error is not None:
        raise listener.error
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        report(solver.best_objective_bound)
    if status == cp_model.INFEASIBLE:
        return _infeasible(best, "cpsat")
    if not best.closed:
        proved = status == cp_model.OPTIMAL
        return "the program is proved, but a gap between two tasks has no order" if proved else "stopped"
    return _confirm(best) if best.lower > known else "proved optimal"


def _infeasible(best: Incumbent, source: str) -> str:
    """Nothing is cheaper than the known pebbling."""
    if best.upper is not None:
        best.raise_lower(best.upper, source)
        return "proved optimal"
    return "no pebbling exists under this limit on tasks per SM"


def _confirm(best: Incumbent) -> str:
    """Look for a cheaper solution with presolve off and another seed."""
    from ortools.sat.python import cp_model

    assert best.upper is not None
    program = best.program()
    program.cost_below(best.upper)
    model, _ = _read(program)
    solver = new_solver(best.seed + 1, min(best.seconds_left, 5 + best.seconds))
    solver.parameters.cp_model_presolve = False
    status = run_stoppable(solver, model, best, None, until_closed=False)
    if status == cp_model.INFEASIBLE:
        best.raise_lower(best.upper, "cpsat without presolve")
        return "proved optimal, and again by a run without presolve"
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        best.disagree("cpsat", "cpsat without presolve")
    return "proved optimal by CP-SAT alone (the run without presolve did not finish)"

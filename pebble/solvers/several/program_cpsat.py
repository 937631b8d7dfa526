"""CP-SAT on the program of :mod:`pebble.solvers.several.program`; the precautions of :mod:`pebble.solvers.cpsat`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pebble.errors import SolverDisagreementError
from pebble.solvers.cpsat import new_solver, run_cpsat, run_stoppable
from pebble.solvers.result import Incumbent
from pebble.solvers.several.gaps import offer_plan
from pebble.solvers.several.program import BufferProgram, first_program


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
    from ortools.sat.python import cp_model

    program = first_program(best)
    if program is None:
        return "proved optimal" if best.closed else "stopped"
    model, found = _read(program)
    costs = program.program.objective
    moved = cp_model.LinearExpr.weighted_sum([found[v] for _, v in costs], [c for c, _ in costs])
    model.minimize(moved + program.unit * program.always)
    known = best.lower

    def report(value: Callable[[Any], bool]) -> None:
        offer_plan(best, program.plan([int(value(var)) for var in found]), "cpsat")

    status = run_cpsat(model, best, 1, best.problem.seed, report)
    if status == cp_model.INFEASIBLE:
        return best.none_cheaper("cpsat")
    if not best.closed:
        return (
            "the program is proved, but a gap between two tasks has no order"
            if status == cp_model.OPTIMAL
            else "stopped"
        )
    return _confirm(best) if best.lower > known else "proved optimal"


def _confirm(best: Incumbent) -> str:
    """Look for a cheaper solution with presolve off and another seed."""
    from ortools.sat.python import cp_model

    assert best.upper is not None
    program = BufferProgram(best.problem)
    program.cost_below(best.upper)
    model, _ = _read(program)
    solver = new_solver(best.problem.seed + 1, min(best.seconds_left, 5 + best.seconds))
    solver.parameters.cp_model_presolve = False
    status = run_stoppable(solver, model, best, None, until_closed=False)
    if status == cp_model.INFEASIBLE:
        best.raise_lower(best.upper, "cpsat without presolve")
        return "proved optimal, and again by a run without presolve"
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise SolverDisagreementError(
            f"solvers disagree: cpsat proved {best.lower} optimal (in units of 1/{best.unit}), cpsat without presolve found less."
        )
    return "proved optimal by CP-SAT alone (the run without presolve did not finish)"

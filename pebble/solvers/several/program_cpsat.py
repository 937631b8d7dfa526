"""CP-SAT on the program of several memories; the precautions of :mod:`pebble.solvers.cpsat`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pebble.solvers.cpsat import confirm, run_cpsat
from pebble.solvers.result import Incumbent
from pebble.solvers.several.gaps import NO_ORDER, offer_plan
from pebble.solvers.several.program import BufferProgram, solve_program
from pebble.system.isolation import Library, solve_apart


def solve_by_cpsat(best: Incumbent) -> str:
    """Prove or improve; return why it stopped."""
    known = best.lower
    reason = solve_program(best, "cpsat", Library.ORTOOLS, "pebble.solvers.several.program_cpsat:_solve")
    if reason == "proved optimal" and best.lower > known:
        return solve_apart(Library.ORTOOLS, "pebble.solvers.several.program_cpsat:_solve_again", best)
    return reason


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


def _solve(best: Incumbent) -> str:
    """In the worker."""
    from ortools.sat.python import cp_model

    program = BufferProgram(best.problem)
    model, found = _read(program)
    costs = program.program.objective
    moved = cp_model.LinearExpr.weighted_sum([found[v] for _, v in costs], [c for c, _ in costs])
    model.minimize(moved + program.unit * program.always)

    def report(value: Callable[[Any], bool]) -> None:
        offer_plan(best, program.plan([int(value(var)) for var in found]), "cpsat")

    status = run_cpsat(model, best, 1, best.problem.seed, report)
    if status == cp_model.INFEASIBLE:
        return best.none_cheaper("cpsat")
    if best.closed:
        return "proved optimal"
    return NO_ORDER if status == cp_model.OPTIMAL else "stopped"


def _solve_again(best: Incumbent) -> str:
    """In the worker: have the optimum proved a second time."""
    assert best.upper is not None
    program = BufferProgram(best.problem)
    program.cost_below(best.upper)
    return confirm(best, _read(program)[0], 5 + best.seconds)

"""CP-SAT, with the precautions of :mod:`pebble.solvers.cpsat`, and HiGHS on the program of several memories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pebble.solvers.cpsat import MAX_VARIABLES, confirm, run_cpsat
from pebble.solvers.registry import first_pebbling
from pebble.solvers.result import Incumbent
from pebble.solvers.several.gaps import Mover
from pebble.solvers.several.program import BufferProgram
from pebble.system.isolation import Library, solve_in_worker

_HERE = "pebble.solvers.several.solvers:"
_NO_ORDER = "the program is proved, but a gap between two tasks has no order"


def _solve_in_worker(best: Incumbent, solver: str, library: Library, function: str) -> str:
    """A first pebbling, then the program in the worker of a library; why it stopped."""
    game, sms = best.problem.game, best.problem.buffers.memories
    tasks = len(game.tasks)
    size = tasks * sms * (tasks + game.size * (3 + sms))
    return first_pebbling(best, solver, size, MAX_VARIABLES) or solve_in_worker(library, _HERE + function, best)


def solve_by_cpsat(best: Incumbent) -> str:
    """Prove or improve; return why it stopped."""
    known = best.lower
    reason = _solve_in_worker(best, "cpsat", Library.ORTOOLS, "_by_cpsat")
    if reason == "proved optimal" and best.lower > known:
        return solve_in_worker(Library.ORTOOLS, _HERE + "_by_cpsat_again", best)
    return reason


def read_program(program: BufferProgram) -> tuple[Any, list[Any]]:
    """A program as CP-SAT reads it, and its variables."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    results = [model.new_bool_var(f"x{v}") for v in range(program.program.variables)]
    for terms, sense, bound in program.program.rows:
        total = cp_model.LinearExpr.weighted_sum([results[v] for _, v in terms], [c for c, _ in terms])
        if sense == "<=":
            model.add(total <= bound)
        else:
            model.add(total == bound)
    return model, results


def _by_cpsat(best: Incumbent) -> str:
    """In the worker."""
    from ortools.sat.python import cp_model

    program = BufferProgram(best.problem)
    model, result = read_program(program)
    costs = program.program.objective
    traffic = cp_model.LinearExpr.weighted_sum([result[v] for _, v in costs], [c for c, _ in costs])
    model.minimize(traffic + program.unit * program.always)

    def report(value: Callable[[Any], bool]) -> None:
        plan = program.plan([int(value(var)) for var in result])
        best.offer(Mover(best.problem, plan).play(), "cpsat")

    status = run_cpsat(model, best, 1, best.problem.seed, report)
    if status == cp_model.INFEASIBLE:
        return best.none_cheaper("cpsat")
    if best.closed:
        return "proved optimal"
    return _NO_ORDER if status == cp_model.OPTIMAL else "stopped"


def _by_cpsat_again(best: Incumbent) -> str:
    """In the worker: have the optimum proved a second time."""
    assert best.upper is not None
    program = BufferProgram(best.problem)
    program.cost_below(best.upper)
    return confirm(best, read_program(program)[0], 5 + best.seconds)


def solve_by_milp(best: Incumbent) -> str:
    """Prove or improve; return why it stopped."""
    return _solve_in_worker(best, "milp", Library.HIGHS, "_by_milp")


def _by_milp(best: Incumbent) -> str:
    """In the worker."""
    import pulp

    from pebble.system.isolation.highs import minimise

    program = BufferProgram(best.problem)
    fixed = program.unit * program.always
    known = best.upper
    if known is not None:
        program.cost_below(known)
    if best.lower:
        program.cost_at_least(best.lower)
    linear = program.program
    problem = pulp.LpProblem("several", pulp.LpMinimize)
    results = [problem.add_variable(f"x{v}", cat="Binary") for v in range(linear.variables)]
    problem.setObjective(pulp.lpSum(c * results[v] for c, v in linear.objective))
    for terms, sense, bound in linear.rows:
        total = pulp.lpSum(c * results[v] for c, v in terms)
        problem += total <= bound if sense == "<=" else total == bound

    def report(bound: int) -> None:
        # above the upper bound only by the cut: the program asks for less
        best.raise_lower(bound + fixed if known is None else min(bound + fixed, known), "milp")

    status = minimise(problem, best.seconds_left, best.problem.seed, report)
    if status == "optimal":
        values = [round(var.value() or 0) for var in results]
        report(linear.value(values))
        best.offer(Mover(best.problem, program.plan(values)).play(), "milp")
    elif status == "infeasible":
        return best.none_cheaper("milp")
    if best.closed:
        return "proved optimal"
    return _NO_ORDER if status == "optimal" else "stopped"

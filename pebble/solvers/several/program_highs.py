"""HiGHS on the program of several memories."""

from __future__ import annotations

from pebble.solvers.result import Incumbent
from pebble.solvers.several.gaps import NO_ORDER, offer_plan
from pebble.solvers.several.program import BufferProgram, solve_program
from pebble.system.isolation import Library


def solve_by_milp(best: Incumbent) -> str:
    """Prove or improve; return why it stopped."""
    return solve_program(best, "milp", Library.HIGHS, "pebble.solvers.several.program_highs:_solve")


def _solve(best: Incumbent) -> str:
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
    found = [pulp.LpVariable(f"x{v}", cat="Binary") for v in range(linear.variables)]
    problem.setObjective(pulp.lpSum(c * found[v] for c, v in linear.objective))
    for terms, sense, bound in linear.rows:
        total = pulp.lpSum(c * found[v] for c, v in terms)
        problem += total <= bound if sense == "<=" else total == bound

    def report(bound: int) -> None:
        # above the upper bound only by the cut: the program asks for less
        best.raise_lower(bound + fixed if known is None else min(bound + fixed, known), "milp")

    status = minimise(problem, best.seconds_left, best.problem.seed, report)
    if status == "optimal":
        values = [round(var.value() or 0) for var in found]
        report(linear.value(values))
        offer_plan(best, program.plan(values), "milp")
    elif status == "infeasible":
        return best.none_cheaper("milp")
    if best.closed:
        return "proved optimal"
    return NO_ORDER if status == "optimal" else "stopped"

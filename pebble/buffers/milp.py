"""HiGHS on the program of :mod:`pebble.buffers.model`."""

from __future__ import annotations

from pebble.buffers.state import Incumbent
from pebble.system.isolation import Library, solve_apart


def solve_by_milp(best: Incumbent) -> str:
    """Prove or improve; return why it stopped."""
    return solve_apart(Library.HIGHS, "pebble.buffers.milp:_solve", best)


def _solve(best: Incumbent) -> str:
    """In the worker."""
    import pulp

    from pebble.solvers.highs import minimise

    program = best.program()
    fixed = program.unit * program.always
    if best.upper is not None:
        program.cost_below(best.upper)
    if best.lower:
        program.cost_at_least(best.lower)
    linear = program.program
    problem = pulp.LpProblem("buffers", pulp.LpMinimize)
    found = [pulp.LpVariable(f"x{v}", cat="Binary") for v in range(linear.variables)]
    problem.setObjective(pulp.lpSum(c * found[v] for c, v in linear.objective))
    for terms, sense, bound in linear.rows:
        total = pulp.lpSum(c * found[v] for c, v in terms)
        problem += total <= bound if sense == "<=" else total == bound
    known = best.upper

    def report(bound: int) -> None:
        # above the upper bound only by the cut: the program asks for less
        best.raise_lower(bound + fixed if known is None else min(bound + fixed, known), "milp")

    status = minimise(problem, best.seconds_left, best.seed, report)
    if status == "optimal":
        values = [round(var.value() or 0) for var in found]
        report(linear.value(values))
        best.offer_plan(program.plan(values), "milp")
    elif status == "infeasible":
        if known is None:
            return "no pebbling exists under this limit on tasks per SM"
        best.raise_lower(known, "milp")
    if best.closed:
        return "proved optimal"
    return "the program is proved, but a gap between two tasks has no order" if status == "optimal" else "stopped"

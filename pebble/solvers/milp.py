"""The game as a mixed-integer program, solved by HiGHS: a second opinion on small games."""

from __future__ import annotations

from pebble.errors import InputError
from pebble.solvers.cpsat import scaled
from pebble.solvers.heuristic import solve_heuristic
from pebble.solvers.result import Incumbent, Problem
from pebble.system.isolation import Library, solve_apart

MAX_VARIABLES = 20_000


def solve_milp(problem: Problem, best: Incumbent) -> str:
    """Prove or improve with HiGHS, from the heuristic's pebbling and above the bounds known.

    Raises
    ------
    InputError
        A variant that computes again (the model has one position per task), or a DAG too large.
    """
    game = problem.game
    if game.variant.recompute:
        raise InputError(
            f"solver milp: the variant {game.variant} has no fixed number of computations, which its model needs; "
            "use --solver cpsat, or a one-shot variant."
        )
    size = 4 * game.size * len(game.tasks)
    if size > MAX_VARIABLES:
        raise InputError(
            f"solver milp: the DAG has {game.size} values and {len(game.tasks)} operations, a model of {size} "
            f"variables; the limit is {MAX_VARIABLES}. Use --solver heuristic for a pebbling and `pebble bound` "
            "for a lower bound."
        )
    if best.upper_from != "heuristic":
        solve_heuristic(problem, best)
    if best.stopped:
        return "proved optimal" if best.closed else "stopped"
    return solve_apart(Library.HIGHS, "pebble.solvers.milp:_solve", best)


def _solve(best: Incumbent) -> str:
    """In the worker: look for a pebbling below the one that is known."""
    from pebble.solvers.highs import minimise, whole
    from pebble.solvers.milp_model import MilpModel

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
        report(whole(model.value()))
    elif status == "infeasible":  # none is the proof
        best.raise_lower(upper, "milp")
    return "proved optimal" if best.closed else f"HiGHS: {status}"

"""The game as a mixed-integer program, solved by HiGHS: a second opinion on small games."""

from __future__ import annotations

from pebble.solvers.cpsat import scaled
from pebble.solvers.first import first_pebbling
from pebble.solvers.result import Incumbent
from pebble.system.isolation import Library, solve_apart

MAX_VARIABLES = 20_000


def solve_milp(best: Incumbent) -> str:
    """Prove or improve with HiGHS, from the heuristic's pebbling and above the bounds known."""
    game = best.problem.game
    reason = first_pebbling(best, "milp", 4 * game.size * len(game.tasks), MAX_VARIABLES)
    return reason or solve_apart(Library.HIGHS, "pebble.solvers.milp:_solve", best)


def _solve(best: Incumbent) -> str:
    """In the worker: look for a pebbling below the one that is known."""
    from pebble.solvers.milp_model import MilpModel
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
        report(whole(model.value()))
    elif status == "infeasible":  # none is the proof
        best.raise_lower(upper, "milp")
    return "proved optimal" if best.closed else f"HiGHS: {status}"

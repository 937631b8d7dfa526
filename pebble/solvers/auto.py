"""``auto``: bounds, then the heuristic, then the solver that suits the game."""

from __future__ import annotations

from pebble.solvers.result import Incumbent, Problem


def solve_auto(problem: Problem, best: Incumbent) -> str:
    """Heuristic first; CP-SAT when the gap is open and the game is small enough for it."""
    from pebble.solvers import cpsat, heuristic

    reason = heuristic.solve_heuristic(problem, best)
    best.details["solver"] = "heuristic"
    if best.closed or not cpsat.fits(problem.game):
        return reason
    best.details["solver"] = "cpsat"
    return cpsat.solve_cpsat(problem, best)

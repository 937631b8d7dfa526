"""``auto``: bounds, then the heuristic, then the solver that suits the game."""

from __future__ import annotations

from pebble.errors import InputError
from pebble.solvers.result import Incumbent, Problem


def solve_auto(problem: Problem, best: Incumbent) -> str:
    """Heuristic first. While a gap is open: search, if the game fits its masks; CP-SAT, if search cannot play the
    game or runs out of memory and the game is small enough."""
    from pebble.solvers import cpsat, heuristic

    reason = heuristic.solve_heuristic(problem, best)
    best.details["solver"] = "heuristic"
    if best.closed:
        return reason
    from pebble.solvers.search import solve_search

    try:
        reason = solve_search(problem, best)
        best.details["solver"] = "search"
    except InputError:
        pass  # too large for it; the next one may take it
    if best.stopped or not cpsat.fits(problem.game):
        return reason
    best.details["solver"] = "cpsat"
    return cpsat.solve_cpsat(problem, best)

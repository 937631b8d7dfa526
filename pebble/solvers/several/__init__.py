"""Exact solvers of the game with several memories, for small DAGs."""

from __future__ import annotations

from pebble.game import at_sm
from pebble.solvers.heuristic import solve_heuristic
from pebble.solvers.lower import best_simple_bound
from pebble.solvers.result import Incumbent, Problem

__all__ = ["solve_alone"]


def solve_alone(best: Incumbent) -> str:
    """Offer what one SM can do alone, as the heuristic plays it, unless no SM may do everything."""
    problem = best.problem
    if problem.most_tasks_per_sm is None or problem.most_tasks_per_sm >= len(problem.game.tasks):
        one = Problem(problem.game, problem.capacity, problem.seed)
        alone = Incumbent(one, max(0.1, best.seconds_left / 10), best.stop)
        alone.raise_lower(*best_simple_bound(one.game, one.capacity))
        solve_heuristic(alone)
        if alone.pebbling is not None:
            best.offer(at_sm(alone.pebbling.moves), "heuristic at one SM")
    return "proved optimal" if best.closed else "heuristic finished"

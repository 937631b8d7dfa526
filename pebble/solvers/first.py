"""What a solver by a model does first: see that the model is not too large, and have a pebbling to start from."""

from __future__ import annotations

from pebble.errors import InputError
from pebble.solvers.registry import find_solver
from pebble.solvers.result import Incumbent


def first_pebbling(best: Incumbent, solver: str, variables: int, limit: int) -> str | None:
    """Have the heuristic's pebbling; why to stop there, if there is a reason.

    Raises
    ------
    InputError
        The model would have more than ``limit`` variables.
    """
    game, sms = best.problem.game, best.problem.buffers.memories
    if variables > limit:
        raise InputError(
            f"solver {solver}: the DAG has {game.size} values and {len(game.tasks)} operations"
            f"{f', on {sms} SMs' if sms > 1 else ''}, a model of {variables} variables; the limit is {limit}. "
            "Use --solver heuristic for a pebbling and `pebble bound` for a lower bound."
        )
    if not best.upper_from.startswith("heuristic"):
        find_solver("heuristic", best.problem)(best)
    if best.stopped:
        return "proved optimal" if best.closed else "stopped"
    return None

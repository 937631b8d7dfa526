"""The best explicit schedule of a GEMM as a pebbling: a start for the solvers of larger games."""

from __future__ import annotations

from pebble.game import Game, Move, Pebbling, moves_cost
from pebble.schedules.explicit import best_gemm_schedule
from pebble.schedules.explicit.moves import gemm_moves
from pebble.solvers.lower import gemm_sides
from pebble.workloads import Gemm

MOST_OPERATIONS = 300_000


def explicit_pebbling(game: Game, capacity: int) -> Pebbling | None:
    """The moves of the best explicit schedule, when the game is a GEMM in place with equal weights.

    Parameters
    ----------
    game : Game
        Any game.
    capacity : int
        In the game's weights.

    Returns
    -------
    Pebbling or None
        None for another game, a larger one, or a capacity below three values.
    """
    sides = gemm_sides(game)
    if sides is None or len(game.tasks) > MOST_OPERATIONS or capacity < 3 * game.weights[0]:
        return None
    schedule = best_gemm_schedule(Gemm(*sides), capacity // game.weights[0])
    named = {(task.target, task.operands): task.name for task in game.tasks}
    index = game.item_index
    moves = []
    for op, operand, where in gemm_moves(schedule):
        if op == "compute":
            i, j, l = where
            operands = sorted((index[f"A[{i},{l}]"], index[f"B[{l},{j}]"]))
            moves.append(Move("compute", named[index[f"C[{i},{j}]"], tuple(operands)]))
        else:
            moves.append(Move(op, f"{operand}[{where[0]},{where[1]}]"))  # type: ignore[arg-type]
    return Pebbling(game.variant, capacity, tuple(moves), moves_cost(game, moves))

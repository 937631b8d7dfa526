"""The best explicit schedule of a GEMM as a pebbling: a start for the solvers of larger games."""

from __future__ import annotations

from pebble.game import Game, Move, Pebbling, moves_cost
from pebble.schedules.explicit import ExplicitProduct, best_gemm_schedule
from pebble.schedules.explicit.moves import gemm_moves
from pebble.solvers.gemm_shape import Shape, recognise
from pebble.workloads import Gemm
from pebble.workloads.widths import Room

MOST_OPERATIONS = 300_000


def explicit_pebbling(game: Game, capacity: int) -> Pebbling | None:
    """The moves of the best explicit schedule, when the game is a GEMM in place with equal weights.

    None for another game, one of more than ``MOST_OPERATIONS``, or a capacity (in the game's weights) below three
    values.
    """
    shape = recognise(game) if len(game.tasks) <= MOST_OPERATIONS and capacity >= 3 * game.weights[0] else None
    if shape is None:
        return None
    schedule = best_gemm_schedule(Gemm(shape.m, shape.n, shape.k), Room.of_values(capacity // game.weights[0]))
    return schedule_pebbling(game, shape, schedule, capacity)


def schedule_pebbling(game: Game, shape: Shape, schedule: ExplicitProduct, capacity: int) -> Pebbling:
    """The moves of a schedule in the names of a game that has been recognised as its GEMM."""
    m, n, k = shape.m, shape.n, shape.k

    def place(operand: str, row: int, column: int) -> int:
        """Of an element among the shape's items."""
        if operand == "A":
            return row * k + column
        return (m + column) * k + row if operand == "B" else (m + n) * k + row * n + column

    moves = []
    for op, operand, where in gemm_moves(schedule):
        if op == "compute":
            i, j, l = where
            moves.append(Move("compute", game.tasks[shape.tasks[(i * n + j) * k + l]].name))
        else:
            moves.append(Move(op, game.names[shape.items[place(operand, where[0], where[1])]]))  # type: ignore[arg-type]
    return Pebbling(game.variant, capacity, tuple(moves), moves_cost(game, moves))

"""The best explicit schedule of a GEMM as a pebbling, on one SM or several: a start for the solvers of larger games."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import cast

from pebble.game import BufferModel, Game, Move, Pebbling, at_sm, moves_cost
from pebble.game.moves import Op
from pebble.schedules.explicit import ExplicitProduct, best_gemm_schedule
from pebble.schedules.explicit.moves import gemm_moves
from pebble.schedules.explicit.parallel import best_parallel_schedule
from pebble.schedules.explicit.parallel_moves import parallel_moves
from pebble.solvers.gemm_shape import GemmShape, recognise
from pebble.workloads import Gemm
from pebble.workloads.widths import FastMemory

MOST_OPERATIONS = 300_000


def explicit_pebbling(game: Game, capacity: int) -> Pebbling | None:
    """The moves of the best explicit schedule, when the game is a GEMM in place with equal weights.

    None for another game, one of more than ``MOST_OPERATIONS``, or a capacity (in the game's weights) below three
    values.
    """
    shape = recognise(game) if len(game.tasks) <= MOST_OPERATIONS and capacity >= 3 * game.weights[0] else None
    if shape is None:
        return None
    schedule = best_gemm_schedule(Gemm(shape.m, shape.n, shape.k), FastMemory.of_values(capacity // game.weights[0]))
    return schedule_pebbling(game, shape, schedule, capacity)


def explicit_start(
    game: Game, capacity: int, buffers: BufferModel, most_tasks_per_sm: int | None = None
) -> Pebbling | None:
    """The same under any buffer model, ``capacity`` of each SM: one SM alone, or a grid of blocks on all of them.

    None where neither is one of this game, or keeps to ``most_tasks_per_sm``.
    """
    if buffers.memories == 1:
        return explicit_pebbling(game, buffers.memory_size(capacity))
    tasks = len(game.tasks)
    limited = most_tasks_per_sm is not None and most_tasks_per_sm < tasks
    alone = None if limited else explicit_pebbling(game, capacity)
    result = [] if alone is None else [Pebbling(game.variant, capacity, at_sm(alone.moves), alone.cost, buffers)]
    shape = recognise(game) if tasks <= MOST_OPERATIONS and capacity >= 3 * game.weights[0] else None
    if shape is None:
        return None
    gemm, values = Gemm(shape.m, shape.n, shape.k), capacity // game.weights[0]
    # in other nets than these, a cluster of neighbours is more than one hop wide
    near = (
        buffers.kind == "connected"
        and buffers.net.group > 1
        and (buffers.net.uniform or buffers.net.group < buffers.sms)
    )
    for tolerance in (0.0, 0.05, float(buffers.sms)):
        for cluster in {1, buffers.net.group if near else 1}:
            schedule = best_parallel_schedule(gemm, buffers.sms, values, buffers.omega, cluster, tolerance)
            moves = _moves(game, shape, parallel_moves(schedule))
            done = Counter(move.sm for move in moves if move.op == "compute")
            if not limited or max(done.values()) <= cast(int, most_tasks_per_sm):
                result.append(Pebbling(game.variant, capacity, moves, moves_cost(game, moves, buffers), buffers))
    return min(result, key=lambda pebbling: pebbling.cost, default=None)


def schedule_pebbling(game: Game, shape: GemmShape, schedule: ExplicitProduct, capacity: int) -> Pebbling:
    """The moves of a schedule in the names of a game that has been recognised as its GEMM."""
    moves = _moves(game, shape, ((*event, None, None) for event in gemm_moves(schedule)))
    return Pebbling(game.variant, capacity, moves, moves_cost(game, moves))


def _moves(
    game: Game, shape: GemmShape, events: Iterable[tuple[str, str, tuple[int, ...], int | None, int | None]]
) -> tuple[Move, ...]:
    m, n, k = shape.m, shape.n, shape.k

    def place(operand: str, row: int, column: int) -> int:
        """Of an element among the shape's items."""
        if operand == "A":
            return row * k + column
        return (m + column) * k + row if operand == "B" else (m + n) * k + row * n + column

    moves = []
    for op, operand, where, sm, source in events:
        if op == "compute":
            i, j, l = where
            moves.append(Move("compute", game.tasks[shape.tasks[(i * n + j) * k + l]].name, None, sm))
        else:
            item = game.names[shape.items[place(operand, where[0], where[1])]]
            moves.append(Move(cast(Op, op), item, source, sm))
    return tuple(moves)

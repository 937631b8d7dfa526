"""Cells that weigh more while they are incomplete: the referee, and what the solvers say."""

import pytest

from pebble.cdag.products import gemm_dag
from pebble.cdag.validate import DagError
from pebble.errors import IllegalMoveError, InputError
from pebble.game import Game, Move, Pebbling, Variant, minimum_capacity, replay
from pebble.schedules.explicit.blocked import BlockedProduct, blocked_products
from pebble.schedules.explicit.moves import gemm_moves
from pebble.solvers import solve
from pebble.workloads import Gemm
from pebble.workloads.widths import FastMemory, Widths
from tests.bounds.weighted_game import product_game

FP8 = Widths(1, 4, 4, 2)


def wide_game(m: int, n: int, k: int, accumulate: bool = False) -> Game:
    dag = gemm_dag(m, n, k, accumulate=accumulate, in_bytes=1, out_bytes=2)
    for _, data in dag.nodes(data=True):
        if data["operation"] == "accumulator":
            data["partial_weight"] = 4
    return Game.from_dag(dag)


def pebbling(schedule: BlockedProduct) -> Pebbling:
    """The moves in the names of the DAG."""
    moves = []
    for op, name, index in gemm_moves(schedule):
        node = f"{name}[{','.join(map(str, index))}]"
        if op == "compute":
            i, j, t = index
            node = f"C[{i},{j}]+=A[{i},{t}]*B[{t},{j}]"
        moves.append(Move(op, node))
    return Pebbling(Variant.IN_PLACE, schedule.memory.bytes, tuple(moves), schedule.bytes)


@pytest.mark.parametrize("capacity", [6, 9, 14, 25, 40])
@pytest.mark.parametrize("accumulate", [False, True])
def test_the_referee_replays_schedules_in_bytes(capacity: int, accumulate: bool) -> None:
    game = wide_game(3, 4, 3, accumulate)
    for schedule in blocked_products(Gemm(3, 4, 3, "fp8", accumulate=accumulate), FastMemory(capacity, FP8)):
        assert replay(game, pebbling(schedule)).peak <= capacity


def test_no_schedule_is_below_the_optimum_of_the_oracle() -> None:
    for capacity in (6, 8, 9):
        optimum = product_game(2, 2, 2, FP8).least(capacity)
        results = [s.bytes for s in blocked_products(Gemm(2, 2, 2, "fp8"), FastMemory(capacity, FP8))]
        assert optimum is not None
        assert optimum <= min(results)


def test_a_partial_sum_needs_its_room() -> None:
    game = wide_game(1, 1, 2)
    assert minimum_capacity(game) == 6
    first = "C[0,0]+=A[0,0]*B[0,0]"
    moves = tuple(Move(op, node) for op, node in (("load", "A[0,0]"), ("load", "B[0,0]"), ("compute", first)))
    with pytest.raises(IllegalMoveError, match="capacity"):
        replay(game, Pebbling(Variant.IN_PLACE, 5, moves, 2))


def test_solvers_say_that_they_do_not_play_it() -> None:
    for solver in ("auto", "search", "cpsat", "milp", "heuristic"):
        with pytest.raises(InputError, match=r"partial sums .* leave partial_weight out"):
            solve(wide_game(2, 1, 2), 8, solver=solver)


def test_what_weighs_less_while_incomplete_is_refused() -> None:
    dag = gemm_dag(1, 1, 2, in_bytes=1, out_bytes=4)
    dag.nodes["C[0,0]"]["partial_weight"] = 2
    with pytest.raises(DagError, match="at least its weight"):
        Game.from_dag(dag)
    dag.nodes["C[0,0]"].pop("partial_weight")
    dag.nodes["A[0,0]"]["partial_weight"] = 2
    with pytest.raises(DagError, match="only a cell"):
        Game.from_dag(dag)

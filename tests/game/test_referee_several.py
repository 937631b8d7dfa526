"""The referee with several memories: each boundary counted, and the rules that copies add."""

from dataclasses import replace
from fractions import Fraction

import networkx as nx
import pytest

from pebble.cdag import gemm_dag
from pebble.errors import IllegalMoveError, VerificationError
from pebble.game import BufferModel, Game, Move, Pebbling, SmTraffic, Variant, at_sm, read_moves, replay
from pebble.solvers import solve

LINE = nx.DiGraph([("a", "c"), ("b", "c")])
JOINED = BufferModel("connected", 2, Fraction(1, 4))


def play(moves: list[tuple], cost: Fraction, buffers: BufferModel = JOINED, capacity: int = 3):
    pebbling = Pebbling(Game.from_dag(LINE).variant, capacity, read_moves(moves), cost, buffers)
    return replay(LINE, pebbling)


def test_referee_counts_each_boundary() -> None:
    moves = [("load", "a", 0), ("load", "b", 1), ("copy", "a", 1, 0), ("compute", "c", 1), ("store", "c", 1)]
    result = play(moves, Fraction(13, 4))
    assert result.per_sm == (SmTraffic(1, 0, 0, 0, 1), SmTraffic(1, 1, 1, 1, 3))
    assert (result.cost, result.loads, result.stores, result.hops, result.peak) == (Fraction(13, 4), 2, 1, 1, 3)
    with pytest.raises(VerificationError, match="claims"):
        play(moves, Fraction(3))


@pytest.mark.parametrize(
    ("rule", "moves"),
    [
        ("unknown-sm", [("load", "a", 2)]),
        ("unknown-op", [("move", "a", 0)]),
        ("unknown-node", [("load", "q", 0)]),
        ("unknown-node", [("compute", "a", 0)]),
        ("not-blue", [("load", "c", 0)]),
        ("already-red", [("load", "a", 0), ("load", "a", 0)]),
        ("source-not-red", [("copy", "a", 1, 0)]),
        ("not-connected", [("load", "a", 0), ("copy", "a", 1, 1)]),
        ("unknown-sm", [("load", "a", 0), ("copy", "a", 1, 5)]),
        ("not-red", [("load", "a", 0), ("delete", "a", 1)]),
        ("already-blue", [("load", "a", 0), ("store", "a", 0)]),
        ("operand-not-red", [("load", "a", 0), ("load", "b", 1), ("compute", "c", 0)]),
        ("output-not-blue", []),
    ],
)
def test_referee_names_the_rule(rule: str, moves: list[tuple]) -> None:
    with pytest.raises(IllegalMoveError) as error:
        play(moves, Fraction(0))
    assert error.value.rule == rule


def test_referee_knows_the_models() -> None:
    with pytest.raises(IllegalMoveError, match="no copy"):
        play([("load", "a", 0), ("copy", "a", 1, 0)], Fraction(1), BufferModel("sm-local", 2))
    with pytest.raises(IllegalMoveError, match="load at SM 1, expected an SM from 0 to 0"):
        play([("load", "a", 1)], Fraction(1), BufferModel("pooled", 2))
    with pytest.raises(IllegalMoveError, match="capacity"):
        play([("load", "a", 0), ("load", "b", 0), ("compute", "c", 0)], Fraction(2), capacity=2)
    pooled = [("load", "a", 0), ("load", "b", 0), ("compute", "c", 0), ("store", "c", 0)]
    assert play(pooled, Fraction(3), BufferModel("pooled", 2), capacity=2).peak == 3


def test_update_drops_other_copies() -> None:
    dag = gemm_dag(1, 1, 2)
    game = Game.from_dag(dag)
    first, second = (task.name for task in game.tasks)
    operands = [[game.names[o] for o in task.operands] for task in game.tasks]
    start = [*(("load", name, 0) for name in operands[0]), ("compute", first, 0), ("copy", "C[0,0]", 1, 0)]
    cell = game.names[game.tasks[0].target]
    start[-1] = ("copy", cell, 1, 0)
    after = [*(("load", name, 1) for name in operands[1]), ("compute", second, 1)]
    moves = read_moves([*start, *after, ("store", cell, 0)])
    with pytest.raises(IllegalMoveError) as error:
        replay(game, Pebbling(game.variant, 3, moves, Fraction(6), JOINED))
    assert error.value.rule == "not-red"
    moves = (*moves[:-1], Move("store", cell, sm=1))
    result = replay(game, Pebbling(game.variant, 3, moves, Fraction(21, 4), JOINED))
    assert [sm.copies for sm in result.per_sm] == [0, 1]


def test_single_pebblings_carry_over() -> None:
    game = Game.from_dag(gemm_dag(2, 2, 2))
    alone = solve(game, 5).pebbling
    for kind in ("sm-local", "connected", "pooled"):
        there = replace(alone, moves=at_sm(alone.moves), buffers=BufferModel(kind, 3))
        assert replay(game, there).cost == alone.cost
    with pytest.raises(IllegalMoveError, match="without an SM"):
        replay(game, replace(alone, buffers=BufferModel("sm-local", 3)))


def test_what_is_computed_again_keeps_its_other_copies() -> None:
    dag = nx.DiGraph([("a", "c"), ("c", "d"), ("c", "e")])
    moves = (
        "load a 0,compute c 0,load a 1,compute c 1,delete a 0,compute d 0,store d 0,delete a 1,compute e 1,store e 1"
    )
    words = [part.split() for part in moves.split(",")]
    plain = read_moves((op, node, int(sm)) for op, node, sm in words)
    pebbling = Pebbling(Variant.RECOMPUTE, 2, plain, 4, BufferModel("sm-local", 2))
    assert replay(dag, pebbling).cost == 4
    with pytest.raises(IllegalMoveError) as error:
        replay(dag, replace(pebbling, variant=Variant.ONE_SHOT))
    assert error.value.rule == "computed-twice"


def test_slides_at_an_sm() -> None:
    plain = read_moves([("load", "a", 1), ("load", "b", 1), ("slide", "c", 1, "a"), ("store", "c", 1)])
    pebbling = Pebbling(Variant.ONE_SHOT_SLIDING, 2, plain, 3, BufferModel("sm-local", 2))
    assert replay(LINE, pebbling).per_sm[1] == SmTraffic(2, 1, 0, 1, 2)

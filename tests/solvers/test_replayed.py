"""A user's own moves come back checked, costed and beside the optimum."""

import json
from fractions import Fraction

import networkx as nx
import pytest

from pebble.cdag import diamond_dag, gemm_dag
from pebble.errors import InfeasibleError, InputError
from pebble.game import BufferModel, Game
from pebble.solvers import replay_moves, solve

LINE = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d"), ("b", "d")])
BEST = [("load", "a"), ("load", "b"), ("compute", "c"), ("delete", "a"), ("compute", "d"), ("store", "d")]


def test_an_optimal_pebbling_is_known_to_be_one() -> None:
    result = replay_moves(LINE, BEST, 3)
    assert result.legal and result.optimal and result.illegal is None
    assert (result.cost, result.played.loads, result.played.stores, result.played.peak) == (3, 2, 1, 3)
    assert result.lower_bound == result.upper_bound == result.optimum == 3


def test_a_dear_one_stands_beside_the_optimum() -> None:
    # b goes and comes back
    dear = [*BEST[:2], ("compute", "c"), ("delete", "a"), ("delete", "b"), ("load", "b"), *BEST[4:]]
    result = replay_moves(LINE, dear, 3)
    assert result.legal and not result.optimal
    assert (result.cost, result.optimum) == (4, 3)
    assert result.to_json()["per_sm"] == [{"loads": 3, "stores": 1, "copies_in": 0, "tasks": 2, "peak": 3}]


def test_an_illegal_move_is_an_answer() -> None:
    result = replay_moves(LINE, BEST[:3] + BEST[4:], 3)
    assert not result.legal and result.cost is None and not result.optimal
    assert (result.illegal.step, result.illegal.rule, result.illegal.node) == (4, "capacity", "d")
    assert result.solved is None and result.optimum is None and result.lower_bound == 3
    assert result.to_json()["illegal"]["text"].endswith(".")
    assert replay_moves(LINE, [], 3).illegal.rule == "output-not-blue"


def test_a_file_and_what_solve_found(tmp_path) -> None:
    dag = gemm_dag(2, 2, 2)
    solved = solve(dag, 4)
    file = tmp_path / "moves.json"
    file.write_text(json.dumps({"moves": [move.to_json() for move in solved.moves]}))
    result = replay_moves(dag, str(file), 4)
    assert result.optimal and result.cost == solved.upper_bound
    json.dumps(result.to_json())


def test_several_memories() -> None:
    dag, joined = nx.DiGraph([("a", "c"), ("b", "c")]), BufferModel("connected", 2, Fraction(1, 4))
    moves = [("load", "a", 0), ("load", "b", 1), ("copy", "a", 1, 0), ("compute", "c", 1), ("store", "c", 1)]
    result = replay_moves(dag, moves, 3, buffers=joined)
    assert (result.cost, result.optimum) == (Fraction(13, 4), 3)
    assert result.to_json()["cost"] == 3.25
    pooled = replay_moves(
        dag, [(*move[:2], 0) for move in moves if move[0] != "copy"], 2, buffers=BufferModel("pooled", 2)
    )
    assert pooled.optimal and pooled.upper_bound == 3


def test_a_game_that_no_solver_plays_has_its_compulsory_bound() -> None:
    dag = nx.DiGraph([("a", "c")])
    moves = [("load", "a", 1), ("slide", "c", 1, "a"), ("store", "c", 1)]
    result = replay_moves(dag, moves, 1, "recompute-sliding", BufferModel("sm-local", 2))
    assert result.solved is None and result.optimal and result.cost == 2


def test_recomputation_counts() -> None:
    dag = diamond_dag(3)
    once, again = (solve(dag, 3, variant) for variant in ("one-shot", "recompute"))
    assert replay_moves(dag, again.moves, 3, "recompute").cost == again.upper_bound < once.upper_bound
    assert replay_moves(dag, again.moves, 3, "one-shot").illegal.rule == "computed-twice"


def test_what_is_no_input() -> None:
    with pytest.raises(InputError, match="move 1"):
        replay_moves(LINE, ["load"], 3)
    with pytest.raises(InputError, match="cannot be read"):
        replay_moves(LINE, "nothing.json", 3)
    with pytest.raises(InfeasibleError, match="at least 3"):
        replay_moves(Game.from_dag(LINE), BEST, 2)

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
    found = replay_moves(LINE, BEST, 3)
    assert found.legal and found.optimal and found.illegal is None
    assert (found.cost, found.played.loads, found.played.stores, found.played.peak) == (3, 2, 1, 3)
    assert found.lower_bound == found.upper_bound == found.optimum == 3


def test_a_dear_one_stands_beside_the_optimum() -> None:
    # b goes and comes back
    dear = [*BEST[:2], ("compute", "c"), ("delete", "a"), ("delete", "b"), ("load", "b"), *BEST[4:]]
    found = replay_moves(LINE, dear, 3)
    assert found.legal and not found.optimal
    assert (found.cost, found.optimum) == (4, 3)
    assert found.to_json()["per_sm"] == [{"loads": 3, "stores": 1, "copies_in": 0, "tasks": 2, "peak": 3}]


def test_an_illegal_move_is_an_answer() -> None:
    found = replay_moves(LINE, BEST[:3] + BEST[4:], 3)
    assert not found.legal and found.cost is None and not found.optimal
    assert (found.illegal.step, found.illegal.rule, found.illegal.node) == (4, "capacity", "d")
    assert found.solved is None and found.optimum is None and found.lower_bound == 3
    assert found.to_json()["illegal"]["text"].endswith(".")
    assert replay_moves(LINE, [], 3).illegal.rule == "output-not-blue"


def test_a_file_and_what_solve_found(tmp_path) -> None:
    dag = gemm_dag(2, 2, 2)
    solved = solve(dag, 4)
    file = tmp_path / "moves.json"
    file.write_text(json.dumps({"moves": [move.to_json() for move in solved.moves]}))
    found = replay_moves(dag, str(file), 4)
    assert found.optimal and found.cost == solved.upper_bound
    json.dumps(found.to_json())


def test_several_memories() -> None:
    dag, joined = nx.DiGraph([("a", "c"), ("b", "c")]), BufferModel("connected", 2, Fraction(1, 4))
    moves = [("load", "a", 0), ("load", "b", 1), ("copy", "a", 1, 0), ("compute", "c", 1), ("store", "c", 1)]
    found = replay_moves(dag, moves, 3, buffers=joined)
    assert (found.cost, found.optimum) == (Fraction(13, 4), 3)
    assert found.to_json()["cost"] == 3.25
    pooled = replay_moves(
        dag, [(*move[:2], 0) for move in moves if move[0] != "copy"], 2, buffers=BufferModel("pooled", 2)
    )
    assert pooled.optimal and pooled.upper_bound == 3


def test_a_game_that_no_solver_plays_has_its_compulsory_bound() -> None:
    dag = nx.DiGraph([("a", "c")])
    moves = [("load", "a", 1), ("slide", "c", 1, "a"), ("store", "c", 1)]
    found = replay_moves(dag, moves, 1, "recompute-sliding", BufferModel("sm-local", 2))
    assert found.solved is None and found.optimal and found.cost == 2


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

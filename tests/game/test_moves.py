"""Plain data becomes moves, or one sentence says why not."""

import json
from fractions import Fraction

import networkx as nx
import pytest

from pebble.errors import InputError
from pebble.game import BufferModel, Game, Move, at_sm, moves_cost, read_moves
from pebble.game.moves import read_moves_file

MOVES = (Move("load", "a"), Move("slide", "c", "a"), Move("copy", "c", 0, 1), Move("store", "c", sm=1))


def test_moves_go_to_json_and_back() -> None:
    plain = [move.to_json() for move in MOVES]
    assert plain == [["load", "a"], ["slide", "c", "a"], ["copy", "c", 1, 0], ["store", "c", 1]]
    assert read_moves(plain) == MOVES
    assert read_moves(MOVES) == MOVES
    assert at_sm(MOVES[:2], 3)[1].to_json() == ["slide", "c", 3, "a"]


@pytest.mark.parametrize(
    "plain",
    ["load a", 7, None, [7], ["load a"], [["load"]], [["load", 3]], [[3, "a"]], [["copy", "a", 1, 0, 2]],
     [Move("load", 3)], [{"op": "load"}], [["load", "a", True]], [["load", "a", "b", 1]], [["load", "a", 1.5]]],
)  # fmt: skip
def test_what_is_no_move_is_named(plain: object) -> None:
    with pytest.raises(InputError, match=r"expected (a list|\[op)"):
        read_moves(plain)


def test_a_node_stands_for_its_name() -> None:
    names = {"3", "(0, 1)"}
    plain = [("load", 3), ("load", (0, 1)), ("slide", 3, (0, 1)), ("slide", "(0, 1)", 3), Move("store", 3)]
    assert [str(move) for move in read_moves(plain, names)] == [
        "load 3", "load (0, 1)", "slide 3 from (0, 1)", "slide (0, 1) from 3", "store 3",
    ]  # fmt: skip
    assert read_moves([("slide", 3, 1, (0, 1))], names, 2) == (Move("slide", "3", "(0, 1)", 1),)
    for stranger in (4, True, 3.5, None, [3]):
        with pytest.raises(InputError, match="the value one of the DAG"):
            read_moves([("load", stranger)], names)


@pytest.mark.parametrize("move", [("load", "a", "b"), ("compute", "a", 0, "b"), Move("delete", "a", "b")])
def test_only_a_slide_or_a_copy_has_a_source(move: object) -> None:
    with pytest.raises(InputError, match=r"got 'b' after .* expected the value alone"):
        read_moves([move])


def test_the_memories_are_named() -> None:
    for memories, expected in ((2, "0 or 1"), (4, "0 to 3")):
        for move in (("load", "a", "x"), ("slide", "a", "x"), ("load", "a", True)):
            with pytest.raises(InputError, match=f"got SM .*, expected {expected}"):
                read_moves([move], memories=memories)
    with pytest.raises(InputError, match=r"expected the value and the SM \(0 or 1\) alone"):
        read_moves([("load", "a", 0, "b")], memories=2)


def test_files(tmp_path) -> None:
    file = tmp_path / "moves.json"
    for content in ([["load", "a"]], {"status": "optimal", "moves": [["load", "a"]]}):
        file.write_text(json.dumps(content))
        assert read_moves_file(file) == (Move("load", "a"),)
    file.write_text('{"a": 1}')
    with pytest.raises(InputError, match=r'moves\.json.*the key "moves" is missing'):
        read_moves_file(file)
    for text in ("[[", "{}", "7", '[["load"]]', "[" * 100_000, "[" + "9" * 5000 + "]"):
        file.write_text(text)
        with pytest.raises(InputError, match=r"^\S*moves\.json"):
            read_moves_file(file)
    with pytest.raises(InputError, match="cannot be read"):
        read_moves_file(tmp_path / "none.json")


def test_costs_by_weight_and_hops() -> None:
    dag = nx.DiGraph([("a", "c")])
    dag.nodes["a"]["weight"] = 3
    ring = BufferModel("connected", 4, Fraction(3, 2), "ring")
    moves = [("load", "a", 0), ("copy", "a", 2, 0), ("store", "c", 2), ("load", "nothing", 0)]
    assert moves_cost(Game.from_dag(dag), read_moves(moves), ring) == 3 + 3 * 2 * Fraction(3, 2) + 1

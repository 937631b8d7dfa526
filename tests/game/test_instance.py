"""Variants, the indexed view of a DAG, the least capacity."""

import dataclasses
import subprocess
import sys

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pebble.cdag import attention_dag, diamond_dag, ffn_dag, fft_dag, gemm_dag, tree_dag
from pebble.errors import InfeasibleError, InputError, UnknownNameError
from pebble.game import Game, Move, Task, Variant, check_capacity, minimum_capacity, moves_cost
from tests.brute_force import brute_force
from tests.cdag.strategies import any_dags


def test_variants_have_the_names_of_the_command_line() -> None:
    assert [str(v) for v in Variant] == [
        "one-shot", "one-shot-sliding", "recompute", "recompute-sliding", "in-place"
    ]  # fmt: skip
    assert Variant.parse("recompute-sliding").sliding
    assert Variant.parse("recompute").recompute
    assert not Variant.IN_PLACE.sliding
    assert not Variant.IN_PLACE.recompute


def test_unknown_variant_offers_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean one-shot"):
        Variant.parse("oneshot")


def test_default_variant() -> None:
    assert Variant.default_for(gemm_dag(1, 1, 2)) is Variant.IN_PLACE
    assert Variant.default_for(gemm_dag(1, 1, 2, form="chain")) is Variant.ONE_SHOT
    assert Game.from_dag(tree_dag(4)).variant is Variant.ONE_SHOT


def test_plain_values_are_their_own_tasks() -> None:
    game = Game.from_dag(nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")]), "recompute")
    assert game.names == ("a", "b", "c", "d")
    assert game.tasks == (Task("c", (0, 1), 2), Task("d", (2,), 3))
    assert game.is_input == (True, True, False, False)
    assert game.is_output == (False, False, False, True)
    assert game.updates == ((), (), (0,), (1,))
    assert game.uses == ((0,), (0,), (1,), ())
    assert game.compulsory == 3
    assert not game.has_cells


def test_cells_and_their_updates() -> None:
    game = Game.from_dag(gemm_dag(1, 1, 2))
    assert game.names == ("A[0,0]", "A[0,1]", "B[0,0]", "B[1,0]", "C[0,0]")
    assert game.tasks == (
        Task("C[0,0]+=A[0,0]*B[0,0]", (0, 2), 4),
        Task("C[0,0]+=A[0,1]*B[1,0]", (1, 3), 4),
    )
    assert {o for t in game.updates[4] for o in game.tasks[t].operands} == {0, 1, 2, 3}
    assert game.has_cells
    assert game.compulsory == 5


def test_order_between_updates() -> None:
    game = Game.from_dag(ffn_dag(1, 2, 1, 1))
    activation = game.tasks[game.task_index["H[0,0]=act(H[0,0])"]]
    assert activation.operands == ()
    assert {game.tasks[t].name for t in activation.after} == {
        "H[0,0]+=X[0,0]*W1[0,0]",
        "H[0,0]+=X[0,1]*W1[1,0]",
    }


def test_accumulate_into_starts_blue() -> None:
    game = Game.from_dag(gemm_dag(1, 1, 1, accumulate=True))
    cell = game.item_index["C[0,0]"]
    assert game.is_input[cell]
    assert game.has_cells
    assert game.compulsory == 4


def test_order_of_items_does_not_depend_on_names() -> None:
    dag = nx.DiGraph([("z", "m"), ("y", "m"), ("m", "a")])
    assert Game.from_dag(dag).names == ("z", "y", "m", "a")


def test_items_and_tasks_are_topological() -> None:
    game = Game.from_dag(attention_dag(2, 3, 2, softmax="online"))
    last = {item: max(tasks, default=-1) for item, tasks in enumerate(game.updates)}
    for t, task in enumerate(game.tasks):
        assert all(last[operand] < t for operand in task.operands)
        assert all(operand < task.target for operand in task.operands)
        assert all(before < t for before in task.after)


def test_tasks_need_the_in_place_variant() -> None:
    with pytest.raises(InputError, match=r"play it with in-place.*form='chain'"):
        Game.from_dag(gemm_dag(2, 2, 2), Variant.ONE_SHOT)


@pytest.mark.parametrize(
    ("dag", "least"),
    [
        (tree_dag(8), [3, 2, 3, 2, 3]),
        (fft_dag(4), [3, 2, 3, 2, 3]),
        (gemm_dag(2, 2, 2, form="chain"), [4, 3, 4, 3, 4]),
        (gemm_dag(2, 2, 2, form="separate"), [3, 2, 3, 2, 3]),
        (gemm_dag(1, 1, 1, tile=(1, 1, 1), in_bytes=2, out_bytes=4, form="chain"), [8, 6, 8, 6, 8]),
    ],
)
def test_least_capacity(dag: nx.DiGraph, least: list[int]) -> None:
    assert [minimum_capacity(Game.from_dag(dag, variant)) for variant in Variant] == least


def test_least_capacity_in_place() -> None:
    assert minimum_capacity(Game.from_dag(gemm_dag(3, 3, 3))) == 3
    assert minimum_capacity(Game.from_dag(gemm_dag(4, 4, 4, tile=(2, 2, 2), in_bytes=2, out_bytes=4))) == 8 + 8 + 16


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(any_dags(most_weight=3), st.sampled_from(list(Variant)))
def test_least_capacity_is_the_least_that_works(dag: nx.DiGraph, variant: Variant) -> None:
    if Variant.default_for(dag) is Variant.IN_PLACE:
        variant = Variant.IN_PLACE
    game = Game.from_dag(dag, variant)
    least = minimum_capacity(game)
    optimum = brute_force(dag, least, str(variant))
    assert optimum is not None
    assert optimum >= game.compulsory
    if game.tasks:
        assert brute_force(dag, least - 1, str(variant)) is None
    assert brute_force(dag, sum(game.weights), str(variant)) == game.compulsory


def test_capacity_below_the_least_is_refused_by_name() -> None:
    game = Game.from_dag(diamond_dag(3))
    check_capacity(game, 3)
    with pytest.raises(InfeasibleError, match="got 2, but the variant one-shot of this DAG needs at least 3") as caught:
        check_capacity(game, 2)
    assert caught.value.exit_code == 4


def test_cost_of_moves_is_weighted() -> None:
    dag = nx.DiGraph([("a", "c")])
    nx.set_node_attributes(dag, {"a": 5, "c": 2}, "weight")
    moves = [Move("load", "a"), Move("compute", "c"), Move("store", "c"), Move("delete", "a")]
    assert moves_cost(Game.from_dag(dag), moves) == 7


def test_moves_as_json() -> None:
    assert Move("load", "a").to_json() == ["load", "a"]
    assert Move("slide", "c", "a").to_json() == ["slide", "c", "a"]


def test_another_variant_of_the_same_game() -> None:
    game = dataclasses.replace(Game.from_dag(tree_dag(4)), variant=Variant.RECOMPUTE_SLIDING)
    assert minimum_capacity(game) == 2


def test_game_and_referee_stay_light() -> None:
    code = (
        "import sys, pebble.game, pebble.cdag, pebble.cdag.catalogue, pebble.cdag.io\n"
        "heavy = {'numpy', 'networkx', 'ortools', 'pulp', 'matplotlib', 'pebble.solvers'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

"""The referee accepts what is legal and names the first move that is not."""

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pebble.cdag import diamond_dag, ffn_dag, gemm_dag, tree_dag
from pebble.errors import IllegalMoveError, UnknownNameError, VerificationError
from pebble.game import Game, Move, Pebbling, Variant, minimum_capacity, moves_cost, replay
from tests.brute_force import brute_force_pebbling
from tests.cdag.strategies import any_dags

PLAIN = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d"), ("b", "d")])
CELL = gemm_dag(1, 1, 2)
FIRST, SECOND = "C[0,0]+=A[0,0]*B[0,0]", "C[0,0]+=A[0,1]*B[1,0]"
ORDERED = ffn_dag(1, 1, 1, 1)


def moves_of(text: str) -> tuple[Move, ...]:
    """``load a; slide c a`` as moves."""
    moves = []
    for part in text.split(";"):
        words = part.split()
        moves.append(Move(words[0], words[1], words[2] if len(words) > 2 else None))
    return tuple(moves)


def pebbling(dag: nx.DiGraph, variant: str, capacity: int, text: str) -> Pebbling:
    moves = moves_of(text)
    game = Game.from_dag(dag, variant)
    known = [move for move in moves if move.node in game.item_index]
    return Pebbling(Variant(variant), capacity, moves, moves_cost(game, known))


GOOD = "load a; load b; compute c; delete a; compute d; store d"


@pytest.mark.parametrize(
    ("dag", "variant", "capacity", "text", "step", "rule", "node"),
    [
        (PLAIN, "one-shot", 3, "load a; load a", 2, "already-red", "a"),
        (PLAIN, "one-shot", 3, "load c", 1, "not-blue", "c"),
        (PLAIN, "one-shot", 3, "load a; load b; compute c; delete c; load c", 5, "not-blue", "c"),
        (PLAIN, "one-shot", 3, "load z", 1, "unknown-node", "z"),
        (PLAIN, "one-shot", 3, "load a; compute a", 2, "unknown-node", "a"),
        (PLAIN, "one-shot", 3, "compute z", 1, "unknown-node", "z"),
        (PLAIN, "one-shot", 3, "load a; move a", 2, "unknown-op", "a"),
        (PLAIN, "one-shot", 3, "load a; store a", 2, "already-blue", "a"),
        (PLAIN, "one-shot", 3, "store c", 1, "not-red", "c"),
        (PLAIN, "one-shot", 3, "delete a", 1, "not-red", "a"),
        (PLAIN, "one-shot", 3, "load a; delete a; delete a", 3, "not-red", "a"),
        (PLAIN, "one-shot", 3, "load a; compute c", 2, "operand-not-red", "c"),
        (PLAIN, "one-shot", 2, "load a; load b; compute c", 3, "capacity", "c"),
        (PLAIN, "one-shot", 1, "load a; load b", 2, "capacity", "b"),
        (PLAIN, "one-shot", 3, "load a; load b; compute c; compute d", 4, "capacity", "d"),
        (PLAIN, "one-shot", 9, "load a; load b; compute c; compute c", 4, "computed-twice", "c"),
        (PLAIN, "one-shot", 9, "load a; load b; compute c; delete c; compute c", 5, "computed-twice", "c"),
        (PLAIN, "recompute", 9, "load a; load b; compute c; compute c", 4, "already-red", "c"),
        (PLAIN, "one-shot", 9, "load a; load b; slide c a", 3, "unknown-op", "c"),
        (PLAIN, "one-shot-sliding", 9, "load a; load b; slide c", 3, "source", "c"),
        (PLAIN, "one-shot-sliding", 9, "load a; load b; compute c; slide d a", 4, "source", "d"),
        (PLAIN, "one-shot-sliding", 9, "load a; load b; slide c b; compute d", 4, "operand-not-red", "d"),
        (PLAIN, "one-shot", 9, "load a; load b; compute c; compute d", 5, "output-not-blue", "d"),
        (
            CELL, "in-place", 3,
            f"load A[0,0]; load B[0,0]; compute {FIRST}; compute {FIRST}",
            4, "computed-twice", FIRST,
        ),
        (
            CELL, "in-place", 5,
            f"load A[0,0]; load B[0,0]; compute {FIRST}; delete C[0,0]; load A[0,1]; load B[1,0]; compute {SECOND}",
            7, "cell-not-red", SECOND,
        ),
        (CELL, "in-place", 3, "load C[0,0]", 1, "not-blue", "C[0,0]"),
        (CELL, "in-place", 3, "compute C[0,0]", 1, "unknown-node", "C[0,0]"),
        (CELL, "in-place", 3, f"load {FIRST}", 1, "unknown-node", FIRST),
        (CELL, "in-place", 2, f"load A[0,0]; load B[0,0]; compute {FIRST}", 3, "capacity", FIRST),
        # stored with an update to come
        (
            CELL, "in-place", 3,
            f"load A[0,0]; load B[0,0]; compute {FIRST}; store C[0,0]",
            5, "output-not-blue", "C[0,0]",
        ),
        # the update makes the blue copy stale: it cannot be loaded again, nor is it the result
        (
            CELL, "in-place", 5,
            f"load A[0,0]; load B[0,0]; compute {FIRST}; store C[0,0]; load A[0,1]; load B[1,0]; compute {SECOND};"
            "delete C[0,0]; load C[0,0]",
            9, "not-blue", "C[0,0]",
        ),
        (ORDERED, "in-place", 3, "compute H[0,0]=act(H[0,0])", 1, "order", "H[0,0]=act(H[0,0])"),
        (
            ORDERED, "in-place", 4,
            "load X[0,0]; load W1[0,0]; compute H[0,0]+=X[0,0]*W1[0,0]; delete X[0,0]; load W2[0,0];"
            "compute Y[0,0]+=H[0,0]*W2[0,0]",
            6, "incomplete", "Y[0,0]+=H[0,0]*W2[0,0]",
        ),
    ],
)  # fmt: skip
def test_the_first_illegal_move_is_named(
    dag: nx.DiGraph, variant: str, capacity: int, text: str, step: int, rule: str, node: str
) -> None:
    with pytest.raises(IllegalMoveError) as caught:
        replay(dag, pebbling(dag, variant, capacity, text))
    assert (caught.value.step, caught.value.rule, caught.value.node) == (step, rule, node)
    assert f"step {step}," in str(caught.value)
    assert node in str(caught.value)
    assert caught.value.exit_code == 5


def test_accumulate_into_must_load_its_cell() -> None:
    dag = gemm_dag(1, 1, 1, accumulate=True)
    with pytest.raises(IllegalMoveError) as caught:
        replay(dag, pebbling(dag, "in-place", 3, "load A[0,0]; load B[0,0]; compute C[0,0]+=A[0,0]*B[0,0]"))
    assert caught.value.rule == "cell-not-red"
    text = "load A[0,0]; load B[0,0]; load C[0,0]; compute C[0,0]+=A[0,0]*B[0,0]; store C[0,0]"
    assert replay(dag, pebbling(dag, "in-place", 3, text)).cost == 4
    with pytest.raises(IllegalMoveError) as caught:  # the old value is not the result
        replay(dag, pebbling(dag, "in-place", 3, text.rpartition(";")[0]))
    assert caught.value.rule == "output-not-blue"


def test_what_a_replay_tells() -> None:
    result = replay(PLAIN, pebbling(PLAIN, "one-shot", 3, GOOD))
    assert (result.cost, result.loads, result.stores) == (3, 2, 1)
    assert (result.loads, result.stores, result.per_sm[0].computations) == (2, 1, 2)
    assert result.peak == 3


def test_weights_count_in_cost_and_room() -> None:
    dag = nx.DiGraph([("a", "c")])
    nx.set_node_attributes(dag, {"a": 5, "c": 2}, "weight")
    result = replay(dag, pebbling(dag, "one-shot", 7, "load a; compute c; store c"))
    assert (result.cost, result.loads, result.stores, result.peak) == (7, 5, 2, 7)
    with pytest.raises(IllegalMoveError, match="red values would weigh 7, capacity 6"):
        replay(dag, pebbling(dag, "one-shot", 6, "load a; compute c"))
    # the result takes the place of its operand
    assert replay(dag, pebbling(dag, "one-shot-sliding", 5, "load a; slide c a; store c")).peak == 5


def test_claimed_cost_and_variant_are_checked() -> None:
    good = pebbling(PLAIN, "one-shot", 3, GOOD)
    with pytest.raises(VerificationError, match="claims the cost 2, its moves cost 3"):
        replay(PLAIN, Pebbling(good.variant, good.capacity, good.moves, 2))
    with pytest.raises(VerificationError, match="for the variant one-shot, the game to replay it in is recompute"):
        replay(Game.from_dag(PLAIN, "recompute"), good)
    with pytest.raises(UnknownNameError):
        replay(PLAIN, Pebbling("one-shoot", 3, good.moves, 3))


def test_recomputation_pays_on_the_diamond() -> None:
    cost, moves = brute_force_pebbling(diamond_dag(3), 3, "recompute")
    assert cost == 5
    assert replay(diamond_dag(3), Pebbling(Variant.RECOMPUTE, 3, tuple(Move(*m) for m in moves), 5)).cost == 5
    with pytest.raises(IllegalMoveError, match="computed-twice"):
        replay(diamond_dag(3), Pebbling(Variant.ONE_SHOT, 3, tuple(Move(*m) for m in moves), 5))


def snake(m: int, n: int, k: int) -> Pebbling:
    """GEMM in place with three pebbles, each product sharing one value with the product before it."""
    dag = gemm_dag(m, n, k)
    game = Game.from_dag(dag)
    moves: list[Move] = []
    held: list[str] = []
    depth = list(range(k))
    for i in range(m):
        for j in range(n) if i % 2 == 0 else reversed(range(n)):
            for step, p in enumerate(depth):
                needed = [f"A[{i},{p}]", f"B[{p},{j}]", f"C[{i},{j}]"]
                moves += [Move("delete", name) for name in held if name not in needed]
                moves += [Move("load", name) for name in needed[:2] if name not in held]
                moves.append(Move("compute", f"{needed[2]}+={needed[0]}*{needed[1]}"))
                held = needed
                if step == k - 1:
                    moves.append(Move("store", needed[2]))
            depth.reverse()
    return Pebbling(Variant.IN_PLACE, 3, tuple(moves), moves_cost(game, moves))


@pytest.mark.parametrize(("shape", "optimum"), [((2, 2, 2), 17), ((2, 2, 3), 25), ((3, 3, 3), 55), ((4, 4, 4), 129)])
def test_hand_made_gemm_reaches_the_proven_optimum(shape: tuple[int, int, int], optimum: int) -> None:
    result = replay(gemm_dag(*shape), snake(*shape))
    assert result.cost == optimum == 2 * shape[0] * shape[1] * shape[2] + 1
    assert result.peak == 3


def test_hand_made_tree() -> None:
    text = (
        "load x[0]; load x[1]; compute t[1,0]; delete x[0]; delete x[1]; store t[1,0]; delete t[1,0];"
        "load x[2]; load x[3]; compute t[1,1]; delete x[2]; delete x[3]; load t[1,0]; compute t[2,0]; store t[2,0]"
    )
    assert replay(tree_dag(4), pebbling(tree_dag(4), "one-shot", 3, text)).cost == 7


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(any_dags(most_weight=2), st.sampled_from(list(Variant)), st.integers(0, 2), st.data())
def test_agrees_with_the_brute_force(dag: nx.DiGraph, variant: Variant, memory: int, data: st.DataObject) -> None:
    if Variant.default_for(dag) is Variant.IN_PLACE:
        variant = Variant.IN_PLACE
    game = Game.from_dag(dag, variant)
    capacity = minimum_capacity(game) + memory
    best = brute_force_pebbling(dag, capacity, str(variant))
    assert best is not None
    cost, named = best
    moves = tuple(Move(*move) for move in named)
    result = replay(dag, Pebbling(variant, capacity, moves, cost))
    assert result.cost == cost
    assert result.peak <= capacity
    # cheaper than the optimum is never legal
    paid = [i for i, move in enumerate(moves) if move.op in ("load", "store")]
    if paid:
        drop = data.draw(st.sampled_from(paid))
        fewer = moves[:drop] + moves[drop + 1 :]
        with pytest.raises(IllegalMoveError):
            replay(game, Pebbling(variant, capacity, fewer, moves_cost(game, fewer)))

"""The least split of tasks: against every split, exact optima, and what is known of small products and chains."""

from __future__ import annotations

from collections import Counter
from itertools import product

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pebble.bounds import task_splits
from pebble.bounds.task_splits import least_split
from pebble.cdag.attention import attention_dag
from pebble.cdag.products import ffn_dag, gemm_dag
from pebble.errors import InputError
from pebble.game import BufferModel, Game
from pebble.solvers import solve
from tests.solvers import random_dags
from tests.solvers.brute_force_several import brute_force_several

QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}
WEIGHTED = st.booleans().flatmap(lambda w: st.one_of(random_dags.dags(6, w), random_dags.cell_dags(w)))


def read(dag: nx.DiGraph) -> Game | None:
    try:
        return Game.from_dag(dag)
    except InputError:  # a node that no output needs
        return None


def traffic(game: Game, at: tuple[int, ...], copies: bool) -> int:
    """What the values cost that tasks at these SMs touch, value by value."""
    total = 0
    for x in range(game.size):
        using = {at[t] for t in game.uses[x]}
        updating = {at[t] for t in game.updates[x]}
        price, weight = 0, game.weights[x]
        if game.is_input[x]:
            price = len(using | updating)
        elif updating:
            far = len(using - updating)
            price = (len(updating) - 1) * (1 if copies else 2) + far
            price += far > 0 and not copies and not game.is_output[x]
        total += weight * (price + (game.is_output[x] and bool(updating)))
    return total


@settings(max_examples=40, **QUIET)
@given(WEIGHTED, st.sampled_from([2, 3]), st.booleans(), st.integers(0, 1))
def test_no_split_costs_less(dag: nx.DiGraph, sms: int, copies: bool, more: int) -> None:
    game = read(dag)
    if game is None or not game.tasks:
        return
    most = -(-len(game.tasks) // sms) + more
    result = least_split(game, sms, most, copies)
    splits = [at for at in product(range(sms), repeat=len(game.tasks)) if max(Counter(at).values()) <= most]
    assert result.weight == min(traffic(game, at, copies) for at in splits)
    assert max(Counter(result.sms).values()) <= most or most >= len(game.tasks)
    assert traffic(game, result.sms, copies) == result.weight


@settings(max_examples=15, **QUIET)
@given(WEIGHTED, st.sampled_from([None, "0", "1/2", "1", "3/2", "2", "5/2"]), st.just(2))
def test_no_pebbling_costs_less(dag: nx.DiGraph, omega: str | None, sms: int) -> None:
    """However much an SM holds; with a copy at w of a load, at least w of what it says."""
    game = read(dag)
    if game is None or game.size > 4:
        return
    most = -(-len(game.tasks) // sms)
    buffers = BufferModel("sm-local", sms) if omega is None else BufferModel("connected", sms, omega)
    capacity = sum(game.weights)
    optimum = brute_force_several(dag, capacity, sms, buffers.copy_cost, most)
    assert optimum is not None
    split = least_split(game, sms, most, buffers.copies_pay).weight
    share = min(buffers.omega, 1) if omega is not None else 1
    assert (1 - share) * game.compulsory + share * split <= optimum
    found = solve(game, capacity, solver="heuristic", buffers=buffers, most_tasks_per_sm=most, time_limit=60)
    assert found.lower_bound <= optimum <= (found.upper_bound or optimum)


@pytest.mark.parametrize(
    ("dag", "apart", "joined"),
    [
        (gemm_dag(2, 2, 2), 16, 16),
        (ffn_dag(2, 2, 2), 24, 20),
        (attention_dag(2, 2, 2), 24, 22),
        (attention_dag(2, 2, 2, softmax="strict"), 24, 20),
        (ffn_dag(2, 2, 2, gated=True), 30, 26),
    ],
)
def test_halves_of_small_games(dag: nx.DiGraph, apart: int, joined: int) -> None:
    game = Game.from_dag(dag)
    half = -(-len(game.tasks) // 2)
    assert least_split(game, 2, half, copies=False).weight == apart
    assert least_split(game, 2, half, copies=True).weight == joined
    assert least_split(game, 2, len(game.tasks), copies=False).weight == game.compulsory


def test_what_the_steps_allow_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    game = Game.from_dag(gemm_dag(3, 3, 2))
    whole = least_split.__wrapped__(game, 2, 9, False)
    for steps in (0, 100, 2000):
        monkeypatch.setattr(task_splits, "_MOST_STEPS", steps)
        part = least_split.__wrapped__(game, 2, 9, False)
        assert game.compulsory <= part.weight <= whole.weight and (part.sms == () or part == whole)


def test_a_game_of_many_tasks_has_its_compulsory_bound() -> None:
    game = Game.from_dag(gemm_dag(8, 8, 8))
    assert least_split(game, 2, 256, copies=False) == (game.compulsory, ())


def test_tiles_of_a_network_are_solved_at_once() -> None:
    """Two tile rows: each SM its own half of the hidden columns, X read twice, and sums that meet: 576 KiB."""
    dag = ffn_dag(256, 128, 512, tile=(128, 128, 64), in_bytes=2, out_bytes=2)
    game = Game.from_dag(dag)
    half = -(-len(game.tasks) // 2)
    local = BufferModel("sm-local", 2)
    result = solve(game, 233_472, solver="heuristic", buffers=local, most_tasks_per_sm=half, time_limit=600)
    assert result.status == "optimal" and result.upper_bound == 576 * 1024
    assert result.proof == ("bound per split",) and result.upper_from == "heuristic, least split, row by row"

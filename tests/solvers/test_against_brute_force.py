"""Every solver against a search over all states, on random DAGs."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pebble.errors import InputError
from pebble.game import Game, Pebbling, Variant, minimum_capacity
from pebble.game.referee import replay
from pebble.solvers import solve
from pebble.solvers.lower import best_simple_bound
from tests.brute_force import brute_force
from tests.solvers import random_dags

WEIGHTED = st.booleans()
VARIANTS = st.sampled_from([v.value for v in Variant if v is not Variant.IN_PLACE])
CASES = st.one_of(
    st.tuples(WEIGHTED.flatmap(lambda w: random_dags.dags(8, w)), VARIANTS, st.integers(0, 2)),
    st.tuples(WEIGHTED.flatmap(lambda w: random_dags.cell_dags(w)), st.just("in-place"), st.integers(0, 2)),
)
FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
MANY = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def read(dag: nx.DiGraph, variant: str, extra: int) -> tuple[Game, int] | None:
    try:
        game = Game.from_dag(dag, variant)
    except InputError:  # a node that no output needs
        return None
    return game, minimum_capacity(game) + extra


def check(case: tuple[nx.DiGraph, str, int]) -> None:
    dag, variant, extra = case
    best = read(dag, variant, extra)
    if best is None:
        return
    game, capacity = best
    optimum = brute_force(dag, capacity, variant)
    assert best_simple_bound(game, capacity)[0] <= optimum
    for solver in ("heuristic", "cpsat", "milp"):
        if solver == "milp" and game.variant.recompute:
            continue
        result = solve(game, capacity, solver=solver, time_limit=3600)
        assert result.lower_bound <= optimum <= result.upper_bound, (solver, result)
        assert replay(game, result.pebbling).cost == result.upper_bound
        if solver != "heuristic" and not game.variant.recompute:
            assert result.status == "optimal"
    if not game.variant.recompute:
        check_bare_model(game, capacity, optimum)


def check_bare_model(game: Game, capacity: int, optimum: int) -> None:
    """CP-SAT without any bound, cut or start from elsewhere finds the same optimum."""
    from pebble.solvers.cpsat import new_solver
    from pebble.solvers.cpsat_oneshot import OneShotModel

    model = OneShotModel(game, capacity, windows=False)
    model.model.minimize(model.objective)
    solver = new_solver(seed=0, seconds=3600)
    assert solver.status_name(solver.solve(model.model)) == "OPTIMAL"
    assert round(solver.objective_value) == optimum
    moves = model.read(solver.boolean_value)
    assert replay(game, Pebbling(game.variant, capacity, moves, optimum)).cost == optimum


@FEW
@given(CASES)
def test_solvers_find_the_optimum(case):
    check(case)


@pytest.mark.slow
@MANY
@given(CASES)
def test_solvers_find_the_optimum_on_many(case):
    check(case)


@FEW
@given(random_dags.dags(7), st.integers(0, 1))
def test_relations_between_the_variants(dag, extra):
    best = read(dag, "one-shot", extra)
    if best is None:
        return
    capacity = best[1]
    cost = {
        (variant, s): brute_force(dag, s, variant)
        for variant in ("one-shot", "one-shot-sliding", "recompute")
        for s in (capacity, capacity + 1)
    }
    solved = {key: solve(dag, key[1], key[0], "cpsat", 10) for key in cost if key[0] != "recompute"}
    assert all(result.upper_bound == cost[key] for key, result in solved.items())
    assert cost["one-shot-sliding", capacity] >= cost["one-shot", capacity + 1]
    assert cost["one-shot-sliding", capacity] <= cost["one-shot", capacity]
    assert cost["recompute", capacity] <= cost["one-shot", capacity]
    assert cost["one-shot", capacity + 1] <= cost["one-shot", capacity]

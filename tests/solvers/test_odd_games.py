"""Odd games, every variant: all solvers and all general bounds against a search over all states.

Several outputs, isolated inputs, inputs that are outputs, cells that start in slow memory, weights. What no output
needs is refused everywhere alike. Seeds are parameters; the slow suite runs many more.
"""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import networkx as nx
import pytest

from pebble.bounds.dag import dag_bounds
from pebble.cdag.products import ffn_dag
from pebble.errors import InputError
from pebble.game import SINGLE, BufferModel, Game, Pebbling, Variant, minimum_capacity, moves_cost, replay
from pebble.solvers import solve
from pebble.solvers.lower import best_simple_bound, simple_bounds
from pebble.solvers.result import Problem
from pebble.solvers.several.play import play
from tests.brute_force import brute_force
from tests.certificate.oracle import least_cost, sensible
from tests.certificate.random_games import VARIANTS, as_dag, random_game
from tests.solvers.brute_force_several import brute_force_several

SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 200))]


def drawn(rnd: random.Random, variant: str, most: int = 5) -> tuple[dict[str, Any], nx.DiGraph[Any], Game]:
    """A game that makes sense, at a capacity that works."""
    while True:
        spec = random_game(rnd, variant, 0.0, rnd.randint(2, most))
        if not sensible(spec) or len(spec["tasks"]) > most + 1:
            continue
        dag = as_dag(spec)
        if dag is None:
            continue
        game = Game.from_dag(dag, variant)
        spec["capacity"] = minimum_capacity(game) + rnd.randrange(3)
        return spec, dag, game


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_solvers_and_bounds_against_all_states(variant: str, seed: int) -> None:
    rnd = random.Random(f"{variant} {seed}")
    spec, dag, game = drawn(rnd, variant)
    capacity = spec["capacity"]
    optimum = brute_force(dag, capacity, variant)
    assert optimum == least_cost(spec), spec
    assert game.compulsory <= best_simple_bound(game, capacity)[0] <= optimum, spec
    for bound in dag_bounds(game, capacity, seconds=3):
        assert bound.value is None or bound.value <= optimum, (bound, spec)
    for solver in ("heuristic", "search", "cpsat", "milp", "auto"):
        try:
            result = solve(game, capacity, solver=solver, time_limit=3600)
        except InputError:  # a solver for fewer games than these says so
            assert game.variant.recompute if solver == "milp" else set(game.weights) != {1}, (solver, spec)
            continue
        assert result.lower_bound <= optimum, (solver, spec)
        assert result.upper_bound is not None and result.pebbling is not None, (solver, spec)
        assert optimum <= result.upper_bound == replay(game, result.pebbling).cost, (solver, spec)
        if result.status == "optimal":
            assert result.lower_bound == optimum, (solver, spec)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("variant", ["one-shot", "in-place"])
def test_two_memories_against_all_states(variant: str, seed: int) -> None:
    rnd = random.Random(f"two {variant} {seed}")
    spec, dag, game = drawn(rnd, variant, 3)
    omega = Fraction(rnd.randrange(5), 2)
    for model in (BufferModel("sm-local", 2), BufferModel("pooled", 2), BufferModel("connected", 2, omega)):
        capacity = spec["capacity"]
        if model.kind == "pooled":
            optimum = least_cost({**spec, "capacity": 2 * capacity})
        else:
            optimum = brute_force_several(dag, capacity, 2, model.copy_cost)
        problem = Problem(game, model.memory_size(capacity), buffers=SINGLE if model.memories == 1 else model)
        for bound, name in simple_bounds(problem):
            assert Fraction(bound, model.omega.denominator) <= optimum, (name, model, spec)
        for solver in ("auto", "search"):
            if solver == "search" and model.kind == "pooled":
                continue
            result = solve(game, capacity, buffers=model, solver=solver, time_limit=3600)
            assert result.lower_bound <= optimum <= result.upper_bound, (solver, model, spec)
            assert result.status != "optimal" or result.lower_bound == optimum, (solver, model, spec)


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_no_output_needs_is_refused(variant: str) -> None:
    dag = nx.DiGraph([("a", "c"), ("b", "d")])
    dag.nodes["c"]["output"] = False
    with pytest.raises(InputError, match="no output"):
        Game.from_dag(dag, variant)
    with pytest.raises(InputError, match="no output"):
        solve(dag, 3, variant)
    with pytest.raises(ValueError, match="no output"):
        brute_force(dag, 3, variant)
    good = Game.from_dag(nx.DiGraph([("a", "c"), ("b", "d")]), variant)
    with pytest.raises(InputError, match="no output needs the value c"):
        Game(good.variant, good.names, good.weights, good.is_input, (False, False, False, True), good.tasks)


@pytest.mark.parametrize("seed", range(40))
def test_orders_are_played_whatever_numbers_values_have(seed: int) -> None:
    """A cell that is begun may come before what it is made of: there must be room for both."""
    rnd = random.Random(seed)
    game = Game.from_dag(ffn_dag(2, rnd.randint(1, 2), 2, gated=rnd.random() < 0.5))
    places = rnd.sample(range(game.size), game.size)
    new = {x: at for at, x in enumerate(places)}
    tasks = [
        task._replace(operands=tuple(sorted(new[x] for x in task.operands)), target=new[task.target])
        for task in game.tasks
    ]
    game = replace(
        game,
        names=tuple(game.names[x] for x in places),
        is_input=tuple(game.is_input[x] for x in places),
        is_output=tuple(game.is_output[x] for x in places),
        tasks=tuple(tasks),
    )
    buffers = BufferModel("connected", 2, Fraction(rnd.randint(0, 6), 4))
    phases = [[(t, rnd.randrange(2)) for t in range(len(game.tasks))]]
    moves = play(game, 3, buffers, phases)
    replay(game, Pebbling(game.variant, 3, moves, moves_cost(game, moves, buffers), buffers))


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_input_that_is_an_output_costs_nothing(variant: str) -> None:
    dag = nx.DiGraph([("a", "c")])
    dag.add_node("z")
    dag.nodes["a"]["output"] = True
    game = Game.from_dag(dag, variant)
    assert sum(game.is_input) == 2 and all(game.is_output)
    assert game.compulsory == brute_force(dag, 2, variant) == 2
    for bound in dag_bounds(game, 2):
        assert bound.value is None or bound.value <= 2
    for solver in ("heuristic", "search", "cpsat", "milp"):
        if solver != "milp" or not Variant(variant).recompute:
            assert solve(game, 2, solver=solver, time_limit=3600).upper_bound == 2

"""The search of games in general: brute force on random DAGs, known optima, and its bound along random play."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
import pytest

from pebble.cdag import (
    attention_dag,
    diamond_dag,
    dpgrid_dag,
    fft_dag,
    gemm_dag,
    matrix_chain_dag,
    stencil1d_dag,
    tree_dag,
)
from pebble.errors import InputError
from pebble.game import Game, minimum_capacity
from pebble.solvers.result import Incumbent, Problem
from pebble.solvers.search import dag_rules as rules
from pebble.solvers.search import solve_search
from pebble.solvers.search.dag_model import build_dag_model
from pebble.solvers.search.general import GeneralSearch
from tests.brute_force import brute_force

if TYPE_CHECKING:
    Dag = nx.DiGraph[Hashable]


def _solve(dag: Dag, variant: str, capacity: int, limit: float = 120.0) -> Incumbent:
    best = Incumbent(Problem(Game.from_dag(dag, variant), capacity), limit)
    solve_search(best)
    return best


def _random_dag(rng: random.Random, nodes: int) -> Dag:
    """Any DAG whose nodes all lead to an output; some inner nodes are outputs too."""
    dag: Dag = nx.DiGraph()
    for v in range(nodes):
        dag.add_node(f"v{v}")
        for u in rng.sample(range(v), min(v, rng.choice([0, 1, 2, 2, 3]))):
            dag.add_edge(f"v{u}", f"v{v}")
    for v in list(dag):
        if dag.out_degree(v) and dag.in_degree(v) and rng.random() < 0.15:
            dag.nodes[v]["output"] = True
    return dag


def _capacities(dag: Dag, variant: str) -> Iterator[int]:
    least = minimum_capacity(Game.from_dag(dag, variant))
    yield from range(least, least + 3)


@pytest.mark.parametrize("seed", range(12))
def test_against_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(4):
        dag = _random_dag(rng, rng.randint(4, 8))
        for variant in ("one-shot", "one-shot-sliding"):
            for capacity in _capacities(dag, variant):
                best = _solve(dag, variant, capacity)
                assert best.lower == best.upper == brute_force(dag, capacity, variant)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_against_brute_force_at_length(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        dag = _random_dag(rng, rng.randint(5, 10))
        for variant in ("one-shot", "one-shot-sliding"):
            for capacity in _capacities(dag, variant):
                best = _solve(dag, variant, capacity)
                assert best.lower == best.upper == brute_force(dag, capacity, variant)


def _random_cells(rng: random.Random) -> Dag:
    """Inputs, cells updated from them in any order, and a value or cell that reads finished cells."""
    dag: Dag = nx.DiGraph()
    inputs = [f"x{i}" for i in range(rng.randint(2, 4))]
    cells = [f"c{i}" for i in range(rng.randint(1, 3))]
    for c in cells:
        dag.add_node(c)
        if rng.random() < 0.2:
            dag.nodes[c]["initial"] = True
        for number in range(rng.randint(1, 3)):
            task = f"{c}t{number}"
            dag.add_node(task, accumulator=c)
            dag.add_edge(task, c)
            for x in rng.sample(inputs, rng.randint(1, 2)):
                dag.add_edge(x, task)
    if rng.random() < 0.7:
        read = rng.sample(cells, min(len(cells), rng.randint(1, 2)))
        for c in read:
            dag.add_edge(c, "y")
            if rng.random() < 0.3:
                dag.nodes[c]["output"] = True
        dag.add_edge(rng.choice(inputs), "y")
    return nx.DiGraph(dag.subgraph([v for v in dag if dag.degree(v)]))


@pytest.mark.parametrize("seed", range(12))
def test_cells_against_brute_force(seed: int) -> None:
    rng = random.Random(1000 + seed)
    for _ in range(4):
        dag = _random_cells(rng)
        for capacity in _capacities(dag, "in-place"):
            best = _solve(dag, "in-place", capacity)
            assert best.lower == best.upper == brute_force(dag, capacity, "in-place")


KNOWN = [
    (diamond_dag(4), "one-shot", 3, 14),
    (diamond_dag(5), "one-shot-sliding", 3, 10),
    (dpgrid_dag(4), "one-shot", 3, 26),
    (fft_dag(4), "one-shot-sliding", 2, 17),
    (fft_dag(8), "one-shot", 9, 18),
    (tree_dag(16), "one-shot", 4, 23),
    (stencil1d_dag(5, 4), "one-shot", 6, 14),
    (gemm_dag(2, 2, 2, form="chain"), "one-shot", 4, 17),
    (gemm_dag(2, 2, 2, form="separate"), "one-shot-sliding", 3, 17),
    (matrix_chain_dag((2, 2, 2, 2)), "in-place", 6, 18),
    (attention_dag(2, 2, 1, softmax="strict"), "in-place", 3, 22),
    (attention_dag(2, 2, 1, softmax="online"), "in-place", 3, 16),
    (attention_dag(2, 2, 2, softmax="online"), "in-place", 6, 19),
]


@pytest.mark.parametrize(("dag", "variant", "capacity", "optimum"), KNOWN)
def test_known_optima(dag: Dag, variant: str, capacity: int, optimum: int) -> None:
    best = _solve(dag, variant, capacity)
    assert (best.lower, best.upper) == (optimum, optimum)


@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 3, 2), (2, 2, 3)])
def test_both_searches_agree(shape: tuple[int, int, int]) -> None:
    game = Game.from_dag(gemm_dag(*shape), "in-place")
    for capacity in range(3, 7):
        own, general = (Incumbent(Problem(game, capacity), 60.0) for _ in range(2))
        solve_search(own)
        GeneralSearch(general).run()
        assert own.lower == own.upper == general.lower == general.upper


def test_bound_never_exceeds_what_a_play_still_pays() -> None:
    rng = random.Random(5)
    for variant in ("one-shot", "one-shot-sliding"):
        for dag in (fft_dag(8), diamond_dag(5), stencil1d_dag(5, 4)):
            game = Game.from_dag(dag, variant)
            for capacity in (minimum_capacity(game), minimum_capacity(game) + 2):
                model = build_dag_model(game, capacity)
                for _ in range(10):
                    _play_at_random(rng, model)


def _play_at_random(rng: random.Random, model: object) -> None:
    state = np.zeros(rules.WORDS, dtype=np.uint64)
    paid, seen = 0, []
    while (state[0].item().bit_count() + state[1].item().bit_count()) < model.tasks:  # type: ignore[attr-defined]
        seen.append((paid, int(rules.excess_bound(model, state, 1 << 20))))
        ready = [t for t in range(model.tasks) if rules.ready(model, state, t)]  # type: ignore[attr-defined]
        t = rng.choice(ready)
        operands = int(model.operands[t, 0]) | int(model.operands[t, 1]) << 64  # type: ignore[attr-defined]
        red = int(state[2]) | int(state[3]) << 64
        over = (red | operands).bit_count() + 1 - model.capacity  # type: ignore[attr-defined]
        source = -1
        if over > 0 and model.sliding:  # type: ignore[attr-defined]
            source = next(x for x in range(128) if operands >> x & 1)
            over -= 1
            if not rules.last_use(model, state, source, t):
                blue = not red >> source & 1 or rules.clean(model, state, source)
                paid += 1 if blue else 2
        others = [x for x in range(128) if (red & ~operands) >> x & 1]
        for x in rng.sample(others, max(0, over)):
            paid += 1 if rules.clean(model, state, x) else 2
            rules.drop(state, 2, x)
            rules.drop(state, 4, x)
        rules.perform(model, state, t, source)
    assert all(early + low <= paid for early, low in seen)


def test_what_it_does_not_take() -> None:
    with pytest.raises(InputError, match="128"):
        _solve(fft_dag(64), "one-shot", 3)
    heavy = nx.DiGraph([("a", "b")])
    heavy.nodes["a"]["weight"] = 2
    with pytest.raises(InputError, match="weights"):
        _solve(heavy, "one-shot", 4)


def test_the_time_is_kept() -> None:
    for _ in range(2):  # the first may compile
        best = _solve(stencil1d_dag(8, 7), "one-shot", 5, limit=1.0)
    assert best.lower >= 16
    assert best.seconds < 4

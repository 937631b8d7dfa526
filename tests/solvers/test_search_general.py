"""The search of games in general: brute force on random DAGs, known optima, and its bound along random play."""

from __future__ import annotations

import random
import threading
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
from pebble.solvers.search import ideals as tables
from pebble.solvers.search import solve_search
from pebble.solvers.search.dag_counts import _no_steps, count_game, counted_bound, place_of
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


@pytest.mark.parametrize(
    ("seed", "dags", "nodes"),
    [
        *((seed, 4, (4, 8)) for seed in range(12)),
        *(pytest.param(seed, 10, (5, 10), marks=pytest.mark.slow) for seed in range(100, 200)),
    ],
)
def test_against_brute_force(seed: int, dags: int, nodes: tuple[int, int]) -> None:
    rng = random.Random(seed)
    for _ in range(dags):
        dag = _random_dag(rng, rng.randint(*nodes))
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
                for _ in range(10):
                    _play_at_random(rng, game, capacity)


def _words(mask: int) -> tuple[np.uint64, np.uint64]:
    return np.uint64(mask & (1 << 64) - 1), np.uint64(mask >> 64)


def _play_at_random(rng: random.Random, game: Game, capacity: int) -> None:
    """Tasks in random order, victims at random, every item's excess counted by hand; the bound beside it."""
    model, ideals = build_dag_model(game, capacity), tables.make_ideals(1 << 12)
    counted = count_game(model, lambda: False)
    assert len(counted.values)
    count, paid = len(game.tasks), 0
    done, red, stored = set[int](), set[int](), {x for x in range(game.size) if game.is_input[x]}
    seen = []

    def needed(x: int) -> bool:
        return any(t not in done for t in (*game.uses[x], *game.updates[x]))

    def evict(x: int) -> None:
        nonlocal paid
        red.discard(x)
        if needed(x):
            paid += 1 if x in stored else 2
            stored.add(x)

    while len(done) < count:
        i = tables.ideal_of(model, ideals, *_words(sum(1 << t for t in done)))
        masks = [sum(1 << x for x in xs) for xs in (red, {x for x in range(game.size) if x in stored})]
        cheap = masks[1] | sum(1 << x for x in range(game.size) if game.is_output[x])
        bound = tables.bound_at(ideals.numbers, ideals.line_words, ideals.lines, i, _words(masks[0]), _words(cheap))
        place = place_of(counted, *_words(sum(1 << t for t in done)))
        seen.append(
            (
                paid,
                max(int(bound), int(counted_bound(counted.values, counted.dirty, place, len(red), len(red - stored)))),
            )
        )
        t = rng.choice([t for t in range(count) if t not in done and game.preds[t] <= done])
        operands, target = set(game.tasks[t].operands), game.tasks[t].target
        over = len(red | operands) + 1 - capacity
        slides = over > 0 and model.sliding
        for x in rng.sample(sorted(red - operands), max(0, over - slides)):
            evict(x)
        red |= operands
        done.add(t)
        if slides:
            evict(min(operands))
        red.add(target)
        if game.is_output[target]:
            stored.add(target)
        red = {x for x in red if needed(x)}
    assert all(early + low <= paid for early, low in seen)


def test_tasks_of_many_operands_do_not_ask_for_more_memory_than_there_is() -> None:
    """The steps of one kind of task grow with the square of its operands: fewer dirty items are told apart then."""
    dag = nx.DiGraph((f"x{i}", f"y{j}") for j in range(3) for i in range(10 * j, 80 + 10 * j))
    for variant in ("one-shot", "one-shot-sliding"):
        model = build_dag_model(Game.from_dag(dag, variant), 90)
        counted = count_game(model, lambda: False)
        assert len(counted.values)
        assert counted.dirty < 90
        assert _no_steps(model, counted.dirty).costs.size <= 1 << 24
    best = _solve(dag, "one-shot", 101)
    assert best.lower == best.upper == 103


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


def test_a_full_memory_leaves_what_was_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pebble.solvers.search.general.memory_allowance", lambda: 1 << 20)
    best = Incumbent(Problem(Game.from_dag(stencil1d_dag(8, 7), "one-shot"), 5), 120.0)
    why = GeneralSearch(best).run()
    assert why.startswith("memory limit")
    assert best.upper is not None
    assert 16 <= best.lower <= 71 <= best.upper  # 71 is the optimum


def test_a_request_to_stop_leaves_what_was_proved() -> None:
    stop = threading.Event()
    best = Incumbent(Problem(Game.from_dag(stencil1d_dag(8, 7), "one-shot"), 5), 120.0, stop)
    timer = threading.Timer(1.0, stop.set)
    timer.start()
    assert GeneralSearch(best).run() == "stopped"
    assert 16 <= best.lower <= 71


def test_no_pebbling_known_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The excess that a pass may look at has no limit then but that of the search."""
    monkeypatch.setattr(GeneralSearch, "_beam", lambda self, width, limit: None)
    best = Incumbent(Problem(Game.from_dag(stencil1d_dag(4, 4), "one-shot"), 4), 60.0)
    assert GeneralSearch(best).run() == "proved optimal"
    assert best.lower == best.upper

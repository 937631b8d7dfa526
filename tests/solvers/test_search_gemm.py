"""The search of the in-place GEMM: known optima, brute force, the table as a potential, canonical labels."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from pebble.cdag.products import gemm_dag
from pebble.game import Game, Pebbling, Variant
from pebble.game.referee import replay
from pebble.solvers import search
from pebble.solvers.gemm_shape import recognise
from pebble.solvers.result import Incumbent, Problem
from pebble.solvers.search import find_small_gemm, solve_search
from pebble.solvers.search import gemm_astar as rules
from pebble.solvers.search import gemm_table as tables
from pebble.solvers.search.gemm_model import (
    build_model,
    canonical_red,
    class_of,
    least_image,
    make_classes,
    move_products,
    permute_items,
    transpose_items,
)
from pebble.solvers.search.gemm_search import GemmSearch

# S = 3, 4, ... up to the compulsory cost
OPTIMA = {
    (2, 2, 2): [17, 14, 13, 12],
    (2, 2, 3): [25, 20, 19, 17, 16],
    (2, 3, 2): [25, 20, 18, 17, 16],
    (2, 2, 4): [33, 26, 25, 22, 20],
    (2, 3, 3): [37, 29, 27, 25, 23, 22, 21],
    (3, 3, 2): [37, 29, 27, 25, 23, 22, 21],
    (3, 3, 3): [55, 45, 39, 37, 35, 33, 31, 30, 29, 28, 27],
}


def move_items(model, g, red):
    """The image of a red set under symmetry g."""
    return permute_items(
        model, g & 255, (g >> 8) & 255, (g >> 16) & 255, transpose_items(model, red) if g >> 24 else red
    )


def _solve(m: int, n: int, k: int, capacity: int, limit: float = 120.0) -> Incumbent:
    game = Game.from_dag(gemm_dag(m, n, k), "in-place")
    best = Incumbent(Problem(game, capacity), limit)
    solve_search(best)
    return best


@pytest.mark.parametrize("shape", [s for s in OPTIMA if s != (3, 3, 3)])
def test_every_capacity(shape: tuple[int, int, int]) -> None:
    for capacity, optimum in enumerate(OPTIMA[shape], start=3):
        best = _solve(*shape, capacity)
        assert (best.lower, best.upper) == (optimum, optimum)


@pytest.mark.slow
@pytest.mark.parametrize("capacity", range(3, 14))
def test_27_products(capacity: int) -> None:
    best = _solve(3, 3, 3, capacity)
    assert best.lower == best.upper == OPTIMA[3, 3, 3][capacity - 3]


def test_transposed_problems_agree() -> None:
    for m, n, k in [(2, 3, 2), (1, 3, 2), (1, 4, 3), (2, 4, 1)]:
        for capacity in range(3, 8):
            assert _solve(m, n, k, capacity).upper == _solve(n, m, k, capacity).upper


def _cheapest_play(m: int, n: int, k: int, capacity: int) -> int:
    """The optimum by Dijkstra over single loads and evictions, with nothing of the search's normal form."""
    products = [((0, i, el), (1, el, j), (2, i, j)) for i in range(m) for j in range(n) for el in range(k)]
    start = (frozenset(), frozenset())
    cost = {start: 0}
    levels: dict[int, list[tuple[frozenset[int], frozenset[tuple[int, int, int]]]]] = {0: [start]}
    paid = 0
    while True:
        stack = levels.pop(paid, [])
        while stack:
            state = stack.pop()
            if cost[state] != paid:
                continue
            done, red = state
            if len(done) == len(products):
                return paid + m * n
            results = []
            for x in red:  # an unfinished accumulator is stored when it leaves
                left = [t for t, need in enumerate(products) if x in need and t not in done]
                results.append((int(x[0] == 2 and bool(left)), (done, red - {x})))
            for t, need in enumerate(products):
                if t in done:
                    continue
                missing = [x for x in need if x not in red]
                if not missing:
                    results.append((0, (done | {t}, red)))
                elif len(red) < capacity:
                    for x in missing:
                        touched = any(x in products[u] for u in done)
                        results.append((int(x[0] < 2 or touched), (done, red | {x})))
            for price, following in results:
                if paid + price < cost.get(following, 1 << 30):
                    cost[following] = paid + price
                    (stack if price == 0 else levels.setdefault(paid + price, [])).append(following)
        paid += 1


@pytest.mark.parametrize(
    "shape", [(1, 2, 2), (2, 2, 1), (1, 3, 2), (2, 3, 1), pytest.param((2, 2, 2), marks=pytest.mark.slow)]
)
def test_against_exhaustive_play(shape: tuple[int, int, int]) -> None:
    for capacity in range(3, 6):
        best = _solve(*shape, capacity)
        assert best.lower == best.upper == _cheapest_play(*shape, capacity)


def test_canonical_forms_are_the_same_for_all_images() -> None:
    rng = random.Random(7)
    for m, n, k in [(2, 3, 2), (3, 3, 2), (2, 2, 3)]:
        model, classes = build_model(m, n, k, 5), make_classes(1 << 12)
        everything = [
            a | b << 8 | c << 16 | flip << 24
            for a, b, c in itertools.product(*(range(len(p)) for p in (model.perm_i, model.perm_j, model.perm_l)))
            for flip in range(2 if model.square else 1)
        ]
        for _ in range(20):
            red = np.uint64(rng.getrandbits(model.items_count))
            done = np.uint64(rng.getrandbits(model.products_count))
            forms = set()
            for g in rng.sample(everything, min(12, len(everything))):
                image, image_done = np.uint64(move_items(model, g, red)), np.uint64(move_products(model, g, done))
                c, h = class_of(model, classes, image)
                forms.add((int(c), int(least_image(model, classes, c, h, image_done))))
                assert move_items(model, h, image) == classes.red[c]
            assert len(forms) == 1
            (c, _), kept = next(iter(forms)), np.empty(1 << 16, dtype=np.int32)
            _, _, count = canonical_red(model, classes.red[c], True, kept)
            fixing = [g for g in everything if move_items(model, g, classes.red[c]) == classes.red[c]]
            assert sorted(kept[:count].tolist()) == sorted(fixing)


def _search_with_table(m: int, n: int, k: int, capacity: int, detail: int) -> GemmSearch:
    game = Game.from_dag(gemm_dag(m, n, k), "in-place")
    best = Incumbent(Problem(game, capacity), 600.0)
    shape = recognise(game)
    assert shape is not None
    search = GemmSearch(best, shape)
    table = search._build_table(float("inf"), detail)
    assert table is not None
    search.table = table
    search.model = search.model._replace(detail=detail)
    return search


@pytest.mark.parametrize(("shape", "capacity"), [((2, 2, 2), 4), ((2, 3, 2), 5), ((2, 2, 3), 5), ((3, 3, 2), 4)])
@pytest.mark.parametrize("detail", [0, 1])
def test_table_is_a_consistent_bound_along_random_play(shape: tuple[int, int, int], capacity: int, detail: int) -> None:
    search = _search_with_table(*shape, capacity, detail)
    model, classes, t = search.model, search.classes, search.table
    rng = random.Random(3)
    full, log = (1 << model.products_count) - 1, np.empty((0, 2), dtype=np.uint64)

    def bound(done: int, red: int) -> int:
        if done == full:
            return 0
        c, g = class_of(model, classes, np.uint64(red))
        seen = tables.scope(model, np.uint64(red)) & (full & ~done)
        undone = np.uint64(least_image(model, classes, c, g, np.uint64(seen)))
        slot = t.nodes[tables.find_node(t.patterns, t.nodes, c, undone)]
        assert slot > 0, "every position has its entry"
        return int(rules.table_bound(model, classes, t, np.uint64(done), np.uint64(red), c, g))

    cells = (model.m + model.n) * model.k
    for _ in range(30):
        done, red, paid, spent = 0, 0, 0, [(0, bound(0, 0))]
        while done != full:
            product = rng.choice([p for p in range(model.products_count) if not done >> p & 1])
            need = int(model.needs[product])
            missing = need & ~red
            victims = [x for x in range(model.items_count) if red >> x & 1 and not need >> x & 1]
            rng.shuffle(victims)
            for x in victims[: max(0, missing.bit_count() + red.bit_count() - capacity)]:
                red &= ~(1 << x)
                paid += x >= cells
            for x in range(model.items_count):
                if missing >> x & 1:
                    paid += x < cells or bool(done & int(model.touches[x]))
            after, left, extra = rules.settle(model, np.uint64(done), np.uint64(red | need), log)
            done, red, paid = int(after), int(left), paid + int(extra)
            spent.append((paid, bound(done, red)))
        for (early, low), (late, high) in itertools.pairwise(spent):
            assert low <= late - early + high


def test_names_do_not_matter() -> None:
    game = Game.from_dag(gemm_dag(2, 3, 2), "in-place")
    shape = recognise(game)
    assert shape is not None
    assert sorted((shape.m, shape.n)) == [2, 3]
    assert shape.k == 2
    assert recognise(Game.from_dag(gemm_dag(2, 2, 2, accumulate=True), "in-place")) is None
    assert find_small_gemm(Game.from_dag(gemm_dag(2, 2, 2, in_bytes=2), "in-place")) is None


def test_the_moves_are_replayed_and_the_time_is_kept() -> None:
    for _ in range(2):  # the first may compile
        best = _solve(3, 3, 4, 7, limit=1.0)
    assert best.lower >= 34
    assert best.seconds < 4
    best = _solve(2, 3, 3, 5)
    assert best.pebbling is not None
    assert replay(best.problem.game, best.pebbling)
    assert isinstance(best.pebbling, Pebbling)


def test_compiling_says_for_which_games(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(search, "_compiled", set())
    monkeypatch.setattr(search, "_is_cold", lambda kind: True)
    monkeypatch.setattr(search, "_run", lambda kind, best: "done")
    best = Incumbent(Problem(Game.from_dag(gemm_dag(2, 2, 2), Variant.IN_PLACE), 4), 1.0)
    for kind in ("gemm", "gemm", "general", "recompute"):
        search._compile(kind, best)
    assert len(caplog.messages) == len(set(caplog.messages)) == 3
    assert "small GEMMs" in caplog.messages[0] and "without recomputation" in caplog.messages[1]

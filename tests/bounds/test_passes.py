"""The pass bound: its proof on played schedules, its arithmetic by brute force, against optima and schedules."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product
from math import exp

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pebble.bounds import pass_search
from pebble.bounds.pass_search import least_moves, lowest, pass_bound
from pebble.bounds.passes import Cutting, Grid, Run, by_cuts, crossings
from pebble.cdag import attention_dag
from pebble.errors import InfeasibleError
from pebble.families import accounting, lower_bound
from pebble.schedules.explicit.attention import best_attention_schedule
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.solvers import solve
from pebble.workloads import Attention, Ffn
from pebble.workloads.workload import Workload
from tests.rooms import in_values

Product = tuple[int, int, int, int]  # first or second, row, column, number
Value = tuple[str, int, int]

# the proof, step by step, on schedules


def uses(one: Product) -> tuple[Value, Value, Value]:
    kind, i, j, t = one
    return (("A", i, t), ("B", j, t), ("H", i, j)) if kind == 1 else (("H", i, j), ("D", j, t), ("Y", i, t))


def some_order(cells: list[tuple[int, int]], k: int, l: int, rnd: random.Random) -> list[Product]:
    """Products of a chain in an order that makes sense, or does not."""
    tall, wide = rnd.randint(1, 8), rnd.randint(1, 8)
    keys: list[Callable[[tuple[int, int]], object]] = [
        lambda cell: (cell[0] // tall, cell[1] // wide * (1 if cell[0] // tall % 2 else -1), cell),
        lambda cell: (cell[1] // wide, cell),
        lambda cell: (min(cell) // tall, cell[0] > cell[1], cell),
        lambda cell: cell[0] + rnd.random() * wide,
    ]
    cells = sorted(cells, key=rnd.choice(keys))
    results: list[Product] = []
    together = rnd.choice([1, 1, 2, 4, 9])
    for start in range(0, len(cells), together):
        block = cells[start : start + together]
        first = [(1, i, j, t) for i, j in block for t in range(k)]
        second = [(2, i, j, q) for i, j in block for q in range(l)]
        if rnd.random() < 0.5:
            rnd.shuffle(first)
            rnd.shuffle(second)
        results += first + second
    for at in range(len(results) - 1) if rnd.random() < 0.3 else ():
        single, other = results[at : at + 2]
        if single[1:3] != other[1:3]:
            results[at : at + 2] = other, single
    return results


def play(order: list[Product], capacity: int, rnd: random.Random) -> tuple[int, Counter[Value]]:
    """Moves of a legal schedule that does the products in this order, and how often each value is loaded."""
    uses_at: dict[Value, list[int]] = {}
    for number, item in enumerate(order):
        for value in uses(item):
            uses_at.setdefault(value, []).append(number)
    done, loads, moves = Counter[Value](), Counter[Value](), 0
    changed: dict[Value, bool] = {}  # what is in fast memory, and whether slow memory has it so
    clever = rnd.random() < 0.8

    def last_wanted(value: Value, now: int) -> float:
        weight = 2 if value[0] in "YH" else 1
        return (uses_at[value][done[value]] - now) / weight if clever else rnd.random()

    for number, item in enumerate(order):
        for value in uses(item):
            if value not in changed:
                if len(changed) >= capacity:
                    away = max((x for x in changed if x not in uses(item)), key=lambda x: last_wanted(x, number))
                    moves += changed.pop(away)
                again = value[0] in "ABD" or done[value] > 0
                moves, loads[value] = moves + again, loads[value] + again
                changed[value] = False
        for value in uses(item):
            done[value] += 1
            changed[value] |= value[0] == "Y" or (value[0] == "H" and item[0] == 1)
            if done[value] == len(uses_at[value]):
                moves += value[0] == "Y"
                del changed[value]
    return moves, loads


def cuts_of(order: list[Product], cutting: Cutting, products: int) -> int:
    """How often a schedule is cut."""
    cuts, seen, parts = 0, set[int](), Counter[tuple[int, int]]()
    for number, (_, i, j, _) in enumerate(order):
        parts[i, j] += 1
        if parts[i, j] == products:
            seen.add(i if cutting.by_rows else j)
        if len(seen) == cutting.vectors and number + 1 < len(order):
            cuts, seen, parts = cuts + 1, set(), Counter()
    return cuts


@pytest.mark.parametrize("seed", range(6))
def test_every_inequality_of_the_proof_on_schedules(seed: int) -> None:
    rnd, tight = random.Random(seed), 9.0
    for _ in range(60):
        k, l, m, f = rnd.choice([1, 1, 2]), rnd.choice([1, 1, 2]), rnd.randint(2, 12), rnd.randint(2, 12)
        causal = f >= m and rnd.random() < 0.3
        grid = Grid.causal(m, f, k, l, 1) if causal else Grid.full(m, k, f, l)
        cells = [(i, j) for i in range(m) for j in range(f) if not causal or j <= i + f - m]
        capacity = rnd.randint(3, max(m, f) * (k + l) + 4)
        order = some_order(cells, k, l, rnd)
        moves, loads = play(order, capacity, rnd)
        again = Counter[str]()
        for (kind, _, _), count in loads.items():
            again["BD" if kind in "BD" else kind] += count - (kind in "ABD") if kind != "H" else count > 0
        assert moves >= grid.compulsory + again["BD"] + again["A"] + 2 * again["Y"] + 2 * again["H"]
        for by_rows in (False, True):
            for vectors in range(grid.spare, (m if by_rows else f) + 1):
                cutting = Cutting(by_rows, vectors)
                least = by_cuts(grid, capacity, cutting)(cuts_of(order, cutting, k + l))
                sets = (("Y", least.y), ("A Y", least.ay), ("BD Y", least.by), ("A BD Y", least.all))
                for kinds, bound in sets:
                    if bound:
                        done = sum(again[kind] for kind in kinds.split()) + again["H"]
                        assert done >= bound, (grid, capacity, cutting, kinds)
                        tight = min(tight, done / bound)
        bound_of_all = pass_bound(grid, capacity)
        assert bound_of_all is None or bound_of_all.elements <= moves
    assert tight < 2.5  # the inequalities are not far from what happens


# arithmetic

runs = st.builds(Run, st.integers(1, 40), st.integers(0, 30), st.integers(0, 5), st.integers(1, 3))


@settings(deadline=None)
@given(st.lists(runs, max_size=3), st.integers(1, 60), st.integers(1, 20))
def test_gaps_of_lines_of_many_lengths(told: list[Run], spare: int, vectors: int) -> None:
    lengths = [run.first + run.step * i for run in told for i in range(run.lengths) for _ in range(run.times)]
    assert crossings(tuple(told), spare, vectors) == sum(max(0, n - spare) // vectors for n in lengths)


@pytest.mark.parametrize(("queries", "keys", "stacked"), [(5, 5, 1), (4, 9, 3), (1, 7, 2), (6, 6, 4)])
def test_lines_under_a_mask(queries: int, keys: int, stacked: int) -> None:
    grid = Grid.causal(queries, keys, 3, 2, stacked)
    cells = [(i, j) for i in range(queries) for j in range(keys) if j <= i + keys - queries]
    for axis, spec, times in ((0, grid.rows, 1), (1, grid.columns, stacked)):
        counted = sorted(times * n for n in Counter(cell[axis] for cell in cells).values())
        listed = [run.first + run.step * i for run in spec for i in range(run.lengths)]
        assert sorted(listed) == counted
    workload = Attention(queries, keys, 3, 2, heads=stacked, kv_heads=1, causal=True)
    assert grid.compulsory == workload.compulsory_elements
    assert accounting(workload).of(Grid) == (grid,)


@settings(deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=25), st.integers(0, 200))
def test_the_lowest_of_a_convex_function(falls: list[int], near: int) -> None:
    steps = [*sorted(-x for x in falls), *range(1, 40)]
    value = [sum(steps[:q]) + 40 * max(0, q - len(steps)) + 500 for q in range(3 * len(steps) + 9)]
    of = lambda at: value[at] if at < len(value) else value[-1] + 40 * (at - len(value) + 1)  # noqa: E731
    q = lowest(of)
    assert value[q] == min(value)
    assert lowest(of, near) == lowest(of, q) == lowest(of, q + 1) == q


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(8, 30), st.integers(8, 30), st.integers(4, 90), st.data())
def test_the_least_over_all_numbers_of_cuts(k: int, l: int, m: int, f: int, capacity: int, data: st.DataObject) -> None:
    grid = Grid.full(m, k, f, l)
    sizes = [(by_rows, size) for by_rows, n in ((False, f), (True, m)) for size in range(grid.spare, n + 1)]
    sizes = [(by_rows, size) for by_rows, size in sizes if size * (k + l) > capacity]
    assume(sizes)
    ways = [
        by_cuts(grid, capacity, Cutting(*data.draw(st.sampled_from(sizes))))
        for _ in range(data.draw(st.integers(1, 2)))
    ]
    if len(ways) == 1:
        brute = min(ways[0](q).moves for q in range(300))
    else:
        brute = min(ways[0](q).joined(ways[1](p)).moves for q, p in product(range(2 * (m + f)), repeat=2))
    result = least_moves(tuple(ways))
    assert result is not None
    assert result[0] == brute
    assert least_moves(tuple(ways), brute) is None


def test_segments_of_fewer_vectors_than_the_proof_allows() -> None:
    with pytest.raises(ValueError, match="zeta"):
        by_cuts(Grid.full(9, 2, 9, 2), 5, Cutting(False, 3))


# against optima and schedules


def all_bounds(grid: Grid, capacity: int) -> Iterable[int]:
    """With one way of cutting and with two, of every size."""
    ways = [
        by_cuts(grid, capacity, Cutting(by_rows, size))
        for by_rows, number, values in ((False, grid.f, grid.column), (True, grid.m, grid.row))
        for size in range(grid.spare, number + 1)
        if size * values > capacity
    ]
    for way in ways:
        for chosen in ((way,), *((way, other) for other in ways)):
            result = least_moves(chosen)
            assert result is not None
            yield grid.compulsory + result[0]


@pytest.mark.parametrize("shape", [(2, 3, 1), (4, 2, 1), (3, 3, 1), (2, 5, 1)])
def test_below_what_the_search_finds(shape: tuple[int, int, int]) -> None:
    queries, keys, d = shape
    dag, looked = attention_dag(queries, keys, d), 0
    for capacity in (4, 5, 7):
        answer = solve(dag, capacity, "in-place", "search", 2)  # what it finds is found early; the rest is its proof
        if answer.upper_bound is not None:
            for bound in all_bounds(Grid.full(queries, d, keys, d), capacity):
                looked += 1
                assert bound <= answer.upper_bound, (shape, capacity)
    assert looked


side = st.floats(0, 7).map(lambda x: int(exp(x)))
ratio = st.floats(-0.3, 3).map(exp)


@settings(deadline=None, max_examples=67)
@given(side, side, st.integers(1, 16), st.integers(1, 16), st.integers(1, 3), st.booleans(), ratio)
def test_below_every_attention_schedule(
    queries: int, keys: int, d: int, v: int, heads: int, causal: bool, passes: float
) -> None:
    keys = max(keys, queries) if causal else keys
    attention = Attention(queries, keys, d, v, heads=heads, kv_heads=1, causal=causal)
    capacity = max(2 * d + v + 6, int(max(heads * queries, keys) * (d + v) / passes))
    (grid,) = accounting(attention).of(Grid)
    bound = pass_bound(grid, capacity)
    try:
        best = in_values(best_attention_schedule, attention, capacity, state=False)
    except InfeasibleError:
        return
    assert bound is None or bound.elements <= best.elements


@settings(deadline=None, max_examples=60)
@given(side, st.integers(1, 16), side, st.integers(1, 16), st.booleans(), ratio)
def test_below_every_ffn_schedule(m: int, k: int, f: int, l: int, gated: bool, passes: float) -> None:
    ffn = Ffn(m, k, f, l, gated)
    capacity = max(8, int(max(m, f) * (k + l) / passes))
    bound = pass_bound(Grid.full(m, k, f, l, gated), capacity)
    assert bound is None or bound.elements <= in_values(best_ffn_schedule, ffn, capacity).elements


@settings(deadline=None, max_examples=100)
@given(side, side, st.integers(1, 8), st.booleans(), ratio, st.floats(0, 0.3))
def test_never_rises_with_the_capacity(
    queries: int, keys: int, d: int, causal: bool, passes: float, more: float
) -> None:
    keys = max(keys, queries) if causal else keys
    grid = Grid.causal(queries, keys, d, d, 1) if causal else Grid.full(queries, d, keys, d)
    capacity = max(3, int(2 * d * max(queries, keys) / passes))
    low, high = pass_bound(grid, capacity), pass_bound(grid, capacity + 1 + int(more * capacity))
    assert high is None or (low is not None and high.elements <= low.elements)


# what it is for


@pytest.mark.parametrize(
    ("workload", "capacity", "least"),
    [
        (Attention(32768, 32768, 128), 6 * 2**19, 29_294_592),  # 26,257,873 by lines; best schedule 32,866,816
        (Attention(32768, 32768, 64), 6 * 2**19, 10_452_992),  # 9,437,184; 11,563,136
        (Attention(131072, 131072, 128), 6 * 2**19, 384_121_344),  # 361,689,312; 401,776,896
        (Attention(8192, 8192, 128), 228 * 2**9, 38_283_776),  # 37,806,845; 41,607,424
        (Attention(65536, 65536, 128, causal=True), 6 * 2**19, 51_971_328),
        (Ffn(65536, 256, 65536), 6 * 2**19, 382_662_656),
    ],
)
def test_anchors(workload: Workload, capacity: int, least: int) -> None:
    bound = lower_bound(workload, capacity)
    assert bound.elements >= least
    assert bound.method == "pass accounting"


def test_only_where_nothing_is_computed_twice() -> None:
    attention = Attention(32768, 32768, 128)
    assert lower_bound(attention, 6 * 2**19, recompute=True).method != "pass accounting"
    assert pass_bound(Grid.full(8, 4, 8, 4), 9) is None  # vectors as long as there are many of them


def test_two_ways_of_huge_numbers_are_joined_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Down along one way and the other it would take millions of steps."""
    calls = 0
    real = pass_search.lowest

    def counted(value: Callable[[int], int], near: int = 0) -> int:
        nonlocal calls
        calls += 1
        return real(value, near)

    monkeypatch.setattr(pass_search, "lowest", counted)
    bound = pass_bound(Grid.full(1650947626, 4, 1190, 1), 2469)
    assert bound is None or bound.elements >= bound.grid.compulsory
    assert calls < 200_000

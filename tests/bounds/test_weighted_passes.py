"""The pass bound in bytes: against plays of a game of widths, against schedules, and the bound of values."""

from __future__ import annotations

import random
from collections import Counter
from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.bounds.pass_search import pass_bound
from pebble.bounds.passes import Grid
from pebble.errors import InfeasibleError
from pebble.families import accounting, family_of
from pebble.reports.bound import bound_workload
from pebble.workloads import Attention, Ffn
from pebble.workloads.widths import FastMemory, Widths
from pebble.workloads.workload import Workload
from tests.bounds.test_passes import Product, Value, all_bounds, some_order, uses

BF16, FP8 = Widths(2, 4, 4, 2), Widths(1, 4, 4, 2)
some_widths = st.builds(
    lambda w, more, w_o, yet: Widths(w, w + more, w_o + yet, w_o),
    st.integers(1, 4), st.integers(0, 4), st.integers(1, 4), st.integers(0, 4),
)  # fmt: skip


def strongest(m: int, k: int, f: int, l: int, widths: Widths, capacity: int) -> int:
    """The most bytes that any way of cutting, or any two, prove."""
    grid, unit = Grid.full(m, k, f, l).at(widths), widths.unit
    assert unit * grid.compulsory == widths.read * (m * k + k * f + f * l) + widths.written * m * l
    return unit * max(all_bounds(grid, capacity // unit), default=grid.compulsory)


def play(order: list[Product], widths: Widths, capacity: int, rnd: random.Random) -> int | None:
    """Bytes that a legal schedule moves which does the products in this order; None where one needs more room."""
    uses_at: dict[Value, list[int]] = {}
    for number, item in enumerate(order):
        for value in uses(item):
            uses_at.setdefault(value, []).append(number)
    firsts = Counter(("H", i, j) for kind, i, j, _ in order if kind == 1)
    updates, done = firsts + Counter(("Y", i, t) for kind, i, _, t in order if kind == 2), Counter[Value]()
    held: dict[Value, bool] = {}  # and whether slow memory has it as it is
    seen: set[Value] = set()
    traffic, clever = 0, rnd.random() < 0.8

    def width(value: Value) -> int:
        if value[0] in "ABD":
            return widths.read
        if done[value] < updates[value]:
            return widths.hidden if value[0] == "H" else widths.partial
        return widths.read if value[0] == "H" else widths.written

    def wanted(value: Value, now: int) -> float:
        later = [at for at in uses_at[value] if at >= now]
        return (later[0] - now) / width(value) if clever else rnd.random()

    for now, item in enumerate(order):
        needed = uses(item)
        for value in needed:
            if value in held:
                continue
            while sum(map(width, held)) + width(value) > capacity:
                others = [other for other in held if other not in needed]
                if not others:
                    return None
                out = max(others, key=lambda other: wanted(other, now))
                traffic += 0 if held.pop(out) else width(out)
            traffic += width(value) if value[0] in "ABD" or value in seen else 0
            held[value] = value[0] in "ABD" or value in seen
            seen.add(value)
        changed = needed[2]
        done[changed] += 1
        held[changed] = False
        for value in needed:
            if uses_at[value][-1] == now:
                traffic += width(value) if value[0] == "Y" else 0
                del held[value]
    return traffic


@pytest.mark.parametrize("seed", range(120))
def test_below_every_play(seed: int) -> None:
    rnd = random.Random(seed)
    m, f, k, l = rnd.randint(2, 14), rnd.randint(2, 14), rnd.choice([1, 1, 2]), rnd.choice([1, 1, 2])
    read, written = rnd.randint(1, 3), rnd.randint(1, 3)
    widths = rnd.choice([BF16, FP8, Widths(read, read + rnd.randint(0, 3), written + rnd.randint(0, 3), written)])
    order = some_order([(i, j) for i in range(m) for j in range(f)], k, l, rnd)
    capacity = rnd.randint(6, 12) + rnd.randint(0, max(m, f) * (widths.read * k + widths.partial * l))
    traffic = play(order, widths, capacity, rnd)
    if traffic is not None:
        assert strongest(m, k, f, l, widths, capacity) <= traffic


@pytest.mark.parametrize(("m", "f", "bands", "d"), [(60, 60, 3, 1), (40, 60, 4, 1), (80, 80, 4, 1), (60, 60, 3, 2)])
def test_row_panels_come_close(m: int, f: int, bands: int, d: int) -> None:
    """Columns stream past as many rows as there is room for; too wide an accumulator would be noticed."""
    panels = [range(start, start + m // bands) for start in range(0, m, m // bands)]
    order = [(kind, i, j, t) for rows in panels for j in range(f) for i in rows for kind in (1, 2) for t in range(d)]
    capacity = m // bands * d * (BF16.read + BF16.partial) + 2 * d * BF16.read + BF16.hidden
    traffic = min(play(order, BF16, capacity, random.Random(seed)) or 10**9 for seed in range(3))
    assert 0.8 * traffic < strongest(m, d, f, d, BF16, capacity) <= traffic
    assert strongest(m, d, f, d, Widths(2, 4, 8, 2), capacity) > traffic


side = st.floats(0, 7).map(lambda x: int(exp(x)))
ratio = st.floats(-0.3, 3).map(exp)


@settings(deadline=None, max_examples=33)
@given(side, side, st.integers(1, 16), st.integers(1, 16), st.booleans(), some_widths, ratio)
def test_below_every_attention_schedule(
    queries: int, keys: int, d: int, v: int, causal: bool, widths: Widths, passes: float
) -> None:
    workload = Attention(queries, max(keys, queries) if causal else keys, d, v, causal=causal)
    capacity = max(32, int(max(queries, keys) * (widths.read * d + widths.partial * v) / passes))
    (grid,) = accounting(workload).of(Grid)
    surely = widths.read * (queries * d + workload.keys * (d + v)) + widths.written * queries * v
    try:
        best = family_of(workload).best_schedule(workload, FastMemory(capacity, widths))
    except InfeasibleError:
        return
    bound = pass_bound(grid.at(widths), capacity)
    assert best is None or bound is None or surely <= bound.bytes <= best.bytes


@settings(deadline=None, max_examples=100)
@given(side, side, st.integers(1, 16), st.integers(1, 16), st.integers(1, 4), st.integers(3, 10**6))
def test_one_width_is_the_theorem_of_values(m: int, f: int, k: int, l: int, width: int, capacity: int) -> None:
    grid = Grid.full(m, k, f, l)
    plain, wide = pass_bound(grid, capacity), pass_bound(grid.at(Widths(width, width, width, width)), width * capacity)
    assert (plain is None) == (wide is None)
    if plain is not None and wide is not None:
        assert width * plain.elements == wide.bytes
        assert plain.products == wide.products == m * f * (k + l)


@settings(deadline=None, max_examples=100)
@given(side, side, st.integers(1, 9), some_widths, ratio, st.floats(0, 0.3))
def test_never_rises_with_the_capacity(
    queries: int, keys: int, d: int, widths: Widths, passes: float, more: float
) -> None:
    grid = Grid.full(queries, d, keys, d)
    capacity = max(9, int(2 * d * widths.partial * max(queries, keys) / passes))
    low, high = (
        pass_bound(grid.at(widths), free_capacity) for free_capacity in (capacity, capacity + 1 + int(more * capacity))
    )
    assert high is None or (low is not None and high.bytes <= low.bytes)


@pytest.mark.parametrize(
    ("workload", "cache", "least"),
    [
        (Attention(32768, 32768, 128), "6MiB", 79_101_952),  # 64,259,442 by lines; best schedule 95,770,624
        (Attention(32768, 32768, 64), "6MiB", 25_067_520),  # 18,874,368; 29,525,504
        (Attention(32768, 32768, 128, dtype="fp8", out_dtype="bf16"), "6MiB", 39_354_368),
        (Attention(65536, 65536, 128, causal=True), "6MiB", 137_815_296),
        (Ffn(65536, 256, 65536), "6MiB", 1_110_118_400),
    ],
)
def test_anchors(workload: Workload, cache: str, least: int) -> None:
    result = bound_workload(workload, cache=cache, accumulators="fp32")
    assert result.lower.method == "pass accounting in bytes"
    assert result.lower.bytes >= least
    assert result.upper is not None
    assert result.lower.bytes <= result.upper.bytes

"""The line bound: its logarithms, its inequalities, and the bound against optima, schedules and other games."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from itertools import product
from math import exp, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.bounds import LineProblem, Lines, line_bound
from pebble.bounds.line_search import best_mu
from pebble.bounds.lines import BITS, LOG_BITS, MULTIPLIER_BITS, Cut, entropy_below, ln_above, ln_below
from pebble.cdag import conv2d_dag, gemm_dag
from pebble.certificate.lines import BITS as CHECKER_BITS
from pebble.certificate.lines import entropy, logarithm, read_times
from pebble.families import accounting, lower_bound
from pebble.schedules.explicit import best_gemm_schedule
from pebble.solvers import solve
from pebble.workloads import Conv2d, Gemm
from tests.bounds.test_gemm import OPTIMA
from tests.rooms import in_values

ONE = 1 << MULTIPLIER_BITS
multipliers = st.floats(0.001, 4).map(lambda x: int(x * ONE))


def elements(problem: LineProblem, capacity: int, cut: Cut) -> int:
    """The bound that these numbers make."""
    return -((-problem.value(capacity, cut)[0]) >> BITS)


# logarithms and parts


@given(st.one_of(st.integers(1, 300), st.integers(1, 2**100)))
def test_logarithms_are_bounded_on_both_sides_twice(n: int) -> None:
    """The decimal one and the checker's series enclose the same number, tightly."""
    low, high = (Fraction(x, 1 << LOG_BITS) for x in (ln_below(n), ln_above(n)))
    series_low, series_high = (Fraction(x, 1 << CHECKER_BITS) for x in logarithm(n))
    assert low <= series_low <= series_high <= high
    assert high - low <= Fraction(3, 1 << LOG_BITS)
    assert series_high - series_low <= Fraction(1, 1 << (CHECKER_BITS - 20))
    assert float(low) == pytest.approx(log(n))


def test_the_series_adds_up() -> None:
    """ln of a product is the sum of the logarithms, within both sides."""
    rnd = random.Random(7)
    for _ in range(200):
        a, b = rnd.randint(2, 10**6), rnd.randint(2, 10**9)
        (al, ah), (bl, bh), (low, high) = logarithm(a), logarithm(b), logarithm(a * b)
        assert low <= ah + bh and al + bl <= high


@pytest.mark.parametrize("length", range(1, 8))
def test_parts_are_the_least(length: int) -> None:
    for parts in range(1, length + 1):
        splits = (c for c in product(range(1, length + 1), repeat=parts) if sum(c) == length)
        least = min(sum(x * log(x) for x in c) for c in splits)
        assert entropy_below(length, parts) / 2**LOG_BITS == pytest.approx(least)
        low, high = (x / 2**CHECKER_BITS for x in entropy(length, parts))
        assert low == pytest.approx(least) == high


@given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_lines_of_a_set_of_products(points: set[tuple[int, int, int]]) -> None:
    """Sum of c ln c over the lines of all directions is at most v ln v; equal for a box."""
    result = 0.0
    for axis in range(3):
        lines = Counter(point[:axis] + point[axis + 1 :] for point in points)
        result += sum(c * log(c) for c in lines.values())
    assert result <= len(points) * log(len(points)) + 1e-9


@settings(deadline=None)
@given(st.integers(1, 400), st.integers(1, 9), st.integers(1, 40), multipliers, multipliers)
def test_no_other_number_of_segments_is_charged_less(
    length: int, overlap: int, segments: int, mu: int, rho: int
) -> None:
    kind = Lines("A", 1, length, again=2, overlap=overlap)
    cut = Cut(segments, mu, rho)
    least, at = kind.least(cut)
    every = [kind.charge(cut, s) for s in range(1, kind.most(segments) + 1)]
    assert least <= min(every) <= kind.charge(cut, at) <= least + (1 << (BITS - 60))
    value, _ = kind.rough(segments, mu / ONE, rho / ONE)
    assert value == pytest.approx(least / 2**BITS, rel=1e-9)


# the bound


@settings(deadline=None, max_examples=100)
@given(st.sampled_from(sorted(OPTIMA)), st.integers(0, 12), st.integers(1, 27), st.floats(0.5, 1.5), multipliers)
def test_any_numbers_stay_below_the_optimum(
    shape: tuple[int, int, int], at: int, segments: int, off: float, rho: int
) -> None:
    optima, problem = OPTIMA[shape], LineProblem.product(*shape)
    segments = min(segments, problem.work)
    at = min(at, len(optima) - 1)
    mu = int(best_mu(problem, segments, rho / ONE)[1] * off * ONE)
    assert elements(problem, at + 3, Cut(segments, mu, rho)) <= optima[at]


@pytest.mark.parametrize("form", ["in-place", "chain", "separate"])
@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 2, 1), (1, 2, 3), (2, 2, 2)])
def test_below_the_optimum_of_every_game(shape: tuple[int, int, int], form: str) -> None:
    """Partial sums in place or each a value, products apart from sums, results that slide, and recomputation."""
    problem = LineProblem.product(*shape)
    variants = ("in-place",) if form == "in-place" else ("one-shot", "one-shot-sliding", "recompute-sliding")
    dag = gemm_dag(*shape, form=form)
    for capacity, variant in product(range(4, 9), variants):
        result = solve(dag, capacity, variant, "search", 2.0)
        assert result.upper_bound is not None
        for segments, rho in product(range(1, problem.work + 1), (0.5, 1.0, 1.5, 2.0)):
            mu = best_mu(problem, segments, rho)[1]
            assert elements(problem, capacity, Cut(segments, int(mu * ONE), int(rho * ONE))) <= result.upper_bound


@pytest.mark.parametrize("shape", [(2, 2, 2), (1, 2, 3), (2, 3, 2)])
def test_below_the_optimum_when_added_to(shape: tuple[int, int, int]) -> None:
    problem = LineProblem.product(*shape, (1, 1, 2))
    for capacity in (3, 4, 5, 6, 8):
        optimum = solve(gemm_dag(*shape, accumulate=True), capacity, "in-place", "search", 5.0)
        assert optimum.upper_bound is not None
        for segments, rho in product(range(1, problem.work + 1), (0.5, 1.0, 1.5, 2.0)):
            mu = best_mu(problem, segments, rho)[1]
            assert elements(problem, capacity, Cut(segments, int(mu * ONE), int(rho * ONE))) <= optimum.upper_bound


CONVOLUTIONS = [(1, 1, 1, 3, 3, 2, 1), (1, 1, 2, 2, 3, 2, 1), (1, 2, 1, 2, 3, 1, 1), (1, 1, 1, 5, 3, 3, 2)]


@pytest.mark.parametrize("shape", CONVOLUTIONS)
def test_below_the_optimum_of_a_convolution(shape: tuple[int, ...]) -> None:
    workload = Conv2d(*shape)
    (problem,) = accounting(workload).of(LineProblem)
    for capacity in (3, 4, 6, 8):
        result = solve(conv2d_dag(*shape[:6], stride=shape[6]), capacity, "in-place", "auto", 1.0)
        assert result.upper_bound is not None
        for segments, rho in product(range(1, min(problem.work, 16) + 1), (0.5, 1.0, 2.0)):
            mu = best_mu(problem, segments, rho)[1]
            assert elements(problem, capacity, Cut(segments, int(mu * ONE), int(rho * ONE))) <= result.upper_bound


small = st.integers(1, 6)


@settings(deadline=None)
@given(st.integers(1, 3), small, small, st.integers(0, 30), st.integers(0, 9), st.integers(1, 6), st.integers(1, 5))
def test_inputs_of_a_convolution_by_how_often_they_are_read(
    batch: int, ins: int, outs: int, more: int, wider: int, kernel: int, stride: int
) -> None:
    workload = Conv2d(batch, ins, outs, kernel + more, kernel + more + wider, kernel, stride)
    problems = accounting(workload).of(LineProblem)
    assert problems
    counted: Counter[int] = Counter()
    along = [Counter(o * stride + tap for o in range(side) for tap in range(kernel)) for side in workload.out_sides]
    for rows, columns in product(along[0].values(), along[1].values()):
        counted[rows * columns] += 1
    kinds = problems[0].kinds
    assert [(k.overlap, k.count) for k in kinds[:-2] if isinstance(k, Lines)] == [
        (pairs, batch * ins * positions) for pairs, positions in sorted(counted.items())
    ]
    assert read_times(workload.height, workload.width, kernel, stride) == sorted(counted.items())
    # each direction has all products
    assert sum(k.count * k.length for k in kinds[:-2] if isinstance(k, Lines)) == workload.multiply_adds


def test_anchors() -> None:
    """Of the catalogue: against 260,977,100 and 215,906,876 by segments in the first two."""
    for shape, mebibytes, least in (
        ((8192, 8192, 8192), 40, 273_200_000),
        ((8192, 8192, 8192), 72, 232_190_000),
        ((8192, 28672, 8192), 72, 702_490_000),
    ):
        bound = lower_bound(Gemm(*shape), mebibytes * 2**19)
        assert bound.elements >= least
        assert bound.method == "line accounting"


side = st.one_of(st.integers(1, 12), st.integers(1, 300), st.floats(0, 11).map(lambda x: int(exp(x))))


@settings(deadline=None, max_examples=60)
@given(side, side, side, st.floats(1.1, 16).map(lambda x: int(exp(x))), st.booleans())
def test_below_every_schedule(m: int, n: int, k: int, capacity: int, accumulate: bool) -> None:
    gemm = Gemm(m, n, k, accumulate=accumulate)
    (problem,) = accounting(gemm).of(LineProblem)
    assert line_bound(problem, capacity).elements <= in_values(best_gemm_schedule, gemm, capacity).elements


@settings(deadline=None)
@given(side, side, side, st.floats(1.1, 16).map(lambda x: int(exp(x))), st.floats(0, 0.5))
def test_never_rises_with_the_capacity(m: int, n: int, k: int, capacity: int, more: float) -> None:
    gemm = Gemm(m, n, k)
    assert lower_bound(gemm, capacity + 1 + int(more * capacity)).elements <= lower_bound(gemm, capacity).elements


@given(st.integers(1, 2**32), st.integers(1, 2**32), st.integers(1, 2**32), st.integers(3, 2**62))
@settings(deadline=None)
def test_any_size(m: int, n: int, k: int, capacity: int) -> None:
    bound = line_bound(LineProblem.product(m, n, k), capacity)
    assert 1 <= bound.segments <= m * n * k
    assert bound.elements <= m * n * k * 3

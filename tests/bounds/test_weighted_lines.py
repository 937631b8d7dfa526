"""The line bound in bytes: the charge of a cell by brute force, the bound against optima of games of widths."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil, exp, gcd, log

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pebble.bounds import Chain, LineProblem, Piece, line_bound
from pebble.bounds.chain_lines import Hidden, chain_problems, weighed_problems
from pebble.bounds.line_search import best_mu
from pebble.bounds.lines import BITS, LOG_BITS, MULTIPLIER_BITS, Cut
from pebble.certificate import RefusedError
from pebble.certificate.line_forms import Hidden as CheckedHidden
from pebble.families import accounting
from pebble.schedules.explicit.blocked import blocked_products
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.workloads import Ffn, Gemm
from pebble.workloads.widths import FastMemory, Widths
from pebble.workloads.workload import Workload
from tests.bounds.test_chain_lines import compositions
from tests.bounds.weighted_game import chain_game, product_game

ONE = 1 << MULTIPLIER_BITS
BF16, FP8 = Widths(2, 4, 4, 2), Widths(1, 4, 4, 2)
multipliers = st.floats(0.001, 4).map(lambda x: int(x * ONE))
rents = st.floats(1, 2).map(lambda x: int(x * ONE))
some_widths = st.builds(
    lambda w, more, w_o, yet: Widths(w, w + more, w_o + yet, w_o),
    st.integers(1, 4), st.integers(0, 4), st.integers(1, 4), st.integers(0, 4),
)  # fmt: skip


def chain_of(workload: Workload) -> Chain:
    chain = accounting(workload).chain
    assert chain is not None
    return chain


points = st.sets(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 4)), min_size=1)


@given(points, st.integers(1, 4), st.integers(1, 9), st.integers(1, 9))
def test_lines_of_a_set_of_weighted_products(found: set[tuple[int, int, int]], k: int, alpha: int, beta: int) -> None:
    """With alpha for the first k layers and beta for the others: at most W ln W for the whole work."""
    work = [(point, alpha if point[2] < k else beta) for point in found]
    total = 0.0
    for axis in range(3):
        lines: dict[tuple[int, ...], list[int]] = {}
        for point, weight in work:
            lines.setdefault(point[:axis] + point[axis + 1 :], []).append(weight)
        for line in lines.values():
            total += sum(line) * log(sum(line)) if axis == 2 else line[0] * len(line) * log(len(line))
    whole = sum(weight for _, weight in work)
    assert total <= whole * log(whole) + 1e-9


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.randoms(use_true_random=False))
def test_no_segment_has_more_than_the_longest(
    first: int, second: int, alpha: int, beta: int, rnd: random.Random
) -> None:
    """Cut any order of the products after the one with which a share of the work is reached."""
    work = [alpha] * first + [beta] * second
    rnd.shuffle(work)
    total = sum(work)
    for segments in range(1, total + 1):
        problem = LineProblem("chain", (), total, weights=(alpha, beta), multiply_adds=len(work))
        done, cut, sizes = 0, 0, []
        for number in range(1, segments + 1):
            before = done
            while done < -(-number * total // segments):
                done, cut = done + work[cut], cut + 1
            sizes.append(done - before)
        assert sum(sizes) == total
        assert max(sizes) <= problem.longest(segments)
        entropy = sum(size * log(size) for size in sizes if size)
        assert entropy <= problem.entropy_above(segments) / 2**LOG_BITS + 1e-9 or max(alpha, beta) == 1


# what a cell of H is charged


def lives(k: int, l: int, segments: int, w: int, partial: int) -> Iterator[tuple[list[int], int, int]]:
    """Every life of a cell: its products by segment, bytes moved, and bytes held over cuts, for each choice."""
    for first in compositions(k, segments):
        for second in compositions(l, segments):
            for shared in (False, True):
                if len(first) + len(second) - shared > segments:
                    continue
                counts = [*first[:-1], first[-1] + second[0], *second[1:]] if shared else [*first, *second]
                for held in product((False, True), repeat=len(counts) - 1):
                    widths = [partial if gap < len(first) - 1 else w for gap in range(len(held))]
                    out = [gap for gap, stays in enumerate(held) if not stays]
                    read = [gap for gap in out if gap >= len(first) - 1]
                    traffic = 2 * partial * (len(out) - len(read)) + w * (len(read) + bool(read))
                    yield counts, traffic, sum(x for x, stays in zip(widths, held, strict=True) if stays)


@settings(deadline=None, max_examples=80)
@given(
    st.integers(1, 5), st.integers(1, 5), st.integers(1, 6), st.integers(1, 4), st.integers(0, 8),
    st.one_of(st.floats(0, 9), st.floats(0, 9).map(lambda x: 1000 * x)), st.floats(1, 2),
)  # fmt: skip
def test_no_life_of_a_cell_is_cheaper(k: int, l: int, segments: int, w: int, more: int, mu: float, rho: float) -> None:
    least = min(
        traffic + rho * held + mu * sum(c * log(c) for c in counts)
        for counts, traffic, held in lives(k, l, segments, w, w + more)
    )
    charge, _ = Hidden("H", 1, k, l, w, w + more).least(Cut(segments, int(mu * ONE), int(rho * ONE)))
    assert charge / 2**BITS <= least * (1 + 1e-12) + 1e-9


@settings(deadline=None, max_examples=200)
@given(
    st.integers(1, 300), st.integers(1, 300), st.integers(1, 60), st.integers(1, 4), st.integers(0, 8),
    st.one_of(multipliers, multipliers.map(lambda x: 100 * x)), rents,
)  # fmt: skip
def test_the_checker_finds_the_same_charge(k: int, l: int, segments: int, w: int, more: int, mu: int, rho: int) -> None:
    charge, at = Hidden("H", 1, k, l, w, w + more).least(Cut(segments, mu, rho))
    checked = CheckedHidden(1, k, l, w, w + more)
    with_multipliers = Fraction(mu, ONE), Fraction(rho, ONE)
    spec = list(at) if isinstance(at, tuple) else at
    proved = checked.prove(spec, segments, *with_multipliers, "here")
    assert Fraction(charge, 1 << BITS) <= proved <= Fraction(charge, 1 << BITS) + Fraction(1, 10**9)
    wrong: list[object] = [at + 1, at - 1, 0] if isinstance(at, int) else [[at[0] + 1, at[1]], [at[0], at[1] + 1]]
    for other in wrong:
        with suppress(RefusedError):  # refused, or as good: it is never charged more
            assert checked.prove(other, segments, *with_multipliers, "here") <= proved + Fraction(1, 10**9)


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 60), multipliers, rents)
def test_a_cell_of_twice_the_width_is_charged_twice(k: int, l: int, segments: int, mu: int, rho: int) -> None:
    single = Hidden("H", 1, k, l).least(Cut(segments, mu, rho))[0]
    doubled = Hidden("H", 1, k, l, 2, 2).least(Cut(segments, 2 * mu, rho))[0]
    assert abs(doubled - 2 * single) < 1 << (BITS - 60)


@settings(deadline=None)
@given(
    st.integers(1, 99), st.integers(1, 99), st.integers(1, 60), multipliers, rents, st.integers(1, 4), st.integers(0, 4)
)
def test_a_wider_partial_sum_is_charged_no_less(
    k: int, l: int, segments: int, mu: int, rho: int, w: int, more: int
) -> None:
    cut = Cut(segments, mu, rho)
    narrow, wide = (Hidden("H", 1, k, l, w, w + x).least(cut)[0] for x in (more, more + 1))
    assert narrow <= wide + (1 << (BITS - 60))


def test_what_the_theorem_is_not_about() -> None:
    cut = Cut(5, ONE // 7, ONE)
    with pytest.raises(ValueError, match="no narrower"):
        Hidden("H", 1, 3, 3, 4, 2).least(cut)
    with pytest.raises(RefusedError, match="no narrower"):
        CheckedHidden(1, 3, 3, 4, 2).prove(1, 5, Fraction(1, 7), Fraction(1), "here")
    for rho in (Fraction(9, 10), Fraction(21, 10)):
        with pytest.raises(ValueError, match="from 1 to 2"):
            Hidden("H", 1, 3, 3, 1, 2).least(cut._replace(rho=int(rho * ONE)))
        with pytest.raises(RefusedError, match="from 1 to 2"):
            CheckedHidden(1, 3, 3, 1, 2).prove(1, 5, Fraction(1, 7), rho, "here")


# against optima of games of widths


def elements(problem: LineProblem, capacity: int, cut: Cut) -> int:
    """What these numbers prove, in units."""
    return ceil(Fraction(problem.value(capacity, cut)[0], 1 << BITS))


def moved(problem: LineProblem, widths: Widths, capacity: int, cut: Cut) -> int:
    """The bytes that these numbers prove."""
    unit = widths.unit
    return unit * elements(problem, capacity // unit, cut)


def no_cut_exceeds(problems: Sequence[LineProblem], widths: Widths, optima: dict[int, int], least_rho: float) -> None:
    """For every number of segments, several prices: never above what is possible."""
    assert optima
    for wide in problems:
        rnd = random.Random(wide.work)
        for segments, rho in product(range(1, min(wide.work, 24) + 1), (0.5, 0.8, 1.0, 1.1, 1.3, 1.6, 2.0)):
            if rho < least_rho:
                continue
            best = best_mu(wide, segments, rho)[1]
            for mu in (best, best * rnd.uniform(0.7, 1.4)):
                cut = Cut(segments, int(mu * ONE), int(rho * ONE))
                for capacity, optimum in optima.items():
                    assert moved(wide, widths, capacity, cut) <= optimum, (capacity, cut)


PRODUCTS = [(1, 1, 4), (1, 2, 2), (2, 2, 1), (2, 1, 3), (1, 2, 3)]
WIDTHS = [BF16, FP8, Widths(1, 1, 2, 1), Widths(4, 4, 4, 2), Widths(1, 1, 1, 1), Widths(2, 2, 8, 2), Widths(3, 3, 5, 2)]


@cache
def product_optima(shape: tuple[int, int, int], widths: Widths, added: bool) -> dict[int, int]:
    game, least = product_game(*shape, widths, added), 2 * widths.read + widths.partial
    result = {least + spare: game.least(least + spare) for spare in (0, 1, widths.read, widths.partial)}
    return {capacity: optimum for capacity, optimum in result.items() if optimum is not None}


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("shape", PRODUCTS)
def test_below_the_optima_of_products(shape: tuple[int, int, int], widths: Widths, added: bool) -> None:
    problem = LineProblem.product(*shape, (1, 1, 2 if added else 1)).at(widths)
    no_cut_exceeds((problem,), widths, product_optima(shape, widths, added), 0)


@pytest.mark.parametrize("widths", [BF16, FP8])
def test_below_the_optima_of_two_by_two_matrices(widths: Widths) -> None:
    no_cut_exceeds((LineProblem.product(2, 2, 2).at(widths),), widths, product_optima((2, 2, 2), widths, False), 0)


CHAINS = [(1, 1, 2, 1), (1, 2, 2, 1), (1, 1, 2, 2), (1, 2, 1, 2), (2, 1, 1, 2), (2, 2, 1, 1)]


def weighted(chain: Chain, widths: Widths) -> list[LineProblem]:
    return [problem for weights in ((1, 1), (1, 2), (3, 2)) for problem in chain_problems(chain, widths, weights)]


def chain_optima(shape: tuple[int, int, int, int], widths: Widths, spares: tuple[int, ...]) -> dict[int, int]:
    game, least = chain_game(*shape, widths), 2 * widths.read + max(widths.hidden, widths.partial)
    result = {least + spare: game.least(least + spare) for spare in spares}
    return {capacity: optimum for capacity, optimum in result.items() if optimum is not None}


@pytest.mark.parametrize("widths", [BF16, FP8, Widths(1, 2, 1, 1), Widths(1, 1, 2, 2), Widths(2, 6, 3, 2)])
@pytest.mark.parametrize("shape", CHAINS)
def test_below_the_optima_of_chains(shape: tuple[int, int, int, int], widths: Widths) -> None:
    m, k, f, l = shape
    problems = weighted(Chain(m, k, f, l, m * f), widths)
    no_cut_exceeds(problems, widths, chain_optima(shape, widths, (0, 1, 2, 4)), 1)


@pytest.mark.parametrize("widths", [BF16, FP8])
def test_below_the_optima_of_a_chain_of_four_cells(widths: Widths) -> None:
    problems = weighted(Chain(2, 1, 2, 1, 4), widths)
    no_cut_exceeds(problems, widths, chain_optima((2, 1, 2, 1), widths, (0, 2)), 1)


# against schedules, and the theorems of one width

side = st.one_of(st.integers(1, 12), st.floats(0, 8).map(lambda x: int(exp(x))))
sizes = st.floats(1.1, 15).map(lambda x: int(exp(x)))


@settings(deadline=None, max_examples=60)
@given(side, side, side, st.booleans(), some_widths, sizes)
def test_below_every_product_schedule(m: int, n: int, k: int, added: bool, widths: Widths, capacity: int) -> None:
    gemm = Gemm(m, n, k, accumulate=added)
    memory = FastMemory(2 * widths.read + widths.partial + capacity, widths)
    least = min(schedule.bytes for schedule in blocked_products(gemm, memory))
    for problem in accounting(gemm).of(LineProblem):
        assert line_bound(problem.at(widths), memory.bytes).bytes <= least


@settings(deadline=None, max_examples=20)
@given(side, side, side, side, st.booleans(), some_widths, sizes)
def test_below_every_chain_schedule(m: int, k: int, f: int, l: int, gated: bool, widths: Widths, capacity: int) -> None:
    ffn = Ffn(m, k, f, l, gated)
    memory = FastMemory(3 * max(widths.hidden, widths.partial) + capacity, widths)
    schedule = best_ffn_schedule(ffn, memory)
    for problem in weighed_problems(chain_of(ffn), widths):
        assert schedule is None or line_bound(problem, memory.bytes).bytes <= schedule.bytes


@settings(deadline=None, max_examples=60)
@given(side, side, side, st.integers(1, 4), st.integers(3, 10**6))
def test_one_width_is_the_theorem_of_values(m: int, n: int, k: int, width: int, capacity: int) -> None:
    """Number for number, and what does not fill a value holds none."""
    widths = Widths(width, width, width, width)
    for problem in (LineProblem.product(m, n, k), LineProblem.product(m, n, k, (1, 1, 2))):
        bound = line_bound(problem.at(widths), width * capacity + width - 1)
        assert bound.bytes == width * line_bound(problem, capacity).elements


@settings(deadline=None, max_examples=40)
@given(side, side, side, side, st.booleans(), st.integers(1, 4), st.integers(3, 10**6))
def test_one_width_is_the_theorem_of_chains(
    m: int, k: int, f: int, l: int, gated: bool, width: int, capacity: int
) -> None:
    """With the same numbers: as much, or more where many segments touch a cell."""
    ffn = Ffn(m, k, f, l, gated)
    wide = chain_problems(chain_of(ffn), Widths(width, width, width, width))
    for classic, same in zip(accounting(ffn).of(LineProblem), wide, strict=True):
        bound = line_bound(classic, capacity)
        assert elements(same, capacity, bound.cut) >= bound.elements


@settings(deadline=None, max_examples=60)
@given(side, side, side, some_widths, st.integers(9, 10**7), st.floats(0, 0.5))
def test_never_rises_with_the_capacity(m: int, n: int, k: int, widths: Widths, capacity: int, more: float) -> None:
    gemm = Gemm(m, n, k)
    problem = accounting(gemm)
    bounds = []
    for size in (capacity, capacity + 1 + int(more * capacity)):
        pieces = (piece.bound(size).bytes for piece in problem.of(Piece)[0].at(widths))
        bounds.append(max(*pieces, line_bound(problem.of(LineProblem)[0].at(widths), size).bytes))
    assert bounds[1] <= bounds[0] * (1 + 1e-6)


@settings(deadline=None, max_examples=60)
@given(side, side, side, some_widths, sizes, st.integers(1, 4))
@example(8, 148, 4, Widths(4, 4, 2, 2), 20, 1)
def test_wider_partial_sums_prove_no_less(m: int, n: int, k: int, widths: Widths, capacity: int, more: int) -> None:
    (problem,) = accounting(Gemm(m, n, k)).of(LineProblem)
    results = [
        line_bound(problem.at(replace(widths, partial=widths.partial + x)), capacity + 99).bytes for x in (0, more)
    ]
    # bytes are whole units of the greatest common divisor, in which S is rounded down: another one with another width
    room = capacity + 99
    rounded = room - room % gcd(widths.read, widths.partial, widths.written)
    assert results[0] <= results[1] * (room / rounded + 1e-4) + 4 * max(widths.read, widths.written)


def chain_bytes(ffn: Ffn, widths: Widths, capacity: int) -> int:
    """The most that the theorem proves."""
    return max(line_bound(problem, capacity).bytes for problem in weighed_problems(chain_of(ffn), widths))


def test_anchors() -> None:
    """Of the catalogue with accumulators in fp32: against 586,803,437, 4,307,324,180 and 1,934,620,543 by segments."""
    for workload, mebibytes, least in (
        (Gemm(8192, 8192, 8192), 40, 606_900_000),
        (Gemm(4096, 128256, 8192), 40, 4_617_000_000),
    ):
        assert line_bound(accounting(workload).of(LineProblem)[0].at(BF16), mebibytes * 2**20).bytes >= least
    for ffn, mebibytes, least in (
        (Ffn(8192, 4096, 11008), 6, 1_984_000_000),
        (Ffn(8192, 4096, 11008), 50, 518_000_000),  # 500,600,000 with products of one weight
        (Ffn(8192, 1600, 6400), 6, 335_000_000),  # 329,265,769 by segments
    ):
        assert chain_bytes(ffn, BF16, mebibytes * 2**20) >= least


def test_a_width_that_is_too_large_would_be_noticed() -> None:
    """Schedules are near enough: with partial sums, or complete outputs, at twice their width a bound is above one."""
    gemm, size = Gemm(2000, 2000, 2000), 2**16
    (problem,), narrow = accounting(gemm).of(LineProblem), Widths(2, 2, 2, 2)
    least = min(schedule.bytes for schedule in blocked_products(gemm, FastMemory(size, narrow)))
    assert line_bound(problem.at(narrow), size).bytes <= least
    assert line_bound(problem.at(replace(narrow, partial=4)), size).bytes > least
    ffn = Ffn(3000, 64, 3000, 64)
    schedule = best_ffn_schedule(ffn, FastMemory(size, narrow))
    assert schedule is not None
    assert chain_bytes(ffn, narrow, size) <= schedule.bytes
    wider = replace(narrow, hidden=8, partial=8)
    assert chain_bytes(ffn, wider, size) > schedule.bytes

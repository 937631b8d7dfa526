"""The line bound in bytes: the charge of a cell by brute force, the bound against optima of games of widths."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil, exp, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.bounds import Chain, Lines, Problem, line_bound
from pebble.bounds.chain_lines import Hidden, chain_problems, kernel_problems
from pebble.bounds.line_search import best_mu
from pebble.bounds.lines import BITS, PRICE_BITS, Cut
from pebble.bounds.wide_lines import WideHidden, line_bytes, problem_in_bytes, unit_of
from pebble.bounds.widths import best_use, chain_uses, product_uses
from pebble.bounds.box import Piece
from pebble.certificate import RefusedError
from pebble.certificate.wide_lines import WideHidden as CheckedHidden
from pebble.families import accounting, family_of
from pebble.schedules.explicit.wide_chain import best_in_bytes
from pebble.schedules.explicit.widths import gemm_schedules_in_bytes
from pebble.workloads import Attention, Conv2d, Ffn, Gemm
from pebble.workloads.widths import Room, Widths
from tests.bounds.test_chain_lines import compositions
from tests.bounds.wide_game import chain_game, product_game

ONE = 1 << PRICE_BITS
BF16, FP8 = Widths(2, 4, 4, 2), Widths(1, 4, 4, 2)
prices = st.floats(0.001, 4).map(lambda x: int(x * ONE))
rents = st.floats(1, 2).map(lambda x: int(x * ONE))
some_widths = st.builds(
    lambda w, more, w_o, yet: Widths(w, w + more, w_o + yet, w_o),
    st.integers(1, 4), st.integers(0, 4), st.integers(1, 4), st.integers(0, 4),
)  # fmt: skip


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
                    moved = 2 * partial * (len(out) - len(read)) + w * (len(read) + bool(read))
                    yield counts, moved, sum(x for x, stays in zip(widths, held, strict=True) if stays)


@settings(deadline=None, max_examples=80)
@given(
    st.integers(1, 5), st.integers(1, 5), st.integers(1, 6), st.integers(1, 4), st.integers(0, 8),
    st.one_of(st.floats(0, 9), st.floats(0, 9).map(lambda x: 1000 * x)), st.floats(1, 2),
)  # fmt: skip
def test_no_life_of_a_cell_is_cheaper(k: int, l: int, segments: int, w: int, more: int, mu: float, rho: float) -> None:
    least = min(
        moved + rho * held + mu * sum(c * log(c) for c in counts)
        for counts, moved, held in lives(k, l, segments, w, w + more)
    )
    charge, _ = WideHidden("H", 1, k, l, w, w + more).least(Cut(segments, int(mu * ONE), int(rho * ONE)))
    assert charge / 2**BITS <= least * (1 + 1e-12) + 1e-9


@settings(deadline=None, max_examples=200)
@given(
    st.integers(1, 300), st.integers(1, 300), st.integers(1, 60), st.integers(1, 4), st.integers(0, 8),
    st.one_of(prices, prices.map(lambda x: 100 * x)), rents,
)  # fmt: skip
def test_the_checker_finds_the_same_charge(k: int, l: int, segments: int, w: int, more: int, mu: int, rho: int) -> None:
    charge, at = WideHidden("H", 1, k, l, w, w + more).least(Cut(segments, mu, rho))
    checked = CheckedHidden(1, k, l, w, w + more)
    priced = Fraction(mu, ONE), Fraction(rho, ONE)
    told = list(at) if isinstance(at, tuple) else at
    proved = checked.prove(told, segments, *priced, "here")
    assert Fraction(charge, 1 << BITS) <= proved <= Fraction(charge, 1 << BITS) + Fraction(1, 10**9)
    wrong: list[object] = [at + 1, at - 1, 0] if isinstance(at, int) else [[at[0] + 1, at[1]], [at[0], at[1] + 1]]
    for other in wrong:
        with suppress(RefusedError):  # refused, or as good: it is never charged more
            assert checked.prove(other, segments, *priced, "here") <= proved + Fraction(1, 10**9)


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 60), prices, rents)
def test_at_one_width_a_cell_is_charged_as_without(k: int, l: int, segments: int, mu: int, rho: int) -> None:
    cut = Cut(segments, mu, rho)
    classic, wide = Hidden("H", 1, k, l).least(cut)[0], WideHidden("H", 1, k, l, 1, 1).least(cut)[0]
    assert classic <= wide <= classic + (1 << (BITS - 60))
    doubled = WideHidden("H", 1, k, l, 2, 2).least(Cut(segments, 2 * mu, rho))[0]
    assert abs(doubled - 2 * wide) < 1 << (BITS - 60)


@settings(deadline=None)
@given(st.integers(1, 99), st.integers(1, 99), st.integers(1, 60), prices, rents, st.integers(1, 4), st.integers(0, 4))
def test_a_wider_partial_sum_is_charged_no_less(
    k: int, l: int, segments: int, mu: int, rho: int, w: int, more: int
) -> None:
    cut = Cut(segments, mu, rho)
    narrow, wide = (WideHidden("H", 1, k, l, w, w + x).least(cut)[0] for x in (more, more + 1))
    assert narrow <= wide + (1 << (BITS - 60))


def test_what_the_theorem_is_not_about() -> None:
    cut = Cut(5, ONE // 7, ONE)
    with pytest.raises(ValueError, match="no narrower"):
        WideHidden("H", 1, 3, 3, 4, 2).least(cut)
    with pytest.raises(RefusedError, match="no narrower"):
        CheckedHidden(1, 3, 3, 4, 2).prove(1, 5, Fraction(1, 7), Fraction(1), "here")
    for rho in (Fraction(9, 10), Fraction(21, 10)):
        with pytest.raises(ValueError, match="from 1 to 2"):
            WideHidden("H", 1, 3, 3, 1, 2).least(cut._replace(rho=int(rho * ONE)))
        with pytest.raises(RefusedError, match="from 1 to 2"):
            CheckedHidden(1, 3, 3, 1, 2).prove(1, 5, Fraction(1, 7), rho, "here")


# against optima of games of widths


def moved(problem: Problem, widths: Widths, capacity: int, cut: Cut) -> int:
    """The bytes that these numbers prove."""
    unit = unit_of(widths)
    return unit * ceil(Fraction(problem.value(capacity // unit, cut)[0], 1 << BITS))


def no_cut_exceeds(problems: tuple[Problem, ...], widths: Widths, optima: dict[int, int], least_rho: float) -> None:
    """For every number of segments, several prices: never above what is possible."""
    assert optima
    for classic in problems:
        wide = problem_in_bytes(classic, widths)
        assert wide is not None
        rnd = random.Random(wide.work)
        for segments, rho in product(range(1, min(wide.work, 24) + 1), (0.5, 0.8, 1.0, 1.1, 1.3, 1.6, 2.0)):
            if rho < least_rho:
                continue
            best = best_mu(wide, segments, rho)[1]
            for mu in (best, best * rnd.uniform(0.7, 1.4)):
                cut = Cut(segments, int(mu * ONE), int(rho * ONE))
                for capacity, optimum in optima.items():
                    assert moved(wide, widths, capacity, cut) <= optimum, (capacity, cut)


PRODUCTS = [(1, 1, 4), (1, 2, 2), (2, 2, 1), (2, 1, 3), (1, 2, 3), (2, 2, 2)]
WIDTHS = [BF16, FP8, Widths(1, 1, 2, 1), Widths(4, 4, 4, 2), Widths(1, 1, 1, 1), Widths(2, 2, 8, 2), Widths(3, 3, 5, 2)]


@cache
def product_optima(shape: tuple[int, int, int], widths: Widths, added: bool) -> dict[int, int]:
    game, least = product_game(*shape, widths, added), 2 * widths.read + widths.partial
    found = {least + spare: game.least(least + spare) for spare in (0, 1, widths.read, widths.partial)}
    return {capacity: optimum for capacity, optimum in found.items() if optimum is not None}


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("shape", PRODUCTS)
def test_below_the_optima_of_products(shape: tuple[int, int, int], widths: Widths, added: bool) -> None:
    problem = Problem.product(*shape, (1, 1, 2 if added else 1))
    no_cut_exceeds((problem,), widths, product_optima(shape, widths, added), 0)


CHAINS = [(1, 1, 2, 1), (1, 2, 2, 1), (1, 1, 2, 2), (1, 2, 1, 2), (2, 1, 1, 2), (2, 2, 1, 1), (2, 1, 2, 1)]


@pytest.mark.parametrize("widths", [BF16, FP8, Widths(1, 2, 1, 1), Widths(1, 1, 2, 2), Widths(2, 6, 3, 2)])
@pytest.mark.parametrize("shape", CHAINS)
def test_below_the_optima_of_chains(shape: tuple[int, int, int, int], widths: Widths) -> None:
    m, k, f, l = shape
    game, least = chain_game(*shape, widths), 2 * widths.read + max(widths.hidden, widths.partial)
    found = {least + spare: game.least(least + spare) for spare in (0, 1, 2, 4)}
    optima = {capacity: optimum for capacity, optimum in found.items() if optimum is not None}
    no_cut_exceeds(chain_problems(Chain(m, k, f, l, m * f)), widths, optima, 1)

"""Equation (2): against known optima, replayed schedules, published counter-examples and itself."""

import time
from math import isqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pebble.bounds.gemm import segment_bound_elements
from pebble.bounds.segments import touched_whole

from pebble.bounds import gemm_lower_bound, judge, published_gemm_bounds
from pebble.bounds.published import words_per_processor
from pebble.errors import InfeasibleError
from pebble.schedules.explicit import best_gemm_schedule
from pebble.workloads import Gemm

# Proven optima of the in-place game, S = 3, 4, 5, ... (by exhaustive search with two solvers)
OPTIMA = {
    (2, 2, 2): (17, 14, 13, 12),
    (2, 2, 3): (25, 20, 19, 17, 16),
    (2, 2, 4): (33, 26, 25, 22, 20),
    (2, 3, 3): (37, 29, 27, 25, 23, 22, 21),
    (3, 3, 2): (37, 29, 27, 25, 23, 22, 21),
    (2, 3, 4): (49, 38, 35, 33, 31, 28, 26),
    (3, 3, 3): (55, 45, 39, 37, 35, 33, 31, 30, 29, 28, 27),
}


def almost_closed_form(gemm: Gemm, capacity: int) -> int:
    """2 V / sqrt S less one segment's worth, and less what shares of whole multiply-adds can lose against it."""
    closed = isqrt(4 * gemm.multiply_adds**2 // capacity)
    return closed - capacity - closed // 10**9 - closed // (10 * capacity)


@pytest.mark.parametrize("shape", OPTIMA)
def test_never_above_the_optimum(shape: tuple[int, int, int]) -> None:
    for capacity, optimum in enumerate(OPTIMA[shape], start=3):
        assert gemm_lower_bound(Gemm(*shape), capacity).elements <= optimum
        assert best_gemm_schedule(Gemm(*shape), capacity).elements >= optimum
    assert gemm_lower_bound(Gemm(*shape), 1000).elements == OPTIMA[shape][-1]


def test_anchors() -> None:
    assert gemm_lower_bound(Gemm(8192, 8192, 8192), 20_971_520).elements >= 260_977_096
    fits = gemm_lower_bound(Gemm(4096, 4096, 4096), 20_971_520)
    assert (fits.elements, fits.bytes, fits.method) == (50_331_648, 100_663_296, "compulsory")
    assert gemm_lower_bound(Gemm(4096, 4096, 4096), 3_145_728).elements >= 80_600_000


# (m, n, k, S) and what a legal schedule of C := A B costs there: several published formulas say more
COUNTER_EXAMPLES = [
    (400, 400, 10, 400, 212_000),
    (300, 300, 1, 100, 92_400),
    (300, 300, 4, 400, 96_000),
    (240, 240, 16, 400, 103_680),
]


@pytest.mark.parametrize(("m", "n", "k", "capacity", "cost"), COUNTER_EXAMPLES)
def test_counter_examples(m: int, n: int, k: int, capacity: int, cost: int) -> None:
    gemm = Gemm(m, n, k)
    lower = gemm_lower_bound(gemm, capacity).elements
    upper = best_gemm_schedule(gemm, capacity).elements
    assert lower <= upper <= cost
    judged = {b.name: b for b in (judge(f, lower, upper) for f in published_gemm_bounds(gemm, capacity))}
    assert judged["cosma"].status == "refuted_here"
    assert judged["cosma"].elements > cost
    assert judged["compulsory"].status == judged["irony-toledo-tiskin"].status == "proven"


def test_smith_is_its_own_theorem_only_when_c_is_read() -> None:
    (smith,) = (f for f in published_gemm_bounds(Gemm(64, 64, 64), 100) if f.name == "smith-et-al")
    assert not smith.holds
    (smith,) = (f for f in published_gemm_bounds(Gemm(64, 64, 64, accumulate=True), 100) if f.name == "smith-et-al")
    assert smith.holds
    assert smith.elements == 2 * 64**3 // 10 - 200


small = st.integers(1, 12)
medium = st.integers(1, 200)


@settings(max_examples=60, deadline=None)
@given(small, small, small, st.integers(3, 80))
def test_every_number_of_segments_is_covered_on_small_shapes(m: int, n: int, k: int, capacity: int) -> None:
    work = m * n * k
    best = max(
        sum(touched_whole(work // h + (s < work % h), m, n, k) for s in range(h)) - (h - 1) * capacity
        for h in range(1, work + 1)
    )
    assert segment_bound_elements(m, n, k, capacity)[0] == max(best, 0)


@settings(deadline=None)
@given(medium, medium, medium, st.integers(3, 20_000), st.booleans())
def test_below_every_schedule_and_near_the_closed_form(m: int, n: int, k: int, capacity: int, accumulate: bool) -> None:
    gemm = Gemm(m, n, k, accumulate=accumulate)
    lower = gemm_lower_bound(gemm, capacity)
    upper = best_gemm_schedule(gemm, capacity)
    assert lower.elements <= upper.elements
    assert lower.bytes <= upper.bytes
    assert lower.elements >= gemm.compulsory_elements
    if not accumulate:
        assert lower.elements >= almost_closed_form(gemm, capacity)


@settings(deadline=None)
@given(medium, medium, medium, st.integers(3, 5000), st.integers(1, 200))
def test_falls_as_capacity_grows(m: int, n: int, k: int, capacity: int, more: int) -> None:
    gemm = Gemm(m, n, k)
    assert gemm_lower_bound(gemm, capacity).elements >= gemm_lower_bound(gemm, capacity + more).elements


@given(medium, medium, medium, st.integers(3, 5000))
def test_transposing_changes_nothing(m: int, n: int, k: int, capacity: int) -> None:
    assert segment_bound_elements(m, n, k, capacity) == segment_bound_elements(n, m, k, capacity)


@settings(deadline=None)
@given(medium, medium, medium, st.integers(3, 5000), st.sampled_from(["bf16", "fp32", "fp8"]),
       st.sampled_from(["bf16", "fp32", "fp8"]))  # fmt: skip
def test_bytes_with_mixed_widths(m: int, n: int, k: int, capacity: int, dtype: str, out: str) -> None:
    gemm = Gemm(m, n, k, dtype, out)
    lower = gemm_lower_bound(gemm, capacity)
    assert gemm.compulsory_bytes <= lower.bytes <= best_gemm_schedule(gemm, capacity).bytes


@pytest.mark.parametrize("shape", [(2**20, 2**20, 2**20), (2**20, 1, 2**20), (1, 2**20, 1), (2**20, 2**20, 1)])
@pytest.mark.parametrize("capacity", [3, 4, 1000, 2**20, 2**28, 2**41])
def test_edge_of_the_range(shape: tuple[int, int, int], capacity: int) -> None:
    gemm = Gemm(*shape)
    lower, upper = gemm_lower_bound(gemm, capacity), best_gemm_schedule(gemm, capacity)
    assert gemm.compulsory_elements <= lower.elements <= upper.elements
    assert lower.elements >= almost_closed_form(gemm, capacity)


def test_capacity_below_three_is_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="at least 3"):
        gemm_lower_bound(Gemm(2, 2, 2), 2)


def test_parallel_regimes() -> None:
    # D - (mn + mk + nk)/P of Al Daas et al. by hand, m >= n >= k
    assert words_per_processor(1000, 10, 10, 4) == ((10000 + 10000) // 4 + 100 - -(-20100 // 4), 1)
    assert words_per_processor(100, 100, 10, 25) == (400 + 400 - 480, 2)
    assert words_per_processor(64, 64, 64, 64) == (3 * 256 - 192, 3)
    assert words_per_processor(64, 10, 64, 64) == words_per_processor(10, 64, 64, 64)


def test_fast_enough_to_be_asked_interactively() -> None:
    # not a benchmark: a hundredfold margin that only an accidental loop over the work can break
    start = time.perf_counter()
    gemm_lower_bound(Gemm(2**20 - 1, 2**20 - 3, 2**20 - 5), 12_345)
    assert time.perf_counter() - start < 5

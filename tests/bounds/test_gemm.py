"""The bound of a GEMM: against known optima, replayed schedules and itself."""

from math import isqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.errors import InfeasibleError
from pebble.families import lower_bound
from pebble.schedules.explicit import best_gemm_schedule
from pebble.workloads import Gemm
from tests.rooms import in_values

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
        assert lower_bound(Gemm(*shape), capacity).elements <= optimum
        assert in_values(best_gemm_schedule, Gemm(*shape), capacity).elements >= optimum
    assert lower_bound(Gemm(*shape), 1000).elements == OPTIMA[shape][-1]


def test_anchors() -> None:
    assert lower_bound(Gemm(8192, 8192, 8192), 20_971_520).elements >= 260_977_096
    fits = lower_bound(Gemm(4096, 4096, 4096), 20_971_520)
    assert (fits.elements, fits.bytes, fits.method) == (50_331_648, 100_663_296, "compulsory")
    assert lower_bound(Gemm(4096, 4096, 4096), 3_145_728).elements >= 80_600_000


medium = st.integers(1, 200)


@settings(max_examples=33, deadline=None)
@given(medium, medium, medium, st.integers(3, 20_000), st.booleans())
def test_below_every_schedule_and_near_the_closed_form(m: int, n: int, k: int, capacity: int, accumulate: bool) -> None:
    gemm = Gemm(m, n, k, accumulate=accumulate)
    lower = lower_bound(gemm, capacity)
    upper = in_values(best_gemm_schedule, gemm, capacity)
    assert lower.elements <= upper.elements
    assert lower.bytes <= upper.bytes
    assert lower.elements >= gemm.compulsory_elements
    if not accumulate:
        assert lower.elements >= almost_closed_form(gemm, capacity)


@settings(deadline=None)
@given(medium, medium, medium, st.integers(3, 5000), st.integers(1, 200))
def test_falls_as_capacity_grows(m: int, n: int, k: int, capacity: int, more: int) -> None:
    gemm = Gemm(m, n, k)
    assert lower_bound(gemm, capacity).elements >= lower_bound(gemm, capacity + more).elements


@settings(max_examples=33, deadline=None)
@given(medium, medium, medium, st.integers(3, 5000), st.sampled_from(["bf16", "fp32", "fp8"]),
       st.sampled_from(["bf16", "fp32", "fp8"]))  # fmt: skip
def test_bytes_with_mixed_widths(m: int, n: int, k: int, capacity: int, dtype: str, out: str) -> None:
    gemm = Gemm(m, n, k, dtype, out)
    lower = lower_bound(gemm, capacity)
    assert gemm.compulsory_bytes <= lower.bytes <= in_values(best_gemm_schedule, gemm, capacity).bytes


@pytest.mark.parametrize("shape", [(2**20, 2**20, 2**20), (2**20, 1, 2**20), (1, 2**20, 1), (2**20, 2**20, 1)])
@pytest.mark.parametrize("capacity", [3, 4, 1000, 2**20, 2**28, 2**41])
def test_edge_of_the_range(shape: tuple[int, int, int], capacity: int) -> None:
    gemm = Gemm(*shape)
    lower, upper = lower_bound(gemm, capacity), in_values(best_gemm_schedule, gemm, capacity)
    assert gemm.compulsory_elements <= lower.elements <= upper.elements
    assert lower.elements >= almost_closed_form(gemm, capacity)


def test_capacity_below_three_is_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="at least 3"):
        lower_bound(Gemm(2, 2, 2), 2)

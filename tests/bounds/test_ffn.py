"""FFN bounds: against exact optima, replayed schedules, the numbers that were set as targets, and each other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.bounds import Piece
from pebble.cdag.products import ffn_dag
from pebble.errors import InfeasibleError
from pebble.families import accounting, lower_bound
from pebble.families.ffn import FFN
from pebble.schedules.explicit.ffn import best_ffn_schedule, ffn_schedules
from pebble.workloads import Ffn
from tests.brute_force import brute_force
from tests.rooms import in_values

side = st.integers(1, 12)
# Proven optima of E = (A B) D, all 2 x 2, S = 3, 4, ...
CHAIN_OF_TWOS = (33, 24, 22, 18, 16)
MIB = 2**19  # values of two bytes


@settings(max_examples=20, deadline=None)
@given(side, side, side, side, st.booleans(), st.integers(3, 60))
def test_below_every_schedule(m: int, k: int, f: int, l: int, gated: bool, capacity: int) -> None:
    ffn = Ffn(m, k, f, l, gated)
    bound = lower_bound(ffn, capacity)
    schedules = in_values(ffn_schedules, ffn, capacity)  # replayed in tests/schedules
    assert bound.elements <= min(s.elements for s in schedules)
    unfused = next(s for s in schedules if s.family == "unfused")
    assert bound.elements <= FFN.separate_bound(ffn, capacity).elements <= unfused.elements
    assert lower_bound(ffn, capacity, recompute=True).elements <= bound.elements


@settings(max_examples=60, deadline=None)
@given(side, side, side, side, st.booleans(), st.booleans(), st.integers(3, 200))
def test_falls_with_capacity(m: int, k: int, f: int, l: int, gated: bool, recompute: bool, capacity: int) -> None:
    ffn = Ffn(m, k, f, l, gated)
    more = lower_bound(ffn, capacity + 1, recompute).elements
    assert ffn.compulsory_elements <= more <= lower_bound(ffn, capacity, recompute).elements
    assert FFN.separate_bound(ffn, capacity + 1).elements <= FFN.separate_bound(ffn, capacity).elements
    assert lower_bound(ffn, 10**6, recompute).elements == ffn.compulsory_elements


@settings(max_examples=60, deadline=None)
@given(side, side, side, side, st.integers(3, 60))
def test_gated_is_more_than_its_gate(m: int, k: int, f: int, l: int, capacity: int) -> None:
    gated, plain = Ffn(m, k, f, l, gated=True), Ffn(m, k, f, l)
    assert lower_bound(gated, capacity).elements >= lower_bound(plain, capacity).elements + k * f


def test_below_the_optima_of_two_by_two_matrices() -> None:
    ffn = Ffn(2, 2, 2, 2)
    for capacity, optimum in enumerate(CHAIN_OF_TWOS, start=3):
        assert lower_bound(ffn, capacity).elements <= optimum <= in_values(best_ffn_schedule, ffn, capacity).elements
    assert lower_bound(ffn, 7).elements == 16


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 1, 1, 1), (1, 1, 2, 1), (1, 2, 1, 1), (1, 1, 1, 2)])
def test_below_brute_force(shape: tuple[int, int, int, int]) -> None:
    ffn, dag = Ffn(*shape), ffn_dag(*shape)
    for capacity in (3, 4):
        optimum = brute_force(dag, capacity, "in-place")
        assert optimum is not None
        assert lower_bound(ffn, capacity).elements <= optimum <= in_values(best_ffn_schedule, ffn, capacity).elements


def test_gated_below_brute_force() -> None:
    ffn, dag = Ffn(1, 1, 1, 1, gated=True), ffn_dag(1, 1, 1, 1, gated=True)
    for capacity in (3, 4):
        optimum = brute_force(dag, capacity, "in-place")
        assert optimum is not None
        assert lower_bound(ffn, capacity).elements <= optimum <= in_values(best_ffn_schedule, ffn, capacity).elements


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 1, 1, 1), (1, 1, 1, 2)])
def test_below_brute_force_with_recomputation(shape: tuple[int, int, int, int]) -> None:
    dag = ffn_dag(*shape, form="chain")
    for capacity in (3, 4):
        optimum = brute_force(dag, capacity, "recompute")
        assert optimum is None or lower_bound(Ffn(*shape), capacity, recompute=True).elements <= optimum


@pytest.mark.parametrize(("capacity", "least"), [(6 * MIB, 745e6), (40 * MIB, 253e6), (50 * MIB, 224e6)])
def test_targets(capacity: int, least: float) -> None:
    ffn = Ffn(8192, 4096, 11008)
    bound = lower_bound(ffn, capacity)
    assert bound.elements >= least
    assert bound.bytes == 2 * bound.elements
    # by segments recomputation gains nothing here; by lines there is no theorem for it
    assert least <= lower_bound(ffn, capacity, recompute=True).elements <= bound.elements
    assert bound.elements < FFN.separate_bound(ffn, capacity).elements


def test_what_fits_is_compulsory_and_separate_kernels_pay_for_h() -> None:
    ffn = Ffn(8192, 768, 3072)
    bound = lower_bound(ffn, 40 * MIB)
    assert (bound.elements, bound.method) == (17_301_504, "compulsory")
    separate = FFN.separate_bound(ffn, 40 * MIB)
    assert separate.elements == bound.elements + 2 * ffn.hidden_elements
    assert separate.method == "compulsory"


def test_separate_kernels_never_below_equation_three_with_stores() -> None:
    ffn = Ffn(3, 700, 1847, 1447)
    fused, separate = lower_bound(ffn, 21), FFN.separate_bound(ffn, 21)
    assert separate.method == "equation (3), and the stores of H"
    assert separate.elements == fused.elements + ffn.hidden_elements


def test_published_counter_example() -> None:
    """A B, then D, with m = n = 240, k = p = 10, S = 900: a legal schedule costs 33,600."""
    assert lower_bound(Ffn(240, 10, 240, 10), 900).elements <= 33_600


def test_widths_are_counted_where_they_surely_move() -> None:
    fp8 = lower_bound(Ffn(8192, 4096, 11008, dtype="fp8"), 6 * MIB)
    assert fp8.bytes == fp8.elements + 8192 * 4096  # Y is stored in bf16, once at least
    separate = FFN.separate_bound(Ffn(8192, 4096, 11008, dtype="fp32", out_dtype="bf16"), 6 * MIB)
    wide = 8192 * 4096 + 2 * 4096 * 11008 + 2 * 8192 * 11008  # X, W1, W2, and H twice
    assert separate.bytes == 2 * separate.elements + 2 * wide


def test_certificate_recomputes() -> None:
    certificate = accounting(Ffn(8192, 4096, 11008)).of(Piece)[0].bound(40 * MIB).to_json()
    m, f, depth = certificate["box"]
    assert (m, f, depth, certificate["products"]) == (8192, 11008, 8192, 8192 * 11008 * 8192)
    value = certificate["segment_terms"] - certificate["cells_begun_and_not_stored"]
    assert value == 253_338_648
    assert certificate["theta"] == "1/2"
    gated = accounting(Ffn(8192, 4096, 11008, gated=True)).of(Piece)[0].bound(6 * MIB)
    assert gated.to_json()["theta"] == "2/3"
    # the real x of one share is 3 v^(2/3) here; each of the h shares is rounded up to a whole number
    h = certificate["segments"]
    closed = h * 3 * (certificate["products"] / h) ** (2 / 3) - (h - 1) * 40 * MIB
    assert 0 <= certificate["segment_terms"] - closed <= h


def test_too_small() -> None:
    for bound in (lower_bound, FFN.separate_bound):
        with pytest.raises(InfeasibleError, match="at least 3"):
            bound(Ffn(2, 2, 2), 2)

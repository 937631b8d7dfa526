"""Products whose stationary operand just does not fit: played move by move, counted again by the checker."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pebble.certificate import RefusedError, check
from pebble.certificate.statement import ClaimedWidths as WidthsOfChecker
from pebble.certificate.statement import read_workload
from pebble.certificate.upper import check_remainder
from pebble.families import lower_bound
from pebble.proof.certificate import FORMAT, VERSION, upper_claim, workload_statement
from pebble.reports.bound import bound_workload
from pebble.schedules.explicit import best_gemm_schedule
from pebble.schedules.explicit.ffn import ffn_schedules
from pebble.schedules.explicit.gemm_search import banded_products
from pebble.schedules.explicit.remainder import BandsWithRemainder, remainders
from pebble.workloads import Conv2d, Ffn, Gemm
from pebble.workloads.widths import FastMemory, Widths
from pebble.workloads.workload import Workload
from tests.rooms import in_values
from tests.schedules.test_explicit_gemm import replay
from tests.schedules.test_weighted_schedules import replay_gemm


@st.composite
def corners(draw: st.DrawFn) -> BandsWithRemainder:
    """Any of a small product, in no more room than it takes."""
    sides = [draw(st.integers(1, 9)) for _ in "mnk"]
    stationary = draw(st.sampled_from("ABC"))
    single = BandsWithRemainder(
        Gemm(*sides, accumulate=draw(st.booleans())), FastMemory.of_values(0), stationary, "m", 1, (1, 1)
    )
    single = replace(single, axis=draw(st.sampled_from([x for x in "mnk" if stationary in _of(x)])))
    p, q, _ = (single.extent(axis) for axis in single.axes)
    count = draw(st.integers(1, q))
    assume(p > 1 and q // count > 1)
    single = replace(single, count=count, corner=(draw(st.integers(1, p - 1)), draw(st.integers(1, q // count - 1))))
    return replace(single, memory=FastMemory.of_values(max(3, single.peak_elements), single.gemm))


def _of(axis: str) -> str:
    return {"m": "AC", "n": "BC", "k": "AB"}[axis]


def statement(workload: Workload) -> dict[str, Any]:
    return workload_statement(workload)


@settings(max_examples=67, deadline=None)
@given(corners())
def test_any_corner_is_legal_and_counted(schedule: BandsWithRemainder) -> None:
    assert replay(schedule) == schedule.peak_elements
    claim = upper_claim(read_workload(statement(schedule.gemm), "workload"), schedule)
    assert claim["elements"] == schedule.elements
    assert claim["moved"]["peak_elements"] == schedule.peak_elements


@settings(max_examples=67, deadline=None)
@given(
    corners(),
    st.sampled_from([Widths(2, 4, 4, 2), Widths(1, 4, 4, 2), Widths(4, 4, 4, 2), Widths(4, 4, 2, 2)]),
)
def test_any_corner_is_legal_in_bytes(plain: BandsWithRemainder, widths: Widths) -> None:
    """Fits in what the checker says, and not in a byte less."""
    spec = (plain.stationary, plain.axis, plain.count, plain.corner)
    of = WidthsOfChecker(widths.read, widths.hidden, widths.partial, widths.written)
    size = {axis: plain.extent(axis) for axis in "mnk"}
    schedule = BandsWithRemainder(plain.gemm, FastMemory(1 << 30, widths), *spec)
    claim = upper_claim(read_workload(statement(plain.gemm), "workload"), schedule)
    assert claim is not None
    low, high = 1, 1 << 20
    while low < high:
        middle = (low + high) // 2
        try:
            check_remainder(size, plain.gemm.accumulate, middle, claim["schedule"], "schedule", of)
            high = middle
        except RefusedError:
            low = middle + 1
    schedule = BandsWithRemainder(plain.gemm, FastMemory(low, widths), *spec)
    assert schedule.fits
    replay_gemm(schedule)


@settings(max_examples=150, deadline=None)
@given(*[st.integers(2, 12)] * 3, st.integers(3, 90), st.booleans())
def test_the_best_corners_are_legal(m: int, n: int, k: int, capacity: int, added: bool) -> None:
    gemm = Gemm(m, n, k, accumulate=added)
    for schedule in remainders(gemm, FastMemory.of_values(capacity, gemm)):
        assert replay(schedule) <= schedule.peak_elements <= capacity
        assert schedule.elements >= lower_bound(gemm, capacity).elements


@pytest.mark.parametrize(("sides", "mebibytes"), [((4096, 4096, 16384), 32), ((2048, 2048, 16384), 8)])
def test_powers_of_two_lose_a_corner_instead_of_a_pass(sides: tuple[int, int, int], mebibytes: int) -> None:
    gemm, capacity = Gemm(*sides), mebibytes << 19
    best, bands = in_values(best_gemm_schedule, gemm, capacity), in_values(banded_products, gemm, capacity)[0]
    assert isinstance(best, BandsWithRemainder)
    assert bands.elements > 1.3 * gemm.compulsory_elements
    assert best.elements < 1.03 * gemm.compulsory_elements


@pytest.mark.parametrize("accumulators", ["off", "fp32"])
def test_certified(accumulators: str) -> None:
    """By itself, in bytes, and as a kernel of a network."""
    result = bound_workload(
        Gemm(1024, 1024, 4096), cache="4MiB" if accumulators == "fp32" else "2MiB", accumulators=accumulators
    )
    claim = result.certificate()["claims"][-1]
    assert claim["schedule"]["kind"] == "apart" and claim["bytes"] == result.upper.bytes
    in_bytes = accumulators == "fp32"
    assert claim["claim"] == ("upper bound in bytes" if in_bytes else "upper bound")
    assert claim["capacity_bytes" if in_bytes else "capacity_elements"] == (4 << 20 if in_bytes else 1 << 20)


@pytest.mark.parametrize("sides", [(14, 29, 29), (65536, 4096, 4096)])
def test_spilled_sums_are_certified_in_bytes(sides: tuple[int, int, int]) -> None:
    """An input stays, so that sums of the corner's vectors are stored wide: not what a count of values says."""
    result = bound_workload(Gemm(*sides), cache="860B" if sides[0] == 14 else "32MiB", accumulators="fp32")
    assert isinstance(result.upper, BandsWithRemainder) and result.upper.spilled > 0
    claim = result.certificate()["claims"][-1]
    assert claim["claim"] == "upper bound in bytes" and claim["bytes"] == result.upper.bytes


@pytest.mark.parametrize("accumulators", ["off", "fp32"])
def test_windows_without_overlap_name_their_operands(accumulators: str) -> None:
    """A convolution that is a product: what is told of X, W and Y is what the checker counts of each."""
    conv = Conv2d(1, 64, 9, 4, 3, 1)
    for size in range(90, 400, 5):
        result = bound_workload(
            conv, cache=f"{size}B" if accumulators == "fp32" else f"{size}el", accumulators=accumulators
        )
        result.certificate()
    assert bound_workload(conv, cache="105el").upper.loads == {"X": 1088, "W": 768, "Y": 0}


def test_kernels_of_a_network() -> None:
    """Separate kernels with a corner apart: the checker counts the same."""
    ffn, capacity = Ffn(64, 512, 64), 64 * 64
    (schedule,) = (value for value in in_values(ffn_schedules, ffn, capacity) if value.family == "unfused")
    assert any(isinstance(kernel, BandsWithRemainder) for kernel in schedule.kernels)
    claim = upper_claim(read_workload(statement(ffn), "workload"), schedule)
    assert claim["elements"] == schedule.elements


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"corner": [64, 1]}, "corner"),
        ({"corner": [1, 32]}, "corner"),
        ({"corner": [0, 3]}, "corner"),
        ({"bands": 65}, "bands"),
        ({"axis": "k"}, "axis"),
        ({"stationary": "D"}, "stationary"),
        ({"corner": [1, 1]}, "the capacity is"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], why: str) -> None:
    size = {"m": 64, "n": 64, "k": 100}
    fields = {"kind": "apart", "stationary": "C", "axis": "n", "bands": 2, "corner": [8, 5]}
    check_remainder(size, False, 2048, fields, "schedule")
    with pytest.raises(RefusedError, match=why):
        check_remainder(size, False, 2048, fields | change, "schedule")


def test_the_checker_reads_a_whole_document() -> None:
    gemm = Gemm(512, 512, 2048)
    result = in_values(best_gemm_schedule, gemm, 512 * 512)
    spec = statement(gemm)
    claim = upper_claim(read_workload(spec, "workload"), result)
    sentences = check({"format": FORMAT, "version": VERSION, "statement": {"workload": spec}, "claims": [claim]})
    assert f"moves {result.elements:,} elements" in sentences[0]

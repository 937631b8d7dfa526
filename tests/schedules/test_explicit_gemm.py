"""Every explicit schedule is played move by move: legal, within capacity, and with exactly the traffic it claims."""

import csv
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.certificate.statement import read_workload
from pebble.errors import InfeasibleError
from pebble.proof.certificate import upper_claim, workload_statement
from pebble.schedules.explicit import ExplicitProduct, best_gemm_schedule
from pebble.schedules.explicit.corner import Corner, Side, best_corner
from pebble.schedules.explicit.gemm import AXES, Band, BandedProduct, other_axes
from pebble.schedules.explicit.gemm_search import banded_products
from pebble.schedules.explicit.moves import gemm_moves
from pebble.workloads import Gemm
from pebble.workloads.widths import FastMemory
from tests.rooms import in_values


def replay(schedule: ExplicitProduct) -> int:
    """Check each move against the rules of the in-place game; returns the most values held."""
    gemm = schedule.gemm
    blue = {("A", (i, l)) for i in range(gemm.m) for l in range(gemm.k)}
    blue |= {("B", (l, j)) for l in range(gemm.k) for j in range(gemm.n)}
    outputs = {("C", (i, j)) for i in range(gemm.m) for j in range(gemm.n)}
    if gemm.accumulate:
        blue |= outputs
    red: set[tuple[str, tuple[int, ...]]] = set()
    initialised: set[tuple[str, tuple[int, ...]]] = set()
    done = set()
    loads, stores = dict.fromkeys("ABC", 0), dict.fromkeys("ABC", 0)
    peak = 0
    for op, operand, index in gemm_moves(schedule):
        value = (operand, index)
        if op == "load":
            assert value in blue and value not in red
            red.add(value)
            loads[operand] += 1
        elif op == "store":
            assert value in red
            blue.add(value)
            stores[operand] += 1
        elif op == "delete":
            assert value in red and value in blue  # nothing of worth is lost
            red.remove(value)
        else:
            i, j, l = index
            cell = ("C", (i, j))
            assert index not in done and ("A", (i, l)) in red and ("B", (l, j)) in red
            if cell not in red:
                assert cell not in initialised and not gemm.accumulate
                red.add(cell)
            initialised.add(cell)
            blue.discard(cell)
            done.add(index)
        peak = max(peak, len(red))
        assert len(red) <= schedule.memory.bytes
    assert len(done) == gemm.m * gemm.n * gemm.k
    assert outputs <= blue
    assert loads == schedule.loads
    assert stores == schedule.stores
    return peak


side = st.integers(1, 8)


@settings(max_examples=40, deadline=None)
@given(side, side, side, st.integers(3, 90), st.booleans())
def test_the_best_of_each_family_is_legal(m: int, n: int, k: int, capacity: int, accumulate: bool) -> None:
    for schedule in in_values(banded_products, Gemm(m, n, k, accumulate=accumulate), capacity):
        assert replay(schedule) <= schedule.peak_elements <= capacity


@st.composite
def bands(draw: st.DrawFn) -> BandedProduct:
    """Bands of any widths, operands and numbers of blocks, and some room."""
    gemm = Gemm(*(draw(st.integers(1, 10)) for _ in range(3)), accumulate=draw(st.booleans()))
    axis = draw(st.sampled_from("mnk"))
    having = [name for name, axes in AXES.items() if axis in axes[:2]]
    left, result, most = gemm.along(axis), [], 0
    while left:
        width = draw(st.integers(1, left))
        stationary = draw(st.sampled_from(having))
        p = gemm.along(other_axes(stationary, axis)[0])
        blocks, count = draw(st.integers(1, p)), draw(st.integers(1, min(4, left // width)))
        result.append(Band(stationary, width, blocks, count))
        left -= width * count
        block = -(-p // blocks)
        most = max(most, block * width + min(block, width) + 1)
    return BandedProduct(gemm, FastMemory.of_values(most + draw(st.integers(0, 120)), gemm), axis, tuple(result))


@settings(max_examples=133, deadline=None)
@given(bands())
def test_any_bands_are_legal_and_counted(schedule: BandedProduct) -> None:
    """Move by move; and the checker of certificates counts the same traffic and room by formulas of its own."""
    assert replay(schedule) <= schedule.peak_elements <= schedule.memory.bytes
    claim = upper_claim(read_workload(workload_statement(schedule.gemm), "workload"), schedule)
    assert claim["elements"] == schedule.elements
    assert claim["moved"]["peak_elements"] == schedule.peak_elements


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 400), st.integers(1, 40), st.integers(0, 20), st.integers(1, 2), st.integers(1, 40))
def test_no_corner_carries_more(spare: int, first: int, second: int, streams: int, depth: int) -> None:
    side = Side(first, second, streams)
    best = best_corner(spare, side, depth, 30)
    assert best.footprint(side) <= spare
    assert best.vectors <= 30 and best.group <= depth
    fitting = (
        turned
        for turned in range(1, 31)
        if any(Corner(group, turned, 0).footprint(side) <= spare for group in range(1, depth + 1))
    )
    assert best.vectors >= max(fitting, default=0)


@pytest.mark.parametrize(
    ("side_length", "capacity", "at_most"),
    [(4096, 3_145_728, 100_663_296), (4096, 20_971_520, 50_331_648), (4096, 26_214_400, 50_331_648),
     (8192, 20_971_520, 310_390_784), (8192, 37_748_736, 251_666_432)],
)  # fmt: skip
def test_figures_to_match_or_beat(side_length: int, capacity: int, at_most: int) -> None:
    best = in_values(best_gemm_schedule, Gemm(side_length, side_length, side_length), capacity)
    assert best.elements <= at_most
    assert best.peak_elements <= capacity


@pytest.mark.parametrize("shape", [(7, 5, 4), (4, 7, 5), (5, 4, 7), (1, 9, 3), (6, 6, 6)])
def test_compulsory_once_the_smallest_operand_fits(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    gemm = Gemm(m, n, k)
    enough = min(m * n + min(m, n), m * k + min(m, k), k * n + min(k, n)) + 1
    assert in_values(best_gemm_schedule, gemm, enough).elements == gemm.compulsory_elements
    assert "compulsory" in in_values(best_gemm_schedule, gemm, enough).name


def test_capacity_below_three() -> None:
    with pytest.raises(InfeasibleError, match="at least 3"):
        in_values(best_gemm_schedule, Gemm(2, 2, 2), 2)


def test_a_slab_beside_blocks() -> None:
    best = in_values(best_gemm_schedule, Gemm(8192, 28672, 8192), 50 * 2**19)
    assert {band.stationary for band in best.bands} == {"A", "C"}
    assert best.elements <= 937_994_000


@settings(max_examples=20, deadline=None)
@given(side, side, side, st.integers(3, 60), st.integers(1, 20))
def test_more_room_never_costs_more(m: int, n: int, k: int, capacity: int, more: int) -> None:
    gemm = Gemm(m, n, k)
    assert (
        in_values(best_gemm_schedule, gemm, capacity + more).elements
        <= in_values(best_gemm_schedule, gemm, capacity).elements
    )


@pytest.mark.parametrize("shape", [(4096, 4096, 4096), (8192, 28672, 8192), (1000, 77, 3001)])
def test_more_room_never_costs_more_at_full_size(shape: tuple[int, int, int]) -> None:
    costs = [in_values(best_gemm_schedule, Gemm(*shape), int(1.37**i)).elements for i in range(4, 56)]
    assert costs == sorted(costs, reverse=True)


def test_against_proven_optima() -> None:
    """Optima that a search has proved: never below one, near them on the mean."""
    with (Path(__file__).parents[2] / "benchmarks" / "exact" / "gemm.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["status"] == "optimal" and row["variant"] == "in-place"]
    ratios = []
    for row in rows:
        m, n, k = map(int, row["params"].split("x"))
        ratios.append(in_values(best_gemm_schedule, Gemm(m, n, k), int(row["S"])).elements / int(row["upper"]))
    assert len(ratios) > 80
    assert min(ratios) >= 1
    assert sum(ratios) / len(ratios) < 1.03


@pytest.mark.parametrize("kappa", [1.95, 2.0, 2.5])
def test_many_narrow_bands_leave_room_for_their_corners(kappa: float) -> None:
    """With thousands of bands the best is the limit: rectangles that leave the best room beside them."""
    capacity, side = 10**6, 4_000_000
    result = in_values(best_gemm_schedule, Gemm(side, side, round(kappa * 1000)), capacity)
    limit = 1 + (2 * kappa * (kappa + (kappa**2 - 1) ** 0.5)) ** 0.5
    assert limit < result.elements / side**2 < 1.002 * limit

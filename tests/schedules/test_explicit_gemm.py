"""Every explicit schedule is played move by move: legal, within capacity, and with exactly the traffic it claims."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.errors import InfeasibleError
from pebble.schedules.explicit import ExplicitSchedule, best_gemm_schedule, gemm_schedules
from pebble.schedules.explicit.gemm import AXES, _evaluate, largest_partner
from pebble.schedules.explicit.moves import gemm_moves
from pebble.workloads import Gemm


def replay(schedule: ExplicitSchedule) -> int:
    """Check each move against the rules of the in-place game; returns the most values held."""
    gemm = schedule.gemm
    blue = {("A", (i, l)) for i in range(gemm.m) for l in range(gemm.k)}
    blue |= {("B", (l, j)) for l in range(gemm.k) for j in range(gemm.n)}
    outputs = {("C", (i, j)) for i in range(gemm.m) for j in range(gemm.n)}
    if gemm.accumulate:
        blue |= outputs
    red: set[tuple[str, tuple[int, ...]]] = set()
    begun: set[tuple[str, tuple[int, ...]]] = set()
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
                assert cell not in begun and not gemm.accumulate
                red.add(cell)
            begun.add(cell)
            blue.discard(cell)
            done.add(index)
        peak = max(peak, len(red))
        assert len(red) <= schedule.capacity
    assert len(done) == gemm.m * gemm.n * gemm.k
    assert outputs <= blue
    assert loads == schedule.loads
    assert stores == schedule.stores
    return peak


side = st.integers(1, 8)


@settings(max_examples=120, deadline=None)
@given(side, side, side, st.integers(3, 90), st.booleans())
def test_the_best_of_each_family_is_legal(m: int, n: int, k: int, capacity: int, accumulate: bool) -> None:
    for schedule in gemm_schedules(Gemm(m, n, k, accumulate=accumulate), capacity):
        assert replay(schedule) <= schedule.peak_elements <= capacity


@settings(max_examples=200, deadline=None)
@given(side, side, side, st.integers(3, 90), st.sampled_from("ABC"), st.booleans(), st.data())
def test_any_block_that_fits_is_legal(
    m: int, n: int, k: int, capacity: int, stationary: str, swap: bool, data: st.DataObject
) -> None:
    gemm = Gemm(m, n, k)
    first, second, _ = AXES[stationary]
    size = {"m": m, "n": n, "k": k}
    bp = data.draw(st.integers(1, size[first]))
    most = min(largest_partner(capacity, bp), size[second])
    if most:
        bq = data.draw(st.integers(1, most))
        schedule = _evaluate(gemm, capacity, stationary, bp, bq, first if swap else second)
        assert replay(schedule) <= schedule.peak_elements <= capacity


@pytest.mark.parametrize(
    ("side_length", "capacity", "at_most"),
    [(4096, 3_145_728, 100_663_296), (4096, 20_971_520, 50_331_648), (4096, 26_214_400, 50_331_648),
     (8192, 20_971_520, 335_600_000)],
)  # fmt: skip
def test_figures_to_match_or_beat(side_length: int, capacity: int, at_most: int) -> None:
    best = best_gemm_schedule(Gemm(side_length, side_length, side_length), capacity)
    assert best.elements <= at_most
    assert best.peak_elements <= capacity


@pytest.mark.parametrize("shape", [(7, 5, 4), (4, 7, 5), (5, 4, 7), (1, 9, 3), (6, 6, 6)])
def test_compulsory_once_the_smallest_operand_fits(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    gemm = Gemm(m, n, k)
    enough = min(m * n + min(m, n), m * k + min(m, k), k * n + min(k, n)) + 1
    assert best_gemm_schedule(gemm, enough).elements == gemm.compulsory_elements
    assert "compulsory" in best_gemm_schedule(gemm, enough).name


def test_capacity_below_three() -> None:
    with pytest.raises(InfeasibleError, match="at least 3"):
        best_gemm_schedule(Gemm(2, 2, 2), 2)

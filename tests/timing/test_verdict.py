"""The line that says what sets the floor and what DRAM needs for the bytes of schedules."""

from __future__ import annotations

from pebble.models.rates import Rate
from pebble.timing.floor import FloorPart, TimeFloor, verdict_of_bound, verdict_of_orders


def floor(operations_ms: float | None, dram_ms: float | None, l2_ms: float | None = None) -> TimeFloor:
    """A floor whose rates are 1e9 of each per second, so that a million is a millisecond."""
    given = {"operations": operations_ms, "dram": dram_ms, "l2": l2_ms}
    rate = Rate(1e9, "vendor", "a test")
    parts = [FloorPart(n, round(ms * 1e6), "a theorem", rate, None) for n, ms in given.items() if ms is not None]
    return TimeFloor("fp32", tuple(parts))


def test_compute_bound() -> None:
    assert verdict_of_orders(floor(7.8, 0.5), {"row": 3_700_000}) == (
        "compute-bound: DRAM needs 0.5 ms of 7.8 at the bound, 3.7 with row"
    )
    assert verdict_of_bound(floor(7.8, 0.5), 3_700_000) == (
        "compute-bound: DRAM needs 0.5 ms of 7.8 at the bound, 3.7 with the best schedule known"
    )


def test_the_word_is_that_of_the_floor_whatever_orders_are_listed() -> None:
    few, slow = {"hilbert": 1_500_000}, {"hilbert": 1_500_000, "snake": 3_000_000, "row": 4_000_000}
    assert verdict_of_orders(floor(2, 1), few).startswith("compute-bound: DRAM needs 1 ms of 2 at the bound, 1.5 with")
    assert verdict_of_orders(floor(2, 1), slow) == (
        "compute-bound: DRAM needs 1 ms of 2 at the bound, 4 with row, which moves most, 1.5 with hilbert, which "
        "moves least"
    )


def test_dram_sets_the_floor() -> None:
    assert verdict_of_orders(floor(1, 2), {"row": 4_000_000, "snake": 4_000_000}) == (
        "DRAM-bound: operations need 1 ms of 2; DRAM needs 2 ms at the bound, 4 with every schedule"
    )
    assert verdict_of_bound(floor(1, 2)) == "DRAM-bound: operations need 1 ms of 2"


def test_times_are_in_one_unit() -> None:
    assert verdict_of_orders(floor(0.5, 0.05), {"row": 6_000_000}) == (
        "compute-bound: DRAM needs 0.05 ms of 0.5 at the bound, 6 with row"
    )


def test_what_is_not_known_is_not_claimed() -> None:
    assert verdict_of_bound(floor(None, 2)) == "of what is known DRAM-bound"
    assert verdict_of_bound(floor(None, 2), 3_000_000) == (
        "of what is known DRAM-bound: DRAM needs 2 ms at the bound, 3 with the best schedule known"
    )
    assert verdict_of_bound(floor(1, None), 5) == "compute-bound"
    assert verdict_of_bound(floor(None, None)) == "" == verdict_of_orders(floor(None, None), {"row": 1})
    assert verdict_of_orders(floor(3, 1, 5), {}) == "L2-bound: DRAM needs 1 ms of 5"

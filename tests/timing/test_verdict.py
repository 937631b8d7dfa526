"""The line that says what binds and what an order can win."""

from __future__ import annotations

from pebble.models.rates import Rate
from pebble.timing.floor import FloorPart, TimeFloor
from pebble.timing.verdict import verdict_of_bound, verdict_of_orders


def floor(operations_ms: float | None, dram_ms: float | None, l2_ms: float | None = None) -> TimeFloor:
    """A floor whose rates are 1e9 of each per second, so that a million is a millisecond."""
    given = {"operations": operations_ms, "dram": dram_ms, "l2": l2_ms}
    rate = Rate(1e9, "vendor", "a test")
    parts = [FloorPart(n, round(ms * 1e6), "a theorem", rate, None) for n, ms in given.items() if ms is not None]
    return TimeFloor("fp32", tuple(parts))


def test_compute_bound() -> None:
    assert verdict_of_orders(floor(7.8, 0.5), {"row": 3_700_000}) == (
        "compute-bound: DRAM needs 3.7 ms of 7.8 with row; no order saves more than 0 %"
    )
    assert verdict_of_bound(floor(7.8, 0.5), 3_700_000) == (
        "compute-bound: DRAM needs 0.5 ms of 7.8; no order saves more than 0 % over the best schedule known"
    )


def test_an_order_that_is_held_up_by_dram() -> None:
    text = verdict_of_orders(floor(2, 1), {"row": 4_000_000, "hilbert": 2_500_000, "snake": 3_000_000})
    assert text == (
        "DRAM-bound: operations need 2 ms of 4 with row, which moves most; hilbert saves up to 37.5 % of it, "
        "no order saves more than 20 % over hilbert"
    )


def test_shares_are_rounded_up() -> None:
    assert "no order saves more than 0.1 % over row" in verdict_of_orders(floor(1, 2), {"row": 2_000_100})
    assert "more than 33.4 % over the best" in verdict_of_bound(floor(1, 2), 3_000_000)


def test_what_is_not_known_is_not_claimed() -> None:
    assert verdict_of_bound(floor(None, 2)) == "of what is known DRAM-bound"
    assert verdict_of_bound(floor(1, None), 5) == "compute-bound"
    assert verdict_of_bound(floor(None, None)) == "" == verdict_of_orders(floor(None, None), {"row": 1})
    assert verdict_of_orders(floor(3, 1, 5), {}) == "L2-bound: DRAM needs 1 ms of 5"

"""Sustained time and energy: what must hold of any prices, and the launches that they were fitted to and not."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

import pebble
from pebble.models.machine import load_machine, machine_names
from pebble.reports.kernel_time import TimedSchedule, sustained_note, time_notes, time_schedules
from pebble.timing.modelled import ModelledTime
from pebble.timing.power import BLOCK_A_TILE, LIMIT_WATTS, REFERENCE_MHZ, Power, Sustained, at_limit, power_of
from pebble.timing.sustained import AFTER_A_PAUSE
from pebble.workloads import Attention, Ffn, Gemm, LatentAttention
from pebble.workloads.workload import Workload

H200 = load_machine("h200-sxm-141gb")
SUSTAINED_RUNS = Path(__file__).parents[2] / "benchmarks/hardware/power/h200_sustained.csv"


def power() -> Power:
    """Of an H200."""
    result = power_of(H200, "bf16", H200.sms)
    assert result is not None
    return result


def test_the_former_name_of_what_is_requested_warns(orders: list[TimedSchedule]) -> None:
    with pytest.warns(DeprecationWarning, match="called requested"):
        assert again(orders[0]).asked is again(orders[0]).requested


@pytest.fixture(scope="module")
def orders() -> list[TimedSchedule]:
    """Of a product that was measured too."""
    result = time_schedules(
        Gemm(8192, 8192, 8192), ["row", "grouped-4", "grouped-16"], gpu="h200-sxm-141gb", tile="128x256x64"
    )  # fmt: skip
    return list(result.orders)


def again(one: TimedSchedule) -> Sustained:
    """Its sustained run."""
    assert one.sustained is not None
    return one.sustained


def test_orders_are_ranked_as_measured(orders: list[TimedSchedule]) -> None:
    with SUSTAINED_RUNS.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["m"] == "8192" and row["barrier"] == "1"]
    measured = {row["order"]: float(row["sustained_ms"]) for row in rows}
    assert [element.order for element in orders] == sorted(
        (each_item.order for each_item in orders), key=lambda name: measured[name]
    )
    for order in orders:
        assert again(order).seconds * 1e3 == pytest.approx(measured[order.order], rel=0.05)
    single = [item.time.seconds for item in orders]
    assert max(single) < 1.01 * min(single)  # single launches hardly tell them apart
    assert all(item.time.throttled_seconds == 0 for item in orders)


def test_at_the_limit_the_power_is_the_limit_and_its_parts_add_up(orders: list[TimedSchedule]) -> None:
    for order in orders:
        result = again(order)
        assert result.at_limit and result.watts == pytest.approx(LIMIT_WATTS, rel=1e-6)
        assert result.total_joules == pytest.approx(result.watts * result.seconds)
        assert set(result.joules) == {"operations", "l2", "fabric", "dram", "static"}
        assert all(part >= 0 for part in result.joules.values())


def test_without_a_limit_a_run_takes_as_long_as_a_launch(orders: list[TimedSchedule]) -> None:
    time, requested = orders[0].time, again(orders[0]).requested
    free = at_limit(time, 2 * 8192**3, requested, power()._replace(limit_watts=1e9))
    assert free.clock_mhz == pytest.approx(REFERENCE_MHZ / AFTER_A_PAUSE) and not free.at_limit
    assert free.seconds == pytest.approx(time.seconds_at(AFTER_A_PAUSE))
    softmax = at_limit(time, 2 * 8192**3, requested, power()._replace(limit_watts=1e9), softmax=1.0)
    assert softmax.clock_mhz == REFERENCE_MHZ  # the launch of attention alone is modelled at that


@pytest.mark.parametrize("more", ["request_bytes", "fabric_bytes"])
def test_more_bytes_never_take_less_time_or_energy(orders: list[TimedSchedule], more: str) -> None:
    time, requested = orders[0].time, again(orders[0]).requested
    less = at_limit(time, 2 * 8192**3, requested, power())
    grown = at_limit(time, 2 * 8192**3, replace(requested, **{more: 2 * getattr(requested, more)}), power())
    assert grown.seconds > less.seconds and grown.total_joules > less.total_joules
    traffic = at_limit(replace(time, dram_bytes=2 * time.dram_bytes), 2 * 8192**3, requested, power())
    assert traffic.seconds > less.seconds and traffic.total_joules > less.total_joules


def test_a_kernel_that_takes_more_cycles_takes_longer_but_less_than_so_many(orders: list[TimedSchedule]) -> None:
    time, requested = orders[0].time, again(orders[0]).requested
    fast, slow = (at_limit(time, 2 * 8192**3, requested, power(), cycles) for cycles in (1.0, BLOCK_A_TILE))
    assert fast.seconds < slow.seconds < BLOCK_A_TILE * fast.seconds
    assert slow.clock_mhz > fast.clock_mhz


def test_what_overlaps_takes_at_least_the_longer_and_at_most_both(orders: list[TimedSchedule]) -> None:
    time: ModelledTime = orders[0].time
    for slower in (0.5, 1.0, 1.5, 4.0):
        longest = sum(
            max(max(w[1:4] + w[5:6]) * slower, w.dram_seconds) + w.around_seconds * slower for w in time.waves
        )
        both = sum(max(w[1:4] + w[5:6]) * slower + w.dram_seconds + w.around_seconds * slower for w in time.waves)
        assert longest <= time.seconds_at(slower) - time.launch_seconds <= both
    free = replace(time, waves=(), busy_seconds=1e-3, dram_seconds=1e-3, launch_seconds=0.0)
    assert free.seconds_at(1.0) == pytest.approx(2**0.25 * 1e-3)


@pytest.mark.parametrize("execution", ["waves", "free"])
@pytest.mark.parametrize(
    ("workload", "schedule"),
    [
        (Gemm(2048, 4096, 1024), "grouped-8"),
        (Ffn(2048, 1024, 4096, gated=True), "separate:grouped-8"),
        (Attention(2048, 2048, 128, heads=8, causal=True), "fa2"),
    ],
)
@pytest.mark.parametrize("sku", ["h200-sxm-141gb", "h100-sxm5-80gb"])
def test_a_sustained_run_is_never_faster_than_the_floor(
    workload: Workload, schedule: str, execution: str, sku: str
) -> None:  # fmt: skip
    result = time_schedules(workload, [schedule], gpu=sku, execution=execution)
    run = again(result.orders[0])
    assert result.floor.seconds <= run.seconds and run.watts <= LIMIT_WATTS * (1 + 1e-6)
    assert run.seconds >= result.orders[0].time.seconds - result.orders[0].time.throttled_seconds


def test_other_chips_and_types_say_that_nothing_was_measured() -> None:
    for sku in machine_names():
        machine = load_machine(sku)
        known = power_of(machine, "bf16", machine.sms) is not None
        assert known == (sku in ("h100-sxm5-80gb", "h200-sxm-141gb"))
    assert power_of(H200, "fp8", H200.sms) is None and power_of(H200, "bf16", 100) is None
    result = pebble.time(pebble.Gemm(1024, 1024, 1024), ["row"], gpu="a40")
    assert sustained_note(False) in result.notes
    row = result.to_dict()["schedules"][0]
    assert row["sustained_ms"] is row["joules"] is row["l2_request_bytes"] is None


def test_what_is_said_of_single_launches_is_of_products_alone() -> None:
    product, attention = (sustained_note(True, w) for w in (Gemm(64, 64, 64), Attention(256, 256, 64)))
    assert "one of it after a pause" in product and "exported attention" in attention
    few = Attention(1, 4096, 64), LatentAttention(4, 64, heads=2)  # kernels that overlap nothing
    assert all(sustained_note(True, w) == product for w in few)
    assert all("timed after products" in " ".join(time_notes(w)) for w in few)
    assert "beside products" in " ".join(time_notes(Attention(256, 256, 64)))
    assert "pause" not in attention and "one block a tile" not in attention

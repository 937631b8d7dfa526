"""Rates: a peak is the largest that is known, at the boost clock; what is sustained is below it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pebble.errors import UnknownNameError
from pebble.models.machine import Machine, Quantity, load_machine, machine_names
from pebble.models.rates import (
    check_accumulator,
    dram_writes,
    peak_dram,
    peak_l2,
    peak_operations,
    sustained_dram,
    sustained_l2,
    sustained_operations,
)

SIZES = {
    "sms": Quantity(10, "SM"),
    "stores.l2": Quantity(4, "MiB"),
    "stores.l1_shared_per_sm": Quantity(128, "KiB"),
    "stores.registers_per_sm": Quantity(256, "KiB"),
}

ROOT = Path(__file__).parents[2]


def own(capability: str = "", **more: Quantity) -> Machine:
    keys = {key.replace("__", "."): quantity for key, quantity in more.items()}
    return Machine("own", "Own", compute_capability=capability, quantities=tuple((SIZES | keys).items()))


def test_a_peak_below_the_boost_clock_is_carried_to_it() -> None:
    rate = peak_operations(load_machine("h100-sxm5-80gb"), "bf16")
    assert rate is not None
    assert rate.per_second == pytest.approx(989.4e12 * 1980 / 1830)
    assert rate.clock_mhz == 1980 and "1,830 MHz" in rate.note
    # 132 SMs, 4 tensor cores of 512 multiply-adds: what the clock allows is not above it
    assert rate.per_second >= 132 * 4 * 512 * 2 * 1.98e9 * 0.9999


@pytest.mark.parametrize(
    ("sku", "dtype", "per_clock"),
    [
        ("a100-sxm4-40gb", "bf16", 2048),
        ("a40", "bf16", 1024),
        ("h100-sxm5-80gb", "fp8", 8192),
        ("h100-pcie-80gb", "bf16", 4096),
        ("h200-sxm-141gb", "bf16", 4096),
        ("l40s", "bf16", 1024),
        ("rtx4090", "fp16", 512),
        ("b200-sxm", "bf16", 8192),
        ("mi300x", "bf16", 2048),
    ],
)
def test_peaks_are_whole_operations_per_clock(sku: str, dtype: str, per_clock: int) -> None:
    machine = load_machine(sku)
    rate = peak_operations(machine, dtype)
    assert rate is not None and machine.boost_hertz is not None
    assert rate.per_second == pytest.approx(machine.sms * per_clock * machine.boost_hertz, rel=2e-3)


def test_the_accumulator_changes_the_peak_where_the_file_says_so() -> None:
    ada, hopper = load_machine("rtx4090"), load_machine("h100-sxm5-80gb")

    def flops(machine: Machine, dtype: str, accumulator: str) -> float:
        rate = peak_operations(machine, dtype, accumulator)
        assert rate is not None
        return rate.per_second

    assert flops(ada, "fp16", "fp32") == 165.2e12
    assert flops(ada, "fp16", "fp16") == 330.3e12
    assert flops(ada, "fp8", "fp16") == 660.6e12
    assert flops(ada, "bf16", "fp16") == flops(ada, "bf16", "fp32")  # there is no such instruction
    assert flops(hopper, "fp16", "fp16") == flops(hopper, "fp16", "fp32")


def test_other_types_go_where_they_are_fastest() -> None:
    ampere = load_machine("a100-sxm4-40gb")
    assert peak_operations(ampere, "fp32").per_second == 156e12  # tf32, above 19.5
    assert peak_operations(ampere, "fp8").per_second == 312e12  # as fp16
    # a file that does not say what the chip is may leave fp8 out though the chip has it
    assert peak_operations(own(throughput__fp16=Quantity(1, "TFLOPS")), "fp8") is None


def test_what_was_reached_is_no_peak_by_itself_but_a_peak_is_not_below_it() -> None:
    assert peak_operations(load_machine("gb10"), "fp8") is None
    assert sustained_operations(load_machine("gb10"), "fp8").per_second == 165e12
    fast = own(throughput__bf16=Quantity(10, "TFLOPS"), sustained__bf16=Quantity(11, "TFLOPS"))
    assert peak_operations(fast, "bf16").per_second == 11e12
    wide = own(dram_bandwidth=Quantity(1, "TB/s"), sustained__dram_bandwidth=Quantity(1.5, "TB/s"))
    assert peak_dram(wide).per_second == 1.5e12
    near = own(l2_bandwidth=Quantity(5, "TB/s"))
    assert peak_l2(near) is None and sustained_l2(near).per_second == 5e12
    near = own(l2_bandwidth=Quantity(5, "TB/s"), l2_peak_bandwidth=Quantity(4, "TB/s"))
    assert peak_l2(near).per_second == 5e12


@pytest.mark.parametrize("sku", ["h100-sxm5-80gb", "h200-sxm-141gb"])
def test_what_dram_delivers_is_what_was_measured(sku: str) -> None:
    with open(ROOT / "benchmarks/hardware/bandwidth/measured.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["chip"] == sku and row["span_gib"] == "8"]

    def measured(pattern: str, written: str) -> float:
        rates = [float(row["gb_per_second"]) for row in rows if (row["pattern"], row["written"]) == (pattern, written)]
        return sum(rates) / len(rates) / 1e3

    machine = load_machine(sku)
    rates = (sustained_dram(machine), *dram_writes(machine))
    for rate, case in zip(rates, [("tiles", "0/1"), ("order", "1/1"), ("tiles", "1/2")], strict=True):
        assert rate is not None and rate.mark == "measured"
        assert rate.per_second / 1e12 == pytest.approx(measured(*case), abs=0.005)


def test_nothing_is_made_up() -> None:
    bare = own()
    for rate in (peak_operations(bare, "bf16"), peak_dram(bare), peak_l2(bare)):
        assert rate is None
    for rate in (sustained_operations(bare, "bf16"), sustained_dram(bare), sustained_l2(bare)):
        assert rate is None


@pytest.mark.parametrize("sku", machine_names())
def test_sustained_is_never_above_the_peak(sku: str) -> None:
    machine = load_machine(sku)
    pairs = [
        *((peak_operations(machine, d, a), sustained_operations(machine, d, a)) for d in ("bf16", "fp16", "fp8", "fp32")
          for a in ("fp32", "fp16")),
        (peak_dram(machine), sustained_dram(machine)),
        (peak_l2(machine), sustained_l2(machine)),
    ]  # fmt: skip
    for peak, sustained in pairs:
        assert peak is None or sustained is None or sustained.per_second <= peak.per_second


def test_clusters() -> None:
    assert load_machine("a100-sxm4-40gb").cluster_blocks == 1
    assert load_machine("h100-sxm5-80gb").cluster_blocks == 16
    assert load_machine("mi300x").cluster_blocks == 1
    assert own().cluster_blocks == 10  # nothing is known: all SMs may share a read
    assert own("8.6").cluster_blocks == 1 and own("12.0").cluster_blocks == 10


def test_an_unknown_accumulator_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="fp16 or fp32"):
        check_accumulator("fp64")

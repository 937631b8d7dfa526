"""Rates that kernels reach: no modelled time is shorter than the floor's amounts at these."""

from __future__ import annotations

import pytest

import pebble
from pebble.errors import InputError
from pebble.models.machine import load_machine, machine_names
from pebble.reports.kernel_time import time_schedules
from pebble.timing.sustained import reached_rates, sustained_rates
from pebble.traces import LINE_BYTES
from pebble.workloads import Attention, Ffn, Gemm
from pebble.workloads.workload import Workload


@pytest.mark.parametrize("sku", machine_names())
@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp8", "fp32"])
def test_no_rate_is_below_that_of_modelled_times(sku: str, dtype: str) -> None:
    machine = load_machine(sku)
    try:
        rates = sustained_rates(machine, dtype)
    except InputError:
        return
    modelled = {
        "operations": rates.flops * machine.sms,
        "dram": rates.dram_lines * LINE_BYTES,
        "l2": rates.lines * LINE_BYTES,
    }
    for name, reached in reached_rates(machine, dtype).items():
        assert reached is not None and reached.per_second >= (1 - 1e-9) * 1e9 * modelled[name], name


def test_what_was_measured_stays_where_it_is_more() -> None:
    reached = reached_rates(load_machine("h100-sxm5-80gb"), "bf16")
    dram, faster = reached["dram"], reached["operations"]  # 788e12 were measured, exported files take less
    assert dram is not None and (dram.per_second, dram.mark) == (3.22e12, "measured")
    assert faster is not None and (faster.per_second > 788e12, faster.note) == (True, "85% of the peak")
    share = reached_rates(load_machine("a100-sxm4-40gb"), "bf16")["operations"]
    assert share is not None and (share.per_second, share.note) == (pytest.approx(0.76 * 312e12), "76% of the peak")


@pytest.mark.parametrize("sku", ["a100-sxm4-40gb", "a40", "h100-sxm5-80gb", "h20", "mi300x"])
@pytest.mark.parametrize(
    "workload", [Gemm(2048, 2048, 4096), Gemm(64, 4096, 4096), Ffn(2048, 1024, 4096, gated=True),
                 Attention(1024, 1024, 128, heads=8, causal=True), Attention(1, 4096, 128, heads=32)],
)  # fmt: skip
def test_no_modelled_time_is_below_the_sustained_floor(sku: str, workload: Workload) -> None:
    result = time_schedules(workload, kernel_schedules(workload), gpu=sku)
    assert result.floor.seconds <= result.floor.sustained_seconds <= result.orders[0].time.seconds
    chip = pebble.bound(workload, gpu=sku).timed
    assert chip is not None and chip.floor.sustained_seconds <= result.orders[0].time.seconds


def kernel_schedules(workload: Workload) -> list[str]:
    """A few of each family."""
    return {"Gemm": ["row", "grouped-8"], "Ffn": ["separate:grouped-8", "row-fused-8"], "Attention": ["fa2", "fa3"]}[
        type(workload).__name__
    ]

"""What limits a kernel, and the hit rates that stand beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pebble
from pebble.cli import main
from pebble.counters import MeasuredLaunch, Metric
from pebble.counters.hits import hits_of
from pebble.counters.limits import limit_of
from tests.counters.synthetic import TILED, TILED_NAME, long_lines

SAMPLES = Path(__file__).parents[2] / "benchmarks" / "gpu" / "samples"
PEAK = "avg.pct_of_peak_sustained_elapsed"
NAMES = {
    "sm": f"sm__throughput.{PEAK}",
    "l1": f"l1tex__throughput.{PEAK}",
    "l2": f"lts__throughput.{PEAK}",
    "dram": f"dram__throughput.{PEAK}",
    "tensor": f"sm__pipe_tensor_cycles_active.{PEAK}",
    "fma": f"sm__pipe_fma_cycles_active.{PEAK}",
    "issue": "sm__inst_executed.avg.per_cycle_elapsed",
    "active": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "bytes": "dram__bytes.sum",
    "ns": "gpu__time_duration.sum",
    "clock": "device__attribute_max_mem_frequency_khz",
    "bus": "device__attribute_global_memory_bus_width",
}


def launch(ident: str = "0", **counters: float) -> MeasuredLaunch:
    return MeasuredLaunch(ident, "gemm", {NAMES[key]: Metric(float(value), "") for key, value in counters.items()})


@pytest.mark.parametrize(
    ("counters", "kind", "words"),
    [
        ({"sm": 88.9, "bytes": 56.6e6, "ns": 10.2e6}, "sm",
         "not DRAM (5.549 GB/s): fewer DRAM bytes alone make it at most 1.12x as fast"),
        ({"sm": 70, "tensor": 70, "l2": 30, "dram": 20}, "compute",
         "at 70.0 % of their peak (the tensor pipe), not DRAM (20.0 %"),
        ({"sm": 90, "fma": 88, "issue": 3, "l2": 30, "dram": 70}, "compute",
         "(the fp32 pipe), and nearly DRAM (70.0 %"),
        ({"sm": 90, "fma": 20, "issue": 3.6}, "sm", "the issue of instructions"),
        ({"sm": 30, "l2": 40, "dram": 85}, "dram",
         "DRAM, at 85.0 % of its peak (SMs 30.0 %, L2 40.0 %): fewer bytes make it faster"),
        ({"sm": 30, "l2": 77, "dram": 45}, "cache", "L2, at 77.0 % of its peak, not DRAM (45.0 % of its peak)"),
        ({"sm": 20, "l1": 25, "l2": 10, "dram": 5}, "waiting", "too few blocks to fill the chip"),
        ({"sm": 20, "l2": 10, "dram": 5}, "waiting", "or L1 is busy, which the report does not say"),
        ({"dram": 5}, "not-dram", "not the bandwidth of DRAM: DRAM 5.0 % of the peak"),
        ({"sm": 70, "bytes": 1e6, "ns": 1e6}, "unknown", "profile lts__throughput"),
        ({"sm": 12.5, "dram": 75}, "memory", "memory-bound: DRAM, at 75.0 % of its peak, before the SMs (12.5 %)"),
        ({"tensor": 5, "issue": 0.5, "dram": 75}, "memory", "before the SMs (12.5 %)"),
        ({"issue": 0.5, "l2": 30, "dram": 20}, "not-dram", "profile sm__throughput"),  # the tensor pipe may be busy
        ({"tensor": 5, "issue": 0.5, "l2": 30, "dram": 20}, "waiting", "latency-bound: nothing reaches 60 %"),
        ({"active": 95}, "unknown", "not told; profile sm__throughput"),  # of the cycles in which a block was there
        ({}, "unknown", "not told; profile sm__throughput"),
    ],
)  # fmt: skip
def test_what_limits_is_said_with_its_evidence(counters, kind, words):
    result = limit_of([launch(**counters)])
    assert result.kind == kind and words in result.text


@pytest.mark.parametrize(
    ("counters", "bound", "words"),
    [
        # a copy: few instructions, all the bandwidth
        ({"sm": 9, "l2": 31, "dram": 92, "issue": 0.21, "bytes": 3e9, "ns": 1e6}, "memory-bound",
         "0.21 of 4 instructions a cycle and SM; DRAM 3,000 GB/s, 92.0 % of the peak; L2 31.0 %"),
        ({"sm": 91, "fma": 90, "l2": 31, "dram": 8, "issue": 3.1}, "compute-bound",
         "3.10 of 4 instructions a cycle and SM; DRAM 8.0 % of the peak; L2 31.0 %; the fp32 pipe 90.0 %"),
        ({"sm": 30, "l2": 77, "dram": 45}, "cache-bound", "profile sm__inst_executed.avg.per_cycle_elapsed for"),
        ({"sm": 9, "l2": 3, "dram": 2, "issue": 0.1}, "latency-bound", "0.10 of 4"),
        ({"sm": 89, "issue": 3.5}, "SM-bound", "profile dram__bytes.sum and gpu__time_duration.sum for the rest"),
        ({}, "", "none; profile"),
    ],
)  # fmt: skip
def test_the_bound_in_a_word_with_instructions_against_the_rate_of_dram(counters, bound, words):
    result = limit_of([launch(**counters)])
    assert result.bound == bound and words in result.evidence
    assert result.text.startswith(f"{bound}: ") or not bound


def test_instructions_a_cycle_of_several_launches_and_layouts():
    two = limit_of([launch("0", issue=1, ns=3e6), launch("1", issue=3, ns=1e6)])
    assert two.instructions_a_cycle == pytest.approx(1.5) and not two.while_active
    counts = {"sm__inst_executed.sum": Metric(600.0, ""), "sm__cycles_elapsed.sum": Metric(400.0, "")}
    assert limit_of([MeasuredLaunch("0", "a", counts)]).instructions_a_cycle == pytest.approx(1.5)
    active = {"Compute Workload Analysis: Executed Ipc Active": Metric(2.5, "")}
    busy = limit_of([MeasuredLaunch("0", "a", active)])
    assert busy.while_active and "2.50 of 4 instructions a cycle and SM while it has warps" in busy.evidence
    assert "issue_percent" not in busy.shares  # a share of the cycles with warps tells nothing of the time


def test_too_few_blocks_are_said():
    few = MeasuredLaunch("0", "a", {**launch(sm=20, l1=25, l2=10, dram=5).metrics,
                                    "launch__sm_count": Metric(132.0, "")}, (40, 1, 1))  # fmt: skip
    assert "40 blocks for 132 SMs, too few to fill the chip" in limit_of([few]).text
    many = MeasuredLaunch("0", "a", few.metrics, (400, 1, 1))
    assert "the kernel waits, or has too few" in limit_of([many]).text


@pytest.mark.parametrize(
    ("counters", "inputs", "words"),
    [
        ({"l1": 0.02, "ld": 100, "past": 100}, None, "100% of its loads are copies (cp.async) past L1"),
        ({"l1": 0.0, "tma": 5, "ld": 7}, None, "its loads go by TMA past L1"),
        ({"l1": 0.0, "ld": 0, "tensor": 50}, None, "no load passed L1's counters"),
        ({"l1": 0.3, "ld": 9}, None, "nothing is loaded twice, or copies"),
        ({"l1": 60, "ld": 9, "past": 1}, None, "L1 60.0 % of its look-ups; L2 is asked for the rest"),
        ({"l2": 104}, None, "more than all, as look-ups and hits are of different passes"),
        ({"l2": 51, "sectors": 4000, "fabric": 9, "read": 64e3}, 32_000,
         "L2 51.0 % of its 4,000 look-ups, two for each sector of its other partition; with each sector of the inputs "
         "missed once and no other it would be 75.0 %; DRAM read 64.0 kB, 2.00 times the inputs (32.0 kB)"),
        ({"l2": 51, "sectors": 900, "read": 64e3}, 32_000, "L2 51.0 % of its 900 look-ups; DRAM read"),
    ],
)  # fmt: skip
def test_hit_rates_are_explained(counters, inputs, words):
    names = {
        "l1": "l1tex__t_sector_hit_rate.pct", "l2": "lts__t_sector_hit_rate.pct", "sectors": "lts__t_sectors.sum",
        "ld": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "tma": "smsp__sass_inst_executed_op_tma_ld.sum",
        "past": "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum", "tensor": NAMES["tensor"],
        "fabric": "lts__t_sectors_srcunit_ltcfabric.sum", "read": "dram__bytes_read.sum",
    }  # fmt: skip
    metrics = {names[key]: Metric(float(value), "") for key, value in counters.items()}
    (sentence,) = hits_of(MeasuredLaunch("0", "gemm", metrics), inputs)
    assert words in sentence
    assert hits_of(MeasuredLaunch("0", "gemm", {})) == ()


def test_the_rate_is_of_a_peak_that_is_given_or_of_the_attributes():
    moving = {"bytes": 90e6, "ns": 100e3, "sm": 20, "l2": 30}  # 900 GB/s
    assert limit_of([launch(**moving)]).kind == "unknown"
    assert limit_of([launch(**moving)], 1e12).shares["dram_percent"] == pytest.approx(90)
    assert limit_of([launch(**moving)], 1e12).kind == "dram"
    by_attributes = limit_of([launch(**moving, clock=5e6, bus=1024)])  # 5 GHz, twice, on 128 bytes
    assert by_attributes.shares["dram_percent"] == pytest.approx(70.3125) and by_attributes.kind == "dram"


def test_shares_of_several_launches_are_by_their_time():
    result = limit_of([launch("0", sm=90, ns=3e6), launch("1", sm=50, ns=1e6)])
    assert result.shares["sm_percent"] == pytest.approx(80)
    assert "sm_percent" not in limit_of([launch("0", sm=90, ns=3e6), launch("1", ns=1e6)]).shares


def test_real_launches_of_the_raw_and_the_details_page_say_the_same():
    launches = (pebble.ncu(SAMPLES / f"h200_gemm_orders_{page}.csv").launches[1] for page in ("raw", "details"))
    raw, details = (limit_of([item]) for item in launches)
    assert raw.kind == details.kind == "cache" and raw.shares["l2_percent"] == pytest.approx(84.7, abs=0.1)
    assert raw.shares["dram_percent"] == pytest.approx(details.shares["dram_percent"], abs=0.1)


def test_a_report_says_hit_rates_and_the_limit(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")  # all columns
    path = tmp_path / "a.csv"
    more = {"l1tex__t_sector_hit_rate.pct": ("%", "12.25"), NAMES["sm"]: ("%", "88.90")}
    path.write_text("\n".join(long_lines([(TILED_NAME, {**TILED, **more})])))
    assert main(["ncu", "report", str(path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "L1 hit L2 hit" in said and "12.2% 87.5%" in said
    assert "hit rate: L1 12.2 % of its look-ups; L2 is asked for the rest" in said
    assert "hit rate: L2 87.5 % of its look-ups; DRAM read 53.3 MB, 1.59 times the inputs (33.6 MB)" in said
    assert "limit: SM-bound: the SMs, at 88.9 % of their peak" in said and "not DRAM" in said
    assert main(["ncu", "report", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["critical"]["limit"]["verdict"] == "sm"
    assert (document["launches"][0]["l1_hit_percent"], document["launches"][0]["l2_hit_percent"]) == (12.25, 87.5)

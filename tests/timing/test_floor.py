"""The floor on time: by hand for a GEMM on each chip, against every launch that was timed, and its monotony."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.bounds import LowerBound
from pebble.bounds.memories import buffer_lower_bound
from pebble.families import accounting, lower_bound
from pebble.game.buffer_model import BufferModel
from pebble.models.machine import Machine, load_machine, machine_names
from pebble.reports.capacity import chip_capacity
from pebble.timing.floor import TimeFloor, sm_traffic, time_floor
from pebble.workloads import Attention, Conv2d, Ffn, Gemm, named_workload
from pebble.workloads.workload import Workload

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "benchmarks" / "hardware" / "library.py"


def floor_of_chip(workload: Workload, machine: Machine, accumulator: str = "fp32") -> TimeFloor:
    bound = lower_bound(workload, chip_capacity(machine, workload).elements)
    return time_floor(accounting(workload), machine, bound, accumulator)


def part_ms(floor: TimeFloor) -> dict[str, float]:
    return {part.name: part.seconds * 1e3 for part in floor.parts}


# 8192^3 in bf16: 2 * 8192^3 = 1.0995e12 operations; A, B and C are 402.65 MB. By hand: TFLOPS at the boost clock, GB/s.
@pytest.mark.parametrize(
    ("sku", "tflops", "gigabytes"),
    [
        ("a100-sxm4-40gb", 312, 1555),
        ("a100-sxm4-80gb", 312, 2039),
        ("b200-sxm", 2250 * 1965 / 1855, 8000),
        ("h100-pcie-80gb", 756 * 1755 / 1620, 2040),
        ("h100-sxm5-80gb", 989.4 * 1980 / 1830, 3350),
        ("h20", 148, 4000),
        ("h200-sxm-141gb", 989 * 1980 / 1830, 4800),
        ("l40s", 362 * 2520 / 2490, 864),
        ("mi300x", 1307, 5300),
        ("rtx4090", 165.2, 1008),
        ("a40", 149.7, 695.8),
    ],
)
def test_a_gemm_by_hand(sku: str, tflops: float, gigabytes: float) -> None:
    gemm, machine = Gemm(8192, 8192, 8192), load_machine(sku)
    floor = floor_of_chip(gemm, machine)
    times = part_ms(floor)
    assert times["operations"] == pytest.approx(2 * 8192**3 / (tflops * 1e9))
    # the bound is compulsory on the chips that hold a matrix, and more on the small ones
    least = 3 * 8192**2 * 2 / (gigabytes * 1e6)
    bound = lower_bound(gemm, chip_capacity(machine, gemm).elements)
    assert times["dram"] == pytest.approx(least * bound.elements / gemm.compulsory_elements)
    assert floor.seconds * 1e3 == max(times.values())
    assert floor.binds is not None and floor.binds.name == "operations"


@pytest.mark.parametrize(("sku", "gigabytes"), [("gb10", 273)])
def test_without_a_throughput_the_floor_is_that_of_dram(sku: str, gigabytes: float) -> None:
    gemm, machine = Gemm(64, 4096, 4096), load_machine(sku)
    floor = floor_of_chip(gemm, machine)
    assert floor.seconds == pytest.approx(gemm.compulsory_bytes / (gigabytes * 1e9))
    assert any("no throughput.bf16" in missing for missing in floor.missing)
    assert floor.part("operations") is None


def test_traffic_into_the_sms_by_hand() -> None:
    gemm = Gemm(8192, 8192, 8192)
    a100, h100 = load_machine("a100-sxm4-40gb"), load_machine("h100-sxm5-80gb")
    # 448 KiB an SM are 229,376 values in bf16; half of the words go one way
    alone = buffer_lower_bound(accounting(gemm), 229_376, BufferModel("sm-local", 108))
    assert alone.elements == 2_295_985_962
    assert part_ms(floor_of_chip(gemm, a100))["l2"] == pytest.approx(2_295_985_962 * 2 / 2 / (5120 * 1.41e9) * 1e3)
    # 132 SMs are 9 clusters of 16 at most, each with 16 * 512 KiB
    together = buffer_lower_bound(accounting(gemm), 16 * 262_144, BufferModel("sm-local", 9))
    bound, who = sm_traffic(accounting(gemm), h100)
    assert bound.elements == together.elements < alone.elements and "clusters of 16" in who
    assert part_ms(floor_of_chip(gemm, h100))["l2"] == pytest.approx(together.bytes / 2 / (64 * 132 * 1.98e9) * 1e3)


def test_one_direction_carries_all_inputs() -> None:
    thin, a100 = Gemm(1, 8192, 8192), load_machine("a100-sxm4-40gb")
    l2 = floor_of_chip(thin, a100).part("l2")
    assert l2 is not None and l2.amount == (8192 * 8192 + 8192) * 2  # which is more than half of all


def test_recomputation_and_convolutions_count_all_sms_as_one_memory() -> None:
    a100 = load_machine("a100-sxm4-40gb")
    for workload, recompute in ((Ffn(4096, 1024, 4096), True), (Conv2d(8, 64, 64, 56, 56, 3), False)):
        problem = accounting(workload)
        bound, who = sm_traffic(problem, a100, recompute)
        assert who == "all SMs as one memory"
        assert bound.bytes == lower_bound(workload, 108 * 229_376, recompute).bytes


def test_causal_attention_and_gated_networks_count_what_they_multiply() -> None:
    a100 = load_machine("a100-sxm4-40gb")
    causal = Attention(1024, 1024, 64, heads=4, kv_heads=2, causal=True)
    amounts = {p.name: p.amount for p in floor_of_chip(causal, a100).parts}
    assert amounts["operations"] == 2 * 4 * (1024 * 1025 // 2) * 2 * 64
    gated = {p.name: p.amount for p in floor_of_chip(Ffn(256, 512, 1024, gated=True), a100).parts}
    assert gated["operations"] == 2 * 256 * 1024 * 3 * 512


def recorded() -> list[tuple[str, Workload, float]]:
    """Every timed launch of the library on a chip that there is a file of."""
    spec = importlib.util.spec_from_file_location("library", LIBRARY)
    assert spec is not None and spec.loader is not None
    library = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(library)
    results: list[tuple[str, Workload, float]] = []
    for row in library.read_rows():
        if not row["milliseconds"] or row["chip"] not in machine_names():
            continue
        sizes = {name: int(row[name]) for name in library.SHAPE_COLUMNS[row["family"]]}
        flags = {name: bool(sizes.pop(name)) for name in ("gated", "causal") if name in sizes}
        shape = {"gemm": Gemm, "ffn": Ffn, "attention": Attention}[row["family"]]
        results.append((row["chip"], shape(**sizes, **flags, dtype=row["dtype"]), float(row["milliseconds"])))
    return results


def test_no_launch_was_faster() -> None:
    launches = recorded()
    fastest: dict[tuple[str, Workload], float] = {}
    for sku, workload, ms in launches:
        fastest[sku, workload] = min(ms, fastest.get((sku, workload), ms))
    assert len(launches) > 2500 and len(fastest) > 90
    assert all(floor_of_chip(w, load_machine(sku)).warm_seconds * 1e3 <= ms for (sku, w), ms in fastest.items())
    shares = [floor_of_chip(w, load_machine(sku)).seconds * 1e3 / ms for (sku, w), ms in fastest.items()]
    assert max(shares) <= 1
    page = " ".join((ROOT / "docs/time.rst").read_text().split())
    for part in ("operations", "dram"):
        times = {
            ms / (1e3 * floor.seconds): (sku, w)
            for (sku, w), ms in fastest.items()
            if (floor := floor_of_chip(w, load_machine(sku))).binds is not None and floor.binds.name == part
        }
        sku, near = times[min(times)]
        assert isinstance(near, Gemm) and f"{min(times):.2f} times" in page
        assert f"{near.m} x {near.n} x {near.k}, on an {sku[:4].upper()})" in page.split(f"{min(times):.2f} times")[1]


SIZES = st.integers(1, 400).map(lambda n: 16 * n)
SHAPES = st.one_of(
    st.builds(Gemm, SIZES, SIZES, SIZES, st.sampled_from(["bf16", "fp16", "fp32", "fp8"])),
    st.builds(Ffn, SIZES, SIZES, SIZES, gated=st.booleans()),
    st.builds(Attention, SIZES, SIZES, st.sampled_from([64, 128]), heads=st.sampled_from([1, 8])),
)


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.sampled_from(machine_names()), st.sampled_from(["fp32", "fp16"]))
def test_the_floor_is_the_longest_part_and_below_what_any_bytes_allow(
    workload: Workload, sku: str, accumulator: str
) -> None:
    floor = floor_of_chip(workload, load_machine(sku), accumulator)
    assert floor.seconds == max(part.seconds for part in floor.parts)
    # every part is needed whatever the others do, and rates that are reached take no less
    assert floor.seconds <= floor.sustained_seconds
    dram = floor.part("dram")
    assert dram is not None
    assert floor.with_dram(dram.amount) == floor.seconds
    more = floor.with_dram(3 * dram.amount)
    assert floor.seconds <= more
    # a wide accumulator is never faster
    assert floor_of_chip(workload, load_machine(sku), "fp16").seconds <= floor.seconds


@settings(max_examples=40, deadline=None)
@given(SIZES, SIZES, SIZES, st.sampled_from([0, 1, 2]), st.sampled_from(["a40", "h100-sxm5-80gb", "mi300x"]))
def test_a_larger_problem_takes_no_less(m: int, n: int, k: int, side: int, sku: str) -> None:
    machine, small = load_machine(sku), [m, n, k]
    large = [2 * size if i == side else size for i, size in enumerate(small)]
    assert floor_of_chip(Gemm(*small), machine).seconds <= floor_of_chip(Gemm(*large), machine).seconds


def test_a_warm_cache_saves_twice_what_it_holds() -> None:
    h100 = load_machine("h100-sxm5-80gb")
    large = floor_of_chip(Gemm(1, 8192, 128256), h100)  # 2.1 GB of weights
    dram = large.part("dram")
    assert dram is not None
    assert large.warm_seconds == pytest.approx((dram.amount - 2 * 50 * 2**20) / 3.35e12)
    small = floor_of_chip(Gemm(1, 4096, 4096), h100)  # all of it fits
    assert small.warm_seconds == max(part.seconds for part in small.parts if part.name != "dram") < small.seconds
    busy = floor_of_chip(Gemm(8192, 8192, 8192), h100)
    assert busy.warm_seconds == busy.seconds
    # where nothing is known but DRAM, and all fits, nothing is left
    assert floor_of_chip(Gemm(16, 16, 16), load_machine("gb10")).warm_seconds == 0


def test_a_higher_bound_is_a_higher_floor() -> None:
    decode, machine = named_workload("llama-3-8b:down", tokens=1), load_machine("h200-sxm-141gb")
    spec, whole = accounting(decode), lower_bound(decode, chip_capacity(machine, decode).elements)
    twice = LowerBound(2 * whole.elements, 2 * whole.bytes, whole.capacity, whole.proof)
    assert time_floor(spec, machine, twice).seconds == pytest.approx(2 * time_floor(spec, machine, whole).seconds)


@pytest.mark.parametrize("sku", ["a100-sxm4-40gb", "h100-sxm5-80gb"])
def test_an_output_that_is_added_to_in_l2_need_not_be_read_by_sms(sku: str) -> None:
    machine = load_machine(sku)
    plain, given = (part_ms(floor_of_chip(Gemm(8192, 8192, 64, accumulate=add), machine)) for add in (False, True))
    assert plain["l2"] == given["l2"] and plain["dram"] < given["dram"]

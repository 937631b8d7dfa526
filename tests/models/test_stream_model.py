"""Kernels that memory binds, against Little's law on paper."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pebble
from pebble.errors import InputError, UnknownNameError
from pebble.models.machine import load_machine
from pebble.models.sm_constants import dram_constants
from pebble.models.stream_model import KINDS, StreamKernel, StreamModel, stream_model

A100 = load_machine("a100-sxm4-80gb")
BIG = 2**28


def model(kernel: StreamKernel) -> StreamModel:
    latency, rate = dram_constants(A100)
    return stream_model(A100, kernel, latency.value * rate.value)


def test_what_must_be_in_flight() -> None:
    result = model(StreamKernel("elementwise", BIG, 2))
    assert result.needed_bytes == pytest.approx(552 * 2039e9 / 1410e6 / 108)
    assert result.least_seconds == pytest.approx(2 * BIG * 2 / 2039e9)


def test_one_narrow_load_of_a_thread_is_too_little() -> None:
    plans = {(p.vector_bytes, p.unroll): p for p in model(StreamKernel("elementwise", BIG, 2)).plans}
    # 34 registers or fewer, given in eights: 65,536 / 40 = 1,638 threads, 6 blocks of 256
    assert plans[2, 1].threads_per_sm == 1536
    assert plans[2, 1].bytes_in_flight == 1536 * 2 < 7391 and plans[2, 1].share < 1
    assert plans[16, 1].items_per_thread == 8 and plans[16, 1].share > 1
    best = model(StreamKernel("elementwise", BIG, 2)).best
    assert (best.unroll, best.vector_bytes) == (1, 16)


def test_bytes_of_each_kind() -> None:
    assert StreamKernel("elementwise", 1000, 2, inputs=2).load_bytes == 4000
    assert StreamKernel("reduction", 1000, 2).store_bytes == 0
    weights = StreamKernel("dequantize", 1280, 2, bits=4, group=128)
    assert weights.load_bytes == 1280 // 2 + 10 * 2 and weights.store_bytes == 2560
    halo = StreamKernel("halo", 1600, 2, side=8, radius=1)
    assert halo.load_bytes == 1600 * 2 * 100 // 64 and halo.compulsory_bytes == 2 * 3200


def test_a_row_that_a_block_cannot_keep_is_read_twice() -> None:
    short, long = (StreamKernel("softmax", 2**24, 2, row=row) for row in (2**13, 2**20))
    assert (short.passes, long.passes) == (1, 2)
    assert long.load_bytes == 2 * short.load_bytes and long.compulsory_bytes == short.compulsory_bytes
    assert {p.items_per_thread for p in model(short).plans if p.unroll * p.vector_bytes <= 64} == {2**13 // 256}


def test_a_small_problem_keeps_only_itself_in_flight() -> None:
    result = model(StreamKernel("elementwise", 4096, 2))
    assert result.best.share < 1 and result.best.bytes_in_flight <= 4096 * 2 / 108


def test_loads_are_aligned_to_rows() -> None:
    odd = model(StreamKernel("norm", 7 * 1001, 2, row=1001))
    assert {plan.vector_bytes for plan in odd.plans} == {2}
    narrow = model(StreamKernel("norm", 7 * 1001, 1, row=1001))
    assert {plan.vector_bytes for plan in narrow.plans} == {1}
    with pytest.raises(InputError, match="pad the rows"):
        model(StreamKernel("dequantize", 7 * 1001, 2, bits=3, row=1001))


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"kind": "sort"}, "unknown kernel"),
        ({"items": 0}, "items: got 0"),
        ({"threads": 100}, "multiple of 32"),
        ({"bits": 5}, "bits: got 5"),
        ({"row": 3}, "row: got 3"),
    ],
)
def test_what_is_refused(wrong: dict[str, object], text: str) -> None:
    with pytest.raises((InputError, UnknownNameError), match=text):
        StreamKernel(**{"kind": "softmax", "items": 64, "value_bytes": 2, **wrong})


@given(st.sampled_from(sorted(KINDS)), st.integers(1, 2**20), st.sampled_from([1, 2, 4]))
def test_every_plan_counts_what_it_holds(kind: str, blocks: int, value_bytes: int) -> None:
    kernel = StreamKernel(kind, 64 * blocks, value_bytes, row=64)
    result = model(kernel)
    arrays = sum(array.read for array in kernel.arrays) or 1
    for plan in result.plans:
        assert 0 <= plan.bytes_in_flight <= plan.threads_per_sm * plan.vector_bytes * plan.unroll * arrays
        assert plan.threads_per_sm <= A100.limit("threads_per_sm")
    enough = [plan for plan in result.plans if plan.share >= 1]
    assert result.plans[: len(enough)] == tuple(enough)


@pytest.mark.parametrize(
    ("kind", "types", "read", "written"),
    [
        ("sgd", {}, 2 + 4, 2 + 4),  # bf16 parameters and gradients, fp32 beside them
        ("momentum", {}, 2 + 4 + 4, 2 + 4 + 4),
        ("adam", {}, 2 + 4 + 8, 2 + 4 + 8),
        ("adam", {"gradient_dtype": "fp32"}, 4 + 4 + 8, 2 + 4 + 8),
        ("adam", {"master_dtype": "none", "moment_dtype": "bf16"}, 2 + 2 + 4, 2 + 4),
        ("adam", {"dtype": "fp32"}, 4 + 4 + 8, 4 + 8),
        ("adam", {"dtype": "fp8", "gradient_dtype": "bf16", "master_dtype": "fp16"}, 2 + 2 + 8, 1 + 2 + 8),
    ],
)
def test_an_optimizer_step_moves_each_array_once(kind: str, types: dict[str, str], read: int, written: int) -> None:
    result = pebble.stream(kind, 10**6, gpu="a100-sxm4-80gb", **types)
    kernel = result.model.kernel
    assert (kernel.load_bytes, kernel.store_bytes) == (read * 10**6, written * 10**6)
    assert kernel.compulsory_bytes == (read + written) * 10**6
    assert sum(array.item_bytes * (array.read + array.written) for array in kernel.arrays) == read + written
    assert result.model.least_seconds == kernel.compulsory_bytes / A100.dram_bytes_per_second
    assert len(result.document()["arrays"]) == len(kernel.arrays)
    assert "gradient_bytes" in result.document()["kernel"]


@pytest.mark.parametrize(
    ("kind", "types", "why"),
    [
        ("sgd", {"moment_dtype": "fp32"}, "expected momentum or adam"),
        ("softmax", {"master_dtype": "fp32"}, "expected sgd, momentum, adam"),
        ("adam", {"gradient_dtype": "none"}, "dtype"),
    ],
)
def test_types_that_have_no_meaning_are_refused(kind: str, types: dict[str, str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        pebble.stream(kind, 1024, gpu="a100-sxm4-80gb", **types)

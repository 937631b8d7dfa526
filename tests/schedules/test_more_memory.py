"""A schedule that fits a memory fits every larger one: the best that is found never moves more with more memory."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pebble.reports.capacity import best_schedule
from pebble.workloads import Attention, Conv2d, Ffn, Gemm
from pebble.workloads.widths import FastMemory, Widths
from pebble.workloads.workload import Workload

side = st.integers(1, 10)
dtypes = st.sampled_from([("bf16", "bf16"), ("fp8", "fp32"), ("fp8", "bf16"), ("fp32", "fp8")])


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    dtype, out_dtype = draw(dtypes)
    types = {"dtype": dtype, "out_dtype": out_dtype}
    match draw(st.sampled_from(["gemm", "ffn", "attention", "conv2d"])):
        case "gemm":
            return Gemm(draw(st.integers(1, 40)), draw(side), draw(side), accumulate=draw(st.booleans()), **types)
        case "ffn":
            return Ffn(draw(side), draw(side), draw(side), gated=draw(st.booleans()), **types)
        case "attention":
            queries, kv, causal = draw(side), draw(st.integers(1, 2)), draw(st.booleans())
            keys = draw(st.integers(queries, 12))
            softmax = draw(st.sampled_from(["online", "strict"]))
            heads = kv * draw(st.integers(1, 2))
            return Attention(queries, keys, draw(side), draw(side), heads, kv, causal=causal, softmax=softmax, **types)
    return Conv2d(
        1, draw(st.integers(1, 4)), draw(side), 6, 7, draw(st.integers(1, 3)), draw(st.integers(1, 2)), **types
    )


def least(workload: Workload, capacity: int, accumulator: int, values: int | None = None) -> float:
    """Bytes moved by the best schedule for so many values, or bytes where there are accumulators."""
    memory = (
        FastMemory.of_values(capacity, workload)
        if not accumulator
        else FastMemory(capacity, Widths.of(workload, accumulator), values)
    )
    result = best_schedule(workload, memory)
    return float("inf") if result is None else result.bytes


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(workloads(), st.integers(3, 160), st.sampled_from([0, 0, 4, 8]), st.integers(1, 12))
def test_more_memory_moves_no_more(workload: Workload, capacity: int, accumulator: int, more: int) -> None:
    few, many = (least(workload, size, accumulator) for size in (capacity, capacity + more))
    assert many <= few


@pytest.mark.parametrize(
    ("workload", "accumulator", "sizes"),
    [
        (Gemm(1, 256, 4, "fp8", "fp32"), 4, (9, 10)),
        (Gemm(2, 20, 4), 8, (18, 20)),
        (Gemm(128, 128, 8, "bf16", "fp8"), 8, (44, 45)),
        (Gemm(22, 21, 5, "fp32", "bf16", accumulate=True), 4, (68, 71)),
        (Gemm(5, 20, 4), 0, (11, 12)),
        (Gemm(26, 19, 160, "bf16", "fp8"), 0, (133, 134)),
        (Gemm(12, 72, 51, "fp32", "fp8"), 0, (50, 51)),
        (Ffn(1, 2, 3, 2, gated=True, dtype="fp8", out_dtype="fp8"), 8, (21, 22)),
        (Ffn(2, 3, 6, 3, gated=True), 0, (11, 12)),
        (Ffn(32, 16, 8, 32, dtype="fp32", out_dtype="fp8"), 0, (27, 28)),
    ],
)
def test_where_it_moved_more(workload: Workload, accumulator: int, sizes: tuple[int, int]) -> None:
    few, many = (least(workload, size, accumulator) for size in sizes)
    assert many <= few


@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 60), st.integers(1, 40), st.integers(1, 60), st.integers(12, 900), st.integers(3, 200))
def test_nor_where_values_are_limited_too(m: int, n: int, k: int, size: int, values: int) -> None:
    """A register holds one value, however narrow."""
    gemm = Gemm(m, n, k, "fp8", "fp32")
    few, bytes_more, both_more = (
        least(gemm, room, 4, most) for room, most in ((size, values), (size + 5, values), (size + 5, values + 3))
    )
    assert both_more <= bytes_more <= few

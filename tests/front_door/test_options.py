"""Options at the front door: spelled out in help, one meaning each, refused in one sentence where they have none."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest

import pebble
from pebble.errors import InputError
from pebble.reports.options import MEANING

GEMM = pebble.Gemm(256, 256, 256)
KERNEL: dict[str, Any] = {"cache": "1MiB", "sms": 4}
CHIP: dict[str, Any] = {"gpu": "a40"}


OF_KERNELS = (pebble.compare, pebble.simulate, pebble.time, pebble.curve, pebble.tune, pebble.export)
OF_MEMORIES = (*OF_KERNELS, pebble.bound, pebble.prove, pebble.certify, pebble.decode)


@pytest.mark.parametrize("door", OF_KERNELS, ids=lambda door: str(door.__name__))
def test_the_options_of_a_kernel_are_spelled_out(door: Callable[..., Any]) -> None:
    assert {"tile", "stages", "policy", "execution", "allow_infeasible"} <= set(signature(door).parameters)


@pytest.mark.parametrize("door", OF_MEMORIES, ids=lambda door: str(door.__name__))
def test_the_memory_asked_about_is_spelled_out(door: Callable[..., Any]) -> None:
    assert {"gpu", "machine", "cache", "accumulators"} <= set(signature(door).parameters)


def test_every_option_with_a_meaning_is_one() -> None:
    doors = (pebble.bound, pebble.compare, pebble.simulate, pebble.time)
    assert set(MEANING) <= {name for door in doors for name in signature(door).parameters}


def test_what_is_none_is_not_given() -> None:
    more: dict[str, Any] = dict.fromkeys(["tile", "blocks_per_sm", "stages", "execution", "seed", "allow_infeasible"])
    plain, nothing = (pebble.compare(GEMM, "row", **KERNEL, **each).to_dict() for each in ({}, more))
    assert nothing == plain


REFUSED: dict[str, Callable[[], Any]] = {
    "gpu: got it with a DAG": lambda: pebble.bound("gemm", m=2, n=2, k=2, capacity=5, gpu="a40"),
    "sms: got it with a DAG": lambda: pebble.bound("gemm", m=2, n=2, k=2, capacity=5, sms=2),
    "recompute: got it with a DAG": lambda: pebble.bound("gemm", m=2, n=2, k=2, capacity=5, recompute=True),
    "buffers: got it with a DAG": lambda: pebble.bound("gemm", m=2, n=2, k=2, capacity=5, buffers="pooled"),
    "capacity: got it with a workload": lambda: pebble.bound(GEMM, capacity=5),
    "multicast: got it with the boundary to DRAM": lambda: pebble.bound(GEMM, multicast=2, **CHIP),
    "energy: got it with level='l2'": lambda: pebble.bound(GEMM, level="l2", energy="7nm", **CHIP),
    "accumulators: got it with buffers='pooled'": lambda: pebble.bound(
        GEMM, buffers="pooled", accumulators="off", **CHIP
    ),
    "policy: got it with level='l2'": lambda: pebble.compare(GEMM, level="l2", policy="lru", **CHIP),
    "exact: got it with level='l2'": lambda: pebble.compare(GEMM, level="l2", exact=True, **CHIP),
    "schedules: got it with level='l2'": lambda: pebble.compare(GEMM, "row", level="l2", **CHIP),
    "sms: got it with exact": lambda: pebble.compare(GEMM, exact=True, **KERNEL),
    "schedule: got it with exact": lambda: pebble.compare(GEMM, schedule="t.csv", exact=True, cache="160KiB"),
    "time_limit: got it with schedules": lambda: pebble.compare(GEMM, "row", time_limit=3, **KERNEL),
    "schedule: got it with trace": lambda: pebble.simulate(schedule="row", trace="t.csv", cache="1MiB"),
    "sensitivity: got it with trace": lambda: pebble.simulate(trace="t.csv", sensitivity=True, cache="1MiB"),
    "beside_sms: got it with one workload": lambda: pebble.simulate(GEMM, "row", beside_sms=2, **KERNEL),
    "write_trace: got it with beside": lambda: pebble.simulate(
        GEMM, "row", beside="llama-3-8b:mlp", write_trace="t.csv", **KERNEL
    ),
    "sensitivity: got it with write_trace": lambda: pebble.simulate(
        GEMM, "row", write_trace="t.csv", sensitivity=True, **KERNEL
    ),
}


@pytest.mark.parametrize("said", REFUSED)
def test_an_option_of_another_question_is_refused_in_one_sentence(said: str) -> None:
    with pytest.raises(InputError) as caught:
        REFUSED[said]()
    text = str(caught.value)
    assert text.startswith(f"{said}") and ", expected " in text and text.partition("\n")[0].endswith("; leave it out.")

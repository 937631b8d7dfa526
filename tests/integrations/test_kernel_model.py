"""Modelled times by launch parameters: what is picked is what looking at every launch would pick."""

from __future__ import annotations

import itertools
import logging
import math
from dataclasses import replace

import pytest

from pebble.integrations.kernel_model import KernelTimes, Launch, driver_name, dtype_of, fastest_launches, sku_of
from pebble.models.machine import load_machine, machine_names
from pebble.schedules.tile import TileShape
from pebble.workloads import Attention, Conv2d, Gemm, GroupedGemm

SPACE = [
    Launch(TileShape(bm, bn, 64), stages, warps, order)
    for bm, bn, stages, warps, order in itertools.product(
        (64, 128), (64, 256), (3, 4), (4, 8), ("row", "grouped-8")
    )
]  # fmt: skip


@pytest.mark.parametrize("gpu", ["h100-sxm5-80gb", "a40"])
@pytest.mark.parametrize("workload", [Gemm(1000, 3000, 2000), Gemm(64, 8192, 4096), Attention(2048, 2048, 128)])
def test_the_fastest_are_those_of_a_full_look(gpu: str, workload: Gemm | Attention) -> None:
    order = {"gemm": ("row", "grouped-8"), "attention": ("fa2", "fa2")}[workload.family]
    depth = {"gemm": 64, "attention": 1}[workload.family]
    space = [
        launch._replace(schedule=order[launch.schedule != "row"], tile=replace(launch.tile, bk=depth))
        for launch in SPACE
    ]
    times = KernelTimes(gpu, workload)
    best: dict[Launch, float] = {}
    for launch in space:  # each kernel once, in its best order
        kernel = launch._replace(schedule="")
        best[kernel] = min(best.get(kernel, math.inf), times.seconds(launch))
    every = sorted(seconds for seconds in best.values() if seconds < math.inf)[:3]
    found = times.fastest(space, 3)
    if times.chip is not None:  # chosen so that one of them is likely to be about the fastest
        assert len(set(found)) == 3 and times.seconds(space[found[0]]) <= 1.05 * every[0]
        return
    assert len({space[i]._replace(schedule="") for i in found}) == len(every)
    assert [times.seconds(space[i]) for i in found] == pytest.approx(every, rel=1e-4)


def test_what_an_sm_cannot_hold_is_never_picked() -> None:
    times = KernelTimes("a40", Gemm(4096, 4096, 4096))
    wide = Launch(TileShape(256, 256, 128), 4, 8, "row")
    assert times.seconds(wide) == math.inf
    assert times.fastest([wide], 1) == []


def test_a_group_of_products_is_timed_at_a_glance() -> None:
    few, many = (GroupedGemm((rows,) * 8, 4096, 4096) for rows in (64, 512))
    launch = Launch(TileShape(64, 128, 64), 3, 4, "row")
    assert KernelTimes("h200-sxm-141gb", few).seconds(launch) < KernelTimes("h200-sxm-141gb", many).seconds(launch)


def test_what_is_not_modelled_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="pebble"):
        assert fastest_launches("h100-sxm5-80gb", Conv2d(1, 64, 64, 28, 28, 3), SPACE, 2) is None
    assert len(caplog.records) == 1 and "is not modelled" in caplog.text


def test_drivers_names_lead_back_to_the_machine() -> None:
    names = [driver_name(load_machine(sku)) for sku in machine_names()]
    assert len(set(names)) == len(names)
    assert [sku_of(name) for name in names] == list(machine_names())
    assert sku_of("NVIDIA T4") is None


def test_the_type_is_that_of_the_first_tensor() -> None:
    class Tensor:
        dtype = "torch.float16"

    assert dtype_of({"M": 3, "a_ptr": Tensor()}) == "fp16"
    assert dtype_of({"M": 3}) is None

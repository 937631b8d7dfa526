"""Schedules at random: the checker derives what a play of their products counts."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pebble.certificate import RefusedError
from pebble.certificate.upper import ScheduleTraffic, check_banded, check_gemm
from pebble.certificate.upper_chain import Shape, check_chain
from tests.certificate.play import play_banded, play_bands, play_blocks
from tests.certificate.strongest import _bands, _blocks, banded, settled

SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 200))]
ROOM = 10**9


def some_shape(rnd: random.Random) -> Shape:
    """A chain: plain, gated, without a second product, online or strict softmax, with or without a mask."""
    m, k, f, l = (rnd.randint(1, 6) for _ in range(4))
    kind = rnd.randrange(6)
    if kind < 3:
        return Shape(m, k, f, 0 if kind == 2 else l, 1 + (kind > 0))
    sharing = rnd.randint(1, 3) if kind > 4 else 0
    if sharing:
        m, f = sharing * m, m + rnd.randint(0, 3)
    return Shape(m, k, f, l, 1, 2 if kind == 4 else 3, kind == 4, True, sharing)


@pytest.mark.parametrize("seed", SEEDS)
def test_blocks(seed: int) -> None:
    rnd = random.Random(seed)
    exact = 0
    for number in range(100):
        size, accumulate = {x: rnd.randint(1, 7) for x in "mnk"}, rnd.random() < 0.3
        schedule = _blocks(*size.values(), rnd)

        def count(size: Any = size, accumulate: bool = accumulate, schedule: Any = schedule) -> ScheduleTraffic:
            return check_gemm(size, accumulate, ROOM, schedule, "schedule")

        spec = settled(count, schedule)
        if spec is None:
            continue
        memory = play_blocks(size, accumulate, schedule)
        played = ScheduleTraffic({x: memory.loads[x] for x in "ABC"}, {"C": memory.stores["C"]}, spec.peak)
        assert (played, memory.peak <= spec.peak) == (spec, True), (number, size, schedule)
        exact += memory.peak == spec.peak
    assert exact > 50


@pytest.mark.parametrize("seed", SEEDS)
def test_bands_of_blocks_with_turned_corners(seed: int) -> None:
    rnd = random.Random(seed)
    exact = turned = 0
    for number in range(150):
        size, accumulate = {x: rnd.randint(1, 9) for x in "mnk"}, rnd.random() < 0.3
        schedule = banded(*size.values(), rnd)
        try:
            spec = check_banded(size, accumulate, ROOM, schedule, "schedule")
        except RefusedError:
            continue
        memory = play_banded(size, accumulate, schedule)
        played = ScheduleTraffic({x: memory.loads[x] for x in "ABC"}, {"C": memory.stores["C"]}, spec.peak)
        assert (played, memory.peak <= spec.peak) == (spec, True), (number, size, schedule)
        exact += memory.peak == spec.peak
        turned += any(band[key][0][1] for band in schedule["bands"] for key in ("down", "next"))
    assert exact > 50 and turned > 10


@pytest.mark.parametrize("seed", SEEDS)
def test_bands(seed: int) -> None:
    rnd = random.Random(seed)
    exact = 0
    for number in range(150):
        shape = some_shape(rnd)
        schedule = _bands(shape.m, shape.k, shape.f, shape.l, rnd)
        if shape.sharing:
            schedule["runs"] = [{**run, "count": 1} for run in schedule["runs"] for _ in range(run["count"])]

        def count(shape: Shape = shape, schedule: Any = schedule) -> ScheduleTraffic:
            return check_chain(shape, ROOM, schedule, "schedule")

        if any({"first", "turns", "enter"} & set(run) for run in schedule["runs"]):
            continue  # test_played_turns plays these
        spec = settled(count, schedule)
        if spec is None:
            continue
        memory = play_bands(shape, schedule)
        loads = {**{x: memory.loads[x] for x in "ADYH"}, "B": memory.loads["B0"] + memory.loads["B1"]}
        assert {x: n for x, n in spec.loads.items() if n} == {x: n for x, n in loads.items() if n}, (number, schedule)
        assert {x: n for x, n in spec.stores.items() if n} == dict(memory.stores), (number, shape, schedule)
        assert memory.peak <= spec.peak, (number, shape, schedule)
        exact += memory.peak == spec.peak
    assert exact > 20

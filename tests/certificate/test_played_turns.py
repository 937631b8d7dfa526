"""Turned corners of chains with any numbers in them: what the checker takes is legal and counted right.

A schedule at random is written as a certificate writes it. If the checker takes it, its moves are played against the
rules of the game, with the room and the traffic that the checker derived as limits.
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pytest

from pebble.certificate import RefusedError
from pebble.certificate.schedules import Memory, traffic_of
from pebble.certificate.statement import ClaimedWidths, Workload, read_workload
from pebble.certificate.upper import ScheduleTraffic
from pebble.certificate.upper_chain import Shape, check_chain
from pebble.proof import certificate as writer
from pebble.proof.certificate import workload_statement
from pebble.schedules.explicit.attention import attention_chain
from pebble.schedules.explicit.chain import NOTHING, Chain, ChainBand, ChainPlan, Handed
from pebble.schedules.explicit.corner import NO_CORNER, Corner
from pebble.schedules.explicit.ffn import ffn_chain
from pebble.schedules.explicit.fused import FusedSchedule
from pebble.units import ceil_div
from pebble.workloads import Attention, Ffn
from pebble.workloads.widths import ALIKE, FastMemory
from tests.certificate.strongest import _bands, settled
from tests.certificate.strongest_bytes import least_room, moved_in_bytes
from tests.certificate.test_played_schedules import some_shape
from tests.schedules import chain_moves
from tests.schedules.chain_weights import weigh
from tests.schedules.fused_replay import replay

SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 160))]


def corner(rnd: random.Random, lines: int, vectors: int) -> Corner:
    turned = rnd.randint(0, vectors)
    return Corner(rnd.randint(1, lines) if turned else 0, turned, vectors - turned)


def some_band(rnd: random.Random, chain: Chain, extent: int) -> ChainBand:
    """A panel, a band with a wider first block, or one that spills."""
    k, l, f = chain.k, chain.l, chain.f
    kind = rnd.choice(["panel", "panel", "wider", "spill"])
    if kind == "wider" and f > 1:
        first = rnd.randint(1, f - 1)
        block = ceil_div(f - first, rnd.randint(1, f - first))  # a certificate tells their number
        stays = rnd.randint(0, l)
        enter = corner(rnd, first, stays)
        return ChainBand(extent, block, 1 + ceil_div(f - first, block), 0, stays, wider=first, enter=enter)
    if kind == "spill" and not chain.state and f > 1:
        stays = rnd.randint(0, f - 1)
        enter = corner(rnd, k, stays)
        leave = replace(enter, group=rnd.randint(1, l) if enter.turned else 0)
        return ChainBand(extent, 1, f, k, l, spilled=f - stays, enter=enter, leave=leave)
    return ChainBand(extent, 1, f, k, l)


def fits_in_bytes(workload: Workload, schedule: dict[str, Any], plan: ChainPlan, rnd: random.Random) -> bool:
    """In the least room in bytes in which the checker takes it; whether any vector turns."""
    wide, out = workload.in_width, workload.out_width
    widths = ClaimedWidths(wide, wide + rnd.choice([0, 2, 3, 20]), out + rnd.choice([0, 2, 5, 20]), out)
    try:
        traffic = moved_in_bytes(workload, widths, 10**7, schedule)
    except RefusedError:  # not of these kinds
        return False
    played = weigh(plan, widths)
    assert played.held_bytes <= least_room(workload, widths, schedule), (workload.label, widths, schedule)
    assert played.traffic_total == traffic
    runs: list[dict[str, Any]] = schedule["runs"]
    return any(
        corner[1] for run in runs for turn in (*run.get("turns", ()), [run.get("enter", [0, 0, 0])]) for corner in turn
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_what_the_checker_takes_is_legal(seed: int) -> None:
    rnd = random.Random(seed)
    taken = turned = in_bytes = 0
    for _ in range(250):
        m, k, l, f = rnd.randint(1, 7), rnd.randint(1, 5), rnd.randint(1, 5), rnd.randint(2, 9)
        work: Ffn | Attention = Ffn(m, k, f, l, rnd.random() < 0.5) if rnd.random() < 0.7 else Attention(m, f, k, l)
        chain = ffn_chain(work) if isinstance(work, Ffn) else attention_chain(work)
        left, bands = m, []
        while left:
            bands.append(some_band(rnd, chain, rnd.randint(1, left)))
            left -= bands[-1].extent
        handed: dict[tuple[int, int], Handed] = {}
        for before, after in pairwise(bands):
            vectors = rnd.choice([0, 1, f // 2, rnd.randint(0, f)])
            turns = corner(rnd, before.extent, vectors), corner(rnd, after.extent, vectors)
            panels = all(band.carried_first == k and not band.spilled for band in (before, after))
            result = Handed(vectors * chain.weights_per_column, 0, *turns) if panels and vectors else NOTHING
            handed[id(before), id(after)] = result

        def handed_on(
            _c: Chain, _s: str, _n: FastMemory, before: ChainBand, after: ChainBand, _f: int, known=handed
        ) -> Handed:
            return known[id(before), id(after)]

        plan = ChainPlan("rows", tuple((band, 1) for band in bands), chain, FastMemory.of_values(10**9), {}, {}, 0)
        workload = read_workload(workload_statement(work), "workload")
        with patch.object(writer, "handed_on", handed_on), patch.object(chain_moves, "handed_on", handed_on):
            try:
                spec = traffic_of(workload, Memory(10**9), writer._bands(plan), "schedule")
            except RefusedError:
                continue
            loads, stores = ({x: n for x, n in traffic.items() if n} for traffic in (spec.loads, spec.stores))
            schedule = FusedSchedule(
                "bands", "", work, loads, stores, spec.peak, FastMemory.of_values(spec.peak), 0, plan
            )
            assert replay(schedule) <= spec.peak
            in_bytes += fits_in_bytes(workload, writer._bands(plan), plan, rnd)
        taken += 1
        corners = [*(band.enter for band in bands), *(value.leave for value in handed.values())]
        turned += any(item != NO_CORNER and item.turned for item in corners)
    assert taken > 60 and turned > 20 and in_bytes > 5


def once_each(schedule: dict[str, Any]) -> dict[str, Any]:
    """The same bands, every run of one band."""
    runs, nothing = [], [[0, 0, 0]] * 2
    for run in schedule["runs"]:
        for number in range(run["count"]):
            which = number + 1 == run["count"]
            single = {**run, "count": 1, "kept": [0, run["kept"][which]]}
            runs.append(single | ({"turns": [nothing, run["turns"][which]]} if "turns" in run else {}))
    return {**schedule, "runs": runs}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_of_several_bands_is_as_many_runs(seed: int) -> None:
    """Corners and kept values from one band to the next of its run count as those to the first of the next run."""
    rnd, several = random.Random(seed), 0
    for _ in range(1500):
        shape = some_shape(rnd)
        schedule = _bands(shape.m, shape.k, shape.f, shape.l, rnd)

        def count(shape: Shape = shape, schedule: dict[str, Any] = schedule) -> ScheduleTraffic:
            return check_chain(shape, 10**9, schedule, "schedule")

        spec = None if shape.sharing else settled(count, schedule)
        if spec is not None:
            assert check_chain(shape, 10**9, once_each(schedule), "schedule") == spec
            several += any(run["count"] > 1 and "turns" in run for run in schedule["runs"])
    assert several > 5


@pytest.mark.parametrize("seed", SEEDS)
def test_panels_without_a_second_product(seed: int) -> None:
    """Gate and up in one kernel: corners whose lines hold values of the first kind alone."""
    rnd, taken = random.Random(seed), 0
    for _ in range(60):
        m, k, f = rnd.randint(2, 10), rnd.randint(1, 6), rnd.randint(2, 10)
        chain, left, bands = Chain(m, k, f, 0, 2), m, []
        while left:
            bands.append(ChainBand(rnd.randint(1, left), 1, f, k, 0))
            left -= bands[-1].extent
        handed = {}
        for before, after in pairwise(bands):
            vectors = rnd.randint(0, f)
            turns = corner(rnd, before.extent, vectors), corner(rnd, after.extent, vectors)
            handed[id(before), id(after)] = Handed(2 * k * vectors, 0, *turns) if vectors else NOTHING

        def handed_on(
            _c: Chain, _s: str, _n: FastMemory, before: ChainBand, after: ChainBand, _f: int, known=handed
        ) -> Handed:
            return known[id(before), id(after)]

        plan = ChainPlan("rows", tuple((band, 1) for band in bands), chain, FastMemory.of_values(10**9), {}, {}, 0)
        with patch.object(writer, "handed_on", handed_on), patch.object(chain_moves, "handed_on", handed_on):
            try:
                spec = check_chain(Shape(m, k, f, 0, 2), 10**9, writer._bands(plan), "schedule")
            except RefusedError:
                continue
            played = weigh(plan, ALIKE)
        assert played.held_bytes <= spec.peak
        traffic = ({x: n for x, n in item.items() if n} for item in (spec.loads, spec.stores))
        assert [*traffic] == [dict(played.loads), dict(played.stores)]
        taken += 1
    assert taken > 10

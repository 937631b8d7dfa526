"""Row panels that lack a corner of Y: played move by move, counted again by the checker."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pebble.certificate import RefusedError
from pebble.certificate.statement import ClaimedWidths as WidthsOfChecker
from pebble.certificate.statement import read_workload
from pebble.certificate.upper_chain import Shape, check_panels
from pebble.families import lower_bound
from pebble.proof.certificate import upper_claim, workload_statement
from pebble.reports.bound import bound_workload
from pebble.schedules.explicit.chain import SIDES, Chain
from pebble.schedules.explicit.ffn import best_ffn_schedule, ffn_chain, fused_ffn
from pebble.schedules.explicit.fused import REMAINDER
from pebble.schedules.explicit.remainder import PanelsWithRemainder, best_panels_with_remainder
from pebble.workloads import Ffn
from pebble.workloads.widths import FastMemory, Widths
from tests.rooms import in_values
from tests.schedules.chain_weights import weigh
from tests.schedules.fused_replay import replay

WIDTHS = [
    Widths(2, 4, 4, 2),
    Widths(1, 4, 4, 2),
    Widths(4, 4, 4, 2),
    Widths(1, 1, 2, 2),
    Widths(4, 4, 2, 2),
]


@st.composite
def networks(draw: st.DrawFn) -> Ffn:
    sides = [draw(st.integers(2, 9)) for _ in range(4)]
    return Ffn(*sides, gated=draw(st.booleans()))


@st.composite
def panels(draw: st.DrawFn) -> tuple[Ffn, PanelsWithRemainder]:
    """Any number of panels and any corner."""
    ffn, side = draw(networks()), draw(st.sampled_from(SIDES))
    lines = ffn.tokens if side == "rows" else ffn.hidden
    count = draw(st.integers(1, lines))
    assume(lines // count > 1)
    corner = draw(st.integers(1, lines // count - 1)), draw(st.integers(1, ffn.d_out - 1))
    plan = PanelsWithRemainder(ffn_chain(ffn), FastMemory.of_values(0), side, count, corner)
    return ffn, replace(plan, memory=FastMemory.of_values(plan.peak_elements, ffn))


@settings(max_examples=150, deadline=None)
@given(panels())
def test_any_corner_is_legal_and_counted(drawn: tuple[Ffn, PanelsWithRemainder]) -> None:
    ffn, plan = drawn
    schedule = fused_ffn(ffn, REMAINDER, plan)
    assert replay(schedule) == schedule.peak_elements
    claim = upper_claim(read_workload(workload_statement(ffn), "workload"), schedule)
    assert claim["elements"] == schedule.elements
    assert claim["moved"]["peak_elements"] == schedule.peak_elements


@settings(max_examples=33, deadline=None)
@given(panels(), st.sampled_from(WIDTHS))
def test_any_corner_in_bytes(drawn: tuple[Ffn, PanelsWithRemainder], widths: Widths) -> None:
    """What is held and moved, and the least room that the checker takes."""
    _, plan = drawn
    played = weigh(plan, widths)
    memory = FastMemory(plan.taken(widths), widths)
    assert played.held_bytes <= memory.bytes
    assert played.traffic_total == replace(plan, memory=memory).bytes
    c = plan.chain
    shape, spec = (
        Shape(c.m, c.k, c.f, c.l, c.streams),
        {"kind": "panels apart", "side": plan.side, "panels": plan.panels},
    )
    spec["corner"] = list(plan.corner)
    of = WidthsOfChecker(widths.read, widths.hidden, widths.partial, widths.written)
    assert check_panels(shape, memory.bytes, spec, "schedule", of).elements == plan.elements
    with pytest.raises(RefusedError, match="the capacity is"):
        check_panels(shape, memory.bytes - 1, spec, "schedule", of)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(networks(), st.integers(3, 150))
def test_the_best_is_legal(ffn: Ffn, capacity: int) -> None:
    plan = best_panels_with_remainder(ffn_chain(ffn), FastMemory.of_values(capacity, ffn))
    assume(plan is not None)
    assert plan is not None
    schedule = fused_ffn(ffn, REMAINDER, plan)
    assert replay(schedule) <= schedule.peak_elements <= capacity
    assert schedule.elements >= lower_bound(ffn, capacity).elements


@pytest.mark.parametrize(("sides", "mebibytes"), [((4096, 4096, 16384), 64), ((16384, 1024, 4096), 16)])
def test_powers_of_two_lose_a_corner_instead_of_a_pass(sides: tuple[int, int, int], mebibytes: int) -> None:
    ffn = Ffn(*sides)
    best = in_values(best_ffn_schedule, ffn, mebibytes << 19)
    assert best.family == REMAINDER
    assert best.elements < 1.11 * ffn.compulsory_elements


def test_certified_in_values_and_in_bytes() -> None:
    for ffn, size, accumulators in (
        (Ffn(1024, 1024, 4096), "4MiB", "off"),
        (Ffn(1024, 1024, 4096), "6MiB", "fp32"),
        (Ffn(1024, 1024, 4096, gated=True), "4MiB", "off"),
    ):
        result = bound_workload(ffn, cache=size, accumulators=accumulators)
        assert result.upper is not None
        claim = result.certificate()["claims"][-1]
        assert claim["schedule"]["kind"] == "panels apart" and claim["bytes"] == result.upper.bytes


def test_so_few_values() -> None:
    ffn, capacity = Ffn(1024, 1024, 4096), FastMemory(6 << 20, Widths(2, 4, 4, 2))
    free = best_ffn_schedule(ffn, capacity)
    assert free is not None
    few = best_ffn_schedule(ffn, replace(capacity, values=free.peak_elements - 1))
    assert few is not None and few.peak_elements < free.peak_elements and few.bytes >= free.bytes


def test_softmax_needs_the_whole_row() -> None:
    """A score that waits in slow memory is not what it will be, so attention has no such schedule."""
    assert best_panels_with_remainder(Chain(4096, 128, 4096, 128, state=3), FastMemory.of_values(4096 * 256)) is None
    fields = {"kind": "panels apart", "side": "rows", "panels": 1, "corner": [2, 2]}
    with pytest.raises(RefusedError, match="cannot be stored complete"):
        check_panels(Shape(8, 4, 8, 4, state=3), 10_000, fields, "schedule")


@pytest.mark.parametrize(
    ("change", "why"),
    [({"corner": [16, 2]}, "corner"), ({"corner": [2, 8]}, "corner"), ({"corner": [0, 2]}, "corner"),
     ({"panels": 0}, "panels"), ({"panels": 33}, "panels"), ({"side": "columns"}, "side"),
     ({"corner": [1, 1]}, "the capacity is")],
)  # fmt: skip
def test_what_cannot_be_is_refused(change: dict[str, Any], why: str) -> None:
    shape, spec = Shape(32, 8, 50, 8), {"kind": "panels apart", "side": "rows", "panels": 2, "corner": [5, 4]}
    check_panels(shape, 256, spec, "schedule")
    with pytest.raises(RefusedError, match=why):
        check_panels(shape, 256, spec | change, "schedule")

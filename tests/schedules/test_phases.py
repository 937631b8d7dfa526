"""Two products in two phases: played move by move, counted again by the checker, and no worse than what was known."""

import json
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pebble.certificate import RefusedError
from pebble.certificate.schedules import check_phases, check_upper_bytes
from pebble.certificate.statement import ClaimedWidths as WidthsOfChecker
from pebble.certificate.statement import read_workload
from pebble.certificate.upper_chain import Shape as ShapeOfChecker
from pebble.proof.certificate import _plan, workload_statement
from pebble.reports.bound import bound_workload
from pebble.schedules.explicit.blocked import blocked_products
from pebble.schedules.explicit.chain import SIDES, Chain, chain_bytes
from pebble.schedules.explicit.chain_search import best_chain_plan
from pebble.schedules.explicit.corner import Corner
from pebble.schedules.explicit.ffn import best_ffn_schedule, ffn_chain, fused_ffn
from pebble.schedules.explicit.phases import Handover, Phases, _Search, best_phases, hands_on
from pebble.schedules.explicit.remainder import remainders
from pebble.workloads import Attention, Ffn, Gemm
from pebble.workloads.widths import FastMemory, Widths
from tests.schedules.chain_weights import weigh
from tests.schedules.fused_replay import replay

WIDTHS = [
    Widths(2, 4, 4, 2),
    Widths(1, 4, 4, 2),
    Widths(4, 4, 4, 2),
    Widths(1, 1, 2, 2),
    Widths(4, 4, 2, 2),
]
USUAL = WIDTHS[0]
LARGE = 10**6
TOLD = Ffn(512, 256, 1792, gated=True)
side = st.integers(2, 9)


@st.composite
def networks(draw: st.DrawFn) -> Ffn:
    return Ffn(*(draw(side) for _ in range(4)), gated=draw(st.booleans()))


rooms = st.builds(FastMemory, st.integers(20, 1200), st.sampled_from(WIDTHS))


def search(ffn: Ffn, memory: FastMemory) -> _Search:
    chain = ffn_chain(ffn)
    return _Search(chain, Gemm(chain.m, chain.l, chain.f), memory)


def check(ffn: Ffn, plan: Phases) -> int:
    """Every move is legal, what moves is as counted and what is held fits; the most bytes held."""
    assert plan.fits
    played = weigh(plan, plan.memory.widths)
    assert played.held_bytes <= plan.memory.bytes
    assert played.loads == +Counter(plan.loads)
    assert played.stores == +Counter(plan.stores)
    assert played.traffic_total == plan.bytes == counted(plan, plan.memory.bytes)
    assert replay(fused_ffn(ffn, "fused", plan)) <= plan.peak_elements
    return played.held_bytes


def counted(plan: Phases, capacity: int, changed: dict[str, Any] | None = None) -> int:
    """Bytes as the checker counts them, in a memory of this capacity."""
    c, w = plan.chain, plan.memory.widths
    shape = ShapeOfChecker(c.m, c.k, c.f, c.l, c.streams)
    spec = json.loads(json.dumps(_plan(plan) | (changed or {})))
    of = WidthsOfChecker(w.read, w.hidden, w.partial, w.written)
    traffic = check_phases(shape, capacity, spec, "schedule", of)
    return chain_bytes(c, w, {"Y": 0, **traffic.loads}, traffic.stores)


def least_room(plan: Phases) -> int:
    """The fewest bytes in which the checker takes it."""
    low, high = 0, LARGE
    while high - low > 1:
        middle = (low + high) // 2
        try:
            counted(plan, middle)
        except RefusedError:
            low = middle
        else:
            high = middle
    return high


@settings(max_examples=100, deadline=None)
@given(networks(), rooms, st.integers(1, 4), st.integers(0, 8), st.integers(1, 4))
def test_any_numbers_of_panels_columns_and_slabs(
    ffn: Ffn, memory: FastMemory, panels: int, columns: int, slabs: int
) -> None:
    assume(panels <= ffn.tokens and slabs <= ffn.tokens and columns < ffn.d_out)
    plan = search(ffn, memory).in_slabs(panels, columns, slabs)
    if plan is not None:
        check(ffn, plan)


@settings(max_examples=33, deadline=None)
@given(networks(), rooms)
def test_the_best_is_legal(ffn: Ffn, memory: FastMemory) -> None:
    chain = ffn_chain(ffn)
    plan = best_phases(chain, Gemm(chain.m, chain.l, chain.f), memory, 10**9)
    if plan is not None:
        check(ffn, plan)


def test_any_corner_that_the_checker_takes_is_legal() -> None:
    """Columns handed on through any corners; the least room that the checker takes is enough for the play."""
    turned = exact = 0
    refusals: set[str] = set()
    rnd = random.Random(7)
    for _ in range(400):
        ffn = Ffn(*(rnd.randint(2, 8) for _ in range(4)), gated=rnd.random() < 0.4)
        memory = FastMemory(rnd.randint(50, 2000), rnd.choice(WIDTHS))
        panels, columns = rnd.randint(1, min(3, ffn.tokens)), rnd.randint(0, ffn.d_out - 1)
        plan = search(ffn, memory).in_slabs(panels, columns, rnd.randint(1, min(4, ffn.tokens)))
        if plan is None or not hands_on(plan.first, plan.rest):
            continue
        vectors = rnd.randint(1, ffn.hidden)
        corners = []
        for lines in (ffn.d_model, ffn.d_out - columns):
            turns = rnd.randint(0, vectors)
            corners.append(Corner(rnd.randint(1, lines) if turns else 0, turns, vectors - turns))
        plan = replace(plan, handed=Handover(plan.rest.bands[0].width, *corners))
        try:
            counted(plan, LARGE)
        except RefusedError as refusal:
            refusals.add(refusal.why)
            continue
        turned += corners[0].turned > 0
        needed = least_room(plan)
        held = check(ffn, replace(plan, memory=replace(memory, bytes=needed)))
        assert held <= needed
        exact += held == needed
    assert turned > 40 and exact > 20
    assert all("both sides" in why or "was kept for it" in why for why in refusals)


@settings(max_examples=33, deadline=None)
@given(networks(), rooms, st.integers(0, 8), st.integers(0, 5))
def test_any_chain_and_any_product(ffn: Ffn, memory: FastMemory, columns: int, which: int) -> None:
    """Bands of rows or hidden units in the first phase, blocks or a corner apart in the second."""
    assume(columns < ffn.d_out and memory.bytes >= 12)
    chain = ffn_chain(ffn)
    along = replace(chain, l=columns)
    plans = [plan for side in SIDES if (plan := best_chain_plan(along, side, memory)) is not None]
    first = min(plans, key=lambda plan: plan.bytes, default=None)
    gemm = Gemm(ffn.tokens, ffn.d_out - columns, ffn.hidden)
    rest = [
        *(product for product in blocked_products(gemm, memory) if product.fits),
        *remainders(gemm, memory),
    ]
    if first is not None and not first.stores["H"] and which < len(rest):
        check(ffn, Phases(chain, memory, first, rest[-1 - which]))


@pytest.mark.parametrize(
    ("ffn", "mebibytes", "most"),
    [  # the best in one phase or kernel by kernel: 952,295,424, 493,174,784, 736,108,544 and 522,729,600 bytes
        (Ffn(8192, 4096, 11008), 40, 904_641_762),
        (Ffn(4096, 4096, 14336), 72, 465_616_896),
        (Ffn(4096, 4096, 14336, gated=True), 50, 644_628_480),
        (Ffn(8192, 1600, 6400), 6, 508_319_472),
    ],
)
def test_phases_lower_the_traffic_of_networks(ffn: Ffn, mebibytes: int, most: int) -> None:
    memory = FastMemory(mebibytes << 20, USUAL)
    result = best_ffn_schedule(ffn, memory)
    assert result is not None and result.plan is not None and isinstance(result.plan, Phases)
    assert result.bytes <= most
    few = best_ffn_schedule(ffn, replace(memory, values=result.peak_elements * 9 // 10))
    assert few is not None and few.bytes >= result.bytes and few.peak_elements <= result.peak_elements * 9 // 10


def test_more_memory_moves_no_more() -> None:
    for gated in (False, True):
        ffn = Ffn(4096, 2048, 7168, gated=gated)
        results = [best_ffn_schedule(ffn, FastMemory(size << 18, USUAL)) for size in range(8, 120, 16)]
        traffic = [item.bytes for item in results if item is not None]
        assert len(traffic) == len(results) and traffic == sorted(traffic, reverse=True)


def test_softmax_has_no_phases() -> None:
    assert best_phases(Chain(64, 8, 64, 8, state=3), Gemm(64, 8, 64), FastMemory(4000, USUAL), 10**9) is None
    spec = Attention(8, 8, 4, 4)
    with pytest.raises(RefusedError, match="a network only"):
        check_upper_bytes(read_workload(workload_statement(spec), "workload"), certified(), "claim")


def certified() -> dict[str, Any]:
    """The claim of a gated network: one panel, 16 columns of Y along, 23 of H handed on to the first of two slabs."""
    claim: dict[str, Any] = bound_workload(TOLD, cache="300KiB", accumulators="fp32").certificate()["claims"][-1]
    return json.loads(json.dumps(claim))


def changed(claim: dict[str, Any], path: tuple[str | int, ...], value: Any) -> None:
    inside: Any = claim["schedule"]
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value


def test_certified() -> None:
    claim = certified()
    assert claim["schedule"]["kind"] == "phases" and claim["schedule"]["columns"] == 16
    assert sum(claim["schedule"]["handed"][0][1:]) == sum(claim["schedule"]["handed"][1][1:]) == 23
    check_upper_bytes(read_workload(workload_statement(TOLD), "workload"), claim, "claim")


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("columns",), 256, "columns"),
        (("columns",), 15, "stay"),
        (("columns",), 17, "keeps all of A and Y"),
        (("handed",), [[0, 0, 23], [0, 0, 24]], "vectors that leave one block and enter the next"),
        (("handed",), [[0, 0, 24], [0, 0, 24]], "the capacity is"),
        (("handed",), [[0, 0, 1], [0, 0, 1]], "bytes moved"),
        (("handed",), [[257, 23, 0], [1, 23, 0]], "handed"),
        (("handed",), [[1, 23, 0], [241, 23, 0]], "handed"),
        (("handed",), [[1, 1792, 0], [1, 1792, 0]], "both sides"),
        (("first", "side"), "hidden", "first"),
        (("first", "runs", 0, "blocks"), 1, "no second block"),
        (("rest", "axis"), "n", "at most 240"),
        (("rest", "bands", 0, "stationary"), "A", "there are 240"),
        (("rest", "bands", 0, "blocks"), 2, "the first block afterwards"),
    ],
)
def test_what_cannot_be_is_refused(path: tuple[str | int, ...], value: Any, why: str) -> None:
    claim = certified()
    changed(claim, path, value)
    with pytest.raises(RefusedError, match=why):
        check_upper_bytes(read_workload(workload_statement(TOLD), "workload"), claim, "claim")


def phases(shape: ShapeOfChecker, widths: WidthsOfChecker, told: dict[str, Any]) -> int:
    """Bytes of H that move."""
    traffic = check_phases(shape, 10**6, told, "schedule", widths)
    return widths.read * (traffic.loads["H"] + traffic.stores["H"])


def test_kept_values_and_spilled_columns_are_not_in_the_way() -> None:
    """What the last panel finds of B and D, and H stored twice, are refused."""
    shape, widths = ShapeOfChecker(8, 3, 9, 5), WidthsOfChecker(2, 4, 4, 2)
    none = [[0, 0, 0]] * 2
    slab = {"stationary": "C", "width": 4, "count": 2, "blocks": 1, "across": [0, 0, 0], "down": none, "next": none}
    run = {"extent": 4, "count": 2, "blocks": 9, "stay": [3, 2], "kept": [0, 0]}
    fields: dict[str, Any] = {"kind": "phases", "columns": 2, "first": {"kind": "bands", "side": "rows", "runs": [run]}}
    fields |= {"rest": {"kind": "banded", "axis": "m", "bands": [slab]}, "handed": [[1, 3, 0], [1, 2, 1]]}
    traffic = phases(shape, widths, fields)
    assert traffic == phases(shape, widths, fields | {"handed": none}) - 2 * 2 * 4 * 3
    fields["rest"]["bands"][0] = slab | {"stationary": "A"}
    with pytest.raises(RefusedError, match="not one of rows of Y"):
        phases(shape, widths, fields)
    fields["rest"]["bands"][0] = slab
    run["kept"] = [5, 0]
    with pytest.raises(RefusedError, match="finds nothing that was kept for it"):
        phases(shape, widths, fields)
    run |= {"kept": [0, 0], "spilled": 4}
    with pytest.raises(RefusedError, match="all of H is stored here"):
        phases(shape, widths, fields)

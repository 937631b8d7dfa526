"""FFN schedules: every one is played move by move, and the best beat the figures of other tools."""

import itertools
import random
from dataclasses import replace
from math import isqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.certificate import RefusedError
from pebble.certificate.statement import read_workload
from pebble.errors import InfeasibleError
from pebble.proof.certificate import upper_claim, workload_statement
from pebble.schedules.explicit.attention import attention_chain
from pebble.schedules.explicit.chain import SIDES, Chain, handed_on
from pebble.schedules.explicit.chain_bands import best_band, wider_band
from pebble.schedules.explicit.chain_search import best_chain_plan, plan_of_runs
from pebble.schedules.explicit.ffn import best_ffn_schedule, ffn_chain, ffn_schedules, gate_and_up_then
from pebble.schedules.explicit.fused import REMAINDER, FusedSchedule
from pebble.schedules.explicit.gemm import BandedProduct, GateAndUp
from pebble.schedules.explicit.gemm_search import best_gemm_schedule
from pebble.workloads import Attention, Ffn, Gemm
from pebble.workloads.widths import ALIKE, FastMemory, Widths
from tests.rooms import in_values
from tests.schedules.fused_replay import replay
from tests.schedules.test_explicit_gemm import bands

side = st.integers(1, 7)


@settings(max_examples=27, deadline=None)
@given(side, side, side, side, st.booleans(), st.integers(3, 80))
def test_every_family_is_legal(m: int, k: int, f: int, l: int, gated: bool, capacity: int) -> None:
    schedules = in_values(ffn_schedules, Ffn(m, k, f, l, gated), capacity)
    for schedule in schedules:
        assert replay(schedule) <= schedule.peak_elements <= capacity
        assert schedule.elements >= schedule.workload.compulsory_elements
    assert [s.bytes for s in schedules] == sorted(s.bytes for s in schedules)


def test_mixed_bands_are_played_too() -> None:
    """Bands of different rules, parts that stay between blocks, values that stay between bands."""
    schedule = next(s for s in in_values(ffn_schedules, Ffn(16, 8, 22, 8), 89) if s.family == "bands of rows")
    assert schedule.plan is not None
    bands = [band for band, _ in schedule.plan.runs]
    assert len({(b.extent, b.blocks) for b in bands}) > 1
    assert replay(schedule) <= 89


@pytest.mark.parametrize(
    ("mebibytes", "at_most", "other_tools"),
    [(6, 955.3e6, 1001.4e6), (40, 361_796_288, 415.3e6), (50, 305_545_216, 330.0e6), (72, 230_694_912, 235.0e6)],
)
def test_beats_other_tools(mebibytes: int, at_most: float, other_tools: float) -> None:
    best = in_values(best_ffn_schedule, Ffn(8192, 4096, 11008), mebibytes * 2**19)
    assert best.elements <= at_most < other_tools
    assert best.bytes == 2 * best.elements
    assert best.peak_elements <= mebibytes * 2**19


def test_families_at_40_mib() -> None:
    result = {s.family: s.elements for s in in_values(ffn_schedules, Ffn(8192, 4096, 11008), 40 * 2**19)}
    # four passes over the weights of 2048 rows each; from pass to pass w columns stay, w (w + 1) values are free
    turned = (isqrt(4 * (40 * 2**19 - 2048 * 8192) + 1) - 1) // 2
    assert result["row panel"] == 4 * 2 * 4096 * 11008 + 2 * 8192 * 4096 - 3 * turned * 2 * 4096
    assert set(result) == {
        "row panel",
        REMAINDER,
        "column panel",
        "hidden block",
        "Y stationary",
        "bands of rows",
        "bands of hidden units",
        "unfused",
    }


def test_the_first_block_is_wider_where_that_pays() -> None:
    best = in_values(best_ffn_schedule, Ffn(4096, 4096, 14336), 50 * 2**19)
    assert best.elements <= 219_545_600
    assert best.plan is not None
    (band,) = best.plan.bands
    assert band.wider > band.block and band.enter.turned > 0


@settings(max_examples=13, deadline=None)
@given(side, side, side, side, st.booleans(), st.integers(3, 60), st.integers(5, 40))
def test_more_room_never_costs_more(m: int, k: int, f: int, l: int, gated: bool, capacity: int, more: int) -> None:
    ffn = Ffn(m, k, f, l, gated)
    assert (
        in_values(best_ffn_schedule, ffn, capacity + more).elements
        <= in_values(best_ffn_schedule, ffn, capacity).elements
    )


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("shape", [pytest.param((8192, 4096, 11008), marks=pytest.mark.slow), (1000, 300, 777)])
def test_more_room_never_costs_more_at_full_size(shape: tuple[int, int, int], gated: bool) -> None:
    costs = [in_values(best_ffn_schedule, Ffn(*shape, gated=gated), int(1.6**i)).elements for i in range(5, 38, 2)]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("seed", range(3))
def test_any_bands_are_legal_and_counted(seed: int) -> None:
    """Panels, wider first blocks and spilling bands of any heights, in any order; the checker counts the same."""
    rnd = random.Random(seed)
    turned = {"panels": 0, "wider": 0, "spilled": 0}
    played = 0
    while played < 150:
        work = Ffn(*(rnd.randint(1, 9) for _ in range(4)), rnd.random() < 0.4)
        if rnd.random() < 0.3:
            work = Attention(rnd.randint(1, 9), rnd.randint(1, 12), rnd.randint(1, 6), rnd.randint(1, 6))
        chain = ffn_chain(work) if isinstance(work, Ffn) else attention_chain(work)
        capacity, runs, left = rnd.choice([rnd.randint(5, 60), rnd.randint(5, 300)]), [], chain.m
        while left:
            extent = rnd.randint(1, left)
            if rnd.random() < 0.25:
                band = wider_band(chain, extent, rnd.randint(2, 4), FastMemory.of_values(capacity))
            else:
                band = best_band(
                    chain,
                    "rows",
                    extent,
                    FastMemory.of_values(capacity),
                    rnd.choice(["panel", "panel", "spill", "keep"]),
                )
            if band is None:
                break
            runs.append((band, rnd.choice([1, left // extent])))
            left -= extent * runs[-1][1]
        if left:
            continue
        plan = plan_of_runs(chain, "rows", runs, FastMemory.of_values(capacity))
        names = {"A": "X", "B": "Wg+Wu" if chain.streams == 2 else "W1", "D": "W2", "Y": "Y", "H": "H"}
        if isinstance(work, Attention):
            names = {"A": "Q", "B": "K", "D": "V", "Y": "O", "H": "S"}
        loads, stores = ({names[x]: n for x, n in traffic.items() if n} for traffic in (plan.loads, plan.stores))
        memory = FastMemory.of_values(capacity, work)
        plan = replace(plan, memory=memory)
        schedule = FusedSchedule("bands", "", work, loads, stores, plan.peak_elements, memory, plan.bytes, plan)
        assert replay(schedule) <= plan.peak_elements <= capacity
        upper_claim(read_workload(workload_statement(work), "workload"), schedule)
        played += 1
        turned["wider"] += any(band.wider and band.enter.turned for band in plan.bands)
        turned["spilled"] += any(band.spilled and band.enter.turned for band in plan.bands)
        pairs = itertools.pairwise(plan.bands)
        turned["panels"] += any(
            handed_on(chain, "rows", FastMemory.of_values(capacity), *pair, chain.f).leave.turned for pair in pairs
        )
    assert min(turned.values()) > 0


def test_gated_spills_a_band_where_that_pays() -> None:
    ffn = Ffn(8192, 4096, 11008, gated=True)
    result = {s.family: s for s in in_values(ffn_schedules, ffn, 50 * 2**19)}
    best = result["bands of rows"]
    assert best.elements < 436.1e6 < result["row panel"].elements < result["unfused"].elements
    assert best.plan is not None
    assert best.loads["H"] == best.stores["H"] == sum(b.extent * b.spilled for b in best.plan.bands) > 0


@settings(max_examples=67, deadline=None)
@given(bands(), st.integers(1, 6))
def test_any_bands_of_gate_and_up_are_legal_and_counted(product: BandedProduct, d_out: int) -> None:
    """In pairs of columns, as one product with a cell of H for each; the checker counts the same traffic and room."""
    gemm, room = replace(product.gemm, accumulate=False), 2 * product.memory.bytes + 3
    ffn = Ffn(gemm.m, gemm.k, gemm.n, d_out, gated=True)
    memory = FastMemory.of_values(room, ffn)
    pairs = GateAndUp(gemm, memory.handing_on, product.axis, product.bands)
    schedule = gate_and_up_then(ffn, memory, pairs, best_gemm_schedule(Gemm(gemm.m, d_out, gemm.n), memory))
    statement = read_workload(workload_statement(ffn), "workload")
    if pairs.spilled:
        with pytest.raises(RefusedError, match="leaves before it is complete"):
            upper_claim(statement, schedule)
        return
    assert pairs.fits
    assert replay(schedule) <= schedule.peak_elements <= room
    assert upper_claim(statement, schedule)["elements"] == schedule.elements
    assert pairs.elements >= pairs.compulsory_elements


def test_gate_and_up_turn_corners_too() -> None:
    """As a chain without a second product, whose blocks turn no corners, they moved 929,133,166 values."""
    ffn = Ffn(8192, 4096, 11008, gated=True)
    both, last = in_values(best_ffn_schedule, ffn, 6 * 2**19).kernels
    assert isinstance(both, GateAndUp) and isinstance(last, BandedProduct)
    assert both.elements <= 904_397_756
    assert both.elements + last.elements <= 1_362_080_233


def test_what_fits_is_compulsory() -> None:
    ffn = Ffn(8192, 768, 3072)
    best = in_values(best_ffn_schedule, ffn, 40 * 2**19)
    assert best.elements == ffn.compulsory_elements == 17_301_504
    assert best.name.startswith("compulsory")
    assert best.to_json()["stores_elements"] == {"Y": 8192 * 768}


def test_gated_needs_room_for_two_cells() -> None:
    gated, plain = Ffn(6, 4, 9, 4, gated=True), Ffn(6, 4, 9, 4)
    for capacity in (*range(3, 12), *range(12, 60, 6)):
        assert (
            in_values(best_ffn_schedule, gated, capacity).elements
            > in_values(best_ffn_schedule, plain, capacity).elements
        )
    assert in_values(best_ffn_schedule, gated, 3).family == "unfused"
    assert len(in_values(best_ffn_schedule, gated, 3).kernels) == 4


def test_output_of_another_width() -> None:
    best = in_values(best_ffn_schedule, Ffn(64, 16, 32, 8, dtype="fp8"), 10_000)
    assert best.bytes == 64 * 16 + 16 * 32 + 32 * 8 + 2 * 64 * 8


def test_too_small() -> None:
    with pytest.raises(InfeasibleError, match="at least 3"):
        in_values(best_ffn_schedule, Ffn(2, 2, 2), 2)
    with pytest.raises(InfeasibleError, match="at least 3"):
        best_chain_plan(Chain(2, 2, 2, 2), SIDES[0], FastMemory.of_values(2))


@pytest.mark.parametrize("widths", [ALIKE, Widths(2, 4, 4, 2)], ids=["values", "fp32 sums"])
def test_weights_stay_where_tokens_are_many(widths: Widths) -> None:
    """Two bands of H whose weights stay, A twice and Y spilled once: panels of rows do not hide them."""
    ffn, memory = Ffn(131072, 4096, 14336), FastMemory(60817408 * widths.read, widths)
    best, stay = best_ffn_schedule(ffn, memory), best_chain_plan(ffn_chain(ffn), "hidden", memory)
    panels = best_chain_plan(ffn_chain(ffn), "rows", memory)
    assert best is not None and stay is not None and panels is not None
    assert best.bytes <= stay.bytes < 0.96 * panels.bytes
    weights, once = widths.read * 2 * 4096 * 14336, 131072 * 4096
    whole = weights + once * (2 * widths.read + 2 * widths.partial + widths.written)
    assert 0.995 * whole < stay.bytes <= whole  # the second band finds a little of the first

"""Schedules in a memory of bytes are played move by move, partial sums at the width of accumulators."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import astuple, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.certificate.schedules import Memory, traffic_bytes, traffic_of
from pebble.certificate.statement import ClaimedWidths as WidthsOfChecker
from pebble.certificate.statement import read_workload
from pebble.certificate.upper import ScheduleTraffic
from pebble.errors import InfeasibleError
from pebble.proof.certificate import upper_claim, workload_statement
from pebble.schedules.explicit import ExplicitProduct, best_gemm_schedule
from pebble.schedules.explicit.blocked import blocked_products
from pebble.schedules.explicit.chain import SIDES, Chain, ChainBand, ChainPlan, handed_on, placed
from pebble.schedules.explicit.chain_bands import best_band, wider_band
from pebble.schedules.explicit.chain_search import best_chain_plan, plan_of_runs
from pebble.schedules.explicit.corner import Side, best_corner
from pebble.schedules.explicit.ffn import best_ffn_schedule, fused_ffn
from pebble.schedules.explicit.gemm import AXES, Band, BandedProduct
from pebble.schedules.explicit.gemm_search import banded_products
from pebble.schedules.explicit.moves import gemm_moves
from pebble.workloads import Ffn, Gemm
from pebble.workloads.widths import FastMemory, Widths
from tests.schedules.chain_weights import weigh

side = st.integers(1, 7)


def best_plan(chain: Chain, memory: FastMemory) -> ChainPlan | None:
    """Along either side."""
    results = [plan for side in SIDES if (plan := best_chain_plan(chain, side, memory)) is not None]
    return min(results, key=lambda plan: plan.bytes, default=None)


rooms = st.builds(
    FastMemory,
    st.integers(12, 300),
    st.sampled_from(
        [
            Widths(2, 4, 4, 2),
            Widths(1, 4, 4, 2),
            Widths(4, 4, 4, 2),
            Widths(1, 1, 2, 2),
            Widths(4, 4, 2, 2),
        ]
    ),
)


def replay_gemm(schedule: ExplicitProduct) -> None:
    """Room and bytes of every move; which moves are legal is what `test_explicit_gemm` looks at."""
    gemm, widths = schedule.gemm, schedule.memory.widths
    left = {(i, j): gemm.k for i in range(gemm.m) for j in range(gemm.n)}
    red: dict[tuple[str, tuple[int, ...]], int] = {}  # and the bytes of each
    traffic = held = 0

    def width(name: str, index: tuple[int, ...]) -> int:
        if name != "C":
            return widths.read
        return widths.written if left[index[:2]] in (0, gemm.k) else widths.partial

    for op, name, index in gemm_moves(schedule):
        if op == "compute":
            name, index = "C", index[:2]
            left[index] -= 1
            assert held - red.get((name, index), 0) + widths.partial <= schedule.memory.bytes
        elif op != "delete":
            traffic += width(name, index)
        held -= red.pop((name, index), 0)
        if op != "delete":
            red[name, index] = width(name, index)
            held += red[name, index]
        assert held <= schedule.memory.bytes
    assert not any(left.values())
    assert traffic == schedule.bytes


@settings(max_examples=60, deadline=None)
@given(side, side, side, rooms, st.booleans())
def test_products(m: int, n: int, k: int, memory: FastMemory, added: bool) -> None:
    for schedule in blocked_products(Gemm(m, n, k, accumulate=added), memory):
        replay_gemm(schedule)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12), rooms, st.booleans())
def test_products_in_bands(m: int, n: int, k: int, memory: FastMemory, added: bool) -> None:
    for schedule in banded_products(Gemm(m, n, k, accumulate=added), memory):
        assert schedule.fits
        replay_gemm(schedule)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from("ABC"), st.integers(1, 8), st.integers(1, 6), st.integers(1, 8), st.integers(1, 3),
    st.integers(1, 8), st.integers(1, 3), st.integers(1, 8), rooms,
)  # fmt: skip
def test_any_bands_that_fit(
    stationary: str, p: int, blocks: int, width: int, count: int, other: int, more: int, r: int, memory: FastMemory
) -> None:
    """Corners in whatever room there is, from tight to ample."""
    axis, across, streamed = AXES[stationary]
    size = {axis: width * count + other * more, across: p, streamed: r}
    bands = Band(stationary, width, min(blocks, p), count), Band(stationary, other, min(more, p), more)
    schedule = BandedProduct(Gemm(**size), memory, axis, bands)
    if schedule.fits:
        replay_gemm(schedule)


@settings(max_examples=10, deadline=None)
@given(st.integers(2, 60), st.integers(2, 60), st.integers(2, 60), st.integers(40, 4000), st.integers(20, 1000))
def test_so_many_bytes_and_so_many_values(m: int, n: int, k: int, size: int, values: int) -> None:
    """A register holds one value, however narrow: what is found holds no more, and never moves less than without."""
    memory = FastMemory(size, Widths(2, 4, 4, 2))
    few = replace(memory, values=values)
    free = best_gemm_schedule(Gemm(m, n, k), memory)
    with suppress(InfeasibleError):
        result = best_gemm_schedule(Gemm(m, n, k), few)
        assert result.peak_elements <= values and result.bytes >= free.bytes
        assert free.peak_elements > values or result.bytes == free.bytes
    chain = best_ffn_schedule(Ffn(m, k, n), few)
    assert chain is None or chain.peak_elements <= values


def test_corners_of_accumulators_carry_more() -> None:
    """A wide accumulator that is let go leaves room for more than one value of an input: about the root of 2 times."""
    alike, wide = (best_corner(200, Side(100, cell=cell), 100, 100).turned for cell in (1, 2))
    assert alike < wide <= 1.5 * alike


def test_bands_beat_equal_blocks() -> None:
    gemm, capacity = Gemm(8192, 8192, 8192), FastMemory(40 * 2**20, Widths(2, 4, 4, 2))
    result = best_gemm_schedule(gemm, capacity)
    assert isinstance(result, BandedProduct)
    assert result.bytes < 0.95 * min(s.bytes for s in blocked_products(gemm, capacity))


def replay_chain(found: ChainPlan) -> None:
    played = weigh(found, found.memory.widths)
    nothing: Mapping[str, int] = {}
    assert played.held_bytes <= found.memory.bytes
    assert played.loads == +Counter(found.loads or nothing)
    assert played.stores == +Counter(found.stores)
    assert played.traffic_total == found.bytes


@settings(max_examples=20, deadline=None)
@given(side, side, side, side, st.integers(1, 2), rooms)
def test_networks(m: int, k: int, f: int, l: int, streams: int, memory: FastMemory) -> None:
    result = best_plan(Chain(m, k, f, l, streams), memory)
    if result is not None:
        replay_chain(result)


@settings(max_examples=20, deadline=None)
@given(side, side, side, rooms)
def test_gate_and_up_in_one_kernel(m: int, k: int, f: int, memory: FastMemory) -> None:
    """Their product is stored complete; what a plan counts is all but that."""
    result = best_plan(Chain(m, k, f, 0, 2), memory)
    if result is not None:
        played = weigh(result, memory.widths)
        assert played.held_bytes <= memory.bytes
        assert played.stores == {"H": m * f}
        assert played.traffic_total == result.bytes + memory.widths.read * m * f


def test_gate_and_up_move_less_together() -> None:
    """Each by itself, and a third kernel that multiplies them, would move 4,231,994,980 bytes."""
    result = best_ffn_schedule(Ffn(8192, 4096, 11008, gated=True), FastMemory(6 << 20, Widths(2, 4, 4, 2)))
    assert result is not None
    assert result.detail.startswith("gate and up: ")
    assert result.bytes <= 3_461_324_388


@settings(max_examples=60, deadline=None)
@given(side, side, st.integers(7, 12), side, st.sampled_from([0, 2, 3]), st.integers(0, 2), rooms)
def test_attention(m: int, k: int, f: int, l: int, state: int, masked: int, memory: FastMemory) -> None:
    strict = state == 2
    result = best_plan(Chain(m, k, f, l, 1, state, strict, True, masked), memory)
    if result is not None:
        replay_chain(result)


def test_under_a_mask_short_panels_come_first() -> None:
    """Equal panels would move 196,438,736 bytes."""
    chain = Chain(65536, 128, 65536, 128, 1, 3, False, True, 1)
    result = best_plan(chain, FastMemory(6 << 20, Widths(2, 4, 4, 2)))
    assert result is not None
    assert result.bytes <= 186_364_770
    extents = [band.extent for band, _ in result.runs]
    assert extents[0] < extents[-1] == max(extents)


def test_panels_with_turned_corners() -> None:
    """Whatever is spare: what the corners hold at any move is within the room that they were chosen for."""
    turned = 0

    @settings(max_examples=100, deadline=None)
    @given(
        st.integers(2, 9), st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.integers(1, 5),
        st.integers(2, 14), st.integers(1, 2), st.sampled_from([0, 2, 3]), st.integers(0, 150), rooms,
    )  # fmt: skip
    def play(
        extent: int,
        count: int,
        last: int,
        k: int,
        l: int,
        f: int,
        streams: int,
        state: int,
        spare: int,
        memory: FastMemory,
    ) -> None:
        nonlocal turned
        last, widths = min(last, extent), memory.widths
        if widths.hidden < widths.read:
            return
        chain = Chain(extent * count + last, k, f, l, streams, state)
        tall = placed(chain, "rows", ChainBand(extent, 1, f, k, l), FastMemory(10**9, widths))
        assert tall is not None
        memory = FastMemory(tall.peaks[0] + spare, widths)
        bands = [
            (placed(chain, "rows", ChainBand(size, 1, f, k, l), memory), number)
            for size, number in ((extent, count), (last, 1))
        ]
        runs = [(band, number) for band, number in bands if band is not None]
        plan = plan_of_runs(chain, "rows", runs, memory)
        turned += any(
            handed_on(chain, "rows", memory, item, other, f).leave.turned for item, other in pairwise(plan.bands)
        )
        replay_chain(plan)

    play()
    assert turned > 8


@pytest.mark.parametrize("rule", ["wider", "spill"])
def test_bands_of_blocks_that_come_and_go(rule: str) -> None:
    """A wider first block beside which outputs come in, and columns of H that stay while others are spilled."""
    met = cornered = 0

    @settings(max_examples=150, deadline=None)
    @given(
        st.integers(1, 9), st.integers(1, 5), st.integers(2, 16), st.integers(1, 6), st.integers(1, 2),
        st.integers(2, 4), st.integers(0, 400), rooms,
    )  # fmt: skip
    def play(m: int, k: int, f: int, l: int, streams: int, blocks: int, size: int, memory: FastMemory) -> None:
        nonlocal met, cornered
        if memory.widths.hidden < memory.widths.read:
            return
        memory = replace(memory, bytes=memory.bytes + size)
        chain = Chain(m, k, f, l, streams)
        band = wider_band(chain, m, blocks, memory) if rule == "wider" else best_band(chain, "rows", m, memory, "spill")
        if band is None:
            return
        met += 1
        cornered += band.enter.turned > 0
        plan = plan_of_runs(chain, "rows", [(band, 1)], memory)
        replay_chain(plan)
        ffn = Ffn(m, k, f, l, streams == 2)
        statement = read_workload(workload_statement(ffn), "workload")
        claim = upper_claim(statement, replace(fused_ffn(ffn, "bands", plan)))
        assert claim is not None
        memory = Memory(memory.bytes, WidthsOfChecker(*astuple(memory.widths)))
        traffic = traffic_of(statement, memory, claim["schedule"], "schedule")
        assert bytes_moved_by_checker(ffn, traffic, memory) == plan.bytes
        assert traffic.peak == band.peaks[0]

    play()
    assert met > 20 and cornered > 3


def bytes_moved_by_checker(ffn: Ffn, moved: ScheduleTraffic, memory: Memory) -> int:
    """As it would count a claim; the widths of a claim are never below those of the data types."""
    workload = read_workload(workload_statement(ffn), "workload")
    return traffic_bytes(workload, moved, memory.widths)


def test_corners_lower_the_traffic_of_panels() -> None:
    memory = FastMemory(50 * 2**20, Widths(2, 4, 4, 2))
    result = best_plan(Chain(8192, 4096, 11008, 4096), memory)
    assert result is not None
    assert result.bytes < 0.97 * 849_371_142  # with plain values kept


def test_too_little_room_is_said_in_one_sentence() -> None:
    with pytest.raises(InfeasibleError, match="at least 8 bytes"):
        best_gemm_schedule(Gemm(2, 2, 2), FastMemory(7, Widths(2, 4, 4, 2)))

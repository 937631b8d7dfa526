"""Bounds for several SMs: against every split, exact optima, published bounds, and each other."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import isqrt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.bounds import Box, LineProblem, LowerBound, memories
from pebble.bounds.box import best_segments, sum_of_shares
from pebble.bounds.groupings import Grouping, best_program, groupings
from pebble.bounds.memories import balanced_share
from pebble.bounds.published import words_per_processor
from pebble.bounds.splits import busiest_sm, least_over_splits
from pebble.cdag.products import gemm_dag
from pebble.errors import InfeasibleError, InputError
from pebble.families import accounting, family_of, lower_bound
from pebble.game import BufferModel
from pebble.game.buffer_model import Topology
from pebble.solvers import solve
from pebble.workloads import Attention, Conv2d, Ffn, Gemm, TransformerLayer
from pebble.workloads.workload import Workload
from tests.bounds.atomic_game import atomic_optimum

LOCAL = [Fraction(0), Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1)]
SMALL = st.integers(1, 40)


def buffer_lower_bound(workload: Workload, *rest: Any) -> LowerBound:
    return memories.buffer_lower_bound(accounting(workload), *rest)


def multicast_bound(workload: Workload, *rest: Any) -> LowerBound:
    return memories.multicast_bound(accounting(workload), *rest)


def busiest_sm_elements(workload: Workload, *rest: Any) -> int:
    return memories.busiest_sm_elements(accounting(workload), *rest)


def check_workload(workload: Workload, *rest: Any) -> None:
    return memories.check_workload(accounting(workload), *rest)


def f_real(v: int, shape: tuple[int, int, int], capacity: int) -> Fraction:
    """max over h of h x(v / h) - (h - 1) S, every h tried."""
    best = Fraction(0)
    for h in range(1, v + 1):
        total = sum_of_shares(Box(*shape).touched, v, h)
        best = max(best, Fraction(total, 2**100) - (h - 1) * capacity)
    return best


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.tuples(SMALL, SMALL, SMALL), st.integers(3, 60), st.lists(st.integers(0, 400), min_size=2, max_size=5))
def test_no_split_costs_less_than_any_split(shape, capacity, weights) -> None:
    work = shape[0] * shape[1] * shape[2]
    if not sum(weights) or work > 3000:
        return
    parts = [work * w // sum(weights) for w in weights]
    parts[0] += work - sum(parts)
    total = sum(f_real(v, shape, capacity) for v in parts)
    tolerance = Fraction(1, 2**60)
    if work > 160:  # below, whole numbers make the bound larger than the real form
        assert least_over_splits(Box(*shape), work, capacity, len(parts)) <= total + 1
        assert least_over_splits(Box(*shape), work, capacity, len(parts), max(parts)) <= total + 1
    assert f_real(work, shape, capacity) <= total + tolerance


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.tuples(st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 3000)), st.integers(3, 10**6), st.data())
def test_order_of_the_bounds(shape, capacity, data) -> None:
    gemm = Gemm(*shape)
    sms = data.draw(st.integers(2, 144))
    most = data.draw(st.sampled_from([None, balanced_share(gemm, sms), balanced_share(gemm, sms, Fraction(1, 4))]))
    local = buffer_lower_bound(gemm, capacity, BufferModel("sm-local", sms), most).elements
    pooled = buffer_lower_bound(gemm, capacity, BufferModel("pooled", sms)).elements
    joined = [buffer_lower_bound(gemm, capacity, BufferModel("connected", sms, w), most).elements for w in LOCAL]
    assert pooled == joined[0] and joined == sorted(joined) and joined[-1] == local
    cluster = [
        buffer_lower_bound(gemm, capacity, BufferModel("connected", sms, Fraction(1, 4), f"cluster-{c}"), most).elements
        for c in (1, 2, sms)
    ]
    assert cluster[0] == local and cluster[-1] == joined[2]
    assert joined[2] <= cluster[1] <= local
    larger = buffer_lower_bound(gemm, capacity + 7, BufferModel("sm-local", sms), most).elements
    assert larger <= local + local // 1000  # the grid of a balanced bound is good to much better than that
    for multicast in (2, 4):
        reads = multicast_bound(gemm, capacity, sms, multicast, most).elements
        assert pooled <= reads <= local
    assert multicast_bound(gemm, capacity, sms, 1, most).elements == local
    assert (
        busiest_sm_elements(gemm, capacity, sms) * sms
        >= buffer_lower_bound(gemm, capacity, BufferModel("sm-local", sms), balanced_share(gemm, sms)).elements
        - max(local // 100, sms)
        or local == pooled
    )


def test_any_split_is_one_memory_of_one_sm() -> None:
    for shape, capacity in (((4096, 4096, 4096), 116736), ((8192, 256, 4096), 60000)):
        gemm = Gemm(*shape)
        local = buffer_lower_bound(gemm, capacity, BufferModel("sm-local", 108)).elements
        single = lower_bound(gemm, capacity).elements
        # Theorem 5; a memory alone has Theorem 7 as well
        assert local == max(Box(*shape).bound(gemm.multiply_adds, capacity)[0], gemm.compulsory_elements) <= single
    # small problems lose what whole numbers give to one memory
    small = Gemm(100, 100, 7)
    assert buffer_lower_bound(small, 200, BufferModel("sm-local", 4)).elements <= lower_bound(small, 200).elements


def test_balanced_bound_is_the_even_split() -> None:
    box, work, sms, capacity = Box(8192, 8192, 8192), 8192**3, 108, 229376
    share = -(-work // sms)
    even = sms * busiest_sm(box, work, capacity, sms)
    result = least_over_splits(box, work, capacity, sms, share)
    assert even * (1 - 1e-6) <= result <= even
    any_split = least_over_splits(box, work, capacity, sms)
    loose = least_over_splits(box, work, capacity, sms, share + share // 20)
    assert any_split <= loose <= result


@pytest.mark.parametrize(
    ("shape", "sms", "regime"),
    [((65536, 128, 64), 132, 1), ((8192, 8192, 64), 132, 2), ((4096, 4096, 4096), 132, 3), ((4096, 4096, 4096), 8, 3)],
)
def test_one_segment_is_the_memory_independent_bound(shape, sms, regime) -> None:
    """With a memory that holds everything our balanced bound is D of each regime, without the first copy for free."""
    gemm = Gemm(*shape)
    words, result = words_per_processor(*shape, sms)
    assert result == regime
    share = -(-gemm.compulsory_elements // sms)
    d = words + share
    ours = busiest_sm_elements(gemm, 10**12, sms)
    assert abs(ours - d) <= 2 + isqrt(d) // 1000
    total = buffer_lower_bound(gemm, 10**12, BufferModel("sm-local", sms), balanced_share(gemm, sms)).elements
    assert abs(total - sms * ours) <= 3 * sms


def exact(shape: tuple[int, int, int], capacity: int, buffers: BufferModel, most: int | None) -> Fraction:
    """The least known from above: an optimum where the time was enough."""
    for seconds in (4, 300):  # on a busy machine the first may find nothing
        result = solve(gemm_dag(*shape), capacity, buffers=buffers, time_limit=seconds, most_tasks_per_sm=most)
        if result.upper_bound is not None:
            return result.upper_bound
    raise AssertionError("no pebbling found")


def check_below_the_optimum(shape: tuple[int, int, int], sms: int) -> None:
    gemm = Gemm(*shape)
    share = balanced_share(gemm, sms)
    for capacity in (3, 4):
        omegas = Fraction(1, 4), Fraction(3, 2)
        joined = [BufferModel("connected", sms, w) for w in omegas]
        rings = [BufferModel("connected", sms, w, "ring") for w in (Fraction(1, 4), Fraction(1, 2)) if sms > 2]
        for buffers in (BufferModel("sm-local", sms), *joined, *rings):
            for most in (None, share):
                bound = buffer_lower_bound(gemm, capacity, buffers, most).elements
                assert bound <= exact(shape, capacity, buffers, most), (capacity, buffers, most)


@pytest.mark.parametrize(("shape", "sms"), [((1, 2, 2), 2), ((2, 2, 1), 2), ((1, 1, 4), 2), ((2, 2, 1), 3)])
def test_bounds_are_below_the_optimum(shape: tuple[int, int, int], sms: int) -> None:
    check_below_the_optimum(shape, sms)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3, 2, 1), (2, 1, 3), (2, 2, 2)])
@pytest.mark.parametrize("sms", [2, 3, 4])
def test_bounds_are_below_the_optimum_of_more(shape: tuple[int, int, int], sms: int) -> None:
    check_below_the_optimum(shape, sms)


def test_bounds_against_the_table_of_optima() -> None:
    """Two SMs, 2 x 2 x 2: the proved optima of ``benchmarks/exact/buffers.csv``."""
    gemm, local = Gemm(2, 2, 2), BufferModel("sm-local", 2)
    for capacity, (free, balanced) in {3: (17, 18), 4: (14, 16), 5: (13, 16), 6: (12, 16)}.items():
        assert buffer_lower_bound(gemm, capacity, local).elements <= free
        assert buffer_lower_bound(gemm, capacity, local, 4).elements <= balanced
    assert buffer_lower_bound(gemm, 5, local, 4).elements == 16


@pytest.mark.parametrize(
    ("shape", "capacity", "sms", "most"),
    [
        ((2, 2, 1), 3, 1, None),
        ((2, 2, 1), 3, 2, None),
        ((2, 2, 1), 3, 2, 2),
        ((1, 2, 2), 3, 2, None),
        ((1, 2, 2), 3, 2, 2),
        ((1, 2, 2), 4, 2, None),
        pytest.param((1, 1, 3), 3, 2, 2, marks=pytest.mark.slow),
        ((2, 2, 2), 3, 1, None),
    ],
)
def test_atomic_adds_into_a_given_output_are_allowed(shape, capacity: int, sms: int, most: int | None) -> None:
    """Every cell of C is added to in slow memory and never loaded: no bound of that game may count its loads."""
    local, optimum = BufferModel("sm-local", sms), atomic_optimum(shape, capacity, sms, most)
    for accumulate in (False, True):
        problem = accounting(Gemm(*shape, accumulate=accumulate))
        for buffers in (local, BufferModel("pooled", sms), BufferModel("connected", sms, Fraction(1, 2))):
            assert memories.buffer_lower_bound(problem, capacity, buffers, most).elements <= optimum
        without = memories.buffer_lower_bound(problem, capacity, local, most, atomic=False).elements
        game = gemm_dag(*shape, accumulate=accumulate)
        assert without <= solve(game, capacity, buffers=local, time_limit=3600, most_tasks_per_sm=most).upper_bound


def test_which_game_is_bounded_of_a_given_output() -> None:
    """4096 x 4096 x 64 on 108 SMs of 128 KiB: adding to C in L2 moves 22.3 M values, loading it 39.1 M."""
    plain, given = Gemm(4096, 4096, 64), Gemm(4096, 4096, 64, accumulate=True)
    buffers = BufferModel("sm-local", 108)
    added = family_of(given).best_in_buffers(given, 65536, buffers)
    assert added is not None and added.l2_elements < 22.3e6
    bounds = [buffer_lower_bound(gemm, 65536, buffers, balanced_share(gemm, 108)) for gemm in (plain, given)]
    assert bounds[0] == bounds[1] and bounds[1].elements <= added.l2_elements
    loaded = memories.buffer_lower_bound(accounting(given), 65536, buffers, atomic=False).elements
    assert added.l2_elements < loaded == buffer_lower_bound(given, 65536, buffers).elements + 4096**2


def test_who_checked_the_proof_is_said_of_the_game_that_is_bounded() -> None:
    """Coq has checked Theorem 7 for one accumulator a cell; with atomic adds several may be one cell's."""
    problem, pooled = accounting(Gemm(8192, 2048, 8192)), BufferModel("pooled", 84)
    allowed, refused = (memories.buffer_lower_bound(problem, 196608, pooled, atomic=atomic) for atomic in (True, False))
    assert allowed.theorem.name == refused.theorem.name == "Theorem 7"
    assert (allowed.theorem.checked_by, refused.theorem.checked_by) == ("paper", "Coq")
    single = memories.buffer_lower_bound(problem, 196608, BufferModel("single", 1))
    assert single.theorem.checked_by == "Coq"


def test_tiny_problems_try_every_split() -> None:
    """2x2x2 with S = 3: whole numbers and the balance make a bound above the real form's."""
    gemm = Gemm(2, 2, 2)
    local = BufferModel("sm-local", 2)
    assert buffer_lower_bound(gemm, 3, local, 4).elements >= buffer_lower_bound(gemm, 3, local).elements >= 12
    assert buffer_lower_bound(gemm, 100, local, 4).elements == 16  # two halves of 2 x 2 x 1 or 1 x 2 x 2 each touch 8


WORKLOADS = [
    Gemm(512, 384, 640, "fp8", "bf16"),
    Ffn(512, 384, 1000),
    Ffn(512, 384, 1000, gated=True),
    Attention(512, 512, 64, heads=4, kv_heads=2, causal=True),
    Attention(2048, 2048, 64),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.label)
def test_other_workloads(workload) -> None:
    sms, capacity = 8, 5000
    share = balanced_share(workload, sms)
    local, balanced = (buffer_lower_bound(workload, capacity, BufferModel("sm-local", sms), c) for c in (None, share))
    pooled = buffer_lower_bound(workload, capacity, BufferModel("pooled", sms))
    single = buffer_lower_bound(workload, capacity, BufferModel("single"))
    assert pooled.elements <= local.elements <= balanced.elements
    assert local.elements <= single.elements
    assert pooled.bytes <= local.bytes <= balanced.bytes
    half = buffer_lower_bound(workload, capacity, BufferModel("connected", sms, Fraction(1, 2)), share)
    assert half.elements == (pooled.elements + balanced.elements) // 2
    parts = [
        buffer_lower_bound(workload, capacity, BufferModel("connected", sms, w, "partitions-2"), share).elements
        for w in LOCAL
    ]
    assert parts == sorted(parts) and parts[3] >= half.elements and parts[-1] == balanced.elements


def test_what_is_refused() -> None:
    local = BufferModel("sm-local", 4)
    with pytest.raises(InfeasibleError, match="per SM"):
        buffer_lower_bound(Gemm(8, 8, 8), 2, local)
    with pytest.raises(InputError, match="1 / 4"):
        buffer_lower_bound(Gemm(8, 8, 8), 9, local, 127)
    with pytest.raises(InputError, match="without recomputation"):
        buffer_lower_bound(Ffn(8, 8, 8), 9, local, None, True)
    with pytest.raises(InputError, match="conv2d"):
        check_workload(Conv2d(1, 1, 1, 8, 8, 3), False)
    assert buffer_lower_bound(Gemm(8, 8, 8), 9, local, None, True).elements > 0


@pytest.mark.parametrize("topology", ["all-to-all", "partitions-2", "ring", "cluster-2"])
def test_dear_copies_cost_what_no_copies_cost(topology: str) -> None:
    gemm = Gemm(64, 48, 80)
    bounds = [
        buffer_lower_bound(gemm, 100, BufferModel("connected", 8, w, topology)).elements
        for w in (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(7))
    ]
    assert bounds == sorted(bounds)
    assert bounds[2] == bounds[3] == bounds[4] <= buffer_lower_bound(gemm, 100, BufferModel("sm-local", 8)).elements


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.label)
def test_a_ring_takes_arcs_together(workload: Workload) -> None:
    """Never below the line between all SMs and each alone, and at 1 / g no less than arcs of g as one memory each."""
    sms, capacity = 12, 2000
    for share in (None, balanced_share(workload, sms)):
        for omega in LOCAL:
            ring = buffer_lower_bound(workload, capacity, BufferModel("connected", sms, omega, "ring"), share)
            line = buffer_lower_bound(workload, capacity, BufferModel("connected", sms, omega), share)
            local = buffer_lower_bound(workload, capacity, BufferModel("sm-local", sms), share)
            assert line.elements <= ring.elements <= local.elements
        for g in (2, 3, 4):
            arcs = buffer_lower_bound(workload, g * capacity, BufferModel("sm-local", sms // g), share and g * share)
            joined = BufferModel("connected", sms, Fraction(1, g), "ring")
            assert buffer_lower_bound(workload, capacity, joined, share).elements >= arcs.elements


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 60), min_size=2, max_size=6), st.data())
def test_the_program_is_solved(values: list[int], data: st.DataObject) -> None:
    """Multipliers keep the rows, and no two of the columns alone prove more."""
    omega = data.draw(st.sampled_from([*LOCAL, Fraction(5, 2)]))
    rates = [data.draw(st.fractions(0, 1, max_denominator=6)) for _ in values]
    ways = [Grouping(1, (rate,)) for rate in rates]
    value, multipliers = best_program(values, ways, omega)
    assert min(multipliers) >= 0 and sum(multipliers) <= 1
    assert sum(y * rate for y, rate in zip(multipliers, rates, strict=True)) <= omega
    assert value == sum(y * bound for y, bound in zip(multipliers, values, strict=True))
    for p, first in enumerate(rates):
        for q, second in enumerate(rates):
            most = (
                Fraction(1)
                if second <= first or second <= omega
                else max(Fraction(0), omega - first) / (second - first)
            )
            if first + most * (second - first) <= omega:
                assert value >= (1 - most) * values[p] + most * values[q]


@pytest.mark.parametrize("sms", range(1, 24))
def test_a_copy_in_a_ring_crosses_no_more_often_than_the_rate_says(sms: int) -> None:
    net = Topology("ring", sms)
    for way in groupings(net):
        arcs = [[(q + turn) % sms // way.sms for q in range(sms)] for turn in range(sms)]
        assert max(len(set(arc)) for arc in arcs) <= -(-sms // way.sms)
        for q in range(1, sms):
            crossed = sum(arc[0] != arc[q] for arc in arcs)
            assert crossed <= sms * way.rates[0] * (net.hops(0, q) or 0)


@pytest.mark.parametrize(("m", "k", "f", "l", "bands"), [(13000, 1, 2000, 32, 2), (40000, 1, 4000, 128, 2)])
def test_partial_sums_of_several_sms_may_meet_in_slow_memory(m: int, k: int, f: int, l: int, bands: int) -> None:
    """Columns of H stay, band by band; each band adds its sums of Y to those in slow memory, for a store each."""
    ffn, sms = Ffn(m, k, f, l), 2
    held = f // bands * (k + l) + (k + l) + 1  # the columns, one row of A and Y, one cell
    capacity = -(-held // sms)
    traffic = f * (k + l) + bands * m * (k + l)
    for buffers in (BufferModel("pooled", sms), BufferModel("connected", sms, Fraction(0))):
        assert buffer_lower_bound(ffn, capacity, buffers).elements <= traffic
    # one memory alone would have to load what it adds to
    assert traffic < lower_bound(ffn, sms * capacity).elements <= traffic + (bands - 1) * m * l


def test_a_layer_of_several_sms_is_charged_a_store_for_a_partial_sum() -> None:
    terms = accounting(TransformerLayer(4096, 1024, 4096, 16, 4, 64))
    assert any(len(problem.multipliers) > 1 for part in terms.parts for problem in part.of(LineProblem))
    assert all(
        problem.multipliers == (1.0,) for part in memories.of_sms(terms).parts for problem in part.of(LineProblem)
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("capacity", [40, 370, 2000])
def test_a_strict_softmax_is_strict_on_several_sms(causal: bool, capacity: int) -> None:
    """Schedules that use a score before its row is complete moved less than the bound, which counts stored scores."""
    workload = Attention(100, 1569, 4, heads=2, batch=3, causal=causal, softmax="strict")
    for sms in (3, 8):
        for buffers in (BufferModel("sm-local", sms), BufferModel("connected", sms, Fraction(1, 2))):
            schedule = family_of(workload).best_in_buffers(workload, capacity, buffers)
            assert schedule is not None
            assert schedule.l2_elements >= buffer_lower_bound(workload, capacity, buffers).elements
            online = replace(workload, softmax="online")
            assert schedule.l2_elements >= buffer_lower_bound(online, capacity, buffers).elements
            assert (schedule.l2_read_bytes + schedule.l2_write_bytes) == 2 * schedule.l2_elements


@pytest.mark.parametrize(
    ("sides", "capacity", "sms"),
    [((8192, 8192, 8192), 262144, 132), ((8192, 28672, 4096), 262144, 132), ((256, 8192, 8192), 262144, 132),
     ((8192, 8192, 128), 262144, 132), ((8192, 8192, 8192), 229376, 108), ((4096, 4096, 4096), 4096, 16)],
)  # fmt: skip
def test_no_program_over_splits_proves_more_than_the_formula(
    sides: tuple[int, int, int], capacity: int, sms: int
) -> None:
    """Equal shares are one split: what they cost by this count is as much as any program can prove."""
    box, work = Box(*sides), sides[0] * sides[1] * sides[2]
    share = -(-work // sms)
    equal = sms * best_segments(box.touched, share, capacity)[0]
    assert equal <= 1.0001 * least_over_splits(box, work, capacity, sms, share)

"""GEMM on several SMs: what the formulas claim is what the referee counts, and no bound is above it."""

from __future__ import annotations

from ast import literal_eval
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.bounds import LowerBound, memories
from pebble.cdag.products import gemm_dag
from pebble.errors import InfeasibleError
from pebble.families.gemm import GEMM
from pebble.game import BufferModel, Game, Move, Pebbling, replay
from pebble.schedules.explicit.parallel import ParallelSchedule, best_parallel_schedule, cluster_shapes, held
from pebble.schedules.explicit.parallel_moves import parallel_moves
from pebble.workloads import Gemm

QUARTER = Fraction(1, 4)


def buffer_lower_bound(gemm: Gemm, *rest: Any) -> LowerBound:
    return memories.buffer_lower_bound(GEMM.accounting(gemm), *rest)


def multicast_bound(gemm: Gemm, *rest: Any) -> LowerBound:
    return memories.multicast_bound(GEMM.accounting(gemm), *rest)


def replayed(schedule: ParallelSchedule):
    game = Game.from_dag(
        gemm_dag(schedule.gemm.m, schedule.gemm.n, schedule.gemm.k, accumulate=schedule.gemm.accumulate)
    )
    tasks = {}
    for task in game.tasks:
        i, j = literal_eval(game.names[task.target].removeprefix("C"))
        (a,) = (game.names[o] for o in task.operands if game.names[o].startswith("A"))
        tasks[i, j, literal_eval(a.removeprefix("A"))[1]] = task.name
    moves = []
    for op, operand, index, sm, source in parallel_moves(schedule):
        node = tasks[index] if op == "compute" else f"{operand}[{index[0]},{index[1]}]"
        moves.append(Move(op, node, source, sm))
    buffers = BufferModel("connected", schedule.sms, QUARTER)
    pebbling = Pebbling(game.variant, schedule.capacity, tuple(moves), schedule.cost_elements(QUARTER), buffers)
    return replay(game, pebbling)


def check(schedule: ParallelSchedule) -> None:
    result = replayed(schedule)
    assert result.loads == sum(schedule.loads.values())
    assert result.stores == schedule.stores
    assert sum(sm.copies for sm in result.per_sm) == result.hops == schedule.remote_elements
    assert result.peak <= schedule.peak_elements <= schedule.capacity
    busiest = max(sm.computations for sm in result.per_sm)
    assert busiest <= schedule.busiest_multiply_adds
    gemm, sms, capacity = schedule.gemm, schedule.sms, schedule.capacity
    most = max(busiest, -(-gemm.multiply_adds // sms))
    joined = BufferModel("connected", sms, QUARTER)
    for share in (None, most):
        assert buffer_lower_bound(gemm, capacity, joined, share).elements <= schedule.cost_elements(QUARTER)
        if schedule.cluster == (1, 1):
            assert (
                buffer_lower_bound(gemm, capacity, BufferModel("sm-local", sms), share).elements <= schedule.l2_elements
            )
        else:
            wide = max(schedule.cluster[0] * schedule.cluster[1], 1)
            assert multicast_bound(gemm, capacity, sms, wide, share).elements <= schedule.l2_elements


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.tuples(st.integers(1, 7), st.integers(1, 7), st.integers(1, 6)),
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3)),
    st.sampled_from(["C", "A", "B"]),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.integers(0, 3),
    st.booleans(),
)
def test_every_grid_is_legal_and_counted(shape, grid, face, cluster, spare, accumulate) -> None:
    gemm = Gemm(*shape, accumulate=accumulate)
    # counts that some block size gives, as the search uses them
    grid = tuple(-(-e // -(-e // min(c, e))) for c, e in zip(grid, shape, strict=True))
    cluster = cluster if face == "C" else (1, 1)
    block = tuple(-(-e // c) for e, c in zip(shape, grid, strict=True))
    sms = cluster[0] * cluster[1] * (1 + spare)
    check(ParallelSchedule(gemm, sms, held(face, block), grid, face, cluster))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.tuples(st.integers(1, 7), st.integers(1, 7), st.integers(1, 6)),
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3)),
    st.sampled_from(["C", "A", "B"]),
    st.integers(1, 4),
    st.booleans(),
)
def test_atomic_adds_save_the_loads_of_the_output(shape, grid, face, sms, accumulate) -> None:
    gemm = Gemm(*shape, accumulate=accumulate)
    grid = tuple(-(-e // -(-e // min(c, e))) for c, e in zip(grid, shape, strict=True))
    block = tuple(-(-e // c) for e, c in zip(shape, grid, strict=True))
    loaded = ParallelSchedule(gemm, sms, held(face, block), grid, face)
    added = replace(loaded, atomic=True)
    moves = list(parallel_moves(loaded))
    of_output = sum(op == "load" and operand == "C" for op, operand, *_ in moves)
    assert added.l2_elements == sum(op in ("load", "store") for op, *_ in moves) - of_output
    assert added.l2_read_bytes + added.l2_write_bytes == 2 * added.l2_elements
    share = max(added.busiest_multiply_adds, -(-gemm.multiply_adds // sms))
    for most in (None, share):
        assert buffer_lower_bound(gemm, added.capacity, BufferModel("sm-local", sms), most).elements <= (
            added.l2_elements
        )


@pytest.mark.parametrize("shape", [(9, 9, 9), (12, 4, 3), (4, 4, 30), (30, 2, 2), (1, 20, 5)])
@pytest.mark.parametrize("sms", [1, 4, 6])
def test_the_best_is_legal_and_above_the_bounds(shape, sms) -> None:
    gemm = Gemm(*shape)
    for capacity in (3, 12, 40):
        check(best_parallel_schedule(gemm, sms, capacity))
        check(best_parallel_schedule(gemm, sms, capacity, QUARTER, sms, 0.3))


def test_a_large_gemm() -> None:
    gemm = Gemm(8192, 8192, 8192)
    local = best_parallel_schedule(gemm, 108, 229376)
    assert local.imbalance <= 0.05 and local.rounds * 108 >= local.grid[0] * local.grid[1]
    bound = buffer_lower_bound(gemm, 229376, BufferModel("sm-local", 108), local.busiest_multiply_adds).elements
    assert bound <= local.l2_elements <= 1.1 * bound
    costs = []
    for omega in (Fraction(0), Fraction(1, 10), QUARTER, Fraction(1)):
        joined = best_parallel_schedule(gemm, 108, 229376, omega, 16)
        costs.append(joined.cost_elements(omega))
        model = BufferModel("connected", 108, omega, "cluster-16")
        assert buffer_lower_bound(gemm, 229376, model).elements <= costs[-1] <= local.l2_elements
    assert costs == sorted(costs)
    cast = best_parallel_schedule(gemm, 108, 229376, largest_cluster=4, multicast=True)
    assert multicast_bound(gemm, 229376, 108, 4).elements <= cast.l2_elements < local.l2_elements


def test_larger_clusters_never_cost_more() -> None:
    gemm = Gemm(2048, 4096, 1024)
    costs = [best_parallel_schedule(gemm, 132, 60000, QUARTER, size).cost_bytes(QUARTER) for size in (1, 2, 4, 8, 16)]
    assert costs == sorted(costs, reverse=True)


def test_the_search_keeps_its_promises() -> None:
    gemm = Gemm(1000, 700, 300)
    for size in (1, 2, 4):
        for tolerance in (0.02, 0.2, 1.0):
            schedule = best_parallel_schedule(gemm, 12, 5000, QUARTER, size, tolerance)
            assert schedule.peak_elements <= 5000 and schedule.imbalance <= tolerance
            assert schedule.cluster in cluster_shapes(size)
    # so few tiles that nothing is balanced: the best balanced of all comes back
    assert best_parallel_schedule(Gemm(3, 1, 1), 2, 10).busiest_multiply_adds == 2
    with pytest.raises(InfeasibleError):
        best_parallel_schedule(gemm, 2, 2)

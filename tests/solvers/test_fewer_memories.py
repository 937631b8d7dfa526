"""What a game on several SMs knows before it is searched: fewer memories, explicit schedules, bounds."""

from __future__ import annotations

import threading
from fractions import Fraction

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pebble
from pebble.bounds.memories import buffer_lower_bound
from pebble.cdag.products import ffn_dag
from pebble.errors import InputError
from pebble.families import accounting, read_workload
from pebble.game import BufferModel, Game, minimum_capacity, replay
from pebble.solvers import SolveResult, solve
from pebble.solvers.registry import solve_auto
from pebble.solvers.result import Incumbent, Problem, Progress
from pebble.solvers.several.fewer import FewerMemories, fewer_memories
from tests.solvers import random_dags
from tests.solvers.stopping import at_most

# above 1 a far read is dearer than one of slow memory
OMEGAS = st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(5, 2)])
MODELS = st.one_of(st.just(BufferModel("sm-local", 2)), OMEGAS.map(lambda w: BufferModel("connected", 2, w)))

NETS = ["all-to-all", "cluster-1", "cluster-2", "ring", "mesh-2x2", "partitions-2"]
QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}


def read(dag: nx.DiGraph, extra: int) -> tuple[Game, int] | None:
    try:
        game = Game.from_dag(dag)
    except InputError:  # a node that no output needs
        return None
    return game, minimum_capacity(game) + extra


def solved(game, capacity: int, buffers: BufferModel, variant: str | None = None, **options) -> SolveResult:
    return solve(game, capacity, variant, buffers=buffers, **options)


@settings(max_examples=12, **QUIET)
@given(st.one_of(random_dags.dags(6), random_dags.cell_dags()), st.sampled_from([None, *NETS]), st.booleans())
def test_what_fewer_memories_can_do_is_a_start(dag: nx.DiGraph, net: str | None, limited: bool) -> None:
    result = read(dag, 1)
    if result is None:
        return
    game, capacity = result
    buffers = BufferModel("sm-local", 4) if net is None else BufferModel("connected", 4, Fraction(1, 4), net)
    most = -(-len(game.tasks) // 2) if limited else None
    best = Incumbent(Problem(game, capacity, 0, buffers, most), 600)
    FewerMemories(best, solve_auto).wait()
    fewer = fewer_memories(best.problem)
    assert fewer is not None and fewer.buffers.memories == 2 and best.pebbling is not None
    assert most is None or max(sm.computations for sm in replay(game, best.pebbling).per_sm) <= most
    two = solved(game, capacity, fewer.buffers, most_tasks_per_sm=most)
    assert two.status == "optimal" and best.result("auto", "").upper_bound <= two.upper_bound
    assert limited or two.upper_bound <= solve(game, capacity).upper_bound


def test_an_sm_may_be_idle() -> None:
    """Two SMs of 4 need no more than the 24 that are proved for one memory; the heuristic alone has 27."""
    result = solved(Game.from_dag(ffn_dag(2, 2, 2)), 4, BufferModel("sm-local", 2), **at_most(24))
    assert result.upper_bound == 24 and {move.sm for move in result.moves} == {0}
    assert result.upper_from.endswith("at one SM")


FAMILIES = {
    "gemm": dict.fromkeys("mnk", 2),
    "ffn": dict.fromkeys(("tokens", "d_model", "hidden"), 2),
    "attention": {"queries": 2, "keys": 2, "head_dim": 1},
}


@settings(max_examples=8, **QUIET)
@given(
    st.sampled_from(sorted(FAMILIES)),
    st.sampled_from([4, 5, 8]),
    st.sampled_from([2, 3, 4]),
    st.sampled_from([None, "1/4", "1", "3/2"]),
)
def test_no_other_command_knows_better(family: str, capacity: int, sms: int, omega: str | None) -> None:
    """What one memory does, several do, and what `bound` proves is proved: where time is enough, and at once."""
    net = {"buffers": "sm-local"} if omega is None else {"buffers": "connected", "omega": omega}
    sizes = FAMILIES[family]
    model = BufferModel("sm-local", sms) if omega is None else BufferModel("connected", sms, Fraction(omega))
    proved = buffer_lower_bound(accounting(read_workload(family, sizes)), capacity, model).elements
    alone = pebble.solve(family, capacity, time_limit=600, **sizes)
    at_once = pebble.solve(family, capacity, solver="heuristic", time_limit=600, **net, sms=sms, **sizes)
    assert at_once.lower_bound >= proved

    def enough(now: Progress) -> None:
        if now.upper_bound is not None and now.upper_bound <= alone.upper_bound:
            stop.set()

    stop = threading.Event()
    result = pebble.solve(family, capacity, time_limit=600, progress=enough, stop=stop, **net, sms=sms, **sizes)
    assert alone.optimal and result.lower_bound <= result.upper_bound <= alone.upper_bound


@pytest.mark.parametrize(("sms", "omega", "schedule"), [(2, "1/4", 88), (4, "1/2", 88), (2, None, 92)])
def test_a_product_starts_from_the_best_schedule_on_sms(sms: int, omega: str | None, schedule: int) -> None:
    """Two SMs that share what they read need 88 of a product of 4 x 4 x 4 in memories of 5; one alone needs 92."""
    net = {"buffers": "sm-local"} if omega is None else {"buffers": "connected", "omega": omega}
    result = pebble.solve("gemm", 5, m=4, n=4, k=4, sms=sms, solver="heuristic", time_limit=600, **net)
    assert result.upper_bound <= schedule
    shared = pebble.solve("gemm", 5, m=4, n=4, k=4, sms=sms, tasks_per_sm=64 // sms, solver="heuristic", **net)
    assert max(sm.computations for sm in replay(shared.game, shared.result.pebbling).per_sm) == 64 // sms


@pytest.mark.slow
def test_a_large_chain_costs_no_more_on_two_sms() -> None:
    """31 is the optimum of one memory, which takes its search some ten seconds; that of two is not proved by then."""
    stop = threading.Event()

    def enough(now: Progress) -> None:
        if now.upper_bound is not None and now.upper_bound <= 31:
            stop.set()

    gated = {"tokens": 2, "d_model": 2, "hidden": 2, "gated": True}
    result = pebble.solve("ffn", 5, buffers="sm-local", sms=2, time_limit=900, progress=enough, stop=stop, **gated)
    assert result.upper_bound <= 31

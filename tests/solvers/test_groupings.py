"""The program over groups of SMs in a small game: no more than optima, no less than the line between all and each."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil
from typing import Any

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pebble
from pebble.bounds.memories import buffer_lower_bound
from pebble.cdag.products import ffn_dag, gemm_dag
from pebble.errors import InputError
from pebble.families import accounting
from pebble.game import BufferModel, Game, minimum_capacity
from pebble.solvers import solve
from pebble.solvers.lower import bound_for_several
from pebble.solvers.result import Problem
from pebble.units import ceil_div
from tests.solvers import random_dags
from tests.solvers.brute_force_several import brute_force_several

QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}
NETS = [("ring", 3), ("ring", 4), ("cluster-2", 3), ("cluster-2", 4), ("partitions-2", 4), ("mesh-2x2", 4)]
OMEGAS = [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(5, 2)]


CASES = (st.sampled_from(NETS), st.sampled_from(OMEGAS), st.integers(0, 1), st.booleans())


def posed(dag: nx.DiGraph, net: tuple[str, int], omega: Fraction, extra: int, even: bool) -> Problem | None:
    """The game of a DAG, without those that a node is in that no output needs."""
    try:
        game = Game.from_dag(dag)
    except InputError:
        return None
    most = ceil_div(len(game.tasks), net[1]) if even and game.tasks else None
    return Problem(game, minimum_capacity(game) + extra, 0, BufferModel("connected", net[1], omega, net[0]), most)


def check_optimum(dag: nx.DiGraph, net: tuple[str, int], omega: Fraction, extra: int, even: bool) -> None:
    """The bound of a random game is no more than its optimum."""
    problem = posed(dag, net, omega, extra, even)
    if problem is None or len(problem.game.tasks) > 5:
        return
    buffers, most = problem.buffers, problem.most_tasks_per_sm
    result = solve(problem.game, problem.capacity, buffers=buffers, most_tasks_per_sm=most, time_limit=600)
    assert result.status == "optimal" and bound_for_several(problem).cost <= result.upper_bound


RANDOM = (st.booleans().flatmap(lambda w: st.one_of(random_dags.dags(5, w), random_dags.cell_dags(w))), *CASES)


@settings(max_examples=12, **QUIET)
@given(*RANDOM)
def test_no_optimum_is_less(dag: nx.DiGraph, net: tuple[str, int], omega: Fraction, extra: int, even: bool) -> None:
    check_optimum(dag, net, omega, extra, even)


@pytest.mark.slow
@settings(max_examples=100, **QUIET)
@given(*RANDOM)
def test_no_optimum_of_many_is_less(
    dag: nx.DiGraph, net: tuple[str, int], omega: Fraction, extra: int, even: bool
) -> None:
    check_optimum(dag, net, omega, extra, even)


@pytest.mark.slow
@settings(max_examples=30, **QUIET)
@given(st.booleans().flatmap(lambda w: st.one_of(random_dags.dags(4, w), random_dags.cell_dags(w))), *CASES)
def test_no_pebbling_is_cheaper(dag: nx.DiGraph, net: tuple[str, int], omega: Fraction, extra: int, even: bool) -> None:
    problem = posed(dag, net, omega, extra, even)
    if problem is None or problem.game.size > (5 if net[1] == 3 else 4):
        return
    price, most = problem.buffers.copy_cost, problem.most_tasks_per_sm
    optimum = brute_force_several(dag, problem.capacity, net[1], price, most)
    assert optimum is not None and bound_for_several(problem).cost <= optimum


@pytest.mark.parametrize("net", ["ring", "cluster-2", "partitions-2"])
@pytest.mark.parametrize("omega", ["1/4", "1/2", "1"])
def test_no_optimum_of_a_product_is_less(net: str, omega: str) -> None:
    """A product of 2 x 2 x 1, a task on each of four SMs."""
    game, buffers = Game.from_dag(gemm_dag(2, 2, 1)), BufferModel("connected", 4, Fraction(omega), net)
    for capacity in (3, 4):
        result = solve(game, capacity, buffers=buffers, most_tasks_per_sm=1, time_limit=600)
        assert result.status == "optimal"
        assert bound_for_several(Problem(game, capacity, 0, buffers, 1)).cost <= result.upper_bound


LINES = product(
    ("gemm", "ffn"), (("ring", 6), ("cluster-2", 4), ("partitions-2", 4), ("all-to-all", 3)), (False, True), (3, 4, 6)
)
# each net once, each product twice
AT_ONCE = {
    ("gemm", "ring", False, 4),
    ("ffn", "cluster-2", False, 3),
    ("ffn", "partitions-2", False, 6),
    ("gemm", "all-to-all", True, 4),
}


@pytest.mark.parametrize(
    ("dag", "net", "sms", "balanced", "capacity"),
    [
        pytest.param(dag, *net, *rest, marks=[] if (dag, net[0], *rest) in AT_ONCE else [pytest.mark.slow])
        for dag, net, *rest in LINES
    ],
)
def test_more_than_the_line_between_all_and_each(dag: str, net: str, sms: int, balanced: bool, capacity: int) -> None:
    game, above = Game.from_dag(gemm_dag(3, 3, 2) if dag == "gemm" else ffn_dag(2, 2, 2)), 0
    most = ceil_div(len(game.tasks), sms) if balanced else None
    for omega in OMEGAS[1:4]:
        problem = Problem(game, capacity, 0, BufferModel("connected", sms, omega, net), most)
        bound = bound_for_several(problem)
        line = (1 - omega) * bound.slow + omega * bound.everything
        assert bound.slow <= bound.everything and bound.cost >= line
        above += bound.cost > line
    assert not above or net in ("ring", "partitions-2")


@pytest.mark.slow
def test_what_splits_between_clusters_cost() -> None:
    """Half of a product of 3 x 3 x 3 in each of two clusters: the least split without copies, 29.1 by windows alone."""
    game = Game.from_dag(gemm_dag(3, 3, 3))
    problem = Problem(game, 6, 0, BufferModel("connected", 4, Fraction(1, 8), "cluster-2"), 7)
    assert bound_for_several(problem, splits=False).cost == Fraction(233, 8)
    bound = bound_for_several(problem)
    assert bound.cost == Fraction(331, 8) and bound.name == "pooled bound and bound per split"


@pytest.mark.slow
def test_what_splits_between_clusters_cost_is_what_solve_says() -> None:
    game = Game.from_dag(gemm_dag(3, 3, 3))
    problem = Problem(game, 6, 0, BufferModel("connected", 4, Fraction(1, 8), "cluster-2"), 7)
    bound = bound_for_several(problem)
    result = pebble.solve(
        "gemm", 6, m=3, n=3, k=3, buffers=problem.buffers, tasks_per_sm=7, solver="heuristic", time_limit=600
    )
    assert ceil(8 * bound.cost) <= 8 * result.lower_bound <= 8 * result.upper_bound


def ring_of_eight() -> Problem:
    """A network on 8 SMs, three tasks on each at most."""
    return Problem(Game.from_dag(ffn_dag(2, 2, 2)), 3, 0, BufferModel("connected", 8, Fraction(1, 2), "ring"), 3)


def test_a_ring_of_any_dag() -> None:
    """A DAG from a file has the program over arcs as well: 23 for 21.5 by the line."""
    bound = bound_for_several(ring_of_eight())
    assert bound.name == "program over groups of SMs" and (bound.cost, bound.slow) == (23, 16)


@pytest.mark.slow
def test_what_solve_says_of_a_ring_of_any_dag() -> None:
    buffers = ring_of_eight().buffers
    result = pebble.solve(ffn_dag(2, 2, 2), 3, buffers=buffers, tasks_per_sm=3, solver="heuristic")
    assert 23 <= result.lower_bound <= result.upper_bound


FAMILIES: dict[str, dict[str, object]] = {
    "gemm": {"m": 3, "n": 3, "k": 3},
    "ffn": {"tokens": 2, "d_model": 3, "hidden": 2},
    "ffn, gated": {"tokens": 2, "d_model": 2, "hidden": 2, "gated": True},
    "attention": {"queries": 2, "keys": 2, "head_dim": 2},
}


MODELS = ((None, None), ("all-to-all", "1/4"), ("ring", "1/2"), ("all-to-all", "1"))


def asked() -> list[Any]:
    """Every family with every model, three sizes, a limit on tasks and none; one of them at once."""
    results = []
    for name, model, size, even in product(FAMILIES, MODELS, ((3, 4), (2, 5), (4, 9)), (False, True)):
        at_once = size == (3, 4) and not even and (name, model[1]) == ("ffn", "1/4")
        results.append(pytest.param(name, *model, *size, even, marks=[] if at_once else [pytest.mark.slow]))
    return results


@pytest.mark.parametrize(("name", "net", "omega", "sms", "capacity", "even"), asked())
def test_solve_proves_what_bound_proves(
    name: str, net: str | None, omega: str | None, sms: int, capacity: int, even: bool
) -> None:
    """Of the same game; every multiply-add is a task."""
    family, sizes = name.partition(",")[0], FAMILIES[name]
    workload = pebble.workload(family, **sizes)
    model = BufferModel("sm-local", sms) if net is None else BufferModel("connected", sms, Fraction(omega), net)
    result = pebble.solve(family, capacity, buffers=model, balanced=even, solver="heuristic", time_limit=600, **sizes)
    share = result.most_tasks if even else None
    assert share is None or share * sms >= workload.multiply_adds
    assert result.lower_bound >= buffer_lower_bound(accounting(workload), capacity, model, share).elements

"""The bound by the shares of SMs against brute force and proven optima."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pebble.cdag.attention import attention_dag
from pebble.cdag.products import ffn_dag, gemm_dag
from pebble.errors import InputError
from pebble.game import BufferModel, Game, minimum_capacity
from pebble.solvers.result import Incumbent, Problem
from pebble.solvers.several.shares import ShareBound
from tests.solvers import random_dags
from tests.solvers.brute_force_several import brute_force_several


def proved(game: Game, capacity: int, most: int | None, upper: int, sms: int = 2) -> int:
    """What the bound proves where a cost of ``upper`` is to be proved."""
    best = Incumbent(Problem(game, capacity, 0, BufferModel("sm-local", sms), most), 600)
    best.lower = upper
    return ShareBound(best, 1 << 20).run(lambda: False)


CASES = st.tuples(
    st.one_of(random_dags.dags(6), random_dags.cell_dags()), st.integers(0, 1), st.booleans(), st.integers(0, 2)
)


def check(dag: nx.DiGraph, extra: int, balanced: bool, above: int) -> None:
    """Not above the optimum, also where more is asked for."""
    try:
        game = Game.from_dag(dag)
    except InputError:  # a node that no output needs
        return
    if game.size > 6:
        return
    capacity = minimum_capacity(game) + extra
    most = -(-len(game.tasks) // 2) if balanced else None
    optimum = brute_force_several(dag, capacity, 2, BufferModel("sm-local", 2).copy_cost, most)
    if optimum is not None:
        assert proved(game, capacity, most, int(optimum) + above) <= optimum


QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}


@settings(max_examples=30, **QUIET)
@given(CASES)
def test_bound_of_shares_against_brute_force(case) -> None:
    check(*case)


@pytest.mark.slow
@settings(max_examples=500, **QUIET)
@given(CASES)
def test_bound_of_shares_against_brute_force_on_many(case) -> None:
    check(*case)


@pytest.mark.parametrize(
    ("dag", "capacity", "balanced", "optimum", "bound"),
    [
        (ffn_dag(2, 2, 2), 3, False, 33, 32),
        (ffn_dag(2, 2, 2), 4, False, 24, 24),
        (ffn_dag(2, 2, 2), 5, False, 22, 22),
        (ffn_dag(2, 2, 2), 6, False, 18, 18),
        (ffn_dag(2, 2, 2), 5, True, 24, 24),
        (ffn_dag(2, 2, 2), 6, True, 24, 24),
        (gemm_dag(2, 2, 2), 4, True, 16, 16),
        (attention_dag(2, 2, 1), 5, False, 10, 10),
    ],
)
def test_optima_that_it_proves(dag: nx.DiGraph, capacity: int, balanced: bool, optimum: int, bound: int) -> None:
    """Twice the optimum of a half, or the optimum of all at one SM: known from the search."""
    game = Game.from_dag(dag)
    assert proved(game, capacity, -(-len(game.tasks) // 2) if balanced else None, optimum) == bound


def test_more_sms_share_no_better() -> None:
    game = Game.from_dag(gemm_dag(2, 2, 2))
    assert [proved(game, 4, None, 14, sms) for sms in (2, 3, 4)] == [14, 14, 14]

"""The explicit GEMM schedule as a pebbling, by the referee."""

import pytest

from pebble.cdag.gemm import gemm_dag
from pebble.families import lower_bound
from pebble.game import Game
from pebble.game.referee import replay
from pebble.schedules.explicit import best_gemm_schedule
from pebble.solvers.explicit_start import explicit_pebbling
from pebble.workloads import Gemm


@pytest.mark.parametrize(("m", "n", "k", "capacity"), [(2, 2, 2, 3), (5, 4, 3, 9), (7, 1, 6, 20), (3, 8, 8, 40)])
def test_is_legal_and_costs_what_the_formula_says(m: int, n: int, k: int, capacity: int) -> None:
    game = Game.from_dag(gemm_dag(m, n, k), "in-place")
    pebbling = explicit_pebbling(game, capacity)
    assert pebbling is not None
    assert replay(game, pebbling).cost == best_gemm_schedule(Gemm(m, n, k), capacity).elements
    assert pebbling.cost >= lower_bound(Gemm(m, n, k), capacity).elements


def test_other_games_have_none() -> None:
    assert explicit_pebbling(Game.from_dag(gemm_dag(2, 2, 2, form="chain"), "one-shot"), 5) is None
    assert explicit_pebbling(Game.from_dag(gemm_dag(2, 2, 2, accumulate=True), "in-place"), 5) is None
    assert explicit_pebbling(Game.from_dag(gemm_dag(3, 2, 2, tile=(2, 1, 1)), "in-place"), 9) is None

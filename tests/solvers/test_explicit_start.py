"""The explicit GEMM schedule as a pebbling, by the referee."""

import random

import pytest

from pebble.cdag.products import gemm_dag
from pebble.families import lower_bound
from pebble.game import Game
from pebble.game.referee import replay
from pebble.schedules.explicit import best_gemm_schedule
from pebble.schedules.explicit.gemm import Band, BandedProduct
from pebble.solvers.explicit_start import explicit_pebbling, schedule_pebbling
from pebble.solvers.gemm_shape import recognise
from pebble.workloads import Gemm
from pebble.workloads.widths import FastMemory
from tests.rooms import in_values


@pytest.mark.parametrize(("m", "n", "k", "capacity"), [(2, 2, 2, 3), (5, 4, 3, 9), (7, 1, 6, 20), (3, 8, 8, 40)])
def test_is_legal_and_costs_what_the_formula_says(m: int, n: int, k: int, capacity: int) -> None:
    game = Game.from_dag(gemm_dag(m, n, k), "in-place")
    pebbling = explicit_pebbling(game, capacity)
    assert pebbling is not None
    assert replay(game, pebbling).cost == in_values(best_gemm_schedule, Gemm(m, n, k), capacity).elements
    assert pebbling.cost >= lower_bound(Gemm(m, n, k), capacity).elements


@pytest.mark.parametrize("seed", range(12))
def test_the_referee_takes_bands_with_turned_corners(seed: int) -> None:
    """Any widths, blocks and operands; each has a corner that turns."""
    rnd = random.Random(seed)
    turned = 0
    while not turned:
        m, n, k = (rnd.randint(2, 9) for _ in range(3))
        axis, stationary = rnd.choice(["mA", "mC", "nB", "nC", "kA", "kB"])
        left, bands = {"m": m, "n": n, "k": k}[axis], []
        while left:
            bands.append(Band(stationary, rnd.randint(1, left), rnd.randint(1, 2)))
            left -= bands[-1].width
        schedule = BandedProduct(Gemm(m, n, k), FastMemory.of_values(rnd.randint(20, 140)), axis, tuple(bands))
        if schedule.peak_elements <= schedule.memory.bytes:
            turned = max(corner.turned for s in schedule.steps for corner in (s.across, *s.next))
    game = Game.from_dag(gemm_dag(m, n, k), "in-place")
    shape = recognise(game)
    assert shape is not None
    # the roles of operands may be told in another order
    assert {shape.m, shape.n, shape.k} == {m, n, k}
    if (shape.m, shape.n, shape.k) == (m, n, k):
        result = replay(game, schedule_pebbling(game, shape, schedule, schedule.memory.bytes))
        assert result.cost == schedule.elements
        assert result.per_sm[0].peak <= schedule.peak_elements


def test_other_games_have_none() -> None:
    assert explicit_pebbling(Game.from_dag(gemm_dag(2, 2, 2, form="chain"), "one-shot"), 5) is None
    assert explicit_pebbling(Game.from_dag(gemm_dag(2, 2, 2, accumulate=True), "in-place"), 5) is None
    assert explicit_pebbling(Game.from_dag(gemm_dag(3, 2, 2, tile=(2, 1, 1)), "in-place"), 9) is None

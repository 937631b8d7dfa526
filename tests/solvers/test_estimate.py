"""What the search for several memories thinks a state still pays is never more than that."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pebble.cdag.attention import attention_dag
from pebble.cdag.products import ffn_dag, gemm_dag
from pebble.errors import InputError
from pebble.game import BufferModel, Game, minimum_capacity
from pebble.solvers.result import Incumbent, Problem
from pebble.solvers.search.bits import FOUND, RUNNING
from pebble.solvers.several import astar
from pebble.solvers.several import states as at
from pebble.solvers.several.rules import LINES
from pebble.solvers.several.state_search import BufferSearch
from pebble.solvers.several.states import make_states
from tests.solvers import random_dags

_LEVELS = 1 << 10
_STATES = 1 << 18
_LOOKED_AT = 20


def _least(search: BufferSearch, words, blind: bool) -> tuple[int, int]:
    """The estimate of a state, and what it still pays by a search that knows no windows if it is blind."""
    rules, ideals = search.rules, search.ideals
    if blind:
        sizes = rules.sizes.copy()
        sizes[LINES] = 0
        rules = rules._replace(sizes=sizes)
    states = make_states(_STATES, search.sms, _LEVELS)._replace(table=np.zeros(4 * _STATES, np.int32))
    states.counts[at.UPPER] = _LEVELS - 1
    states.after[:] = words
    assert astar.advance(rules, ideals, states, 0, 0) == RUNNING
    estimate = int(states.counts[at.LEVEL])
    if astar.advance(rules, ideals, states, 0, _STATES) != FOUND:
        pytest.skip("too many states for a blind search")
    search.states = states
    return estimate, int(states.costs[states.counts[at.GOAL]])


@pytest.mark.parametrize("omega", [None, "1/4", "1"])
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize(
    ("dag", "capacity"),
    [
        (gemm_dag(2, 2, 2), 4),
        (ffn_dag(1, 1, 2, gated=True), 3),
        (ffn_dag(2, 1, 1, gated=True), 4),
        (attention_dag(1, 2, 1, softmax="online"), 4),
    ],
)
def test_no_state_pays_less_than_its_estimate(dag, capacity: int, balanced: bool, omega: str | None) -> None:
    buffers = BufferModel("sm-local", 2) if omega is None else BufferModel("connected", 2, omega)
    game = Game.from_dag(dag)
    check_estimates(Problem(game, capacity, 0, buffers, -(-len(game.tasks) // 2) if balanced else None))


def check_estimates(problem: Problem) -> None:
    """Of some states that a blind search enters, the estimate is at most what they still pay."""
    seeing, blind = (BufferSearch(Incumbent(problem, 600)) for _ in range(2))
    _least(blind, 0, True)
    found = blind.states.words[: blind.states.counts[at.STATES]].copy()
    assert len(found) > 1
    for words in found[:: max(1, len(found) // _LOOKED_AT)]:
        estimate, cost = _least(seeing, words, False)
        assert estimate <= _least(blind, words, True)[1] == cost


DAGS = [
    lambda rng: gemm_dag(rng.randint(1, 2), 2, rng.randint(1, 2)),
    lambda rng: ffn_dag(rng.randint(1, 2), 1, rng.randint(1, 2), gated=True),
    lambda rng: ffn_dag(1, rng.randint(1, 2), rng.randint(1, 2), gated=rng.random() < 0.7),
    lambda rng: attention_dag(1, 2, 1, softmax=rng.choice(["online", "strict"])),
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_no_state_pays_less_than_its_estimate_in_many(seed: int) -> None:
    rng = random.Random(seed)
    game = Game.from_dag(DAGS[seed % len(DAGS)](rng))
    check_estimates(drawn(game, rng))


def drawn(game: Game, rng: random.Random) -> Problem:
    """A game with memories and capacity."""
    sms = rng.choice([2, 2, 3])
    omega = rng.choice([None, None, "0", "1/4", "1/2", "1", "3/2", "5/2"])
    buffers = BufferModel("sm-local", sms) if omega is None else BufferModel("connected", sms, omega)
    most = rng.choice([None, -(-len(game.tasks) // sms), -(-len(game.tasks) // sms) + 1])
    return Problem(game, minimum_capacity(game) + rng.choice([0, 0, 1, 2]), 0, buffers, most)


def check_random(dag, seed: int) -> None:
    try:
        game = Game.from_dag(dag)
    except InputError:  # a node that no output needs
        return
    check_estimates(drawn(game, random.Random(seed)))


QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}
RANDOM = st.one_of(random_dags.dags(7), random_dags.cell_dags(), random_dags.cell_dags(weighted=True))


@settings(max_examples=15, **QUIET)
@given(RANDOM, st.integers(0, 1 << 20))
def test_no_state_of_random_games_pays_less_than_its_estimate(dag, seed: int) -> None:
    check_random(dag, seed)


@pytest.mark.slow
@settings(max_examples=500, **QUIET)
@given(RANDOM, st.integers(0, 1 << 20))
def test_no_state_of_many_random_games_pays_less_than_its_estimate(dag, seed: int) -> None:
    check_random(dag, seed)

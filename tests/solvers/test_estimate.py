"""What the search for several memories thinks a state still pays is never more than that."""

from __future__ import annotations

import pytest

from pebble.cdag.products import ffn_dag, gemm_dag
from pebble.game import BufferModel, Game
from pebble.solvers.result import Incumbent, Problem
from pebble.solvers.search.bits import FOUND, RUNNING
from pebble.solvers.several import astar
from pebble.solvers.several import states as at
from pebble.solvers.several.rules import LINES
from pebble.solvers.several.state_search import BufferSearch
from pebble.solvers.several.states import make_states

_LEVELS = 1 << 10
_STATES = 1 << 17
_LOOKED_AT = 20


def _least(search: BufferSearch, words, blind: bool) -> tuple[int, int]:
    """The estimate of a state, and what it still pays by a search that knows no windows if it is blind."""
    rules, ideals = search.rules, search.ideals
    if blind:
        sizes = rules.sizes.copy()
        sizes[LINES] = 0
        rules = rules._replace(sizes=sizes)
    states = make_states(_STATES, search.sms, _LEVELS)
    states.counts[at.UPPER] = _LEVELS - 1
    states.after[:] = words
    assert astar.advance(rules, ideals, states, 0, 0) == RUNNING
    estimate = int(states.counts[at.LEVEL])
    assert astar.advance(rules, ideals, states, 0, _STATES) == FOUND
    search.states = states
    return estimate, int(states.costs[states.counts[at.GOAL]])


@pytest.mark.parametrize("omega", [None, "1/4", "1"])
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize(("dag", "capacity"), [(gemm_dag(2, 2, 2), 4), (ffn_dag(1, 1, 2, gated=True), 3)])
def test_no_state_pays_less_than_its_estimate(dag, capacity: int, balanced: bool, omega: str | None) -> None:
    buffers = BufferModel("sm-local", 2) if omega is None else BufferModel("connected", 2, omega)
    game = Game.from_dag(dag)
    problem = Problem(game, capacity, 0, buffers, -(-len(game.tasks) // 2) if balanced else None)
    seeing, blind = (BufferSearch(Incumbent(problem, 600)) for _ in range(2))
    _least(blind, 0, True)
    found = blind.states.words[: blind.states.counts[at.STATES]]
    assert len(found) > _LOOKED_AT
    for words in found[:: len(found) // _LOOKED_AT]:
        estimate, cost = _least(seeing, words, False)
        assert estimate <= _least(blind, words, True)[1] == cost

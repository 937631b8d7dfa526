"""Maps of settled states: what they keep, what a search finds with them and without."""

from __future__ import annotations

import dataclasses
import random
from fractions import Fraction

import numpy as np
import pytest

from pebble.cdag.attention import attention_dag
from pebble.cdag.products import ffn_dag, gemm_dag
from pebble.game import BufferModel, Game, Task, Variant
from pebble.solvers.result import Incumbent, Problem
from pebble.solvers.search.bits import FOUND, bits_of, mask_of
from pebble.solvers.several import astar
from pebble.solvers.several import states as at
from pebble.solvers.several.rules import read_rules
from pebble.solvers.several.state_search import BufferSearch
from pebble.solvers.several.states import make_states
from pebble.solvers.several.symmetry import automorphisms, settled_maps

_LEVELS = 1 << 10
_STATES = 1 << 20
_LOOKED_AT = 12


def search_of(problem: Problem, *, settled: bool) -> BufferSearch:
    """The search of a problem, its states up to the maps of settled states, or up to automorphisms."""
    search = BufferSearch(Incumbent(problem, 600))
    if not settled:
        search.rules = read_rules(problem)
    return search


def least(search: BufferSearch, words) -> int:
    """What a settled state still pays."""
    search.states = states = make_states(_STATES, search.sms, _LEVELS)._replace(table=np.zeros(4 * _STATES, np.int32))
    states.counts[at.UPPER] = _LEVELS - 1
    states.after[:] = words
    assert astar.advance(search.rules, search.ideals, states, 0, _STATES) == FOUND
    return int(states.costs[states.counts[at.GOAL]])


def image_of(game: Game, words, g: int) -> list[int]:
    """Where a map takes a settled state, word by word."""
    maps, done = settled_maps(game), set(bits_of(int(words[at.DONE])))
    tasks = {maps.tasks[g][t] for t in done} - {-1}
    for t, task in enumerate(game.tasks):
        if maps.tasks[g][t] < 0 and set(task.after) <= tasks:
            tasks.add(t)

    def values(word: int) -> int:
        return mask_of((maps.after if maps.last[x] in done else maps.before)[g][x] for x in bits_of(int(word)))

    return [mask_of(tasks), values(words[at.CLEAN]), 0, *(values(word) for word in words[at.RED :])]


@pytest.mark.parametrize(
    ("dag", "maps", "plain"),
    [
        (ffn_dag(2, 2, 2, gated=True), 64, 16),  # gate and up of each of two columns
        (ffn_dag(1, 2, 1, gated=True), 8, 4),
        (ffn_dag(2, 2, 2), 16, 16),
        (gemm_dag(2, 2, 2), 16, 16),
        (attention_dag(2, 2, 1, softmax="online"), 4, 4),
    ],
)
def test_maps_of_settled_states_are_more_than_automorphisms(dag, maps: int, plain: int) -> None:
    game = Game.from_dag(dag)
    assert len(settled_maps(game).tasks) == maps and len(automorphisms(game)[0]) == plain
    assert len(set(zip(*settled_maps(game)[:3], strict=True))) == maps


def test_a_task_that_takes_over_a_cell_is_not_one_that_needs_room() -> None:
    """x = a b needs room for three values and y *= c for two, though x *= y ends both."""
    tasks = [Task("a", (0,), 4), Task("y=", (1,), 5), Task("y*=c", (3,), 5, (1,))]
    tasks += [Task("x=", (2, 4), 6), Task("x*=y", (5,), 6, (3,))]
    inputs, outputs = (True,) * 4 + (False,) * 3, (False,) * 6 + (True,)
    game = Game(Variant.IN_PLACE, tuple("ijbcayx"), (1,) * 7, inputs, outputs, tuple(tasks))
    assert len(settled_maps(game).tasks) == 1


def test_values_may_have_any_names() -> None:
    names, cell = ("a", "b", "c", "c at last"), Task("t1", (1,), 2, (0,))
    tasks = (Task("t0", (0,), 2), cell, Task("t2", (2,), 3))
    game = Game(Variant.IN_PLACE, names, (1,) * 4, (True, True, False, False), (False, False, False, True), tasks)
    assert len(settled_maps(game).tasks) == 1


def test_where_tasks_are_limited_or_have_their_sms_states_have_automorphisms_alone() -> None:
    game = Game.from_dag(ffn_dag(1, 1, 2, gated=True))
    buffers = BufferModel("sm-local", 2)
    plain = len(automorphisms(game)[0])
    assert len(read_rules(Problem(game, 4, 0, buffers), settled=True).form_tasks) == 4 * plain
    assert len(read_rules(Problem(game, 4, 0, buffers, 5), settled=True).form_tasks) == plain
    assert len(settled_maps(dataclasses.replace(game, allowed=(3,) * len(game.tasks))).tasks) == plain


@pytest.mark.parametrize("omega", [None, "1/4", "5/4"])
@pytest.mark.parametrize(("shape", "capacity"), [((1, 1, 2), 3), ((2, 1, 1), 3), ((1, 2, 1), 3)])
def test_a_map_keeps_what_a_settled_state_pays(shape: tuple[int, int, int], capacity: int, omega: str | None) -> None:
    game = Game.from_dag(ffn_dag(*shape, gated=True))
    buffers = BufferModel("sm-local", 2) if omega is None else BufferModel("connected", 2, omega)
    search = search_of(Problem(game, capacity, 0, buffers), settled=False)
    least(search, 0)
    found = search.states.words[: search.states.counts[at.STATES]].copy()
    rng, moved = random.Random(0), 0
    for words in found[:: max(1, len(found) // _LOOKED_AT)]:
        image = image_of(game, words, rng.randrange(1, len(settled_maps(game).tasks)))
        moved += image != [int(word) for word in words]
        assert least(search, np.array(image, np.uint64)) == least(search, words)
    assert moved > _LOOKED_AT // 3


def optima(problem: Problem) -> tuple[Fraction, int]:
    """What a pebbling of least cost costs, found up to maps of settled states and up to automorphisms; states saved."""
    costs, states = [], []
    for settled in (True, False):
        search = search_of(problem, settled=settled)
        costs.append(Fraction(least(search, 0) * search.level, search.best.unit))
        states.append(int(search.states.counts[at.STATES]))
        assert search.best.offer(search.moves(), "search")  # replayed
        assert Fraction(search.best.upper, search.best.unit) == costs[-1]
    assert costs[0] == costs[1]
    return costs[0], states[1] - states[0]


SHAPES = [(1, 1, 1), (1, 1, 2), (2, 1, 1), (1, 2, 1)]
MANY = [*SHAPES, (1, 2, 2), (2, 1, 2), (2, 2, 1), (1, 1, 3), (3, 1, 1)]


def drawn(seed: int, shapes: list[tuple[int, int, int]]) -> Problem:
    """A small gated network, its memories and its capacity."""
    rng = random.Random(seed)
    game = Game.from_dag(ffn_dag(*shapes[seed % len(shapes)], gated=True))
    omega = rng.choice([None, "0", "1/4", "1/3", "1/2", "3/4", "1", "5/4", "3/2"])
    buffers = BufferModel("sm-local", 2) if omega is None else BufferModel("connected", 2, omega)
    return Problem(game, rng.choice([3, 3, 4, 4, 5, 6]), 0, buffers)


@pytest.mark.parametrize("seed", range(8))
def test_maps_of_settled_states_leave_the_optimum(seed: int) -> None:
    optima(drawn(seed, SHAPES))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 190))
def test_maps_of_settled_states_leave_the_optimum_of_many(seed: int) -> None:
    optima(drawn(seed, MANY))


def test_fewer_states_are_kept() -> None:
    game = Game.from_dag(ffn_dag(1, 1, 2, gated=True))
    assert optima(Problem(game, 3, 0, BufferModel("connected", 2, "1/4")))[1] > 0

"""Two referees that share no code give the same verdict: on recorded optima, and on those with a move spoiled."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from benchmarks.prove_optima import Row, read_rows
from pebble.errors import IllegalMoveError, PebbleError
from pebble.families import build_dag
from pebble.game import SINGLE, BufferModel, Game, Pebbling, minimum_capacity, moves_cost, replay
from pebble.solvers import solve
from tests.game.second_referee import replay_again

ROWS = [
    row
    for row in read_rows(Path(__file__).parents[1] / "solvers" / "optima.csv")
    if row.variant in ("one-shot", "in-place")
]
OPS = ["load", "store", "compute", "delete", "copy"]
MODELS = [
    BufferModel("sm-local", 2),
    BufferModel("connected", 3, Fraction(1, 4), "ring"),
    BufferModel("connected", 2, Fraction(3)),
]


def spoiled(game: Game, pebbling: Pebbling, seed: int) -> Iterator[Pebbling]:
    """The pebbling with a move lost, doubled, exchanged, or changed in one part."""
    rng = random.Random(seed)
    names = [*game.names, *(task.name for task in game.tasks)]
    for way in range(15):
        moves = list(pebbling.moves)
        at, other = rng.randrange(len(moves)), rng.randrange(len(moves))
        if way % 5 == 0:
            del moves[at]
        elif way % 5 == 1:
            moves.insert(at, moves[other])
        elif way % 5 == 2:
            moves[at], moves[other] = moves[other], moves[at]
        elif way % 5 == 3:
            moves[at] = moves[at]._replace(op=rng.choice(OPS), sm=rng.randrange(pebbling.buffers.memories))
        else:
            moves[at] = moves[at]._replace(node=rng.choice(names))
        yield replace(pebbling, moves=tuple(moves), cost=moves_cost(game, moves, pebbling.buffers))


def check_verdicts(game: Game, pebbling: Pebbling, seed: int) -> int:
    """Both referees on the pebbling and its spoiled kin; how many of these are illegal."""
    illegal = 0
    for item in (pebbling, *spoiled(game, pebbling, seed)):
        verdicts: list[object] = []
        for referee in (replay, replay_again):
            try:
                result = referee(game, item)
                verdicts.append((result.cost, result.hops))
            except IllegalMoveError as error:
                verdicts.append((error.step, error.rule, error.node))
                illegal += 1
        assert verdicts[0] == verdicts[1], item
    result, again = replay(game, pebbling), replay_again(game, pebbling)
    mine = [(sm.loads, sm.stores, sm.copies, sm.computations, sm.peak) for sm in result.per_sm]
    assert mine == list(zip(again.loads, again.stores, again.copies, again.tasks, again.peak, strict=True))
    return illegal


@pytest.mark.parametrize("row", ROWS[::4], ids=lambda row: row.label)
def test_on_pebblings_of_recorded_games(row: Row) -> None:
    game = Game.from_dag(row.build(), row.variant)
    result = solve(game, row.capacity, solver="heuristic", time_limit=600).pebbling
    assert result.buffers == SINGLE and result.cost >= row.optimum
    assert check_verdicts(game, result, row.optimum) > 0


@pytest.mark.slow
def test_on_all_recorded_optima() -> None:
    replayed = 0
    for row in ROWS:
        try:
            result = solve(row.build(), row.capacity, row.variant, "search", 20)
        except PebbleError:  # too large for the search
            continue
        if result.upper_bound == row.optimum:
            replayed += 1
            check_verdicts(Game.from_dag(row.build(), row.variant), result.pebbling, row.optimum)
    assert replayed >= 0.9 * len(ROWS)


@pytest.mark.parametrize("buffers", MODELS, ids=str)
@pytest.mark.parametrize(
    ("family", "values"),
    [("gemm", {"m": 2, "n": 2, "k": 1}), ("tree", {"leaves": 4}), ("diamond", {"size": 3}), ("fft", {"size": 4})],
)
def test_with_several_memories(family: str, values: dict[str, int], buffers: BufferModel) -> None:
    game = Game.from_dag(build_dag(family, values))
    result = solve(game, minimum_capacity(game), solver="heuristic", time_limit=600, buffers=buffers)
    assert check_verdicts(game, result.pebbling, buffers.sms) > 0

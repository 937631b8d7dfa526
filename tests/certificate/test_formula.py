"""Every legal pebbling, cheap or not, solves the formula, and every line that a log derives from it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from pebble.certificate import RefusedError, cutting_planes
from pebble.certificate.cutting_planes import check_log
from pebble.certificate.formula import Constraint, Formula
from pebble.certificate.games import Game, read_game, replay
from tests.certificate.random_games import random_game

LOGS = Path(__file__).parent / "logs"
Moves = list[list[str]]


def play(game: Game, rnd: random.Random, most: int = 400) -> Moves | None:
    """Legal moves at random until all is done; None where they lead nowhere."""
    moves: Moves = []
    red: set[int] = set()
    blue = {v for v, given in enumerate(game.is_input) if given}
    initialised, done = set(blue), set()  # type: set[int], set[int]
    updates = [{t for t, task in enumerate(game.tasks) if task.target == v} for v in range(len(game.names))]
    for _ in range(most):
        if len(done) == len(game.tasks) and all(v in blue for v, out in enumerate(game.is_output) if out):
            return moves
        capacity = game.capacity - sum(game.weights[v] for v in red)
        choices: list[tuple[str, int]] = []
        for t, task in enumerate(game.tasks):
            x = task.target
            is_cell = len(updates[x]) > 1 or game.is_input[x]
            ready = all(y in red and updates[y] <= done for y in task.operands) and done.issuperset(task.after)
            fits = x in red or game.weights[x] <= capacity
            if t not in done and ready and fits and (x in red) == (is_cell and x in initialised):
                choices += [("compute", t)] * 6
        choices += [("load", v) for v in blue - red if game.weights[v] <= capacity]
        choices += [("store", v) for v in red - blue] + [("delete", v) for v in red]
        if not choices:
            return None
        op, which = rnd.choice(choices)
        moves.append([op, game.tasks[which].name if op == "compute" else game.names[which]])
        if op == "compute":
            x = game.tasks[which].target
            red.add(x)
            initialised.add(x)
            blue.discard(x)
            done.add(which)
        elif op == "delete":
            red.discard(which)
        else:
            (red if op == "load" else blue).add(which)
    return None


def solution(game: Game, moves: Any, formula: Formula) -> dict[int, bool]:
    """The variables as the table at the head of the module defines them."""
    value = {name: v for v, name in enumerate(game.names)}
    task = {t.name: number for number, t in enumerate(game.tasks)}
    true: set[tuple[str, int, int]] = set()
    red: set[int] = set()
    blue = {v for v, given in enumerate(game.is_input) if given}
    initialised, p = set(blue), 0
    for op, name in moves:
        if op == "compute":
            x = game.tasks[task[name]].target
            true |= {("x", task[name], p)} | {("b", v, p) for v in blue} | {("g", v, p) for v in initialised}
            red.add(x)
            initialised.add(x)
            blue.discard(x)
            true |= {("r", v, p) for v in red}
            p += 1
        elif op == "load":
            red.add(value[name])
            true.add(("l", value[name], p))
        elif op == "store":
            blue.add(value[name])
            true.add(("s", value[name], p - 1))
        else:
            red.discard(value[name])
    true |= {("b", v, p) for v in blue}
    return {x: key in true for key, x in formula.variables.items()}


def holds(constraint: Constraint, at: dict[int, bool]) -> bool:
    return sum(c for x, c in constraint.terms.items() if at[abs(x)] == (x > 0)) >= constraint.degree


@pytest.mark.parametrize("seed", range(40))
def test_every_pebbling_solves_the_formula_of_its_cost(seed: int) -> None:
    rnd = random.Random(seed)
    for _ in range(12):
        game = read_game(random_game(rnd, rnd.choice(["one-shot", "in-place"])), "game")
        moves = play(game, rnd)
        cost = replay(game, moves, "moves") if moves is not None else 0
        if not cost:
            continue
        formula = Formula(game, cost, range(len(game.tasks)))
        result = solution(game, moves, formula)
        assert all(holds(constraint, result) for constraint in formula.constraints)
        cheaper = Formula(game, cost - 1, range(len(game.tasks))).constraints  # but for the cost nothing is new
        assert [holds(constraint, result) for constraint in cheaper].count(False) <= 1


@pytest.mark.parametrize("name", sorted(path.stem for path in LOGS.glob("*.json")))
def test_what_a_log_derives_holds_for_a_true_pebbling(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.loads((LOGS / f"{name}.json").read_text())
    game = read_game(document["statement"]["game"], "game")
    pebbling, claim = document["claims"]
    formula = Formula(game, claim["cost"], range(len(game.tasks)))
    result = solution(game, pebbling["moves"], formula)
    learned: list[Constraint] = []
    learn = cutting_planes._Log.learn

    def noted(self: Any, constraint: Constraint, at: str) -> None:
        learned.append(constraint)
        learn(self, constraint, at)

    monkeypatch.setattr(cutting_planes._Log, "learn", noted)
    with pytest.raises(RefusedError, match="can be satisfied"):
        check_log(formula.constraints, (LOGS / f"{name}.pbp").read_text())
    assert len(learned) > 30 and all(holds(constraint, result) for constraint in learned)

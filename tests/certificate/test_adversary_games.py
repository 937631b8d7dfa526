"""Opponents of the checker, on games: whatever they change and make consistent, no false claim is accepted.

Every seed is a parameter of its test, so `pytest -k 'name and 17'` repeats a failure. The slow suite runs many more.
"""

from __future__ import annotations

import copy
import json
import random
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from pebble.cdag import diamond_dag, gemm_dag
from pebble.certificate import RefusedError, check, positions, potential
from pebble.certificate.games import read_game, replay
from pebble.certificate.reading import parse
from pebble.errors import InputError, PebbleError
from pebble.game import Game, Move, Pebbling, Task, Variant
from pebble.game import replay as referee_replay
from pebble.proof.optimum import game_statement, positions_proof
from tests.brute_force import brute_force, brute_force_pebbling
from tests.certificate.oracle import least_cost, sensible
from tests.certificate.persuade import mutant, other_game, persuade, scrambled, write_table
from tests.certificate.random_games import VARIANTS, as_dag, random_game, shuffled
from tests.certificate.test_optimum_certificates import certified

FAST, SLOW = range(5), range(100, 300)
SEEDS = [*FAST, *(pytest.param(seed, marks=pytest.mark.slow) for seed in SLOW)]
KINDS = ("compulsory", "segments", "positions", "potential")


def as_game(told: dict[str, Any]) -> Game:
    """A statement as the game that solvers play, built directly."""
    return Game(
        Variant(told["variant"]),
        tuple(name for name, _, _ in told["values"]),
        tuple(weight for _, weight, _ in told["values"]),
        tuple("input" in role for _, _, role in told["values"]),
        tuple("output" in role for _, _, role in told["values"]),
        tuple(Task(name, tuple(operands), target, tuple(after)) for name, target, operands, after in told["tasks"]),
    )


@lru_cache(maxsize=10_000)
def _least(told: str) -> int | None:
    return least_cost(json.loads(told))


def truth(told: dict[str, Any]) -> int | None:
    """The optimum of a stated game."""
    return _least(json.dumps(told))


def assert_true(document: Any, what: object) -> None:
    """An accepted certificate of a game: the game makes sense, and every claim holds."""
    spec = document["statement"]["game"]
    assert sensible(spec), what
    optimum = truth(spec)
    for claim in document["claims"]:
        if claim["claim"] == "pebbling":
            assert optimum is not None and claim["cost"] >= optimum, (what, optimum, claim)
        else:
            assert optimum is None or claim["cost"] <= optimum, (what, optimum, claim)


def made(rnd: random.Random, kind: str, folder: Path) -> dict[str, Any] | None:
    """A true certificate whose lower bound is proved in this way, if this draw gives one."""
    if kind == "segments" or kind == "potential":
        shape, capacity = rnd.choice([((1, 1, 2), 3), ((1, 2, 2), 3), ((1, 2, 2), 4), ((2, 2, 1), 3), ((2, 1, 2), 3)])
        dag, game = gemm_dag(*shape), Game.from_dag(gemm_dag(*shape))
    else:
        spec = random_game(
            rnd, rnd.choice(VARIANTS) if kind == "compulsory" else "one-shot", 0.0, 5, kind == "compulsory"
        )
        dag = as_dag(spec)
        if dag is None or not sensible(spec):
            return None
        game, capacity = Game.from_dag(dag, spec["variant"]), spec["capacity"]
    result = brute_force_pebbling(dag, capacity, str(game.variant))
    if result is None or result[0] == 0:
        return None
    cost, moves = result
    pebbling = Pebbling(game.variant, capacity, tuple(Move(*move) for move in moves), cost)
    return certified(game, capacity, cost, folder / "c.json", pebbling)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_false_claim_about_a_game(kind: str, seed: int, tmp_path: Path) -> None:
    rnd = random.Random(f"{kind} {seed}")
    original = made(rnd, kind, tmp_path)
    if original is None:
        return
    accepted = refused = 0
    assert_true(original, "as made")
    for number in range(150):
        document = mutant(original, rnd) if number % 3 else other_game(original, rnd)
        if number % 12 == 0:
            document = mutant(document, rnd, 1)
        if persuade(document, tmp_path) is None:
            refused += 1
        elif document["statement"]["game"]["values"] != [] and len(document["statement"]["game"]["values"]) < 12:
            accepted += 1
            assert_true(document, number)
    assert refused > accepted > 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["positions", "potential"])
def test_no_table_proves_too_much(kind: str, seed: int, tmp_path: Path) -> None:
    """Tables for a cost above the optimum, made in every way that comes to mind, are all refused."""
    rnd = random.Random(f"{kind} {seed}")
    original = made(rnd, kind, tmp_path)
    if original is None:
        return
    spec = original["statement"]["game"]
    optimum, game = truth(spec), read_game(spec, "game")
    assert optimum is not None
    for number in range(40):
        raised = optimum + rnd.choice([1, 1, 2, 5])
        if kind == "positions":
            proof = _positions_attack(game, raised, rnd, tmp_path)
        else:
            proof = _potential_attack(game, raised - optimum, original, rnd, tmp_path)
        if proof is None:
            return
        claim = {"claim": "no cheaper pebbling", "cost": raised, "proof": proof}
        with pytest.raises(RefusedError):
            check({**original, "claims": [claim]}, tmp_path)
        assert number < 40


def _positions_attack(game: Any, cost: int, rnd: random.Random, folder: Path) -> dict[str, Any] | None:
    result = positions_proof(game, cost, float("inf"))
    assert result is not None
    magic, size = positions.MAGIC, 3 * -(-len(game.names) // 8) + 2
    body = result[2][len(magic) :]
    records = [body[i : i + size] for i in range(0, len(body), size)]
    computed = positions.Moves(game).computed
    for _ in range(rnd.randint(1, 4)):
        i = rnd.randrange(len(records))
        kind = rnd.randrange(4)
        if kind == 0 and len(records) > 1:
            del records[i]
        elif kind == 1:  # an excess that is lower, or higher
            records[i] = records[i][:-2] + rnd.choice([0, 1, 2, cost, 65535]).to_bytes(2, "little")
        elif kind == 2:
            j = rnd.randrange(size)
            records[i] = records[i][:j] + bytes([records[i][j] ^ 1 << rnd.randrange(8)]) + records[i][j + 1 :]
        else:  # all ends
            width = (size - 2) // 3
            left = [r for r in records if int.from_bytes(r[:width], "little") & computed != computed]
            records = left or records[:1]
    plain = magic + b"".join(records)
    return {"method": "positions", "table": write_table(folder, "more.table", plain, size, magic)}


def _potential_attack(
    game: Any, more: int, original: dict[str, Any], rnd: random.Random, folder: Path
) -> dict[str, Any] | None:
    proof = copy.deepcopy(original["claims"][-1]["proof"])
    if proof["method"] != "potential":
        return None
    plain = zlib.decompress((folder / proof["table"]["file"]).read_bytes())
    products = potential.read_gemm(game, {**proof}, "proof")
    wide_r, wide_m, wide_v = potential.record_bytes(products)
    size, magic = wide_r + wide_m + wide_v, potential.MAGIC
    body = bytearray(plain[len(magic) :])
    start = products.offset[products.cells]
    threshold = rnd.choice([0, 1, 2, 4])
    for i in range(0, len(body), size):
        key = int.from_bytes(body[i : i + wide_r + wide_m], "little")
        for j in range(wide_v):
            at = i + wide_r + wide_m + j
            if (key == 0 and j == start + products.count - products.k * products.cells) or (
                body[at] >= threshold and rnd.random() < 0.99
            ):
                body[at] = min(255, body[at] + more)
    proof["table"] = write_table(folder, "more.table", magic + bytes(body), size, magic)
    return proof


@pytest.mark.parametrize("seed", SEEDS)
def test_games_that_make_no_sense_are_refused_everywhere(seed: int) -> None:
    rnd = random.Random(seed)
    for number in range(30):
        spec = random_game(rnd, VARIANTS[number % 5], rnd.choice([0.0, 0.5]))
        good = sensible(spec)
        dag = as_dag(spec)
        outcomes = {"game": _taken(lambda told=spec: as_game(told))}
        outcomes["checker"] = _taken(lambda told=spec: read_game(shuffled(told, rnd), "game"))
        if dag is not None:
            outcomes["DAG"] = _taken(lambda dag=dag, told=spec: Game.from_dag(dag, told["variant"]))
            optimum = _taken(lambda dag=dag, told=spec: brute_force(dag, told["capacity"], told["variant"]))
            assert optimum or not good  # it knows of values that no output needs, not of what else is wrong
        assert set(outcomes.values()) == {good}, (number, outcomes, spec)


def _taken(build: Any) -> bool:
    try:
        build()
    except (RefusedError, PebbleError, InputError, ValueError):
        return False
    return True


@pytest.mark.parametrize("seed", SEEDS)
def test_checker_and_referee_agree_on_moves(seed: int) -> None:
    rnd = random.Random(seed)
    legal = 0
    for number in range(60):
        spec = random_game(rnd, VARIANTS[number % 5])
        dag = as_dag(spec)
        if dag is None:
            continue
        result = brute_force_pebbling(dag, spec["capacity"], spec["variant"])
        moves = [list(move) for move in result[1]] if result else []
        names = [name for name, _, _ in spec["values"]] + [name for name, _, _, _ in spec["tasks"]]
        for _ in range(rnd.randrange(3)):
            word = rnd.choice(["load", "store", "delete", "compute", "slide"])
            new = [word, rnd.choice(names)] + ([rnd.choice(names)] if word == "slide" else [])
            i = rnd.randrange(len(moves) + 1)
            moves[i : i + rnd.randrange(2)] = [new] if rnd.random() < 0.7 else []
        game = as_game(spec)
        try:
            cost: int | None = replay(read_game(spec, "game"), moves, "moves")
        except RefusedError:
            cost = None
        pebbling = Pebbling(game.variant, spec["capacity"], tuple(Move(*m) for m in moves), cost or 0)
        if cost is None:
            with pytest.raises(PebbleError):
                referee_replay(game, pebbling)
        else:
            legal += 1
            assert referee_replay(game, pebbling).cost == cost >= (truth(spec) or 0)
    assert legal


@pytest.mark.parametrize("seed", SEEDS)
def test_scrambled_texts_end_in_a_refusal(seed: int, tmp_path: Path) -> None:
    rnd = random.Random(seed)
    game = Game.from_dag(diamond_dag(2))
    document = certified(game, 3, 2, tmp_path / "c.json")
    content = json.dumps(document).encode()
    for _ in range(100):
        try:
            read = parse(scrambled(content, rnd))
            check(read, tmp_path)
        except RefusedError:
            continue
        assert_true(read, seed)


def test_statement_of_a_game_round_trips() -> None:
    spec = game_statement(Game.from_dag(gemm_dag(2, 1, 2)), 4)
    assert game_statement(as_game(spec), 4) == spec


@pytest.mark.parametrize("seed", SEEDS)
def test_moves_between_positions_lose_no_optimum(seed: int) -> None:
    """Forced moves, prices and the excess to come, on narrow memories: the least over positions is the least of all."""
    rnd = random.Random(seed)
    values: list[list[Any]] = [[f"x{i}", 1, "input"] for i in range(2)]
    tasks = []
    for x in range(2, rnd.randint(7, 9)):
        # mostly late operands, so that values wait long for their last use
        operands = sorted(rnd.sample(range(x), 2 if rnd.random() < 0.8 else min(x, 3)))
        values.append([f"y{x}", 1, "output" if rnd.random() < 0.15 else "between"])
        tasks.append([f"y{x}", x, operands, []])
    used = {x for _, _, operands, _ in tasks for x in operands}
    for x, value in enumerate(values):
        if x not in used:
            value[2] = "input and output" if x < 2 else "output"
    capacity = 1 + max(len(operands) for _, _, operands, _ in tasks)
    fields = {"variant": "one-shot", "capacity": capacity, "values": values, "tasks": tasks}
    game = read_game(fields, "game")
    moves = positions.Moves(game)
    to_go: dict[positions.Position, int] = {}

    def least(position: positions.Position) -> int:
        if position not in to_go:
            after = [price + least(moves.after(position, gone, x)) for price, gone, x in moves.moves(position)]
            to_go[position] = 0 if position[0] == moves.computed else min(after)
        return to_go[position]

    assert game.compulsory + least(moves.settle((0, 0, 0))) == truth(fields), fields
    assert all(moves.to_come(position) <= cost for position, cost in to_go.items()), fields

"""Closed lists of states: they prove the optimum of small games on any memories, and no list proves more."""

from __future__ import annotations

import dataclasses
import hashlib
import heapq
import json
import random
import time
import zlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pebble.cdag.products import ffn_dag, gemm_dag
from pebble.certificate import RefusedError, check
from pebble.certificate.games import Game as CheckedGame
from pebble.certificate.games import read_game
from pebble.certificate.memories import Memories
from pebble.certificate.remaining import NEVER
from pebble.certificate.states import MAGIC, Moves, State, check_states
from pebble.cli import main
from pebble.errors import InputError
from pebble.game import Game, minimum_capacity
from pebble.proof import states as search
from pebble.proof.optimum import game_statement
from pebble.proof.states import TooLongError, states_proof, usable_symmetries
from tests.certificate.mutate import mutations
from tests.solvers import random_dags
from tests.solvers.brute_force_several import brute_force_several

QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}
# SMs, net; no net: without copies
NETS = [(1, ""), (2, ""), (2, "all-to-all"), (2, "all-to-all"), (3, "all-to-all"), (3, "ring"), (3, "cluster-2")]
OMEGAS = [Fraction(n, d) for n, d in ((0, 1), (1, 4), (1, 2), (2, 3), (1, 1), (5, 4), (3, 2), (2, 1), (5, 2))]
SIZES = {1: 10, 2: 7, 3: 4}  # nodes of a DAG that the literal game is played on, by SMs
WEIGHTED = st.booleans().flatmap(lambda w: st.one_of(random_dags.dags(5, w), random_dags.cell_dags(w)))


def memories_of(
    net: tuple[int, str], omega: Fraction, tasks: int, even: bool, owners: random.Random | None
) -> Memories:
    """Memories, with a limit of an even share or with tasks that have SMs of their own."""
    sms, name = net
    most = -(-tasks // sms) if even else tasks
    allowed = () if owners is None or sms == 1 else tuple(owners.randrange(1, 1 << sms) for _ in range(tasks))
    return Memories(sms, omega if name else None, name, most, allowed)


def least(dag: nx.DiGraph[Any], game: Game, capacity: int, memories: Memories) -> Fraction | None:
    """By Dijkstra over all states of the rules, which shares nothing with the checker."""

    def price(p: int, q: int) -> Fraction | None:
        hops = memories.hops(p, q)
        return None if hops is None else hops * memories.omega

    def may_do(task: str, sm: int) -> bool:
        return not memories.allowed or bool(memories.allowed[game.task_index[task]] >> sm & 1)

    most = memories.most if memories.most < len(game.tasks) else None
    return brute_force_several(dag, capacity, memories.sms, price, most, may_do)


def accepted(checkable: CheckedGame, memories: Memories, cost: Fraction, spec: dict[str, Any], table: bytes) -> None:
    """The checker takes a list, written as a file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pebble.certificate.states.records", lambda *_: _records(table, checkable, memories))
        proof = {key: value for key, value in spec.items() if key != "records"} | {"table": {}}
        check_states(checkable, memories, cost, proof, None, "proof")


def _records(table: bytes, checkable: CheckedGame, memories: Memories) -> list[bytes]:
    size, _ = search.record_size(checkable, memories)
    body = table[len(MAGIC) :]
    return [body[first : first + size] for first in range(0, len(body), size)]


def hold_to_the_rules(case: tuple[nx.DiGraph[Any], tuple[int, str], Fraction, int, bool, int]) -> bool:
    """A list proves the optimum of a game, and none proves more; whether the game was one."""
    dag, net, omega, extra, even, owners = case
    try:
        game = Game.from_dag(dag)
    except InputError:  # a node that no output needs
        return False
    tasks = len(game.tasks)
    if not tasks or len(dag) > SIZES[net[0]]:
        return False
    capacity = minimum_capacity(game) + extra
    memories = memories_of(net, omega, tasks, even, random.Random(owners) if owners else None)
    optimum = least(dag, game, capacity, memories)
    statement = json.loads(json.dumps(game_statement(game, capacity)))
    checkable, until = read_game(statement, "game"), time.monotonic() + 600
    if optimum is None:
        return False
    spec, table = states_proof(game, checkable, memories, optimum, until)
    accepted(checkable, memories, optimum, spec, table)
    with pytest.raises(TooLongError, match="there is a pebbling"):
        states_proof(game, checkable, memories, optimum + Fraction(1, 20), until)
    return True


CASES = st.tuples(
    WEIGHTED, st.sampled_from(NETS), st.sampled_from(OMEGAS), st.integers(0, 2), st.booleans(), st.integers(0, 9)
)


@settings(max_examples=12, **QUIET)
@given(CASES)
def test_lists_prove_the_optimum_and_no_more(case: Any) -> None:
    hold_to_the_rules(case)


@pytest.mark.slow
@settings(max_examples=3000, **(QUIET | {"derandomize": False}))
@given(CASES)
def test_lists_prove_the_optimum_and_no_more_of_many(case: Any) -> None:
    hold_to_the_rules(case)


def states_that_pay_less(moves: Moves, most: int) -> int:
    """Of a game with at most so many states, how many still pay less than is said; by Dijkstra back from the ends."""
    states, edges = [moves.start], dict[State, list[tuple[State, int]]]()
    known = {moves.start}
    for state in states:
        if len(states) > most:
            return 0
        for cost, after in moves.moves(state):
            image = moves.canonical(after)
            edges.setdefault(image, []).append((state, cost))
            if image not in known:
                known.add(image)
                states.append(image)
    paid = {state: 0 for state in states if not moves.fixed.all & ~state[0]}
    heap = [(0, state) for state in paid]
    while heap:
        cost, state = heapq.heappop(heap)
        for before, step in edges.get(state, []) if cost == paid[state] else []:
            if cost + step < paid.get(before, NEVER):
                paid[before] = cost + step
                heapq.heappush(heap, (cost + step, before))
    return sum(moves.to_come(state) > paid.get(state, NEVER) for state in states)


def hold_what_is_to_come(case: tuple[nx.DiGraph[Any], tuple[int, str], Fraction, int, bool, int], most: int) -> None:
    """No state of a game pays less than is said of it."""
    dag, net, omega, extra, even, owners = case
    try:
        game = Game.from_dag(dag)
    except InputError:
        return
    if game.tasks:
        capacity = minimum_capacity(game) + extra
        memories = memories_of(net, omega, len(game.tasks), even, random.Random(owners) if owners else None)
        checkable = read_game(json.loads(json.dumps(game_statement(game, capacity))), "game")
        moves = Moves(checkable, memories, usable_symmetries(game, checkable, memories))
        assert not states_that_pay_less(moves, most)


@settings(max_examples=40, **QUIET)
@given(CASES)
def test_no_state_pays_less_than_is_said(case: Any) -> None:
    hold_what_is_to_come(case, 2000)


@pytest.mark.slow
@settings(max_examples=3000, **(QUIET | {"derandomize": False}))
@given(CASES)
def test_no_state_of_many_pays_less_than_is_said(case: Any) -> None:
    hold_what_is_to_come(case, 20_000)


@pytest.mark.parametrize("dag", [gemm_dag(2, 2, 1), gemm_dag(1, 2, 3), ffn_dag(1, 1, 2), ffn_dag(1, 1, 2, gated=True)])
@pytest.mark.parametrize("even", [False, True])
def test_no_state_of_a_product_pays_less_than_is_said(dag: nx.DiGraph[Any], even: bool) -> None:
    for net, omega, extra in (
        ((2, "all-to-all"), Fraction(1, 2), 0),
        ((2, ""), Fraction(0), 1),
        ((1, ""), Fraction(0), 0),
    ):
        hold_what_is_to_come((dag, net, omega, extra, even, 0), 20_000)


def written(folder: Path, *words: str) -> tuple[Path, dict[str, Any]]:
    """The certificate that `pebble solve` writes, as read."""
    path = folder / "c.json"
    assert main(["solve", *words, "--time-limit", "600", "--certificate", str(path)]) == 0
    return path, json.loads(path.read_text())


PRODUCT = "gemm -m 2 -n 2 -k 2 --capacity 3"
TWO = "--sms 2 --buffers"
SOLVED = [
    (f"{PRODUCT} {TWO} connected --omega 1/4", "14"),
    (f"{PRODUCT} {TWO} connected --omega 1/4 --balanced", "57/4"),
    (f"{PRODUCT} {TWO} connected --omega 1/2", "31/2"),
    (f"ffn --tokens 2 --d-model 2 --hidden 2 --capacity 4 {TWO} connected --omega 1/4", "18"),
    (f"ffn --tokens 2 --d-model 1 --hidden 2 --capacity 3 {TWO} sm-local --split 1:1", "18"),
    (f"ffn --tokens 2 --d-model 1 --hidden 2 --capacity 3 {TWO} connected --omega 1/4 --split 1:1", "21/2"),
    ("gemm -m 2 -n 2 -k 2 --capacity 3 --sms 3 --buffers connected --omega 1/2 --topology cluster-2", "31/2"),
    ("attention --queries 2 --keys 2 --head-dim 1 --capacity 3", 16),
    ("ffn --tokens 2 --d-model 2 --hidden 2 --capacity 3", 33),
]


@pytest.mark.parametrize(("words", "optimum"), SOLVED)
def test_what_search_proved_is_proved_by_the_checker(words: str, optimum: Any, tmp_path: Path) -> None:
    """One memory and several, shared evenly or by products: beyond what windows of tasks or theorems say."""
    path, document = written(tmp_path, *words.split())
    assert document["claims"][-1]["proof"]["method"] == "states"
    assert document["claims"][-1]["cost"] == document["claims"][0]["cost"] == optimum
    assert check(document, path.parent)[-1] == f"so the optimum is {optimum}"


def table_of(path: Path, document: dict[str, Any]) -> tuple[bytes, list[bytes]]:
    """What a list of states begins with, and its records."""
    spec = document["claims"][-1]["proof"]["table"]
    content = zlib.decompress((path.parent / spec["file"]).read_bytes())
    size = (len(content) - len(MAGIC)) // spec["records"]
    return content[: len(MAGIC)], [content[at : at + size] for at in range(len(MAGIC), len(content), size)]


def put(path: Path, document: dict[str, Any], magic: bytes, records: list[bytes]) -> None:
    """Write other records, with their hash."""
    spec = document["claims"][-1]["proof"]["table"]
    packed = zlib.compress(magic + b"".join(records))
    (path.parent / spec["file"]).write_bytes(packed)
    spec["sha256"], spec["records"] = hashlib.sha256(packed).hexdigest(), len(records)


def test_no_other_list_is_accepted(tmp_path: Path) -> None:
    """Each state is needed, at its cost or less; a list that proves an optimum proves nothing above it."""
    path, document = written(tmp_path, *SOLVED[1][0].split())
    magic, records = table_of(path, document)
    rnd = random.Random(0)
    assert len(records) > 20
    for number, record in enumerate(records):
        paid = int.from_bytes(record[-4:], "little")
        other = bytearray(record)
        other[rnd.randrange(len(record) - 4)] ^= 1 << rnd.randrange(8)
        dearer = record[:-4] + (paid + 1).to_bytes(4, "little")
        for changed in ([], [dearer], [bytes(other)]):
            put(path, document, magic, [*records[:number], *changed, *records[number + 1 :]])
            with pytest.raises(RefusedError, match=r"not listed|no state of this game"):
                check(document, path.parent)
    put(path, document, magic, records)
    assert check(document, path.parent)
    del document["claims"][0]
    document["claims"][0]["cost"] = "29/2"
    with pytest.raises(RefusedError, match=r"not listed|is the end"):
        check(document, path.parent)
    end = (255).to_bytes(1, "little") + bytes(len(records[0]) - 1)
    put(path, document, magic, [*records, end])
    with pytest.raises(RefusedError, match=r"the end of a pebbling|not listed"):
        check(document, path.parent)
    put(path, document, b"pebble positions 1\n", records)
    with pytest.raises(RefusedError, match=r"records announced|no table of this kind"):
        check(document, path.parent)


def test_no_change_of_a_claim_proves_more(tmp_path: Path) -> None:
    path, document = written(tmp_path, *SOLVED[2][0].split())
    optimum = Fraction(document["claims"][1]["cost"])
    statement = document.pop("statement")
    for what, mutant in mutations(document):
        try:
            said = check({**mutant, "statement": statement}, path.parent)
        except RefusedError:
            continue
        bounds = [claim for claim in mutant["claims"] if claim["claim"] == "no cheaper pebbling"]
        assert said and all(Fraction(claim["cost"]) <= optimum for claim in bounds), what


def test_false_symmetries_are_refused(tmp_path: Path) -> None:
    path, document = written(tmp_path, *SOLVED[0][0].split())
    proof = document["claims"][-1]["proof"]
    values = list(range(12))
    for image in ([1, 0, *values[2:]], [*values[:10], 11, 10], [0, *values[:11]]):
        changed = json.loads(json.dumps(document))
        changed["claims"][-1]["proof"]["symmetries"] = [*proof["symmetries"], image]
        with pytest.raises(RefusedError, match="symmetries"):
            check(changed, path.parent)
    document["statement"]["memories"]["allowed"] = [[0], *[[0, 1]] * 7]
    with pytest.raises(RefusedError, match=r"to one that other SMs may do|may not do"):
        check(document, path.parent)


def checked_gemm(size: int) -> tuple[Game, CheckedGame]:
    """A cube of products, and as the checker reads it."""
    game = Game.from_dag(gemm_dag(size, size, size))
    return game, read_game(json.loads(json.dumps(game_statement(game, 3))), "game")


def test_a_list_that_is_too_long(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    """What can be proved is written, and why there is no more of it is said."""
    monkeypatch.setattr(search, "MAX_STATES", 10)
    _, document = written(tmp_path, *SOLVED[1][0].split())
    assert document["claims"][-1]["proof"]["method"] == "windows"
    said = capsys.readouterr().err
    assert "not of 14.25" in said and "a list of states has more than 10, which the checker reads at most" in said
    monkeypatch.undo()
    memories = Memories(2, Fraction(1, 4), "all-to-all", 27)
    with pytest.raises(TooLongError, match=r"not closed in time: [0-9]+ states"):
        states_proof(*checked_gemm(3), memories, 42, 0.0)
    with pytest.raises(TooLongError, match="there is a pebbling that costs 14"):
        states_proof(*checked_gemm(2), dataclasses.replace(memories, most=8), Fraction(29, 2), time.monotonic() + 600)


def test_symmetries_are_those_of_the_game() -> None:
    """All but the identity; none where tasks touch the same values, and only those that keep each task's SMs."""
    game, checkable = checked_gemm(2)
    assert len(usable_symmetries(game, checkable, Memories(2, None, "", 8))) == 15
    own = Memories(2, None, "", 8, (1, *[3] * 7))
    assert len(usable_symmetries(game, checkable, own)) == 1  # rows and columns exchanged
    moves = Moves(checkable, own, usable_symmetries(game, checkable, own))
    assert moves.canonical(moves.start) == moves.start == (0, 0, 0, 0)
    with pytest.raises(RefusedError, match="got 12 values and 9 SMs, a list of states has at most 128 and 8"):
        Moves(checkable, Memories(9, None, "", 8), [])

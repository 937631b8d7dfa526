"""Certificates of optima: true ones are accepted, and every wrong move, table or claim is refused."""

from __future__ import annotations

import hashlib
import json
import os
import random
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx as nx
import pytest

from pebble.cdag import diamond_dag, gemm_dag, tree_dag
from pebble.cdag.io import read_dag
from pebble.certificate import RefusedError, check, check_file
from pebble.certificate.games import read_game
from pebble.certificate.positions import MAGIC, Moves
from pebble.cli import main
from pebble.game import Game, Move, Pebbling
from pebble.game.referee import replay
from pebble.proof.optimum import game_statement, positions_proof, solve_certificate
from pebble.solvers import Known, solve
from tests.brute_force import brute_force, brute_force_pebbling
from tests.certificate.mutate import mutations

# in order of the capacity, from 3
OPTIMA = {
    (2, 2, 2): (17, 14, 13, 12),
    (2, 2, 3): (25, 20, 19),
    (2, 3, 2): (25, 20),
    (3, 2, 2): (25, 20),
    (2, 3, 3): (37, 29, 27),
    (3, 2, 3): (37, 29),
    (3, 3, 2): (37, 29),
    (3, 3, 3): (55,),
}
SLOW = {
    (2, 2, 3, 6): 17,
    (2, 2, 3, 7): 16,
    (2, 3, 2, 6): 17,
    (3, 2, 2, 6): 17,
    (3, 3, 3, 5): 39,
    (2, 3, 3, 6): 25,
    (2, 3, 3, 7): 23,
    (3, 2, 3, 6): 25,
    (3, 3, 2, 7): 23,
    (3, 3, 2, 8): 22,
}


def certified(game: Game, capacity: int, cost: int, path: Path, pebbling: Pebbling | None = None) -> dict[str, Any]:
    """The certificate that the optimum is this."""
    moves = () if pebbling is None else pebbling.moves
    result: Any = SimpleNamespace(pebbling=pebbling, moves=moves, lower_bound=cost)
    return solve_certificate(game, capacity, result, path, 600)


@pytest.mark.parametrize(("shape", "optima"), OPTIMA.items(), ids=str)
def test_gemms_that_the_table_proves(shape: tuple[int, int, int], optima: tuple[int, ...], tmp_path: Path) -> None:
    for capacity, cost in enumerate(optima, start=3):
        path = tmp_path / f"{capacity}.json"
        document = certified(Game.from_dag(gemm_dag(*shape)), capacity, cost, path)
        assert document["claims"][0]["cost"] == cost
        assert f"costs less than {cost}" in check_file(path)[0]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "cost"), SLOW.items(), ids=str)
def test_larger_gemms(case: tuple[int, int, int, int], cost: int, tmp_path: Path) -> None:
    m, n, k, capacity = case
    path = tmp_path / "c.json"
    assert certified(Game.from_dag(gemm_dag(m, n, k)), capacity, cost, path)["claims"][0]["cost"] == cost
    check_file(path)


@pytest.mark.skipif("PEBBLE_INSTANCES" not in os.environ, reason="PEBBLE_INSTANCES names no folder of public instances")
@pytest.mark.parametrize(
    ("name", "capacity", "cost"),
    [("k-means", 4, 30), ("k-means", 5, 25), ("bicgstab", 5, 41), ("CG_N2_K2_nzP0d75", 3, 90)],
)
def test_public_instances(name: str, capacity: int, cost: int, tmp_path: Path) -> None:
    dag = read_dag(Path(os.environ["PEBBLE_INSTANCES"]) / f"instance_{name}.hdag", unit_weights=True)
    path = tmp_path / "c.json"
    assert certified(Game.from_dag(dag, "one-shot"), capacity, cost, path)["claims"][0]["cost"] == cost
    check_file(path)


def random_dag(rnd: random.Random) -> nx.DiGraph[Any]:
    dag: nx.DiGraph[Any] = nx.DiGraph()
    inputs, size = rnd.randint(1, 3), rnd.randint(4, 8)
    for v in range(size):
        dag.add_node(f"v{v}")
        if v >= inputs:
            for u in rnd.sample(range(v), rnd.randint(1, min(3, v))):
                dag.add_edge(f"v{u}", f"v{v}")
            if rnd.random() < 0.2:
                dag.nodes[f"v{v}"]["output"] = True
    return dag


@pytest.mark.parametrize("seed", range(15))
def test_refutations_prove_the_optimum_and_no_more(seed: int, tmp_path: Path) -> None:
    rnd = random.Random(seed)
    dag = random_dag(rnd)
    least = max(dag.in_degree(v) for v in dag) + 1
    for capacity in (least, least + 1):
        result = brute_force_pebbling(dag, capacity, "one-shot")
        assert result is not None
        cost, moves = result
        game = Game.from_dag(dag, "one-shot")
        pebbling = Pebbling(game.variant, capacity, tuple(Move(*move) for move in moves), cost)
        path = tmp_path / f"{capacity}.json"
        document = certified(game, capacity, cost, path, pebbling)
        assert check_file(path)[-1] == f"so the optimum is {cost}"
        # a higher claim is refused, whatever the list
        checkable = read_game(document["statement"]["game"], "game")
        more = positions_proof(checkable, cost + 1, float("inf"))
        assert more is not None and more[2] is not None
        for table in (more[2], without_ends(more[2], checkable)):
            packed = zlib.compress(table)
            (tmp_path / "more.table").write_bytes(packed)
            width = 3 * -(-len(checkable.names) // 8) + 2
            entry = {
                "file": "more.table",
                "sha256": hashlib.sha256(packed).hexdigest(),
                "records": (len(table) - len(MAGIC)) // width,
            }
            proof = {"method": "positions", "table": entry}
            claim = {"claim": "no cheaper pebbling", "cost": cost + 1, "proof": proof}
            with pytest.raises(RefusedError):
                check({**document, "claims": [claim]}, tmp_path)


def test_moves_that_are_too_dear_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game = Game.from_dag(diamond_dag(4), "one-shot")
    result = solve(game, 3, time_limit=3600)
    certified(game, 3, int(result.lower_bound), tmp_path / "c.json", result.pebbling)
    checkable = read_game(game_statement(game, 3), "game")
    moves, limit = Moves(checkable), int(result.lower_bound) - checkable.compulsory
    width = -(-len(checkable.names) // 8)
    table = zlib.decompress((tmp_path / "c.table").read_bytes())[len(MAGIC) :]
    costs = []  # of every move from every position that is listed
    for at in range(0, len(table), 3 * width + 2):
        done, red, kept, excess = (
            int.from_bytes(table[at + i * width :][: width if i < 3 else 2], "little") for i in range(4)
        )
        costs += [excess + price for price, _, _ in moves.moves((done, red, kept))]
    followed = 0
    true = Moves.after

    def after(self: Moves, position: Any, gone: int, x: int) -> Any:
        nonlocal followed
        followed += 1
        return true(self, position, gone, x)

    monkeypatch.setattr(Moves, "after", after)
    check_file(tmp_path / "c.json")
    assert followed == sum(cost < limit for cost in costs) < len(costs)


def without_ends(table: bytes, game: Any) -> bytes:
    """The list without its positions where everything is computed, or a list of an unreachable one."""
    width = -(-len(game.names) // 8)
    size, computed = 3 * width + 2, Moves(game).computed
    body = table[len(MAGIC) :]
    kept = [
        body[i : i + size]
        for i in range(0, len(body), size)
        if int.from_bytes(body[i : i + width], "little") & computed != computed
    ]
    return MAGIC + (b"".join(kept) or bytes(size))


def test_excess_to_come_is_never_too_high() -> None:
    """Against the least cost from each position, by Dijkstra on the same moves and by brute force from the start."""
    for dag, capacity in ((diamond_dag(3), 3), (diamond_dag(3), 4), (tree_dag(4), 3)):
        game = Game.from_dag(dag, "one-shot")
        checkable = read_game(game_statement(game, capacity), "game")
        moves = Moves(checkable)
        to_go: dict[Any, int] = {}

        def least(position: Any, moves: Moves = moves, to_go: dict[Any, int] = to_go) -> int:
            if position not in to_go:
                after = [price + least(moves.after(position, gone, x)) for price, gone, x in moves.moves(position)]
                to_go[position] = 0 if position[0] == moves.computed else min(after, default=10**6)
            return to_go[position]

        start = moves.settle((0, 0, 0))
        optimum = brute_force(dag, capacity, "one-shot")
        assert optimum == checkable.compulsory + least(start)
        assert all(moves.to_come(position) <= cost for position, cost in to_go.items())


@pytest.fixture(scope="module")
def gemm_pebbling() -> Pebbling:
    result = solve(gemm_dag(2, 2, 2), 4, solver="cpsat", time_limit=3600, known=Known(lower_bound=14)).pebbling
    assert result is not None and result.cost == 14
    return result


@pytest.fixture
def gemm_certificate(tmp_path: Path, gemm_pebbling: Pebbling) -> tuple[dict[str, Any], Path]:
    path = tmp_path / "c.json"
    certified(Game.from_dag(gemm_dag(2, 2, 2)), 4, 14, path, gemm_pebbling)
    return json.loads(path.read_text()), path


def test_no_wrong_change_of_a_pebbling_or_claim_is_accepted(
    tmp_path: Path, gemm_certificate: tuple[dict[str, Any], Path]
) -> None:
    original, _ = gemm_certificate
    dag = gemm_dag(2, 2, 2)
    refused = accepted = 0
    for what, mutant in mutations(original):
        try:
            said = check(mutant, tmp_path)
        except RefusedError:
            refused += 1
            continue
        accepted += 1
        spec = mutant["statement"]["game"]
        same_game = json.dumps(spec) == json.dumps(original["statement"]["game"])
        for claim in mutant["claims"]:
            if claim["claim"] == "pebbling" and same_game:
                moves = tuple(Move(*move) for move in claim["moves"])
                replay(Game.from_dag(dag), Pebbling(Game.from_dag(dag).variant, 4, moves, claim["cost"]))
            assert claim["cost"] == 14, what
        if not same_game:  # a larger memory for the pebbling alone, names that nothing uses: only harmless ones pass
            assert "values" not in what or "[" not in what, what
        assert said
    assert refused > 500
    assert accepted < 60


def test_no_changed_table_is_accepted(tmp_path: Path, gemm_certificate: tuple[dict[str, Any], Path]) -> None:
    original, path = gemm_certificate
    lower = original["claims"][-1]
    table = tmp_path / lower["proof"]["table"]["file"]
    plain = zlib.decompress(table.read_bytes())
    rnd = random.Random(1)
    refused = 0
    for _ in range(300):
        at = rnd.randrange(19, len(plain))
        value = rnd.choice([0, 255, plain[at] + 1, plain[at] - 1, rnd.randrange(256)]) % 256
        if value == plain[at]:
            continue
        changed = plain[:at] + bytes([value]) + plain[at + 1 :]
        packed = zlib.compress(changed)
        table.write_bytes(packed)
        with pytest.raises(RefusedError, match="hash"):
            check_file(path)
        document = json.loads(json.dumps(original))
        document["claims"][-1]["proof"]["table"]["sha256"] = hashlib.sha256(packed).hexdigest()
        try:
            said = check(document, tmp_path)
        except RefusedError:
            refused += 1
            continue
        assert said[-1] == "so the optimum is 14"  # a value where nothing depends on it, or a weaker one that suffices
    assert refused > 100


def test_hostile_side_files(tmp_path: Path, gemm_certificate: tuple[dict[str, Any], Path]) -> None:
    original, path = gemm_certificate
    entry = original["claims"][-1]["proof"]["table"]
    table = tmp_path / entry["file"]
    good = table.read_bytes()
    plain = zlib.decompress(good)
    bomb = zlib.compress(b"pebble potential 1\n" + bytes(200_000_000), 9)
    hostile = {
        "empty": b"",
        "not packed": b"hello",
        "cut": good[:-9],
        "more after the end": good + b"x",
        "twice": good + good,
        "bomb": bomb,
        "other magic": zlib.compress(b"x" * len(plain)),
        "short": zlib.compress(plain[:-1]),
        "long": zlib.compress(plain + b"x"),
        "only magic": zlib.compress(plain[:19]),
    }
    for name, content in hostile.items():
        table.write_bytes(content)
        document = json.loads(json.dumps(original))
        document["claims"][-1]["proof"]["table"]["sha256"] = hashlib.sha256(content).hexdigest()
        with pytest.raises(RefusedError):
            check(document, tmp_path)
        assert name
    table.write_bytes(good)
    check_file(path)
    for file in ("../c.table", "/etc/passwd", "", ".", "c.json/..", "missing.table", "a" * 300, "c\0.table"):
        document = json.loads(json.dumps(original))
        document["claims"][-1]["proof"]["table"]["file"] = file
        with pytest.raises(RefusedError):
            check(document, tmp_path)


def test_solve_writes_what_verify_accepts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "d.json"
    assert (
        main(
            ["solve", "diamond", "--size", "3", "--capacity", "3", "--solver", "heuristic", "--certificate", str(path)]
        )
        == 0
    )
    capsys.readouterr()
    assert main(["verify", str(path)]) == 0
    assert "No pebbling of this game" in capsys.readouterr().out


def test_a_certificate_of_any_name_verifies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The checker opens plain names alone beside a certificate; that one's own may be another, and stays its own."""
    monkeypatch.chdir(tmp_path)
    names = ["my proof.json", "ü.json", "ö.json", ".c.json", "t.table", "-1", "x" * 150 + ".json", "c.json"]
    for name in names:
        game = ["gemm", "-m", "2", "-n", "2", "-k", "2", "--capacity", "5"]
        assert main(["solve", *game, f"--certificate={name}"]) == 0, name
    for name in names:
        assert main(["verify", "--", name]) == 0, name
    capsys.readouterr()
    assert len(list(tmp_path.iterdir())) == 2 * len(names)  # none has written over another's

"""pebble replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from pebble.cdag.io import write_dag
from pebble.cli import main

MOVES = [["load", "a"], ["load", "b"], ["compute", "c"], ["store", "c"]]
GEMM = ["gemm", "-m", "2", "-n", "2", "-k", "2"]


@pytest.fixture
def dag(tmp_path: Path) -> str:
    path = tmp_path / "dag.json"
    write_dag(nx.DiGraph([("a", "c"), ("b", "c")]), path)
    return str(path)


def written(folder: Path, moves: Any) -> str:
    path = folder / "moves.json"
    path.write_text(moves if isinstance(moves, str) else json.dumps(moves))
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["replay", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_legal_moves_stand_beside_the_optimum(dag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, dag, written(tmp_path, MOVES), "--capacity", "3")
    assert (code, err) == (0, "")
    assert "legal        costs 3: 2 loaded, 1 stored; holds 3" in out
    assert "lower bound  3" in out and "optimal: no pebbling is cheaper (proved)" in out


def test_a_dear_pebbling_is_told_what_the_optimum_costs(
    dag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dear = [["load", "a"], ["delete", "a"], *MOVES]
    code, out, _ = run(capsys, dag, written(tmp_path, dear), "--capacity", "3")
    assert code == 0
    assert "costs 4: 3 loaded, 1 stored" in out and "the optimum costs 3" in out and "optimal:" not in out


def test_json(dag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, dag, written(tmp_path, MOVES), "--capacity", "3", "--json")
    result = json.loads(out)
    assert code == 0
    fields = {key: result[key] for key in ("legal", "cost", "loads", "stores", "peak", "optimum", "optimal", "variant")}
    assert fields == {
        "legal": True, "cost": 3, "loads": 2, "stores": 1, "peak": 3, "optimum": 3, "optimal": True,
        "variant": "one-shot",
    }  # fmt: skip
    assert result["illegal"] is None


BROKEN = [
    (MOVES[:1] + MOVES[2:], 2, "operand-not-red", "c"),
    ([["load", "c"], *MOVES], 1, "not-blue", "c"),
    (MOVES[:3], 4, "output-not-blue", "c"),
    ([*MOVES, ["compute", "c"]], 5, None, "c"),
    ([["load", "z"], *MOVES], 1, None, "z"),
    ([], 1, "output-not-blue", "c"),
    ([["lod", "a"]], 1, "unknown-op", "a"),
    ([*MOVES[:2], ["slide", "c", "a"]], 3, "unknown-op", "c"),
    ([["load", "a", 7]], 1, "unknown-sm", "a"),
]


@pytest.mark.parametrize(("moves", "step", "rule", "node"), BROKEN)
def test_an_illegal_move_is_named_and_exits_5(
    dag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], moves: Any, step: int, rule: str | None, node: str
) -> None:
    path = written(tmp_path, moves)
    code, out, err = run(capsys, dag, path, "--capacity", "3")
    assert (code, err) == (5, "")
    text = " ".join(out.split())
    assert f"illegal pebbling at step {step}, node '{node}', rule {rule or ''}" in text
    assert "legal costs" not in text and "lower bound 3" in text
    code, out, _ = run(capsys, dag, path, "--capacity", "3", "--json")
    result = json.loads(out)
    assert code == 5 and result["legal"] is False and result["cost"] is None and result["optimum"] is None
    assert (result["illegal"]["step"], result["illegal"]["node"]) == (step, node)
    assert rule is None or result["illegal"]["rule"] == rule


def test_too_much_at_once_is_illegal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wide.json"
    write_dag(nx.DiGraph([("a", "c"), ("b", "c"), ("a", "d"), ("b", "d")]), path)
    moves = [["load", "a"], ["load", "b"], ["compute", "c"], ["compute", "d"]]
    code, out, _ = run(capsys, str(path), written(tmp_path, moves), "--capacity", "3")
    assert code == 5 and "step 4" in out and "rule capacity" in out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["moves.json"]),
        ("{", ["moves.json"]),
        ("3", ["moves"]),
        ('{"steps": []}', ['the key "moves" is missing']),
        ('[["load", "a", "b"]]', ["move 1: got 'b' after load 'a', expected the value alone"]),
        ('[["compute", "c", 0, "a"]]', ["move 1: got 'a' after compute 'c'"]),
        ("[3]", ["move 1"]),
        ('[["load"]]', ["move 1"]),
        ('[["load", "a", 0, "b", "c"]]', ["move 1"]),
        ('[["load", {"a": 1}]]', ["move 1"]),
        ("[" * 5000, ["moves.json"]),
    ],
)
def test_a_file_that_has_no_moves_exits_2(
    dag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, words: list[str]
) -> None:
    code, out, err = run(capsys, dag, written(tmp_path, content), "--capacity", "3")
    assert (code, out) == (2, "") and len(err.strip().splitlines()) == 1, err
    assert err.strip().endswith((".", "?")) and all(word in err for word in words), err


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        (["--capacity", "2"], 4, "at least 3"),
        (["--capacity", "x"], 2, "--capacity"),
        ([], 2, "--capacity"),
        (["--capacity", "3", "--variant", "oneshot"], 2, "one-shot"),
        (["--capacity", "3", "--time-limit", "0"], 2, "--time-limit"),
        (["--capacity", "3", "--buffers", "smlocal"], 2, "sm-local"),
        (["--capacity", "3", "--sms", "2"], 2, "--buffers"),
        (["--capacity", "3", "--omega", "1"], 2, "--buffers"),
    ],
)
def test_wrong_options(
    dag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], code: int, word: str
) -> None:
    result, out, err = run(capsys, dag, written(tmp_path, MOVES), *options)
    assert (result, out) == (code, "") and word in err and len(err.strip().splitlines()) == 1


def test_a_missing_file(dag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([dag, f"{tmp_path}/none.json"], [f"{tmp_path}/none.json", written(tmp_path, MOVES)]):
        code, out, err = run(capsys, *arguments, "--capacity", "3")
        assert (code, out) == (2, "") and "none.json" in err


@pytest.mark.parametrize("capacity", ["4", "5"])
def test_what_solve_prints_is_taken_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str], capacity: str) -> None:
    assert main(["solve", *GEMM, "--capacity", capacity, "--json"]) == 0
    solved = capsys.readouterr().out
    code, out, _ = run(capsys, *GEMM, written(tmp_path, solved), "--capacity", capacity, "--json")
    result = json.loads(out)
    assert code == 0 and result["optimal"]
    assert result["cost"] == json.loads(solved)["upper_bound"] == {"4": 14, "5": 13}[capacity]


def test_several_memories(dag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moves = [["load", "a", 0], ["load", "b", 1], ["copy", "a", 1, 0], ["compute", "c", 1], ["store", "c", 1]]
    joined = ["--capacity", "3", "--buffers", "connected", "--sms", "2", "--omega"]
    path = written(tmp_path, moves)
    for omega, cost in (("0.25", 3.25), ("1", 4)):
        code, out, _ = run(capsys, dag, path, *joined, omega, "--json")
        result = json.loads(out)
        assert (code, result["cost"], result["optimum"], result["optimal"]) == (0, cost, 3, False)
        assert [sm["copies_in"] for sm in result["per_sm"]] == [0, 1]
    head = f"{dag}, connected, 2 SMs, omega 0.25, all-to-all, capacity 3 each, one-shot "
    for command in (["replay", dag, path], ["solve", dag]):
        assert main([*command, *joined, "0.25"]) == 0
        assert " ".join(capsys.readouterr().out.split()).startswith(head)
    local = ["--capacity", "3", "--buffers", "sm-local", "--sms", "2"]
    code, out, _ = run(capsys, dag, path, *local)
    assert code == 5 and "step 3" in out
    on_one = written(tmp_path, [[*move, 1] for move in MOVES])
    code, out, _ = run(capsys, dag, on_one, *local)
    assert code == 0 and "costs 3" in out and "optimal" in out


def test_solve_on_several_memories_is_taken_back(dag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    memories = ["--capacity", "3", "--buffers", "connected", "--sms", "2", "--omega", "0.25"]
    assert main(["solve", dag, *memories, "--json"]) == 0
    code, out, _ = run(capsys, dag, written(tmp_path, capsys.readouterr().out), *memories, "--json")
    assert code == 0 and json.loads(out)["optimal"]


def test_recomputation_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    diamond = ["diamond", "--size", "3"]
    assert main(["solve", *diamond, "--capacity", "3", "--variant", "recompute", "--json"]) == 0
    path = written(tmp_path, capsys.readouterr().out)
    code, _, _ = run(capsys, *diamond, path, "--capacity", "3", "--variant", "recompute")
    assert code == 0
    code, out, _ = run(capsys, *diamond, path, "--capacity", "3", "--variant", "one-shot")
    assert code == 5 and "computed-twice" in out


@pytest.mark.parametrize(("sms", "expected"), [("2", "0 or 1"), ("4", "0 to 3")])
def test_a_memory_that_is_no_number(
    dag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], sms: str, expected: str
) -> None:
    path = written(tmp_path, [["load", "a", "x"]])
    code, out, err = run(capsys, dag, path, "--capacity", "3", "--buffers", "sm-local", "--sms", sms)
    assert (code, out) == (2, "") and f"move 1: got SM 'x', expected {expected}" in err


def test_nothing_is_searched_beside_an_illegal_move(
    dag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def searched(*_: Any, **__: Any) -> None:
        raise AssertionError("searched")

    monkeypatch.setattr("pebble.solvers.replayed.solve", searched)
    code, out, _ = run(capsys, dag, written(tmp_path, MOVES[:3]), "--capacity", "3", "--json")
    result = json.loads(out)
    assert code == 5 and result["proof"] == ["compulsory bound"]
    assert (result["lower_bound"], result["upper_bound"], result["stop_reason"]) == (3, None, None)
    with pytest.raises(AssertionError, match="searched"):
        run(capsys, dag, written(tmp_path, MOVES), "--capacity", "3")

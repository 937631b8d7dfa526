"""pebble solve."""

from __future__ import annotations

import json

import pytest

from pebble.cdag.io import write_dag
from pebble.cli import main
from pebble.families import build_dag
from pebble.game import Move, Pebbling
from pebble.game.referee import replay
from pebble.solvers import search

GEMM_223 = ["solve", "gemm", "-m", "2", "-n", "2", "-k", "3", "--capacity"]
GEMM_333 = ["solve", "gemm", "-m", "3", "-n", "3", "-k", "3", "--capacity", "6"]


def test_json_keys_and_moves(capsys):
    assert main([*GEMM_223, "4", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["lower_bound"], result["upper_bound"], result["status"]) == (20, 20, "optimal")
    assert result["variant"] == "in-place"
    assert {"stop_reason", "solver", "seconds", "capacity", "instance"} <= set(result)
    moves = tuple(Move(*move) for move in result["moves"])
    dag = build_dag("gemm", {"m": 2, "n": 2, "k": 3})
    assert replay(dag, Pebbling("in-place", 4, moves, 20)).cost == 20


def test_plain_output(capsys):
    assert main([*GEMM_223, "4"]) == 0
    out, err = capsys.readouterr()
    assert "lower bound  20" in out
    assert "upper bound  20" in out
    assert err == ""


def test_a_file_plays_one_shot(tmp_path, capsys):
    path = tmp_path / "dag.json"
    write_dag(build_dag("tree", {"leaves": 4}), path)
    assert main(["solve", str(path), "--capacity", "3", "--json", "--require-optimal"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["upper_bound"], result["variant"]) == (7, "one-shot")


def test_too_little_capacity_is_infeasible(capsys):
    assert main([*GEMM_223, "2", "--json"]) == 4
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == "infeasible"
    assert "at least 3" in err


def test_require_optimal_exits_3_and_still_prints(capsys):
    code = main([*GEMM_333, "--solver", "heuristic", "--require-optimal", "--json"])
    out, err = capsys.readouterr()
    assert code == 3
    assert json.loads(out)["status"] == "feasible"
    assert "interval" in err


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--capacity", "6MiB"], "plain whole number"),
        (["--capacity", "-1"], "from 0"),
        (["--capacity", "4", "--time-limit", "0"], "seconds"),
        (["--capacity", "4", "--time-limit", "nan"], "seconds"),
        (["--capacity", "4", "--variant", "oneshot"], "one-shot"),
        (["--capacity", "4", "--solver", "cplex"], "solver"),
        (["--capacity", "4", "--seed", "x"], "--seed"),
        ([], "--capacity"),
    ],
)
def test_wrong_use_is_one_sentence(options, word, capsys):
    assert main(["solve", "gemm", "-m", "2", "-n", "2", "-k", "2", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert word in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("columns", ["60", "200"])
def test_no_sm_is_left_out_of_a_timeline(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from pebble.cli.solve import _timeline

    monkeypatch.setenv("COLUMNS", columns)
    text = _timeline([["load X[0,0] W1[0,0]; H[0,0]+=X[0,0]*W1[0,0]", ""], ["act", "copy from 0: H[0,0]; act"]], 2)
    assert all(word in text for word in ("SM 0", "SM 1", "act", "copy from 0"))
    assert max(map(len, text.splitlines())) <= int(columns)


def test_a_limit_of_tasks_stands_beside_the_game(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["solve", "gemm", "-m", "2", "-n", "2", "-k", "2", "--capacity", "4", "--sms", "2", "--buffers", "sm-local"]
    assert main([*asked, "--balanced"]) == 0
    told = capsys.readouterr().out
    assert "at most 4 tasks an SM" in told and "without heuristic" not in told
    assert main([*asked, "--tasks-per-sm", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks_per_sm"] == 5
    assert main(asked) == 0
    assert "tasks an SM" not in capsys.readouterr().out


def test_the_limit_named_is_the_one_given(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(search, "_compiled", set())  # loops are compiled, or read, outside of the limit
    game = "gemm -m 3 -n 3 -k 3 --capacity 5 --sms 2 --buffers connected --omega 1/4"
    hard = ["solve", *game.split(), "--time-limit", "1"]
    assert main(hard) == 0
    told = capsys.readouterr().out
    assert "time limit of 1 s" in told

"""Time limits and Ctrl-C count from the start of a command, and leave what is known by then."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import networkx as nx
import pytest

from pebble.bounds.dag import best_bound, dag_bounds
from pebble.cdag.io import write_dag
from pebble.cli import main
from pebble.families import build_dag
from pebble.game import Game
from pebble.solvers import solve
from pebble.system.clock import Clock, OutOfTimeError

ROOT = Path(__file__).parents[2]
LARGE = ["solve", "gemm", "-m", "75", "-n", "75", "-k", "75", "--capacity", "100"]


def random_dag(nodes: int, seed: int) -> nx.DiGraph:
    draw = random.Random(seed)
    dag = nx.DiGraph()
    for v in range(nodes):
        dag.add_node(f"v{v}")
        near = range(max(0, v - 40), v)
        dag.add_edges_from((f"v{u}", f"v{v}") for u in draw.sample(near, min(v, draw.choice([0, 1, 2, 2, 3]))))
    return dag


def test_the_time_limit_counts_while_the_dag_is_built(capsys):
    assert main([*LARGE, "--time-limit", "0.2", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["status"], result["lower_bound"], result["upper_bound"]) == ("unknown", 0, None)
    assert result["stop_reason"] == "time limit of 0.2 s, before the DAG was ready"
    assert main([*LARGE, "--time-limit", "0.2", "--require-optimal"]) == 3


def interrupted(command: list[str], searching: bool = False) -> dict[str, object]:
    """What a command prints when it is interrupted once its work (its search) has begun: later on a slow machine."""
    for seconds in (6, 25, 100):
        run = subprocess.Popen(
            [sys.executable, "-m", "pebble", *command, "--time-limit", "500", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        time.sleep(seconds)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=200)
        if not out:
            assert "interrupt" in err.lower(), err  # before anything was asked
            continue
        assert run.returncode == 130, err
        result = json.loads(out)
        if not searching or result["upper_bound"] is not None:
            return result
    raise AssertionError("the command had not begun after 100 s")


@pytest.mark.posix
@pytest.mark.parametrize("command", [LARGE, ["solve", "fft", "--size", "16", "--capacity", "5", "--solver", "cpsat"]])
def test_ctrl_c_ends_with_what_is_known(command):
    assert "interrupted" in interrupted(command)["stop_reason"]


@pytest.mark.posix
@pytest.mark.parametrize("solver", ["cpsat", "milp"])
def test_interrupt_prints_the_interval(solver):
    result = interrupted(
        ["solve", "gemm", "-m", "3", "-n", "3", "-k", "3", "--capacity", "6", "--solver", solver], True
    )
    assert result["stop_reason"] == "interrupted"
    assert result["lower_bound"] <= 36 <= result["upper_bound"]


def test_a_clock_leaves_work_behind():
    clock = Clock(0.1)
    with pytest.raises(OutOfTimeError, match=r"time limit of 0\.1 s"):
        clock.finish(threading.Event().wait)
    with pytest.raises(ZeroDivisionError):
        Clock(60).finish(lambda: 1 // 0)
    requested = Clock(60)
    threading.Timer(0.1, requested.stop.set).start()
    with pytest.raises(OutOfTimeError, match="interrupted"):
        requested.finish(threading.Event().wait)


@pytest.mark.parametrize(
    ("solver", "nodes", "capacity"), [("heuristic", 60, 8), ("heuristic", 120, 8), ("auto", 60, 5)]
)
def test_solve_is_never_weaker_than_bound(solver, nodes, capacity):
    game = Game.from_dag(random_dag(nodes, 1))
    known = best_bound(dag_bounds(game, capacity)).value
    assert known > game.compulsory
    assert solve(game, capacity, solver=solver, time_limit=20).lower_bound >= known


def test_solve_says_who_proved_what(tmp_path, capsys):
    dag = tmp_path / "dag.json"
    write_dag(build_dag("gemm", {"m": 2, "n": 2, "k": 2}), dag)
    assert main(["solve", str(dag), "--capacity", "5", "--solver", "milp", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["solver"], result["proof"]) == ("milp", ["segment bound"])
    assert result["stop_reason"] == "proved optimal by segment bound and heuristic, without milp"


def test_the_first_search_says_that_it_compiles(tmp_path, monkeypatch):
    from pebble.solvers import search

    class Stats:
        cache_path = str(tmp_path)

    class Loop:
        stats = Stats()

    monkeypatch.setattr("pebble.solvers.search.recompute._advance", Loop())
    assert search._is_cold("recompute")
    (tmp_path / "recompute._advance-1.py311.nbi").write_bytes(b"")
    assert not search._is_cold("recompute")


@pytest.mark.parametrize("left_behind", [True, False])
def test_no_teardown_under_work_that_was_left_behind(left_behind: bool) -> None:
    """A compiler in a thread aborts the process when Python takes down what it stands on."""
    program = f"""
import atexit, os, sys, threading, time
import pebble.cli as cli
threading._shutdown = lambda: os.write(1, b"torn down, ")  # what Python does first
atexit.register(os.write, 1, b"cleaned up")
def dispatch(arguments):
    if {left_behind}:
        threading.Thread(target=time.sleep, args=(60,), daemon=True, name="pebble-work").start()
    print("answer, ", end="")
    raise KeyboardInterrupt
cli._dispatch = dispatch
sys.exit(cli.main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50)
    assert (ended.returncode, ended.stderr) == (130, "pebble: interrupted.\n")
    assert ended.stdout == ("answer, cleaned up" if left_behind else "answer, torn down, cleaned up")

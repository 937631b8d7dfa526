"""Time limits and Ctrl-C count from the start of a command, and leave what is known by then."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
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
from tests.solvers.stopping import until

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


# what a process does that says when its work has begun, and waits for its Ctrl-C there
BEGUN = """
import sys
import pebble.cli
from pebble.system.clock import Clock
finish = Clock.finish
def begun(self, work, limited=True):
    print("begun", file=sys.stderr, flush=True)
    self.stop.wait()
    return finish(self, work, limited)
Clock.finish = begun
sys.exit(pebble.cli.main(sys.argv[1:]))
"""


@pytest.mark.posix
def test_ctrl_c_ends_with_what_is_known():
    run = subprocess.Popen(
        [sys.executable, "-c", BEGUN, *LARGE, "--time-limit", "500", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert run.stderr is not None
    assert any(line == "begun\n" for line in iter(run.stderr.readline, ""))
    run.send_signal(signal.SIGINT)
    out, err = run.communicate()
    assert run.returncode == 130, err
    assert json.loads(out)["stop_reason"].startswith("interrupted")


@pytest.mark.posix
@pytest.mark.parametrize(
    ("instance", "solver", "most"),
    [
        ("gemm -m 3 -n 3 -k 3 --capacity 6", "cpsat", 36),
        ("gemm -m 3 -n 3 -k 3 --capacity 6", "milp", 36),
        ("fft --size 16 --capacity 5", "cpsat", None),
    ],
)
def test_interrupt_prints_the_interval(instance, solver, most, capsys, monkeypatch):
    """Ctrl-C as soon as a pebbling is known, whenever that is."""
    asked = []

    def ask(now):
        if now.upper_bound is not None and not asked:
            asked.append(now)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("pebble.cli.solve._progress", lambda: contextlib.nullcontext(ask))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in its background
    try:
        assert main(["solve", *instance.split(), "--solver", solver, "--time-limit", "500", "--json"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    result = json.loads(capsys.readouterr().out)
    assert asked and result["stop_reason"] == "interrupted"
    assert result["lower_bound"] <= result["upper_bound"] and result["moves"]
    assert most is None or result["lower_bound"] <= most <= result["upper_bound"]


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
    result = solve(game, capacity, solver=solver, **until(lambda now: now.lower_bound >= known))
    assert result.lower_bound >= known


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
        threading.Thread(target=time.sleep, args=(600,), daemon=True, name="pebble-work").start()
    print("answer, ", end="")
    raise KeyboardInterrupt
cli._dispatch = dispatch
sys.exit(cli.main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (130, "pebble: interrupted.\n")
    assert ended.stdout == ("answer, cleaned up" if left_behind else "answer, torn down, cleaned up")

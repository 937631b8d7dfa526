"""Every solver in one process, in every order, whatever solver library that process has loaded itself."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
import threading
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import pytest

from pebble.cdag.products import gemm_dag
from pebble.errors import IllegalMoveError, InputError, PebbleError, UnknownNameError
from pebble.families import build_dag
from pebble.game import BufferModel
from pebble.solvers import solve
from pebble.system.clock import Clock
from pebble.system.isolation import Library, StoppedError, call

ROOT = Path(__file__).parents[2]
CALLS = {
    "cpsat": "solve(dag, 3, solver='cpsat').status == 'optimal'",
    "milp": "solve(dag, 3, solver='milp').status == 'optimal'",
    "partitions": "hong_kung.bound(Game.from_dag(dag), 3, 10).value is not None",
    "buffers by cpsat": "solve(dag, 3, buffers=connected, solver='cpsat').status == 'optimal'",
    "buffers by milp": "solve(dag, 3, buffers=connected, solver='milp').status == 'optimal'",
    "placement": "place_fast(block_deal(4, 4, 2, 2), Topology('ring', 4)).cost >= 0",
}
SETUP = """
    from pebble.bounds.dag import hong_kung
    from pebble.families import build_dag
    from pebble.game import Game
    from pebble.game.buffer_model import BufferModel, Topology
    from pebble.solvers.placement import block_deal, place_fast
    from pebble.solvers import solve
    dag = build_dag("diamond", {"size": 3})
    connected = BufferModel("connected", 2)
"""


def run(code):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("first", ["", "import highspy", "import pulp", "import ortools.sat.python.cp_model"])
def test_every_solver_beside_a_loaded_library(first):
    checks = "".join(f"    assert {check}, {name!r}\n" for name, check in CALLS.items())
    run(f"{first}\n{textwrap.dedent(SETUP)}\n{textwrap.dedent(checks)}")


def test_every_order_in_one_process():
    orders = list(permutations(CALLS.values(), 2))
    run(f"{textwrap.dedent(SETUP)}\nfor order in {orders!r}:\n    assert all(map(eval, order)), order\n")


@pytest.mark.parametrize("first", ["import highspy", "import ortools.sat.python.cp_model"])
def test_the_commands_one_after_another(first, tmp_path):
    dag = tmp_path / "dag.json"
    run(
        f"{first}\n"
        "from pebble.cli import main\n"
        f"dag = {str(dag)!r}\n"
        "assert main(['dag', 'diamond', '--size', '3', '--out', dag]) == 0\n"
        "for command in (['bound', dag, '--capacity', '3'], ['solve', dag, '--capacity', '3', '--solver', 'cpsat'],\n"
        "    ['solve', dag, '--capacity', '3', '--solver', 'milp'],\n"
        "    ['solve', 'gemm', '-m', '2', '-n', '2', '-k', '1', '--capacity', '3', '--buffers', 'connected'],\n"
        "    ['compare', 'gemm', '-m', '256', '-n', '256', '-k', '256', '--tile', '128x128x128', '--cache', '160KiB',\n"
        "     '--exact']):\n"
        "    assert main(command) == 0, command\n"
    )


def test_neither_library_is_loaded_here():
    run(
        textwrap.dedent(SETUP)
        + "\nimport sys\n"
        + "\n".join(f"assert {check}" for check in CALLS.values())
        + "\nassert not {'ortools', 'highspy', 'pulp'} & set(sys.modules)"
    )


def test_a_worker_is_used_again():
    first = call(Library.HIGHS, "os:getpid")
    assert first != os.getpid()
    assert call(Library.HIGHS, "os:getpid") == first


def solve_with_all_threads() -> None:
    """What a worker may have done before: HiGHS then starts the threads that it keeps."""
    import highspy

    solver = highspy.Highs()
    solver.addVar(0, 1)
    solver.run()


def test_a_worker_solves_whatever_it_did_before():
    """It refused, and the MILP ended without a proof: threads are counted once a process."""
    call(Library.HIGHS, f"{__name__}:solve_with_all_threads")
    result = solve(gemm_dag(2, 1, 2), 3, solver="milp", buffers=BufferModel("connected", 2, Fraction(1, 4)))
    assert (result.status, result.proof, result.upper_bound) == ("optimal", ("milp",), Fraction(17, 2))


def test_what_a_worker_raises_is_raised_here():
    with pytest.raises(ZeroDivisionError):
        call(Library.HIGHS, "operator:truediv", 1, 0)
    with pytest.raises(UnknownNameError, match="did you mean heuristic") as error:
        call(Library.HIGHS, "pebble.solvers:solve", gemm_dag(1, 1, 1), 3, None, "heuristics")
    assert error.value.exit_code == 2


def test_a_worker_that_dies_is_one_sentence():
    with pytest.raises(PebbleError, match=r"ended early \(exit status 7\)"):
        call(Library.HIGHS, "os:_exit", 7)
    assert call(Library.HIGHS, "operator:add", 1, 2) == 3


def test_a_worker_is_ended_on_request():
    looks = iter(range(5))
    with pytest.raises(StoppedError):
        call(Library.HIGHS, "time:sleep", 60, until=lambda: next(looks, None) is None)
    assert call(Library.HIGHS, "operator:add", 1, 2) == 3


@pytest.mark.parametrize(
    "error", [InputError("a"), UnknownNameError("x", "y", ["yy"], "z"), IllegalMoveError(1, "a", "b", "c")]
)
def test_errors_survive_the_way(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.__dict__) == (type(error), str(error), error.__dict__)


@pytest.mark.parametrize("solver", ["cpsat", "milp"])
def test_an_interrupted_solver_keeps_what_it_proved(solver):
    stop = threading.Event()
    bounds = []

    def progress(now):
        bounds.append(now.lower_bound)
        if now.seconds > 2:
            stop.set()

    result = solve(build_dag("fft", {"size": 8}), 6, solver=solver, time_limit=Clock(300, stop), progress=progress)
    assert result.lower_bound >= max(bounds)
    assert result.stop_reason == "interrupted" or result.status == "optimal"

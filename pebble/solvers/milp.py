"""The game as a mixed-integer program, solved by HiGHS: a second opinion on small games.

HiGHS runs in a process of its own (:mod:`pebble.solvers.milp_model`): its library and OR-Tools', which carries another
version of it, cannot be loaded into one (google/or-tools#5246), and a process can be stopped at any moment.
"""

from __future__ import annotations

import json
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

import pebble
from pebble.errors import InputError, PebbleError
from pebble.game import Move
from pebble.solvers.cpsat import scaled
from pebble.solvers.heuristic import solve_heuristic
from pebble.solvers.result import Incumbent

MAX_VARIABLES = 20_000


def solve_milp(best: Incumbent) -> str:
    """Prove or improve with HiGHS, from the heuristic's pebbling and above the bounds known.

    Raises
    ------
    InputError
        The DAG is too large.
    """
    problem, game = best.problem, best.problem.game
    size = 4 * game.size * len(game.tasks)
    if size > MAX_VARIABLES:
        raise InputError(
            f"solver milp: the DAG has {game.size} values and {len(game.tasks)} operations, a model of {size} "
            f"variables; the limit is {MAX_VARIABLES}. Use --solver heuristic for a pebbling and `pebble bound` "
            "for a lower bound."
        )
    if best.upper_from != "heuristic":
        solve_heuristic(best)
    if best.stopped:
        return "proved optimal" if best.closed else "stopped"
    game, capacity, unit = scaled(game, problem.capacity)
    assert best.upper is not None
    status = _run(
        pickle.dumps((game, capacity, -(-best.lower // unit), best.upper // unit, best.seconds_left, problem.seed)),
        best,
        unit,
    )
    return "proved optimal" if best.closed else f"HiGHS: {status}"


def _run(task: bytes, best: Incumbent, unit: int) -> str:
    """Run the child, report what it says, end it when the incumbent says so."""
    root = str(Path(pebble.__file__).parents[1])  # also where pebble is run without being installed
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    child = subprocess.Popen(
        [sys.executable, "-m", "pebble.solvers.milp_model"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        start_new_session=True,  # Ctrl-C is for the parent
    )
    assert child.stdin is not None and child.stdout is not None
    said: queue.Queue[bytes] = queue.Queue()

    def listen(lines: Iterable[bytes]) -> None:
        for line in lines:
            said.put(line)
        said.put(b"")

    threading.Thread(target=listen, args=(child.stdout,), daemon=True).start()
    try:
        child.stdin.write(task)
        child.stdin.close()
        while not best.stopped:
            try:
                line = said.get(timeout=0.05)
            except queue.Empty:
                continue
            if not line:
                raise PebbleError(f"solver milp: HiGHS ended early (exit status {child.wait()}); use --solver cpsat.")
            message = json.loads(line)
            if "bound" in message:
                assert best.upper is not None
                # above the upper bound only by the cut: the program asks for less
                best.raise_lower(min(best.upper, message["bound"] * unit), "milp")
            if "moves" in message:
                best.offer(tuple(Move(*move) for move in message["moves"]), "milp")
            if "status" in message:
                return str(message["status"])
        return "stopped"
    finally:
        child.kill()
        child.wait()

"""HiGHS on the program of :mod:`pebble.solvers.several.program`, in a process of its own as in :mod:`pebble.solvers.milp`."""

from __future__ import annotations

import json
import math
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable
from typing import Any

from pebble.errors import PebbleError
from pebble.solvers.result import Incumbent
from pebble.solvers.several.gaps import offer_plan
from pebble.solvers.several.linear import LinearProgram
from pebble.solvers.several.program import first_program


def solve_by_milp(best: Incumbent) -> str:
    """Prove or improve; return why it stopped."""
    program = first_program(best)
    if program is None:
        return "proved optimal" if best.closed else "stopped"
    fixed = program.unit * program.always
    if best.upper is not None:
        program.cost_below(best.upper)
    if best.lower:
        program.cost_at_least(best.lower)
    child = subprocess.Popen(
        [sys.executable, "-m", "pebble.solvers.several.program_highs"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
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
        child.stdin.write(pickle.dumps((program.program, best.seconds_left, best.problem.seed)))
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
                bound = message["bound"] + fixed
                best.raise_lower(bound if best.upper is None else min(bound, best.upper), "milp")
            if "values" in message:
                offer_plan(best, program.plan(message["values"]), "milp")
            if message.get("status") == "infeasible":
                return best.none_cheaper("milp")
            if "status" in message:
                if best.closed:
                    return "proved optimal"
                return (
                    "the program is proved, but a gap between two tasks has no order"
                    if message["status"] == "optimal"
                    else "stopped"
                )
        return "proved optimal" if best.closed else "stopped"
    finally:
        child.kill()
        child.wait()


def _solve(program: LinearProgram, seconds: float, seed: int) -> None:
    import highspy
    import pulp

    problem = pulp.LpProblem("buffers", pulp.LpMinimize)
    found = [pulp.LpVariable(f"x{v}", cat="Binary") for v in range(program.variables)]
    problem.setObjective(pulp.lpSum(c * found[v] for c, v in program.objective))
    for terms, sense, bound in program.rows:
        total = pulp.lpSum(c * found[v] for c, v in terms)
        problem += total <= bound if sense == "<=" else total == bound
    best = -math.inf

    def listen(kind: Any, message: str, out: Any, into: Any, data: Any) -> None:
        nonlocal best
        if math.isfinite(out.mip_dual_bound) and out.mip_dual_bound > best + 0.5:
            best = out.mip_dual_bound
            _say(bound=math.ceil(best - 1e-4))

    solver = pulp.HiGHS(
        msg=False,
        threads=1,
        timeLimit=max(seconds, 1e-3),
        gapRel=0.0,
        callbackTuple=(listen, None),
        callbacksToActivate=[highspy.cb.HighsCallbackType.kCallbackMipInterrupt],
        random_seed=seed,
    )
    problem.solve(solver)
    status = problem.solverModel.getModelStatus()
    if status == highspy.HighsModelStatus.kOptimal:
        values = [round(var.value() or 0) for var in found]
        _say(values=values, bound=program.value(values))
        _say(status="optimal")
    elif status == highspy.HighsModelStatus.kInfeasible:
        _say(status="infeasible")
    else:
        _say(status="stopped")


def _say(**message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _solve(*pickle.load(sys.stdin.buffer))

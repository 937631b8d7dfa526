"""Asking HiGHS whether an integer program has a solution, in a process of its own.

highspy and ortools cannot be loaded into one process (google/or-tools#5246), so PuLP writes the model to a file and a
child process reads it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_CHILD = """
import sys
import highspy

solver = highspy.Highs()
solver.setOptionValue("output_flag", False)
solver.setOptionValue("threads", 1)
solver.setOptionValue("time_limit", float(sys.argv[2]))
solver.readModel(sys.argv[1])
solver.run()
status = solver.getModelStatus()
has_solution = solver.getInfo().primal_solution_status == 2
if status == highspy.HighsModelStatus.kInfeasible:
    print("infeasible")
elif has_solution:
    print("feasible")
else:
    print("unknown")
"""


def infeasible(program: Any, seconds: float) -> bool | None:
    """True when the program has no solution, False when it has one, None when time ran out.

    Parameters
    ----------
    program : pulp.LpProblem
        Its objective is ignored.
    seconds : float
        For the solver.
    """
    program.setObjective(0 * next(iter(program.variables())))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mps"
        program.writeMPS(str(path))
        command = [sys.executable, "-c", _CHILD, str(path), f"{seconds:.3f}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + 10)
        except subprocess.TimeoutExpired:
            return None
    return {"infeasible": True, "feasible": False}.get(done.stdout.strip())

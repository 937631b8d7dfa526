"""HiGHS on a program written with PuLP; only for the worker process of :mod:`pebble.system.isolation`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from pebble.errors import PebbleError

Status = Literal["optimal", "infeasible", "stopped"]


def minimise(
    program: Any, seconds: float, seed: int = 0, report: Callable[[int], object] = lambda bound: None
) -> Status:
    """Solve a `pulp.LpProblem` whose objective is whole; its variables then have their values.

    ``report`` is called with each better lower bound. PebbleError where HiGHS refuses to solve it.
    """
    import highspy
    import pulp

    best = -math.inf

    def listen(kind: Any, message: str, out: Any, into: Any, data: Any) -> None:
        nonlocal best
        if math.isfinite(out.mip_dual_bound) and out.mip_dual_bound > best + 0.5:
            best = out.mip_dual_bound
            report(whole(best))

    solver = pulp.HiGHS(
        msg=False,
        threads=1,
        timeLimit=max(seconds, 1e-3),
        gapRel=0.0,
        callbackTuple=(listen, None),
        callbacksToActivate=[highspy.cb.HighsCallbackType.kCallbackMipInterrupt],
        random_seed=seed,
    )
    highspy.Highs.resetGlobalScheduler(True)  # it keeps the threads of what ran before, and then refuses other numbers
    program.solve(solver)
    status = program.solverModel.getModelStatus()
    if status in (highspy.HighsModelStatus.kNotset, highspy.HighsModelStatus.kSolveError):
        raise PebbleError(f"highs: it did not solve the program ({status.name}); use another --solver.")
    if status == highspy.HighsModelStatus.kOptimal:
        return "optimal"
    return "infeasible" if status == highspy.HighsModelStatus.kInfeasible else "stopped"


def whole(bound: float) -> int:
    """The least whole cost that a dual bound allows, with room for rounding."""
    return math.ceil(bound - 1e-4)

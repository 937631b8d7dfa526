"""A start for several memories: the best pebbling known of fewer of them, which leaves the others idle."""

from __future__ import annotations

from dataclasses import replace

from pebble.game import SINGLE, BufferModel, at_sm
from pebble.solvers.result import Incumbent, Problem, Solver
from pebble.units import ceil_div

_SHARE = 3  # of the time that is left one part goes to fewer memories


def fewer_memories(problem: Problem) -> Problem | None:
    """The same game on half of the memories, or on as many as its tasks need; None where that is not fewer."""
    most, buffers, tasks = problem.most_tasks_per_sm, problem.buffers, len(problem.game.tasks)
    sms = max(1, buffers.memories // 2, 0 if most is None else ceil_div(tasks, most))
    if sms >= buffers.memories:
        return None
    if sms == 1:
        return replace(problem, buffers=SINGLE, most_tasks_per_sm=None)
    # the first SMs of these nets are the same net; of any other they are used without copies
    alike = buffers.net.name == "all-to-all" or buffers.net.name.startswith("cluster-")
    return replace(problem, buffers=replace(buffers, sms=sms) if alike else BufferModel("sm-local", sms))


def start_from_fewer(best: Incumbent, run: Solver) -> str | None:
    """Offer what a solver finds on fewer memories in a share of the time: legal on more, too; which solver it was."""
    problem = fewer_memories(best.problem)
    if problem is None or best.stopped:
        return None
    sms = problem.buffers.memories
    fewer = Incumbent(problem, best.seconds_left / _SHARE, best.stop, within=best)
    run(fewer)
    best.add_details({key: value for key, value in fewer.details.items() if key == "compile_seconds"})
    if fewer.pebbling is not None:
        found = fewer.upper_from
        if not found.endswith((" SM", " SMs")):
            found += " at one SM" if sms == 1 else f" at {sms} SMs"
        best.offer(at_sm(fewer.pebbling.moves) if sms == 1 else fewer.pebbling.moves, found)
    return str(fewer.details["solver"])

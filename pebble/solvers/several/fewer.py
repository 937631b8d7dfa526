"""Beside the search for several memories, one for fewer of them, which leaves the others idle: legal on more, too.

Both run for all of the time, in threads of their own (compiled loops let each other run), so that what fewer memories
are known to do in that time, several are known to do as well.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from pebble.game import SINGLE, BufferModel, Move, at_sm
from pebble.solvers.result import Incumbent, Problem, Solver
from pebble.units import ceil_div

_HEAD_START = 3  # one part of so many of the time left, which the search for fewer memories has to itself
_POLL_SECONDS = 0.02


def fewer_memories(problem: Problem) -> Problem | None:
    """The same game on half of the memories, or on as many as its tasks need; None where that is not fewer.

    None as well where tasks have their memories.
    """
    if problem.game.allowed:
        return None
    most, buffers, tasks = problem.most_tasks_per_sm, problem.buffers, len(problem.game.tasks)
    sms = max(1, buffers.memories // 2, 0 if most is None else ceil_div(tasks, most))
    if sms >= buffers.memories:
        return None
    if sms == 1:
        return replace(problem, buffers=SINGLE, most_tasks_per_sm=None)
    # the first SMs of these nets are the same net; of any other they are used without copies
    alike = buffers.net.name == "all-to-all" or buffers.net.name.startswith("cluster-")
    return replace(problem, buffers=replace(buffers, sms=sms) if alike else BufferModel("sm-local", sms))


class _OnFewer(Incumbent):
    """What is known of fewer memories; every pebbling goes on to the incumbent of all of them."""

    def __init__(self, problem: Problem, whole: Incumbent) -> None:
        super().__init__(problem, whole.seconds_left, whole.stop, within=whole)
        self.details["solver"] = ""

    @property
    def stopped(self) -> bool:
        """Also where nothing is left to prove of all memories."""
        return super().stopped or (self.within is not None and self.within.closed)

    def offer(self, moves: tuple[Move, ...], source: str) -> bool:
        if not super().offer(moves, source):
            return False
        if self.within is not None:  # not in a worker, whose offers are repeated here
            sms = self.problem.buffers.memories
            if not source.endswith((" SM", " SMs")):
                source += " at one SM" if sms == 1 else f" at {sms} SMs"
            self.within.offer(at_sm(moves) if sms == 1 else moves, source)
        return True


class FewerMemories:
    """A solver at work on fewer memories; None of it where no fewer do the tasks.

    Parameters
    ----------
    best : Incumbent
        Of all memories; from now on its searches fill half of the memory allowed.
    run : callable
        The solver.
    """

    def __init__(self, best: Incumbent, run: Solver) -> None:
        problem = fewer_memories(best.problem)
        self._best, self._run = best, run
        self._fewer = None if problem is None or best.stopped else _OnFewer(problem, best)
        self._over = threading.Event()
        self._failed: list[BaseException] = []
        if self._fewer is None:
            self._over.set()
            return
        best.memory_share /= 2
        self._fewer.memory_share = best.memory_share
        threading.Thread(target=self._work, daemon=True, name="pebble-fewer").start()

    @property
    def solver(self) -> str:
        """The one that ran last, as far as it told."""
        return "" if self._fewer is None else str(self._fewer.details["solver"])

    def head_start(self) -> None:
        """Wait for a share of the time left, in which nothing is compiled, unless it is over before."""
        rest = self._best.seconds_left * (1 - 1 / _HEAD_START)
        while self._best.seconds_left > rest and not self._best.stopped and not self._over.wait(_POLL_SECONDS):
            pass

    def wait(self) -> None:
        """Until it is over, or all is said of all memories; raise what went wrong."""
        while not self._best.stopped and not self._over.wait(_POLL_SECONDS):
            pass
        if self._failed:
            raise self._failed[0]

    def _work(self) -> None:
        assert self._fewer is not None
        try:
            self._run(self._fewer)
            compiled = {key: value for key, value in self._fewer.details.items() if key == "compile_seconds"}
            self._best.add_details(compiled)
        except BaseException as error:
            self._failed.append(error)
        self._over.set()

"""The theorems of :mod:`pebble.bounds.dag` beside a solver that needs long, or after one that left a gap open."""

from __future__ import annotations

import threading

from pebble.solvers.result import Incumbent
from pebble.system.isolation import Library, solve_apart

_PATIENCE_SECONDS = 0.5  # a solver that is done by then is left alone
_POLL_SECONDS = 0.05


class GeneralBounds:
    """Raises an incumbent from below, in a worker process, once the solver has been given some time alone."""

    def __init__(self, best: Incumbent) -> None:
        self._best = best
        self._over, self._due, self._finished = threading.Event(), threading.Event(), threading.Event()
        self._error: BaseException | None = None
        threading.Thread(target=self._work, daemon=True, name="pebble-bounds").start()

    def done(self) -> bool:
        """Begin if need be, and wait a moment; whether there is nothing more to hope for."""
        self._due.set()
        return self._best.closed or self._finished.wait(_POLL_SECONDS)

    def end(self) -> None:
        """Stop, and raise what went wrong."""
        self._over.set()
        self._due.set()
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        self._due.wait(_PATIENCE_SECONDS)

        def over() -> bool:
            return self._over.is_set() or self._best.closed

        try:
            from pebble.bounds.dag import MOST_ITEMS

            if not over() and self._best.problem.game.size <= MOST_ITEMS:
                solve_apart(Library.HIGHS, "pebble.solvers.general_bounds:raise_bounds", self._best, over)
        except BaseException as error:
            self._error = error
        self._finished.set()


def raise_bounds(best: Incumbent, seconds: float = 20.0) -> str:
    """Raise an incumbent by the theorems that solvers do not begin with, each in at most that time.

    It is twice what `dag_bounds` takes, since a solver runs beside.
    """
    from pebble.bounds.dag import hong_kung, spectral, wavefront

    for theorem in (wavefront.bound, spectral.bound, hong_kung.bound):
        if best.stopped:
            break
        found = theorem(best.problem.game, best.problem.capacity, min(seconds, best.seconds_left))
        if found.value is not None and found.value > best.lower:
            best.raise_lower(found.value, f"{found.name} bound")
    return "stopped"

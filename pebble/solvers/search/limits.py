"""How a search slices its work so that it stops in time."""

from __future__ import annotations

import time

from pebble.solvers.result import Incumbent

_SLICE_SECONDS = 0.1


class Slices:
    """Sizes the next slice of work to about a tenth of a second, and says when to stop.

    Examples
    --------
    >>> from pebble.solvers.search.limits import Slices
    >>> Slices(None).work
    16
    """

    def __init__(self, best: Incumbent | None, until: float = float("inf"), largest: int = 1 << 16) -> None:
        self.best = best
        self.until = until
        self.largest = largest
        self.work = 16
        self._started = time.monotonic()

    def start(self) -> int:
        """Begin a slice; how much work it may do."""
        self._started = time.monotonic()
        return self.work

    def end(self) -> bool:
        """End a slice; True when the time is up or somebody asked to stop."""
        now = time.monotonic()
        took = now - self._started
        if took < _SLICE_SECONDS / 2:
            self.work = min(self.largest, self.work * 2)
        elif took > _SLICE_SECONDS * 2:
            self.work = max(1, self.work // 2)
        return now >= self.until or (self.best is not None and self.best.stopped)

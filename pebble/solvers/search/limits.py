"""How a search slices its work so that it stops in time."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pebble.solvers.result import Incumbent
from pebble.solvers.search.bits import EXHAUSTED, FOUND, FULL, GROW

Table = NDArray[np.int32]

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


def search_levels(
    best: Incumbent,
    counts: NDArray[np.int64],
    base: int,
    advance: Callable[[Table, int], int],
    rehash: Callable[[Table], None],
    until: float,
    most: float = float("inf"),
) -> str:
    """A* level by level until the interval closes, or why not.

    Parameters
    ----------
    best : Incumbent
        Hears of every level that is searched in full.
    counts : array of int
        Of the search: positions, the level it is at.
    base : int
        Cost of level 0.
    advance : callable
        Does some work with a hash table, and says how it went.
    rehash : callable
        Fills an empty table.
    until, most : float
        Time at which to stop, and number of positions.

    Returns
    -------
    str
        ``"found"``, ``"exhausted"``, ``"time"`` or ``"memory"``.
    """
    table = np.zeros(1 << 16, dtype=np.int32)
    while 2 * (int(counts[0]) + 4096) > len(table):
        table = np.zeros(4 * len(table), dtype=np.int32)
    rehash(table)
    slices = Slices(best, until)
    while True:
        status = advance(table, slices.start())
        best.raise_lower(int(counts[1]) + base, "search")
        if status == GROW:
            table = np.zeros(4 * len(table), dtype=np.int32)
            rehash(table)
        elif status in (FOUND, EXHAUSTED, FULL):
            return {FOUND: "found", EXHAUSTED: "exhausted", FULL: "memory"}[status]
        if slices.end() or counts[0] > most:
            return "time"

"""Solvers that are stopped by what they have found, not by a clock: a busy machine only takes longer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pebble.solvers.result import Progress
from pebble.system.clock import Clock

PATIENCE = 3600.0  # seconds, for what ends by itself or is stopped


def until(enough: Callable[[Progress], object]) -> dict[str, Any]:
    """Options of `pebble.solvers.solve`, which then ends at the first progress that is enough."""
    stop = threading.Event()

    def listen(now: Progress) -> None:
        if enough(now):
            stop.set()

    return {"time_limit": Clock(PATIENCE, stop), "progress": listen}


def at_most(cost: float) -> dict[str, Any]:
    """The same: until a pebbling that costs no more is known."""
    return until(lambda now: now.upper_bound is not None and now.upper_bound <= cost)


ANY = float("inf")

"""A* level by level, in slices of work so small that it stops in time."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from pebble.game import Move
from pebble.solvers.result import Incumbent
from pebble.solvers.search.bits import EXHAUSTED, FOUND, FULL, GROW, I32, RUNNING
from pebble.solvers.search.positions import LEVELS, Positions, make_positions, position_bytes, rehash_positions
from pebble.system.parallel import memory_allowance

Table = I32

_SLICE_SECONDS = 0.1
_LARGEST_SLICE = 1 << 16


class LevelSearch(ABC):
    """One search for an incumbent; a position at level f leads to no pebbling below base + unit f."""

    def __init__(self, best: Incumbent, base: int, unit: int = 1, levels: int = LEVELS) -> None:
        self.best, self.game = best, best.problem.game
        self.base, self.unit, self.levels = base, unit, levels
        self.memory = memory_allowance()
        self.states = self.successors = 0
        self.seconds = 0.0

    @abstractmethod
    def run(self) -> str:
        """Search until the bounds meet or a limit is reached; why it stopped."""

    @abstractmethod
    def advance(self, positions: Any, table: Table, work: int) -> int:
        """Do some work with a hash table, below `upper`; how it went."""

    @abstractmethod
    def moves(self, positions: Any) -> tuple[Move, ...]:
        """The play that was found."""

    @property
    def upper(self) -> int:
        """The level of the cheapest pebbling known: none at it need be looked at."""
        known = self.best.upper
        return self.levels - 1 if known is None else min(self.levels - 1, (known - self.base) // self.unit)

    def positions(self, words: int, depths: int = 1, taken: int = 0) -> Positions:
        """Room for as many as memory allows, beside what is taken."""
        most = max(1 << 16, (self.memory - taken) // position_bytes(words))
        return make_positions(most, words, self.levels, depths)

    def search(self, positions: Any, until: float = float("inf"), most: float = float("inf")) -> str:
        """Expand level after level, until a time or a number of positions: found, exhausted, time or memory."""
        counts, initialised = positions.counts, time.monotonic()
        states, successors = int(counts[0]), int(counts[4])
        size, work = 1 << 16, 16
        while 2 * (states + 4096) > size:
            size *= 4
        table = np.zeros(size, dtype=np.int32)
        if states:
            rehash_positions(positions, table)
        try:
            while True:
                started = time.monotonic()
                status = self.advance(positions, table, work)
                self.best.raise_lower(self.base + self.unit * int(counts[1]), "search")
                if status == FOUND:
                    self.report(positions, "search")
                if status == GROW:
                    table = np.zeros(4 * len(table), dtype=np.int32)
                    rehash_positions(positions, table)
                elif status != RUNNING:
                    return {FOUND: "found", EXHAUSTED: "exhausted", FULL: "memory"}[status]
                now = time.monotonic()
                if now - started < _SLICE_SECONDS / 2:
                    work = min(_LARGEST_SLICE, work * 2)
                elif now - started > _SLICE_SECONDS * 2:
                    work = max(1, work // 2)
                if now >= until or self.best.stopped or counts[0] > most:
                    return "time"
        finally:
            self.seconds += time.monotonic() - initialised
            self.states += int(counts[0]) - states
            self.successors += int(counts[4]) - successors
            self.best.details |= {"states": self.states, "successors": self.successors}
            if self.seconds > 0:
                self.best.details["states_per_second"] = round(self.states / self.seconds)

    def report(self, positions: Any, source: str) -> None:
        """Hand in the play that was found."""
        self.best.offer(self.moves(positions), source)

    def reason(self, why: str) -> str:
        """Why the search stopped, in words."""
        if self.best.closed:
            return "proved optimal"
        return f"memory limit of {self.memory / 2**30:.1f} GiB" if why == "memory" else "stopped"

"""What every search keeps: the positions met, each with its cost so far, in queues by level and by depth, compiled;
and A* level by level, in slices of work so small that it stops in time.

A position is a row of words. A search expands one level (cost so far plus bound) after the other, and may queue a
position again at a higher level, where its next successors lie.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.game import Move
from pebble.solvers.result import Incumbent
from pebble.solvers.search.bits import EXHAUSTED, FOUND, FULL, GROW, I32, I64, RUNNING, U64, mix, popcount, signed
from pebble.system.parallel import memory_allowance
from pebble.traces.jit import inner, jit

LEVELS = 512


class Positions(NamedTuple):
    """Positions met, cost so far, and the queues."""

    words: U64
    cost: NDArray[np.int16]
    """-1 where the position was reached at less cost later: it stays queued but is skipped."""
    note: I32
    """What a search wants to know of a position later, such as its rank."""
    parent: I32
    queue: I32
    """queue[s]: the position after s in its queue, or -1."""
    head: I64
    """The first position of each level and depth; where depths are told apart, tasks done (words 0 and 1) are depth."""
    counts: I64
    """counts[0]: positions, [1]: level, [2]: expansions, [3]: the goal's parent or -1, [4]: successors looked at,
    [5]: positions improved, [6]: the goal's cost."""
    found: U64
    """Of a move looked for: task, source + 1, evicted items (2 words)."""


def make_positions(most: int, words: int, levels: int = LEVELS, depths: int = 1) -> Positions:
    """Empty arrays for at most `most` positions; untouched pages cost no memory."""
    counts = np.zeros(8, dtype=np.int64)
    counts[3] = -1
    return Positions(
        np.empty((most, words), dtype=np.uint64),
        np.empty(most, dtype=np.int16),
        np.empty(most, dtype=np.int32),
        np.empty(most, dtype=np.int32),
        np.empty(most, dtype=np.int32),
        np.full((levels, depths), -1, dtype=np.int64),
        counts,
        np.zeros(4, dtype=np.uint64),
    )


def position_bytes(words: int) -> int:
    """Of the arrays, and a hash table that is at most half full."""
    return 8 * words + 14 + 8


def chain_to(positions: Positions, last: int) -> list[int]:
    """The positions on the way to one, the first one first."""
    chain = [last]
    while positions.parent[chain[-1]] >= 0:
        chain.append(int(positions.parent[chain[-1]]))
    return chain[::-1]


@inner
def find_position(words: U64, table: I32, state: U64) -> int:
    """Slot of a position in the hash table, its own or the free one."""
    size = len(table)
    count = len(state)
    h = mix(state[0], state[1])
    for w in range(2, count, 2):
        h = mix(h, mix(state[w], state[w + 1]))
    where = signed(h & np.uint64(size - 1))
    while table[where] != 0:
        s = table[where] - 1
        same = True
        for w in range(count):
            if words[s, w] != state[w]:
                same = False
                break
        if same:
            break
        where = (where + 1) & (size - 1)
    return where


@jit
def rehash_positions(pos: Positions, table: I32) -> None:
    """Fill a larger, zeroed table."""
    for s in range(pos.counts[0]):
        if pos.cost[s] >= 0:
            table[find_position(pos.words, table, pos.words[s])] = s + 1


@inner
def enqueue(pos: Positions, s: int, level: int) -> None:
    """Put a position into its queue of a level."""
    depth = 0
    if pos.head.shape[1] > 1:
        depth = popcount(pos.words[s, 0]) + popcount(pos.words[s, 1])
    pos.queue[s] = pos.head[level, depth]
    pos.head[level, depth] = s


@inner
def enter(pos: Positions, table: I32, state: U64, cost: int, parent: int, level: int, note: int) -> bool:
    """Enter a position into its queue of a level, or improve it; False when the arrays are full."""
    words, counts = pos.words, pos.counts
    where = find_position(words, table, state)
    if table[where] != 0:
        s = table[where] - 1
        if cost >= pos.cost[s]:
            return True
        counts[5] += 1
        pos.cost[s] = -1
    s = counts[0]
    if s >= len(pos.cost):
        return False
    counts[0] = s + 1
    for w in range(len(state)):  # much faster than one assignment of all
        words[s, w] = state[w]
    pos.cost[s] = cost
    pos.note[s] = note
    pos.parent[s] = parent
    enqueue(pos, s, level)
    table[where] = s + 1
    return True


@inner
def next_position(pos: Positions, upper: int) -> int:
    """Take the deepest position of the lowest level below `upper`, which ends the last level soon; -1 without one."""
    level = pos.counts[1]
    while level < upper:
        for depth in range(pos.head.shape[1] - 1, -1, -1):
            s: int = pos.head[level, depth]
            if s >= 0:
                pos.head[level, depth] = pos.queue[s]
                pos.counts[1] = level
                return s
        level += 1
    pos.counts[1] = level
    return -1


@inner
def expanded(pos: Positions, s: int, later: int, upper: int) -> int:
    """How the search stands after position s was expanded; its next successors lie at level `later`, -1 when full."""
    if later < 0:
        enqueue(pos, s, pos.counts[1])
        return FULL
    if pos.counts[3] >= 0:
        return FOUND
    if later < upper:
        enqueue(pos, s, later)
    return RUNNING


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

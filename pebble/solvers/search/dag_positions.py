"""The positions of a search by layers: what is kept of each, and of the pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
BYTES_PER_POSITION = 4 * 8 + 5 * 4

COST, LEVEL, PARENT, IDEAL, AFTER = 0, 1, 2, 3, 4
STATES, LAYER, AT_IDEAL, AT_STATE, LIMIT, GOAL, GOAL_COST, EXPANDED, SUCCESSORS, CUT, SPARE, DOMINATED = range(12)


class Positions(NamedTuple):
    """Positions by number, in the order in which they were entered."""

    words: U64
    """Red items (2 words), red computed items that slow memory has (2)."""
    numbers: I32
    """Cost, cost plus bound, parent or -1, ideal, next position of the ideal or -1."""
    layers: I32
    """The first ideal with a position of each number of tasks done, or -1."""
    counts: NDArray[np.int64]
    """By the names above; the goal is the position from which the cheapest end was reached, or -1."""
    found: U64
    """Of a move looked for: task, source + 1, evicted items (2 words)."""


def make_positions(most: int, tasks: int) -> Positions:
    """Empty arrays; untouched pages cost no memory."""
    return Positions(
        np.empty((most, 4), np.uint64),
        np.empty((most, 5), np.int32),
        np.empty(tasks + 1, np.int32),
        np.zeros(12, np.int64),
        np.zeros(4, np.uint64),
    )

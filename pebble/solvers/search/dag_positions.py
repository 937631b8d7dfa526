"""The positions of a search by layers: what is kept of each, and of the pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pebble.solvers.search.bits import I32, I64, U64

BYTES_PER_POSITION = 6 * 8 + 3 * 4

# columns of Positions.words and Positions.numbers
COST, AFTER = 4, 5
LEVEL, PARENT, IDEAL = range(3)
STATES, LAYER, AT_IDEAL, AT_STATE, LIMIT, GOAL, GOAL_COST, EXPANDED, SUCCESSORS, CUT, SPARE, DOMINATED = range(12)


class Positions(NamedTuple):
    """Positions by number, in the order in which they were entered."""

    words: U64
    """All that a scan reads of a position, side by side: red items (2 words), red computed items that slow memory has
    (2), cost, and one more than the number of the next position of the ideal, or 0."""
    numbers: I32
    """Cost plus bound, parent or -1, ideal."""
    layers: I32
    """The first ideal with a position of each number of tasks done, or -1."""
    counts: I64
    """By the names above; the goal is the position from which the cheapest end was reached, or -1."""
    found: U64
    """Of a move looked for: task, source + 1, evicted items (2 words)."""
    better: U64
    """While a position is expanded, for each of its red items those (2 words) that may leave in its place."""
    choice: I64
    """And for a task: items that may leave, those chosen of them, results' sources and their fees, row by row."""


def make_positions(most: int, tasks: int) -> Positions:
    """Empty arrays; untouched pages cost no memory."""
    return Positions(
        np.empty((most, 6), np.uint64),
        np.empty((most, 3), np.int32),
        np.empty(tasks + 1, np.int32),
        np.zeros(12, np.int64),
        np.zeros(4, np.uint64),
        np.zeros((128, 2), np.uint64),
        np.zeros((4, 130), np.int64),
    )

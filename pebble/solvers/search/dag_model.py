"""A game without recomputation as bits: tasks and items in two 64-bit words each; and what a search by layers keeps
of each position and of the pass.

Also the masks behind the bound: for every task, the items that some task before it must have touched, and the
items that it or a task after it still needs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pebble.errors import InputError
from pebble.game import Game
from pebble.solvers.search.bits import I32, I64, U64, mask_of

LARGEST = 128
_WORD = (1 << 64) - 1


class DagModel(NamedTuple):
    """The tables that the compiled kernels read; a mask is a row of two words."""

    tasks: int
    items: int
    capacity: int
    sliding: bool
    target: I64
    operands: U64
    """operands[t]: items."""
    before: U64
    """before[t]: tasks that must be done first."""
    uses: U64
    """uses[x]: tasks that have item x as an operand."""
    updates: U64
    """updates[x]: tasks that compute item x."""
    inputs: U64
    """One row: items that start in slow memory."""
    outputs: U64
    computed: U64
    """One row: items that tasks compute or update."""
    touched_before: U64
    """touched_before[t]: items that the tasks which must precede t read or compute."""
    needed_from: U64
    """needed_from[t]: items that t, or a task that must follow it, reads."""
    needed_after: U64
    """needed_after[t]: items that a task which must follow t reads."""
    twins: I64
    """The items with a twin, ascending."""
    twin: I64
    """twin[x]: the input before x with the same uses, or -1; such inputs are interchangeable."""


def _rows(masks: list[int]) -> U64:
    return np.array([[m & _WORD, m >> 64] for m in masks] or [[0, 0]], dtype=np.uint64)


def build_dag_model(game: Game, capacity: int) -> DagModel:
    """The model of a game; InputError unless it has no recomputation, unit weights, at most 128 items and tasks."""
    if game.variant.recompute:
        raise InputError(f"search: got the variant {game.variant}, expected one where values are computed once.")
    if any(w != 1 for w in game.weights):
        raise InputError("search: got a DAG with weights, expected unit weights; use --solver cpsat.")
    if max(game.size, len(game.tasks)) > LARGEST:
        raise InputError(
            f"search: got {game.size} values and {len(game.tasks)} tasks, expected at most {LARGEST} of "
            "each; use --solver cpsat or heuristic, or `pebble bound` for a lower bound alone."
        )
    count = len(game.tasks)
    operands = [mask_of(t.operands) for t in game.tasks]
    updates = [mask_of(ts) for ts in game.updates]
    uses = [mask_of(ts) for ts in game.uses]
    touched, needed_after = [0] * count, [0] * count
    for t, earlier in enumerate(game.ancestors):
        for u in earlier:
            touched[t] |= operands[u] | 1 << game.tasks[u].target
            needed_after[u] |= operands[t]
    twin, seen = [], dict[int, int]()
    for x in range(game.size):
        plain = game.is_input[x] and not updates[x] and not game.is_output[x] and uses[x]
        twin.append(seen.get(uses[x], -1) if plain else -1)
        if plain:
            seen[uses[x]] = x
    return DagModel(
        count,
        game.size,
        capacity,
        game.variant.sliding,
        np.array([t.target for t in game.tasks] or [0], dtype=np.int64),
        _rows(operands),
        _rows([mask_of(earlier) for earlier in game.preds]),
        _rows(uses),
        _rows(updates),
        _rows([mask_of(x for x in range(game.size) if game.is_input[x])]),
        _rows([mask_of(x for x in range(game.size) if game.is_output[x])]),
        _rows([mask_of(x for x in range(game.size) if updates[x])]),
        _rows(touched),
        _rows([mine | later for mine, later in zip(operands, needed_after, strict=True)]),
        _rows(needed_after),
        np.array([x for x in range(game.size) if twin[x] >= 0], dtype=np.int64),
        np.array(twin, dtype=np.int64),
    )


BYTES_PER_POSITION = 6 * 8 + 3 * 4

# columns of Positions.words and Positions.numbers
COST, AFTER = 4, 5
LEVEL, PARENT, IDEAL = range(3)
STATES, LAYER, AT_IDEAL, AT_STATE, LIMIT, GOAL, GOAL_COST, EXPANDED, SUCCESSORS, CUT, SPARE, DOMINATED = range(12)


class LayerPositions(NamedTuple):
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


def make_positions(most: int, tasks: int) -> LayerPositions:
    """Empty arrays; untouched pages cost no memory."""
    return LayerPositions(
        np.empty((most, 6), np.uint64),
        np.empty((most, 3), np.int32),
        np.empty(tasks + 1, np.int32),
        np.zeros(12, np.int64),
        np.zeros(4, np.uint64),
        np.zeros((128, 2), np.uint64),
        np.zeros((4, 130), np.int64),
    )

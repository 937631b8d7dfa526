"""The search for games with recomputation: A* over (red values, stored values).

Without weights, and with at most 32 values. What has been computed before does not matter, only what is red and what
is stored, so a position is two masks. Moves in normal form:

- a value is placed, loaded or computed; when fast memory is full another leaves, for nothing, or stored for one;
- while there is room, a value that can be computed is computed at once: more red values never hurt;
- an output is stored when it is computed: its store is due in any case, and nothing undoes it;
- values that no missing output depends on are dropped.

In sliding variants the operand that leaves may be one of the computation. The bound on what is left: each missing
output is stored, and each input that is not red but is needed by any way to compute a missing output is loaded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.game import Game, Move
from pebble.solvers.result import Incumbent
from pebble.solvers.search.bits import EXHAUSTED, FOUND, FULL, I32, I64, RUNNING, U64, borrowed, popcount
from pebble.solvers.search.levels import LevelSearch, Table
from pebble.traces.jit import inner, jit

MOST_ITEMS = 32
_LEVELS = 2048
_POSITION_BYTES = 40
_LOAD, _COMPUTE = 0, 1


class RecomputeRules(NamedTuple):
    """A game as masks: operands and ancestors (itself included) of each value, inputs, outputs, and the capacity."""

    operands: U64
    ancestors: U64
    inputs: np.uint64
    outputs: np.uint64
    capacity: int
    sliding: bool


def read_rules(game: Game, capacity: int) -> RecomputeRules:
    """The masks of a game; InputError for unequal weights, or more than 32 values."""
    if game.size > MOST_ITEMS or len(set(game.weights)) > 1:
        raise InputError(
            f"solver search: with recomputation it plays at most {MOST_ITEMS} values of one weight, got {game.size} "
            f"values of {len(set(game.weights))} weights; use --solver cpsat, or `pebble bound`."
        )
    operands = [0] * game.size
    ancestors = [1 << i for i in range(game.size)]
    for task in game.tasks:  # in topological order
        for operand in task.operands:
            operands[task.target] |= 1 << operand
            ancestors[task.target] |= ancestors[operand]
    inputs = sum(1 << i for i in range(game.size) if game.is_input[i])
    outputs = sum(1 << i for i in range(game.size) if game.is_output[i] and not game.is_input[i])
    return RecomputeRules(
        np.array(operands, np.uint64),
        np.array(ancestors, np.uint64),
        np.uint64(inputs),
        np.uint64(outputs),
        capacity // game.weights[0],
        game.variant.sliding,
    )


class _Positions(NamedTuple):
    """Positions met, by number, and the queues of levels."""

    keys: U64
    costs: NDArray[np.int16]
    parents: I32
    how: I32
    table: I32
    queue: I32
    heads: I32
    counts: I64
    """counts[0]: positions, [1]: level, [3]: goal, [4]: queue entries."""


@jit
def _clean(red: np.uint64, stored: np.uint64, ancestors: U64, outputs: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Drop what no missing output depends on."""
    useful = np.uint64(0)
    for v in range(ancestors.shape[0]):
        if (outputs & ~stored) >> np.uint64(v) & np.uint64(1):
            useful |= ancestors[v]
    return red & useful, stored & (useful | outputs)


@inner
def _left(red: np.uint64, stored: np.uint64, operands: U64, inputs: np.uint64, outputs: np.uint64) -> int:
    """A cost that is still to come."""
    wanted = outputs & ~stored
    total = popcount(wanted)
    seen = wanted
    while wanted:
        more = np.uint64(0)
        for v in range(operands.shape[0]):
            if wanted >> np.uint64(v) & np.uint64(1):
                more |= operands[v]
        more &= ~(red | stored | seen)
        total += popcount(more & inputs)
        seen |= more
        wanted = more & ~inputs
    return total


@inner
def _find(keys: U64, table: I32, key: np.uint64) -> np.uint64:
    """The slot of a key in the hash table, or of the free place where it belongs."""
    mask = np.uint64(table.shape[0] - 1)
    slot = (key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(17) & mask
    while table[slot] >= 0 and keys[table[slot]] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@jit
def _reach(
    pos: _Positions,
    rules: RecomputeRules,
    red: np.uint64,
    stored: np.uint64,
    cost: int,
    parent: int,
    move: int,
    upper: int,
) -> None:
    """Enter a position reached at this cost, unless it is known as cheap or cannot beat the upper bound."""
    keys, costs, parents, how, table, queue, heads, counts = pos
    operands, ancestors, inputs, outputs, _, _ = rules
    red, stored = _clean(red, stored, ancestors, outputs)
    total = cost + _left(red, stored, operands, inputs, outputs)
    if total >= upper:
        return
    key = red | stored << np.uint64(32)
    slot = _find(keys, table, key)
    at = table[slot]
    if at < 0:
        at = counts[0]
        counts[0] += 1
        keys[at] = key
        table[slot] = at
    elif costs[at] <= cost:
        return
    costs[at], parents[at], how[at] = cost, parent, move
    entry = counts[4]
    counts[4] += 1
    queue[entry, 0], queue[entry, 1], queue[entry, 2] = at, cost, heads[total]
    heads[total] = entry
    if total < counts[1]:
        counts[1] = total


@jit
def _advance(pos: _Positions, rules: RecomputeRules, upper: int, steps: int) -> int:
    pos, rules = borrowed((pos, rules))
    keys, costs, queue, heads, counts = pos.keys, pos.costs, pos.queue, pos.heads, pos.counts
    operands, ancestors, inputs, outputs, capacity, sliding = rules
    single = np.uint64(1)
    n = operands.shape[0]
    for _ in range(steps):
        while counts[1] < upper and heads[counts[1]] < 0:
            counts[1] += 1
        if counts[1] >= upper:
            return EXHAUSTED
        if counts[0] + 2 * n * n > keys.shape[0] or counts[4] + 2 * n * n > queue.shape[0]:
            return FULL
        entry = heads[counts[1]]
        heads[counts[1]] = queue[entry, 2]
        at, cost = queue[entry, 0], queue[entry, 1]
        if costs[at] != cost:
            continue
        red, stored = keys[at] & np.uint64(0xFFFFFFFF), keys[at] >> np.uint64(32)
        if outputs & ~stored == 0:
            counts[3] = at
            return FOUND
        ready = np.uint64(0)
        useful = np.uint64(0)
        for v in range(n):
            if (outputs & ~stored) >> np.uint64(v) & single:
                useful |= ancestors[v]
        for v in range(n):
            bit = single << np.uint64(v)
            if useful & ~(inputs | red) & bit and operands[v] & ~red == 0:
                ready |= bit
        full = popcount(red) >= capacity
        for v in range(n):
            bit = single << np.uint64(v)
            if ready & bit:
                pay = 1 if outputs & ~stored & bit else 0
                after = stored | (outputs & bit)
                if not full:
                    _reach(pos, rules, red | bit, after, cost + pay, at, v | _COMPUTE << 6, upper)
                    break
                may_leave = red if sliding else red & ~operands[v]
            elif useful & ~red & (inputs | stored) & bit and (full or ready == 0):
                pay, after = 1, stored
                if not full:
                    _reach(pos, rules, red | bit, after, cost + pay, at, v | _LOAD << 6, upper)
                    continue
                may_leave = red
            else:
                continue
            kind = _COMPUTE if ready & bit else _LOAD
            for u in range(n):
                other = single << np.uint64(u)
                if not may_leave & other:
                    continue
                move = v | kind << 6 | (u + 1) << 8
                _reach(pos, rules, red & ~other | bit, after, cost + pay, at, move, upper)
                if not (inputs | stored) & other:
                    _reach(pos, rules, red & ~other | bit, after | other, cost + pay + 1, at, move | 1 << 15, upper)
    return RUNNING


def _write(game: Game, rules: RecomputeRules, steps: list[int]) -> tuple[Move, ...]:
    """The moves of the steps found, with the values deleted that the search dropped."""
    task_of = {task.target: task.name for task in game.tasks}
    moves: list[Move] = []
    red, stored = 0, 0
    for step in steps:
        v, kind, u, keep = step & 63, step >> 6 & 1, (step >> 8 & 63) - 1, step >> 15 & 1
        if keep:
            moves.append(Move("store", game.names[u]))
            stored |= 1 << u
        slides = u >= 0 and kind == _COMPUTE and int(rules.operands[v]) >> u & 1
        if u >= 0 and not slides:
            moves.append(Move("delete", game.names[u]))
        if u >= 0:
            red &= ~(1 << u)
        if slides:
            moves.append(Move("slide", task_of[v], game.names[u]))
        elif kind == _COMPUTE:
            moves.append(Move("compute", task_of[v]))
        else:
            moves.append(Move("load", game.names[v]))
        red |= 1 << v
        if kind == _COMPUTE and int(rules.outputs) & ~stored & 1 << v:
            moves.append(Move("store", game.names[v]))
            stored |= 1 << v
        kept, still = _clean(np.uint64(red), np.uint64(stored), rules.ancestors, rules.outputs)
        for i in range(game.size):
            if red >> i & 1 and not int(kept) >> i & 1:
                moves.append(Move("delete", game.names[i]))
        red, stored = int(kept), int(still)
    return tuple(moves)


class RecomputeSearch(LevelSearch):
    """Proves the optimum of a game with recomputation."""

    def __init__(self, best: Incumbent) -> None:
        self.rules = read_rules(best.problem.game, best.problem.capacity)
        super().__init__(best, 0, best.problem.game.weights[0], _LEVELS)

    def run(self) -> str:
        """Search; the reason why it stopped."""
        capacity = int(min(self.memory // _POSITION_BYTES, 20_000_000))
        positions = _Positions(
            np.empty(capacity, np.uint64),
            np.empty(capacity, np.int16),
            np.empty(capacity, np.int32),
            np.empty(capacity, np.int32),
            np.full(1 << max(16, capacity.bit_length()), -1, np.int32),
            np.empty((capacity, 3), np.int32),
            np.full(_LEVELS, -1, np.int32),
            np.zeros(8, np.int64),
        )
        return self.reason(self.search(positions))

    def advance(self, positions: _Positions, table: Table, work: int) -> int:
        """Some work of the A*."""
        if not positions.counts[0]:  # inputs that are outputs too are blue from the start
            _reach(positions, self.rules, np.uint64(0), np.uint64(0), 0, -1, 0, self.upper)
        return _advance(positions, self.rules, self.upper, work)

    def moves(self, positions: _Positions) -> tuple[Move, ...]:
        """The moves on the way to the goal."""
        steps, at = [], int(positions.counts[3])
        while positions.parents[at] >= 0:
            steps.append(int(positions.how[at]))
            at = int(positions.parents[at])
        return _write(self.game, self.rules, steps[::-1])

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
from numba import njit
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.game import Game, Move
from pebble.solvers.result import Incumbent
from pebble.solvers.search.bits import EXHAUSTED, FOUND, FULL, GROW, RUNNING, ZERO, bit, popcount
from pebble.solvers.search.levels import LevelSearch, Table
from pebble.solvers.search.positions import Positions, chain_to, enqueue, enter, next_position

MOST_ITEMS = 32
_LEVELS = 2048
_LOAD, _COMPUTE = 0, 1


class Rules(NamedTuple):
    """A game as masks: operands and ancestors (itself included) of each value, inputs, outputs, and the capacity."""

    operands: NDArray[np.uint64]
    ancestors: NDArray[np.uint64]
    inputs: np.uint64
    outputs: np.uint64
    capacity: int
    sliding: bool


def read_rules(game: Game, capacity: int) -> Rules:
    """The masks of a game.

    Raises
    ------
    InputError
        Unequal weights, or more than 32 values.
    """
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
    return Rules(
        np.array(operands, np.uint64),
        np.array(ancestors, np.uint64),
        np.uint64(inputs),
        np.uint64(outputs),
        capacity // game.weights[0],
        game.variant.sliding,
    )


@njit(cache=True, nogil=True)
def _clean(red, stored, ancestors, outputs):  # type: ignore[no-untyped-def]
    """Drop what no missing output depends on."""
    useful = np.uint64(0)
    for v in range(ancestors.shape[0]):
        if (outputs & ~stored) >> np.uint64(v) & np.uint64(1):
            useful |= ancestors[v]
    return red & useful, stored & (useful | outputs)


@njit(cache=True, nogil=True)
def _left(red, stored, operands, inputs, outputs):  # type: ignore[no-untyped-def]
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


@njit(cache=True, nogil=True)
def _reach(rules, pos, table, state, red, stored, cost, parent, move, upper):  # type: ignore[no-untyped-def]
    """Enter a position reached at this cost, unless it cannot beat the upper bound; False when the arrays are full."""
    red, stored = _clean(red, stored, rules.ancestors, rules.outputs)
    total = cost + _left(red, stored, rules.operands, rules.inputs, rules.outputs)
    if total >= upper:
        return True
    state[0], state[1] = red, stored
    return enter(pos, table, state, cost, parent, max(total, pos.counts[1]), move)


@njit(cache=True, nogil=True)
def _expand(rules, pos, table, state, s, upper):  # type: ignore[no-untyped-def]
    """Enter the successors of a position; False when the arrays are full."""
    operands, ancestors, inputs, outputs, capacity, sliding = rules
    red, stored, cost = pos.words[s, 0], pos.words[s, 1], np.int64(pos.cost[s])
    n = operands.shape[0]
    ready, useful = ZERO, ZERO
    for v in range(n):
        if outputs & ~stored & bit(v):
            useful |= ancestors[v]
    for v in range(n):
        if useful & ~(inputs | red) & bit(v) and operands[v] & ~red == 0:
            ready |= bit(v)
    full = popcount(red) >= capacity
    for v in range(n):
        own = bit(v)
        if ready & own:
            kind, pay = _COMPUTE, 1 if outputs & ~stored & own else 0
            after = stored | (outputs & own)
            if not full:
                return _reach(rules, pos, table, state, red | own, after, cost + pay, s, v | kind << 6, upper)
            may_leave = red if sliding else red & ~operands[v]
        elif useful & ~red & (inputs | stored) & own and (full or ready == 0):
            kind, pay, after = _LOAD, 1, stored
            if not full:
                if not _reach(rules, pos, table, state, red | own, after, cost + pay, s, v | kind << 6, upper):
                    return False
                continue
            may_leave = red
        else:
            continue
        for u in range(n):
            other = bit(u)
            if not may_leave & other:
                continue
            move = v | kind << 6 | (u + 1) << 8
            held = red & ~other | own
            if not _reach(rules, pos, table, state, held, after, cost + pay, s, move, upper):
                return False
            if not (inputs | stored) & other and not _reach(
                rules, pos, table, state, held, after | other, cost + pay + 1, s, move | 1 << 15, upper
            ):
                return False
    return True


@njit(cache=True, nogil=True)
def _advance(rules, pos, table, upper, work):  # type: ignore[no-untyped-def]
    """Up to `work` expansions; counts[3] is the goal itself."""
    state = np.empty(2, np.uint64)
    if pos.counts[0] == 0:  # inputs that are outputs too are blue from the start
        _reach(rules, pos, table, state, ZERO, ZERO, 0, -1, 0, upper)
    for _ in range(work):
        if 2 * (pos.counts[0] + 4096) > len(table):
            return GROW
        s = next_position(pos, upper)
        if s < 0:
            return EXHAUSTED
        if pos.cost[s] < 0:
            continue
        pos.counts[2] += 1
        if rules.outputs & ~pos.words[s, 1] == 0:
            pos.counts[3] = s
            return FOUND
        if not _expand(rules, pos, table, state, s, upper):
            enqueue(pos, s, pos.counts[1])
            return FULL
    return RUNNING


def _write(game: Game, rules: Rules, steps: list[int]) -> tuple[Move, ...]:
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
        return self.reason(self.search(self.positions(2)))

    def advance(self, positions: Positions, table: Table, work: int) -> int:
        """Some work of the A*."""
        return int(_advance(self.rules, positions, table, self.upper, work))

    def moves(self, positions: Positions) -> tuple[Move, ...]:
        """The moves on the way to the goal."""
        chain = chain_to(positions, int(positions.counts[3]))
        return _write(self.game, self.rules, [int(positions.note[s]) for s in chain[1:]])

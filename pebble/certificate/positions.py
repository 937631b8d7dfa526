"""A refutation: a closed list of positions shows that no pebbling of a one-shot game costs less than claimed.

For games where each value is computed once, without sliding, all weights 1. Every pebbling loads each input that is
used and stores each output; what it moves beyond that is its *excess*. Without loss of generality

- a value is loaded when a computation needs it and evicted when room is needed, exactly as many as needed (keeping a
  value longer never costs more), and dropped when no computation to come needs it;
- an output is stored at once; any other computed value when it is first evicted.

So evicting a value that is still needed costs an excess of 1 (its load) for inputs, outputs and values stored before,
and 2 otherwise. A position is (D, R, K): the values computed, those red and still needed, and those of R that are
computed, no outputs, and stored. A move computes a value whose operands are all there or computed, after evicting.

*Forced moves.* A computation whose operands are all red, and for whose result there is room, is done at once when its
result is needed by nothing; or when it is the last use of an operand y, and the result is at most as dear to evict as
y from now on: the result is an output, or y would cost 2. Until the moment at which another schedule does it, the
result can stand wherever y stands there, at no higher cost.

*Excess to come.* When a value t is computed, every value that has been touched by then and is needed then or later is
live. The operands of t are red; of the other live values all but S - 1 - operands are in slow memory. Those that are
not there now must still be evicted, at 1 or 2 each.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

from .games import Game, task_order
from .reading import RefusedError, fields, records

MAGIC = b"pebble positions 1\n"
MAX_POSITIONS = 2_000_000
MAX_CHOICES = 200_000
MAX_SIZE = 512
MAX_STEPS = 4 * 10**9  # values looked at, over all moves

Position = tuple[int, int, int]


def bits(word: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while word:
        low = word & -word
        yield low.bit_length() - 1
        word ^= low


class Moves:
    """The moves of a game between positions, in excess over what every pebbling moves."""

    def __init__(self, game: Game, at: str = "game") -> None:
        if game.variant != "one-shot" or set(game.weights) != {1} or len(game.names) > MAX_SIZE:
            raise RefusedError(at, f"positions are defined for one-shot games of up to {MAX_SIZE} values of weight 1")
        size = len(game.names)
        self.capacity = game.capacity
        self.operands, self.uses = [0] * size, [0] * size
        # computed values, each after its operands
        self.order = tuple(game.tasks[number].target for number in task_order(game))
        self.computed = sum(1 << x for x in self.order)
        inputs = sum(1 << x for x in range(size) if game.is_input[x])
        outputs = sum(1 << x for x in range(size) if game.is_output[x])
        self.cheap, self.outputs = inputs | outputs, outputs
        for task in game.tasks:
            self.operands[task.target] = sum(1 << x for x in task.operands)
            for x in task.operands:
                self.uses[x] |= 1 << task.target
        self.taken = [tuple(bits(word)) for word in self.operands]
        before, after = [0] * size, [0] * size
        for x in self.order:
            for y in bits(self.operands[x]):
                before[x] |= before[y] | 1 << y
        for x in self.order:
            for y in bits(before[x]):
                after[y] |= 1 << x
        # what the computations that come before x touch, and what x and those that come after it need
        self.touched_before, self.needed_from = [0] * size, [0] * size
        for x in self.order:
            for y in bits(before[x] & self.computed):
                self.touched_before[x] |= self.operands[y] | 1 << y
            self.needed_from[x] = self.operands[x]
            for y in bits(after[x]):
                self.needed_from[x] |= self.operands[y]

    def compute(self, position: Position, x: int) -> Position:
        """Load what x needs, compute it, drop what nothing needs any more."""
        done, red, stored = position
        stored |= self.operands[x] & ~red & self.computed & ~self.outputs
        done |= 1 << x
        red |= self.operands[x] | 1 << x
        for y in (*self.taken[x], x):
            if not self.uses[y] & ~done:
                red &= ~(1 << y)
        return done, red, stored & red

    def settle(self, position: Position) -> Position:
        """The position after all forced moves."""
        traffic = True
        while traffic:
            traffic = False
            done, red, stored = position
            if red.bit_count() >= self.capacity:
                break
            for x in self.order:
                if not done >> x & 1 and not self.operands[x] & ~red and self._forced(x, done, stored):
                    position = self.compute(position, x)
                    traffic = True
                    break
        return position

    def _forced(self, x: int, done: int, stored: int) -> bool:
        if not self.uses[x]:
            return True
        for y in self.taken[x]:
            last = self.uses[y] & ~done == 1 << x
            if last and (self.outputs >> x & 1 or not (self.cheap | stored) >> y & 1):
                return True
        return False

    def to_come(self, position: Position) -> int:
        """An excess that every way from here still pays."""
        done, red, stored = position
        away = 0
        for y, uses in enumerate(self.uses):
            if uses & ~done and not red >> y & 1 and (uses & done or done >> y & 1):
                away |= 1 << y
        worst, cheap = 0, self.cheap | stored
        for x in self.order:
            if done >> x & 1:
                continue
            operands = self.operands[x]
            live = (red | away | self.touched_before[x]) & self.needed_from[x] & ~operands & ~(1 << x)
            missing = (live & ~away).bit_count() + operands.bit_count() + 1 - self.capacity
            if 2 * missing > worst:
                low = (live & ~away & cheap).bit_count()
                worst = max(worst, missing if missing <= low else 2 * missing - low)
        return worst

    def moves(self, position: Position, at: str = "position") -> Iterator[tuple[int, int, int]]:
        """Every move: its excess, the values that it evicts, and the one that it computes."""
        done, red, stored = position
        cheap = self.cheap | stored
        for x in self.order:
            operands = self.operands[x]
            if done >> x & 1 or operands & self.computed & ~done:
                continue
            over = (red | operands | 1 << x).bit_count() - self.capacity
            if over <= 0:
                yield 0, 0, x
                continue
            spare = [1 << y for y in bits(red & ~operands)]
            if comb(len(spare), over) > MAX_CHOICES:
                raise RefusedError(at, "a position has too many ways to evict")
            for chosen in combinations(spare, over):
                gone = sum(chosen)
                yield 2 * over - (gone & cheap).bit_count(), gone, x

    def after(self, position: Position, gone: int, x: int) -> Position:
        """Where a move leads: ``gone`` evicted, x computed, and all that is forced then."""
        done, red, stored = position
        return self.settle(self.compute((done, red & ~gone, stored & ~gone), x))


def check_positions(game: Game, cost: int, proof: Any, folder: Path | None, at: str) -> None:
    """Every move from a listed position leads to a listed one, or costs too much; none of them is the end."""
    fields(proof, at, ("method", "table"))
    moves = Moves(game, at)
    limit = cost - game.compulsory
    width = -(-len(game.names) // 8)
    listed: dict[Position, int] = {}
    for record in records(folder, proof["table"], MAGIC, 3 * width + 2, MAX_POSITIONS, f"{at}.table"):
        words = [int.from_bytes(record[i * width : (i + 1) * width], "little") for i in range(3)]
        listed[words[0], words[1], words[2]] = int.from_bytes(record[3 * width :], "little")

    def covered(position: Position, excess: int) -> bool:
        if excess >= limit:
            return True
        known = listed.get(position)
        return (known is not None and known <= excess) or excess + moves.to_come(position) >= limit

    where, steps = f"{at}.table", 0
    if not covered(moves.settle((0, 0, 0)), 0):
        raise RefusedError(where, "the first position is not listed")
    for number, (position, excess) in enumerate(listed.items()):
        if position[0] & moves.computed == moves.computed:
            raise RefusedError(where, f"position {number} is the end of a pebbling that costs less than claimed")
        for step_cost, gone, x in moves.moves(position, where):
            steps += len(game.names)
            if steps > MAX_STEPS:
                raise RefusedError(where, "it has too many moves to check")
            if excess + step_cost < limit and not covered(moves.after(position, gone, x), excess + step_cost):
                raise RefusedError(where, f"a move from position {number} leads to one that is not listed")

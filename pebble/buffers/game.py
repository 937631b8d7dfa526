"""The game with P fast memories.

Each memory holds red pebbles of its own, at most the capacity; slow memory (blue) is shared. The moves of
:mod:`pebble.game`, each at one SM, and one more:

========  =========================================================================================
load      v is blue and not red here, and fits; it becomes red here. Costs its weight.
store     v is red here and not blue; it becomes blue. Costs its weight.
compute   every operand is red here and the result fits beside them; it becomes red here. Free.
delete    v is red here; it stops being red here. Free.
copy      v is red in the memory of another SM, ``source``, and not red here, and fits; it becomes red here
          too. Costs its weight times omega times the hops from the source.
========  =========================================================================================

Every task is done once in all, at one SM (``one-shot``, or ``in-place`` with accumulator cells). A cell has one
value: an update drops all other copies of its cell, red and blue, and needs the cell red at the SM that updates it.

What holds between the models, with S per SM (tests hold the solvers to it):

- One SM is the game of one memory. A copy can be left out or replaced, so connected never costs more than sm-local,
  and its cost never falls as omega grows.
- A legal game of P memories is one of a pooled memory: drop the copies and the second pebbles of a value. So pooled
  never costs more than connected.
- At omega = 0 what separates connected from pooled is that the operands and the result of a task must come together
  in one memory, so that some values are held twice. With unit weights that is worth at most c = the least capacity
  that works: reserve c places at one SM as a workbench, keep the pooled game's red values in the other P S - c, copy
  operands to the bench and the result back. Hence pooled(P S) <= connected at omega 0 <= pooled(P S - c) for S >= c.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

from pebble.errors import InputError
from pebble.game import Game, Pebbling, Variant
from pebble.models.buffers import BufferModel

BufferOp = Literal["load", "store", "compute", "delete", "copy"]


class BufferMove(NamedTuple):
    """One move at SM ``sm``; a copy comes from SM ``source``. ``node`` as in :class:`pebble.game.Move`."""

    op: BufferOp
    node: str
    sm: int = 0
    source: int | None = None

    def to_json(self) -> list[str | int]:
        """``[op, node, sm]``, for a copy ``[op, node, sm, source]``."""
        return [self.op, self.node, self.sm] if self.source is None else [self.op, self.node, self.sm, self.source]


@dataclass(frozen=True)
class BufferPebbling:
    """What is claimed, and the moves that prove it.

    Attributes
    ----------
    variant : Variant
    buffers : BufferModel
    capacity : int
        S, weight that one SM holds; a pooled memory holds P times that.
    moves : tuple of BufferMove
    cost : Fraction
        Loads, stores, and omega times hops for copies, by weight.
    """

    variant: Variant
    buffers: BufferModel
    capacity: int
    moves: tuple[BufferMove, ...]
    cost: Fraction


def check_variant(game: Game) -> None:
    """Refuse a variant that this game is not defined for.

    Raises
    ------
    InputError
        Sliding, or recomputation.
    """
    if game.variant not in (Variant.ONE_SHOT, Variant.IN_PLACE):
        raise InputError(
            f"variant {game.variant}: with several memories the game is played one-shot or in-place; "
            "leave --buffers out, or choose one of these."
        )


def buffer_cost(game: Game, buffers: BufferModel, moves: Iterable[BufferMove]) -> Fraction:
    """What the moves cost; says nothing about legality."""
    total = Fraction(0)
    for move in moves:
        if move.op in ("load", "store"):
            total += game.weights[game.item_index[move.node]]
        elif move.op == "copy" and move.source is not None:
            total += game.weights[game.item_index[move.node]] * (buffers.copy_cost(move.source, move.sm) or 0)
    return total


def from_single(pebbling: Pebbling, buffers: BufferModel, capacity: int) -> BufferPebbling:
    """A pebbling of one memory, played at SM 0."""
    moves = tuple(BufferMove(move.op, move.node) for move in pebbling.moves if move.op != "slide")
    return BufferPebbling(pebbling.variant, buffers, capacity, moves, Fraction(pebbling.cost))

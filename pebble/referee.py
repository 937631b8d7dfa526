"""The referee: replays a pebbling move by move, by the rules of :mod:`pebble.game` and nothing else.

It imports no solver and no numerical library. The rules it names:

=================  ========================================================================
unknown-op         not one of load, store, compute, delete, slide, or slide where the variant has none
unknown-node       no value (for compute and slide: no task) has this name
not-blue           load of a value that is not in slow memory
already-red        load, or computation, of a value that is in fast memory
already-blue       store of a value that is in slow memory
not-red            store or delete of a value that is not in fast memory
operand-not-red    computation with an operand out of fast memory
incomplete         computation with an operand that still has updates to come
cell-not-red       update of a begun (or initially blue) cell that is not in fast memory
computed-twice     one-shot: the task was done before
order              a task that must come earlier is not done
source             slide from a value that is not an operand, or without one
capacity           the red values would weigh more than the capacity
output-not-blue    the moves end and an output is not in slow memory, complete
=================  ========================================================================
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from pebble.errors import IllegalMoveError, VerificationError
from pebble.game import Game, Move, Pebbling, Variant

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class Replay:
    """What a legal pebbling does.

    Attributes
    ----------
    cost, loads, stores : int
        Weight moved: in all, into fast memory, into slow memory.
    load_moves, store_moves, computations : int
        Numbers of moves; a slide is a computation.
    peak : int
        Largest red weight at any moment.
    red_weight : array of int
        Red weight after each move, one entry per move.
    """

    cost: int
    loads: int
    stores: int
    load_moves: int
    store_moves: int
    computations: int
    peak: int
    red_weight: array[int]


def replay(dag: nx.DiGraph[Hashable] | Game, pebbling: Pebbling) -> Replay:
    """Play a pebbling and check every move, the end, and the claimed cost.

    Parameters
    ----------
    dag : networkx.DiGraph or Game
        What is pebbled.
    pebbling : Pebbling

    Raises
    ------
    IllegalMoveError
        The first move that breaks a rule, with its step, rule and node.
    VerificationError
        The pebbling names another variant than the game, or claims another cost than its moves have.
    InputError
        The DAG is not usable.

    Notes
    -----
    Time O(moves * largest in-degree), about a microsecond per move; one array entry per move.
    """
    game = dag if isinstance(dag, Game) else Game.from_dag(dag, pebbling.variant)
    variant = Variant.parse(str(pebbling.variant))
    if game.variant is not variant:
        raise VerificationError(
            f"pebbling: it is for the variant {variant}, the game to replay it in is {game.variant}."
        )
    board = _Board(game, pebbling.capacity)
    red_weight = array("q")
    for step, move in enumerate(pebbling.moves, start=1):
        board.play(step, move)
        red_weight.append(board.red_weight)
    board.finish(len(pebbling.moves) + 1)
    cost = board.loads + board.stores
    if cost != pebbling.cost:
        raise VerificationError(
            f"pebbling: it claims the cost {pebbling.cost}, its moves cost {cost} "
            f"({board.loads} loaded, {board.stores} stored)."
        )
    return Replay(
        cost,
        board.loads,
        board.stores,
        board.load_moves,
        board.store_moves,
        board.computations,
        max(red_weight, default=0),
        red_weight,
    )


class _Board:
    """The state between two moves."""

    def __init__(self, game: Game, capacity: int) -> None:
        self.game = game
        self.capacity = capacity
        self.red = [False] * game.size
        self.blue = list(game.is_input)
        self.done = [False] * len(game.tasks)
        self.begun = list(game.is_input)  # holds or held a value: the next update needs it red
        self.left = [len(tasks) for tasks in game.updates]
        self.red_weight = self.loads = self.stores = 0
        self.load_moves = self.store_moves = self.computations = 0

    def play(self, step: int, move: Move) -> None:
        """One move, or IllegalMoveError."""
        op, node = move.op, move.node
        if op == "compute" or op == "slide":
            task = self.game.task_index.get(node)
            if task is None:
                what = "an input is never computed" if node in self.game.item_index else "the DAG has no such task"
                raise IllegalMoveError(step, "unknown-node", node, f"{op} needs a task, and {what}")
            self._compute(step, task, move)
            return
        item = self.game.item_index.get(node)
        if op not in ("load", "store", "delete"):
            raise IllegalMoveError(step, "unknown-op", str(node), f"there is no move {op!r}")
        if item is None:
            raise IllegalMoveError(
                step, "unknown-node", str(node), f"{op} needs a value, and the DAG has none of this name"
            )
        weight = self.game.weights[item]
        if op == "load":
            if self.red[item]:
                raise IllegalMoveError(step, "already-red", node, "load of a value that is in fast memory already")
            if not self.blue[item]:
                raise IllegalMoveError(step, "not-blue", node, "load of a value that is not in slow memory")
            self._add(step, node, weight)
            self.red[item] = True
            self.loads += weight
            self.load_moves += 1
        elif not self.red[item]:
            raise IllegalMoveError(step, "not-red", node, f"{op} of a value that is not in fast memory")
        elif op == "store":
            if self.blue[item]:
                raise IllegalMoveError(step, "already-blue", node, "store of a value that is in slow memory already")
            self.blue[item] = True
            self.stores += weight
            self.store_moves += 1
        else:
            self.red[item] = False
            self.red_weight -= weight

    def _compute(self, step: int, index: int, move: Move) -> None:
        game, node = self.game, move.node
        task = game.tasks[index]
        target = task.target
        if move.op == "slide" and not game.variant.sliding:
            raise IllegalMoveError(step, "unknown-op", node, f"the variant {game.variant} has no slide")
        if self.done[index] and not game.variant.recompute:
            raise IllegalMoveError(step, "computed-twice", node, f"the variant {game.variant} computes it once")
        for earlier in task.after:
            if not self.done[earlier]:
                raise IllegalMoveError(step, "order", node, f"{game.tasks[earlier].name!r} must be done before")
        for operand in task.operands:
            if not self.red[operand]:
                raise IllegalMoveError(step, "operand-not-red", node, f"its operand {game.names[operand]!r} is not red")
            if self.left[operand] > 0:
                self._refuse_incomplete(step, node, operand)
        grows = 0 if self.red[target] else game.weights[target]
        if len(game.updates[target]) == 1 and not game.is_input[target]:
            if self.red[target]:
                raise IllegalMoveError(
                    step, "already-red", node, "computation of a value that is in fast memory already"
                )
        elif self.begun[target] and not self.red[target]:
            raise IllegalMoveError(step, "cell-not-red", node, f"its cell {game.names[target]!r} is begun and not red")
        if move.op == "slide":
            source = game.item_index.get(move.source or "")
            if source is None or source not in task.operands:
                raise IllegalMoveError(
                    step, "source", node, f"it cannot slide from {move.source!r}, which is no operand of it"
                )
            grows -= game.weights[source]
            self._add(step, node, grows)
            self.red[source] = False
        else:
            self._add(step, node, grows)
        self.red[target] = True
        if not game.variant.recompute:
            self.blue[target] = False  # a cell's slow copy is out of date
        self.begun[target] = True
        self.computations += 1
        if not self.done[index]:
            self.done[index] = True
            self.left[target] -= 1

    def _add(self, step: int, node: str, weight: int) -> None:
        red_weight = self.red_weight + weight
        if red_weight > self.capacity:
            raise IllegalMoveError(
                step, "capacity", node, f"red values would weigh {red_weight}, capacity {self.capacity}"
            )
        self.red_weight = red_weight

    def _refuse_incomplete(self, step: int, node: str, operand: int) -> NoReturn:
        name = self.game.names[operand]
        raise IllegalMoveError(
            step, "incomplete", node, f"its operand {name!r} has {self.left[operand]} updates to come"
        )

    def finish(self, step: int) -> None:
        """The end: every output blue and complete, or IllegalMoveError at the step after the last."""
        for item, is_output in enumerate(self.game.is_output):
            if is_output and not (self.blue[item] and self.left[item] == 0):
                name = self.game.names[item]
                why = "is not in slow memory" if self.left[item] == 0 else f"has {self.left[item]} updates to come"
                raise IllegalMoveError(step, "output-not-blue", name, f"the moves end and this output {why}")

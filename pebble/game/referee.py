"""The referee: replays a pebbling move by move, by the rules of :mod:`pebble.game` and nothing else.

It imports no solver and no numerical library. The rules it names:

=================  ========================================================================
unknown-op         not one of the moves, or slide where the variant has none
unknown-node       no value (for compute and slide: no task) has this name
unknown-sm         no memory has this number, or none is named and there are several
not-blue           load of a value that is not in slow memory
already-red        load, copy or computation of a value that is in this fast memory
already-blue       store of a value that is in slow memory
not-red            store or delete of a value that is not in this fast memory
not-connected      copy between SMs that cannot reach each other, or from an SM to itself
source-not-red     copy of a value that the source does not hold
operand-not-red    computation with an operand out of this fast memory
incomplete         computation with an operand that still has updates to come
cell-not-red       update of an initialised (or initially blue) cell that is not in this fast memory
not-allowed        this memory may not do the task
computed-twice     the variant computes once, and the task was done before
order              a task that must come earlier is not done
source             slide from a value that is not an operand, or without one
capacity           the red values would weigh more than the capacity
output-not-blue    the moves end and an output is not in slow memory, complete
=================  ========================================================================
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pebble.errors import IllegalMoveError, VerificationError
from pebble.game.instance import Game, Variant
from pebble.game.moves import Cost, Move, Pebbling, as_cost

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class SmTraffic:
    """What happens at one SM.

    Attributes
    ----------
    loads, stores, copies : int
        Weight loaded into its memory, stored from it, copied into it.
    computations : int
        Number of them; a slide is one.
    peak : int
        Largest weight its memory holds at any moment.
    """

    loads: int
    stores: int
    copies: int
    computations: int
    peak: int

    def to_json(self) -> dict[str, int]:
        """Plain data."""
        return {
            "loads": self.loads,
            "stores": self.stores,
            "copies_in": self.copies,
            "tasks": self.computations,
            "peak": self.peak,
        }


@dataclass(frozen=True)
class Replay:
    """What a legal pebbling does.

    Attributes
    ----------
    cost : int or Fraction
        Loads + stores + omega * hops.
    hops : int
        Weight copied, times hops.
    per_sm : tuple of SmTraffic
        One for each memory.
    """

    cost: Cost
    hops: int
    per_sm: tuple[SmTraffic, ...]

    @property
    def loads(self) -> int:
        """Weight moved into fast memory."""
        return sum(sm.loads for sm in self.per_sm)

    @property
    def stores(self) -> int:
        """Weight moved into slow memory."""
        return sum(sm.stores for sm in self.per_sm)

    @property
    def peak(self) -> int:
        """Largest weight that a memory holds at any moment."""
        return max(sm.peak for sm in self.per_sm)


def replay(dag: nx.DiGraph[Hashable] | Game, pebbling: Pebbling) -> Replay:
    """Play a pebbling and check every move, the end, and the claimed cost.

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
    Time O(moves * largest in-degree), about a microsecond per move.
    """
    game = dag if isinstance(dag, Game) else Game.from_dag(dag, pebbling.variant)
    variant = Variant.parse(str(pebbling.variant))
    if game.variant is not variant:
        raise VerificationError(
            f"pebbling: it is for the variant {variant}, the game to replay it in is {game.variant}."
        )
    result = play(game, pebbling)
    if result.cost != pebbling.cost:
        raise VerificationError(
            f"pebbling: it claims the cost {pebbling.cost}, its moves cost {result.cost} "
            f"({result.loads} loaded, {result.stores} stored)."
        )
    return result


def play(game: Game, pebbling: Pebbling) -> Replay:
    """Play a pebbling and check every move and the end; what its moves cost is counted, not compared."""
    board = _Board(game, pebbling)
    for board.step, move in enumerate(pebbling.moves, start=1):
        board.play(move)
    board.step = len(pebbling.moves) + 1
    board.finish()
    cost = as_cost(sum(board.loads) + sum(board.stores) + pebbling.buffers.omega * board.hops)
    counts = zip(board.loads, board.stores, board.copies, board.computations, board.peak, strict=True)
    return Replay(cost, board.hops, tuple(SmTraffic(*of_sm) for of_sm in counts))


class _Board:
    """The state between two moves."""

    def __init__(self, game: Game, pebbling: Pebbling) -> None:
        self.game, self.buffers, self.net = game, pebbling.buffers, pebbling.buffers.net
        self.memories = self.buffers.memories
        self.capacity = self.buffers.memory_size(pebbling.capacity)
        self.red = [[False] * game.size for _ in range(self.memories)]
        self.blue = list(game.is_input)
        self.done = [False] * len(game.tasks)
        self.initialised = list(game.is_input)  # holds or held a value: the next update needs it red
        self.left = [len(tasks) for tasks in game.updates]
        self.weights = list(game.weights)  # as they are now: a cell that is initialised and not complete may weigh more
        self.loads, self.stores, self.copies, self.computations, self.held, self.peak = (
            [0] * self.memories for _ in range(6)
        )
        self.hops = self.step = 0

    def refuse(self, rule: str, node: str, detail: str) -> IllegalMoveError:
        return IllegalMoveError(self.step, rule, str(node), detail)

    def where(self, sm: int) -> str:
        return "fast memory" if self.memories == 1 else f"the memory of SM {sm}"

    def play(self, move: Move) -> None:
        """One move, or IllegalMoveError."""
        op, node, _, sm = move
        if sm is None and self.memories == 1:
            sm = 0
        if sm is None or not 0 <= sm < self.memories:
            at = "without an SM" if sm is None else f"at SM {sm}"
            raise self.refuse("unknown-sm", node, f"{op} {at}, expected an SM from 0 to {self.memories - 1}")
        if op == "compute" or op == "slide":
            task = self.game.task_index.get(node)
            if task is None:
                what = "an input is never computed" if node in self.game.item_index else "the DAG has no such task"
                raise self.refuse("unknown-node", node, f"{op} needs a task, and {what}")
            self.compute(task, move, sm)
            return
        if op not in ("load", "store", "delete", "copy"):
            raise self.refuse("unknown-op", node, f"there is no move {op!r}")
        item = self.game.item_index.get(node)
        if item is None:
            raise self.refuse("unknown-node", node, f"{op} needs a value, and the DAG has none of this name")
        red, weight = self.red[sm], self.weights[item]
        if op == "load" or op == "copy":
            if red[item]:
                raise self.refuse("already-red", node, f"{op} of a value that is in {self.where(sm)} already")
            if op == "copy":
                self.copy(item, move, sm)
            elif not self.blue[item]:
                raise self.refuse("not-blue", node, "load of a value that is not in slow memory")
            else:
                self.loads[sm] += weight
            self.add(sm, node, weight)
            red[item] = True
        elif not red[item]:
            raise self.refuse("not-red", node, f"{op} of a value that is not in {self.where(sm)}")
        elif op == "delete":
            red[item] = False
            self.held[sm] -= weight
        elif self.blue[item]:
            raise self.refuse("already-blue", node, "store of a value that is in slow memory already")
        else:
            self.blue[item] = True
            self.stores[sm] += weight

    def copy(self, item: int, move: Move, sm: int) -> None:
        source, weight = move.source, self.weights[item]
        if not isinstance(source, int) or not 0 <= source < self.memories:
            raise self.refuse("unknown-sm", move.node, f"copy from SM {source}, expected 0 to {self.memories - 1}")
        hops = self.net.hops(source, sm) if self.buffers.kind == "connected" and source != sm else None
        if hops is None:
            raise self.refuse("not-connected", move.node, f"{self.buffers}: no copy from SM {source} to SM {sm}")
        if not self.red[source][item]:
            raise self.refuse("source-not-red", move.node, f"copy from SM {source}, which does not hold it")
        self.copies[sm] += weight
        self.hops += weight * hops

    def compute(self, index: int, move: Move, sm: int) -> None:
        game, node, red = self.game, move.node, self.red[sm]
        task = game.tasks[index]
        target = task.target
        if move.op == "slide" and not game.variant.sliding:
            raise self.refuse("unknown-op", node, f"the variant {game.variant} has no slide")
        if not game.may_do(index, sm):
            raise self.refuse("not-allowed", node, f"SM {sm} may not do it")
        if self.done[index] and not game.variant.recompute:
            raise self.refuse("computed-twice", node, f"the variant {game.variant} computes it once")
        for earlier in task.after:
            if not self.done[earlier]:
                raise self.refuse("order", node, f"{game.tasks[earlier].name!r} must be done before")
        for operand in task.operands:
            if not red[operand]:
                raise self.refuse(
                    "operand-not-red", node, f"its operand {game.names[operand]!r} is not in {self.where(sm)}"
                )
            if self.left[operand] > 0:
                name = game.names[operand]
                raise self.refuse("incomplete", node, f"its operand {name!r} has {self.left[operand]} updates to come")
        if len(game.updates[target]) == 1 and not game.is_input[target]:
            if red[target]:
                raise self.refuse("already-red", node, f"computation of a value that is in {self.where(sm)} already")
        elif self.initialised[target] and not red[target]:
            raise self.refuse(
                "cell-not-red", node, f"its cell {game.names[target]!r} is initialised and not in {self.where(sm)}"
            )
        grows = game.partial_weights[target] - (self.weights[target] if red[target] else 0)
        if move.op == "slide":
            source = game.item_index.get(str(move.source))
            if source is None or source not in task.operands:
                raise self.refuse("source", node, f"it cannot slide from {move.source!r}, which is no operand of it")
            grows -= self.weights[source]
            red[source] = False
        self.add(sm, node, grows)
        if not game.variant.recompute:  # all other copies of a cell are out of date
            self.blue[target] = False
            for other in range(self.memories):
                if other != sm and self.red[other][target]:
                    self.red[other][target] = False
                    self.held[other] -= self.weights[target]
        red[target] = True
        self.initialised[target] = True
        self.computations[sm] += 1
        if not self.done[index]:
            self.done[index] = True
            self.left[target] -= 1
        self.weights[target] = game.partial_weights[target] if self.left[target] else game.weights[target]
        self.held[sm] -= game.partial_weights[target] - self.weights[target]  # complete: what it ends as

    def add(self, sm: int, node: str, weight: int) -> None:
        held = self.held[sm] + weight
        if held > self.capacity:
            where = "red values" if self.memories == 1 else f"what SM {sm} holds"
            raise self.refuse("capacity", node, f"{where} would weigh {held}, capacity {self.capacity}")
        self.held[sm] = held
        if held > self.peak[sm]:
            self.peak[sm] = held

    def finish(self) -> None:
        """The end: every output blue and complete, or IllegalMoveError at the step after the last."""
        for item, is_output in enumerate(self.game.is_output):
            if is_output and not (self.blue[item] and self.left[item] == 0):
                name = self.game.names[item]
                why = "is not in slow memory" if self.left[item] == 0 else f"has {self.left[item]} updates to come"
                raise self.refuse("output-not-blue", name, f"the moves end and this output {why}")

"""A second referee, for games in which every task is done once and nothing slides.

It shares no code with :mod:`pebble.game.referee`, so that each can check the other.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from pebble.errors import IllegalMoveError, VerificationError
from pebble.game import Game, Move, Pebbling

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class Played:
    """What a legal pebbling does.

    Attributes
    ----------
    cost : Fraction
        Loads + stores + omega * hops of the copies.
    loads, stores, copies : tuple of int
        Weight per SM: loaded into it, stored from it, copied into it.
    hops : int
        Weight copied, times hops.
    tasks : tuple of int
        Computations per SM.
    peak : tuple of int
        Largest weight held by each memory.
    """

    cost: Fraction
    loads: tuple[int, ...]
    stores: tuple[int, ...]
    copies: tuple[int, ...]
    hops: int
    tasks: tuple[int, ...]
    peak: tuple[int, ...]


def replay_again(dag: nx.DiGraph[Hashable] | Game, pebbling: Pebbling) -> Played:
    """Play a pebbling and check every move, the end, and the claimed cost.

    Raises
    ------
    IllegalMoveError
        The first move that breaks a rule, with its step, rule and node.
    VerificationError
        Another variant than the game's, or another cost than the moves have.
    InputError
        The DAG is not usable, or its variant has no game of several memories.
    """
    game = dag if isinstance(dag, Game) else Game.from_dag(dag, pebbling.variant)
    if game.variant is not pebbling.variant:
        raise VerificationError(f"pebbling: it is for {pebbling.variant}, the game to replay it in is {game.variant}.")
    board = _Board(game, pebbling)
    for step, move in enumerate(pebbling.moves, start=1):
        board.step = step
        board.play(move)
    board.finish(len(pebbling.moves) + 1)
    if board.cost != pebbling.cost:
        raise VerificationError(f"pebbling: it claims the cost {pebbling.cost}, its moves cost {board.cost}.")
    return Played(
        board.cost,
        tuple(board.loads),
        tuple(board.stores),
        tuple(board.copies),
        board.hops,
        tuple(board.tasks),
        tuple(board.peak),
    )


class _Board:
    def __init__(self, game: Game, pebbling: Pebbling) -> None:
        self.game, self.buffers = game, pebbling.buffers
        self.size = self.buffers.memory_size(pebbling.capacity)
        count = self.buffers.memories
        self.red: list[set[int]] = [set() for _ in range(count)]
        self.held = [0] * count
        self.peak = [0] * count
        self.blue = {i for i, blue in enumerate(game.is_input) if blue}
        self.initialised = set(self.blue)
        self.left = [len(updates) for updates in game.updates]
        self.done: set[int] = set()
        self.loads, self.stores, self.copies = [0] * count, [0] * count, [0] * count
        self.tasks = [0] * count
        self.hops = 0
        self.cost = Fraction(0)
        self.step = 0

    def refuse(self, rule: str, node: str, detail: str) -> IllegalMoveError:
        return IllegalMoveError(self.step, rule, node, detail)

    def play(self, move: Move) -> None:
        op, node, source, sm = move
        sm = 0 if sm is None else sm
        if sm not in range(len(self.red)):
            raise self.refuse("unknown-sm", node, f"{op} at SM {sm}, there are {len(self.red)} memories")
        if op == "compute":
            task = self.game.task_index.get(node)
            if task is None:
                raise self.refuse("unknown-node", node, "the DAG has no such task")
            self.compute(task, node, sm)
            return
        item = self.game.item_index.get(node)
        if op not in ("load", "store", "delete", "copy"):
            raise self.refuse("unknown-op", node, f"there is no move {op!r}")
        if item is None:
            raise self.refuse("unknown-node", node, f"{op} needs a value, and the DAG has none of this name")
        weight = self.game.weights[item]
        if op in ("load", "copy"):
            if item in self.red[sm]:
                raise self.refuse("already-red", node, f"{op} of a value that SM {sm} holds already")
            if op == "load":
                if item not in self.blue:
                    raise self.refuse("not-blue", node, "load of a value that is not in slow memory")
                self.loads[sm] += weight
                self.cost += weight
            else:
                self.copy(item, node, sm, source)
            self.add(item, node, sm)
            return
        if item not in self.red[sm]:
            raise self.refuse("not-red", node, f"{op} of a value that SM {sm} does not hold")
        if op == "delete":
            self.drop(item, sm)
            return
        if item in self.blue:
            raise self.refuse("already-blue", node, "store of a value that is in slow memory already")
        self.blue.add(item)
        self.stores[sm] += weight
        self.cost += weight

    def copy(self, item: int, node: str, sm: int, source: int | None) -> None:
        if source is None or source not in range(len(self.red)):
            raise self.refuse("unknown-sm", node, f"copy from SM {source}, there are {len(self.red)} memories")
        price = self.buffers.copy_cost(source, sm)
        hops = self.buffers.net.hops(source, sm)
        if price is None or hops is None:
            raise self.refuse("not-connected", node, f"{self.buffers}: no copy from SM {source} to SM {sm}")
        if item not in self.red[source]:
            raise self.refuse("source-not-red", node, f"copy from SM {source}, which does not hold it")
        weight = self.game.weights[item]
        self.copies[sm] += weight
        self.hops += weight * hops
        self.cost += weight * price

    def compute(self, index: int, node: str, sm: int) -> None:
        game, task = self.game, self.game.tasks[index]
        if index in self.done:
            raise self.refuse("computed-twice", node, f"the variant {game.variant} computes it once")
        for earlier in task.after:
            if earlier not in self.done:
                raise self.refuse("order", node, f"{game.tasks[earlier].name!r} must be done before")
        for operand in task.operands:
            if operand not in self.red[sm]:
                raise self.refuse("operand-not-red", node, f"SM {sm} does not hold {game.names[operand]!r}")
            if self.left[operand]:
                raise self.refuse("incomplete", node, f"{game.names[operand]!r} has updates to come")
        target = task.target
        if target in self.initialised and target not in self.red[sm]:
            raise self.refuse(
                "cell-not-red", node, f"its cell {game.names[target]!r} is begun, SM {sm} does not hold it"
            )
        # all other copies are out of date
        for other, held in enumerate(self.red):
            if other != sm and target in held:
                self.drop(target, other)
        self.blue.discard(target)
        if target not in self.red[sm]:
            self.add(target, node, sm)
        self.initialised.add(target)
        self.done.add(index)
        self.left[target] -= 1
        self.tasks[sm] += 1

    def add(self, item: int, node: str, sm: int) -> None:
        held = self.held[sm] + self.game.weights[item]
        if held > self.size:
            raise self.refuse("capacity", node, f"SM {sm} would hold {held}, capacity {self.size}")
        self.red[sm].add(item)
        self.held[sm] = held
        self.peak[sm] = max(self.peak[sm], held)

    def drop(self, item: int, sm: int) -> None:
        self.red[sm].discard(item)
        self.held[sm] -= self.game.weights[item]

    def finish(self, step: int) -> None:
        for item, is_output in enumerate(self.game.is_output):
            if is_output and (item not in self.blue or self.left[item]):
                why = f"has {self.left[item]} updates to come" if self.left[item] else "is not in slow memory"
                name = self.game.names[item]
                raise IllegalMoveError(step, "output-not-blue", name, f"the moves end and this output {why}")

"""A schedule in normal form: the order of the tasks, and what stays red between neighbours.

Where every task is done once, moves that differ only in ways that never pay can be set aside: load a value right
before a task that needs it, evict right after a task, store a value when it is evicted and still needed (an output
when it is complete), drop at once what is not needed again. What is left is a plan, and ``write_moves`` turns one
into moves.
"""

from __future__ import annotations

from dataclasses import dataclass

from pebble.game import Game, Move, Pebbling


@dataclass(frozen=True)
class Plan:
    """One schedule of a game in which every task is done once.

    ``keep[p]``: items that stay red from the task at position p to the next. ``sources[p]``: the operand whose pebble
    the result at position p takes over, if it slides.
    """

    order: tuple[int, ...]
    keep: tuple[frozenset[int], ...]
    sources: tuple[int | None, ...]


def write_moves(game: Game, plan: Plan) -> tuple[Move, ...]:
    """The moves of a plan; the referee decides whether they are legal."""
    moves: list[Move] = []
    red: set[int] = set()
    blue = list(game.is_input)
    initialised = list(game.is_input)
    updates_left = [len(tasks) for tasks in game.updates]
    touches_left = [len(u) + len(t) for u, t in zip(game.uses, game.updates, strict=True)]

    def save(item: int) -> None:
        if touches_left[item] and not blue[item]:
            moves.append(Move("store", game.names[item]))
            blue[item] = True

    for position, t in enumerate(plan.order):
        task = game.tasks[t]
        for item in (*task.operands, *((task.target,) if initialised[task.target] else ())):
            if item not in red:
                moves.append(Move("load", game.names[item]))
                red.add(item)
        for item in (*task.operands, task.target):
            touches_left[item] -= 1
        source = plan.sources[position]
        if source is None:
            moves.append(Move("compute", task.name))
        else:
            save(source)
            moves.append(Move("slide", task.name, game.names[source]))
            red.discard(source)
        red.add(task.target)
        initialised[task.target], blue[task.target] = True, False
        updates_left[task.target] -= 1
        if game.is_output[task.target] and not updates_left[task.target]:
            moves.append(Move("store", game.names[task.target]))
            blue[task.target] = True
        for item in sorted(red - plan.keep[position]):
            save(item)
            moves.append(Move("delete", game.names[item]))
            red.discard(item)
    return tuple(moves)


def read_plan(game: Game, pebbling: Pebbling) -> Plan | None:
    """The plan of a legal pebbling that does every task once, or None when it does one twice.

    The plan costs at most as much: what a value's stay in fast memory does not need is cut off.
    """
    order: list[int] = []
    sources: list[int | None] = []
    keep: list[set[int]] = [set() for _ in game.tasks]
    last_touch: dict[int, int] = {}  # red items only: position of the last task of this stay that touched it
    done: set[int] = set()
    for move in pebbling.moves:
        if move.op in ("compute", "slide"):
            t = game.task_index[move.node]
            if t in done:
                return None
            done.add(t)
            task, position = game.tasks[t], len(order)
            for item in (*task.operands, task.target):
                for between in range(last_touch.get(item, position), position):
                    keep[between].add(item)
                last_touch[item] = position
            order.append(t)
            sources.append(game.item_index[str(move.source)] if move.op == "slide" else None)
            if sources[-1] is not None:
                last_touch.pop(sources[-1])
        elif move.op == "delete":
            last_touch.pop(game.item_index[move.node], None)
    if len(order) < len(game.tasks):
        return None
    return Plan(tuple(order), tuple(map(frozenset, keep)), tuple(sources))

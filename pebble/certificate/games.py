"""The pebble game of a certificate: what is pebbled, and the replay of a pebbling by the rules alone.

Inputs are blue (in slow memory) at the start, nothing is red (in fast memory); at the end every output is blue and
complete. At every moment the red values weigh at most the capacity. A value that several tasks update, or an input
that a task updates, is a cell: its first update begins it, free, unless it starts blue.

Every value is an output or an operand of some task, and tasks can be put in an order, so that some output needs each
value and each task: every pebbling does every task and loads every input that a task uses. Games where this is not so
are refused, and the lower bounds stand on it.

========  ==========================================================================================
load      v is blue and not red; it becomes red. Costs its weight.
store     v is red and not blue; it becomes blue. Costs its weight.
delete    v is red; it stops being red.
compute   a task: its operands are red and complete, tasks that must come before are done, and its target
          is red if it is an initialised cell, and not red if it is no cell; the target becomes red. In games
          without recomputation each task is done once, and the blue copy of its target is out of date.
slide     (sliding games) compute, where the target takes the place of an operand.
========  ==========================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .reading import RefusedError, array, choice, equal, fields, integer, show, text

VARIANTS = ("one-shot", "one-shot-sliding", "recompute", "recompute-sliding", "in-place")
MAX_VALUES = 100_000
MAX_TASKS = 100_000
MAX_MOVES = 1_000_000
MAX_OPERANDS = 50_000_000  # of all computations of a pebbling, with the tasks that must come before


@dataclass(frozen=True)
class Task:
    """One computation: operands and target by the number of the value, and tasks that come first."""

    name: str
    target: int
    operands: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True)
class Game:
    """A game: values with their weights, which are blue at the start, which must be blue at the end, and tasks."""

    variant: str
    capacity: int
    names: tuple[str, ...]
    weights: tuple[int, ...]
    is_input: tuple[bool, ...]
    is_output: tuple[bool, ...]
    tasks: tuple[Task, ...]

    @property
    def updates(self) -> list[list[int]]:
        """Tasks of each value."""
        results: list[list[int]] = [[] for _ in self.names]
        for number, task in enumerate(self.tasks):
            results[task.target].append(number)
        return results

    @property
    def compulsory(self) -> int:
        """Inputs that a task needs are loaded; outputs that a task computes are stored."""
        needed = {x for task in self.tasks for x in (*task.operands, task.target)}
        computed = {task.target for task in self.tasks}
        total = 0
        for x, weight in enumerate(self.weights):
            total += weight if self.is_input[x] and x in needed else 0
            total += weight if self.is_output[x] and x in computed else 0
        return total


def read_game(value: Any, at: str) -> Game:
    """The game of a statement."""
    fields(value, at, ("variant", "capacity", "values", "tasks"))
    variant = choice(value["variant"], f"{at}.variant", VARIANTS)
    capacity = integer(value["capacity"], f"{at}.capacity", 1)
    names, weights, is_input, is_output = [], [], [], []
    for i, entry in enumerate(array(value["values"], f"{at}.values", 1, MAX_VALUES)):
        where = f"{at}.values[{i}]"
        name, weight, role = array(entry, where, 3, 3)
        names.append(text(name, where))
        weights.append(integer(weight, where, 1))
        role = choice(role, where, ("input", "output", "input and output", "between"))
        is_input.append("input" in role)
        is_output.append("output" in role)
    tasks = []
    entries = array(value["tasks"], f"{at}.tasks", 0, MAX_TASKS)
    for i, entry in enumerate(entries):
        where = f"{at}.tasks[{i}]"
        name, target, operands, after = array(entry, where, 4, 4)
        last = len(names) - 1
        own = integer(target, where, 0, last)
        inside = tuple(integer(x, where, 0, last) for x in array(operands, where, 0, MAX_VALUES))
        first = tuple(integer(x, where, 0, len(entries) - 1) for x in array(after, where, 0, MAX_TASKS))
        if own in inside or len(set(inside)) != len(inside):
            raise RefusedError(where, "operands are different values, none of them the target")
        if len(set(first)) != len(first):
            raise RefusedError(where, "a task that comes first is named twice")
        tasks.append(Task(text(name, where), own, inside, first))
    if len(set(names)) != len(names) or len({task.name for task in tasks}) != len(tasks):
        raise RefusedError(at, "two values or two tasks have the same name")
    roles = tuple(is_input), tuple(is_output)
    game = Game(variant, capacity, tuple(names), tuple(weights), *roles, tuple(tasks))
    _check_sense(game, at)
    return game


def _check_sense(game: Game, at: str) -> None:
    """Every value can be had and is needed, so every task must be done."""
    used = {x for task in game.tasks for x in task.operands}
    for x, updates in enumerate(game.updates):
        where = f"{at}.values[{x}]"
        if not updates and not game.is_input[x]:
            raise RefusedError(where, "nothing computes this value, and it is no input")
        if x not in used and not game.is_output[x]:
            raise RefusedError(where, "no output needs this value, so a pebbling may leave it out")
        if game.variant != "in-place" and (len(updates) > 1 or (updates and game.is_input[x])):
            raise RefusedError(where, f"the game {game.variant} has no cells")
    for number, task in enumerate(game.tasks):
        if any(game.tasks[first].target != task.target for first in task.after):
            raise RefusedError(f"{at}.tasks[{number}]", "only updates of one cell have an order among themselves")
    if len(task_order(game)) != len(game.tasks):
        raise RefusedError(f"{at}.tasks", "the computations cannot be put in order")


def task_order(game: Game) -> list[int]:
    """Tasks by number, each after all updates of its operands and the tasks that come first; short if there is a cycle.

    A computed value is a step of its own, after the last of its updates, so this takes O(size of the game).
    """
    tasks = len(game.tasks)
    updates = game.updates
    waiting = [0] * tasks + [len(u) for u in updates]
    then: list[list[int]] = [[] for _ in waiting]
    for number, task in enumerate(game.tasks):
        before = [tasks + x for x in task.operands if updates[x]] + list(task.after)
        waiting[number] = len(before)
        for step in before:
            then[step].append(number)
        then[number].append(tasks + task.target)
    ready = [number for number in range(tasks) if not waiting[number]]
    order = []
    while ready:
        step = ready.pop()
        if step < tasks:
            order.append(step)
        for following in then[step]:
            waiting[following] -= 1
            if not waiting[following]:
                ready.append(following)
    return order


def replay(game: Game, moves: Any, at: str) -> int:
    """Play the moves and return their cost."""
    value_of = {name: x for x, name in enumerate(game.names)}
    task_of = {task.name: t for t, task in enumerate(game.tasks)}
    updates = game.updates
    red: set[int] = set()
    blue = {x for x, start in enumerate(game.is_input) if start}
    initialised = set(blue)
    done: set[int] = set()
    left = [len(ts) for ts in updates]
    cost = held = looked = 0
    recompute, sliding = game.variant.startswith("recompute"), game.variant.endswith("sliding")
    for step, move in enumerate(array(moves, at, 0, MAX_MOVES)):
        where = f"{at}[{step}]"
        op, name, *source = (text(word, where) for word in array(move, where, 2, 3))
        if bool(source) != (op == "slide"):
            raise RefusedError(where, "a slide, and no other move, names an operand")
        if op in ("compute", "slide"):
            number = task_of.get(name)
            if number is None or (op == "slide" and not sliding):
                raise RefusedError(where, f"there is no such move as {op} {name!r} in this game")
            task = game.tasks[number]
            looked += len(task.operands) + len(task.after)
            if looked > MAX_OPERANDS:
                raise RefusedError(where, f"the computations so far have more than {MAX_OPERANDS:,} operands")
            x = task.target
            cell = len(updates[x]) > 1 or game.is_input[x]
            if number in done and not recompute:
                raise RefusedError(where, f"{name!r} is computed twice")
            if not all(first in done for first in task.after):
                raise RefusedError(where, f"{name!r} comes before a task that must be done first")
            if not all(y in red and left[y] == 0 for y in task.operands):
                raise RefusedError(where, f"an operand of {name!r} is not complete in fast memory")
            if (x in red) != (cell and x in initialised):
                raise RefusedError(
                    where, f"the target of {name!r} is red and no initialised cell, or an initialised cell and not red"
                )
            if source:
                taken = value_of.get(source[0], -1)
                if taken not in task.operands:
                    raise RefusedError(where, f"{source[0]!r} is no operand of {name!r}")
                red.discard(taken)
                held -= game.weights[taken]
            if x not in red:
                held += game.weights[x]
            red.add(x)
            initialised.add(x)
            if not recompute:
                blue.discard(x)
            if number not in done:
                done.add(number)
                left[x] -= 1
        else:
            value = value_of.get(name)
            if value is None or op not in ("load", "store", "delete"):
                raise RefusedError(where, f"there is no such move as {show(op)} {show(name)}")
            ready = {"load": value in blue and value not in red, "delete": value in red}
            if not ready.get(op, value in red and value not in blue):
                raise RefusedError(where, f"{op} of {name!r} is against the rules")
            if op == "delete":
                red.discard(value)
                held -= game.weights[value]
            else:
                cost += game.weights[value]
                (red if op == "load" else blue).add(value)
                held += game.weights[value] if op == "load" else 0
        if held > game.capacity:
            raise RefusedError(where, f"red values weigh {held}, the capacity is {game.capacity}")
    for x, output in enumerate(game.is_output):
        if output and not (x in blue and left[x] == 0):
            raise RefusedError(at, f"at the end the output {game.names[x]!r} is not complete in slow memory")
    return cost


def check_pebbling(game: Game, claim: dict[str, Any], at: str) -> int:
    """Replay a claimed pebbling; its cost."""
    fields(claim, at, ("claim", "cost", "moves"))
    cost = replay(game, claim["moves"], f"{at}.moves")
    equal(claim["cost"], cost, f"{at}.cost", "cost of the moves")
    return cost

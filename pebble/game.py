"""The red-blue pebble game: variants, moves, pebblings, and a DAG as solvers see it.

A red pebble is a value in fast memory, a blue one a value in slow memory. At the start the inputs are blue
and nothing is red; at the end every output must be blue. At every moment the red values weigh at most the
capacity. The cost of a pebbling is the weight it loads plus the weight it stores. The moves:

========  =========================================================================================
load      v is blue and not red, and fits beside what is red; it becomes red. Costs its weight.
store     v is red and not blue; it becomes blue too. Costs its weight.
compute   every operand is red and the result fits beside what is red; the result becomes red. Free.
slide     (sliding variants) like compute, but the result takes over the pebble of one operand, the
          ``source``: that operand stops being red, and only then must the result fit. Free.
delete    v is red; it stops being red. Free.
========  =========================================================================================

Every move must change something: loading what is red or storing what is blue is illegal. A delete or a slide
that loses the only copy of a value is itself legal; what later needs that value is not.

Every value is an output or an operand of some task, so that some output needs each value and each task, and every
pebbling does every task and loads every input that a task uses; a game with a value that no output needs is refused.
Lower bounds stand on this sentence. An input that is an output and no operand is where it must be, and costs nothing.

The variants:

- ``one-shot``: every non-input is computed at most once. ``one-shot-sliding`` adds slide.
- ``recompute``: a value may be computed any number of times while it is not red. ``recompute-sliding`` adds
  slide.
- ``in-place``: one-shot, with accumulator cells. A cell is updated by several tasks, each done at most once,
  in any order that ``Task.after`` allows. ``compute`` names the task. A task needs its operands complete and
  red, and its cell red, except that the first update allocates the cell (free, but it must fit) unless the
  cell starts blue. An update invalidates the blue copy of its cell, so an unfinished cell that is evicted
  costs a store and a load. A cell is complete, and may be an operand, when all its updates are done. A value
  with a single task is an ordinary value, so on a DAG without cells ``in-place`` is ``one-shot``.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from pebble.errors import InfeasibleError, InputError, UnknownNameError

if TYPE_CHECKING:
    import networkx as nx

Op = Literal["load", "store", "compute", "delete", "slide"]
OPS: tuple[Op, ...] = ("load", "store", "compute", "delete", "slide")


class Variant(StrEnum):
    """Which game is played; every result names its own."""

    ONE_SHOT = "one-shot"
    ONE_SHOT_SLIDING = "one-shot-sliding"
    RECOMPUTE = "recompute"
    RECOMPUTE_SLIDING = "recompute-sliding"
    IN_PLACE = "in-place"

    def __str__(self) -> str:
        return self.value

    @property
    def sliding(self) -> bool:
        """Whether a result may take over the pebble of an operand."""
        return self in (Variant.ONE_SHOT_SLIDING, Variant.RECOMPUTE_SLIDING)

    @property
    def recompute(self) -> bool:
        """Whether a value may be computed more than once."""
        return self in (Variant.RECOMPUTE, Variant.RECOMPUTE_SLIDING)

    @classmethod
    def parse(cls, name: str) -> Variant:
        """The variant of that name.

        Raises
        ------
        UnknownNameError
            No such variant; the message offers the nearest.
        """
        try:
            return cls(name)
        except ValueError:
            raise UnknownNameError("variant", name, [v.value for v in cls], "pebble solve --help") from None

    @classmethod
    def default_for(cls, dag: nx.DiGraph[Hashable]) -> Variant:
        """``in-place`` for a DAG with accumulator tasks, ``one-shot`` for any other."""
        has_tasks = any("accumulator" in data for _, data in dag.nodes(data=True))
        return cls.IN_PLACE if has_tasks else cls.ONE_SHOT


class Move(NamedTuple):
    """One move.

    ``node`` is the value moved or, for compute and slide, the task, which has the name of the value it
    computes unless that is a cell; ``source`` is the operand whose pebble a slide takes.
    """

    op: Op
    node: str
    source: str | None = None

    def to_json(self) -> list[str]:
        """``[op, node]``, for a slide ``[op, node, source]``."""
        return [self.op, self.node] if self.source is None else [self.op, self.node, self.source]


@dataclass(frozen=True)
class Pebbling:
    """A solution: what is claimed, and the moves that prove it.

    Attributes
    ----------
    variant : Variant
    capacity : int
        Weight of red values allowed at any moment; pebbles where all weights are 1.
    moves : tuple of Move
    cost : int
        Claimed weight of loads plus weight of stores.
    """

    variant: Variant
    capacity: int
    moves: tuple[Move, ...]
    cost: int


class Task(NamedTuple):
    """One computation. Computes item ``target``, or updates it when it is a cell.

    Attributes
    ----------
    name : str
        What a compute move calls it.
    operands : tuple of int
        Items that must be red and complete, ascending; the target is never among them. A task that only works
        on its cell, such as an activation, has none.
    target : int
        The item.
    after : tuple of int
        Tasks of the same cell that must be done before (``O /= r`` comes after every ``O += P V``).
    """

    name: str
    operands: tuple[int, ...]
    target: int
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Game:
    """A computation DAG with integer indices, for one variant: items hold pebbles, tasks compute items.

    Items and tasks are each in topological order, deterministic for the DAG. In a game without cells every
    non-input has exactly one task, of the same name.

    Attributes
    ----------
    variant : Variant
    names : tuple of str
        Items; all the tuples below but ``tasks`` are indexed alike.
    weights : tuple of int
        Room and transfer cost of each item, at least 1.
    is_input : tuple of bool
        Blue at the start. A cell may be (C += A B): its first update then needs it red like any other.
    is_output : tuple of bool
        Must be complete and blue at the end.
    tasks : tuple of Task

    Raises
    ------
    InputError
        Two values or tasks have one name; tasks are out of order; a value that is no input and that no task computes,
        or that no output needs; a cell in a variant that has none.
    """

    variant: Variant
    names: tuple[str, ...]
    weights: tuple[int, ...]
    is_input: tuple[bool, ...]
    is_output: tuple[bool, ...]
    tasks: tuple[Task, ...]

    def __post_init__(self) -> None:
        if len(self.item_index) != self.size or len(self.task_index) != len(self.tasks):
            raise InputError("game: two values or two tasks have the same name; give each a name of its own.")
        for t, task in enumerate(self.tasks):
            for operand in task.operands:
                if operand == task.target or (self.updates[operand] and self.updates[operand][-1] >= t):
                    raise InputError(
                        f"game: task {task.name} comes before its operand {self.names[operand]} is computed; "
                        "give tasks in topological order."
                    )
            if any(first >= t or self.tasks[first].target != task.target for first in task.after):
                raise InputError(
                    f"game: task {task.name} comes after a task that is not an earlier one of its own cell; "
                    "only updates of one cell are ordered this way."
                )
        for name, blue, wanted, updates, uses in zip(
            self.names, self.is_input, self.is_output, self.updates, self.uses, strict=True
        ):
            if not (blue or updates):
                raise InputError(f"game: nothing computes the value {name}; call it an input, or give it a task.")
            if not (wanted or uses):
                raise InputError(f"game: no output needs the value {name}; remove it, or mark it as an output.")
            if self.variant is not Variant.IN_PLACE and (len(updates) > 1 or (blue and updates)):
                raise InputError(f"game: {name} is a cell, and the variant {self.variant} has none; play it in-place.")

    @classmethod
    def from_dag(cls, dag: nx.DiGraph[Hashable], variant: Variant | str | None = None) -> Game:
        """Read a DAG; :mod:`pebble.dag.validate` says how a DAG is written.

        Parameters
        ----------
        dag : networkx.DiGraph
        variant : Variant or str, optional
            By default ``Variant.default_for(dag)``.

        Raises
        ------
        InputError
            The DAG is not usable, or has accumulator tasks and the variant is not ``in-place``.

        Notes
        -----
        Time O((V + E) log V).
        """
        from pebble.dag.validate import validate_dag

        validate_dag(dag)
        default = Variant.default_for(dag)
        chosen = default if variant is None else Variant.parse(str(variant))
        if default is Variant.IN_PLACE and chosen is not Variant.IN_PLACE:
            raise InputError(
                f"variant {chosen}: this DAG updates accumulators in place; play it with in-place, "
                "or build it with every partial sum a value of its own (--form chain)."
            )
        data = dag.nodes
        order = _topological(dag)
        items = [node for node in order if "accumulator" not in data[node]]
        item_of = {node: i for i, node in enumerate(items)}
        # a computed value is its own task; a cell is not a task, its updates are
        computing = [n for n in order if "accumulator" in data[n] or (dag.pred[n] and not _is_cell(dag, n))]
        task_of = {node: t for t, node in enumerate(computing)}
        tasks = tuple(
            Task(
                str(node),
                tuple(sorted(item_of[p] for p in dag.pred[node] if p in item_of)),
                item_of[data[node].get("accumulator", node)],
                tuple(sorted(task_of[p] for p in dag.pred[node] if p not in item_of)),
            )
            for node in computing
        )
        return cls(
            chosen,
            tuple(str(node) for node in items),
            tuple(int(data[node].get("weight", 1)) for node in items),
            tuple(not dag.pred[node] or bool(data[node].get("initial", False)) for node in items),
            tuple(bool(data[node].get("output", not dag.succ[node])) for node in items),
            tasks,
        )

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self.names)

    @cached_property
    def updates(self) -> tuple[tuple[int, ...], ...]:
        """Per item, the tasks that compute or update it: none for an input, several only for a cell."""
        found: list[list[int]] = [[] for _ in self.names]
        for t, task in enumerate(self.tasks):
            found[task.target].append(t)
        return tuple(map(tuple, found))

    @cached_property
    def uses(self) -> tuple[tuple[int, ...], ...]:
        """Per item, the tasks that have it as an operand."""
        found: list[list[int]] = [[] for _ in self.names]
        for t, task in enumerate(self.tasks):
            for operand in task.operands:
                found[operand].append(t)
        return tuple(map(tuple, found))

    @cached_property
    def preds(self) -> tuple[tuple[int, ...], ...]:
        """Per item, the operands of all its tasks, ascending."""
        return tuple(tuple(sorted({o for t in ts for o in self.tasks[t].operands})) for ts in self.updates)

    @cached_property
    def succs(self) -> tuple[tuple[int, ...], ...]:
        """Per item, the items computed from it, ascending."""
        return tuple(tuple(sorted({self.tasks[t].target for t in ts})) for ts in self.uses)

    @cached_property
    def item_index(self) -> dict[str, int]:
        """Index of each item by name."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def task_index(self) -> dict[str, int]:
        """Index of each task by name."""
        return {task.name: t for t, task in enumerate(self.tasks)}

    @property
    def has_cells(self) -> bool:
        """Whether some item is updated by several tasks, or updated from an initial value."""
        return any(len(ts) > 1 or (ts and blue) for ts, blue in zip(self.updates, self.is_input, strict=True))

    @cached_property
    def compulsory(self) -> int:
        """Weight that any pebbling moves: used inputs are loaded, outputs computed here are stored."""
        loads = sum(
            w
            for w, blue, u, t in zip(self.weights, self.is_input, self.uses, self.updates, strict=True)
            if blue and (u or t)
        )
        return loads + sum(
            w for w, out, ts in zip(self.weights, self.is_output, self.updates, strict=True) if out and ts
        )


def minimum_capacity(game: Game) -> int:
    """The least capacity at which a pebbling exists.

    The operands of a task and its result must be red together; in a sliding variant the result takes the
    place of the heaviest operand. With unit weights: largest in-degree plus 1, sliding: largest in-degree,
    GEMM in place: 3. It is enough, since everything else can wait in slow memory.
    """
    least = 1
    for task in game.tasks:
        operands = sum(game.weights[o] for o in task.operands)
        result = game.weights[task.target]
        if game.variant.sliding:
            result = max(0, result - max(game.weights[o] for o in task.operands))
        least = max(least, operands + result)
    return least


def check_capacity(game: Game, capacity: int) -> None:
    """Refuse a capacity at which no pebbling exists.

    Raises
    ------
    InfeasibleError
        The capacity is below ``minimum_capacity(game)``, which the message names.
    """
    least = minimum_capacity(game)
    if capacity < least:
        raise InfeasibleError(
            f"capacity: got {capacity}, but the variant {game.variant} of this DAG needs at least {least}: "
            "the operands and the result of its largest operation."
        )


def moves_cost(game: Game, moves: Iterable[Move]) -> int:
    """Weight of the loads plus weight of the stores; says nothing about legality."""
    return sum(game.weights[game.item_index[m.node]] for m in moves if m.op in ("load", "store"))


def _is_cell(dag: nx.DiGraph[Hashable], node: Hashable) -> bool:
    return any(dag.nodes[p].get("accumulator") == node for p in dag.pred[node])


def _topological(dag: nx.DiGraph[Hashable]) -> list[Hashable]:
    """Kahn's order, ties by order of insertion, so that equal DAGs give equal games."""
    rank = {node: i for i, node in enumerate(dag)}
    nodes = list(dag)
    waiting = {node: len(dag.pred[node]) for node in nodes}
    ready = [rank[node] for node in nodes if not waiting[node]]
    heapq.heapify(ready)
    order: list[Hashable] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        order.append(node)
        for successor in dag.succ[node]:
            waiting[successor] -= 1
            if not waiting[successor]:
                heapq.heappush(ready, rank[successor])
    return order

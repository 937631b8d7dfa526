"""A game as solvers see it: its variant, the items that hold pebbles, the tasks that compute them, and its sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pebble.cdag.building import Dag
from pebble.errors import InfeasibleError, InputError, UnknownNameError

if TYPE_CHECKING:
    import networkx as nx


class Variant(StrEnum):
    """Which game is played; every result names its own."""

    ONE_SHOT = "one-shot"  #: each value is computed once
    ONE_SHOT_SLIDING = "one-shot-sliding"  #: and a result may take over the pebble of an operand
    RECOMPUTE = "recompute"  #: a value may be computed again
    RECOMPUTE_SLIDING = "recompute-sliding"  #: both
    IN_PLACE = "in-place"  #: sums are cells, updated where they are; each task is done once

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
        """The variant of that name; UnknownNameError, which offers the nearest, where there is none."""
        try:
            return cls(name)
        except ValueError:
            raise UnknownNameError("variant", name, [v.value for v in cls], "pebble solve --help") from None

    @classmethod
    def default_for(cls, dag: nx.DiGraph[Hashable]) -> Variant:
        """``in-place`` for a DAG with accumulator tasks, ``one-shot`` for any other."""
        has_tasks = any("accumulator" in data for _, data in dag.nodes(data=True))
        return cls.IN_PLACE if has_tasks else cls.ONE_SHOT


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
    partial_weights : tuple of int
        Room and transfer cost of each item while it is initialised and not complete, at least its weight; none: its
        weight.
    allowed : tuple of int
        Of each task, the memories that may do it, bit q for memory q; none: any may do any.

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
    partial_weights: tuple[int, ...] = ()
    allowed: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.partial_weights:
            object.__setattr__(self, "partial_weights", self.weights)
        if any(partial < weight for partial, weight in zip(self.partial_weights, self.weights, strict=True)):
            raise InputError("game: a value weighs less while it is incomplete; give it the weight that it ends with.")
        if self.allowed and (len(self.allowed) != len(self.tasks) or 0 in self.allowed):
            raise InputError("game: a task that no memory may do; give each task its memories, or none at all.")
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
        """Read a DAG, written as :mod:`pebble.cdag.validate` says; ``Variant.default_for(dag)`` is the default.

        Raises
        ------
        InputError
            The DAG is not usable, or has accumulator tasks and the variant is not ``in-place``.

        Notes
        -----
        Time O((V + E) log V).
        """
        import networkx as nx

        from pebble.cdag.validate import validate_dag

        validate_dag(dag)
        default = Variant.default_for(dag)
        result = default if variant is None else Variant.parse(str(variant))
        if default is Variant.IN_PLACE and result is not Variant.IN_PLACE:
            raise InputError(
                f"variant {result}: this DAG updates accumulators in place; play it with in-place, "
                "or build it with every partial sum a value of its own (--form chain)."
            )
        data = dag.nodes
        # ties by order of insertion, so that equal DAGs give equal games
        order = list(nx.lexicographical_topological_sort(dag, key={node: i for i, node in enumerate(dag)}.__getitem__))
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
            result,
            tuple(str(node) for node in items),
            tuple(int(data[node].get("weight", 1)) for node in items),
            tuple(not dag.pred[node] or bool(data[node].get("initial", False)) for node in items),
            tuple(bool(data[node].get("output", not dag.succ[node])) for node in items),
            tasks,
            tuple(int(data[node].get("partial_weight", data[node].get("weight", 1))) for node in items),
        )

    @property
    def weighted_partials(self) -> bool:
        """Whether some value weighs more while it is incomplete."""
        return self.partial_weights != self.weights

    def may_do(self, task: int, memory: int) -> bool:
        """Whether a memory may do a task."""
        return not self.allowed or bool(self.allowed[task] >> memory & 1)

    def anywhere(self) -> Game:
        """The same game where any memory may do any task: what is proved of it holds here too."""
        return dataclasses.replace(self, allowed=())

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self.names)

    @cached_property
    def updates(self) -> tuple[tuple[int, ...], ...]:
        """Per item, the tasks that compute or update it: none for an input, several only for a cell."""
        results: list[list[int]] = [[] for _ in self.names]
        for t, task in enumerate(self.tasks):
            results[task.target].append(t)
        return tuple(map(tuple, results))

    @cached_property
    def uses(self) -> tuple[tuple[int, ...], ...]:
        """Per item, the tasks that have it as an operand."""
        results: list[list[int]] = [[] for _ in self.names]
        for t, task in enumerate(self.tasks):
            for operand in task.operands:
                results[operand].append(t)
        return tuple(map(tuple, results))

    @cached_property
    def preds(self) -> tuple[frozenset[int], ...]:
        """Per task, the earlier ones that must be done before it: all updates of its operands, and ``after``."""
        return tuple(
            frozenset(task.after).union(*(self.updates[operand] for operand in task.operands)) for task in self.tasks
        )

    @cached_property
    def ancestors(self) -> tuple[frozenset[int], ...]:
        """Per task, all tasks that must be done at some time before it."""
        results: list[frozenset[int]] = []
        for direct in self.preds:
            results.append(direct.union(*(results[u] for u in direct)))
        return tuple(results)

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
        result = game.partial_weights[task.target]
        if game.variant.sliding:
            result = max(0, result - max(game.weights[o] for o in task.operands))
        least = max(least, operands + result)
    return least


def check_capacity(game: Game, capacity: int) -> None:
    """Raise InfeasibleError at a capacity below ``minimum_capacity(game)``, which the message names."""
    least = minimum_capacity(game)
    if capacity < least:
        raise InfeasibleError(
            f"capacity: got {capacity}, but the variant {game.variant} of this DAG needs at least {least}: "
            "the operands and the result of its largest operation."
        )


def _is_cell(dag: nx.DiGraph[Hashable], node: Hashable) -> bool:
    return any(dag.nodes[p].get("accumulator") == node for p in dag.pred[node])


@dataclass(frozen=True)
class DagStatistics:
    """Counts of a DAG; weights are 1 per value unless it has others.

    Attributes
    ----------
    nodes, edges : int
        Of the graph, tasks included.
    values, operations : int
        Nodes that hold a pebble (inputs, cells, computed values), and computations (tasks of cells, computed values).
    inputs, outputs, cells : int
        Values blue at the start (an initial cell is one), values that must end blue, cells.
    depth : int
        Computations on the longest path of dependencies; the updates of a cell do not depend on each other.
    largest_in_degree : int
        Most operands of a computation; a cell is not an operand of its own updates.
    total_weight, input_weight, output_weight : int
        Of all values, of inputs, of outputs.
    compulsory_weight : int
        What every pebbling moves: inputs are loaded, computed outputs are stored.
    minimum_capacity : dict of str to int
        For each variant in which the DAG can be played.
    """

    nodes: int
    edges: int
    values: int
    operations: int
    inputs: int
    outputs: int
    cells: int
    depth: int
    largest_in_degree: int
    total_weight: int
    input_weight: int
    output_weight: int
    compulsory_weight: int
    minimum_capacity: dict[str, int]


def dag_statistics(dag: Dag) -> DagStatistics:
    """Validate a DAG and count, in O((V + E) log V); InputError where it is no DAG for the game.

    Examples
    --------
    >>> from pebble.cdag import gemm_dag
    >>> dag_statistics(gemm_dag(2, 2, 2)).compulsory_weight
    12
    """
    game = Game.from_dag(dag)
    variants = [Variant.IN_PLACE] if game.variant is Variant.IN_PLACE else list(Variant)
    return DagStatistics(
        nodes=dag.number_of_nodes(),
        edges=dag.number_of_edges(),
        values=game.size,
        operations=len(game.tasks),
        inputs=sum(game.is_input),
        outputs=sum(game.is_output),
        cells=len({data["accumulator"] for _, data in dag.nodes(data=True) if "accumulator" in data}),
        depth=_depth(game),
        largest_in_degree=max((len(task.operands) for task in game.tasks), default=0),
        total_weight=sum(game.weights),
        input_weight=sum(w for w, blue in zip(game.weights, game.is_input, strict=True) if blue),
        output_weight=sum(w for w, out in zip(game.weights, game.is_output, strict=True) if out),
        compulsory_weight=game.compulsory,
        minimum_capacity={v.value: minimum_capacity(dataclasses.replace(game, variant=v)) for v in variants},
    )


def _depth(game: Game) -> int:
    of_task: list[int] = []
    of_item = [0] * game.size
    for task in game.tasks:  # topological, so operands are final
        before = [of_item[o] for o in task.operands] + [of_task[t] for t in task.after]
        of_task.append(1 + max(before, default=0))
        of_item[task.target] = max(of_item[task.target], of_task[-1])
    return max(of_item)

"""What one wants to know of a DAG before pebbling it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from pebble.cdag.base import Dag
from pebble.game import Game, Variant, minimum_capacity


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

"""Reduction trees."""

from __future__ import annotations

from pebble.cdag.base import Dag, add_input, add_value, name_of, new_dag
from pebble.errors import InputError
from pebble.workloads.base import check_dimension


def tree_dag(leaves: int, *, arity: int = 2) -> Dag:
    """A reduction tree: neighbours are combined ``arity`` at a time; a lone last one moves up a level.

    Raises
    ------
    InputError
        Leaves below 1, arity below 2, or a DAG too large.

    Examples
    --------
    >>> tree_dag(8).number_of_nodes()
    15
    """
    leaves, arity = check_dimension("leaves", leaves), check_dimension("arity", arity)
    if arity < 2:
        raise InputError(f"arity: got {arity}, expected at least 2.")
    dag = new_dag(2 * leaves)
    row = [add_input(dag, "x", (i,)) for i in range(leaves)]
    level = 0
    while len(row) > 1:
        level += 1
        groups = [row[i : i + arity] for i in range(0, len(row), arity)]
        row = [
            group[0]
            if len(group) == 1
            else add_value(dag, name_of("t", (level, i)), group, operation="add", operand="t", index=(level, i))
            for i, group in enumerate(groups)
        ]
    return dag

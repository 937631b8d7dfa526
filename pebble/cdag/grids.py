"""Two-dimensional dependency grids: the diamond and the dynamic-programming grid."""

from __future__ import annotations

from pebble.cdag.base import Dag, add_input, add_value, name_of, new_dag
from pebble.workloads.base import check_dimension


def diamond_dag(size: int) -> Dag:
    """A size x size grid from one input corner to one output corner; D[i,j] depends on D[i-1,j] and D[i,j-1].

    Raises
    ------
    InputError
        A size below 1 or too large.

    Examples
    --------
    >>> diamond_dag(3).number_of_nodes(), diamond_dag(3).number_of_edges()
    (9, 12)
    """
    size = check_dimension("size", size)
    dag = new_dag(size * size)
    for i in range(size):
        for j in range(size):
            _add_point(dag, "D", i, j, [name_of("D", p) for p in ((i - 1, j), (i, j - 1)) if min(p) >= 0])
    return dag


def dpgrid_dag(size: int) -> Dag:
    """A size x size interior between a row and a column of inputs.

    D[i,j] depends on its upper and left neighbours; above row 0 are the inputs T[j], left of column 0 the
    inputs L[i]. Only the last corner is an output.

    Raises
    ------
    InputError
        A size below 1 or too large.

    Examples
    --------
    >>> dpgrid_dag(2).number_of_nodes()
    8
    """
    size = check_dimension("size", size)
    dag = new_dag(size * size + 2 * size)
    for i in range(size):
        for j in range(size):
            above = name_of("D", (i - 1, j)) if i else add_input(dag, "T", (j,))
            left = name_of("D", (i, j - 1)) if j else add_input(dag, "L", (i,))
            _add_point(dag, "D", i, j, [above, left])
    return dag


def _add_point(dag: Dag, operand: str, i: int, j: int, operands: list[str]) -> None:
    if operands:
        name = name_of(operand, (i, j))
        add_value(dag, name, operands, operation="combine", operand=operand, index=(i, j))
    else:
        add_input(dag, operand, (i, j))
    # the sinks are the outputs, so none is marked

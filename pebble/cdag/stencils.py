"""Stencils over time, clipped at the border."""

from __future__ import annotations

from pebble.cdag.base import Dag, add_input, add_value, name_of, new_dag
from pebble.workloads.base import check_dimension


def stencil1d_dag(size: int, steps: int) -> Dag:
    """A 3-point stencil: u[t,i] depends on u[t-1,i-1], u[t-1,i] and u[t-1,i+1], as far as they exist.

    Parameters
    ----------
    size : int
        Points.
    steps : int
        Times that all points are updated; the inputs are u[0,i], the outputs u[steps,i].

    Raises
    ------
    InputError
        A parameter below 1, or a DAG too large.

    Examples
    --------
    >>> stencil1d_dag(4, 3).number_of_nodes(), stencil1d_dag(4, 3).number_of_edges()
    (16, 30)
    """
    size, steps = check_dimension("size", size), check_dimension("steps", steps)
    dag = new_dag(size * (steps + 1))
    for i in range(size):
        add_input(dag, "u", (0, i))
    for t in range(1, steps + 1):
        for i in range(size):
            near = [name_of("u", (t - 1, j)) for j in (i - 1, i, i + 1) if 0 <= j < size]
            add_value(dag, name_of("u", (t, i)), near, operation="stencil", operand="u", index=(t, i))
    return dag


def stencil2d_dag(rows: int, cols: int, steps: int) -> Dag:
    """A 5-point stencil: u[t,i,j] depends on u[t-1] at (i,j) and its four neighbours, as far as they exist.

    Parameters
    ----------
    rows, cols : int
        Points.
    steps : int
        Times that all points are updated.

    Raises
    ------
    InputError
        A parameter below 1, or a DAG too large.

    Examples
    --------
    >>> stencil2d_dag(2, 3, 1).number_of_nodes(), stencil2d_dag(2, 3, 1).number_of_edges()
    (12, 20)
    """
    rows, cols = check_dimension("rows", rows), check_dimension("cols", cols)
    steps = check_dimension("steps", steps)
    dag = new_dag(rows * cols * (steps + 1))
    for i in range(rows):
        for j in range(cols):
            add_input(dag, "u", (0, i, j))
    for t in range(1, steps + 1):
        for i in range(rows):
            for j in range(cols):
                near = [
                    name_of("u", (t - 1, p, q))
                    for p, q in ((i - 1, j), (i, j - 1), (i, j), (i, j + 1), (i + 1, j))
                    if 0 <= p < rows and 0 <= q < cols
                ]
                add_value(dag, name_of("u", (t, i, j)), near, operation="stencil", operand="u", index=(t, i, j))
    return dag

"""DAGs that are no workload: trees, the butterfly, grids in two dimensions, stencils over time.

Every builder raises InputError for a parameter below 1 and for a DAG that would be too large.
"""

from __future__ import annotations

from itertools import product
from math import prod

from pebble.cdag.building import Dag, add_input, add_value, name_of, new_dag
from pebble.errors import InputError
from pebble.workloads.workload import check_dimension


def tree_dag(leaves: int, *, arity: int = 2) -> Dag:
    """A reduction tree: neighbours are combined ``arity`` at a time; a lone last one moves up a level.

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
            group[0] if len(group) == 1 else add_value(dag, "t", (level, i), group, "add")
            for i, group in enumerate(groups)
        ]
    return dag


def fft_dag(size: int) -> Dag:
    """The butterfly on ``size`` points.

    Value i of a stage s = 1, 2 ... depends on values i and i XOR 2^(s-1) of the stage before. InputError for a size
    that is not a power of two of at least 2.

    Examples
    --------
    >>> fft_dag(4).number_of_nodes()
    12
    """
    size = check_dimension("size", size)
    if size < 2 or size & (size - 1):
        raise InputError(f"size: got {size}, expected a power of two of at least 2.")
    stages = size.bit_length() - 1
    dag = new_dag(size * (stages + 1))
    row = [add_input(dag, "x", (i,)) for i in range(size)]
    for stage in range(stages):
        pairs = [sorted((row[i], row[i ^ 1 << stage])) for i in range(size)]
        row = [add_value(dag, "y", (stage + 1, i), pair, "butterfly") for i, pair in enumerate(pairs)]
    return dag


def diamond_dag(size: int) -> Dag:
    """A size x size grid from one input corner to one output corner; D[i,j] depends on D[i-1,j] and D[i,j-1].

    Examples
    --------
    >>> diamond_dag(3).number_of_nodes(), diamond_dag(3).number_of_edges()
    (9, 12)
    """
    size = check_dimension("size", size)
    dag = new_dag(size * size)
    add_input(dag, "D", (0, 0))
    for i, j in product(range(size), repeat=2):
        if near := [name_of("D", p) for p in ((i - 1, j), (i, j - 1)) if min(p) >= 0]:
            add_value(dag, "D", (i, j), near, "combine")
    return dag


def dpgrid_dag(size: int) -> Dag:
    """A size x size interior between a row and a column of inputs.

    D[i,j] depends on its upper and left neighbours; above row 0 are the inputs T[j], left of column 0 the
    inputs L[i]. Only the last corner is an output.

    Examples
    --------
    >>> dpgrid_dag(2).number_of_nodes()
    8
    """
    size = check_dimension("size", size)
    dag = new_dag(size * size + 2 * size)
    for i, j in product(range(size), repeat=2):
        above = name_of("D", (i - 1, j)) if i else add_input(dag, "T", (j,))
        left = name_of("D", (i, j - 1)) if j else add_input(dag, "L", (i,))
        add_value(dag, "D", (i, j), [above, left], "combine")
    return dag


def stencil1d_dag(size: int, steps: int) -> Dag:
    """A 3-point stencil on ``size`` points, all updated ``steps`` times: inputs u[0,i], outputs u[steps,i].

    u[t,i] depends on u[t-1,i-1], u[t-1,i] and u[t-1,i+1], as far as they exist.

    Examples
    --------
    >>> stencil1d_dag(4, 3).number_of_nodes(), stencil1d_dag(4, 3).number_of_edges()
    (16, 30)
    """
    return _stencil({"size": size}, steps)


def stencil2d_dag(rows: int, cols: int, steps: int) -> Dag:
    """A 5-point stencil: u[t,i,j] depends on u[t-1] at (i,j) and its four neighbours; otherwise as `stencil1d_dag`.

    Examples
    --------
    >>> stencil2d_dag(2, 3, 1).number_of_nodes(), stencil2d_dag(2, 3, 1).number_of_edges()
    (12, 20)
    """
    return _stencil({"rows": rows, "cols": cols}, steps)


def _stencil(extents: dict[str, int], steps: int) -> Dag:
    sides = [check_dimension(name, extent) for name, extent in extents.items()]
    steps = check_dimension("steps", steps)
    dag = new_dag(prod(sides) * (steps + 1))
    points = list(product(*map(range, sides)))
    inside = set(points)
    for p in points:
        add_input(dag, "u", (0, *p))
    for t in range(1, steps + 1):
        for p in points:
            neighbours = [(*p[:axis], p[axis] + by, *p[axis + 1 :]) for axis in range(len(p)) for by in (-1, 1)]
            near = [name_of("u", (t - 1, *q)) for q in sorted({p, *neighbours} & inside)]
            add_value(dag, "u", (t, *p), near, "stencil")
    return dag

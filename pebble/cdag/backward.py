"""The backward passes of training, at small scale: of one product, of a feed-forward network and of attention."""

from __future__ import annotations

from typing import Unpack

from pebble.cdag.building import Dag, SumOptions, Sums, add_matrix, add_sum, name_of, new_dag


def gemm_backward_dag(m: int, n: int, k: int, **options: Unpack[SumOptions]) -> Dag:
    """dA (m x k) := dC B^T and dB (k x n) := A^T dC, of inputs A, B and dC.

    Parameters
    ----------
    m, n, k : int
        Dimensions of the forward product, in values.
    **options
        As :class:`pebble.cdag.building.Sums` has them; the tile over m, n, k.

    Raises
    ------
    InputError
        A dimension or tile below 1, or a DAG above a million nodes.

    Examples
    --------
    >>> gemm_backward_dag(1, 1, 1).number_of_nodes()  # 3 inputs, 2 cells, 2 updates
    7
    """
    sums = Sums(**options)
    rows, cols, inner = sums.split({"m": m, "n": n, "k": k})
    dag = new_dag(4 * len(rows) * len(cols) * len(inner) + 2 * len(inner) * (len(rows) + len(cols)))
    add_matrix(dag, "A", rows, inner, sums.in_bytes)
    add_matrix(dag, "B", inner, cols, sums.in_bytes)
    add_matrix(dag, "dC", rows, cols, sums.in_bytes)
    for t, depth in enumerate(inner):
        for i, height in enumerate(rows):
            terms = [(name_of("dC", (i, j)), name_of("B", (t, j))) for j in range(len(cols))]
            add_sum(dag, sums.form, "dA", (i, t), terms, weight=height * depth * sums.out_bytes, output=True)
        for j, breadth in enumerate(cols):
            terms = [(name_of("A", (i, t)), name_of("dC", (i, j))) for i in range(len(rows))]
            add_sum(dag, sums.form, "dB", (t, j), terms, weight=breadth * depth * sums.out_bytes, output=True)
    return dag

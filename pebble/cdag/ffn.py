"""The feed-forward network of a transformer, plain and gated."""

from __future__ import annotations

from collections.abc import Sequence

from pebble.cdag.base import Dag, Finish, add_matrix, add_sum, name_of, new_dag, split_all


def ffn_dag(
    tokens: int,
    d_model: int,
    hidden: int,
    d_out: int | None = None,
    *,
    gated: bool = False,
    form: str = "in-place",
    tile: Sequence[int] = (1, 1, 1, 1),
    in_bytes: int = 1,
    out_bytes: int = 1,
) -> Dag:
    """Y := act(X W1) W2, or gated: Y := (act(X Wg) * (X Wu)) W2.

    Parameters
    ----------
    tokens, d_model, hidden : int
        X is tokens x d_model, the hidden layer tokens x hidden.
    d_out : int, optional
        Columns of Y; by default ``d_model``.
    gated : bool
        Gate and up products, activation of the gate, elementwise product, down.
    form, in_bytes, out_bytes
        As in :func:`pebble.cdag.gemm.gemm_dag`. In place, the activation and the elementwise product are further tasks
        on the hidden (gate) cell, since they need no room beside it.
    tile : sequence of four int
        Extents over tokens, d_model, hidden, d_out of a tile operation.

    Raises
    ------
    InputError
        A dimension or tile below 1, or a DAG too large.

    Examples
    --------
    >>> ffn_dag(1, 2, 2).number_of_nodes()  # 10 inputs, 4 cells, 8 updates, 2 activations
    24
    """
    d_out = d_model if d_out is None else d_out
    extents = {"tokens": tokens, "d-model": d_model, "hidden": hidden, "d-out": d_out}
    rows, inner, middle, cols = split_all(form, tile, extents)
    first = (2 if gated else 1) * len(rows) * len(middle)
    nodes = 2 * first * (len(inner) + 2) + 2 * len(rows) * len(cols) * (len(middle) + 1)
    dag = new_dag(nodes + len(inner) * (len(rows) + 2 * len(middle)) + len(middle) * len(cols))
    add_matrix(dag, "X", rows, inner, in_bytes)
    for matrix in ("Wg", "Wu") if gated else ("W1",):
        add_matrix(dag, matrix, inner, middle, in_bytes)
    add_matrix(dag, "W2", middle, cols, in_bytes)
    for i, height in enumerate(rows):
        for j, breadth in enumerate(middle):
            weight = height * breadth * in_bytes

            def product(matrix: str, i: int = i, j: int = j) -> list[tuple[str, str]]:
                return [(name_of("X", (i, p)), name_of(matrix, (p, j))) for p in range(len(inner))]

            finish = [Finish("activation", "act")]
            if gated:
                up = add_sum(dag, form, "U", (i, j), product("Wu"), weight=weight)
                finish.append(Finish("multiply", "*=", (up,)))
            add_sum(dag, form, "H", (i, j), product("Wg" if gated else "W1"), weight=weight, finish=finish)
    for i, height in enumerate(rows):
        for j, breadth in enumerate(cols):
            terms = [(name_of("H", (i, p)), name_of("W2", (p, j))) for p in range(len(middle))]
            add_sum(dag, form, "Y", (i, j), terms, weight=height * breadth * out_bytes, output=True)
    return dag

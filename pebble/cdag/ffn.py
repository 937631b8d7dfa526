"""The feed-forward network of a transformer, plain and gated."""

from __future__ import annotations

from typing import Unpack

from pebble.cdag.base import Dag, Finish, SumOptions, Sums, add_matrix, add_sum, name_of, new_dag


def ffn_dag(
    tokens: int,
    d_model: int,
    hidden: int,
    d_out: int | None = None,
    *,
    gated: bool = False,
    **options: Unpack[SumOptions],
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
    **options
        As :class:`pebble.cdag.base.Sums` has them; the tile over tokens, d_model, hidden, d_out, or, as of a kernel,
        BM x BN x BK: over tokens, over hidden and d_out, over d_model. In place, the activation and the elementwise
        product are further tasks on the hidden (gate) cell, since they need no room beside it.

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
    sums = Sums(**options)
    if sums.tile is not None and len(sums.tile) == 3:
        bm, bn, bk = sums.tile
        sums = sums._replace(tile=(bm, bk, bn, bn))
    form, in_bytes = sums.form, sums.in_bytes
    rows, inner, middle, cols = sums.split(extents)
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
            add_sum(dag, form, "Y", (i, j), terms, weight=height * breadth * sums.out_bytes, output=True)
    return dag

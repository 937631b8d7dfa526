"""The backward passes of training, at small scale: of one product, of a feed-forward network and of attention."""

from __future__ import annotations

from itertools import product
from typing import Unpack

from pebble.cdag.building import (
    Dag,
    Finish,
    SumOptions,
    Sums,
    add_input,
    add_matrix,
    add_sum,
    add_value,
    name_of,
    new_dag,
)
from pebble.workloads.backward import STATISTICS, AttentionBackward


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


def ffn_backward_dag(
    tokens: int,
    d_model: int,
    hidden: int,
    d_out: int | None = None,
    *,
    recomputed: bool = False,
    gated: bool = False,
    **options: Unpack[SumOptions],
) -> Dag:
    """dX, dW0 and dW1 of Y := H W1, H := act(X W0), from X, W0, W1, dY and H; or with H computed again; or gated.

    Parameters
    ----------
    tokens, d_model, hidden, d_out, recomputed, gated
        As `pebble.workloads.FfnBackward` has them.
    **options
        As :class:`pebble.cdag.building.Sums` has them; the tile over tokens, d_model, hidden, d_out. In place, dZ takes
        the place of dH: the product with H is a further task on its cell. Gated, dG does, and H and dU are values of
        their own, of G and U and of dG, G and U.

    Raises
    ------
    InputError
        A dimension or tile below 1, or a DAG too large.

    Examples
    --------
    >>> ffn_backward_dag(1, 1, 1).number_of_nodes()  # 5 inputs, 4 cells, 4 updates, 1 elementwise product
    14
    """
    sums = Sums(**options)
    extents = {"tokens": tokens, "d-model": d_model, "hidden": hidden, "d-out": d_model if d_out is None else d_out}
    rows, inner, middle, cols = sums.split(extents)
    sides = (len(rows), len(inner), len(middle), len(cols))
    dag = new_dag(16 * max(sides) * sum(a * b for i, a in enumerate(sides) for b in sides[i + 1 :]))
    form, width, out = sums.form, sums.in_bytes, sums.out_bytes
    ups = {"Wg": ("G", "dG"), "Wu": ("U", "dU")} if gated else {"W0": ("H", "dZ")}  # what each makes, and its gradient
    add_matrix(dag, "X", rows, inner, width)
    for name in ups:
        add_matrix(dag, name, inner, middle, width)
    add_matrix(dag, "W1", middle, cols, width)
    add_matrix(dag, "dY", rows, cols, width)
    for name, _ in () if recomputed else ups.values():
        add_matrix(dag, name, rows, middle, width)
    for i, height in enumerate(rows):
        for j, breadth in enumerate(middle):
            weight = height * breadth * width
            for up, (name, _) in ups.items() if recomputed else ():
                terms = [(name_of("X", (i, t)), name_of(up, (t, j))) for t in range(len(inner))]
                act = [] if gated else [Finish("act", "act")]
                add_sum(dag, form, name, (i, j), terms, weight=weight, finish=act)
            terms = [(name_of("dY", (i, q)), name_of("W1", (j, q))) for q in range(len(cols))]
            made = [name_of(name, (i, j)) for name, _ in ups.values()]
            dz = "dG" if gated else "dZ"
            last = [Finish("multiply", "*=", tuple(made))]
            cell = add_sum(dag, form, dz, (i, j), terms, weight=weight, finish=last)
            if gated:
                add_value(dag, "H", (i, j), made, "multiply", weight=weight)
                add_value(dag, "dU", (i, j), [cell, *made], "multiply", weight=weight)
    gradients = [("dW1", [("H[{s},{a}]", "dY[{s},{b}]")], (middle, cols, rows))]
    gradients.append(
        ("dX", [(f"{dz}[{{a}},{{s}}]", f"{up}[{{b}},{{s}}]") for up, (_, dz) in ups.items()], (rows, inner, middle))
    )
    gradients += [
        (f"d{up}", [("X[{s},{a}]", f"{dz}[{{s}},{{b}}]")], (inner, middle, rows)) for up, (_, dz) in ups.items()
    ]
    for name, factors, (first, second, summed) in gradients:
        for a, height in enumerate(first):
            for b, breadth in enumerate(second):
                terms = [
                    (left.format(a=a, b=b, s=s), right.format(a=a, b=b, s=s))
                    for s in range(len(summed))
                    for left, right in factors
                ]
                add_sum(dag, form, name, (a, b), terms, weight=height * breadth * out, output=True)
    return dag


def attention_backward_dag(
    queries: int,
    keys: int,
    head_dim: int,
    value_dim: int | None = None,
    *,
    heads: int = 1,
    kv_heads: int | None = None,
    batch: int = 1,
    causal: bool = False,
    form: str = "in-place",
) -> Dag:
    """dQ, dK and dV of O := softmax(Q K^T) V, scores computed again from row statistics, per head.

    Parameters
    ----------
    queries, keys, head_dim, value_dim, heads, kv_heads, batch, causal
        As `pebble.workloads.AttentionBackward` has them.
    form : str
        As of :class:`pebble.cdag.building.Sums`. In place P takes the place of S, and dS that of dP.

    Raises
    ------
    InputError
        A dimension below 1, kv_heads that do not divide heads, causal with fewer keys than queries, or a DAG too large.

    Examples
    --------
    >>> attention_backward_dag(1, 1, 1).number_of_nodes()  # 6 inputs, 5 cells, 5 updates, 2 elementwise steps
    18
    """
    w = AttentionBackward(queries, keys, head_dim, value_dim or 0, heads, kv_heads or 0, batch, causal)
    dag = new_dag(3 * w.multiply_adds + 4 * w.compulsory_elements)
    for g in range(w.groups):
        rows, cols = list(product(range(g * w.group, (g + 1) * w.group), range(queries))), range(keys)
        seen = {(h, i): range(keys - queries + i + 1 if causal else keys) for h, i in rows}
        inner, values = range(head_dim), range(w.value_dim)
        sizes = {"Q": (rows, inner), "dO": (rows, values), **dict.fromkeys(STATISTICS, (rows, (0,)))}
        for name, (places, columns) in sizes.items():
            for (h, i), t in product(places, columns):
                add_input(dag, name, (h, i, t))
        for name, columns in (("K", inner), ("V", values)):
            for j, t in product(cols, columns):
                add_input(dag, name, (g, j, t))
        for h, i in rows:
            at = {name: name_of(name, (h, i, 0)) for name in STATISTICS}
            for j in seen[h, i]:
                terms = [(name_of("Q", (h, i, t)), name_of("K", (g, j, t))) for t in inner]
                score = add_sum(dag, form, "P", (h, i, j), terms, finish=[Finish("exp", "-=", (at["L"],))])
                terms = [(name_of("dO", (h, i, t)), name_of("V", (g, j, t))) for t in values]
                add_sum(dag, form, "dS", (h, i, j), terms, finish=[Finish("multiply", "*=", (score, at["delta"]))])
            for t in inner:
                terms = [(name_of("dS", (h, i, j)), name_of("K", (g, j, t))) for j in seen[h, i]]
                add_sum(dag, form, "dQ", (h, i, t), terms, output=True)
        for j in cols:
            meets = [(h, i) for h, i in rows if j in seen[h, i]]
            for name, cell, source, columns in (("dK", "dS", "Q", inner), ("dV", "P", "dO", values)):
                for t in columns:
                    terms = [(name_of(cell, (h, i, j)), name_of(source, (h, i, t))) for h, i in meets]
                    add_sum(dag, form, name, (g, j, t), terms, output=True)
    return dag

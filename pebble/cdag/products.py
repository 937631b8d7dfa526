"""Matrix products: one, groups and chains of them, the feed-forward network, plain and gated, and a convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from pebble.cdag.building import Dag, Finish, SumOptions, Sums, add_input, add_matrix, add_sum, name_of, new_dag
from pebble.errors import InputError
from pebble.workloads.grouped import MAX_GROUPS
from pebble.workloads.workload import check_dimension


def gemm_dag(
    m: int,
    n: int,
    k: int,
    *,
    batch: int = 1,
    accumulate: bool = False,
    **options: Unpack[SumOptions],
) -> Dag:
    """C (m x n) := A (m x k) B (k x n), or C += A B.

    Parameters
    ----------
    m, n, k : int
        Dimensions, in values.
    batch : int
        Independent products of these sizes, of ``A0`` and ``B0``, ``A1`` and ``B1`` ...; one is of ``A`` and ``B``.
    accumulate : bool
        C starts in slow memory and is added to.
    **options
        As :class:`pebble.cdag.building.Sums` has them; the tile over m, n, k.

    Raises
    ------
    InputError
        A dimension or tile below 1, or a DAG above a million nodes.

    Examples
    --------
    >>> gemm_dag(2, 2, 2).number_of_nodes()  # 4 + 4 inputs, 4 cells, 8 updates
    20
    >>> gemm_dag(2, 2, 2, form="chain").number_of_nodes()
    16
    """
    if batch > MAX_GROUPS:
        raise InputError(f"batch: got {batch}, expected at most {MAX_GROUPS} products.")
    groups = [("", m)] if batch == 1 else [(str(number), m) for number in range(batch)]
    return _products(groups, n, k, accumulate, Sums(**options))


def grouped_dag(
    rows: Sequence[int],
    n: int,
    k: int,
    *,
    accumulate: bool = False,
    **options: Unpack[SumOptions],
) -> Dag:
    """C0 (m0 x n) := A0 (m0 x k) B0 (k x n), C1 := A1 B1 ..., which share nothing.

    Parameters
    ----------
    rows : sequence of int
        m of each group; groups without rows are left out.
    n, k, accumulate, **options
        As in :func:`gemm_dag`, for every group.

    Raises
    ------
    InputError
        As in :func:`gemm_dag`, or no group with rows.

    Examples
    --------
    >>> grouped_dag((2, 1), 2, 2).number_of_nodes()
    32
    """
    groups = [(str(number), m) for number, m in enumerate(m for m in rows if m)]
    if not groups:
        raise InputError(f"rows: got {','.join(map(str, rows))}, expected a group with rows.")
    return _products(groups, n, k, accumulate, Sums(**options))


def _products(groups: Sequence[tuple[str, int]], n: int, k: int, accumulate: bool, sums: Sums) -> Dag:
    """A product for each name's ending and m."""
    split = [sums.split({"m": m, "n": n, "k": k}) for _, m in groups]
    heights, (_, cols, inner) = [rows for rows, _, _ in split], split[0]
    high = sum(map(len, heights))
    dag = new_dag(2 * high * len(cols) * (len(inner) + 1) + (high + len(groups) * len(cols)) * len(inner))
    for (ending, _), rows in zip(groups, heights, strict=True):
        a, b, c = (name + ending for name in "ABC")
        add_matrix(dag, a, rows, inner, sums.in_bytes)
        add_matrix(dag, b, inner, cols, sums.in_bytes)
        _multiply(dag, sums.form, (a, b, c), (rows, inner, cols), sums.out_bytes, True, accumulate)
    return dag


def matrix_chain_dag(dims: Sequence[int], **options: Unpack[SumOptions]) -> Dag:
    """A product of matrices from left to right: ``dims = (p, q, r, s)`` is (M1 M2) M3 with M1 of p x q and so on.

    Parameters
    ----------
    dims : sequence of int
        At least three. The inputs are ``M1``, ``M2`` ..., the products ``P1`` (of M1 and M2), ``P2`` ...
    **options
        As :class:`pebble.cdag.building.Sums` has them; the tile over the dims, ``out_bytes`` for the last product.

    Raises
    ------
    InputError
        Fewer than three dimensions, another number of tile extents, a dimension below 1, or a DAG too large.

    Examples
    --------
    >>> matrix_chain_dag((2, 2, 2, 2)).number_of_nodes()
    36
    """
    if len(dims) < 3:
        raise InputError(f"dims: got {'x'.join(map(str, dims))}, expected at least three, such as 2x2x2x2.")
    sums = Sums(**options)
    if sums.tile is not None and len(sums.tile) != len(dims):
        raise InputError(f"tile: got {len(sums.tile)} extents, expected one for each of the {len(dims)} dims.")
    axes = sums.split({f"dims[{i}]": d for i, d in enumerate(dims)})
    sizes = [len(axis) for axis in axes]
    nodes = sum(sizes[i] * sizes[i + 1] for i in range(len(sizes) - 1))
    nodes += sum(2 * sizes[0] * sizes[i] * (sizes[i - 1] + 1) for i in range(2, len(sizes)))
    dag = new_dag(nodes)
    for i in range(len(axes) - 1):
        add_matrix(dag, f"M{i + 1}", axes[i], axes[i + 1], sums.in_bytes)
    left = "M1"
    for i in range(2, len(axes)):
        last = i == len(axes) - 1
        names = (left, f"M{i}", f"P{i - 1}")
        width = sums.out_bytes if last else sums.in_bytes
        _multiply(dag, sums.form, names, (axes[0], axes[i - 1], axes[i]), width, last, False)
        left = names[2]
    return dag


def _multiply(
    dag: Dag,
    form: str,
    names: tuple[str, str, str],
    extents: tuple[Sequence[int], Sequence[int], Sequence[int]],
    width: int,
    output: bool,
    initial: bool,
) -> None:
    (left, right, result), (rows, inner, cols) = names, extents
    for i, height in enumerate(rows):
        for j, breadth in enumerate(cols):
            terms = [(name_of(left, (i, p)), name_of(right, (p, j))) for p in range(len(inner))]
            weight = height * breadth * width
            add_sum(dag, form, result, (i, j), terms, weight=weight, output=output, initial=initial)


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
        As :class:`pebble.cdag.building.Sums` has them; the tile over tokens, d_model, hidden, d_out, or, as of a
        kernel, BM x BN x BK: over tokens, over hidden and d_out, over d_model. In place, the activation and the
        elementwise product are further tasks on the hidden (gate) cell, since they need no room beside it.

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


def conv2d_dag(
    batch: int,
    in_channels: int,
    out_channels: int,
    height: int,
    width: int,
    kernel: int,
    *,
    stride: int = 1,
    **options: Unpack[SumOptions],
) -> Dag:
    """Y[b,o,y,x] := sum over c, r, s of X[b, c, y stride + r, x stride + s] W[o,c,r,s], without padding.

    Parameters
    ----------
    batch, in_channels, out_channels, kernel, stride : int
        Images, channels, rows and columns of the filter, and pixels from one output to the next.
    height, width : int
        Of the input X; the output has (height - kernel) // stride + 1 rows. Input pixels that no output needs are left
        out.
    **options
        As :class:`pebble.cdag.building.Sums` has them; the tile over in-channels and out-channels, at one pixel.

    Raises
    ------
    InputError
        A dimension or tile below 1, a kernel larger than the input, or a DAG too large.

    Examples
    --------
    >>> conv2d_dag(1, 1, 1, 3, 3, 2).number_of_nodes()  # 9 + 4 inputs, 4 cells, 16 updates
    33
    """
    sums = Sums(**options)
    sources, targets = sums.split({"in-channels": in_channels, "out-channels": out_channels})
    batch, height, width = (
        check_dimension(name, value) for name, value in (("batch", batch), ("height", height), ("width", width))
    )
    kernel, stride = check_dimension("kernel", kernel), check_dimension("stride", stride)
    if kernel > min(height, width):
        raise InputError(f"kernel: got {kernel}, expected at most the input's height {height} and width {width}.")
    rows, cols = (height - kernel) // stride + 1, (width - kernel) // stride + 1
    taps = kernel * kernel * len(sources)
    dag = new_dag(
        batch * rows * cols * len(targets) * (2 * taps + 2)
        + len(targets) * taps
        + batch * len(sources) * min(height * width, rows * cols * kernel * kernel)
    )
    offsets = [(r, s) for r in range(kernel) for s in range(kernel)]
    for b in range(batch):
        for c, depth in enumerate(sources):
            for p in sorted(
                {(y * stride + r, x * stride + s) for y in range(rows) for x in range(cols) for r, s in offsets}
            ):
                add_input(dag, "X", (b, c, *p), depth * sums.in_bytes)
    for o, breadth in enumerate(targets):
        for c, depth in enumerate(sources):
            for r, s in offsets:
                add_input(dag, "W", (o, c, r, s), breadth * depth * sums.in_bytes)
    for b in range(batch):
        for o, breadth in enumerate(targets):
            for y in range(rows):
                for x in range(cols):
                    terms = [
                        (name_of("X", (b, c, y * stride + r, x * stride + s)), name_of("W", (o, c, r, s)))
                        for c in range(len(sources))
                        for r, s in offsets
                    ]
                    weight = breadth * sums.out_bytes
                    add_sum(dag, sums.form, "Y", (b, o, y, x), terms, weight=weight, output=True)
    return dag

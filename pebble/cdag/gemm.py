"""Matrix multiplication, groups of it, and chains of it."""

from __future__ import annotations

from collections.abc import Sequence

from pebble.cdag.base import Dag, add_matrix, add_sum, name_of, new_dag, split, split_all
from pebble.errors import InputError
from pebble.workloads.grouped import MAX_GROUPS


def gemm_dag(
    m: int,
    n: int,
    k: int,
    *,
    batch: int = 1,
    form: str = "in-place",
    tile: Sequence[int] = (1, 1, 1),
    accumulate: bool = False,
    in_bytes: int = 1,
    out_bytes: int = 1,
) -> Dag:
    """C (m x n) := A (m x k) B (k x n), or C += A B.

    Parameters
    ----------
    m, n, k : int
        Dimensions, in values.
    batch : int
        Independent products of these sizes, of ``A0`` and ``B0``, ``A1`` and ``B1`` ...; one is of ``A`` and ``B``.
    form : str
        ``in-place`` (a cell per C, its k updates in any order), ``chain`` (multiply-adds in fixed order) or
        ``separate`` (products and binary additions).
    tile : sequence of three int
        Extents over m, n, k of a tile operation, which is one node; edge tiles are short.
    accumulate : bool
        C starts in slow memory and is added to.
    in_bytes, out_bytes : int
        Weight of one value of A or B, and of C. With both 1, weights count values.

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
    return _products(groups, n, k, form, tile, accumulate, in_bytes, out_bytes)


def grouped_dag(
    rows: Sequence[int],
    n: int,
    k: int,
    *,
    form: str = "in-place",
    tile: Sequence[int] = (1, 1, 1),
    accumulate: bool = False,
    in_bytes: int = 1,
    out_bytes: int = 1,
) -> Dag:
    """C0 (m0 x n) := A0 (m0 x k) B0 (k x n), C1 := A1 B1 ..., which share nothing.

    Parameters
    ----------
    rows : sequence of int
        m of each group; groups without rows are left out.
    n, k, form, tile, accumulate, in_bytes, out_bytes
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
    return _products(groups, n, k, form, tile, accumulate, in_bytes, out_bytes)


def _products(
    groups: Sequence[tuple[str, int]],
    n: int,
    k: int,
    form: str,
    tile: Sequence[int],
    accumulate: bool,
    in_bytes: int,
    out_bytes: int,
) -> Dag:
    """A product for each name's ending and m."""
    _, cols, inner = split_all(form, tile, {"m": groups[0][1], "n": n, "k": k})
    heights = [split("m", m, tile[0]) for _, m in groups]
    high = sum(map(len, heights))
    dag = new_dag(2 * high * len(cols) * (len(inner) + 1) + (high + len(groups) * len(cols)) * len(inner))
    for (ending, _), rows in zip(groups, heights, strict=True):
        a, b, c = (name + ending for name in "ABC")
        add_matrix(dag, a, rows, inner, in_bytes)
        add_matrix(dag, b, inner, cols, in_bytes)
        _multiply(dag, form, (a, b, c), rows, inner, cols, out_bytes, True, accumulate)
    return dag


def matrix_chain_dag(
    dims: Sequence[int],
    *,
    form: str = "in-place",
    tile: Sequence[int] | None = None,
    in_bytes: int = 1,
    out_bytes: int = 1,
) -> Dag:
    """A product of matrices from left to right: ``dims = (p, q, r, s)`` is (M1 M2) M3 with M1 of p x q and so on.

    Parameters
    ----------
    dims : sequence of int
        At least three. The inputs are ``M1``, ``M2`` ..., the products ``P1`` (of M1 and M2), ``P2`` ...
    tile : sequence of int, optional
        One extent per dimension; 1 by default.
    form, in_bytes, out_bytes
        As in :func:`gemm_dag`; ``out_bytes`` is for the last product.

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
    if tile is not None and len(tile) != len(dims):
        raise InputError(f"tile: got {len(tile)} extents, expected one for each of the {len(dims)} dims.")
    axes = split_all(form, [1] * len(dims) if tile is None else tile, {f"dims[{i}]": d for i, d in enumerate(dims)})
    sizes = [len(axis) for axis in axes]
    nodes = sum(sizes[i] * sizes[i + 1] for i in range(len(sizes) - 1))
    nodes += sum(2 * sizes[0] * sizes[i] * (sizes[i - 1] + 1) for i in range(2, len(sizes)))
    dag = new_dag(nodes)
    for i in range(len(axes) - 1):
        add_matrix(dag, f"M{i + 1}", axes[i], axes[i + 1], in_bytes)
    left = "M1"
    for i in range(2, len(axes)):
        last = i == len(axes) - 1
        names = (left, f"M{i}", f"P{i - 1}")
        _multiply(dag, form, names, axes[0], axes[i - 1], axes[i], out_bytes if last else in_bytes, last, False)
        left = names[2]
    return dag


def _multiply(
    dag: Dag,
    form: str,
    names: tuple[str, str, str],
    rows: Sequence[int],
    inner: Sequence[int],
    cols: Sequence[int],
    width: int,
    output: bool,
    initial: bool,
) -> None:
    left, right, result = names
    for i, height in enumerate(rows):
        for j, breadth in enumerate(cols):
            terms = [(name_of(left, (i, p)), name_of(right, (p, j))) for p in range(len(inner))]
            weight = height * breadth * width
            add_sum(dag, form, result, (i, j), terms, weight=weight, output=output, initial=initial)

"""Attention, with strict or online softmax; and with one latent matrix as keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Unpack

from pebble.cdag.building import Dag, Finish, SumOptions, Sums, add_input, add_sum, add_value, name_of, new_dag
from pebble.errors import InputError, UnknownNameError
from pebble.workloads.workload import check_dimension

SOFTMAX = ("online", "strict")


def attention_dag(
    queries: int,
    keys: int,
    head_dim: int,
    *,
    heads: int = 1,
    kv_heads: int | None = None,
    batch: int = 1,
    causal: bool = False,
    softmax: str = "online",
    **options: Unpack[SumOptions],
) -> Dag:
    """O := softmax(Q K^T) V, per head; the row sum r stands for all softmax state.

    Parameters
    ----------
    queries, keys, head_dim : int
        Q is queries x head_dim, K and V are keys x head_dim, in each head.
    heads, kv_heads, batch : int
        Query heads, key-value heads (they divide the query heads, which share them in order; by default as
        many) and independent sequences.
    causal : bool
        The last query sees all keys, each query before it one key less. A tile is kept when a pair in it is seen.
    softmax : str
        ``strict``: S_ij += Q_ix K_jx; r_i += S_ij over the row; P_ij <- S_ij, r_i; O_ix += P_ij V_jx.
        ``online``: O_ix += S_ij V_jx, and O_ix /= r_i at any time once r_i is complete: in place it is one more
        update of the cell, in no fixed order with the others, which can then be divided as they are added.
    **options
        As :class:`pebble.cdag.building.Sums` has them, the form for S, r and O; the tile over queries, keys, head_dim.

    Raises
    ------
    InputError
        A dimension or tile below 1, kv_heads that do not divide heads, causal with fewer keys than queries,
        or a DAG too large.

    Examples
    --------
    >>> attention_dag(2, 2, 1).number_of_nodes()
    28
    """
    if softmax not in SOFTMAX:
        raise UnknownNameError("softmax", softmax, SOFTMAX, "pebble dag --help")
    heads = check_dimension("heads", heads)
    kv_heads = heads if kv_heads is None else check_dimension("kv-heads", kv_heads)
    batch = check_dimension("batch", batch)
    if heads % kv_heads:
        raise InputError(f"kv-heads: got {kv_heads}, expected a divisor of the {heads} heads.")
    if causal and keys < queries:
        raise InputError(f"keys: got {keys} for {queries} causal queries, expected at least as many keys.")
    sums = Sums(**options)
    rows, cols, inner = sums.split({"queries": queries, "keys": keys, "head-dim": head_dim})
    pairs = [
        # the last query of a tile sees most
        [j for j in range(len(cols)) if not causal or j * cols[0] < i * rows[0] + height + keys - queries]
        for i, height in enumerate(rows)
    ]
    seen = sum(map(len, pairs))
    per_head = seen * (4 * len(inner) + 4) + len(rows) * (3 * len(inner) + 2) + 2 * len(cols) * len(inner)
    dag = new_dag(batch * heads * per_head)
    for b in range(batch):
        for h in range(heads):
            own = ((b,) if batch > 1 else ()) + ((h,) if heads > 1 else ())
            shared = ((b,) if batch > 1 else ()) + ((h // (heads // kv_heads),) if heads > 1 else ())
            for i, height in enumerate(rows):
                for x, depth in enumerate(inner):
                    add_input(dag, "Q", (*own, i, x), height * depth * sums.in_bytes)
            for j in sorted({j for row in pairs for j in row}):
                for x, depth in enumerate(inner):
                    add_input(dag, "K", (*shared, j, x), cols[j] * depth * sums.in_bytes)
                    add_input(dag, "V", (*shared, j, x), cols[j] * depth * sums.in_bytes)
            for i, height in enumerate(rows):
                _add_row(dag, sums, softmax, _Row((*own, i), shared, height, {j: cols[j] for j in pairs[i]}), inner)
    return dag


def latent_dag(
    queries: int,
    keys: int,
    latent: int = 1,
    rope: int = 1,
    *,
    heads: int = 1,
    batch: int = 1,
    causal: bool = False,
    form: str = "in-place",
) -> Dag:
    """O := softmax(Q KV^T) V in all heads of a sequence, V the first ``latent`` columns of KV; online softmax.

    Parameters
    ----------
    queries, keys, latent, rope : int
        Q is queries x (latent + rope) in each head, KV keys x (latent + rope).
    heads, batch, causal, form
        As in :func:`attention_dag`.

    Raises
    ------
    InputError
        A dimension below 1, causal with fewer keys than queries, or a DAG too large.

    Examples
    --------
    >>> latent_dag(1, 2).number_of_nodes()
    19
    """
    sizes = {"queries": queries, "keys": keys, "latent": latent, "rope": rope, "heads": heads, "batch": batch}
    for name, size in sizes.items():
        check_dimension(name, size)
    if causal and keys < queries:
        raise InputError(f"keys: got {keys} for {queries} causal queries, expected at least as many keys.")
    both, seen = latent + rope, [keys - queries + i + 1 if causal else keys for i in range(queries)]
    dag = new_dag(batch * (keys * both + heads * sum((both + latent + 2) * n + 2 * both + 2 for n in seen)))
    for b in range(batch):
        here = (b,) if batch > 1 else ()
        for j in range(keys):
            for t in range(both):
                add_input(dag, "KV", (*here, j, t))
        for h, i in ((h, i) for h in range(heads) for i in range(queries)):
            own = (*here, h, i) if heads > 1 else (*here, i)
            row = [add_input(dag, "Q", (*own, t)) for t in range(both)]
            vectors = [[name_of("KV", (*here, j, t)) for t in range(both)] for j in range(seen[i])]
            scores = [
                add_sum(dag, form, "S", (*own, j), list(zip(row, vector, strict=True)))
                for j, vector in enumerate(vectors)
            ]
            total = add_sum(dag, form, "r", own, [(score,) for score in scores])
            finish = [Finish("divide", "/=", (total,), ordered=False)]
            for t in range(latent):
                terms = [(score, vector[t]) for score, vector in zip(scores, vectors, strict=True)]
                add_sum(dag, form, "O", (*own, t), terms, finish=finish, output=True)
    return dag


class _Row(NamedTuple):
    """A tile of queries in a head: where it is, where its keys are, its height, and the breadths of the keys seen."""

    place: tuple[int, ...]
    shared: tuple[int, ...]
    height: int
    seen: dict[int, int]


def _add_row(dag: Dag, sums: Sums, softmax: str, row: _Row, inner: Sequence[int]) -> None:
    """The scores, the sum r and the output of a tile of queries."""
    place, shared, height, seen = row
    scores = []
    for j, breadth in seen.items():
        terms = [(name_of("Q", (*place, x)), name_of("K", (*shared, j, x))) for x in range(len(inner))]
        scores.append(add_sum(dag, sums.form, "S", (*place, j), terms, weight=height * breadth * sums.in_bytes))
    total = add_sum(dag, sums.form, "r", place, [(s,) for s in scores], weight=height * sums.in_bytes)
    finish: list[Finish] = [Finish("divide", "/=", (total,), ordered=False)]
    if softmax == "strict":
        finish = []
        scores = [
            add_value(dag, "P", (*place, j), (score, total), "divide", weight=height * breadth * sums.in_bytes)
            for (j, breadth), score in zip(seen.items(), scores, strict=True)
        ]
    for x, depth in enumerate(inner):
        terms = [(score, name_of("V", (*shared, j, x))) for j, score in zip(seen, scores, strict=True)]
        weight = height * depth * sums.out_bytes
        add_sum(dag, sums.form, "O", (*place, x), terms, weight=weight, finish=finish, output=True)

"""Any einsum at small scale, point by point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from pebble.cdag.building import Dag, add_input, add_sum, new_dag
from pebble.workloads.einsum import Einsum
from pebble.workloads.nest import Access


def einsum_dag(
    subscripts: str, sizes: Mapping[str, int] | Iterable[tuple[str, int]], operand_names: Sequence[str] = ()
) -> Dag:
    """The nest of an einsum as written: one task for each point, in place.

    Parameters
    ----------
    subscripts, sizes, operand_names
        As `pebble.workloads.Einsum` takes them.

    Raises
    ------
    InputError
        As there, or a DAG above a million nodes.

    Examples
    --------
    >>> einsum_dag("mk,kn->mn", {"m": 2, "n": 2, "k": 2}).number_of_nodes()
    20
    """
    workload = Einsum(subscripts, tuple(dict(sizes).items()), tuple(operand_names))
    nest = workload.nest
    dag = new_dag(nest.points + sum(operand.elements for operand in workload.operands))
    sums: dict[tuple[int, ...], list[list[str]]] = {}
    for point in product(*(range(size) for _, size in nest.sizes)):
        at = dict(zip(nest.size, point, strict=True))
        term = dict.fromkeys(add_input(dag, access.array, _index(access, at)) for access in nest.inputs)
        sums.setdefault(_index(nest.output, at), []).append(list(term))
    for cell, terms in sums.items():
        add_sum(dag, "in-place", nest.output.array, cell, terms, output=True)
    return dag


def _index(access: Access, at: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sum(factor * at[index] for factor, index in dim) for dim in access.dims)

"""``dag``: a computation DAG from a family, a workload or a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebble.cdag.building import is_dag
from pebble.errors import InputError, UnknownNameError, check_flag
from pebble.families import DAG_FAMILIES, FAMILIES, Family, find_dag_family, find_family
from pebble.game import Variant
from pebble.system.files import exists
from pebble.workloads.named import model_names
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from pebble.cdag.building import Dag


def read_dag_source(
    source: Any,
    values: Mapping[str, Any] | None = None,
    variant: Variant | str | None = None,
    unit_weights: bool = False,
) -> tuple[str, Dag]:
    """A DAG and a line that names it.

    Parameters
    ----------
    source : str, Path, workload, networkx.DiGraph, sequence of pairs or mapping
        A family of DAGs by name, a file, a (small) workload, or a DAG, also as its edges or its values' operands.
    values : mapping, optional
        Parameters of the family, by keyword.
    variant : Variant or str, optional
        The game to be played, which decides the form of sums where none is given.
    unit_weights : bool
        Every value weighs 1, whatever the file or the tiles say.

    Raises
    ------
    InputError
        A missing, foreign or malformed parameter, or an unusable file.
    UnknownNameError
        Neither a family nor a file.
    """
    named = {key: value for key, value in (values or {}).items() if value is not None and value is not False}
    game = None if variant is None else Variant.parse(str(variant))
    if (own := find_family(source)) is not None:
        source, named = _of_workload(own, source, named)
    if isinstance(source, str) and source in DAG_FAMILIES:
        family = find_dag_family(source)
        dag = family.build(named, game)
        if unit_weights:
            for _, data in dag.nodes(data=True):
                data.pop("weight", None)
        return family.label({p.name: p.read(named[p.name]) for p in family.parameters if p.name in named}), dag
    if isinstance(source, str | Path):
        from pebble.cdag.io import SUFFIXES, read_dag

        text = str(source)
        if Path(text).suffix.lower() not in SUFFIXES and not exists(text):
            if text in FAMILIES or text.partition(":")[0] in model_names():
                raise InputError(
                    f"dag: got {text}, which has no computation DAG of its own, expected a family that has one "
                    f"({', '.join(DAG_FAMILIES)}), small, or a file."
                )
            raise UnknownNameError("family of DAGs or file", text[:80], DAG_FAMILIES, "pebble dag --help")
        if named:
            options = " and ".join(f"--{key.replace('_', '-')}" for key in named)
            raise InputError(f"{text}: got {options} with a file, expected them with a family; leave them out.")
        return text, read_dag(text, unit_weights=unit_weights)
    if (built := plain_dag(source)) is not None:
        source = built
    if is_dag(source):
        if named:
            raise InputError(f"dag: got {', '.join(named)} with a graph, expected them with a family; leave them out.")
        return f"DAG of {len(source)} nodes", source
    raise InputError(
        f"dag: got {type(source).__name__} {str(source)[:60]!r}, expected a networkx.DiGraph, edges such as "
        "[('a', 'c'), ('b', 'c')], predecessors such as {'c': ['a', 'b']}, a family such as 'gemm', a workload, or a "
        "file."
    )


def plain_dag(source: object) -> Dag | None:
    """A DAG from edges, operand before result, or from the operands of each value; None for what is neither.

    Raises
    ------
    InputError
        A list that holds something else than pairs, or a mapping to something else than lists.
    """
    import networkx as nx

    if isinstance(source, Mapping):
        edges = []
        for value, operands in source.items():
            if isinstance(operands, str) or not isinstance(operands, Iterable):
                raise InputError(
                    f"dag: got {str(operands)[:40]!r} as the operands of {str(value)[:40]!r}, expected a list of them, "
                    "such as {'c': ['a', 'b']}."
                )
            edges += [(operand, value) for operand in operands]
        nodes = list(source)
    elif isinstance(source, list | tuple) and source:
        wrong = next((edge for edge in source if not (isinstance(edge, list | tuple) and len(edge) == 2)), None)
        if wrong is not None:
            raise InputError(
                f"dag: got {str(wrong)[:40]!r} in a list of edges, expected pairs (operand, result), such as "
                "[('a', 'c'), ('b', 'c')]."
            )
        nodes, edges = [], [tuple(edge) for edge in source]
    else:
        return None
    built: Dag = nx.DiGraph()
    try:
        built.add_nodes_from(nodes)
        built.add_edges_from(edges)
    except TypeError:
        raise InputError("dag: got values such as lists, which have no name, expected texts or numbers.") from None

    return built


def _of_workload(family: Family[Any], workload: Workload, named: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if family.dag is None:
        raise InputError(f"dag: got {workload.label}, but {family.name} has no computation DAG of its own.")
    known = {p.name for p in family.dag.parameters if p.name in {q.name for q in family.parameters}}
    values = {name: value for name, value in workload.values().items() if name in known}
    return family.name, {**values, **named}


def dag(source: Any, *, unit_weights: bool = False, **parameters: Any) -> Dag:
    """A computation DAG, as a networkx.DiGraph whose node attributes `pebble.cdag.validate` documents.

    Parameters
    ----------
    source : str, Path, workload, sequence of pairs or mapping
        A family (``"gemm"``, ``"fft"``, ... as ``pebble dag --help`` lists them), a file (.json, .graphml, .hdag), or
        a small workload; or edges (operand, result), or the operands of each value, ``{"c": ["a", "b"]}``.
    unit_weights : bool
        Every value weighs 1, whatever the file or the tiles say.
    **parameters
        Of the family: ``m=2, n=2, k=3``; ``form``, ``tile``, ``dtype``.

    Returns
    -------
    networkx.DiGraph

    Raises
    ------
    InputError
        A parameter missing, foreign or malformed; more than a million nodes.
    UnknownNameError
        No such family.

    Examples
    --------
    >>> import pebble
    >>> len(pebble.dag("gemm", m=2, n=2, k=2))
    20
    >>> sorted(pebble.dag({"c": ["a", "b"], "d": ["c"]}).edges)
    [('a', 'c'), ('b', 'c'), ('c', 'd')]
    """
    return read_dag_source(source, parameters, unit_weights=check_flag("unit_weights", unit_weights))[1]

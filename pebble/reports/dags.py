"""``dag``: a computation DAG from a family, a workload or a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebble.errors import InputError, UnknownNameError, check_flag
from pebble.families import DAG_FAMILIES, FAMILIES, Family, find_dag_family, find_family
from pebble.game import Variant
from pebble.system.files import exists
from pebble.workloads.base import Workload
from pebble.workloads.named import model_names

if TYPE_CHECKING:
    from pebble.cdag.base import Dag


def read_dag_source(
    source: Any,
    values: Mapping[str, Any] | None = None,
    variant: Variant | str | None = None,
    unit_weights: bool = False,
) -> tuple[str, Dag]:
    """A DAG and a line that names it.

    Parameters
    ----------
    source : str, Path, workload or networkx.DiGraph
        A family of DAGs by name, a file, a (small) workload, or a DAG.
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
    given = {key: value for key, value in (values or {}).items() if value is not None and value is not False}
    game = None if variant is None else Variant.parse(str(variant))
    if (own := find_family(source)) is not None:
        source, given = _of_workload(own, source, given)
    if isinstance(source, str) and source in DAG_FAMILIES:
        family = find_dag_family(source)
        dag = family.build(given, game)
        if unit_weights:
            for _, data in dag.nodes(data=True):
                data.pop("weight", None)
        return family.label({p.name: p.read(given[p.name]) for p in family.parameters if p.name in given}), dag
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
        if given:
            options = " and ".join(f"--{key.replace('_', '-')}" for key in given)
            raise InputError(f"{text}: got {options} with a file, expected them with a family; leave them out.")
        return text, read_dag(text, unit_weights=unit_weights)
    if hasattr(source, "pred") and hasattr(source, "nodes"):
        if given:
            raise InputError(f"dag: got {', '.join(given)} with a graph, expected them with a family; leave them out.")
        return f"DAG of {len(source)} nodes", source
    raise InputError(
        f"dag: got {type(source).__name__} {str(source)[:60]!r}, expected a networkx.DiGraph, a family such as 'gemm', "
        "a workload, or a file."
    )


def _of_workload(family: Family[Any], workload: Workload, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if family.dag is None:
        raise InputError(f"dag: got {workload.label}, but {family.name} has no computation DAG of its own.")
    known = {p.name for p in family.dag.parameters if p.name in {q.name for q in family.parameters}}
    values = {name: getattr(workload, name) for name in known if hasattr(workload, name)}
    return family.name, {**values, **given}


def dag(source: Any, *, unit_weights: bool = False, **parameters: Any) -> Dag:
    """A computation DAG, as a networkx.DiGraph whose node attributes `pebble.cdag.validate` documents.

    Parameters
    ----------
    source : str, Path or workload
        A family (``"gemm"``, ``"fft"``, ... as ``pebble dag --help`` lists them), a file (.json, .graphml, .hdag), or
        a small workload.
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
    """
    return read_dag_source(source, parameters, unit_weights=check_flag("unit_weights", unit_weights))[1]

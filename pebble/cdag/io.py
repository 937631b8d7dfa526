"""Reading and writing DAGs: node-link JSON (``.json``), GraphML (``.graphml``) and hyperDAG text (``.hdag``).

Node names are texts in all three; a node of another kind is written as ``str(node)``. A malformed or hostile file
ends in one sentence that names the file and, where the fault has one, the line.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pebble.cdag.building import Dag
from pebble.cdag.hyperdag import format_hyperdag, parse_hyperdag
from pebble.cdag.validate import DagError, validate_dag
from pebble.errors import InputError
from pebble.system.files import read_bytes, shown, write_text


def format_graphml(dag: Dag) -> str:
    """The DAG as GraphML text."""
    import networkx as nx

    flat: Dag = nx.DiGraph()
    for node, data in dag.nodes(data=True):
        row = dict(data)
        if "index" in row:
            row["index"] = ",".join(map(str, row["index"])) or "()"  # networkx drops an empty text
        flat.add_node(node, **row)
    flat.add_edges_from(dag.edges)
    return "\n".join(nx.generate_graphml(flat)) + "\n"


def parse_graphml(text: str) -> Dag:
    """A DAG from GraphML text; parallel edges are merged.

    DagError, without the file's name, for malformed text, and for a document type or entity definition, which GraphML
    needs none of and which can make a small file expand without end.
    """
    for forbidden in ("<!DOCTYPE", "<!ENTITY"):
        at = text.find(forbidden)
        if at >= 0:
            line = text.count("\n", 0, at) + 1
            raise DagError(f"got {forbidden}, expected plain GraphML without definitions.", line=line)
    from xml.etree import ElementTree

    import networkx as nx

    try:
        graph = nx.parse_graphml(text, node_type=str)
    except ElementTree.ParseError as error:
        raise DagError(f"not XML: {str(error).partition(':')[0]}.", line=error.position[0]) from None
    except RecursionError:
        raise
    except Exception as error:  # networkx raises whatever a wrong element leads to
        raise DagError(f"not GraphML that networkx can read: {type(error).__name__}: {error}.") from None
    if not graph.is_directed():
        raise DagError('got an undirected graph, expected edgedefault="directed".')
    dag: Dag = nx.DiGraph()
    for node, data in graph.nodes(data=True):
        dag.add_node(node, **{key: _value(node, key, value) for key, value in data.items()})
    for u, v, data in graph.edges(data=True):
        # networkx puts the id of an edge among its attributes
        dag.add_edge(u, v, **{key: value for key, value in data.items() if key != "id"})
    return dag


def _value(node: str, key: str, value: Any) -> Any:
    if key == "index" and isinstance(value, str):
        try:
            return tuple(int(part) for part in value.split(",")) if value != "()" else ()
        except ValueError:
            raise DagError(
                f"node {node} has the index {value!r}, expected whole numbers as in 0,1.", node=node
            ) from None
    if key == "weight" and isinstance(value, float) and value.is_integer():
        return int(value)  # tools that know only doubles
    return value


MAX_FILE_BYTES = 256 * 2**20


class _Format(NamedTuple):
    parse: Callable[[str], Dag]
    format: Callable[[Dag], str]
    # how a node's name appears in the file, to find its line
    mark: Callable[[str], str]


def read_dag(path: str | Path, *, unit_weights: bool = False) -> Dag:
    """Read a DAG from a file whose suffix, ``.json``, ``.graphml`` or ``.hdag``, says the format, and validate it.

    With ``unit_weights`` every value weighs 1, whatever the file says. Time and memory O(size of the file).

    Raises
    ------
    InputError
        An unreadable file or one above 256 MiB, another suffix, malformed text, or a graph that is no DAG for the
        game (:func:`pebble.cdag.validate.validate_dag`); the message starts with the file and the line.
    """
    path = Path(path)
    form = _format_of(path)
    text = read_text(path)
    try:
        dag = form.parse(text)
        if unit_weights:
            for _, data in dag.nodes(data=True):
                data.pop("weight", None)
        validate_dag(dag)
    except DagError as error:
        line = error.line or _line_of(text, form.mark(str(error.node)) if error.node is not None else "")
        where = f"{path}, line {line}" if line else str(path)
        raise InputError(f"{where}: {error}") from None
    except RecursionError:
        raise InputError(f"{path}: it is nested too deeply, expected a graph.") from None
    return dag


def write_dag(dag: Dag, path: str | Path) -> None:
    """Validate a DAG and write it, equal DAGs as equal files; InputError where it is none, or cannot be written."""
    path = Path(path)
    form = _format_of(path)
    validate_dag(dag)
    text = form.format(_named(dag))
    write_text(path, text)


def format_node_link(dag: Dag) -> str:
    """The DAG as networkx node-link JSON, one node or edge per line."""
    nodes = ",\n".join("    " + json.dumps({"id": str(node), **data}) for node, data in dag.nodes(data=True))
    edges = ",\n".join("    " + json.dumps({"source": str(u), "target": str(v)}) for u, v in dag.edges)
    return (
        '{\n  "directed": true,\n  "multigraph": false,\n  "graph": {},\n'
        f'  "nodes": [\n{nodes}\n  ],\n  "edges": [\n{edges}\n  ]\n}}\n'
    )


def parse_node_link(text: str) -> Dag:
    """A DAG from networkx node-link JSON; ``links`` is accepted for ``edges``, as older networkx wrote.

    DagError for malformed text, without the file's name.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise DagError(f"not JSON: {error.msg}; expected node-link data.", line=error.lineno) from None
    except ValueError as error:  # a number of thousands of digits
        raise DagError(f"not usable JSON: {error}") from None
    if not isinstance(document, dict):
        raise DagError("got JSON that is no object, expected node-link data with nodes and edges.")
    if document.get("directed", True) is not True or document.get("multigraph", False) is not False:
        raise DagError("got an undirected graph or a multigraph, expected a directed graph without parallel edges.")
    nodes, edges = document.get("nodes"), document.get("edges", document.get("links"))
    if not isinstance(nodes, list) or not isinstance(edges, list):
        raise DagError('got no lists "nodes" and "edges", expected node-link data as networkx writes it.')
    import networkx as nx

    dag: Dag = nx.DiGraph()
    for i, entry in enumerate(nodes):
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), str | int):
            raise DagError(f'nodes[{i}] is {_short(entry)}, expected an object with an "id".')
        name = str(entry["id"])
        if name in dag:
            raise DagError(f"nodes[{i}] has the id {name!r} of an earlier node.", node=name)
        data = {key: value for key, value in entry.items() if key != "id"}
        if isinstance(data.get("accumulator"), int):
            data["accumulator"] = str(data["accumulator"])
        if isinstance(data.get("index"), list):
            data["index"] = tuple(data["index"])
        dag.add_node(name, **data)
    for i, entry in enumerate(edges):
        if not isinstance(entry, dict) or not all(isinstance(entry.get(k), str | int) for k in ("source", "target")):
            raise DagError(f'edges[{i}] is {_short(entry)}, expected an object with a "source" and a "target".')
        ends = str(entry["source"]), str(entry["target"])
        for end in ends:
            if end not in dag:
                raise DagError(f"edges[{i}] names {end!r}, which is no node.", node=end)
        dag.add_edge(*ends, **{k: v for k, v in entry.items() if k not in ("source", "target")})
    return dag


_FORMATS = {
    ".json": _Format(parse_node_link, format_node_link, json.dumps),
    ".graphml": _Format(parse_graphml, format_graphml, lambda name: f'"{name}"'),
    ".hdag": _Format(parse_hyperdag, format_hyperdag, lambda name: ""),
}
SUFFIXES = tuple(_FORMATS)


def _format_of(path: Path) -> _Format:
    form = _FORMATS.get(path.suffix.lower())
    if form is None:
        raise InputError(
            f"{shown(path)}: got the suffix {shown(path.suffix)!r}, expected one of {', '.join(_FORMATS)}."
        )
    return form


def read_text(path: Path, expected: str = "the file of a computation DAG") -> str:
    """The text of a file of at most 256 MiB, or InputError, which says what was ``expected``."""
    content = read_bytes(path, most=MAX_FILE_BYTES, expected=f"; expected {expected}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}, line {line}: got bytes that are not UTF-8 text, expected a text file.") from None


def _line_of(text: str, mark: str) -> int | None:
    at = text.find(mark) if mark else -1
    return text.count("\n", 0, at) + 1 if at >= 0 else None


def _named(dag: Dag) -> Dag:
    """The same DAG with all names as texts."""
    import networkx as nx

    named: Dag = nx.relabel_nodes(dag, {node: str(node) for node in dag})
    for _, data in named.nodes(data=True):
        if "accumulator" in data:
            data["accumulator"] = str(data["accumulator"])
    return named


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."

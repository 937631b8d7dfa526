"""GraphML, by networkx; an index is written as text, ``0,1``, since GraphML has no lists."""

from __future__ import annotations

from typing import Any

from pebble.cdag.base import Dag
from pebble.cdag.validate import DagError


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

"""What a computation DAG is, as a ``networkx.DiGraph``, and the check of it.

A node is a value; its predecessors are its operands; a node without predecessors is an input. Node
attributes, all optional:

==============  ======================================================================================
operation       what computes it: ``"input"``, ``"multiply-add"``, ``"add"`` ...
operand         the matrix or array it belongs to: ``"A"``
index           its place there: ``(0, 1)``
weight          room and transfer cost, a positive whole number; 1 when absent
partial_weight  (cells) the same while it is initialised and not complete, at least ``weight``, which it is when absent
output          whether it must end in slow memory; when absent, whether it has no successor
accumulator     makes the node a task, see below
initial         (cells) True when the cell starts in slow memory, as C does in C += A B
==============  ======================================================================================

Accumulation in place: a *task* is a node with the attribute ``accumulator``, the node it updates, its
*cell*. A task holds no pebble (it has no weight and is no output); its predecessors are its operands, its
successor is its cell. A cell has only its tasks as predecessors and is the operand of others once all of them
are done. An edge between two tasks of one cell says which comes first. Edges have no attributes.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from pebble.errors import InputError

if TYPE_CHECKING:
    import networkx as nx


class DagError(InputError):
    """A graph or file that is no DAG for the game, with the node or line at fault where one is known."""

    def __init__(self, message: str, *, node: Hashable = None, line: int | None = None) -> None:
        super().__init__(message)
        self.node = node
        self.line = line


ATTRIBUTES = ("operation", "operand", "index", "weight", "partial_weight", "output", "accumulator", "initial")
MAX_WEIGHT = 2**40


def validate_dag(dag: nx.DiGraph[Hashable]) -> None:
    """Check that a graph is a computation DAG that the game can be played on.

    Raises
    ------
    DagError
        Not a simple directed graph, empty, cyclic; an unknown attribute or one of the wrong kind; two nodes
        that print alike; a task or cell that breaks the rules above; a node from which no output is reached.
    """
    if not dag.is_directed() or dag.is_multigraph():
        raise DagError("DAG: got a graph that is undirected or has parallel edges, expected a networkx.DiGraph.")
    if not len(dag):
        raise DagError("DAG: got a graph without nodes, expected at least one.")
    names: set[str] = set()
    for node, data in dag.nodes(data=True):
        if not str(node).isprintable() or not str(node):
            raise DagError(f"DAG: got the node {str(node)!r}, expected a name of printable characters.", node=node)
        if str(node) in names:
            raise DagError(
                f"DAG: two nodes are both written {str(node)!r}; give every node a name of its own.", node=node
            )
        names.add(str(node))
        _check_attributes(node, data)
    for u, v, data in dag.edges(data=True):
        if data:
            raise DagError(
                f"DAG: edge {u} -> {v} has the attribute {min(map(str, data))!r}, but edges have none; "
                "a weight belongs to the node whose value moves."
            )
    _check_acyclic(dag)
    cells = {data["accumulator"] for _, data in dag.nodes(data=True) if "accumulator" in data}
    for node, data in dag.nodes(data=True):
        try:
            if "accumulator" in data:
                _check_task(dag, node, data)
            elif node in cells:
                _check_cell(dag, node, data)
            else:
                _check_value(dag, node, data)
        except DagError as error:
            error.node = node
            raise
    _check_useful(dag)


def _check_attributes(node: Hashable, data: dict[str, Any]) -> None:
    for key, value in data.items():
        if key not in ATTRIBUTES:
            near = difflib.get_close_matches(str(key), ATTRIBUTES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"the attributes are {', '.join(ATTRIBUTES)}."
            raise DagError(f"DAG: node {node} has the unknown attribute {key!r}: {hint}", node=node)
        expected = _expected(key, value)
        if expected:
            raise DagError(f"DAG: node {node} has {key} {reprlib.repr(value)}, expected {expected}.", node=node)


def _expected(key: str, value: object) -> str | None:
    """What an attribute should have been, or None when it is right."""
    match key:
        case "weight" | "partial_weight":
            right = type(value) is int and 1 <= value <= MAX_WEIGHT
            return None if right else f"a whole number from 1 to {MAX_WEIGHT}"
        case "output" | "initial":
            return None if isinstance(value, bool) else "true or false"
        case "operation" | "operand":
            right = isinstance(value, str) and value.isprintable() and value != ""
            return None if right else "a text of printable characters"
        case "index":
            right = isinstance(value, tuple | list) and all(type(i) is int for i in value)
            return None if right else "a tuple of whole numbers"
    try:
        hash(value)
    except TypeError:
        return "the name of a node"
    return None


def _check_acyclic(dag: nx.DiGraph[Hashable]) -> None:
    import networkx as nx

    if nx.is_directed_acyclic_graph(dag):
        return
    edges = nx.find_cycle(dag)
    cycle = [str(u) for u, *_ in edges] + [str(edges[0][0])]
    shown = " -> ".join(cycle if len(cycle) <= 8 else [*cycle[:7], "...", cycle[-1]])
    raise DagError(f"DAG: got a cycle, {shown}; a value cannot depend on itself.")


def _check_task(dag: nx.DiGraph[Hashable], node: Hashable, data: dict[str, Any]) -> None:
    cell = data["accumulator"]
    if cell not in dag or "accumulator" in dag.nodes[cell]:
        raise DagError(f"DAG: task {node} updates {cell}, which is not a value of this DAG.")
    for key in ("weight", "partial_weight", "output", "initial"):
        if key in data:
            raise DagError(f"DAG: task {node} has the attribute {key!r}, but it holds no pebble; give it to {cell}.")
    if cell not in dag.succ[node]:
        raise DagError(f"DAG: task {node} updates {cell} but has no edge to it; add the edge {node} -> {cell}.")
    for successor in dag.succ[node]:
        if successor != cell and dag.nodes[successor].get("accumulator") != cell:
            raise DagError(
                f"DAG: task {node} has an edge to {successor}; "
                f"a task leads to its cell {cell} and to tasks of that cell."
            )
    if not dag.pred[node]:
        raise DagError(f"DAG: task {node} has no operand; add an edge from at least one value.")


def _check_cell(dag: nx.DiGraph[Hashable], node: Hashable, data: dict[str, Any]) -> None:
    weight = data.get("weight", 1)
    if data.get("partial_weight", weight) < weight:
        raise DagError(
            f"DAG: cell {node} has the partial_weight {data['partial_weight']}, expected at least its weight, {weight}."
        )
    for p in dag.pred[node]:
        if dag.nodes[p].get("accumulator") != node:
            raise DagError(f"DAG: cell {node} has the predecessor {p}, which is not one of the tasks that update it.")


def _check_value(dag: nx.DiGraph[Hashable], node: Hashable, data: dict[str, Any]) -> None:
    if "partial_weight" in data:
        raise DagError(f"DAG: node {node} has a partial_weight, but only a cell that tasks update is ever partial.")
    if data.get("initial"):
        raise DagError(f"DAG: node {node} is initial, but only a cell that tasks update can be.")
    if data.get("operation") == "input" and dag.pred[node]:
        raise DagError(f"DAG: node {node} is called an input but has predecessors; correct its operation or its edges.")
    if not dag.pred[node] and data.get("operation", "input") != "input":
        raise DagError(
            f"DAG: node {node} has the operation {data['operation']!r} but no predecessor; "
            "call it an input, or add the edges from its operands."
        )


def _check_useful(dag: nx.DiGraph[Hashable]) -> None:
    useful = [n for n, d in dag.nodes(data=True) if d.get("output", not dag.succ[n] and "accumulator" not in d)]
    seen = set(useful)
    while useful:
        for p in dag.pred[useful.pop()]:
            if p not in seen:
                seen.add(p)
                useful.append(p)
    for node in dag:
        if node not in seen:
            raise DagError(f"DAG: no output depends on node {node}; remove it, or mark it as an output.", node=node)

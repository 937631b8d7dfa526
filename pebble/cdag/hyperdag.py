"""HyperDAG text, the format of the HyperDAG database and of OneStopParallel.

Comments start with ``%``, at the start of a line or after the data of one. The first other line is ``H V P``: numbers
of hyperedges, vertices and pins. Then come, in one of two orders, lines of whole numbers:

- H hyperedges ``edge [comm_weight [mem_weight]]``, V vertices ``node [work_weight [type]]``, P pins ``edge node``
  (the database, and what is written here);
- P pins, then nothing, or V weights ``node work_weight [comm_weight]``, or H hyperedges and V vertices as above.

The first pin of a hyperedge is its source, from which an edge leads to each of its other pins; parallel edges are
merged. The memory weight (else the communication weight) of a hyperedge is the weight of its source; a vertex without
one weighs 1. Work weights and types mean nothing in the game. What the format has no place for (names, accumulator
tasks and so on) is written as a JSON comment after a vertex, ``% {"name": "C[0,1]"}``, and read back.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from pebble.cdag.building import Dag
from pebble.cdag.validate import DagError


class _Line(NamedTuple):
    number: int
    fields: tuple[int, ...]
    comment: str


def format_hyperdag(dag: Dag) -> str:
    """The DAG as hyperDAG text: a hyperedge per node, in the order of the nodes."""
    nodes = list(dag)
    number = {node: i for i, node in enumerate(nodes)}
    pins = [(number[u], number[v]) for u in nodes for v in [u, *dag.succ[u]]]
    lines = ["%% HyperDAG", f"{len(nodes)} {len(nodes)} {len(pins)}", "%% Hyperedges: ID comm_weight mem_weight"]
    weights = [dag.nodes[node].get("weight", 1) for node in nodes]
    lines += [f"{i} {weight} {weight}" for i, weight in enumerate(weights)]
    lines.append("%% Vertices: ID work_weight type")
    for i, node in enumerate(nodes):
        # an explicit weight of 1 is kept apart from none, so that reading gives back what was written
        extra = {"name": str(node), **{k: v for k, v in dag.nodes[node].items() if k != "weight" or v == 1}}
        work = 1 if dag.pred[node] else 0
        lines.append(f"{i} {work} 0" + ("" if extra == {"name": str(i)} else f" % {json.dumps(extra)}"))
    lines.append("%% Pins: HyperedgeID NodeID")
    lines += [f"{u} {v}" for u, v in pins]
    return "\n".join(lines) + "\n"


def parse_hyperdag(text: str) -> Dag:
    """A DAG from hyperDAG text; nodes are named by their comments, else ``0``, ``1`` ...

    DagError for malformed text, with the line, without the file's name.
    """
    lines = _data_lines(text)
    if not lines:
        raise DagError('got no data, expected a header "H V P": hyperedges, vertices, pins.', line=1)
    header, rest = lines[0], lines[1:]
    if len(header.fields) != 3 or min(header.fields) < 0 or header.fields[1] < 1:
        raise DagError('expected a header "H V P": hyperedges, vertices (at least one), pins.', line=header.number)
    edges, vertices, pins = header.fields
    hyperedges, nodes, pin_lines, weight_at = _sections(rest, edges, vertices, pins, header)
    weights: dict[int, tuple[int, int]] = {}  # hyperedge -> weight, line
    for edge, line in zip(_ids(hyperedges, edges, "hyperedge"), hyperedges, strict=True):
        if len(line.fields) > 2 and line.fields[1] != line.fields[2]:
            raise DagError(
                f"hyperedge {edge} has communication weight {line.fields[1]} and memory weight {line.fields[2]}, but a "
                "value has one weight in the game; make them equal, or read with unit weights.",
                line=line.number,
            )
        if len(line.fields) > 1:
            weights[edge] = line.fields[-1 if len(line.fields) == 2 else 2], line.number
    data: list[dict[str, Any]] = [{} for _ in range(vertices)]
    names = [str(i) for i in range(vertices)]
    for node, line in zip(_ids(nodes, vertices, "vertex"), nodes, strict=True):
        names[node], data[node] = _comment(line, names[node])
        if weight_at is not None and len(line.fields) > weight_at:
            _set_weight(data[node], node, line.fields[weight_at], line.number)
    if len(set(names)) < vertices:
        raise DagError("two vertices have the same name in their comments.", line=header.number)
    import networkx as nx

    dag: Dag = nx.DiGraph()
    dag.add_nodes_from(names)
    sources: dict[int, int] = {}
    for line in pin_lines:
        if len(line.fields) < 2:
            raise DagError('expected a pin "edge node".', line=line.number)
        edge, node = line.fields[:2]
        if not 0 <= edge < edges or not 0 <= node < vertices:
            raise DagError(
                f"got the pin {edge} {node}, expected an edge below {edges} and a node below {vertices}.",
                line=line.number,
            )
        if edge not in sources:
            sources[edge] = node
            if edge in weights:
                _set_weight(data[node], node, *weights[edge])
        elif sources[edge] == node:
            raise DagError(f"hyperedge {edge} has its source {node} twice: a cycle.", line=line.number)
        else:
            dag.add_edge(names[sources[edge]], names[node])
    for name, row in zip(names, data, strict=True):
        dag.nodes[name].update(row)
    return dag


def _data_lines(text: str) -> list[_Line]:
    results = []
    for number, raw in enumerate(text.split("\n"), start=1):
        body, _, comment = raw.partition("%")
        words = body.split()
        if not words:
            continue
        for word in words:
            digits = word.removeprefix("-")
            if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
                shown = word if len(word) <= 30 else word[:27] + "..."
                raise DagError(f"got {shown!r}, expected whole numbers.", line=number)
        results.append(_Line(number, tuple(map(int, words)), comment.strip()))
    return results


def _sections(
    rest: list[_Line], edges: int, vertices: int, pins: int, header: _Line
) -> tuple[list[_Line], list[_Line], list[_Line], int | None]:
    """Hyperedges, vertices and pins, and which field of a vertex is its weight (None: hyperedges have them)."""
    if len(rest) == edges + vertices + pins:
        first = rest[:edges], rest[edges : edges + vertices], rest[edges + vertices :]
        last = rest[pins : pins + edges], rest[pins + edges :], rest[:pins]
        # only where the lines can be numbered hyperedges and vertices do they come after the pins
        pins_first = not (_numbered(first[0]) and _numbered(first[1])) and _numbered(last[0]) and _numbered(last[1])
        return *(last if pins_first else first), None
    if len(rest) == pins + vertices:
        return [], rest[pins:], rest[:pins], 2
    if len(rest) == pins:
        return [], [], rest, None
    raise DagError(
        f"the header announces {edges} hyperedges, {vertices} vertices and {pins} pins, expected "
        f"{edges + vertices + pins} lines after it (or {pins + vertices}: pins and weights), got {len(rest)}.",
        line=header.number,
    )


def _numbered(lines: list[_Line]) -> bool:
    return sorted(line.fields[0] for line in lines) == list(range(len(lines)))


def _ids(lines: list[_Line], count: int, what: str) -> list[int]:
    seen: set[int] = set()
    for line in lines:
        number = line.fields[0]
        if not 0 <= number < count or number in seen:
            why = "again" if number in seen else f"expected a number below {count}"
            raise DagError(f"got {what} {number}, {why}.", line=line.number)
        seen.add(number)
    return [line.fields[0] for line in lines]


def _comment(line: _Line, name: str) -> tuple[str, dict[str, Any]]:
    if not line.comment.startswith("{"):
        return name, {}
    try:
        data = json.loads(line.comment)
    except ValueError:
        raise DagError("got a comment that starts with { but is no JSON object.", line=line.number) from None
    if isinstance(data.get("index"), list):
        data["index"] = tuple(data["index"])
    return str(data.pop("name", name)), data


def _set_weight(data: dict[str, Any], node: int, weight: int, line: int) -> None:
    if weight < 1:
        raise DagError(f"node {node} has weight {weight}, expected at least 1; or read with unit weights.", line=line)
    if "accumulator" in data:
        return  # a task holds no pebble, its 1 in the file says nothing
    if data.get("weight", weight) != weight:
        raise DagError(f"node {node} has weight {weight}, and {data['weight']} in another place.", line=line)
    if weight != 1:
        data["weight"] = weight

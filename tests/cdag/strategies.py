"""Random small DAGs for property tests."""

from __future__ import annotations

from typing import Any

import networkx as nx
from hypothesis import strategies as st


@st.composite
def plain_dags(draw: st.DrawFn, most_inputs: int = 3, most_values: int = 4, most_weight: int = 1) -> nx.DiGraph:
    """Inputs, and values with one to three operands; the sinks are outputs, sometimes a further value is."""
    dag: nx.DiGraph = nx.DiGraph()
    weights = st.integers(1, most_weight)
    names = []
    for i in range(draw(st.integers(1, most_inputs))):
        names.append(f"x{i}")
        dag.add_node(names[-1], weight=draw(weights))
    for i in range(draw(st.integers(1, most_values))):
        operands = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        names.append(f"y{i}")
        dag.add_node(names[-1], weight=draw(weights))
        dag.add_edges_from((p, names[-1]) for p in operands)
        if draw(st.integers(0, 4)) == 0:
            dag.nodes[names[-1]]["output"] = True
    return dag


@st.composite
def cell_dags(draw: st.DrawFn, most_inputs: int = 3, most_tasks: int = 2, most_weight: int = 1) -> nx.DiGraph:
    """Inputs, one or two cells with up to ``most_tasks`` updates each, perhaps a value computed from them."""
    dag: nx.DiGraph = nx.DiGraph()
    weights = st.integers(1, most_weight)
    names = []
    for i in range(draw(st.integers(1, most_inputs))):
        names.append(f"x{i}")
        dag.add_node(names[-1], weight=draw(weights))
    for c in range(draw(st.integers(1, 2))):
        cell = f"c{c}"
        extra: dict[str, Any] = {"initial": True} if draw(st.integers(0, 4)) == 0 else {}
        dag.add_node(cell, weight=draw(weights), **extra)
        previous: str | None = None
        for t in range(draw(st.integers(1, most_tasks))):
            task = f"{cell}.{t}"
            dag.add_node(task, accumulator=cell)
            dag.add_edge(task, cell)
            for operand in draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)):
                dag.add_edge(operand, task)
            if previous is not None and draw(st.integers(0, 3)) == 0:
                dag.add_edge(previous, task)
            previous = task
        names.append(cell)
    if draw(st.booleans()):
        dag.add_node("y", weight=draw(weights))
        dag.add_edges_from(
            (p, "y") for p in draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        )
    return dag


def any_dags(most_weight: int = 1) -> st.SearchStrategy[nx.DiGraph]:
    """Either kind."""
    return st.one_of(plain_dags(most_weight=most_weight), cell_dags(most_weight=most_weight))

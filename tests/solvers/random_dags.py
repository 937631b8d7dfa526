"""Random small DAGs, drawn by hypothesis."""

from __future__ import annotations

import networkx as nx
from hypothesis import strategies as st


@st.composite
def dags(draw: st.DrawFn, most: int = 8, weighted: bool = False) -> nx.DiGraph:
    """A DAG of at most ``most`` nodes, in-degrees up to 3, some inner nodes outputs."""
    inputs = draw(st.integers(1, 3))
    size = draw(st.integers(inputs + 1, most))
    dag = nx.DiGraph()
    for v in range(size):
        dag.add_node(f"v{v}")
        if weighted:
            dag.nodes[f"v{v}"]["weight"] = draw(st.sampled_from([1, 1, 2, 3]))
        if v >= inputs:
            operands = draw(st.sets(st.integers(0, v - 1), min_size=1, max_size=min(3, v)))
            dag.add_edges_from((f"v{u}", f"v{v}") for u in sorted(operands))
            if draw(st.integers(0, 5)) == 0:
                dag.nodes[f"v{v}"]["output"] = True
    return dag


@st.composite
def cell_dags(draw: st.DrawFn, weighted: bool = False) -> nx.DiGraph:
    """A DAG with one or two accumulator cells, some of them initial or read afterwards."""
    inputs = draw(st.integers(2, 3))
    values = [f"a{i}" for i in range(inputs)]
    dag = nx.DiGraph()
    dag.add_nodes_from(values)
    for c in range(draw(st.integers(1, 2))):
        cell = f"c{c}"
        dag.add_node(cell)
        if draw(st.integers(0, 3)) == 0:
            dag.nodes[cell]["initial"] = True
        tasks = draw(st.integers(2, 3))
        for t in range(tasks):
            task = f"t{c}{t}"
            dag.add_node(task, accumulator=cell)
            for u in sorted(draw(st.sets(st.sampled_from(values), min_size=1, max_size=2))):
                dag.add_edge(u, task)
            dag.add_edge(task, cell)
        if draw(st.integers(0, 3)) == 0:
            dag.add_edge(f"t{c}0", f"t{c}{tasks - 1}")
        values.append(cell)
    if draw(st.booleans()):
        for u in sorted(draw(st.sets(st.sampled_from(values), min_size=1, max_size=2))):
            dag.add_edge(u, "last")
    for node in list(dag):
        if weighted and "accumulator" not in dag.nodes[node]:
            dag.nodes[node]["weight"] = draw(st.sampled_from([1, 1, 2, 3]))
    for value in values:
        if value.startswith("c") and draw(st.integers(0, 4)) == 0:
            dag.nodes[value]["output"] = True
    return dag

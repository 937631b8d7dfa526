"""Graphs that are no DAG for the game are refused in one sentence."""

import networkx as nx
import pytest
from hypothesis import given

from pebble.cdag import gemm_dag, validate_dag
from pebble.errors import InputError
from tests.cdag.strategies import any_dags


def graph(*edges: tuple[str, str], **attributes: dict[str, object]) -> nx.DiGraph:
    dag = nx.DiGraph(edges)
    for node, data in attributes.items():
        dag.add_node(node, **data)
    return dag


CELL = {"t": {"accumulator": "c"}, "u": {"accumulator": "c"}}
EDGES = (("a", "t"), ("b", "u"), ("t", "c"), ("u", "c"))


@pytest.mark.parametrize(
    ("dag", "message"),
    [
        (nx.Graph([("a", "b")]), "undirected or has parallel edges"),
        (nx.MultiDiGraph([("a", "b")]), "undirected or has parallel edges"),
        (nx.DiGraph(), "without nodes"),
        (graph(("a", "b"), ("b", "c"), ("c", "b")), "a cycle, (b -> c -> b|c -> b -> c)"),
        (graph(("a", "b"), ("b", "b")), "a cycle, b -> b"),
        (nx.DiGraph([(i, (i + 1) % 50) for i in range(50)]), r"a cycle, .* -> \.\.\. -> "),
        (nx.DiGraph([(1, "1")]), "two nodes are both written '1'"),
        (graph(("a", "b\n")), "printable"),
        (graph(("", "b")), "printable"),
        (graph(("a", "b"), b={"wieght": 2}), "node b has the unknown attribute 'wieght': did you mean weight?"),
        (graph(("a", "b"), b={"colour": 2}), "unknown attribute 'colour': the attributes are operation"),
        (graph(("a", "b"), b={"weight": 0}), "node b has weight 0, expected a whole number from 1"),
        (graph(("a", "b"), b={"weight": 1.5}), "weight 1.5"),
        (graph(("a", "b"), b={"weight": True}), "weight True"),
        (graph(("a", "b"), b={"weight": "2"}), "weight '2'"),
        (graph(("a", "b"), b={"weight": 2**41}), "weight 2199023255552"),
        (graph(("a", "b"), b={"output": 1}), "output 1, expected true or false"),
        (graph(("a", "b"), b={"operation": 7}), "operation 7, expected a text"),
        (graph(("a", "b"), b={"operand": ""}), "operand '', expected a text"),
        (graph(("a", "b"), b={"index": 3}), "index 3, expected a tuple"),
        (graph(("a", "b"), b={"index": [1.5]}), "index .1.5., expected a tuple"),
        (graph(("a", "b"), b={"accumulator": ["c"]}), "expected the name of a node"),
        (graph(("a", "b"), b={"operation": "input"}), "node b is called an input but has predecessors"),
        (graph(("a", "b"), a={"operation": "add"}), "node a has the operation 'add' but no predecessor"),
        (graph(("a", "b"), b={"initial": True}), "only a cell"),
        (graph(("a", "b"), ("a", "c"), b={"output": True}, c={"output": False}), "no output depends on node c"),
        (graph(("a", "t"), t={"accumulator": "z"}), "task t updates z, which is not a value"),
        (graph(("a", "t"), ("t", "t2"), t={"accumulator": "t2"}, t2={"accumulator": "t"}), "not a value"),
        (graph(("a", "t"), ("a", "c"), t={"accumulator": "c"}), "has no edge to it"),
        (graph(("t", "c"), t={"accumulator": "c"}), "task t has no operand"),
        (graph(*EDGES, ("t", "d"), **CELL), "task t has an edge to d"),
        (graph(*EDGES, ("a", "c"), **CELL), "cell c has the predecessor a"),
        (graph(*EDGES, **{**CELL, "t": {"accumulator": "c", "weight": 1}}), "task t has the attribute 'weight'"),
        (graph(*EDGES, **{**CELL, "t": {"accumulator": "c", "output": True}}), "task t has the attribute 'output'"),
    ],
)
def test_refused(dag: nx.DiGraph, message: str) -> None:
    with pytest.raises(InputError, match=message):
        validate_dag(dag)


def test_edge_attributes_are_refused() -> None:
    dag = nx.DiGraph()
    dag.add_edge("a", "b", weight=3)
    with pytest.raises(InputError, match="edge a -> b has the attribute 'weight', but edges have none"):
        validate_dag(dag)


def test_bare_graphs_are_enough() -> None:
    validate_dag(nx.DiGraph([(0, 1), (1, 2), (0, 2)]))
    validate_dag(graph(*EDGES, ("t", "u"), **CELL))
    lone = nx.DiGraph()
    lone.add_node("x")
    validate_dag(lone)


@given(any_dags(most_weight=4))
def test_accepted(dag: nx.DiGraph) -> None:
    validate_dag(dag)


def test_a_broken_family_is_noticed() -> None:
    dag = gemm_dag(2, 2, 2)
    dag.remove_edge("C[0,0]+=A[0,0]*B[0,0]", "C[0,0]")
    with pytest.raises(InputError, match=r"add the edge C\[0,0\]\+=A\[0,0\]\*B\[0,0\] -> C\[0,0\]"):
        validate_dag(dag)

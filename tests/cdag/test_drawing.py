"""The layered drawing."""

from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given

from pebble.cdag import diamond_dag, fft_dag, gemm_dag, tree_dag
from pebble.errors import InputError
from pebble.plots.dag import dag_figure, layered_positions, plot_dag
from pebble.plots.save import save_figure
from tests.cdag.strategies import any_dags


@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".png"])
def test_equal_dags_give_equal_files(tmp_path: Path, suffix: str) -> None:
    for name in ("a", "b"):
        save_figure(dag_figure(gemm_dag(2, 2, 2), "gemm"), str(tmp_path / f"{name}{suffix}"))
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def test_every_role_is_told_apart() -> None:
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert plot_dag(gemm_dag(1, 1, 2), ax) is ax
    assert ax.get_legend_handles_labels()[1] == ["cell, output", "input", "task"]
    texts = {text.get_text() for text in ax.texts}
    assert texts == {"A[0,0]", "A[0,1]", "B[0,0]", "B[1,0]", "C[0,0]"}


@given(any_dags())
def test_nodes_lie_above_their_operands_and_apart(dag: nx.DiGraph) -> None:
    at = layered_positions(dag)
    assert all(at[u][1] < at[v][1] for u, v in dag.edges)
    assert len(set(at.values())) == len(dag)


def test_a_tree_is_drawn_without_crossings() -> None:
    dag = tree_dag(8)
    at = layered_positions(dag)
    edges = list(dag.edges)
    for a, b in edges:
        for c, d in edges:
            if at[a][1] == at[c][1] and at[b][1] == at[d][1]:
                assert (at[a][0] - at[c][0]) * (at[b][0] - at[d][0]) >= 0


def test_too_large_to_draw() -> None:
    with pytest.raises(InputError, match="2,304 nodes, expected at most 2,000"):
        dag_figure(fft_dag(256))
    with pytest.raises(InputError, match="cycle"):
        plot_dag(nx.DiGraph([(0, 1), (1, 0)]))
    assert dag_figure(diamond_dag(20)).axes

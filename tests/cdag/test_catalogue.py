"""Families by name, and their statistics."""

import shlex

import networkx as nx
import pytest
from hypothesis import given

from pebble.cdag import diamond_dag, ffn_dag, fft_dag, gemm_dag, tree_dag
from pebble.cli._arguments import add_dag_arguments, read_dag_argument
from pebble.errors import InputError, UnknownNameError
from pebble.families import DAG_FAMILIES as FAMILIES
from pebble.families import build_dag
from pebble.game import Variant
from pebble.game.instance import dag_statistics
from tests.cdag.strategies import any_dags


@pytest.mark.parametrize("name", FAMILIES)
def test_every_example_builds_and_names_itself(name: str) -> None:
    import argparse

    parser = argparse.ArgumentParser()
    add_dag_arguments(parser)
    words = [name, *shlex.split(FAMILIES[name].example)]
    label, dag = read_dag_argument(parser.parse_args(words))
    assert label == " ".join(words)
    assert dag_statistics(dag).nodes == len(dag) <= 60


def test_the_variant_decides_the_form() -> None:
    shape = {"m": 2, "n": 2, "k": 2}
    assert len(build_dag("gemm", shape)) == len(gemm_dag(2, 2, 2))
    assert len(build_dag("gemm", shape, Variant.IN_PLACE)) == len(gemm_dag(2, 2, 2))
    for variant in (Variant.ONE_SHOT, Variant.RECOMPUTE_SLIDING):
        assert len(build_dag("gemm", shape, variant)) == len(gemm_dag(2, 2, 2, form="chain"))
    separate = build_dag("gemm", {**shape, "form": "separate"}, Variant.ONE_SHOT)
    assert len(separate) == len(gemm_dag(2, 2, 2, form="separate"))
    assert len(build_dag("tree", {"leaves": 4}, Variant.RECOMPUTE)) == 7


def test_types_weigh_bytes() -> None:
    shape = {"m": 4, "n": 4, "k": 4, "tile": (2, 2, 2)}
    assert build_dag("gemm", shape).nodes["A[0,0]"]["weight"] == 4
    dag = build_dag("gemm", {**shape, "dtype": "fp8"})
    assert (dag.nodes["A[0,0]"]["weight"], dag.nodes["C[0,0]"]["weight"]) == (4, 8)
    dag = build_dag("gemm", {**shape, "dtype": "bf16", "out_dtype": "fp32"})
    assert (dag.nodes["A[0,0]"]["weight"], dag.nodes["C[0,0]"]["weight"]) == (8, 16)
    with pytest.raises(InputError, match="without dtype"):
        build_dag("gemm", {**shape, "out_dtype": "fp32"})


def test_parameters_are_checked_by_name() -> None:
    with pytest.raises(UnknownNameError, match="stencil2d or stencil1d"):
        build_dag("stencil", {})
    with pytest.raises(InputError, match="gemm: -n, -k missing, expected -m NUMBER -n NUMBER -k NUMBER"):
        build_dag("gemm", {"m": 2, "n": None})
    with pytest.raises(InputError, match="tree: got head_dim, expected only leaves, arity"):
        build_dag("tree", {"leaves": 2, "head_dim": 3})
    with pytest.raises(InputError, match="tree: got -m,"):
        build_dag("tree", {"leaves": 2, "m": 3})


def test_labels() -> None:
    values = {"queries": 2, "keys": 2, "head_dim": 1, "causal": True, "tile": (1, 2, 1), "heads": None}
    assert FAMILIES["attention"].label(values) == "attention --queries 2 --keys 2 --head-dim 1 --causal --tile 1x2x1"


def test_statistics_of_a_gemm() -> None:
    result = dag_statistics(gemm_dag(2, 3, 4, in_bytes=2, out_bytes=4))
    assert (result.nodes, result.values, result.operations, result.cells) == (20 + 6 + 24, 26, 24, 6)
    assert (result.inputs, result.outputs, result.largest_in_degree, result.depth) == (20, 6, 2, 1)
    assert (result.input_weight, result.output_weight, result.total_weight) == (40, 24, 64)
    assert result.compulsory_weight == 64
    assert result.minimum_capacity == {"in-place": 8}


def test_statistics_of_others() -> None:
    result = dag_statistics(gemm_dag(2, 2, 3, form="chain"))
    assert result.depth == result.largest_in_degree == 3
    assert result.minimum_capacity == {
        "one-shot": 4, "one-shot-sliding": 3, "recompute": 4, "recompute-sliding": 3, "in-place": 4
    }  # fmt: skip
    assert dag_statistics(tree_dag(16)).depth == 4
    assert dag_statistics(diamond_dag(4)).depth == 6
    assert dag_statistics(fft_dag(8)).compulsory_weight == 16
    # sums, activation, product with the up projection, down projection
    assert dag_statistics(ffn_dag(1, 2, 2, gated=True)).depth == 4
    assert dag_statistics(tree_dag(1)).compulsory_weight == 0


@given(any_dags(most_weight=3))
def test_statistics_of_anything(dag: nx.DiGraph) -> None:
    result = dag_statistics(dag)
    assert result.nodes == result.values + sum("accumulator" in data for _, data in dag.nodes(data=True))
    assert result.compulsory_weight <= result.input_weight + result.output_weight
    assert result.depth <= nx.dag_longest_path_length(dag)
    assert max(result.minimum_capacity.values()) <= max(1, result.total_weight)

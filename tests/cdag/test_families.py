"""Every family has the nodes and edges that its definition says, in every form, at element and tile level."""

import itertools

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.cdag import (
    attention_dag,
    conv2d_dag,
    diamond_dag,
    dpgrid_dag,
    ffn_dag,
    fft_dag,
    gemm_dag,
    matrix_chain_dag,
    stencil1d_dag,
    stencil2d_dag,
    tree_dag,
    validate_dag,
)
from pebble.errors import InputError, UnknownNameError
from pebble.game import Game
from tests.brute_force import brute_force

SMALL = st.integers(1, 4)
FORM = st.sampled_from(["in-place", "chain", "separate"])


def size(dag: nx.DiGraph) -> tuple[int, int]:
    return dag.number_of_nodes(), dag.number_of_edges()


def inputs(dag: nx.DiGraph) -> set[str]:
    return {node for node in dag if not dag.pred[node]}


def outputs(dag: nx.DiGraph) -> set[str]:
    return {node for node, data in dag.nodes(data=True) if data.get("output", not dag.succ[node])}


def of_operand(dag: nx.DiGraph, operand: str) -> list[str]:
    return [node for node, data in dag.nodes(data=True) if data.get("operand") == operand]


@settings(deadline=None)
@given(SMALL, SMALL, SMALL)
def test_gemm_counts(m: int, n: int, k: int) -> None:
    products, cells, given_values = m * n * k, m * n, (m + n) * k
    assert size(gemm_dag(m, n, k)) == (given_values + cells + products, 3 * products)
    # a multiply-add has three operands, the first of a chain two
    assert size(gemm_dag(m, n, k, form="chain")) == (given_values + products, 3 * products - cells)
    adds = m * n * (k - 1)
    assert size(gemm_dag(m, n, k, form="separate")) == (given_values + products + adds, 2 * products + 2 * adds)
    for form in ("in-place", "chain", "separate"):
        dag = gemm_dag(m, n, k, form=form)
        assert outputs(dag) == {f"C[{i},{j}]" for i in range(m) for j in range(n)}
        assert len(inputs(dag)) == given_values
        assert size(gemm_dag(m, n, k, form=form, accumulate=True))[0] >= size(dag)[0]


def test_accumulate_into_costs_a_load_more() -> None:
    for form, variant in (("in-place", "in-place"), ("chain", "one-shot-sliding"), ("separate", "one-shot")):
        plain, onto = (gemm_dag(1, 1, 2, form=form, accumulate=a) for a in (False, True))
        assert brute_force(onto, 9, variant) == brute_force(plain, 9, variant) + 1


@settings(deadline=None)
@given(SMALL, SMALL, SMALL, st.tuples(SMALL, SMALL, SMALL), st.integers(1, 4), st.integers(1, 4), FORM)
def test_tiles_weigh_what_their_elements_weigh(m, n, k, tile, in_bytes, out_bytes, form) -> None:
    dag = gemm_dag(m, n, k, form=form, tile=tile, in_bytes=in_bytes, out_bytes=out_bytes)
    validate_dag(dag)
    grid = [-(-extent // t) for extent, t in zip((m, n, k), tile, strict=True)]
    assert len(dag) == len(gemm_dag(*grid, form=form))
    weight = dict(dag.nodes(data="weight"))
    assert sum(weight[v] for v in inputs(dag)) == (m + n) * k * in_bytes
    assert sum(weight[v] for v in outputs(dag)) == m * n * out_bytes


def test_ragged_tiles() -> None:
    dag = gemm_dag(5, 3, 4, tile=(2, 3, 3), in_bytes=2)
    assert [dag.nodes[f"A[{i},{p}]"]["weight"] for i in range(3) for p in range(2)] == [12, 4, 12, 4, 6, 2]
    assert dag.nodes["C[2,0]"]["weight"] == 3


def test_node_attributes() -> None:
    dag = gemm_dag(2, 2, 2)
    assert dag.nodes["A[0,1]"] == {"operation": "input", "operand": "A", "index": (0, 1), "weight": 1}
    cell = {"operation": "accumulator", "operand": "C", "index": (1, 0), "weight": 1, "output": True}
    assert dag.nodes["C[1,0]"] == cell
    assert dag.nodes["C[1,0]+=A[1,1]*B[1,0]"] == {"operation": "multiply-add", "accumulator": "C[1,0]"}


@settings(deadline=None)
@given(st.lists(SMALL, min_size=3, max_size=5))
def test_matrix_chain_counts(dims: list[int]) -> None:
    dag = matrix_chain_dag(dims)
    given_values = sum(p * q for p, q in itertools.pairwise(dims))
    cells = sum(dims[0] * q for q in dims[2:])
    products = sum(dims[0] * p * q for p, q in itertools.pairwise(dims[1:]))
    assert size(dag) == (given_values + cells + products, 3 * products)
    assert len(outputs(dag)) == dims[0] * dims[-1]
    assert len(matrix_chain_dag(dims, tile=[9] * len(dims))) == len(dims) - 1 + 2 * (len(dims) - 2)


@settings(deadline=None)
@given(SMALL, SMALL, SMALL, SMALL, st.booleans())
def test_ffn_counts(tokens: int, d_model: int, hidden: int, d_out: int, gated: bool) -> None:
    dag = ffn_dag(tokens, d_model, hidden, d_out, gated=gated)
    ups = 2 if gated else 1
    assert len(inputs(dag)) == tokens * d_model + ups * d_model * hidden + hidden * d_out
    tasks = [v for v, data in dag.nodes(data=True) if "accumulator" in data]
    # per hidden value: its products, the activation and, gated, the elementwise product
    assert len(tasks) == tokens * hidden * (ups * d_model + ups) + tokens * hidden * d_out
    assert len(outputs(dag)) == tokens * d_out
    for form in ("chain", "separate"):
        validate_dag(ffn_dag(tokens, d_model, hidden, d_out, gated=gated, form=form))


def test_gated_ffn_activates_the_gate_then_multiplies() -> None:
    for form in ("in-place", "chain"):
        dag = ffn_dag(1, 2, 1, 1, gated=True, form=form)
        product = "H[0,0]*=U[0,0]" if form == "in-place" else "H[0,0]"
        activation = "H[0,0]=act(H[0,0])" if form == "in-place" else "H[0,0].2"
        assert dag.nodes[activation]["operation"] == "activation"
        assert dag.nodes[product]["operation"] == "multiply"
        assert "U[0,0]" in dag.pred[product]
        assert activation in dag.pred[product]


@settings(deadline=None, max_examples=50)
@given(SMALL, SMALL, st.integers(1, 2), st.sampled_from(["strict", "online"]))
def test_attention_counts(queries: int, keys: int, head_dim: int, softmax: str) -> None:
    dag = attention_dag(queries, keys, head_dim, softmax=softmax)
    pairs = queries * keys
    assert len(inputs(dag)) == (queries + 2 * keys) * head_dim
    assert len(of_operand(dag, "S")) == pairs
    assert len(of_operand(dag, "P")) == (pairs if softmax == "strict" else 0)
    assert len(of_operand(dag, "r")) == queries
    divisions = pairs if softmax == "strict" else queries * head_dim
    assert sum(data["operation"] == "divide" for _, data in dag.nodes(data=True)) == divisions
    operations = pairs * (2 * head_dim + 1) + divisions
    assert len(Game.from_dag(dag).tasks) == operations
    assert len(outputs(dag)) == queries * head_dim


def test_online_division_waits_for_the_row_sum_alone() -> None:
    game = Game.from_dag(attention_dag(1, 2, 1, softmax="online"))
    division = game.tasks[game.task_index["O[0,0]/=r[0]"]]
    assert [game.names[o] for o in division.operands] == ["r[0]"]
    assert division.after == ()


def test_causal_attention_sees_half() -> None:
    assert len(of_operand(attention_dag(4, 4, 1, causal=True), "S")) == 4 * 5 // 2
    # two queries at the end of five keys
    dag = attention_dag(2, 5, 1, causal=True)
    assert set(of_operand(dag, "S")) == {f"S[0,{j}]" for j in range(4)} | {f"S[1,{j}]" for j in range(5)}
    # tiles: kept when any of their pairs is seen
    dag = attention_dag(4, 4, 1, causal=True, tile=(2, 2, 1))
    assert set(of_operand(dag, "S")) == {"S[0,0]", "S[1,0]", "S[1,1]"}
    with pytest.raises(InputError, match="at least as many keys"):
        attention_dag(4, 3, 1, causal=True)


def test_grouped_heads_share_keys_and_values() -> None:
    dag = attention_dag(1, 2, 1, heads=4, kv_heads=2)
    assert len(of_operand(dag, "K")) == len(of_operand(dag, "V")) == 2 * 2
    assert len(of_operand(dag, "Q")) == 4
    readers = {task.split("+=")[0] for task in dag.succ["K[1,0,0]"]}
    assert readers == {"S[2,0,0]", "S[3,0,0]"}
    assert len(of_operand(attention_dag(1, 2, 1, heads=2, batch=3), "K")) == 3 * 2 * 2
    with pytest.raises(InputError, match="divisor of the 4 heads"):
        attention_dag(1, 2, 1, heads=4, kv_heads=3)


def test_conv2d_counts() -> None:
    dag = conv2d_dag(2, 3, 2, 4, 5, 2)
    points = 2 * 2 * 3 * 4
    assert len(outputs(dag)) == points
    assert len(inputs(dag)) == 2 * 3 * 4 * 5 + 2 * 3 * 2 * 2
    assert size(dag) == (len(inputs(dag)) + points + points * 12, 3 * points * 12)
    # stride 2 with a 1 x 1 kernel reads a quarter of the pixels
    assert len(of_operand(conv2d_dag(1, 1, 1, 4, 4, 1, stride=2), "X")) == 4
    tiled = conv2d_dag(1, 3, 5, 2, 2, 1, tile=(2, 4), in_bytes=2)
    assert tiled.nodes["W[1,1,0,0]"]["weight"] == 1 * 1 * 2
    assert tiled.nodes["X[0,0,1,1]"]["weight"] == 2 * 2
    with pytest.raises(InputError, match="kernel"):
        conv2d_dag(1, 1, 1, 2, 4, 3)


def test_a_one_by_one_convolution_is_a_gemm() -> None:
    convolution, product = conv2d_dag(1, 2, 2, 1, 3, 1), gemm_dag(2, 3, 2)
    assert nx.is_isomorphic(convolution, product)


@given(st.integers(1, 40), st.integers(2, 4))
def test_tree_counts(leaves: int, arity: int) -> None:
    dag = tree_dag(leaves, arity=arity)
    assert nx.is_tree(dag)
    assert len(inputs(dag)) == leaves
    assert len(outputs(dag)) == 1
    if arity == 2:
        assert len(dag) == 2 * leaves - 1


@given(st.integers(1, 7))
def test_grid_counts(n: int) -> None:
    assert size(diamond_dag(n)) == (n * n, 2 * n * (n - 1))
    assert size(dpgrid_dag(n)) == (n * n + 2 * n, 2 * n * n)
    assert outputs(diamond_dag(n)) == outputs(dpgrid_dag(n)) == {f"D[{n - 1},{n - 1}]"}


@given(st.integers(1, 5))
def test_fft_counts(stages: int) -> None:
    n = 2**stages
    dag = fft_dag(n)
    assert size(dag) == (n * (stages + 1), 2 * n * stages)
    assert all(len(nx.ancestors(dag, out) & inputs(dag)) == n for out in outputs(dag))


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 4))
def test_stencil_counts(rows: int, cols: int, steps: int) -> None:
    assert size(stencil1d_dag(cols, steps)) == (cols * (steps + 1), (3 * cols - 2) * steps)
    edges = 5 * rows * cols - 2 * rows - 2 * cols
    assert size(stencil2d_dag(rows, cols, steps)) == (rows * cols * (steps + 1), edges * steps)
    assert nx.is_isomorphic(stencil2d_dag(1, cols, 1), stencil1d_dag(cols, 1))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: gemm_dag(0, 1, 1), "m: got 0"),
        (lambda: gemm_dag(2, 2, 2, tile=(1, 0, 1)), "tile of n: got 0"),
        (lambda: gemm_dag(2, 2, 2, tile=(1, 1)), "three extents"),
        (lambda: gemm_dag(4096, 4096, 4096), "at most 1,000,000; use larger tiles"),
        (lambda: gemm_dag(2**32, 1, 1), "at most 1,000,000 tiles"),
        (lambda: matrix_chain_dag((2, 2)), "at least three"),
        (lambda: matrix_chain_dag((2, 2, 2), tile=(1, 1)), "one for each of the 3 dims"),
        (lambda: ffn_dag(2, 2, 2, tile=(1,)), "four extents"),
        (lambda: attention_dag(2, 2, 2, tile=(1,)), "three extents"),
        (lambda: conv2d_dag(1, 1, 1, 2, 2, 1, tile=(1,)), "two extents"),
        (lambda: conv2d_dag(1, 1, 1, 9000, 9000, 3), "use larger tiles"),
        (lambda: tree_dag(4, arity=1), "at least 2"),
        (lambda: fft_dag(6), "power of two"),
        (lambda: fft_dag(1), "power of two"),
        (lambda: stencil2d_dag(2000, 2000, 2), "use larger tiles"),
        (lambda: diamond_dag(2.5), "size: got 2.5"),
    ],
)
def test_wrong_parameters(build, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build()


def test_unknown_choices() -> None:
    with pytest.raises(UnknownNameError, match="did you mean in-place"):
        gemm_dag(1, 1, 1, form="inplace")
    with pytest.raises(UnknownNameError, match="did you mean strict"):
        attention_dag(1, 1, 1, softmax="strikt")


@pytest.mark.parametrize("k", [1, 2])
def test_in_place_is_the_chain_sliding_with_fewer_orders(k: int) -> None:
    for capacity in (3, 4):
        in_place = brute_force(gemm_dag(1, 2, k), capacity, "in-place")
        chain = brute_force(gemm_dag(1, 2, k, form="chain"), capacity, "one-shot-sliding")
        assert in_place <= chain
        assert chain == brute_force(gemm_dag(2, 1, k, form="chain"), capacity, "one-shot-sliding")  # transposed

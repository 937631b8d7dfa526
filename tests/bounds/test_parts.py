"""Bounds of parts, added (Theorem 6): against exact optima of joined DAGs, schedules, and the theorem of one part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pebble
from pebble.bounds import Box, Piece, WorkloadPart
from pebble.bounds import lower_bound as bound_of
from pebble.bounds.parts import SumOfParts, bound_parts
from pebble.cdag import matrix_chain_dag
from pebble.errors import InputError
from pebble.families import FAMILIES, accounting, lower_bound, read_workload
from pebble.game import Game
from pebble.solvers import solve
from pebble.workloads import Attention, Ffn, Gemm, GroupedGemm, TransformerLayer, named_workload
from tests.bounds.joined_dags import grouped_dag, layer_dag
from tests.rooms import in_values

GROUPED, LAYER = FAMILIES["grouped"], FAMILIES["layer"]


def no_more_than(game: Game, capacity: int, variant: str, seconds: float = 3.0) -> float:
    """What some pebbling costs: the optimum, or the cheapest found in time."""
    result = solve(game, capacity, variant, "auto", seconds)
    assert result.upper_bound is not None
    return float(result.upper_bound)


# independent products

GROUPS = [
    ((1, 1), 2, 2, False),
    ((2, 1), 2, 1, False),
    ((2, 2), 2, 1, True),
    ((1, 2), 1, 3, False),
    ((2, 2), 2, 2, False),
    ((1, 1, 2), 2, 1, False),
]


@pytest.mark.parametrize(("rows", "n", "k", "accumulate"), GROUPS)
def test_independent_products_cost_at_least_the_sum(rows: tuple[int, ...], n: int, k: int, accumulate: bool) -> None:
    grouped = GroupedGemm(rows, n, k, accumulate=accumulate)
    dag = grouped_dag(grouped)
    game = Game.from_dag(dag, "in-place")
    assert game.compulsory == grouped.compulsory_elements
    for capacity in (3, 4, 5, 6, 8, 12):
        optimum = solve(game, capacity, "in-place", "auto", 10)
        assert optimum.status == "optimal"
        known = in_values(GROUPED.best_schedule, grouped, capacity)
        assert known is not None
        assert lower_bound(grouped, capacity).elements <= optimum.upper_bound <= known.elements


def test_products_side_by_side_share_all_of_fast_memory() -> None:
    """Tight: at S = 4 each product alone costs 14, and the bound is the sum of two bounds with all of S."""
    single, two = Gemm(2, 2, 2), GroupedGemm((2, 2), 2, 2)
    for capacity in range(3, 9):
        assert lower_bound(two, capacity).elements == 2 * lower_bound(single, capacity).elements
    assert solve(Game.from_dag(grouped_dag(two), "in-place"), 4).upper_bound == 28


@pytest.mark.parametrize("form", ["chain", "separate"])
@pytest.mark.parametrize("rows", [(1, 1), (2, 1)])
def test_independent_products_with_recomputation(rows: tuple[int, ...], form: str) -> None:
    """Chains and separate sums relax nothing: each is one order of the multiply-adds of the theorem's game."""
    grouped = GroupedGemm(rows, 1, 2)
    game = Game.from_dag(grouped_dag(grouped, form), "recompute-sliding")
    for capacity in (3, 4, 6):
        bound = lower_bound(grouped, capacity, recompute=True)
        assert bound.elements == lower_bound(grouped, capacity).elements
        assert bound.elements <= no_more_than(game, capacity, "recompute-sliding")


def test_the_bound_is_more_than_compulsory_where_memory_is_small() -> None:
    grouped = GroupedGemm((2, 2), 2, 2)
    assert lower_bound(grouped, 3).elements > grouped.compulsory_elements
    assert isinstance(lower_bound(grouped, 3).proof, SumOfParts)


# parts that use each other's results


def chain_parts(dims: Sequence[int]) -> tuple[WorkloadPart, ...]:
    """((M1 M2) M3) ...: every product but the last is handed over, every left operand but the first too."""
    parts = []
    rows, last = dims[0], len(dims) - 1
    for number in range(2, len(dims)):
        inner, cols = dims[number - 1], dims[number]
        first, ends = number == 2, number == last
        initialised = (0 if first else rows * inner) + (0 if ends else rows * cols)
        least = inner * cols + (rows * inner if first else 0) + (rows * cols if ends else 0)
        piece = Piece("product", "", Box(rows, cols, inner), (rows * cols * inner,), initialised)
        parts.append(WorkloadPart(f"P{number - 1}", (piece,), least))
    return tuple(parts)


CHAINS = [(2, 2, 2, 2), (1, 2, 2, 2), (2, 1, 2, 1), (3, 1, 2, 1), (1, 2, 2, 1, 2), (2, 1, 1, 1, 2), (2, 2, 1, 2)]


@pytest.mark.parametrize("dims", CHAINS)
def test_products_that_use_each_other(dims: tuple[int, ...]) -> None:
    game = Game.from_dag(matrix_chain_dag(dims), "in-place")
    parts = chain_parts(dims)
    assert sum(part.least for part in parts) == game.compulsory
    for capacity in (3, 4, 5, 7, 10):
        assert game.compulsory <= bound_parts(parts, capacity).elements <= no_more_than(game, capacity, "in-place")


def test_what_is_handed_over_is_taken_off_once_on_each_side() -> None:
    """Where the segments count, the parts say the sum of the products less what is handed over."""
    dims, capacity = (30, 30, 30, 30), 40
    alone = lower_bound(Gemm(30, 30, 30), capacity).elements
    assert bound_parts(chain_parts(dims), capacity).elements == 2 * alone - 2 * 900


# layers

TINY = [(2, 1, 1), (2, 2, 1), (3, 1, 1), (1, 2, 2)]


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize(("tokens", "d_model", "head_dim"), TINY)
def test_a_tiny_layer_costs_at_least_its_bound(tokens: int, d_model: int, head_dim: int, gated: bool) -> None:
    layer = TransformerLayer(tokens, d_model, 2, 1, 1, head_dim, 0, gated)
    game = Game.from_dag(layer_dag(layer), "in-place")
    assert game.compulsory == layer.compulsory_elements
    for capacity in (4, 6, 12):
        assert lower_bound(layer, capacity).elements <= no_more_than(game, capacity, "in-place", 1.5)


counts = st.integers(1, 24)
layers = st.builds(
    lambda t, d, f, kv, g, hd, vd, gated: TransformerLayer(t, d, f, kv * g, kv, hd, vd, gated),
    counts, counts, counts, st.integers(1, 2), st.integers(1, 3), st.integers(1, 9), st.integers(1, 9), st.booleans(),
)  # fmt: skip


@settings(deadline=None, max_examples=20)
@given(layers, st.integers(8, 600), st.integers(0, 300))
def test_a_layer_between_its_inputs_and_its_kernels(layer: TransformerLayer, capacity: int, more: int) -> None:
    lower, separate = lower_bound(layer, capacity), LAYER.separate_bound(layer, capacity)
    assert separate is not None
    assert layer.compulsory_elements <= lower.elements <= separate.elements
    assert separate.elements == sum(lower_bound(kernel, capacity).elements for kernel in layer.kernels)
    assert lower_bound(layer, capacity + more).elements <= lower.elements
    assert lower_bound(layer, capacity, recompute=True).elements <= lower.elements
    known = in_values(LAYER.best_schedule, layer, capacity)
    if known is not None:
        each = [in_values(FAMILIES[kernel.FAMILY].best_schedule, kernel, capacity) for kernel in layer.kernels]
        assert lower.elements <= known.elements and lower.bytes <= known.bytes
        kernel_by_kernel = sum(schedule.elements for schedule in each if schedule is not None)
        assert max(separate.elements, known.elements) <= kernel_by_kernel


@settings(deadline=None, max_examples=8)
@given(layers, st.integers(40, 2400), st.booleans(), st.booleans())
def test_kernels_of_a_layer_by_themselves_are_one_number(
    layer: TransformerLayer, capacity: int, sums: bool, recompute: bool
) -> None:
    """In bytes, with partial sums in fp32 too, and where values may be computed again."""
    result = pebble.bound(layer, cache=f"{capacity}B", accumulators="fp32" if sums else None, recompute=recompute)
    assert result.separate is not None and result.separate_ratio is not None
    assert result.separate.bytes == sum(part["alone_bytes"] for part in result.parts)
    assert result.separate.bytes >= result.lower.bytes and result.separate_ratio >= 1
    assert result.separate.recompute == recompute
    once = LAYER.separate_bound(layer, result.capacity.elements, result.capacity.memory)
    assert once is not None and result.separate.bytes <= once.bytes
    assert result.certificate()["claims"]


def test_a_layer_whose_values_may_be_computed_again_has_no_kernels_that_may_not() -> None:
    """The FFN of llama-3-8b alone: 1,065.4 MB was said here, proved of values computed once."""
    layer = named_workload("llama-3-8b:layer", 8192)
    answers = [pebble.bound(layer, gpu="h100-sxm5-80gb", recompute=again) for again in (False, True)]
    once, again = (answer.separate.bytes for answer in answers)
    assert (once, again) == (1126951388, 1051288348)


def test_a_layer_is_its_kernels() -> None:
    layer = TransformerLayer(64, 32, 96, 4, 2, 8, 8)
    qkv, attention, projection, mlp = layer.kernels
    assert (qkv.m, qkv.n, qkv.k) == (64, (4 + 2 + 2) * 8, 32)
    assert isinstance(attention, Attention) and attention.causal and attention.groups == 2
    assert (projection.m, projection.n, projection.k) == (64, 32, 32)
    assert isinstance(mlp, Ffn) and mlp.gated
    # X, the weights and Y
    weights = 32 * 64 + 32 * 32 + 3 * 32 * 96
    assert layer.compulsory_elements == 2 * 64 * 32 + weights


def test_what_a_layer_hands_over_is_taken_off() -> None:
    """Where a theorem bounds every kernel: QKV twice, the heads' outputs twice, the projection's result twice."""
    layer, capacity = TransformerLayer(512, 512, 1024, 8, 4, 64, 32, gated=False), 3000
    kernels = [bound_of(accounting(kernel).quick, capacity) for kernel in layer.kernels]
    assert all(type(kernel.proof).__name__ in ("Segments", "LineBound") for kernel in kernels)
    qkv = 512 * (8 * 64 + 4 * 64 + 4 * 32)
    heads, projected = 512 * 8 * 32, 512 * 512
    least = sum(kernel.elements for kernel in kernels) - 2 * (qkv + heads + projected)
    assert lower_bound(layer, capacity).elements == least


def test_a_large_layer_moves_more_than_its_weights() -> None:
    layer = read_workload("llama-3-8b:layer", {"tokens": 8192})
    lower = lower_bound(layer, 40 * 2**19)
    assert isinstance(lower.proof, SumOfParts)
    assert lower.elements > 1.5 * layer.compulsory_elements


# the two spellings, and one part


sizes = st.integers(1, 60)


@settings(max_examples=33, deadline=None)
@given(sizes, sizes, sizes, st.integers(3, 2000), st.booleans(), st.booleans())
def test_one_group_is_a_gemm(m: int, n: int, k: int, capacity: int, accumulate: bool, recompute: bool) -> None:
    gemm, grouped = Gemm(m, n, k, accumulate=accumulate), GroupedGemm((m,), n, k, accumulate=accumulate)
    alone, whole = lower_bound(gemm, capacity, recompute), lower_bound(grouped, capacity, recompute)
    assert (whole.elements, whole.bytes) == (alone.elements, alone.bytes)
    known, of_gemm = (
        in_values(GROUPED.best_schedule, grouped, capacity),
        in_values(FAMILIES["gemm"].best_schedule, gemm, capacity),
    )
    assert known is not None and of_gemm is not None
    assert (known.elements, known.bytes) == (of_gemm.elements, of_gemm.bytes)


@settings(max_examples=33, deadline=None)
@given(
    st.lists(sizes, min_size=1, max_size=6), sizes, sizes, st.integers(3, 2000), st.integers(0, 500), st.booleans(),
    st.sampled_from(["bf16", "fp8", "fp32"]), st.sampled_from(["bf16", "fp8", "fp32"]),
)  # fmt: skip
def test_groups_add_up_below_their_schedules(
    rows: list[int], n: int, k: int, capacity: int, more: int, accumulate: bool, dtype: str, out: str
) -> None:
    grouped = GroupedGemm(tuple(rows), n, k, dtype, out, accumulate)
    lower, known = lower_bound(grouped, capacity), in_values(GROUPED.best_schedule, grouped, capacity)
    assert known is not None
    assert lower.elements == sum(lower_bound(gemm, capacity).elements for gemm in grouped.gemms)
    assert lower.elements <= known.elements and lower.bytes <= known.bytes
    assert lower.bytes >= grouped.compulsory_bytes
    assert lower_bound(grouped, capacity + more).elements <= lower.elements
    turned = GroupedGemm(tuple(reversed(rows)), n, k, dtype, out, accumulate)
    assert lower_bound(turned, capacity).elements == lower.elements


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_a_batch_is_equal_groups_with_matrices_of_their_own(batch: int) -> None:
    made = read_workload("gemm", {"m": 5, "n": 6, "k": 7, "batch": batch})
    if batch == 1:
        assert made == Gemm(5, 6, 7)
    else:
        assert (
            made == GroupedGemm((5,) * batch, 6, 7) == read_workload("grouped", {"rows": (5,) * batch, "n": 6, "k": 7})
        )
    for capacity in (3, 10, 50):
        assert lower_bound(made, capacity).elements == batch * lower_bound(Gemm(5, 6, 7), capacity).elements
    # each B is read by itself: a batch is no taller product
    assert lower_bound(made, 10**6).elements == batch * (5 * 7 + 7 * 6 + 5 * 6)


def test_a_group_without_rows_moves_nothing() -> None:
    assert GroupedGemm((5, 0, 7, 0), 4, 6) == GroupedGemm((5, 7), 4, 6)


@pytest.mark.parametrize("rows", [(), (0, 0), (-1,), (2.5,), "12", 5, None, ("a",), (1,) * 4097])
def test_rows_that_are_none(rows: Any) -> None:
    with pytest.raises(InputError, match=r"^rows: got .*\.$"):
        GroupedGemm(rows, 4, 4)

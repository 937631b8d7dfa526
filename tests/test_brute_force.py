"""The brute force itself, against optima that were proved by other programs."""

import pytest

from pebble.cdag import diamond_dag, dpgrid_dag, fft_dag, gemm_dag, matrix_chain_dag, tree_dag
from tests.brute_force import brute_force

ONE, ONE_SLIDING, RE, RE_SLIDING = "one-shot", "one-shot-sliding", "recompute", "recompute-sliding"


@pytest.mark.parametrize(
    ("dag", "variant", "optima"),
    [
        (tree_dag(4), ONE, {3: 7, 4: 5}),
        (tree_dag(4), ONE_SLIDING, {2: 7, 3: 5}),
        (tree_dag(4), RE, {3: 7, 4: 5}),
        (tree_dag(4), RE_SLIDING, {2: 7, 3: 5}),
        (tree_dag(8), ONE, {3: 15}),
        (tree_dag(8), ONE_SLIDING, {2: 15, 3: 11}),
        (tree_dag(8), RE_SLIDING, {2: 15}),
        (diamond_dag(2), ONE, {3: 2}),
        (diamond_dag(2), ONE_SLIDING, {2: 2}),
        (diamond_dag(3), ONE, {3: 6, 4: 2}),
        (diamond_dag(3), ONE_SLIDING, {2: 6, 3: 2}),
        (diamond_dag(3), RE, {3: 5, 4: 2}),
        (diamond_dag(3), RE_SLIDING, {2: 5, 3: 2}),
        (dpgrid_dag(2), ONE, {3: 7, 4: 5}),
        (dpgrid_dag(2), ONE_SLIDING, {2: 7, 3: 5}),
        (dpgrid_dag(2), RE, {3: 7, 4: 5}),
        (dpgrid_dag(2), RE_SLIDING, {2: 7, 3: 5}),
        # the result slides over a value that is loaded again for the very next computation
        (fft_dag(4), ONE_SLIDING, {2: 17}),
        (fft_dag(4), RE_SLIDING, {2: 17}),
        (fft_dag(4), ONE, {3: 14}),
        (gemm_dag(2, 1, 2), "in-place", {3: 9, 4: 8}),
    ],
)
def test_known_optima(dag, variant: str, optima: dict[int, int]) -> None:
    assert {capacity: brute_force(dag, capacity, variant) for capacity in optima} == optima


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dag", "variant", "capacity", "optimum"),
    [
        (gemm_dag(2, 2, 2, form="chain"), ONE_SLIDING, 3, 17),
        (gemm_dag(2, 2, 2), "in-place", 3, 17),
        (diamond_dag(4), ONE, 3, 14),
        (diamond_dag(4), RE_SLIDING, 2, 11),
    ],
)
def test_larger_known_optima(dag, variant: str, capacity: int, optimum: int) -> None:
    assert brute_force(dag, capacity, variant) == optimum


def test_a_chain_of_products_in_place() -> None:
    # (1x2)(2x1)(1x2): nothing is moved twice at the least capacity
    assert brute_force(matrix_chain_dag((1, 2, 1, 2)), 3, "in-place") == 2 + 2 + 2 + 2


def test_infeasible() -> None:
    assert brute_force(tree_dag(2), 2, ONE) is None
    assert brute_force(tree_dag(2), 1, ONE_SLIDING) is None
    assert brute_force(gemm_dag(1, 1, 1), 2, "in-place") is None

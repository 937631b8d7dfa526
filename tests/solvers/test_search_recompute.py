"""The search with recomputation against brute force, and on optima that CP-SAT does not reach."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.errors import InputError
from pebble.families import build_dag
from pebble.game import Game, Variant, minimum_capacity
from pebble.solvers import solve
from tests.brute_force import brute_force
from tests.cdag.strategies import plain_dags

VARIANTS = (Variant.RECOMPUTE, Variant.RECOMPUTE_SLIDING)


@settings(max_examples=13, deadline=None)
@given(plain_dags(most_values=5), st.sampled_from(VARIANTS), st.integers(0, 2))
def test_against_brute_force(dag, variant, more):
    game = Game.from_dag(dag, variant)
    capacity = minimum_capacity(game) + more
    result = solve(game, capacity, solver="search", time_limit=3600)
    assert result.lower_bound == result.upper_bound == brute_force(dag, capacity, str(variant))


# proved by exhaustive search elsewhere; recomputation helps only on the diamonds
KNOWN = [
    ("diamond", {"size": 4}, "recompute", 3, 11), ("diamond", {"size": 4}, "recompute", 4, 4),
    ("diamond", {"size": 4}, "recompute-sliding", 2, 11), ("diamond", {"size": 4}, "one-shot", 3, 14),
    ("fft", {"size": 4}, "recompute", 3, 14), ("fft", {"size": 4}, "recompute-sliding", 2, 17),
    ("gemm", {"m": 2, "n": 2, "k": 2, "form": "separate"}, "recompute", 4, 17),
    ("gemm", {"m": 2, "n": 2, "k": 2, "form": "separate"}, "recompute-sliding", 3, 17),
    ("gemm", {"m": 2, "n": 2, "k": 2, "form": "chain"}, "recompute-sliding", 4, 14),
]  # fmt: skip


@pytest.mark.parametrize(("family", "values", "variant", "capacity", "optimum"), KNOWN)
def test_known_optima(family, values, variant, capacity, optimum):
    game = Game.from_dag(build_dag(family, values, Variant(variant)), variant)
    result = solve(game, capacity, solver="auto", time_limit=3600)
    assert (result.lower_bound, result.upper_bound) == (optimum, optimum)


def test_too_large_or_weighted_is_refused_by_name():
    big = Game.from_dag(build_dag("fft", {"size": 16}, VARIANTS[0]), VARIANTS[0])
    with pytest.raises(InputError, match="at most 32"):
        solve(big, 5, solver="search")
    dag = build_dag("tree", {"leaves": 3}, VARIANTS[0])
    next(iter(dag.nodes(data=True)))[1]["weight"] = 2
    with pytest.raises(InputError, match="2 weights"):
        solve(dag, 9, "recompute", solver="search")

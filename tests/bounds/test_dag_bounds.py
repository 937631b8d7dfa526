"""Every general bound is below the brute-force optimum on random DAGs, and bites on some known ones."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.bounds.dag import best_bound, dag_bounds, hong_kung, spectral, wavefront
from pebble.cli import main
from pebble.errors import InfeasibleError
from pebble.families import build_dag
from pebble.game import Game, Variant, minimum_capacity
from tests.brute_force import brute_force
from tests.cdag.strategies import cell_dags, plain_dags

PLAIN = [v for v in Variant if v is not Variant.IN_PLACE]


@settings(max_examples=30, deadline=None)
@given(plain_dags(most_values=5), st.sampled_from(PLAIN), st.integers(0, 2))
def test_never_above_the_optimum(dag, variant, more):
    game = Game.from_dag(dag, variant)
    capacity = minimum_capacity(game) + more
    optimum = brute_force(dag, capacity, str(variant))
    for bound in dag_bounds(game, capacity, seconds=5):
        assert (bound.value is not None) == (variant in bound.variants), bound
        assert bound.value is None or bound.value <= optimum, bound


@settings(max_examples=20, deadline=None)
@given(plain_dags(most_values=4, most_weight=4), st.sampled_from(PLAIN), st.integers(0, 4))
def test_never_above_the_weighted_optimum(dag, variant, more):
    game = Game.from_dag(dag, variant)
    capacity = minimum_capacity(game) + more
    optimum = brute_force(dag, capacity, str(variant))
    for bound in dag_bounds(game, capacity, seconds=5):
        assert bound.value is None or bound.value <= optimum, bound


@settings(max_examples=15, deadline=None)
@given(cell_dags(), st.integers(0, 2))
def test_never_above_the_optimum_with_cells(dag, more):
    game = Game.from_dag(dag, Variant.IN_PLACE)
    capacity = minimum_capacity(game) + more
    optimum = brute_force(dag, capacity, "in-place")
    for bound in dag_bounds(game, capacity, seconds=5):
        assert bound.value is None or bound.value <= optimum, bound


# optima proved by exhaustive search: (family, values, variant, capacity, optimum)
KNOWN = [
    ("diamond", {"size": 4}, "one-shot", 3, 14), ("diamond", {"size": 4}, "recompute", 3, 11),
    ("fft", {"size": 4}, "one-shot", 3, 14), ("fft", {"size": 8}, "one-shot", 3, 40),
    ("fft", {"size": 4}, "recompute-sliding", 2, 17),
]  # fmt: skip


@pytest.mark.parametrize(("family", "values", "variant", "capacity", "optimum"), KNOWN)
def test_never_above_known_optima(family, values, variant, capacity, optimum):
    game = Game.from_dag(build_dag(family, values, Variant(variant)), variant)
    bounds = dag_bounds(game, capacity, seconds=5)
    assert all(b.value is None or b.value <= optimum for b in bounds)
    assert best_bound(bounds).value >= game.compulsory


def test_wavefront_bites_on_a_diamond():
    # n x n grid: half way, n values are live; they do not fit
    game = Game.from_dag(build_dag("diamond", {"size": 12}, Variant.ONE_SHOT), "one-shot")
    bound = wavefront.bound(game, 3, 3600)
    assert bound.value > game.compulsory + 2 * (12 - 3) - 4
    assert wavefront.bound(game, 40, 3600).value == game.compulsory


def test_spectral_bites_on_a_large_fft():
    game = Game.from_dag(build_dag("fft", {"size": 128}, Variant.ONE_SHOT), "one-shot")
    assert spectral.bound(game, 4, 3600).value > 0


def test_hong_kung_counts_parts():
    game = Game.from_dag(build_dag("fft", {"size": 8}, Variant.RECOMPUTE), "recompute")
    assert hong_kung.bound(game, 3, 3600).value >= 3
    assert hong_kung.bound(game, 30, 3600).value == 0


def test_infeasible_capacity_is_named():
    game = Game.from_dag(build_dag("fft", {"size": 4}, Variant.ONE_SHOT), "one-shot")
    with pytest.raises(InfeasibleError, match="at least 3"):
        dag_bounds(game, 2)


def test_command(tmp_path, capsys):
    path = tmp_path / "fft.json"
    assert main(["dag", "fft", "--size", "8", "--out", str(path)]) == 0
    capsys.readouterr()
    assert main(["bound", str(path), "--capacity", "3", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["lower_bound"]["elements"] <= 40 <= result["upper_bound"]["elements"]
    assert {b["name"] for b in result["bounds"]} == {"compulsory", "segments", "wavefront", "spectral", "hong-kung"}
    assert all(b["holds_for"] for b in result["bounds"])
    for arguments, code, part in (
        ([], 2, "--capacity missing"), (["--capacity", "2"], 4, "at least 3"), (["--capacity", "0"], 2, "from 1"),
        (["--capacity", "3", "--cache", "1MiB"], 2, "--cache"),
        (["--capacity", "3", "--variant", "one"], 2, "one-shot"),
    ):  # fmt: skip
        assert main(["bound", str(path), *arguments]) == code
        assert part in capsys.readouterr().err
    assert main(["bound", "nowhere.json", "--capacity", "3"]) == 2

"""The optimum is concave in what a copy costs: what is proved at omega 0 and 1 bounds what lies between."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pebble.cdag.products import gemm_dag
from pebble.errors import InputError
from pebble.game import BufferModel, Game, minimum_capacity
from pebble.solvers import solve
from pebble.solvers.result import Incumbent, Problem
from pebble.solvers.several import state_search
from pebble.solvers.several.ends import NAME, has_ends, raise_by_ends
from pebble.units import ceil_div
from tests.solvers import random_dags

QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}
NETS = [("all-to-all", 2), ("all-to-all", 3), ("ring", 4), ("cluster-2", 4), ("partitions-2", 4)]


@settings(max_examples=30, **QUIET)
@given(
    st.booleans().flatmap(lambda w: st.one_of(random_dags.dags(5, w), random_dags.cell_dags(w))),
    st.sampled_from(NETS), st.sampled_from(["1/4", "1/2", "2/3"]), st.integers(0, 1), st.booleans(),
)  # fmt: skip
def test_no_optimum_is_less(dag: nx.DiGraph, net: tuple[str, int], omega: str, extra: int, even: bool) -> None:
    try:
        game = Game.from_dag(dag)
    except InputError:  # a node that no output needs
        return
    if not 0 < len(game.tasks) <= 5:
        return
    most = ceil_div(len(game.tasks), net[1]) if even else None
    buffers, capacity = BufferModel("connected", net[1], Fraction(omega), net[0]), minimum_capacity(game) + extra
    result = solve(game, capacity, buffers=buffers, most_tasks_per_sm=most, time_limit=600)
    best = Incumbent(Problem(game, capacity, 0, buffers, most), 600)
    raise_by_ends(best)
    assert result.status == "optimal" and best.lower <= best.unit * result.upper_bound
    assert best.upper is None or best.upper >= best.unit * result.upper_bound


def test_what_both_ends_prove_of_a_product() -> None:
    """One memory of 6 needs 25 for 3 x 3 x 2, two of 3 at omega 1 need 37: at least 28 at 1/4, where 29.25 is least."""
    best = Incumbent(Problem(Game.from_dag(gemm_dag(3, 3, 2)), 3, 0, BufferModel("connected", 2, Fraction(1, 4))), 600)
    raise_by_ends(best)
    assert (best.lower, best.proof) == (4 * 28, (NAME,))
    assert best.upper is not None and best.upper >= 117


@pytest.mark.parametrize(("omega", "most", "optimum"), [("1/4", None, "14"), ("1/4", 4, "57/4"), ("1/2", None, "31/2")])
def test_the_search_goes_on_afterwards(
    omega: str, most: int | None, optimum: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def first(best: Incumbent) -> None:
        asked.append(best)
        raise_by_ends(best)

    monkeypatch.setattr(state_search, "_ALONE_SHARE", 0)
    monkeypatch.setattr(state_search, "raise_by_ends", first)
    buffers, game = BufferModel("connected", 2, Fraction(omega)), Game.from_dag(gemm_dag(2, 2, 2))
    result = solve(game, 3, buffers=buffers, solver="search", most_tasks_per_sm=most, time_limit=600)
    assert len(asked) == 1 and (result.status, result.upper_bound) == ("optimal", Fraction(optimum))


@pytest.mark.parametrize("omega", [0, 1, Fraction(3, 2)])
def test_an_end_has_no_ends(omega: int | Fraction) -> None:
    game = Game.from_dag(gemm_dag(2, 2, 1))
    assert not has_ends(Problem(game, 3, 0, BufferModel("connected", 2, Fraction(omega))))
    assert not has_ends(Problem(game, 3, 0, BufferModel("sm-local", 2)))

"""Certificates of games on several SMs: the replay agrees with the referee, the bound is below every optimum."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pebble
from pebble.certificate import RefusedError, check
from pebble.certificate.games_on_sms import windows_bound
from pebble.cli import main
from pebble.errors import InputError
from pebble.game import BufferModel, Game, minimum_capacity
from pebble.proof.on_sms import game_certificate
from pebble.solvers import solve
from tests.certificate.mutate import mutations
from tests.solvers import random_dags
from tests.solvers.brute_force_several import brute_force_several

QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}
MODELS = [
    BufferModel("sm-local", 2),
    BufferModel("connected", 2, Fraction(1, 4)),
    BufferModel("connected", 2, Fraction(3, 2), "ring"),
    BufferModel("connected", 3, Fraction(1, 2), "cluster-2"),
    BufferModel("connected", 4, Fraction(1, 3), "partitions-2"),
    BufferModel("connected", 4, Fraction(1, 2), "mesh-2x2"),
]


@settings(max_examples=8, **QUIET)
@given(
    st.one_of(st.booleans().flatmap(lambda w: random_dags.dags(5, w)), random_dags.cell_dags()),
    st.sampled_from(MODELS[:3]),
    st.integers(0, 2),
    st.booleans(),
)
def test_no_bound_is_above_the_optimum(dag, buffers: BufferModel, extra: int, even: bool) -> None:
    try:
        game = Game.from_dag(dag)
    except InputError:  # a node that no output needs
        return
    if game.size > 5 or not game.tasks:
        return
    capacity = minimum_capacity(game) + extra
    most = -(-len(game.tasks) // 2) if even else None
    optimum = brute_force_several(dag, capacity, 2, buffers.copy_cost, most)
    result = solve(game, capacity, buffers=buffers, solver="heuristic", most_tasks_per_sm=most, time_limit=600)
    if optimum is None:
        return
    with TemporaryDirectory() as folder:  # of an example, not of the test
        document = game_certificate(game, capacity, result, most, Path(folder) / "c.json")
    assert Fraction(document["claims"][-1]["cost"]) <= optimum
    if result.pebbling is not None:
        assert Fraction(document["claims"][0]["cost"]) == result.upper_bound


@pytest.mark.parametrize("buffers", MODELS, ids=str)
def test_what_solvers_find_is_replayed(buffers: BufferModel, tmp_path: Path) -> None:
    for family, sizes in (("gemm", {"m": 2, "n": 2, "k": 2}), ("ffn", {"tokens": 2, "d_model": 1, "hidden": 2})):
        result = pebble.solve(family, 4, buffers=buffers, solver="heuristic", time_limit=600, **sizes)
        document = result.certify(tmp_path / "c.json")
        assert Fraction(document["claims"][0]["cost"]) == result.upper_bound
        assert Fraction(document["claims"][1]["cost"]) <= result.upper_bound
        assert check(json.loads((tmp_path / "c.json").read_text()))


def tiles(tmp_path: Path) -> dict[str, Any]:
    """An optimum that is proved: half of a product on each of two SMs."""
    result = pebble.solve(
        "gemm", gpu="h100", m=256, n=128, k=128, tile="128x128x64", buffers="connected", omega="1/2", balanced=True
    )
    return json.loads(json.dumps(result.certify(tmp_path / "c.json")))


def test_no_change_proves_something_else(tmp_path: Path) -> None:
    document = tiles(tmp_path)
    said = check(document)
    assert said[-1].startswith("so the optimum is")
    most = max(Fraction(claim["cost"]) for claim in document["claims"])
    for what, mutant in mutations(document):
        try:
            check(mutant)
        except RefusedError:
            continue
        # a name, an order of moves, other rules: what is proved of that game is proved by its own numbers
        for claim in mutant["claims"]:
            if claim["claim"] == "no cheaper pebbling":
                assert Fraction(claim["cost"]) == windows_bound(mutant["statement"], claim["proof"]) <= most, what


def test_what_is_against_the_rules(tmp_path: Path) -> None:
    document = tiles(tmp_path)
    moves = document["claims"][0]["moves"]

    def refused(change: dict[str, Any], why: str) -> None:
        with pytest.raises(RefusedError, match=why):
            check(change)

    def with_moves(new: list[Any]) -> dict[str, Any]:
        other = copy.deepcopy(document)
        other["claims"][0]["moves"] = new
        return other

    copied = next(i for i, move in enumerate(moves) if move[0] == "copy")
    refused(with_moves([*moves[:copied], [*moves[copied][:3], moves[copied][2]], *moves[copied + 1 :]]), "rules")
    refused(with_moves([["copy", *moves[0][1:], 1 - moves[0][2]], *moves[1:]]), "against the rules")
    refused(with_moves([*moves, moves[-1]]), "against the rules|no such")
    refused(with_moves(moves[:-8]), "not complete|computations|cost")
    refused(with_moves([[*move[:2], 0] for move in moves if move[0] != "copy"]), "rules|weighs|allowed")
    other = copy.deepcopy(document)
    other["claims"][1]["proof"]["touched"][0] += 1
    refused(other, "there are 1 tasks that touch less")
    other = copy.deepcopy(document)
    other["claims"][1]["proof"]["touched"][-1] = 0
    refused(other, "no less")
    other = copy.deepcopy(document)
    other["statement"]["memories"]["kind"] = "sm-local"
    refused(other, "the key 'omega'")


@pytest.mark.parametrize(("omega", "optimum"), [(None, 24), ("1", 20)])
def test_the_least_split_is_checked(omega: str | None, optimum: int, tmp_path: Path) -> None:
    """A network of 2 x 2 x 2, half of it on each of two SMs of 6: the optimum, by the checker alone."""
    net = {"buffers": "sm-local"} if omega is None else {"buffers": "connected", "omega": omega}
    result = pebble.solve("ffn", 6, tokens=2, d_model=2, hidden=2, sms=2, balanced=True, time_limit=600, **net)
    document = json.loads(json.dumps(result.certify(tmp_path / "c.json")))
    assert check(document)[-1] == f"so the optimum is {optimum}"
    spec = document["claims"][1]["proof"]["split"]
    assert spec["weight"] == optimum

    def refused(change: dict[str, Any], why: str) -> None:
        other = copy.deepcopy(document)
        other["claims"][1]["proof"]["split"] |= change
        with pytest.raises(RefusedError, match=why):
            check(other)

    refused({"weight": optimum + 1}, f"a split that costs less than {optimum + 1}")
    refused({"order": [*spec["order"][1:], spec["order"][1]]}, "name each")
    document["statement"]["memories"]["most_tasks"] = len(spec["order"])
    with pytest.raises(RefusedError, match="a split that costs less"):
        check(document)


GROUPED = [
    ("ring", 6, "1/4", "gemm", {"m": 2, "n": 2, "k": 2}, "15"),
    ("cluster-2", 4, "1/8", "ffn", {"tokens": 1, "d_model": 1, "hidden": 2}, "9"),
    ("partitions-2", 4, "1/2", "gemm", {"m": 2, "n": 2, "k": 2}, "18"),
]


@pytest.mark.parametrize(("net", "sms", "omega", "family", "sizes", "proved"), GROUPED)
def test_groups_of_sms_are_checked(
    net: str, sms: int, omega: str, family: str, sizes: dict[str, int], proved: str, tmp_path: Path
) -> None:
    """Arcs, clusters, halves as one memory each, with a split of their own: more than all as one and each alone."""
    buffers = BufferModel("connected", sms, Fraction(omega), net)
    options: dict[str, Any] = {"buffers": buffers, "balanced": True, "solver": "heuristic", "time_limit": 600}
    result = pebble.solve(family, 3, **sizes, **options)
    document = json.loads(json.dumps(result.certify(tmp_path / "c.json")))
    claim = document["claims"][-1]
    assert result.most_tasks == -(-len(result.game.tasks) // sms)
    assert claim["cost"] == proved and result.lower_bound >= Fraction(proved)
    bare = {key: claim["proof"][key] for key in ("method", "touched")}
    assert windows_bound(document["statement"], bare) < Fraction(proved)
    del document["claims"][0]  # of the pebbling: what it costs would be said of the mutants as well

    for what, mutant in mutations(document):
        try:
            check(mutant)
        except RefusedError:
            continue
        after = mutant["claims"][0]
        assert Fraction(after["cost"]) == windows_bound(mutant["statement"], after["proof"]), what
        if mutant["statement"] == document["statement"]:
            assert Fraction(after["cost"]) == Fraction(proved), what

    def refused(change: list[dict[str, Any]], why: str) -> None:
        other = copy.deepcopy(document)
        other["claims"][0]["proof"]["groups"] = change
        with pytest.raises(RefusedError, match=why):
            check(other)

    groups = claim["proof"]["groups"]
    refused([{"sms": sms, "multiplier": "1"}, *groups], "more than a load costs")
    refused([{"sms": 1, "multiplier": "1"}], "a hop is charged more|cost")
    refused([{"sms": sms + 1, "multiplier": "1"}], "sms")
    refused([group | {"multiplier": "0"} for group in groups], "costs, at least")
    size, split = next((group["sms"], group["split"]) for group in groups if "split" in group)
    harder = [
        group | {"split": split | {"weight": split["weight"] + 1}} if group["sms"] == size else group
        for group in groups
    ]
    refused(harder, "a split that costs less|steps to see")
    if net != "ring":
        refused([{"sms": 3, "multiplier": "1"}], "nothing is known of groups of 3")


def test_without_copies_there_are_no_groups(tmp_path: Path) -> None:
    result = pebble.solve("gemm", 4, m=2, n=2, k=1, buffers="sm-local", sms=2, solver="heuristic")
    document = json.loads(json.dumps(result.certify(tmp_path / "c.json")))
    document["claims"][-1]["proof"]["groups"] = [{"sms": 1, "multiplier": "1"}]
    with pytest.raises(RefusedError, match="each SM is a group of its own"):
        check(document)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "c.json")
    words = ["solve", "gemm", "-m", "2", "-n", "2", "-k", "2", "--capacity", "4", "--sms", "2", "--solver", "heuristic"]
    words.append("--certificate")
    assert main([*words, path, "--buffers", "sm-local"]) == 0
    assert main(["verify", path]) == 0
    assert "on 2 SMs" in capsys.readouterr().out
    assert main([*words, path, "--buffers", "pooled"]) == 2
    assert main([*words, path, "--buffers", "sm-local", "--proof-log"]) == 2

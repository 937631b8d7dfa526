"""Certificates by cases: what is malformed, foreign or leaves a case out is refused; no change makes a claim false."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import pytest

from pebble.bounds.cases_choice import even, exact
from pebble.bounds.cases_search import Branching
from pebble.bounds.lagrangian import lagrangian_chains
from pebble.certificate import RefusedError, check
from pebble.certificate.cases import MOST_SEGMENTS, by_cases
from pebble.certificate.lagrangian_lines import Units
from pebble.families.ffn import FFN
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.workloads import Attention, Ffn, Gemm
from pebble.workloads.workload import Workload
from tests.certificate.lagrangian import refusal, with_proof
from tests.certificate.mutate import mutations
from tests.certificate.persuade import mutant, persuade
from tests.rooms import in_values
from tests.work import calls

CHAIN, CAPACITY, SEGMENTS = (16, 16, 16, 16), 150, 3
PRICES = ("room", "both", "first", "second", "a", "b", "cells", "d", "y", "again")


@cache
def _proof(gated: bool, cases: int, segments: int) -> str:
    problem = lagrangian_chains(FFN.chain(Ffn(*CHAIN, gated=gated)))[0]
    branching = Branching(problem, CAPACITY, even(problem.work, segments))
    branching.grow(cases)
    return json.dumps(exact(problem, CAPACITY, branching).claim())


@cache
def _document(gated: bool, cases: int, segments: int) -> str:
    proof = json.loads(_proof(gated, cases, segments))
    proof.pop("least")
    document = with_proof(Ffn(*CHAIN, gated=gated), CAPACITY, proof)
    assert persuade(document) is not None
    return json.dumps(document)


def of_chain(gated: bool = False, cases: int = 5, segments: int = SEGMENTS) -> dict[str, Any]:
    """A certificate of few cases, which claims what they prove."""
    document: dict[str, Any] = json.loads(_document(gated, cases, segments))
    return document


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    document = of_chain()
    change(document["claims"][0]["proof"])
    return refusal(document)


def leaf(proof: dict[str, Any]) -> dict[str, Any]:
    """The first case."""
    found: dict[str, Any] = next(node for node in proof["cases"] if "room" in node)
    return found


def parting(proof: dict[str, Any]) -> dict[str, Any]:
    """The first parting."""
    found: dict[str, Any] = next(node for node in proof["cases"] if "segment" in node)
    return found


@pytest.mark.parametrize("gated", [False, True])
def test_what_cases_prove_is_taken_and_no_more(gated: bool) -> None:
    document = of_chain(gated)
    claim = document["claims"][0]
    assert claim["elements"] <= in_values(best_ffn_schedule, Ffn(*CHAIN, gated=gated), CAPACITY).elements
    claim["proof"]["least"] = claim["elements"]
    check(document)
    claim["proof"]["least"] = claim["elements"] = claim["elements"] + 1
    assert "these cases prove" in refusal(document)


def test_the_bound_claims_what_the_checker_finds() -> None:
    """But for the unit that its rounding may lose."""
    claimed = json.loads(_proof(False, 5, SEGMENTS))["least"]
    assert of_chain()["claims"][0]["elements"] - claimed in (0, 1, 2)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda proof: proof["cases"].pop(), "left out"),
        (lambda proof: proof["cases"].append(leaf(proof)), "no case left"),
        (lambda proof: proof["cases"].insert(0, leaf(proof)), "no case left"),
        (lambda proof: parting(proof).update(segment=0), "at least 1"),
        (lambda proof: parting(proof).update(segment=4), "at most 3"),
        (lambda proof: parting(proof).update(most=-1), "whole number"),
        (lambda proof: parting(proof).update(most=10**6), "at most"),
        (lambda proof: parting(proof).update(most="5"), "whole number"),
        (lambda proof: parting(proof).pop("most"), "'most' is missing"),
        (lambda proof: parting(proof).update(room=[0, 0]), "nothing here has"),
        (lambda proof: proof.update(cases=[]), "1 to"),
        (lambda proof: proof.update(cases={}), "list"),
        (lambda proof: proof.update(cases=[None]), "object"),
        (lambda proof: proof["sizes"].append(1), "products"),
        (lambda proof: proof["sizes"].__setitem__(0, proof["sizes"][0] + 1), "products"),
        (lambda proof: proof["sizes"].__setitem__(0, 0), "at least 1"),
        (lambda proof: proof.update(sizes=[1] * (MOST_SEGMENTS + 1)), "list of 1 to 8"),
        (lambda proof: proof.update(form="gated chain"), "one of chain"),
        (lambda proof: proof.update(segments=3), "nothing here has"),
        (lambda proof: proof.pop("sizes"), "'sizes' is missing"),
        (lambda proof: leaf(proof)["first"].__setitem__(0, 0), "at least 1"),
        (lambda proof: leaf(proof)["second"].__setitem__(2, 0), "at least 1"),
        (lambda proof: leaf(proof)["both"].__setitem__(0, -1), "at least 0"),
        (lambda proof: leaf(proof)["room"].__setitem__(0, -1), "at least 0"),
        (lambda proof: leaf(proof)["room"].append(0), "list of 2"),
        (lambda proof: leaf(proof)["a"].pop(), "list of 3"),
        (lambda proof: leaf(proof)["a"].__setitem__(0, 2**97), "at most"),
        (lambda proof: leaf(proof)["y"].__setitem__(0, "1"), "whole number"),
        (lambda proof: leaf(proof).pop("y"), "missing"),
        (lambda proof: leaf(proof).update(e=[0, 0, 0]), "nothing here has"),
    ],
)
def test_proofs_that_are_none(change: Callable[[dict[str, Any]], object], why: str) -> None:
    assert why in changed(change)


def test_a_case_of_other_shares_does_not_pass_for_one_that_is_left_out() -> None:
    """The dearest prices of one case do not prove as much of all others."""
    document = of_chain(cases=20)
    proof, elements = document["claims"][0]["proof"], document["claims"][0]["elements"]
    leaves = [node for node in proof["cases"] if "room" in node]
    assert len(leaves) > 2
    for node in leaves:
        other = copy.deepcopy(document)
        other["claims"][0]["proof"]["cases"] = [node]
        if persuade(other) is not None:
            assert other["claims"][0]["elements"] < elements


@pytest.mark.parametrize("workload", [Attention(64, 64, 8, causal=True), Gemm(64, 64, 64)])
def test_workloads_that_the_theorem_is_not_about(workload: Workload) -> None:
    proof = json.loads(_proof(False, 5, SEGMENTS))
    assert "theorem" in refusal(with_proof(workload, 100, proof))


def test_games_that_the_theorem_is_not_about() -> None:
    document = of_chain()
    claim = document["claims"][0]
    claim["game"]["recompute"] = "allowed"
    assert "compute nothing again" in refusal(document)
    claim["game"] = {"recompute": "forbidden", "kernels": "separate"}
    assert "one of" in refusal(document)


def test_no_change_makes_a_certificate_false() -> None:
    document = of_chain(cases=3, segments=2)
    least = in_values(best_ffn_schedule, Ffn(*CHAIN), CAPACITY).elements
    refused = 0
    for what, other in random.Random(1).sample(list(mutations(document["claims"][0]["proof"])), 60):
        mutated = json.loads(json.dumps({**document, "claims": [{**document["claims"][0], "proof": other}]}))
        if persuade(mutated) is None:
            refused += 1
        else:
            assert mutated["claims"][0]["elements"] <= least, what
    assert 12 < refused < 60


@pytest.mark.parametrize("seed", range(4))
def test_changes_anywhere_end_in_one_sentence(seed: int) -> None:
    rnd = random.Random(seed)
    document = of_chain(cases=3, segments=2)
    for _ in range(5):
        persuade(mutant(document, rnd))


@pytest.mark.parametrize("seed", range(4))
def test_no_prices_take_long(seed: int) -> None:
    """Eight segments, and prices of any size."""
    rnd = random.Random(seed)
    shape = (10**9, 10**9, 10**9, 10**9, 10**18)

    def price(low: int) -> int:
        size = int(2.0 ** rnd.uniform(0, 95)) if rnd.random() < 0.8 else rnd.choice([0, 1, 2**64])
        return max(low, size * (rnd.choice([1, -1]) if low < 0 else 1))

    lowest = {"room": 0, "both": 0, "first": 1, "second": 1}
    h = MOST_SEGMENTS
    item = {name: [price(lowest.get(name, -(2**96))) for _ in range(h - (name == "room"))] for name in PRICES}
    proof = {"theorem": "cases of shares", "form": "chain", "sizes": [2 * 10**27 // h] * h, "cases": [item]}

    def prove() -> None:
        with suppress(RefusedError):
            by_cases(shape, 1, Units(1, 1, 1, 1), 10**6, proof, "proof")

    assert calls(prove) < 20_000_000  # some seconds

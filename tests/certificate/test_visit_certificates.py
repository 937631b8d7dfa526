"""Certificates of the visit theorem: nothing that its numbers do not prove is taken."""

from __future__ import annotations

import copy
import json
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from pebble.certificate import RefusedError, check
from pebble.certificate.statement import ALIKE, read_workload
from pebble.certificate.visits import by_visits
from pebble.proof.certificate import bound_certificate, workload_statement
from pebble.reports.bound import bound_workload, known_of
from pebble.workloads import Gemm, GroupedGemm, TransformerLayer
from pebble.workloads.widths import FastMemory
from pebble.workloads.workload import Workload
from tests.certificate.persuade import persuade

WORKLOADS: dict[str, tuple[Workload, int]] = {
    "A": (Gemm(300, 20000, 400), 90_000),
    "B": (Gemm(20000, 300, 400), 90_000),
    "C": (Gemm(300, 300, 20000), 80_000),
    "added to": (Gemm(300, 20000, 400, accumulate=True), 90_000),
    "few rows": (Gemm(40, 20000, 3000), 90_000),
    "batch": (GroupedGemm((300, 300), 20000, 400), 90_000),
}


def certificate(name: str) -> dict[str, Any]:
    workload, capacity = WORKLOADS[name]
    result: dict[str, Any] = json.loads(
        json.dumps(bound_certificate(workload, known_of(workload, capacity, FastMemory.of_values(capacity, workload))))
    )
    return result


def proof_of(document: dict[str, Any]) -> dict[str, Any]:
    """The proof that rests on visits."""
    proof: dict[str, Any] = document["claims"][0]["proof"]
    return proof["parts"][0] if "parts" in proof else proof


@pytest.mark.parametrize("name", WORKLOADS)
def test_accepted(name: str) -> None:
    document = certificate(name)
    assert proof_of(document)["theorem"] == "visits"
    assert any("moves at least" in line for line in check(document))


@pytest.mark.parametrize("output", ["bf16", "fp32"])
def test_accepted_in_bytes(output: str) -> None:
    result = bound_workload(Gemm(300, 20000, 400, out_dtype=output), cache="180000B", accumulators="fp32")
    assert "visit" in result.lower.method
    check(json.loads(json.dumps(result.certificate())))


@pytest.mark.parametrize("name", WORKLOADS)
def test_no_more_than_is_proved(name: str) -> None:
    """Two per cent more of what a slice moves is refused, also with all sums made to fit."""
    document = certificate(name)
    proof = proof_of(document)
    proof["slice_at_least"] = str(Fraction(proof["slice_at_least"]) * Fraction(102, 100))
    with pytest.raises(RefusedError, match="could not be proved"):
        check(copy.deepcopy(document))
    assert persuade(document) is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"streamed": "B"}, "could not be proved|the steps give"),
        ({"streamed": "D"}, "expected one of A, B, C"),
        ({"slice_at_least": "-1"}, "expected a fraction"),
        ({"slice_at_least": 3}, "expected a fraction"),
        ({"slice_at_least": "0"}, "the steps give"),
        ({"parts": 5}, "which nothing here has"),
    ],
)
def test_changed(change: dict[str, Any], why: str) -> None:
    document = certificate("A")
    proof_of(document).update(change)
    with pytest.raises(RefusedError, match=why):
        check(document)


def test_less_room_is_not_taken_for_more() -> None:
    """The same numbers for a larger memory prove less."""
    document = certificate("A")
    document["claims"][0]["capacity_elements"] += 9000
    with pytest.raises(RefusedError):
        check(document)


@pytest.mark.parametrize("family", ["ffn", "conv2d", "attention", "layer"])
def test_about_one_product_only(family: str) -> None:
    proof = {"theorem": "visits", "streamed": "A", "slice_at_least": "1"}
    other = replace(read_workload(workload_statement(Gemm(300, 20000, 400)), "workload"), family=family)
    with pytest.raises(RefusedError, match="about one product"):
        by_visits(other, ALIKE, 90_000, proof, "proof")


def test_not_for_a_product_inside_a_layer() -> None:
    """What is handed over arrives without a load."""
    layer = TransformerLayer(256, 128, 256, 2, 2, 64)
    document = json.loads(json.dumps(bound_workload(layer, cache="64KiB").certificate()))
    proof = {"theorem": "parts", "parts": [proof_of(certificate("batch"))] * 4}
    document["claims"][0]["proof"] = proof
    with pytest.raises(RefusedError, match=r"expected one of compulsory, segments, lines$"):
        check(document)


@pytest.mark.parametrize("seed", range(20))
def test_mutated(seed: int) -> None:
    """A number changed anywhere in the claim is refused, or proves no more."""
    rnd = random.Random(seed)
    document = certificate(rnd.choice(["A", "B", "C"]))
    claim = document["claims"][0]
    before = claim["elements"]
    key = rnd.choice(["elements", "bytes", "capacity_elements"])
    claim[key] += rnd.choice([-1, 1, 7, claim[key]])
    try:
        check(document)
    except RefusedError:
        return
    assert claim["elements"] <= before

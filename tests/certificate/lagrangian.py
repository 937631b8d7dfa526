"""Certificates of priced lines to try: good prices, flat ones, and what the checker says of them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from pebble.certificate import RefusedError, check
from pebble.certificate.lagrangian_lines import LINES
from pebble.proof.certificate import bound_certificate
from pebble.reports.bound import known_of
from pebble.workloads import Ffn
from pebble.workloads.widths import FastMemory
from pebble.workloads.workload import Workload
from tests.bounds.lagrangian_game import (
    ONE,
    Shape,
    proof_of,
    work_of,
)
from tests.bounds.lagrangian_search import best_proof
from tests.certificate.persuade import persuade

CHAIN: Shape = (16, 16, 16, 16)
CAPACITY, SEGMENTS, ENDS = 40, 30, (30, 137, 190, 274)


def with_proof(workload: Workload, capacity: int, proof: dict[str, Any]) -> dict[str, Any]:
    """A certificate of a lower bound, whose proof is another."""
    document: dict[str, Any] = json.loads(
        json.dumps(bound_certificate(workload, known_of(workload, capacity, FastMemory.of_values(capacity, workload))))
    )
    document["claims"] = [{**document["claims"][0], "proof": copy.deepcopy(proof)}]
    return document


def of_chain(form: str = "chain") -> dict[str, Any]:
    """A certificate with good prices, put right."""
    segments = SEGMENTS if form != "gated chain" else 45
    proof = best_proof(CHAIN, form, ONE, CAPACITY, segments, ENDS)
    document = with_proof(Ffn(*CHAIN, form != "chain"), CAPACITY, proof)
    assert persuade(document) is not None
    return document


def flat(form: str, shape: Shape, segments: int, mu: float, rho: float, count: int = 1) -> dict[str, Any]:
    """The same prices for all kinds."""
    longest = -(-work_of(shape, form) // segments)
    kind = {"before": rho, "after": 0.0, "first": mu, "second": mu, **dict.fromkeys(LINES, 0.0)}
    return proof_of(form, segments, [longest * (i + 1) // count for i in range(count)], [kind] * count)


def refusal(document: dict[str, Any]) -> str:
    with pytest.raises(RefusedError) as caught:
        check(document)
    spec = str(caught.value)
    assert len(spec) < 300 and "\n" not in spec
    return spec

"""Bounds and certificates of random workloads of every family, and certificates, as they were recorded once.

``python -m tests.certificate.test_recorded_bounds`` records anew: only where an answer is meant to change. They were
recorded when the theorem of a GEMM stood in a module of its own: they are what the box of m x n x k must give.

``recorded_certificates.json`` holds certificates as they were once written, of every family and theorem, in values and
in bytes, each with the sentences that it proves. They are never recorded anew: what was written once must verify.
"""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from pebble.certificate import RefusedError, check
from pebble.errors import InfeasibleError
from pebble.proof.certificate import bound_certificate
from pebble.reports.bound import known_of as answer
from pebble.workloads.widths import FastMemory
from tests.certificate.test_bound_certificates import random_workload

RECORDED = Path(__file__).with_name("recorded_bounds.txt")
WRITTEN: list[dict[str, Any]] = json.loads(Path(__file__).with_name("recorded_certificates.json").read_text())


def rows(count: int = 100) -> list[str]:
    """Workload, capacity, game; elements, bytes and segments of its bounds; a digest of the certificate."""
    rnd, result = random.Random(2024), []
    for _ in range(count):
        workload, capacity = random_workload(rnd, 4), rnd.choice([rnd.randint(3, 300), rnd.randint(3, 10**5)])
        recompute = rnd.random() < 0.4
        try:
            known = answer(workload, capacity, FastMemory.of_values(capacity, workload), 1, recompute)
        except InfeasibleError:  # a causal mask needs room for one query
            continue
        bounds = [b.to_json() for b in (known.lower, known.separate) if b is not None]
        entries = [(b["elements"], b["bytes"], b["certificate"].get("segments")) for b in bounds]
        digest = hashlib.sha256(json.dumps(bound_certificate(workload, known)).encode()).hexdigest()[:16]
        if not any("phi" in b["certificate"] for b in bounds):  # the digits of phi depend on the machine's arithmetic
            result.append(f"{workload.label}; S={capacity} recompute={recompute}: {entries} {digest}")
    return result


def test_bounds_and_certificates_are_as_recorded() -> None:
    recorded = RECORDED.read_text().splitlines()
    assert len(recorded) > 80
    assert rows() == recorded


@pytest.mark.parametrize("number", range(len(WRITTEN)))
def test_what_was_written_once_still_verifies(number: int) -> None:
    assert check(WRITTEN[number]["certificate"]) == WRITTEN[number]["proves"]


@pytest.mark.parametrize("number", range(0, len(WRITTEN), 7))
def test_what_was_written_once_proves_no_more(number: int) -> None:
    """One more byte, or for a schedule one less, and it is refused."""
    document = WRITTEN[number]["certificate"]
    for at, claim in enumerate(document["claims"]):
        changed = dict(claim, bytes=claim["bytes"] + (1 if claim["claim"].startswith("lower") else -1))
        with pytest.raises(RefusedError):
            check({**document, "claims": [changed if i == at else other for i, other in enumerate(document["claims"])]})


if __name__ == "__main__":
    RECORDED.write_text("\n".join(rows()) + "\n")

"""Bounds and certificates of random workloads of every family, as they were recorded once.

``python -m tests.certificate.test_recorded_bounds`` records anew: only where an answer is meant to change. They were
recorded when the theorem of a GEMM stood in a module of its own: they are what the box of m x n x k must give.
"""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

from pebble.errors import InfeasibleError
from pebble.proof.certificate import bound_certificate
from pebble.reports.bound import known_of as answer
from pebble.workloads.widths import Room
from tests.certificate.test_bound_certificates import random_workload

RECORDED = Path(__file__).with_name("recorded_bounds.txt")


def rows(count: int = 100) -> list[str]:
    """Workload, capacity, game; elements, bytes and segments of its bounds; a digest of the certificate."""
    rnd, found = random.Random(2024), []
    for _ in range(count):
        workload, capacity = random_workload(rnd, 4), rnd.choice([rnd.randint(3, 300), rnd.randint(3, 10**5)])
        recompute = rnd.random() < 0.4
        try:
            known = answer(workload, capacity, Room.of_values(capacity, workload), 1, recompute)
        except InfeasibleError:  # a causal mask needs room for one query
            continue
        bounds = [b.to_json() for b in (known.lower, known.separate) if b is not None]
        told = [(b["elements"], b["bytes"], b["certificate"].get("segments")) for b in bounds]
        digest = hashlib.sha256(json.dumps(bound_certificate(workload, known)).encode()).hexdigest()[:16]
        if not any("phi" in b["certificate"] for b in bounds):  # the digits of phi depend on the machine's arithmetic
            found.append(f"{workload.label}; S={capacity} recompute={recompute}: {told} {digest}")
    return found


def test_bounds_and_certificates_are_as_recorded() -> None:
    recorded = RECORDED.read_text().splitlines()
    assert len(recorded) > 80
    assert rows() == recorded


if __name__ == "__main__":
    RECORDED.write_text("\n".join(rows()) + "\n")

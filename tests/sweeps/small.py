"""A sweep of a few tasks, and what its store holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pebble

SWEEP: dict[str, Any] = {
    "workloads": [{"family": "gemm", "m": [64, 128], "n": 64, "k": 64}],
    "machines": ["a40", "a2"],
    "orders": ["row", "column", "snake"],
}
TASKS = 2 * 2 * 3


def exported(store: Path) -> bytes:
    """All that is the same in each run."""
    file = store.with_suffix(".csv")
    pebble.results(store, export=file)
    return file.read_bytes()

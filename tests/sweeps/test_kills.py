"""A sweep killed at random points and resumed equals one that nobody disturbed: nothing lost, twice or by half."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="the extra `sweep` is not installed")

import pebble
from tests.sweeps.kills import TASKS

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.posix


@pytest.mark.parametrize(
    ("kills", "seed"), [(5, 1), pytest.param(50, 2, marks=pytest.mark.slow)], ids=["5 kills", "50 kills"]
)
def test_a_killed_sweep_equals_an_undisturbed_one(tmp_path: Path, kills: int, seed: int) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/sweeps/kills.py"), str(tmp_path), str(kills), str(seed)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert done.returncode == 0, done.stderr
    spec = json.loads(done.stdout)
    assert sum(spec["died"].values()) >= kills and all(spec["died"].values())
    exported = {}
    for store in sorted(tmp_path.glob("*.duckdb")):
        for ending in (".csv", ".parquet"):
            pebble.results(store, export=store.with_suffix(ending))
            exported[store.stem, ending] = store.with_suffix(ending).read_bytes()
        ids = [row["task_id"] for row in pebble.results(store, columns=["task_id", "status"]).rows()]
        assert len(ids) == len(set(ids)) == TASKS
    assert len(exported) == 2 * (spec["stores"] + 2)
    for (_, ending), content in exported.items():
        assert content == exported["undisturbed", ending]

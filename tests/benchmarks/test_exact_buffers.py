"""The table of small games on several SMs: what the checker proves of its rows, and what it does not."""

from __future__ import annotations

import csv
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("exact_buffers", ROOT / "benchmarks/exact/buffers.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("claimed", "method"), [("14.25", "states"), ("14", "states"), ("14.5", "")])
def test_the_checker_proves_a_row_or_nothing(
    claimed: str, method: str, script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a product of 2 x 2 x 2 on each of two SMs costs 14.25: as much and less is proved, more is not."""
    table = tmp_path / "table.csv"
    key = dict(zip(script.KEY, ("gemm-2x2x2", "3", "2", "connected", "1/4", "balanced"), strict=True))
    script.write(table, {script.key_of(key): key | {"lower": claimed, "upper": claimed, "status": "optimal"}})
    words = ["gemm-2x2x2", "--capacities", "3", "--omegas", "1/4", "--splits", "balanced", "--certify"]
    monkeypatch.setattr(sys, "argv", ["buffers.py", *words, "--time-limit", "600", "--table", str(table)])
    assert script.main() == 0
    with table.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["certificate"].partition(" ")[0] == method
    assert row["upper"] == claimed


def test_what_the_table_says_is_proved_is_closed(script: ModuleType) -> None:
    rows = script.read(script.TABLE).values()
    proved = [row for row in rows if row["certificate"]]
    assert proved and all(row["status"] == "optimal" and row["sms"] != "1" for row in proved)
    assert all(float(row["lower"]) <= float(row["upper"]) for row in rows if row["upper"])

"""What the scripts beside the library of measurements say of it."""

from __future__ import annotations

import csv
import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

HARDWARE = Path(__file__).resolve().parents[2] / "benchmarks" / "hardware"


@pytest.fixture
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(HARDWARE))
    for name in ("library", "predict"):  # of this folder, whatever another test imported by these names
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(request.param)


@pytest.mark.parametrize("script", ["beside"], indirect=True)
def test_gains_are_those_of_the_rows(script: ModuleType) -> None:
    rows = list(csv.DictReader((HARDWARE / "side_by_side/measured.csv").open(newline="")))
    found = script.cases()
    assert sum(len(case.gains) for case in found) == len(rows)
    row = rows[0]
    alone = float(row["gemm_alone_ms"]) + float(row["read_alone_ms"])
    assert found[0].gains[int(row["read_sms"])] == pytest.approx(alone / float(row["together_ms"]))
    for case in found:
        assert case.best[1] == max(case.gains.values()) <= case.at_most


@pytest.mark.parametrize("script", ["policies"], indirect=True)
def test_policies_are_set_beside_held_out_launches(script: ModuleType) -> None:
    rows = script.chosen_rows()
    assert {row["chip"] for row in rows} == {"h100-sxm5-80gb", "h200-sxm-141gb"} and len(rows) >= 50
    small = min(rows, key=lambda row: int(row["m"]) * int(row["n"]) * int(row["k"]))
    read = {policy: script.predicted((small, policy)) for policy in ("opt", "lru")}
    assert 0 < read["opt"] <= read["lru"]
    told = script.summary([0.5, 1.0, 2.0])
    assert (told["geometric_mean"], told["least"], told["most"]) == (pytest.approx(1), 0.5, 2.0)
    assert told["within_5_percent"] == told["within_10_percent"] == pytest.approx(1 / 3)

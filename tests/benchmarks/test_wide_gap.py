"""The scripts of the table in bytes and of random instances run, and say what they found."""

from __future__ import annotations

import csv
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "gap"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"gap_{name}", FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    return load


def test_rows_in_bytes_are_verified(script: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wide = script("wide")
    some = [item for item in wide.catalogue() if item.name in ("gemm 8192x8192x8192", "ffn 4096x(4096,14336)")]
    wide.catalogue, wide.layers = lambda: some[::3], tuple
    wide.main([str(tmp_path / "wide.csv"), "--certificates"])
    with (tmp_path / "wide.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [r["verified"] for r in rows] == ["yes"] * len(some[::3])
    assert all(1 <= float(r["gap"]) < 1.7 for r in rows)
    assert "verified" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["gemm", "20"], ["gemm", "40", "--bytes"], ["ffn", "10", "--bytes"]])
def test_random_instances(script: Any, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert script("refute").main(arguments) == 0
    assert f"{arguments[1]} instances of {arguments[0]}: 0 violations" in capsys.readouterr().out


def test_a_false_theorem_is_refuted(script: Any, capsys: pytest.CaptureFixture[str]) -> None:
    refute = script("refute")
    true = refute.proved
    refute.proved = lambda *asked: ((name, 2 * proved) for name, proved in true(*asked))
    assert refute.main(["gemm", "5"]) == 1
    assert "ABOVE: Theorem 7" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["gemm"], ["gemm", "--bytes"], ["ffn", "--bytes"], ["attention", "--bytes"]])
def test_many_random_instances(script: Any, arguments: list[str]) -> None:
    assert script("refute").main([arguments[0], "20000", *arguments[1:], "--seed", "7"]) == 0

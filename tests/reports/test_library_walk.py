"""The walk that stands for cuBLAS in `advise`: its modelled time beside measured runs of cuBLAS."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import pebble
from pebble.families import kernel_family
from pebble.reports.ranking import rank_orders

POWER = Path(__file__).parents[2] / "benchmarks" / "hardware" / "power"


def measured() -> list[tuple[int, int, int, float]]:
    """Products and sustained milliseconds of cuBLAS on an H200."""
    rows = []
    for name, key in (("h200_group_m.csv", "milliseconds"), ("h200_sustained.csv", "sustained_ms")):
        with (POWER / name).open() as file:
            rows += [
                (int(row["m"]), int(row["n"]), int(row["k"]), float(row[key]))
                for row in csv.DictReader(file)
                if row["kernel"] == "cublas"
            ]
    return rows


def test_there_are_ten() -> None:
    assert len(measured()) == 10


@pytest.mark.parametrize(("m", "n", "k", "milliseconds"), measured())
def test_cublas_takes_what_is_modelled_of_its_walk(m: int, n: int, k: int, milliseconds: float) -> None:
    workload = pebble.Gemm(m, n, k)
    (_, walk) = kernel_family(workload).library
    result = rank_orders(workload, [walk], gpu="h200")
    assert result.best.seconds is not None
    assert 0.935 < milliseconds / (1e3 * result.best.seconds) < 1.055  # docs/tile.rst: 0.94 to 1.05

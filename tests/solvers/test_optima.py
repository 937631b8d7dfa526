"""Known optima, proved again by solving."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from benchmarks.prove_optima import Row, judge, read_rows
from pebble.solvers import solve

TABLE = Path(__file__).parent / "optima.csv"
ROWS = read_rows(TABLE)


def fast_rows() -> list[Row]:
    lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    marks = [row["fast"] for row in csv.DictReader(lines)]
    return [row for row, mark in zip(ROWS, marks, strict=True) if mark]


@pytest.mark.parametrize("row", fast_rows(), ids=lambda row: row.label)
def test_cpsat_proves_the_fast_rows(row):
    result = solve(row.build(), row.capacity, row.variant, "cpsat", 60)
    assert (result.status, result.upper_bound) == ("optimal", row.optimum)


@pytest.mark.slow
def test_cpsat_proves_150_rows_and_contradicts_none():
    verdicts = {row.label: judge(row, "cpsat", 30) for row in ROWS}
    assert [label for label, (verdict, _) in verdicts.items() if verdict == "CONTRADICTED"] == []
    assert sum(verdict == "proved" for verdict, _ in verdicts.values()) >= 150


def test_the_optimum_never_grows_with_the_capacity():
    by_game: dict[tuple[str, str, str], list[Row]] = {}
    for row in ROWS:
        by_game.setdefault((row.dag, row.params, row.variant), []).append(row)
    for rows in by_game.values():
        costs = [row.optimum for row in sorted(rows, key=lambda row: row.capacity)]
        assert costs == sorted(costs, reverse=True)

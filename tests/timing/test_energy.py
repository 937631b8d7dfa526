"""Energy: by hand from the tables, and every entry with its source."""

from __future__ import annotations

import csv
import statistics
from pathlib import Path

import pytest

from pebble.errors import InputError, UnknownNameError
from pebble.models.machine import load_machine
from pebble.timing.energy import energy_tables, estimate, estimate_on_sms, load_energy_table
from pebble.workloads import Gemm

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", energy_tables())
def test_every_price_has_a_source_and_a_mark(name: str) -> None:
    table = load_energy_table(name)
    assert {"dram.hbm", "l2"} <= set(table.prices)
    for key, price in table.prices.items():
        assert price.picojoules > 0 and price.mark in ("published", "guess", "measured") and len(price.source) > 20
        assert price.per == ("operation" if key.startswith("operations") else "byte")
        assert ("recalled" in price.source or price.source.startswith("fitted")) == (price.mark == "guess")


@pytest.mark.parametrize("name", energy_tables())
def test_a_level_further_away_costs_more(name: str) -> None:
    prices = {key: price.picojoules for key, price in load_energy_table(name).prices.items()}
    levels = [prices[key] for key in ("dram.gddr", "dram.hbm", "l2", "shared") if key in prices]
    assert levels == sorted(levels, reverse=True) and len(levels) > 1


def test_by_hand() -> None:
    gemm, table = Gemm(1000, 1000, 1000), load_energy_table("7nm")
    result = estimate(table, load_machine("h100-sxm5-80gb"), gemm, 10**9, 10**10)
    assert result.joules == pytest.approx(
        {"dram": 31.36e-3, "l2": 17.5e-3, "shared": 2 * 10.625e-3, "operations": 2e9 * 0.295e-12}
    )
    assert result.total == pytest.approx(sum(result.joules.values()))
    on_a_board = estimate(table, load_machine("a40"), gemm, 10**9, 10**10)
    assert on_a_board.joules["dram"] == pytest.approx(51.9e-3)


def test_what_a_table_does_not_price_is_left_out() -> None:
    gemm = Gemm(64, 64, 64)
    assert "operations" not in estimate(load_energy_table("k40"), load_machine("a40"), gemm, 1, 1).joules
    fp8 = Gemm(64, 64, 64, "fp8")
    assert "operations" not in estimate(load_energy_table("7nm"), load_machine("a40"), fp8, 1, 1).joules


def test_prices_of_an_h100_are_those_that_were_measured() -> None:
    with open(ROOT / "benchmarks/hardware/distances/measured.csv", newline="") as file:
        rows = list(csv.DictReader(file))

    def median(place: str) -> float:
        return statistics.median(float(row["picojoules"]) for row in rows if row["place"] == place)

    prices = load_energy_table("h100").prices
    assert prices["l2"].picojoules == pytest.approx(median("L2"), abs=0.1)
    assert prices["copies"].picojoules == pytest.approx(median("other SM"), abs=0.1)
    assert prices["dram.hbm"].picojoules == pytest.approx(median("DRAM") - median("L2"), abs=0.3)


def test_copies_are_priced_where_the_table_prices_them() -> None:
    gemm, table = Gemm(1000, 1000, 1000), load_energy_table("h100")
    energy = estimate_on_sms(table, gemm, 10**9, 2 * 10**9)
    assert energy.joules == pytest.approx({"l2": 28.5e-3, "copies": 60e-3, "operations": 2e9 * 0.7e-12})
    with pytest.raises(InputError, match="no price of a byte copied"):
        estimate_on_sms(load_energy_table("7nm"), gemm, 1, 1)
    assert "shared" in estimate_on_sms(load_energy_table("7nm"), gemm, 1, 0).joules
    with pytest.raises(InputError, match="no price of the DRAM of NVIDIA A40"):
        estimate(table, load_machine("a40"), gemm, 1, 1)


def test_an_unknown_table() -> None:
    with pytest.raises(UnknownNameError, match="7nm"):
        load_energy_table("7n")

"""Energy: by hand from the tables, and every entry with its source."""

from __future__ import annotations

import pytest

from pebble.errors import UnknownNameError
from pebble.models.machine import load_machine
from pebble.timing.energy import energy_tables, estimate, load_energy_table
from pebble.workloads import Gemm


@pytest.mark.parametrize("name", energy_tables())
def test_every_price_has_a_source_and_a_mark(name: str) -> None:
    table = load_energy_table(name)
    assert {"dram.hbm", "dram.gddr", "l2", "shared"} <= set(table.prices)
    for key, price in table.prices.items():
        assert price.picojoules > 0 and price.mark in ("published", "guess") and len(price.source) > 20
        assert price.per == ("operation" if key.startswith("operations") else "byte")
        assert ("recalled" in price.source) == (price.mark == "guess")


@pytest.mark.parametrize("name", energy_tables())
def test_a_level_further_away_costs_more(name: str) -> None:
    prices = {key: price.picojoules for key, price in load_energy_table(name).prices.items()}
    assert prices["dram.gddr"] > prices["dram.hbm"] > prices["l2"] > prices["shared"]


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


def test_an_unknown_table() -> None:
    with pytest.raises(UnknownNameError, match="7nm"):
        load_energy_table("7n")

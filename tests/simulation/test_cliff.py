"""Where free-running blocks sit at a cliff, and what `simulate` says there."""

from __future__ import annotations

from typing import Any

import pytest

import pebble
from pebble.simulation.cliff import FALLS, FEWER, LARGER, MORE, MOST, MUCH_LARGER, read_range


@pytest.mark.parametrize(("larger", "cliff"), [(FALLS * 1000, False), (FALLS * 1000 - 1, True)])
def test_a_cliff_is_where_a_little_more_cache_reads_much_less(larger: float, cliff: bool) -> None:
    asked = list[float]()

    def read_in(times: float) -> int:
        asked.append(times)
        return int({LARGER: larger, MUCH_LARGER: 400}[times])

    assert read_range(1000, read_in) == ((400, round(MOST * 1000)) if cliff else None)
    assert asked == [LARGER, MUCH_LARGER][: 1 + cliff]  # the second simulation only where it is needed


def test_the_range_holds_what_is_modelled() -> None:
    least, most = read_range(100, lambda times: 50 if times < MUCH_LARGER else 200) or (0, 0)
    assert least <= 100 <= most


def test_simulate_gives_a_range_at_the_capacity_of_the_cache_alone() -> None:
    where: dict[str, Any] = {"gpu": "h100-sxm5-80gb", "tile": "128x128", "schedule": "fa3", "execution": "free"}
    small = pebble.simulate(pebble.Attention(1024, 1024, 128, heads=8, causal=True), **where)
    assert small.read_range is None and "dram_read_bytes_at_cliff" not in small.to_dict()
    attention = pebble.Attention(4096, 4096, 128, heads=16, causal=True)
    near = pebble.simulate(attention, **where)
    least, most = near.to_dict()["dram_read_bytes_at_cliff"]
    read = near.to_dict()["dram_read_bytes"]
    assert least < 0.9 * read < read < most
    assert any(note.startswith("at a cliff") for note in near.notes)
    assert pebble.simulate(attention, **where | {"execution": "waves"}).read_range is None


def test_simulate_gives_a_range_of_a_long_product_that_runs_free() -> None:
    where: dict[str, Any] = {"gpu": "h100-sxm5-80gb", "sms": 1, "tile": "128x128x64", "schedule": "row"}
    long = pebble.simulate(pebble.Gemm(1024, 1024, 8192), **where, execution="free")
    read = long.to_dict()["dram_read_bytes"]
    assert long.to_dict()["dram_read_bytes_at_cliff"] == [round(FEWER * read), round(MORE * read)]
    assert any(note.startswith("blocks of so long a product") for note in long.notes)
    assert pebble.simulate(pebble.Gemm(1024, 1024, 8192), **where, execution="waves").read_range is None
    assert pebble.simulate(pebble.Gemm(1024, 1024, 4096), **where, execution="free").read_range is None

"""Names of tile orders: which there are, how they are read, and what is said of those that are wrong."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.errors import InputError, UnknownNameError
from pebble.schedules import ALL_ORDERS, REGISTRY, OrderParams, all_schedules, parse_order
from pebble.schedules.tile import MAX_TILES
from tests.schedules.test_orders import NUMBERED, order_tiles


def test_customary_names_in_the_agreed_order() -> None:
    assert ALL_ORDERS == (
        "row", "column", "snake", "snake-strips-16", "morton", "hilbert", "gilbert", "grouped-8",
        "cutlass2-4", "cutlass2-horizontal", "cutlass3-8", "deepgemm", "thunderkittens-8", "xcd-8",
    )  # fmt: skip
    names = [schedule.name for schedule in all_schedules()]
    assert len(set(names)) == len(names) == 2 * len(ALL_ORDERS)
    assert set(names) == {*ALL_ORDERS, *(f"{name}+sawtooth" for name in ALL_ORDERS)}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(base=st.sampled_from(sorted(REGISTRY)), number=st.integers(1, 2**20), sawtooth=st.booleans())
def test_names_round_trip(base: str, number: int, sawtooth: bool) -> None:
    name = (f"{base}-{number}" if base in NUMBERED else base) + ("+sawtooth" if sawtooth else "")
    order = parse_order(name)
    assert order.name == str(order) == name
    assert order.sawtooth is sawtooth
    assert parse_order(order.name) == order


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("grouped", "grouped-8"),
        ("grouped-8", "grouped-8"),
        (" Grouped-08 ", "grouped-8"),
        ("cutlass2", "cutlass2-4"),
        ("snake-strips+sawtooth", "snake-strips-16+sawtooth"),
        ("deepgemm", "deepgemm"),
    ],
)
def test_names_normalise(given_name: str, name: str) -> None:
    assert parse_order(given_name).name == name


def test_sawtooth_does_not_change_the_permutation() -> None:
    assert order_tiles("grouped-3+sawtooth", 5, 7) == order_tiles("grouped-3", 5, 7)


@pytest.mark.parametrize(
    ("name", "nearest"), [("group-8", "grouped-8"), ("hilbrt", "hilbert"), ("grouped-x", "grouped-8")]
)
def test_unknown_names_offer_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UnknownNameError, match=f"did you mean .*{nearest}"):
        parse_order(name)


@pytest.mark.parametrize("name", ["", "8", "-8", "cutlass", "zzz", "grouped-", "+sawtooth"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(UnknownNameError):
        parse_order(name)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("grouped-0", "from 1 to 1048576"),
        ("grouped--3", "from 1 to 1048576"),
        ("grouped-2.5", "from 1 to 1048576"),
        ("xcd-1048577", "from 1 to 1048576"),
        ("snake-strips-" + "9" * 5000, "from 1 to 1048576"),
        ("row-5", "row takes no number"),
        ("hilbert--1", "hilbert takes no number"),
        ("cutlass2-horizontal-4", "takes no number"),
        ("row+saw", r"\+sawtooth"),
        ("row+sawtooth+sawtooth", r"\+sawtooth"),
    ],
)
def test_bad_names_say_what_is_expected(name: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        parse_order(name)
    assert not isinstance(caught.value, UnknownNameError)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("grid", [(0, 3), (3, -1), (2.5, 3), (MAX_TILES, 2)])
def test_bad_grids(grid: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="expected"):
        parse_order("row").tiles(*grid)


@pytest.mark.parametrize(
    "bad",
    [
        {"sms": 0},
        {"tile_m": -1},
        {"cluster_n": 17},
        {"chunk": 2**21},
        {"sms": 1.5},
        {"raster": "n"},
        {"multicast": 2},
    ],
)
def test_bad_parameters(bad: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        OrderParams(**bad)

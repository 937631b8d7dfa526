"""A strict softmax uses no score before its row is complete: no kernel that rescales sums as it goes is one of its."""

from __future__ import annotations

import pytest

import pebble
from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.workloads import Attention

STRICT = Attention(64, 20000, 16, softmax="strict")


def test_no_kernel_moves_less_than_the_bound_that_counts_stored_scores() -> None:
    result = pebble.compare(STRICT, cache="8KiB", sms=1, tile="32x32")
    assert {row["name"].split("+")[0] for row in result.rows()} == {"unfused"}
    assert all(row["ratio_to_lower_bound"] >= 1 for row in result.rows())


@pytest.mark.parametrize("name", ["fa2", "fa1", "flash-decoding", "split-kv-4"])
def test_kernels_that_rescale_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="strict"):
        pebble.simulate(STRICT, schedule=name, cache="8KiB", sms=1, tile="32x32")
    with pytest.raises(InputError, match="strict"):
        pebble.tune(STRICT, cache="8KiB", sms=1, tile="32x32")


def test_tiles_of_the_users_own_are_refused() -> None:
    where = {"cache": "8KiB", "sms": 1, "tile": "32x32"}

    def tiles(rows: int, cols: int, params: object) -> list[list[int]]:
        return [[row, col] for col in range(cols) for row in range(rows)]

    assert pebble.simulate(Attention(64, 20000, 16), schedule=tiles, **where).rows()
    with pytest.raises(InputError, match="strict"):
        pebble.simulate(STRICT, schedule=tiles, **where)
    with pytest.raises(InputError, match="strict"):
        pebble.export("fa2", STRICT, **where)


def test_an_online_softmax_has_them_all() -> None:
    family, online = kernel_family(STRICT), Attention(64, 20000, 16)
    every = [s.name for s in family.all_schedules(online, family.default_tile(online))]
    assert "fa2" in every and len(every) > len(family.all_schedules(STRICT, family.default_tile(STRICT)))

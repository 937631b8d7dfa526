"""Where tiles lie, and loops that are compiled when first run."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.errors import InputError
from pebble.models.caches import parse_policy
from pebble.schedules.attention_names import parse_attention_schedule
from pebble.traces import Layout
from pebble.traces.layout import row_major
from pebble.traces.program import Script, Walk
from pebble.workloads import Attention
from tests.schedules.lockstep import attention_trace


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 3), st.integers(1, 20), st.integers(1, 400), st.integers(1, 9), st.integers(1, 200),
       st.sampled_from([1, 2, 4]), st.booleans(), st.integers(0, 2))  # fmt: skip
def test_every_value_is_in_its_tile(
    copies: int, rows: int, cols: int, bm: int, bn: int, width: int, padded: bool, pad: int
) -> None:
    """Byte by byte: the lines of a tile are those of its values, and padded tiles share none."""
    layout = Layout()
    layout.add("before", 3, 100, 3, 100, 2)
    tiles = layout.add("X", rows, cols, bm, bn, width, copies, padded)
    at = row_major(tuple(layout.operands), pad)
    if padded:
        pitch = sum(-(-(min(cols, left + bn) - left) * width // 128) for left in range(0, cols, bn))
    else:
        pitch = -(-cols * width // 128)
    start = 3 * (2 + pad)
    owners: dict[int, set[int]] = {}
    for tile in range(tiles.first, tiles.first + tiles.tiles):
        copy, inside = divmod(tile - tiles.first, tiles.grid[0] * tiles.grid[1])
        i, j = divmod(inside, tiles.grid[1])
        assert tiles.ids(i, j, copy) == tile
        for r in range(int(at.height[tile])):
            lines = {int(at.base[tile] + r * at.stride[tile]) + x for x in range(int(at.span[tile]))}
            row = start + (copy * rows + i * bm + r) * (pitch + pad)
            bytes_of = range(j * bn * width, min(cols, (j + 1) * bn) * width)
            shift = j * -(-bn * width // 128)
            expected = {shift + (b - bytes_of.start) // 128 if padded else b // 128 for b in bytes_of}
            assert lines == {row + x for x in expected}
            for line in lines:
                owners.setdefault(line, set()).add(tile)
        assert int(at.height[tile]) == min(rows, (i + 1) * bm) - i * bm
    if not tiles.shares_lines:
        assert all(len(of) == 1 for of in owners.values())
    assert len(at.line_operand) == start + copies * rows * (pitch + pad)


def test_too_many_tiles() -> None:
    with pytest.raises(InputError, match="larger tiles"):
        Layout().add("A", 2**40, 1, 1, 1, 2)


@pytest.mark.parametrize("policy", ["set-4", "set-4-hashed", "lru+no-write-allocate"])
def test_narrow_score_tiles_share_no_line(policy: str) -> None:
    """Tiles of 32 keys are half a line wide, stored tile by tile: every line of each is written once."""
    trace = attention_trace(Attention(48, 96, 64), parse_attention_schedule("unfused"), 16, 32, 4)
    result = parse_policy(policy).simulate(trace, 10_000)
    written = [int(trace.tile_lines[trace.tile_operand == i].sum()) for i in (4, 5)]
    assert trace.operand_names[4:] == ("S", "P")
    assert [result.write_misses[i] for i in (4, 5)] == written == [3 * 48, 3 * 48]


def test_reading_a_policy_does_not_load_numba() -> None:
    code = (
        "import sys; from pebble.models.caches import parse_policy; parse_policy('partitions-2:oldest-of-4');"
        "import pebble.traces.program; print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_an_operand_names_its_tiles() -> None:
    layout = Layout()
    layout.add("A", 4, 6, 2, 2, 2)
    operand = layout.add("B", 4, 6, 2, 2, 2, copies=2)
    rows = np.array([0, 1])
    for strided, expected in (
        (operand.along(rows), [[6, 7, 8], [9, 10, 11]]),
        (operand.down(rows, 1), [[12, 15], [13, 16]]),
        (operand.copies_of(rows, 0 * rows), [[6, 12], [9, 15]]),
    ):
        results = [[int(base) + k * strided.stride for k in range(len(expected[0]))] for base in strided.base]
        assert results == expected


@pytest.mark.parametrize(
    "walk",
    [
        Walk(2, 7), Walk(2, 7, backwards=True), Script(np.array([[0, 1], [2, -1], [3, 4]])),
        Walk(np.array([0, 4, 1]), np.array([3, 2, 5]), np.array([True, False, True]), np.array([1, 0, 2])),
    ],
)  # fmt: skip
@pytest.mark.parametrize("turned", [False, True])
def test_some_steps_of_a_walk_are_those_of_all(walk: Walk | Script, turned: bool) -> None:
    blocks = slice(0, 3)
    every = walk.k(blocks, turned)
    assert len(every) == walk.steps(blocks)
    assert np.array_equal(walk.k(blocks, turned, [0, 2]), every[[0, 2]])

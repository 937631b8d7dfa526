"""Tiles that share lines: as tiles of whole lines they make the touches, lines and sectors of their lines."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pebble.models.caches import parse_policy
from pebble.schedules.gemm import GemmKernel
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.traces import Layout, Trace, by_lines
from pebble.traces.trace import by_wide_tiles, chunked
from pebble.workloads import Gemm


def _touches(trace: Trace) -> tuple[list[int], list[int], list[int]]:
    """Lines, operations and sectors, in order."""
    parts: list[list[NDArray[np.generic]]] = [[], [], []]
    for chunk in trace.chunks():
        assert chunk.sectors is not None
        for part, values in zip(parts, (chunk.ids, chunk.ops, chunk.sectors), strict=True):
            part.append(values)
    ids, ops, sectors = (np.concatenate(part).tolist() for part in parts)
    return ids, ops, sectors


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Touches of operands whose tiles are narrower than a line, a whole line wide, or alone in their row."""
    layout = Layout()
    for name in "AB":
        width = draw(st.sampled_from([1, 2, 4]))
        cols, least = draw(st.integers(1, 300)), 128 // width // draw(st.sampled_from([1, 2, 4, 8, 16]))
        layout.add(name, draw(st.integers(1, 9)), cols, draw(st.integers(1, 4)), least, width, draw(st.integers(1, 2)))
    count = sum(o.tiles for o in layout.operands)
    some = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, 1)), min_size=1, max_size=60))
    ids, ops = np.array([at for at, _ in some], np.int32), np.array([op for _, op in some], np.uint8)
    source = chunked(ids, ops, np.zeros(len(ids), np.int32))
    lines, operand = layout.tile_lines(), layout.tile_operand()
    assert not layout.splits_lines
    return Trace(tuple(layout.names), lines, operand, len(ids), source, tuple(layout.operands), 1)


@settings(max_examples=150, deadline=None)
@given(traces(), st.integers(0, 2))
def test_wide_tiles_have_the_lines_and_sectors_of_the_narrow_ones(trace: Trace, pad: int) -> None:
    wide = by_wide_tiles(trace)
    assert not any(o.shares_lines for o in wide.operands)
    assert _touches(by_lines(wide, pad)) == _touches(by_lines(trace, pad))


@settings(max_examples=60, deadline=None)
@given(traces(), st.integers(4, 80), st.sampled_from(["lru", "fifo", "sectored", "set-4", "lru+no-write-allocate"]))
def test_a_cache_sees_no_difference(trace: Trace, capacity: int, policy: str) -> None:
    model = parse_policy(policy)
    assert model.simulate(by_wide_tiles(trace), capacity) == model.simulate(by_lines(trace), capacity)


@pytest.mark.parametrize(("bn", "bk", "by_line"), [(64, 32, False), (32, 16, False), (64, 64, False), (80, 32, True)])
def test_a_product_is_followed_line_by_line_only_where_lines_must_be_told_apart(
    bn: int, bk: int, by_line: bool
) -> None:
    """Half a line of A beside half a line makes a tile of lines; 80 columns of B, a line and a quarter, do not."""
    kernel = GemmKernel(Gemm(256, 320, 256), TileShape(64, bn, bk))
    config = KernelConfig(TileShape(64, bn, bk), 4, 1, 1 << 20, "lru")
    trace = config.trace(kernel.timed(parse_order("row"), config.wave_blocks, config.execution))
    assert (int(trace.tile_lines.max()) == 1) == by_line
    assert by_line or 8 * trace.touches < by_lines(trace).touches

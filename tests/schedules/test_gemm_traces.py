"""The reference trace: golden traffic, tiles against lines, short edges, sawtooth."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.errors import InputError
from pebble.families import simulate
from pebble.models.caches import parse_policy
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.traces import by_lines
from pebble.workloads import Gemm
from tests.schedules.lockstep import lockstep_trace

CUBE = Gemm(8192, 8192, 8192)
TILE = TileShape(128, 128, 64)
MIB = 2**20

# (blocks at once, cache MiB, order, DRAM read MB); writes are 134.217728 MB in all
GOLDEN = [
    (108, 40, "row", 5307.891712), (108, 40, "morton", 2323.644416), (108, 40, "grouped-8", 1860.173824),
    (108, 40, "grouped-16", 1946.157056), (84, 6, "row", 6805.25824), (84, 6, "morton", 2650.800128),
    (84, 6, "grouped-8", 2063.597568), (132, 50, "row", 4363.22304), (132, 50, "grouped-16", 1727.021056),
]  # fmt: skip
GOLDEN_SAWTOOTH = [("row", 4103.110656), ("morton", 1817.575424), ("grouped-16", 1341.390848)]


@pytest.mark.parametrize(("blocks", "mib", "order", "read_mb"), GOLDEN)
def test_golden_reads(blocks: int, mib: int, order: str, read_mb: float) -> None:
    traffic = simulate(CUBE, parse_order(order), KernelConfig(TILE, blocks, 1, mib * MIB))
    assert traffic.dram_read_bytes == round(read_mb * 1e6)
    assert traffic.dram_write_bytes == 134_217_728


@pytest.mark.parametrize(("order", "total_mb"), GOLDEN_SAWTOOTH)
def test_golden_sawtooth(order: str, total_mb: float) -> None:
    traffic = simulate(CUBE, parse_order(order + "+sawtooth"), KernelConfig(TILE, 108, 1, 40 * MIB))
    assert traffic.dram_bytes == round(total_mb * 1e6)


def test_blocks_per_sm_multiply() -> None:
    two = simulate(Gemm(1024, 1024, 512), parse_order("row"), KernelConfig(TILE, 5, 2, MIB))
    ten = simulate(Gemm(1024, 1024, 512), parse_order("row"), KernelConfig(TILE, 10, 1, MIB))
    assert two.counts == ten.counts


def touched_lines(
    gemm: Gemm, tiles: np.ndarray, tile: TileShape, wave: int, sawtooth: bool
) -> Iterator[tuple[str, int, int, int]]:
    """The definition, word for word: (operand, row, line within the row, write)."""
    sizes = {o.name: o for o in gemm.operands}

    def lines(name: str, rows: range, cols: range) -> Iterator[tuple[str, int, int]]:
        width = sizes[name].element_bytes
        for row in rows:
            for line in range(cols.start * width // 128, ((cols.stop) * width - 1) // 128 + 1):
                yield name, row, line

    steps = -(-gemm.k // tile.bk)
    for number, start in enumerate(range(0, len(tiles), wave)):
        blocks = tiles[start : start + wave].tolist()
        spans = [
            (range(i * tile.bm, min(gemm.m, (i + 1) * tile.bm)), range(j * tile.bn, min(gemm.n, (j + 1) * tile.bn)))
            for i, j in blocks
        ]
        for step in range(steps):
            s = steps - 1 - step if sawtooth and number % 2 else step
            ks = range(s * tile.bk, min(gemm.k, (s + 1) * tile.bk))
            for rows, cols in spans:
                for x in lines("A", rows, ks):
                    yield *x, 0
                for x in lines("B", ks, cols):
                    yield *x, 0
        for rows, cols in spans:
            if gemm.accumulate:
                for x in lines("C", rows, cols):
                    yield *x, 0
            for x in lines("C", rows, cols):
                yield *x, 1


def literal_lru(stream: Iterator[tuple[str, int, int, int]], capacity: int) -> tuple[int, int, int]:
    cache: dict[tuple[str, int, int], None] = {}
    dirty: set[tuple[str, int, int]] = set()
    reads = writes = accesses = 0
    for *line_parts, write in stream:
        line = tuple(line_parts)
        accesses += 1
        if line in cache:
            del cache[line]
        else:
            reads += not write
            if len(cache) == capacity:
                victim = next(iter(cache))
                del cache[victim]
                if victim in dirty:
                    dirty.remove(victim)
                    writes += 1
        cache[line] = None
        if write:
            dirty.add(line)
    return accesses, reads, writes + len(dirty)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_against_the_definition(data: st.DataObject) -> None:
    draw = data.draw
    dtype = draw(st.sampled_from(["bf16", "fp32", "fp8"]))
    gemm = Gemm(draw(st.integers(1, 40)), draw(st.integers(1, 200)), draw(st.integers(1, 200)), dtype,
                accumulate=draw(st.booleans()))  # fmt: skip
    tile = TileShape(draw(st.integers(1, 16)), draw(st.sampled_from([20, 32, 64, 128])),
                     draw(st.sampled_from([16, 24, 32, 64, 128])))  # fmt: skip
    wave = draw(st.integers(1, 6))
    sawtooth = draw(st.booleans())
    rows, cols, _ = tile.cut_to(gemm).grid(gemm)
    tiles = parse_order(draw(st.sampled_from(["row", "morton", "grouped-2", "snake"]))).tiles(rows, cols)
    trace = lockstep_trace(gemm, tiles, tile, wave, sawtooth)
    capacity = max(int(trace.tile_lines.max()), draw(st.integers(1, 400)))
    result = parse_policy("lru").simulate(trace, capacity)
    stream = touched_lines(gemm, tiles, tile.cut_to(gemm), wave, sawtooth)
    assert (result.accesses_lines, sum(result.read_misses), sum(result.write_backs)) == literal_lru(stream, capacity)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 300), st.integers(1, 5), st.integers(70, 3000),
       st.sampled_from(["lru", "fifo", "opt"]))  # fmt: skip
def test_tiles_equal_lines(m: int, n: int, k: int, wave: int, capacity: int, policy: str) -> None:
    gemm, tile = Gemm(m, n, k), TileShape(32, 64, 64)
    cut = tile.cut_to(gemm)
    tiles = parse_order("morton").tiles(*cut.grid(gemm)[:2])
    trace, model = lockstep_trace(gemm, tiles, cut, wave), parse_policy(policy)
    by_tile, by_line = model.simulate(trace, capacity), model.simulate(by_lines(trace), capacity)
    if policy == "opt":
        assert by_tile.misses_lines == by_line.misses_lines
    else:
        assert by_tile == by_line


def test_traces_have_the_length_they_say() -> None:
    gemm = Gemm(100, 300, 200, accumulate=True)
    for tile, grid in ((TileShape(32, 64, 64), (4, 5)), (TileShape(32, 80, 64), (4, 4))):
        trace = lockstep_trace(gemm, parse_order("row").tiles(*grid), tile, 3)
        assert sum(len(chunk.ids) for chunk in trace.chunks()) == trace.touches
        assert (int(trace.tile_lines.max()) == 1) == (tile.bn == 80)


def test_tile_parsing() -> None:
    assert TileShape.parse("128x256x64") == TileShape(128, 256, 64)
    assert TileShape.parse("64X32", default_bk=16) == TileShape(64, 32, 16)
    assert TileShape.default(Gemm(8, 8, 8, "fp8")).bk == 128
    assert TileShape(128, 128, 64).cut_to(Gemm(1, 4096, 32)) == TileShape(1, 128, 32)
    for bad in ("128", "0x1x1", "1x2x3x4", "axb", "128x-1x2", "1x1x99999999", ""):
        with pytest.raises(InputError, match="tile"):
            TileShape.parse(bad)


def test_absurdly_long_traces_are_refused() -> None:
    with pytest.raises(InputError, match="larger tiles"):
        lockstep_trace(Gemm(2**20, 2**20, 2**20), np.zeros((1, 2), np.int32), TILE, 108)

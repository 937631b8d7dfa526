"""Grouped products: the trace against a literal one, one group against a GEMM, and no schedule below the bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pebble
from pebble.errors import InputError
from pebble.families.gemm import GEMM
from pebble.families.grouped import GROUPED
from pebble.schedules.gemm import GemmKernel
from pebble.schedules.grouped import GroupedKernel
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.traces import READ, WRITE, Trace
from pebble.traces.files import read_trace, write_trace
from pebble.traces.touches import program_trace
from pebble.units import ceil_div
from pebble.workloads import Gemm, GroupedGemm
from tests.schedules.lockstep import lockstep_trace

TILE = TileShape(128, 128, 64)
Touch = tuple[str, int, int, int, int]  # operand, group, tile row, tile column, operation


def literal(grouped: GroupedGemm, tile: TileShape, order: str, blocks: int) -> list[Touch]:
    """Tile by tile: the tiles of all groups in a row, ``blocks`` at a time, one k after the other."""
    walk = parse_order(order)
    every = []
    for group, m in enumerate(grouped.rows):
        grid = ceil_div(m, tile.bm), ceil_div(grouped.n, tile.bn)
        every += [(group, i, j) for i, j in walk.tiles(*grid).tolist()]
    depth, result = ceil_div(grouped.k, tile.bk), []
    for wave in range(0, len(every), blocks):
        running = every[wave : wave + blocks]
        backwards = walk.sawtooth and wave // blocks % 2
        for k in reversed(range(depth)) if backwards else range(depth):
            for g, i, j in running:
                result += [("A", g, i, k, READ), ("B", g, k, j, READ)]
        for g, i, j in running:
            result += [("C", g, i, j, READ)] * grouped.accumulate + [("C", g, i, j, WRITE)]
    return result


def touched(kernel: GroupedKernel, trace: Trace) -> list[Touch]:
    """What a trace touches, by name, from its tile numbers alone."""
    rows = kernel.grouped.rows
    of: dict[int, tuple[str, int, int, int]] = {}
    for name, shapes in (("A", kernel.a), ("C", kernel.c)):
        for m, shape in shapes.items():
            groups = [g for g, other in enumerate(rows) if other == m]
            for copy, g in enumerate(groups):
                for i, j in np.ndindex(*shape.grid):
                    of[int(shape.ids(i, j, copy))] = (name, g, i, j)
    for g in range(len(rows)):
        for i, j in np.ndindex(*kernel.b.grid):
            of[int(kernel.b.ids(i, j, g))] = ("B", g, i, j)
    assert len(of) == len(trace.tile_lines)
    return [
        (*of[i], op) for chunk in trace.chunks() for i, op in zip(chunk.ids.tolist(), chunk.ops.tolist(), strict=True)
    ]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    rows=st.lists(st.integers(1, 600), min_size=1, max_size=5),
    n=st.integers(1, 500),
    k=st.integers(1, 300),
    order=st.sampled_from(["row", "grouped-2", "hilbert+sawtooth", "column+sawtooth"]),
    blocks=st.integers(1, 9),
    accumulate=st.booleans(),
)
def test_the_trace_is_the_literal_one(
    rows: list[int], n: int, k: int, order: str, blocks: int, accumulate: bool
) -> None:
    grouped = GroupedGemm(tuple(rows), n, k, accumulate=accumulate)
    kernel = GroupedKernel(grouped, TILE)
    trace = program_trace(kernel.layout, [kernel.group(parse_order(order), blocks)])
    assert trace.touches == sum(len(chunk.ids) for chunk in trace.chunks())
    assert touched(kernel, trace) == literal(grouped, TILE, order, blocks)


def config(**options: Any) -> KernelConfig:
    return KernelConfig(TILE, 4, 1, 2**20, **options)


@pytest.mark.parametrize("order", ["row", "hilbert+sawtooth", "deepgemm"])
@pytest.mark.parametrize("policy", ["lru", "fifo", "opt", "set-16"])
@pytest.mark.parametrize("n", [1024, 1000])  # 1000: the last tile shares no line, but is short
def test_one_group_moves_what_the_product_moves(order: str, policy: str, n: int) -> None:
    chosen = parse_order(order)
    single = GROUPED.simulate(GroupedGemm((900,), n, 700), chosen, config(policy=policy))
    product = GEMM.simulate(Gemm(900, n, 700), chosen, config(policy=policy))
    assert single.counts.read_misses == product.counts.read_misses
    assert single.counts.write_backs == product.counts.write_backs
    alone = lockstep_trace(Gemm(900, n, 700), chosen.tiles(*GemmKernel(Gemm(900, n, 700), TILE).grid), TILE, 4)
    assert GROUPED.trace(GroupedGemm((900,), n, 700), chosen, config()).touches == alone.touches


@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    rows=st.lists(st.integers(1, 700), min_size=1, max_size=6),
    n=st.integers(1, 900),
    k=st.integers(1, 900),
    cache=st.sampled_from(["64KiB", "256KiB", "1MiB", "64MiB"]),
    tile=st.sampled_from(["128x128x64", "64x96x16"]),
)
def test_no_schedule_is_below_the_bound(rows: list[int], n: int, k: int, cache: str, tile: str) -> None:
    grouped = GroupedGemm(tuple(rows), n, k)
    result = pebble.compare(grouped, ["row", "hilbert", "grouped-4"], cache=cache, sms=4, tile=tile, policy="lru")
    for traffic in result.orders:
        assert traffic.dram_bytes >= result.trace.bound.bytes
    assert result.explicit.bytes >= result.trace.bound.bytes
    assert set(result.orders[0].by_operand()) == {"A", "B", "C"}


def test_with_room_for_all_everything_moves_once() -> None:
    grouped = pebble.workload("gemm", m=512, n=512, k=256, batch=5)
    traffic = pebble.simulate(grouped, "row", cache="64MiB", sms=8, policy="lru").traffic
    assert traffic.dram_bytes == grouped.compulsory_bytes
    experts = GroupedGemm((512, 0, 128, 384, 128), n=512, k=256, accumulate=True)
    traffic = pebble.simulate(experts, "hilbert", cache="64MiB", sms=8, policy="lru").traffic
    assert traffic.dram_bytes == experts.compulsory_bytes
    assert {name: traffic_bytes["read_bytes"] for name, traffic_bytes in traffic.by_operand().items()} == {
        "A": 2 * 256 * 1152, "B": 2 * 256 * 512 * 4, "C": 2 * 512 * 1152,
    }  # fmt: skip


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_a_trace_of_groups_is_written_and_read(suffix: str, tmp_path: Any) -> None:
    grouped = GroupedGemm((256, 128, 256), n=256, k=128)
    kernel = GroupedKernel(grouped, TILE)
    trace = program_trace(kernel.layout, [kernel.group(parse_order("row"), 4)])
    write_trace(trace, tmp_path / f"t{suffix}")
    again = read_trace(tmp_path / f"t{suffix}")
    assert again.operand_names == ("A", "A.1", "B", "C", "C.4")
    for part in ("ids", "ops"):
        single, other = (np.concatenate([getattr(c, part) for c in t.chunks()]).tolist() for t in (trace, again))
        assert single == other
    assert trace.tile_lines.tolist() == again.tile_lines.tolist()


def test_curves_and_figures_of_groups() -> None:
    grouped = GroupedGemm((256, 128), n=256, k=128)
    kernel = {"cache": "64KiB", "sms": 2, "policy": "lru"}
    curve = pebble.curve(grouped, "row", points=3, **kernel)
    assert curve.schedules[0].dram_bytes[0] >= curve.schedules[0].dram_bytes[-1] == grouped.compulsory_bytes
    assert pebble.compare(grouped, "row,column", **kernel).plot().has_data()


def test_what_groups_do_not_take() -> None:
    grouped = GroupedGemm((256, 128), n=256, k=128)
    with pytest.raises(InputError, match="expected waves or free"):
        pebble.compare(grouped, cache="1MiB", sms=4, execution="persistent")
    with pytest.raises(InputError, match="expected a gemm"):
        pebble.simulate(grouped, "row", cache="1MiB", sms=4, sensitivity=True)
    with pytest.raises(InputError, match="tile touches"):
        GroupedKernel(GroupedGemm((2**20,) * 4096, 2**12, 2**20), TILE)


def test_a_layer_says_what_to_compare() -> None:
    layer = pebble.workload("llama-3-8b:layer", tokens=512)
    with pytest.raises(InputError) as named:
        pebble.compare(layer, gpu="a40")
    kernels = "llama-3-8b:qkv, llama-3-8b:attention, llama-3-8b:o, llama-3-8b:mlp"
    assert f"simulate each of its four kernels by itself: {kernels}" in str(named.value)
    with pytest.raises(InputError) as own:
        pebble.simulate(pebble.TransformerLayer(16, 8, 24, 2, 1, 4), "row", gpu="a40")
    assert "by itself: gemm m=16 n=16 k=8 bf16, attention queries=16" in str(own.value)

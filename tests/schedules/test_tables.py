"""Schedules as tables: dealt into waves, they touch what the named schedules touch."""

from __future__ import annotations

import numpy as np
import pytest

from pebble.schedules.attention import AttentionKernel, attention_groups, parse_attention_schedule
from pebble.schedules.execution import parse_execution
from pebble.schedules.ffn import FfnKernel, ffn_groups, parse_ffn_schedule
from pebble.schedules.gemm import GemmKernel
from pebble.schedules.orders import OrderParams, parse_order
from pebble.schedules.tables import Blocks, Launch, TileTable, deal
from pebble.schedules.tables.checks import check_table
from pebble.schedules.tables.named import named_table
from pebble.schedules.tables.walk import table_trace
from pebble.schedules.tile import TileShape
from pebble.traces import Trace
from pebble.traces.program import program_trace
from pebble.workloads import Attention, Ffn, Gemm

GEMM, TILE = Gemm(500, 700, 300), TileShape(64, 64, 64)


def touched(trace: Trace) -> tuple[list[int], list[int], list[int]]:
    """Tiles, operations and SMs of a whole trace."""
    chunks = list(trace.chunks())
    ids, ops = (np.concatenate([getattr(c, name) for c in chunks]).tolist() for name in ("ids", "ops"))
    return ids, ops, np.concatenate([c.sm for c in chunks]).tolist()


def gemm_table(blocks: list[Blocks], sms: int = 5, sawtooth: bool = False, per_sm: int = 1) -> TileTable:
    """A table of the GEMM above."""
    return TileTable("test", GEMM, Launch(TILE, sms, per_sm), deal(blocks, sms * per_sm, sawtooth))


@pytest.mark.parametrize("name", ["row", "grouped-3+sawtooth", "snake-strips-2+sawtooth"])
@pytest.mark.parametrize("execution", ["waves", "persistent", "staggered", "dynamic-20"])
def test_a_dealt_order_walks_as_the_order_itself(name: str, execution: str) -> None:
    order, kernel = parse_order(name), GemmKernel(GEMM, TILE)
    tiles = order.tiles(*kernel.grid, OrderParams())
    ran = parse_execution(execution)
    table = gemm_table([Blocks(tiles, kernel.depth)], 3, order.sawtooth, per_sm=2)
    if ran.is_reference:
        expected = kernel.lockstep(kernel.phase(tiles), 6, order.sawtooth, 3)
    elif execution == "dynamic-20" and order.sawtooth:
        pytest.skip("a slot's turns are not the waves there")
    else:
        expected = kernel.timed(order, 6, ran, OrderParams(), 3)
    assert touched(table_trace(table, ran)) == touched(expected)


@pytest.mark.parametrize("name", ["separate:grouped-2", "row-fused-3+sawtooth", "row-fused-2-split-3"])
@pytest.mark.parametrize("gated", [False, True])
def test_ffn_tables_walk_as_the_named_schedules(name: str, gated: bool) -> None:
    ffn, tile = Ffn(500, 300, 700, gated=gated), TileShape(64, 128, 64)
    schedule, kernel = parse_ffn_schedule(name), FfnKernel(ffn, tile)
    table = named_table(ffn, schedule, Launch(tile, 5))
    check_table(table)
    assert touched(table_trace(table)) == touched(program_trace(kernel.layout, ffn_groups(kernel, schedule, 5)))


@pytest.mark.parametrize("name", ["fa2+sawtooth", "fa2-heads-first", "fa3"])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_tables_walk_as_the_named_schedules(name: str, causal: bool) -> None:
    attention, tile = Attention(700, 900, 64, heads=6, kv_heads=2, causal=causal), TileShape(64, 128, 1)
    schedule, kernel = parse_attention_schedule(name), AttentionKernel(attention, 64, 128)
    table = named_table(attention, schedule, Launch(tile, 5))
    check_table(table)
    expected = program_trace(kernel.layout, attention_groups(kernel, schedule, 5, 5), 5)
    assert touched(table_trace(table)) == touched(expected)

"""Schedules as tables: dealt into waves, they touch what the named schedules touch."""

from __future__ import annotations

import numpy as np
import pytest

from pebble.schedules.execution import parse_execution
from pebble.schedules.gemm import GemmKernel
from pebble.schedules.orders import OrderParams, parse_order
from pebble.schedules.tables import Blocks, Launch, TileTable, deal
from pebble.schedules.tables.walk import table_trace
from pebble.schedules.tile import TileShape
from pebble.traces import Trace
from pebble.workloads import Gemm

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
@pytest.mark.parametrize("execution", ["lockstep", "persistent", "staggered", "dynamic-20"])
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

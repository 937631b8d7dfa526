"""Schedules as tables: dealt into waves, they touch what the named schedules touch."""

from __future__ import annotations

import numpy as np
import pytest

from pebble.errors import InputError
from pebble.schedules.attention import AttentionKernel, attention_groups
from pebble.schedules.attention_names import parse_attention_schedule
from pebble.schedules.execution import WAVES, Execution, parse_execution
from pebble.schedules.ffn import FfnKernel, ffn_groups, parse_ffn_schedule
from pebble.schedules.gemm import GemmKernel
from pebble.schedules.orders import OrderParams, parse_order
from pebble.schedules.tables import COLUMNS, Blocks, Launch, TileTable, deal
from pebble.schedules.tables.registry import check_table, named_table
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.simulation.table import table_program
from pebble.traces import Trace
from pebble.traces.touches import program_trace, timed_trace
from pebble.workloads import Attention, Ffn, Gemm
from tests.schedules.lockstep import waves

GEMM, TILE = Gemm(500, 700, 300), TileShape(64, 64, 64)


def touched(trace: Trace) -> tuple[list[int], list[int], list[int]]:
    """Tiles, operations and SMs of a whole trace."""
    chunks = list(trace.chunks())
    ids, ops = (np.concatenate([getattr(c, name) for c in chunks]).tolist() for name in ("ids", "ops"))
    return ids, ops, np.concatenate([c.sm for c in chunks]).tolist()


def trace_of(table: TileTable, execution: Execution = WAVES) -> Trace:
    """Under an execution, with the blocks that the table was made for."""
    launch = table.launch
    config = KernelConfig(launch.tile, launch.sms, launch.blocks_per_sm, 1 << 20, execution=execution)
    return config.trace(table_program(table, config))


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
        expected = waves(kernel, kernel.phase(tiles), 6, order.sawtooth, 3)
    elif execution == "dynamic-20" and order.sawtooth:
        pytest.skip("a slot's turns are not the waves there")
    else:
        expected = timed_trace(kernel.timed(order, 6, ran, OrderParams()), 3)
    assert touched(trace_of(table, ran)) == touched(expected)


@pytest.mark.parametrize("name", ["separate:grouped-2", "row-fused-3+sawtooth", "row-fused-2-split-3"])
@pytest.mark.parametrize("gated", [False, True])
def test_ffn_tables_walk_as_the_named_schedules(name: str, gated: bool) -> None:
    ffn, tile = Ffn(500, 300, 700, gated=gated), TileShape(64, 128, 64)
    schedule, kernel = parse_ffn_schedule(name), FfnKernel(ffn, tile)
    table = named_table(ffn, schedule, Launch(tile, 5))
    check_table(table)
    assert touched(trace_of(table)) == touched(program_trace(kernel.layout, ffn_groups(kernel, schedule, 5)))


@pytest.mark.parametrize("name", ["fa2+sawtooth", "fa2-heads-first", "fa3"])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_tables_walk_as_the_named_schedules(name: str, causal: bool) -> None:
    attention, tile = Attention(700, 900, 64, heads=6, kv_heads=2, causal=causal), TileShape(64, 128, 1)
    schedule, kernel = parse_attention_schedule(name), AttentionKernel(attention, 64, 128)
    table = named_table(attention, schedule, Launch(tile, 5))
    check_table(table)
    expected = program_trace(kernel.layout, attention_groups(kernel, schedule, 5, 5), 5)
    assert touched(trace_of(table)) == touched(expected)


def test_a_slot_left_empty_keeps_the_others_on_their_sms() -> None:
    tiles = np.array([(i, j) for i in range(8) for j in range(11)])
    whole = deal([Blocks(tiles[:7], 5), Blocks(tiles[7:], 5)], 5)
    traffic = whole.copy()
    traffic[5:7, 1] = (1, 4)  # the second wave has two blocks, now on slots 1 and 4
    ids, ops, sms = touched(trace_of(TileTable("whole", GEMM, Launch(TILE, 5), whole)))
    table = TileTable("moved", GEMM, Launch(TILE, 5), traffic)
    check_table(table)
    assert touched(trace_of(table))[:2] == (ids, ops)
    second = slice(5 * (2 * 5 + 1), 7 * (2 * 5 + 1))
    where = {0: 1, 1: 4}
    assert touched(trace_of(table))[2][second] == [where[sm] for sm in sms[second]]
    assert touched(trace_of(table))[2][second.stop :] == sms[second.stop :]


def test_k_slabs_read_what_they_add_to() -> None:
    tiles = np.array([(i, j) for i in range(8) for j in range(11)])
    slabs = gemm_table([Blocks(tiles, 2), Blocks(tiles, 3, 2, phase=1, adds=True)])
    check_table(slabs)
    plain = gemm_table([Blocks(tiles, 5)])
    ids, ops, _ = touched(trace_of(slabs))
    once, written, _ = touched(trace_of(plain))
    assert len(ids) == len(once) + 2 * len(tiles)  # C written once more, and read
    assert ops.count(1) == 2 * written.count(1)


@pytest.mark.parametrize(
    ("column", "block", "value", "words"),
    [
        ("k_start", 3, 9, "k step that is not its own"), ("steps", 3, 4, "leaves out k steps"),
        ("first", 3, 1, "k step that is not its own"), ("adds", 3, 1, "is missing"), ("row", 3, 7, "is there 2 times"),
        ("col", 3, 99, "outside"), ("product", 3, 1, "products 0 to 0"),
    ],
)  # fmt: skip
def test_a_table_that_does_not_compute_its_workload_is_refused(column: str, block: int, value: int, words: str) -> None:
    tiles = np.array([(i, j) for i in range(8) for j in range(11)])
    entries = gemm_table([Blocks(tiles, 5)]).entries.copy()
    entries[block, COLUMNS.index(column)] = value
    with pytest.raises(InputError, match=words):
        check_table(TileTable("wrong", GEMM, Launch(TILE, 5), entries))


def test_y_does_not_come_before_the_h_that_it_reads() -> None:
    ffn, tile = Ffn(500, 300, 700), TileShape(64, 128, 64)
    table = named_table(ffn, parse_ffn_schedule("separate:row"), Launch(tile, 5))
    h = table.entries[table.column("product") == 0]
    late = [h[:-1], table.entries[table.column("product") == 1], h[-1:]]
    groups = [
        Blocks(part[:, 2:4], part[:, COLUMNS.index("steps")], phase=i, product=int(part[0, COLUMNS.index("product")]))
        for i, part in enumerate(late)
    ]
    wrong = TileTable("late", ffn, Launch(tile, 5), deal(groups, 5))
    assert wrong.blocks == table.blocks
    with pytest.raises(InputError, match="no earlier phase wrote"):
        check_table(wrong)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [("slot", 7, "slots from 0 to 4"), ("wave", 5, "waves 0, 1, 2"), ("k_direction", 0, "directions"),
     ("phase", 3, "each beginning with a wave")],
)  # fmt: skip
def test_a_table_has_waves_slots_and_phases_in_order(column: str, value: int, words: str) -> None:
    tiles = np.array([(i, j) for i in range(8) for j in range(11)])
    entries = gemm_table([Blocks(tiles, 5)]).entries.copy()
    entries[-1 if column == "phase" else 2, COLUMNS.index(column)] = value
    with pytest.raises(InputError, match=words):
        TileTable("wrong", GEMM, Launch(TILE, 5), entries)

"""A table as kernels read it: every slot of every wave, and what a reader must know of it."""

from __future__ import annotations

import numpy as np

from pebble.schedules.tables.table import COLUMNS, Entries, TileTable
from pebble.units import format_bytes, format_capacity

SLOT_COLUMNS = ("product", "row", "col", "first", "steps", "k_start", "k_direction", "adds", "depends")
EMPTY = (-1, -1, 0, 0, 0, 0, 1, 0, 0)


def slots_of(table: TileTable) -> Entries:
    """All slots, P a wave.

    Returns
    -------
    ndarray of int32, shape (waves * P, 9)
        ``SLOT_COLUMNS``; ``depends`` in the first wave of every phase but the first. An empty slot has product and row
        -1 and no steps.
    """
    slots = table.launch.wave_blocks
    result = np.tile(np.array(EMPTY, np.int32), (table.waves * slots, 1))
    at = table.column("wave") * slots + table.column("slot")
    result[at, :-1] = table.entries[:, [COLUMNS.index(name) for name in SLOT_COLUMNS[:-1]]]
    phase = table.column("phase")[table.wave_starts()]
    result[:, -1] = np.repeat(np.diff(phase, prepend=phase[0]) > 0, slots)
    return result


def statement(table: TileTable) -> tuple[str, ...]:
    """What a table is for, in lines."""
    launch = table.launch
    where = f"{launch.machine}: " if launch.machine else ""
    many = "s" * (launch.blocks_per_sm > 1)
    how = {
        "waves": "the blocks of a wave are kept together by a barrier",
        "free": "blocks run free",
        "staggered": "slot s begins s/P of a tile late, then blocks run free",
    }
    lines = [
        f"schedule {table.name}: {table.blocks} blocks in {table.waves} waves of up to {launch.wave_blocks}",
        f"for {table.workload.label}, tile {launch.tile}, {launch.stages} stage{'s' * (launch.stages > 1)}",
        f"on {where}{launch.sms} SMs, {launch.blocks_per_sm} block{many} on each; {how[launch.execution]}",
    ]
    if launch.read_bytes is not None and launch.write_bytes is not None:
        lines.append(
            f"predicted under {launch.policy} of {format_capacity(launch.cache_bytes)}: "
            f"{format_bytes(launch.read_bytes)} read, {format_bytes(launch.write_bytes)} written"
        )
    return tuple(lines)

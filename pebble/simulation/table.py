"""What a schedule given as a table moves."""

from __future__ import annotations

import numpy as np

from pebble.models.caches import CacheCounts, parse_policy
from pebble.schedules.tables import TileTable
from pebble.schedules.tables.registry import asynchronous_phases, clocked_table, table_kernel, table_phases
from pebble.simulation.kernel import KernelConfig, Traffic, simulate_trace
from pebble.traces import LINE_BYTES
from pebble.traces.program import Group, Program


def simulate_table(table: TileTable, config: KernelConfig) -> Traffic:
    """Run a table's trace through a cache; in closed form where there is one.

    Raises
    ------
    InputError
        The trace is too long, the cache smaller than the largest tile, or an execution that tables cannot run under.
    """
    if config.execution.is_reference:
        counts = _closed_form(table, config)
        if counts is not None:
            return Traffic(table.name, counts)
    trace = config.trace(table_program(table, config))
    return simulate_trace(table.name, trace, config.cache_bytes, config.policy)


def table_program(table: TileTable, config: KernelConfig, residual: bool = False) -> Program:
    """What a table's kernel does, in waves, free-running or by a clock.

    Raises
    ------
    InputError
        An execution that tables cannot run under; or as for `table_kernel`.
    """
    kernel = table_kernel(table, residual)
    if config.execution.is_reference:
        return Program(kernel.layout, [Group(table_phases(table, kernel), config.wave_blocks)])
    if not config.execution.is_asynchronous:
        return clocked_table(table, kernel, config.execution)
    return Program(kernel.layout, [Group(asynchronous_phases(table, kernel), min(launched(table), config.wave_blocks))])


def launched(table: TileTable) -> int:
    """Blocks that a table is launched with: fewer than can run at once where all its full waves leave slots empty."""
    starts = table.wave_starts()
    key = np.stack((table.column("phase"), table.column("product")))[:, starts]
    followed = ~np.any(key[:, 1:] != key[:, :-1], axis=0)  # by a wave of the same blocks: such a wave is full
    used = table.column("slot")[starts[1:] - 1][followed] + 1
    return int(used.max(initial=0)) or table.launch.wave_blocks


def _closed_form(table: TileTable, config: KernelConfig) -> CacheCounts | None:
    """For a GEMM whose waves are full, each with all of k in one direction."""
    kernel = table_kernel(table)
    first, *more = kernel.products
    if more or not table.plain:
        return None
    depth = first.steps[table.column("row")]
    slots = int(table.column("slot").max()) + 1  # waves may be of fewer blocks than run at once
    number = np.arange(table.blocks)
    direction, wave = table.column("k_direction"), table.column("wave")
    sawtooth = bool(direction[-1] < 0) if table.waves % 2 == 0 else bool(np.any(direction < 0))
    turned = sawtooth & (wave % 2 == 1)
    plain = (
        np.array_equal(wave * slots + table.column("slot"), number)
        and np.array_equal(direction < 0, turned)
        and np.array_equal(table.column("k_start"), np.where(turned, depth - 1, 0))
    )
    if not plain:
        return None
    tiles = np.stack((table.column("row"), table.column("col")), axis=1).astype(np.int32)
    shape = kernel.closed_form(tiles, slots, sawtooth)
    return None if shape is None else parse_policy(config.policy).closed_form(shape, config.cache_bytes // LINE_BYTES)

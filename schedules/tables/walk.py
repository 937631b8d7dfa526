"""What the blocks of a table touch: its trace, wave by wave or under an execution model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.schedules.execution import WAVES, Execution, run_tiles
from pebble.schedules.kernel import TableKernel
from pebble.schedules.tables.registry import table_kernel
from pebble.schedules.tables.table import COLUMNS, Column, Entries, TileTable
from pebble.traces import Trace
from pebble.traces.layout import Strided
from pebble.traces.program import Group, Phase, Steps, Walk
from pebble.traces.touches import program_trace, timed_trace

_ROW, _PHASE, _PRODUCT = (COLUMNS.index(name) for name in ("row", "phase", "product"))


def table_trace(
    table: TileTable, execution: Execution = WAVES, residual: bool = False, kernel: TableKernel | None = None
) -> Trace:
    """The trace of a table.

    Parameters
    ----------
    table : TileTable
        Checked; `pebble.schedules.tables.checks.check_table`.
    execution : Execution
        ``waves``: its own. Else whole tiles by the clock: ``persistent`` and ``staggered`` keep each block in its
        slot, ``dynamic`` gives the next to whichever slot is free.
    residual : bool
        ffn: X is read again and added to Y.
    kernel : TableKernel, optional
        As from `table_kernel`, if there is one already.

    Raises
    ------
    InputError
        The trace is too long; or an execution that tables cannot run under.
    """
    kernel = kernel or table_kernel(table, residual)
    slots, sms = table.launch.wave_blocks, table.launch.sms
    if execution.is_reference:
        return program_trace(kernel.layout, [Group(table_phases(table, kernel), slots)], sms)
    if execution.blocks_in_cluster > 1:
        cluster = "x".join(map(str, execution.cluster))
        raise InputError(
            f"--cluster: got {cluster} with {table.name}, a table, expected none: only orders that have names run in "
            "clusters; leave it out."
        )
    if execution.kind not in ("persistent", "dynamic", "staggered"):
        raise InputError(
            f"--execution: got {execution.name} with {table.name}, a table, expected waves, free, persistent, "
            "dynamic-S or staggered."
        )
    steps = np.unique(table.column("steps"))
    if not table.plain or len(steps) > 1:
        raise InputError(
            f"execution: got {execution.name} with {table.name}, whose phases or unequal blocks must wait for each "
            "other; expected waves."
        )
    ran = run_tiles(table.blocks, int(steps[0]), slots, execution)
    if execution.kind != "dynamic":
        late = ran.start[:slots] if execution.kind == "staggered" else np.zeros(slots)
        slot, turn = table.column("slot"), _turns(table.column("slot"))
        start = turn * float(steps[0]) + np.resize(late, slots)[slot]
        ran = ran._replace(slot=slot, turn=turn, start=start)
    phase = _phase(kernel, table.entries)
    return timed_trace(kernel.layout, [(phase, ran.clock(ran.finish))], slots, sms)


def _turns(slot: Column) -> Column:
    """How many blocks each block's slot ran before it."""
    order = np.argsort(slot, kind="stable")
    begins = np.searchsorted(slot[order], slot[order])
    turn = np.empty(len(slot), np.int64)
    turn[order] = np.arange(len(slot)) - begins
    return turn


def table_phases(table: TileTable, kernel: TableKernel) -> list[Phase]:
    """The phases of the trace: one for each run of full waves of one product.

    A slot that stays empty in the middle of a wave is a block that touches nothing, so that others keep their SMs.
    """
    entries, starts = table.entries, table.wave_starts()
    ends = np.append(starts[1:], len(entries))
    used = entries[ends - 1, 1].astype(np.int64) + 1  # slots of each wave up to the last that is used
    key = entries[starts][:, [_PHASE, _PRODUCT]]
    full = used == table.launch.wave_blocks
    cut = np.flatnonzero(~full[:-1] | np.any(key[1:] != key[:-1], axis=1)) + 1
    offset = np.cumsum(used) - used
    phases = []
    for begin, end in zip([0, *cut.tolist()], [*cut.tolist(), len(starts)], strict=True):
        here = entries[starts[begin] : ends[end - 1]]
        size = int(used[begin:end].sum())
        if size == len(here):
            phases.append(_phase(kernel, here))
            continue
        filled = np.repeat(here[:1], size, axis=0)
        place = offset[here[:, 0]] - offset[begin] + here[:, 1]
        absent = np.ones(size, np.bool_)
        filled[place], absent[place] = here, False
        phases.append(_without(_phase(kernel, filled), absent))
    return phases


def asynchronous_phases(table: TileTable, kernel: TableKernel) -> list[Phase]:
    """The phases where blocks wait for no wave, only for what other phases wrote; slots that stay empty are no more."""
    key = table.entries[:, [_PHASE, _PRODUCT]]
    cut = np.flatnonzero(np.any(key[1:] != key[:-1], axis=1)) + 1
    return [_phase(kernel, entries) for entries in np.split(table.entries, cut)]


def _phase(kernel: TableKernel, entries: Entries) -> Phase:
    """Some blocks of one product."""
    column = dict(zip(COLUMNS, entries.T.astype(np.int64), strict=True))
    first, steps, start = column["first"], column["steps"], column["k_start"]
    backwards = column["k_direction"] < 0
    ahead = np.where(backwards, first + steps - 1 - start, start - first)
    walk = Walk(first, steps, backwards, ahead, one_way=True)
    tiles, adds = entries[:, _ROW : _ROW + 2], column["adds"] > 0
    return kernel.blocks_of(int(column["product"][0]), tiles, walk, adds)


def _without(phase: Phase, absent: NDArray[np.bool_]) -> Phase:
    """The phase without some of its blocks, whose places stay empty."""

    def part(steps: Steps | None) -> Steps | None:
        if steps is None:
            return None
        walk = steps.walk
        assert isinstance(walk, Walk)
        tiles = [
            Strided(np.where(absent, -1, base), stride)
            for base, stride in zip(steps.bases.T, steps.strides.tolist(), strict=True)
        ]
        count = walk.count if np.ndim(walk.count) else np.full(len(absent), walk.count)
        kept = replace(walk, count=np.where(absent, 0, count))
        return Steps(tiles, steps.ops.tolist(), kept if steps is phase.steps else None)

    result = part(phase.steps)
    assert result is not None
    return replace(phase, steps=result, prologue=part(phase.prologue), epilogue=part(phase.epilogue))

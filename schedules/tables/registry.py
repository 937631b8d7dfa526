"""The kernels that walk tables, each by the word of its family: the schedules that have names as tables; whether a
table is a schedule, every tile once over all of its k, each part after what it needs; and what its blocks touch, wave
by wave or under an execution model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.schedules import attention, ffn, gemm, grouped
from pebble.schedules.execution import Execution, run_tiles
from pebble.schedules.kernel import KERNELS, TableKernel
from pebble.schedules.tables.table import COLUMNS, Column, Entries, Launch, TileTable, deal
from pebble.schedules.tile import TileShape
from pebble.traces.layout import Strided
from pebble.traces.program import Group, Phase, Program, Steps, Walk
from pebble.workloads.workload import Workload

__all__ = ["KERNELS", "kernel_of", "table_kernel"]
_DEFINED_IN = (gemm, grouped, ffn, attention)  # a kernel registers itself when its module is read


def kernel_of(workload: Workload, tile: TileShape, residual: bool = False, name: str = "schedule") -> TableKernel:
    """The kernel of a workload under a tile; ``name`` begins the message.

    Raises
    ------
    InputError
        A workload without a kernel, or as `TableKernel.of`.
    """
    if workload.family not in KERNELS:
        raise InputError(f"{name}: got {workload.label}, expected one of {', '.join(KERNELS)}.")
    return KERNELS[workload.family].of(workload, tile, residual)


def table_kernel(table: TileTable, residual: bool = False) -> TableKernel:
    """The kernel of the table's workload under its tile; errors as for `kernel_of`."""
    return kernel_of(table.workload, table.launch.tile, residual, table.name)


WITH_TABLE = (
    "a tile order of `pebble schedules` (gemm, grouped), separate:ORDER, row-fused-R or row-fused-R-split-S (ffn), "
    "fa2, fa2-heads-first or fa3 (attention)"
)


def named_table(workload: Workload, schedule: Any, launch: Launch) -> TileTable:
    """The table of a tile order, of separate or row-fused kernels, or of FlashAttention.

    Raises
    ------
    InputError
        A schedule whose blocks do not each make one tile in waves: interleaved kernels, fa1, split KV, unfused.
    """
    kernel = kernel_of(workload, launch.tile, name=schedule.name)
    blocks = kernel.named_blocks(schedule, launch)
    if blocks is None:
        raise InputError(f"{schedule.name}: there is no table of it, expected {WITH_TABLE}.")
    return TileTable(schedule.name, workload, launch, deal(blocks, launch.wave_blocks, schedule.sawtooth))


def check_tiles(where: str, row: Column, col: Column, grid: tuple[int, int], what: str) -> None:
    """Every tile of a grid once.

    Parameters
    ----------
    where : str
        Begins the message.
    row, col : ndarray of int64
        Tiles, in order.
    grid : tuple of int
        Tile rows and columns.
    what : str
        Whose tiles they are: ``"C under tile 128x128x64"``.

    Raises
    ------
    InputError
        Names the first that is outside, missing or there twice.
    """
    rows, cols = grid
    outside = (row < 0) | (row >= rows) | (col < 0) | (col >= cols)
    expected = f"expected each of the {rows} x {cols} tiles of {what} once"
    if len(row) and _is_grid(row, col, other := (int(row.max()) + 1, int(col.max()) + 1)) and other != grid:
        raise InputError(
            f"{where}: its tiles fill a grid of {other[0]} x {other[1]}, {expected}; "
            "was it made for another tile or problem?"
        )
    if outside.any():
        at = int(np.flatnonzero(outside)[0])
        raise InputError(f"{where}: tile ({row[at]}, {col[at]}), number {at}, is outside; {expected}.")
    number = row * cols + col
    count = np.bincount(number, minlength=rows * cols)
    twice = np.flatnonzero(count[number] > 1)
    missing = np.flatnonzero(count == 0)
    if len(twice):
        tile = (int(row[twice[0]]), int(col[twice[0]]))
        again = np.flatnonzero(number == number[twice[0]])[:2].tolist()
        raise InputError(
            f"{where}: tile {tile} is there {count[number[twice[0]]]} times, as number {again[0]} and {again[1]}; "
            f"{expected}."
        )
    if len(missing):
        tile = divmod(int(missing[0]), cols)
        more = f" and {len(missing) - 1} more are" if len(missing) > 1 else " is"
        raise InputError(f"{where}: tile {tile}{more} missing; {expected}.")


def _is_grid(row: Column, col: Column, grid: tuple[int, int]) -> bool:
    """Whether the tiles are all of a grid, each once."""
    if min(int(row.min()), int(col.min())) < 0 or len(row) != grid[0] * grid[1]:
        return False
    return bool(np.all(np.bincount(row * grid[1] + col, minlength=len(row)) == 1))


def check_table(table: TileTable, kernel: TableKernel | None = None) -> None:
    """Whether the table computes its workload.

    Raises
    ------
    InputError
        A tile missing, twice or outside; a k step outside the block's; k left out or taken twice; a part that adds to
        what no earlier phase wrote; a tile of Y before the H that it reads.
    """
    kernel = kernel or table_kernel(table)
    product, row, col, first, steps, start, phase, adds = (
        table.column(name) for name in ("product", "row", "col", "first", "steps", "k_start", "phase", "adds")
    )
    products = kernel.products
    if product.min() < 0 or product.max() >= len(products):
        raise InputError(f"{table.name}: expected products 0 to {len(products) - 1} of {table.workload.label}.")
    table.refuse((start < first) | (start >= first + steps), "begins at a k step that is not its own", start)
    for number, (name, grid, depth) in enumerate(products):
        at = np.flatnonzero(product == number)
        whole = at[adds[at] == 0]
        what = f"{name} under tile {table.launch.tile}"
        check_tiles(table.name, row[whole], col[whole], grid, what)
        more = at[adds[at] != 0]
        if np.any((row[more] < 0) | (row[more] >= grid[0]) | (col[more] < 0) | (col[more] >= grid[1])):
            check_tiles(table.name, row[at], col[at], grid, what)
        order = at[np.lexsort((first[at], row[at] * grid[1] + col[at]))]
        tile = row[order] * grid[1] + col[order]
        new = np.diff(tile, prepend=-1) > 0
        ends = first[order] + steps[order]
        follows = np.where(new, 0, np.concatenate([[0], ends[:-1]]))
        last = np.append(new[1:], True)
        wrong = np.zeros(table.blocks, np.bool_)
        wrong[order] = (first[order] != follows) | (last & (ends != depth[row[order]]))
        table.refuse(wrong, f"leaves out k steps of its tile of {name} or takes them twice, from", first)
        by_phase = at[np.lexsort((phase[at], row[at] * grid[1] + col[at]))]
        begins = np.diff(row[by_phase] * grid[1] + col[by_phase], prepend=-1) > 0
        wrong[:] = False
        wrong[by_phase] = (adds[by_phase] == 0) != begins
        wrong[by_phase[1:]] |= ~begins[1:] & (np.diff(phase[by_phase]) == 0)
        table.refuse(wrong, "adds to a tile that no earlier phase began, in phase", phase)
    early = kernel.too_early(table)
    if early is not None:
        table.refuse(early, f"reads {products[0].result} that no earlier phase wrote, in phase", phase)


_ROW, _PHASE, _PRODUCT = (COLUMNS.index(name) for name in ("row", "phase", "product"))


def clocked_table(table: TileTable, kernel: TableKernel, execution: Execution) -> Program:
    """What a table does by the clock, whole tiles at a time.

    Parameters
    ----------
    table : TileTable
        Checked; `pebble.schedules.tables.registry.check_table`.
    kernel : TableKernel
        That walks it.
    execution : Execution
        ``persistent`` and ``staggered`` keep each block in its slot, ``dynamic`` gives the next to whichever is free.

    Raises
    ------
    InputError
        An execution that tables cannot run under.
    """
    slots = table.launch.wave_blocks
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
    phases = [_phase(kernel, table.entries)]
    return Program(kernel.layout, [Group(phases, slots)], clocks=(ran.clock(ran.finish),))


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
    column = dict(zip(COLUMNS, entries.T, strict=True))
    first, steps, start = (column[name].astype(np.int64) for name in ("first", "steps", "k_start"))
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
        present = replace(walk, count=np.where(absent, 0, count))
        return Steps(tiles, steps.ops.tolist(), present if steps is phase.steps else None)

    result = part(phase.steps)
    assert result is not None
    return replace(phase, steps=result, prologue=part(phase.prologue), epilogue=part(phase.epilogue))

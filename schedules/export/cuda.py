"""A table as kernels read it: every slot of every wave, and what a reader must know of it; and as a header for CUDA or
C++, a function from wave and slot to the block's work, with nothing to link.
"""

from __future__ import annotations

import textwrap

import numpy as np

from pebble.schedules.tables.table import COLUMNS, Column, Entries, TileTable
from pebble.units import counted, format_bytes, format_capacity

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
        "waves": "predicted with a barrier before each wave",
        "free": "blocks run free",
        "staggered": "slot s begins s/P of a tile late, then blocks run free",
    }
    lines = [
        f"schedule {table.name}: {counted(table.blocks, 'block')} in {counted(table.waves, 'wave')} of up to "
        f"{launch.wave_blocks}",
        f"for {table.workload.label}, tile {launch.tile}, {launch.stages} stage{'s' * (launch.stages > 1)}",
        f"on {where}{launch.sms} SMs, {launch.blocks_per_sm} block{many} on each; {how[launch.execution]}",
    ]
    if launch.read_bytes is not None and launch.write_bytes is not None:
        lines.append(
            f"predicted under {launch.policy} of {format_capacity(launch.cache_bytes)}: "
            f"{format_bytes(launch.read_bytes)} read, {format_bytes(launch.write_bytes)} written"
        )
    return tuple(lines)


_MEANING = {
    "product": "0, or 1 for the second product of an ffn; -1: the slot stays empty",
    "row": "tile row of the result (attention: Q tile)",
    "col": "tile column of the result (attention: head, batch by batch)",
    "first": "first step of k",
    "steps": "steps of k; k goes round at its end",
    "k_start": "the step of k to begin with",
    "k_direction": "1 or -1",
    "adds": "1: add to what the result holds",
    "depends": "1: this wave reads what waves before it wrote",
}
_HEAD = """\
#pragma once

#ifndef PEBBLE_HOST_DEVICE
#ifdef __CUDACC__
#define PEBBLE_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define PEBBLE_HOST_DEVICE inline
#endif
#endif

namespace pebble_schedule {
"""
_FOOT = """\
// The step of k that a block takes in its turn number `step`.
PEBBLE_HOST_DEVICE int k_step(const Block& block, int step) {
  const int at = block.k_start + block.k_direction * step;
  const int end = block.first + block.steps;
  return at >= end ? at - block.steps : at < block.first ? at + block.steps : at;
}

}  // namespace pebble_schedule
"""


def cuda_header(table: TileTable) -> str:
    """The text of the header.

    ``pebble_schedule::block_of(wave, slot)`` gives a ``Block``; columns that are alike in every slot are numbers in
    it, others static tables of the function. It compiles as C++11 too: ``PEBBLE_HOST_DEVICE`` may be defined before.
    """
    launch, slots = table.launch, slots_of(table).astype(np.int64)
    constants = {
        "blocks_per_wave": launch.wave_blocks, "waves": table.waves, "tile_m": launch.tile.bm, "tile_n": launch.tile.bn,
        "tile_k": launch.tile.bk, "stages": launch.stages,
    }  # fmt: skip
    lines = [f"// {line}" for line in statement(table)]
    lines += ["// Written by pebble.", _HEAD]
    lines.append("enum : int { " + ", ".join(f"{name} = {value}" for name, value in constants.items()) + " };\n")
    lines.append("struct Block {")
    lines += [f"  int {name};  // {_MEANING[name]}" for name in SLOT_COLUMNS]
    lines.append("};\n")
    lines.append("// What the block in a slot of a wave does; waves run one after the other.")
    lines.append("PEBBLE_HOST_DEVICE Block block_of(int wave, int slot) {")
    values = []
    for name, column in zip(SLOT_COLUMNS, slots.T, strict=True):
        if np.all(column == column[0]):
            values.append(str(int(column[0])))
        else:
            lines += static_table(name, column)
            values.append(f"{name}_of[at]")
    lines.append("  const int at = wave * blocks_per_wave + slot;")
    lines.append(f"  return Block{{{', '.join(values)}}};")
    lines += ["}\n", _FOOT]
    return "\n".join(lines)


def static_table(name: str, column: Column) -> list[str]:
    """A static table of the narrowest type."""
    kind = "signed char" if np.abs(column).max() < 2**7 else "short" if np.abs(column).max() < 2**15 else "int"
    numbers = textwrap.wrap(", ".join(map(str, column.tolist())), 116, initial_indent="    ", subsequent_indent="    ")
    return [f"  static const {kind} {name}_of[] = {{", *numbers, "  };"]

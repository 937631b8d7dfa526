"""A table as a header for CUDA or C++: a function from wave and slot to the block's work, with nothing to link."""

from __future__ import annotations

import textwrap

import numpy as np

from pebble.schedules.export.slots import SLOT_COLUMNS, slots_of, statement
from pebble.schedules.tables.table import Column, TileTable

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
            lines += _static(name, column)
            values.append(f"{name}_of[at]")
    lines.append("  const int at = wave * blocks_per_wave + slot;")
    lines.append(f"  return Block{{{', '.join(values)}}};")
    lines += ["}\n", _FOOT]
    return "\n".join(lines)


def _static(name: str, column: Column) -> list[str]:
    """A static table of the narrowest type."""
    kind = "signed char" if np.abs(column).max() < 2**7 else "short" if np.abs(column).max() < 2**15 else "int"
    numbers = textwrap.wrap(", ".join(map(str, column.tolist())), 116, initial_indent="    ", subsequent_indent="    ")
    return [f"  static const {kind} {name}_of[] = {{", *numbers, "  };"]

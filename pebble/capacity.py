"""Which capacity a bound is for. The number of values that can be held at once, with its name beside it always.

- ``cache``: one explicitly managed memory of the given size, nothing else.
- ``chip``: every on-chip store between DRAM and the ALUs of a real GPU.
- ``trace``: what a simulated kernel can hold, its cache plus what its blocks keep on the SMs. Only this one makes
  the bound hold for every simulated order.
"""

from __future__ import annotations

from dataclasses import dataclass

from pebble.models.machine import Machine
from pebble.schedules.lockstep import TileShape, values_held_by_blocks
from pebble.units import Size
from pebble.workloads import Gemm


@dataclass(frozen=True)
class Capacity:
    """A capacity for a theorem about values.

    Attributes
    ----------
    elements : int
        S, values of the narrowest width that can be held at once.
    bytes : int
        The same in bytes.
    what : str
        ``"cache"``, ``"chip"`` or ``"trace"``.
    detail : str
        How it adds up, for a reader.
    """

    elements: int
    bytes: int
    what: str
    detail: str

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {"elements": self.elements, "bytes": self.bytes, "what": self.what, "detail": self.detail}


def cache_capacity(size: Size, gemm: Gemm) -> Capacity:
    """One memory of that size, explicitly managed."""
    width = gemm.narrowest_bytes
    return Capacity(
        size.to_elements(width),
        size.to_bytes(width),
        "cache",
        f"one explicitly managed memory of {size.text}",
    )


def chip_capacity(machine: Machine, gemm: Gemm) -> Capacity:
    """Every on-chip store of the machine."""
    total = machine.on_chip_bytes
    parts = ", ".join(f"{s.key} {s.total_bytes / 2**20:g} MiB" for s in machine.stores)
    return Capacity(total // gemm.narrowest_bytes, total, "chip", f"all on-chip stores of {machine.name}: {parts}")


def trace_capacity(cache_bytes: int, gemm: Gemm, tile: TileShape, blocks: int, stages: int = 1) -> Capacity:
    """The cache plus the accumulators and the ``stages`` A and B tiles of each running block.

    Parameters
    ----------
    cache_bytes : int
        The simulated cache.
    gemm : Gemm
        The problem.
    tile : TileShape
        Block tile, already cut to the problem.
    blocks : int
        Blocks that run at once: SMs times blocks per SM.
    stages : int
        A and B tiles in flight per block.
    """
    held = values_held_by_blocks(tile, blocks, stages)
    width = gemm.narrowest_bytes
    elements = cache_bytes // width + held
    return Capacity(
        elements,
        elements * width,
        "trace",
        f"cache of {cache_bytes} bytes and {held} values held by {blocks} blocks",
    )

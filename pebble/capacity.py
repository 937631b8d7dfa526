"""Which capacity a bound is for: the number of values that can be held at once, always with its name beside it.

- ``cache``: one explicitly managed memory of the given size, nothing else.
- ``chip``: every on-chip store between DRAM and the ALUs of a real GPU.
- ``trace``: what a simulated kernel can hold, its cache plus what its blocks keep on the SMs. Only this one makes
  the bound hold for every simulated order.
"""

from __future__ import annotations

from dataclasses import dataclass

from pebble.errors import InfeasibleError
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
        S, values of the narrowest width that can be held at once: what a lower bound must grant.
    bytes : int
        The same in bytes.
    what : str
        ``"cache"``, ``"chip"`` or ``"trace"``.
    detail : str
        How it adds up, for a reader.
    schedule_elements : int
        Values that surely fit, each counted at the widest width: what a schedule may use.
    """

    elements: int
    bytes: int
    what: str
    detail: str
    schedule_elements: int

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {"elements": self.elements, "bytes": self.bytes, "what": self.what, "detail": self.detail}


def _values_that_fit(size_bytes: int, gemm: Gemm) -> int:
    least = 2 * gemm.in_bytes + gemm.out_bytes
    if size_bytes < least:
        raise InfeasibleError(
            f"capacity: got {size_bytes} bytes, expected at least {least} bytes (a value each of A, B and C): "
            "no schedule exists."
        )
    return max(3, size_bytes // gemm.widest_bytes)  # three values, one of each operand, fit as just checked


def cache_capacity(size: Size, gemm: Gemm) -> Capacity:
    """One memory of that size, explicitly managed.

    Raises
    ------
    InfeasibleError
        It cannot hold one value of each operand.
    """
    width = gemm.narrowest_bytes
    elements = size.to_elements(width)
    fits = elements if size.bytes is None else _values_that_fit(size.bytes, gemm)
    return Capacity(elements, size.to_bytes(width), "cache", f"one explicitly managed memory of {size.text}", fits)


def chip_capacity(machine: Machine, gemm: Gemm) -> Capacity:
    """Every on-chip store of the machine."""
    total = machine.on_chip_bytes
    parts = ", ".join(f"{_store_name(s.key)} {s.total_bytes / 2**20:g} MiB" for s in machine.stores)
    detail = f"all on-chip stores of {machine.name}: {parts}"
    return Capacity(total // gemm.narrowest_bytes, total, "chip", detail, _values_that_fit(total, gemm))


def _store_name(key: str) -> str:
    return key.removeprefix("stores.").removesuffix("_per_sm").replace("_", " ")


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
    detail = f"cache of {cache_bytes} bytes and {held} values held by {blocks} blocks"
    return Capacity(elements, elements * width, "trace", detail, cache_bytes // gemm.widest_bytes + held)

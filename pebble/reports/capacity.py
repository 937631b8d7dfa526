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
from pebble.units import Size
from pebble.workloads import Workload


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


def _values_that_fit(size_bytes: int, workload: Workload) -> int:
    least = 2 * workload.in_bytes + workload.out_bytes
    if size_bytes < least:
        raise InfeasibleError(
            f"capacity: got {size_bytes} bytes, expected at least {least} bytes (the operands of a multiply-add): "
            "no schedule exists."
        )
    return max(3, size_bytes // workload.widest_bytes)  # three values, one of each operand, fit as just checked


def cache_capacity(size: Size, workload: Workload) -> Capacity:
    """One memory of that size, explicitly managed.

    Raises
    ------
    InfeasibleError
        It cannot hold one value of each operand.
    """
    width = workload.narrowest_bytes
    elements = size.to_elements(width)
    fits = elements if size.bytes is None else _values_that_fit(size.bytes, workload)
    return Capacity(elements, size.to_bytes(width), "cache", f"one explicitly managed memory of {size.text}", fits)


def chip_capacity(machine: Machine, workload: Workload) -> Capacity:
    """Every on-chip store of the machine."""
    total = machine.on_chip_bytes
    parts = ", ".join(f"{_store_name(s.key)} {s.total_bytes / 2**20:g} MiB" for s in machine.stores)
    detail = f"all on-chip stores of {machine.name}: {parts}"
    return Capacity(total // workload.narrowest_bytes, total, "chip", detail, _values_that_fit(total, workload))


def _store_name(key: str) -> str:
    return key.removeprefix("stores.").removesuffix("_per_sm").replace("_", " ")


def trace_capacity(cache_bytes: int, workload: Workload, held: int, blocks: int) -> Capacity:
    """The cache plus what the running blocks keep on the SMs: accumulators and tiles in flight.

    Parameters
    ----------
    cache_bytes : int
        The simulated cache.
    workload : Workload
        The problem.
    held : int
        Values that all running blocks hold together.
    blocks : int
        How many blocks that are, for the reader.
    """
    width = workload.narrowest_bytes
    elements = cache_bytes // width + held
    detail = f"cache of {cache_bytes} bytes and {held} values held by {blocks} blocks"
    return Capacity(elements, elements * width, "trace", detail, cache_bytes // workload.widest_bytes + held)

"""Which capacity a bound is for: the number of values that can be held at once, always with its name beside it.

- ``cache``: one explicitly managed memory of the given size, nothing else.
- ``chip``: every on-chip store between DRAM and the ALUs of a real GPU.
- ``trace``: what a simulated kernel can hold, its cache plus what its blocks keep on the SMs. Only this one makes
  the bound hold for every simulated order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pebble.errors import InfeasibleError, InputError
from pebble.models.machine import Machine
from pebble.units import Size
from pebble.workloads import Workload
from pebble.workloads.widths import FastMemory, Widths


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
    memory : FastMemory, optional
        The same in bytes, where values of several widths, or partial sums, share it: what theorems in bytes grant.
    """

    elements: int
    bytes: int
    what: str
    detail: str
    schedule_elements: int
    memory: FastMemory | None = None

    def schedules(self, workload: Workload) -> FastMemory:
        """The memory of a schedule: of bytes, or of values where all have one width."""
        return self.memory or FastMemory.of_values(self.schedule_elements, workload)

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {"elements": self.elements, "bytes": self.bytes, "what": self.what, "detail": self.detail}


def _values_that_fit(size_bytes: int, workload: Workload, accumulator_bytes: int = 0) -> int:
    least = 2 * workload.in_bytes + max(workload.out_bytes, accumulator_bytes)
    if size_bytes < least:
        raise InfeasibleError(
            f"capacity: got {size_bytes} bytes, expected at least {least} bytes (the operands of a multiply-add): "
            "no schedule exists."
        )
    return max(3, size_bytes // workload.widest_bytes)  # three values, one of each operand, fit as just checked


def _free_capacity(
    size_bytes: int, workload: Workload, accumulator_bytes: int, rounded: bool = False
) -> FastMemory | None:
    """The memory in bytes; None where all values have one width, so that counting them says as much."""
    widths = Widths.of(workload, accumulator_bytes)
    if rounded:  # partial sums of the output also wait in memory at its width
        widths = replace(widths, partial=widths.written)
    return None if widths.uniform else FastMemory(size_bytes, widths)


def cache_capacity(size: Size, workload: Workload, accumulator_bytes: int = 0) -> Capacity:
    """One memory of that size, explicitly managed; partial sums take ``accumulator_bytes`` (0: what they end as).

    Raises
    ------
    InfeasibleError
        It cannot hold one value of each operand.
    InputError
        A size in values, with accumulators of a width of their own.
    """
    width = workload.narrowest_bytes
    elements = size.to_elements(width)
    fits = elements if size.bytes is None else _values_that_fit(size.bytes, workload, accumulator_bytes)
    if size.bytes is None and accumulator_bytes:
        raise InputError(
            f"--cache: got {size.text} with --accumulate fp32, expected bytes, such as 40MiB: with partial sums of a "
            "width of their own a number of values is no size."
        )
    memory = None if size.bytes is None else _free_capacity(size.bytes, workload, accumulator_bytes)
    detail = f"one explicitly managed memory of {size.text}"
    return Capacity(elements, size.to_bytes(width), "cache", detail, fits, memory)


def chip_capacity(machine: Machine, workload: Workload, accumulator_bytes: int = 0) -> Capacity:
    """Every on-chip store of the machine; partial sums as in `cache_capacity`."""
    total = machine.on_chip_bytes
    parts = ", ".join(f"{_store_name(s.key)} {s.total_bytes / 2**20:g} MiB" for s in machine.stores)
    detail = f"all on-chip stores of {machine.name}: {parts}"
    memory = _free_capacity(total, workload, accumulator_bytes)
    return Capacity(total // workload.narrowest_bytes, total, "chip", detail, _values_that_fit(total, workload), memory)


def _store_name(key: str) -> str:
    return key.removeprefix("stores.").removesuffix("_per_sm").replace("_", " ")


def trace_capacity(
    cache_bytes: int,
    workload: Workload,
    held: int,
    blocks: int,
    *,
    held_bytes: int = 0,
    accumulator_bytes: int = 0,
    rounded: bool = False,
) -> Capacity:
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
    held_bytes : int
        What the values that blocks hold take, accumulators in fp32.
    accumulator_bytes : int
        What a partial sum takes; 0: what it ends as.
    rounded : bool
        Whether the cache may hold partial sums of the output at the output's width.
    """
    width = workload.narrowest_bytes
    elements = cache_bytes // width + held
    detail = f"cache of {cache_bytes} bytes and {held} values held by {blocks} blocks"
    fits = cache_bytes // workload.widest_bytes + held
    memory = _free_capacity(cache_bytes + held_bytes, workload, accumulator_bytes, rounded) if held_bytes else None
    if memory is None:
        return Capacity(elements, elements * width, "trace", detail, fits)
    # a block's place for a narrow tile holds no cell of a wide output: what surely fits, fits in the bytes, too
    return Capacity(elements, memory.bytes, "trace", detail, min(fits, memory.bytes // workload.widest_bytes), memory)

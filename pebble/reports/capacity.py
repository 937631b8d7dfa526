"""Which capacity a bound is for: the number of values that can be held at once, always with its name beside it; and
what is known of a workload at one capacity, from both sides.

- ``cache``: one explicitly managed memory of the given size, nothing else.
- ``chip``: every on-chip store between DRAM and the ALUs of a real GPU.
- ``trace``: what a simulated kernel can hold, its cache plus what its blocks keep on the SMs. Only this one makes
  the bound hold for every simulated order.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pebble.bounds import Formula, LowerBound
from pebble.bounds.accounting import lower_bound
from pebble.bounds.memories import buffer_lower_bound, covers_memories
from pebble.errors import InfeasibleError, InputError
from pebble.families import FAMILIES, Explicit, accounting, family_of, find_family, read_workload
from pebble.game import BufferModel, Game, Variant
from pebble.models.machine import Machine
from pebble.units import Size
from pebble.workloads.widths import FastMemory, Widths
from pebble.workloads.workload import Workload


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
    return None if widths.uniform and workload.whole_widths else FastMemory(size_bytes, widths)


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
    elements = size.to_elements(width) if size.bytes is None else workload.values_in(size.bytes)
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
    parts = ", ".join(f"{s.title} {s.total_bytes / 2**20:g} MiB" for s in machine.stores)
    detail = f"all on-chip stores of {machine.name}: {parts}"
    memory = _free_capacity(total, workload, accumulator_bytes)
    return Capacity(workload.values_in(total), total, "chip", detail, _values_that_fit(total, workload), memory)


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


class Known(NamedTuple):
    """What is known of a workload at one capacity, as in `Bound`."""

    lower: LowerBound
    upper: Explicit | None
    separate: LowerBound | None
    formulas: tuple[Formula, ...]


def known_of(
    workload: Workload,
    capacity: int,
    schedules: FastMemory,
    processors: int = 1,
    recompute: bool = False,
    memory: FastMemory | None = None,
    cases: int = 0,
) -> Known:
    """Bound a workload from both sides: schedules in one memory; bounds in values, in bytes where ``memory`` is."""
    family = family_of(workload)
    return Known(
        family.lower_bound(workload, capacity, recompute, memory, cases),
        best_schedule(workload, schedules),
        family.separate_bound(workload, capacity, memory, recompute),
        family.published(workload, capacity, processors),
    )


def best_in_kernel(workload: Workload, capacity: Capacity) -> Explicit | None:
    """The best schedule known in what a simulated kernel can hold: so many bytes, and so many values.

    Registers of an accumulator hold one value, however narrow, so that both bind. What holds too many values is left
    for the best of those that do not, or in as many bytes as so many of the narrowest values take.
    """
    memory, most = capacity.schedules(workload), capacity.elements
    result = best_schedule(workload, memory)
    if capacity.memory is None or result is None or result.peak_elements <= most:
        return result
    narrowest = min(memory.widths.read, memory.widths.written)
    rooms = replace(memory, values=most), replace(memory, bytes=min(memory.bytes, narrowest * most))
    tried = (best_schedule(workload, item) for item in rooms)
    fit = (element for element in tried if element is not None and element.peak_elements <= most)
    return min(fit, key=lambda single: single.bytes, default=None)


def best_schedule(workload: Workload, memory: FastMemory) -> Explicit | None:
    """The best schedule known in a memory of bytes; None where none of ours fits, which is no proof that none does."""
    try:
        return family_of(workload).best_schedule(workload, memory)
    except InfeasibleError:
        return None


def known_bound(
    source: Any, values: Mapping[str, Any], game: Game, capacity: int, buffers: BufferModel, most: int | None
) -> int:
    """What ``bound`` proves of the workload that a game is; 0 if it is none, or weighted, or solvers know as much."""
    from pebble.solvers.lower import best_simple_bound

    named = {key: value for key, value in values.items() if value is not None and value is not False}
    family = find_family(source)
    if family is not None:
        named = {**source.values(), **named}
    else:
        family = FAMILIES.get(source) if isinstance(source, str) else None
    if family is None or family.dag is None or game.variant is not Variant.IN_PLACE or set(game.weights) != {1}:
        return 0
    if not set(named) <= {p.name for p in family.parameters}:
        return 0
    with suppress(InputError, InfeasibleError):  # sizes that the DAG has and the workload has not
        workload = read_workload(family.name, named)
        problem = accounting(workload)
        if buffers.memories == 1:
            size = buffers.memory_size(capacity)
            bound = lower_bound(problem, size).elements
            return bound if bound > best_simple_bound(game, size)[0] else 0
        if covers_memories(problem):
            # every multiply-add is a task, so a limit on tasks is one on these
            share = most if most is not None and most * buffers.sms >= workload.multiply_adds else None
            return buffer_lower_bound(problem, capacity, buffers, share).elements
    return 0

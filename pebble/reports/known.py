"""What is known of a workload at one capacity, from both sides."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from pebble.bounds import Formula, LowerBound
from pebble.bounds.accounting import lower_bound
from pebble.bounds.memories import buffer_lower_bound, covers_memories
from pebble.errors import InfeasibleError, InputError
from pebble.families import FAMILIES, Explicit, accounting, family_of, find_family, read_workload
from pebble.game import BufferModel, Game, Variant
from pebble.reports.capacity import Capacity
from pebble.workloads.base import Workload
from pebble.workloads.widths import FastMemory


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
) -> Known:
    """Bound a workload from both sides: schedules in one memory; bounds in values, in bytes where ``memory`` is."""
    family = family_of(workload)
    return Known(
        family.lower_bound(workload, capacity, recompute, memory),
        best_schedule(workload, schedules),
        family.separate_bound(workload, capacity, memory),
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

    given = {key: value for key, value in values.items() if value is not None and value is not False}
    family = find_family(source)
    if family is not None:
        given = {**source.values(), **given}
    else:
        family = FAMILIES.get(source) if isinstance(source, str) else None
    if family is None or family.dag is None or game.variant is not Variant.IN_PLACE or set(game.weights) != {1}:
        return 0
    if not set(given) <= {p.name for p in family.parameters}:
        return 0
    with suppress(InputError, InfeasibleError):  # sizes that the DAG has and the workload has not
        workload = read_workload(family.name, given)
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

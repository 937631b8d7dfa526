"""What is known of a workload at one capacity, from both sides."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from pebble.bounds import Formula, LowerBound
from pebble.errors import InfeasibleError
from pebble.families import Explicit, family_of
from pebble.reports.capacity import Capacity
from pebble.workloads.base import Workload
from pebble.workloads.widths import Room


class Known(NamedTuple):
    """What is known of a workload at one capacity, as in `Bound`."""

    lower: LowerBound
    upper: Explicit | None
    separate: LowerBound | None
    formulas: tuple[Formula, ...]


def known_of(
    workload: Workload,
    capacity: int,
    schedules: Room,
    processors: int = 1,
    recompute: bool = False,
    room: Room | None = None,
) -> Known:
    """Bound a workload from both sides: schedules in one memory; bounds for values, and in bytes where ``room`` is."""
    family = family_of(workload)
    return Known(
        family.lower_bound(workload, capacity, recompute, room),
        best_schedule(workload, schedules),
        family.separate_bound(workload, capacity, room),
        family.published(workload, capacity, processors),
    )


def best_in_kernel(workload: Workload, capacity: Capacity) -> Explicit | None:
    """The best schedule known in what a simulated kernel can hold: so many bytes, and so many values.

    Registers of an accumulator hold one value, however narrow, so that both bind. What holds too many values is left
    for the best of those that do not, or in as many bytes as so many of the narrowest values take.
    """
    room, most = capacity.schedules(workload), capacity.elements
    found = best_schedule(workload, room)
    if capacity.room is None or found is None or found.peak_elements <= most:
        return found
    narrowest = min(room.widths.read, room.widths.written)
    rooms = replace(room, values=most), replace(room, bytes=min(room.bytes, narrowest * most))
    tried = (best_schedule(workload, one) for one in rooms)
    fit = (one for one in tried if one is not None and one.peak_elements <= most)
    return min(fit, key=lambda one: one.bytes, default=None)


def best_schedule(workload: Workload, room: Room) -> Explicit | None:
    """The best schedule known in a memory of bytes; None where none of ours fits, which is no proof that none does."""
    try:
        return family_of(workload).best_schedule(workload, room)
    except InfeasibleError:
        return None

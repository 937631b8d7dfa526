"""What is known of a workload at one capacity, from both sides."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from pebble.bounds import Formula, LowerBound
from pebble.errors import InfeasibleError
from pebble.families import Explicit, family_of
from pebble.reports.capacity import Capacity
from pebble.workloads.base import Workload
from pebble.workloads.widths import Room, Widths


class Known(NamedTuple):
    """What is known of a workload at one capacity, as in `Bound`."""

    lower: LowerBound
    upper: Explicit | None
    separate: LowerBound | None
    formulas: tuple[Formula, ...]


def known_of(
    workload: Workload,
    capacity: int,
    schedule_capacity: int,
    processors: int = 1,
    recompute: bool = False,
    room: Room | None = None,
) -> Known:
    """Bound a workload from both sides; ``schedule_capacity`` counts values at the widest width, ``room`` bytes."""
    family = family_of(workload)
    return Known(
        family.lower_bound(workload, capacity, recompute, room),
        best_schedule(workload, schedule_capacity, room),
        family.separate_bound(workload, capacity, room),
        family.published(workload, capacity, processors),
    )


def best_in_kernel(workload: Workload, capacity: Capacity) -> Explicit | None:
    """The best schedule known in what a simulated kernel can hold: so many bytes, and so many values.

    Registers of an accumulator hold one value, however narrow, so that both bind. What holds too many values is left
    for the best of those that were looked at and do not, or in as many bytes as so many of the narrowest values take.
    """
    found = best_schedule(workload, capacity.schedule_elements, capacity.room)
    room, most = capacity.room, capacity.elements
    if room is None or found is None or found.peak_elements <= most:
        return found
    narrowest = min(room.widths.read, room.widths.written)
    rooms = replace(room, values=most), replace(room, bytes=min(room.bytes, narrowest * most))
    tried = (best_schedule(workload, capacity.schedule_elements, one) for one in rooms)
    fit = (one for one in tried if one is not None and one.peak_elements <= most)
    return min(fit, key=lambda one: one.bytes, default=None)


def best_schedule(workload: Workload, capacity: int, room: Room | None) -> Explicit | None:
    """The best schedule known: for values, or in bytes where values have several widths."""
    family = family_of(workload)
    if room is None:
        return family.best_schedule(workload, capacity)
    try:
        found = family.best_schedule_in_bytes(workload, room)
    except InfeasibleError:  # no schedule of ours fits this little; that is not a proof that nothing does
        found = None
    if room.widths != Widths.of(workload):  # partial sums are wider than values: those for values may not fit
        return found
    values = family.best_schedule(workload, capacity)
    return min((s for s in (values, found) if s is not None), key=lambda s: s.bytes, default=None)

"""One trace at many capacities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pebble.models.caches import parse_policy
from pebble.models.caches.base import check_capacity
from pebble.traces import LINE_BYTES, Trace


@dataclass(frozen=True)
class ScheduleCurve:
    """One schedule's DRAM bytes at each capacity of the report."""

    name: str  #: of the schedule
    read_bytes: tuple[int, ...]  #: fetched from DRAM
    write_bytes: tuple[int, ...]  #: written to DRAM

    @property
    def dram_bytes(self) -> tuple[int, ...]:
        """Bytes read and written."""
        return tuple(r + w for r, w in zip(self.read_bytes, self.write_bytes, strict=True))


def curve_of(name: str, trace: Trace, policy: str, capacities_lines: Sequence[int]) -> ScheduleCurve:
    """DRAM bytes at each capacity: LRU and OPT from one curve, other policies by one simulation each.

    Raises
    ------
    InputError
        A capacity below the largest tile.
    """
    check_capacity(trace, min(capacities_lines), what="curve")
    moved = parse_policy(policy).curve(trace, capacities_lines)
    return ScheduleCurve(name, *(tuple(value * LINE_BYTES for value in part) for part in zip(*moved, strict=True)))

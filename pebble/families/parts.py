"""Schedules of a workload made of parts: the best schedule known of each, one part after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pebble.families.schedules import Explicit
from pebble.workloads.widths import ALIKE, FastMemory


@dataclass(frozen=True)
class PartSchedule:
    """One part after the other, each by a schedule of its own.

    Attributes
    ----------
    parts : tuple of (str, Explicit, int)
        What the part is called, its schedule, and how many equal parts run so.
    memory : FastMemory
        The memory, which each has to itself.
    """

    parts: tuple[tuple[str, Explicit, int], ...]
    memory: FastMemory

    @property
    def elements(self) -> int:
        """Loads plus stores of all parts."""
        return sum(count * schedule.elements for _, schedule, count in self.parts)

    @property
    def bytes(self) -> int:
        """The same in bytes."""
        return sum(count * schedule.bytes for _, schedule, count in self.parts)

    @property
    def name(self) -> str:
        """What runs, in a line."""
        shown = [f"{name}: {s.name}" if n == 1 else f"{n} x {name}: {s.name}" for name, s, n in self.parts[:4]]
        more = len(self.parts) - len(shown)
        return "one after the other: " + "; ".join(shown) + (f"; ... ({more} more)" if more else "")

    @property
    def loads(self) -> dict[str, int]:
        """Values loaded, by part and operand."""
        return {f"{name}.{x}": count * n for name, item, count in self.parts for x, n in item.loads.items()}

    @property
    def stores(self) -> dict[str, int]:
        """Values stored, by part and operand."""
        return {f"{name}.{x}": count * n for name, item, count in self.parts for x, n in item.stores.items()}

    @property
    def peak_elements(self) -> int:
        """The most values that a part holds."""
        return max(schedule.peak_elements for _, schedule, _ in self.parts)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        parts = [{"name": name, "count": count, **schedule.to_json()} for name, schedule, count in self.parts]
        fields: dict[str, Any] = {"kind": "parts", "parts": parts}
        return fields if self.memory.widths == ALIKE else fields | {"widths_bytes": self.memory.widths.to_json()}


def in_turn(parts: Iterable[tuple[str, Explicit | None, int]], memory: FastMemory) -> PartSchedule | None:
    """The parts one after the other; None if one of them has no schedule."""
    results = []
    for name, schedule, count in parts:
        if schedule is None:
            return None
        results.append((name, schedule, count))
    return PartSchedule(tuple(results), memory)

"""``compare`` of a family without simulated kernels: its schedules under explicit control, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from pebble.errors import InfeasibleError
from pebble.families import Explicit, family_of
from pebble.models.machine import Machine
from pebble.reports.bound import Bound, bound_workload
from pebble.reports.report import Report
from pebble.reports.target import TargetOptions
from pebble.units import format_bytes, format_ratio
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class ScheduleComparison(Report):
    """What ``pebble compare`` says of a family whose schedules are under explicit control.

    Attributes
    ----------
    bound : Bound
        What is proved in that memory.
    schedules : mapping of str to Explicit
        By a short name, the one that moves least first.
    """

    bound: Bound
    schedules: Mapping[str, Explicit]

    question = "compare"
    table_keys = ("name", "dram_bytes", "ratio_to_lower_bound")

    @property
    def machine(self) -> Machine | None:
        return self.bound.machine

    def summary(self) -> str:
        name, best = next(iter(self.schedules.items()))
        ratio = format_ratio(self.bound.over_bound(best), ".2f")
        return f"{self.bound.workload.label}: {name} moves {format_bytes(best.bytes)}, {ratio}x the bound"

    def rows(self) -> list[dict[str, Any]]:
        """A row per schedule."""
        return [
            {
                "name": name,
                "dram_bytes": item.bytes,
                "ratio_to_lower_bound": self.bound.over_bound(item),
                "schedule": item.name,
                "details": item.to_json(),
            }
            for name, item in self.schedules.items()
        ]

    def document(self) -> dict[str, Any]:
        known = self.bound.document()
        kept = ("workload", "capacity", "recompute", "accumulate", "lower_bound", "upper_bound")
        return {**{key: known[key] for key in kept}, "schedules": self.rows()}

    def plot(self, ax: Axes | None = None) -> Axes:
        """The bound and the best schedule as bars."""
        return self.bound.plot(ax)


def compare_explicit(workload: Workload, **where: Unpack[TargetOptions]) -> ScheduleComparison:
    """Bound a workload, and set its schedules side by side in the same memory; arguments and errors as for `bound`.

    Raises
    ------
    InfeasibleError
        No schedule of ours fits.
    """
    bound = bound_workload(workload, **where)
    found = family_of(workload).schedules(workload, bound.capacity.schedules(workload))
    if not found:
        raise InfeasibleError(
            f"capacity: got {format_bytes(bound.capacity.bytes)}, in which no schedule of ours for {workload.label} "
            "fits, expected more."
        )
    return ScheduleComparison(bound, dict(sorted(found.items(), key=lambda entry: entry[1].bytes)))

"""Whether figures of blocks that run free can be relied on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pebble.families import kernel_family
from pebble.reports.target import Kernel
from pebble.workloads.base import Workload


def what_drifts(workload: Workload, kernel: Kernel, schedules: Sequence[str], column: str = "") -> list[str]:
    """Of which schedules the figures of free-running blocks are not reliable, and why: a sentence a reason.

    ``column``: where such figures stand beside those of blocks that run otherwise; without one there are none.
    """
    found: dict[str, list[str]] = {}
    figures = "the figures" if kernel.config.execution.is_free else column
    for name in schedules if figures else ():
        if why := kernel_family(workload).drifts(workload, name, kernel.config):
            found.setdefault(why, []).append(name)
    return [
        f"not reliable: {figures}{' of ' + ', '.join(names) if len(names) < len(schedules) else ''}: {why}"
        for why, names in found.items()
    ]


def warned(workload: Workload, kernel: Kernel, schedules: Sequence[str]) -> Kernel:
    """The kernel; where its blocks run free, with a note on those of the schedules that drift unlike the model."""
    return replace(kernel, notes=(*kernel.notes, *what_drifts(workload, kernel, schedules)))

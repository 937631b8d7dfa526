"""About how long simulations take, so that a command can say it before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pebble.reports.simulated_kernel import SimulatedKernel
from pebble.system.parallel import cores
from pebble.tuning.worth import line_loads
from pebble.workloads.workload import Workload

_LINE_SECONDS = 1.7e-9  # of a line that a block loads as a part of its tile


def about_seconds(
    workload: Workload, kernel: SimulatedKernel, schedules: Sequence[Any], runs: float = 1.0, in_part: bool = True
) -> float:  # fmt: skip
    """About how long so many simulations of each schedule take on the cores of this process; right to a factor of 2.

    ``in_part``: where the first part of a long one is simulated. 0 where nothing can be said.
    """
    loads = line_loads(workload, kernel.config, schedules)
    lines = loads.in_part if in_part else loads.whole
    return lines * runs * _LINE_SECONDS / min(cores(), len(schedules) or 1)

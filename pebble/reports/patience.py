"""About how long simulations take, so that a command can say it before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.reports.simulated_kernel import SimulatedKernel
from pebble.system.parallel import cores
from pebble.timing.sample import wave_loads
from pebble.tuning.advisors.ours import MOST_LINES, most_lines
from pebble.workloads.base import Workload

_LINE_SECONDS = 1.7e-9  # of a line that a block loads as a part of its tile


def about_seconds(
    workload: Workload, kernel: SimulatedKernel, schedules: Sequence[Any], runs: float = 1.0, in_part: bool = True
) -> float:  # fmt: skip
    """About how long so many simulations of each schedule take on the cores of this process; right to a factor of 2.

    ``in_part``: where the first part of a long one is simulated. 0 where nothing can be said.
    """
    return line_loads(workload, kernel, schedules, in_part) * runs * _LINE_SECONDS / min(cores(), len(schedules) or 1)


def line_loads(workload: Workload, kernel: SimulatedKernel, schedules: Sequence[Any], in_part: bool = True) -> float:
    """Lines that simulations follow, those told apart one by one counted as many; 0 where nothing can be said."""
    family, total = kernel_family(workload), 0.0
    try:
        for schedule in schedules:
            program = family.program(workload, schedule, kernel.config)
            sectors = program.layout.tile_sectors()
            loads = sum(
                float(wave_loads(phase, sectors, group.wave_blocks).sum())
                for group in program.groups
                for phase in group.phases
            )
            most = most_lines(program)
            total += (min(loads, float(most)) if in_part else loads) * MOST_LINES / most
    except InputError:
        return 0.0
    return total

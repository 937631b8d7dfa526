"""``time --sweep``: one size in many values; when does a workload stop being memory-bound?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from pebble.errors import InputError, UnknownNameError
from pebble.models.machine import Machine
from pebble.reports.kernel_time import (
    MILLI,
    TimedSchedule,
    fastest,
    floor_word,
    kernel_floor,
    power_of_kernel,
    sustained_note,
    sustained_row,
    time_notes,
    time_row,
    timed_kernel,
)
from pebble.reports.report import Report
from pebble.reports.schedule_names import Schedules
from pebble.reports.simulated_kernel import KernelOptions, SimulatedKernel
from pebble.reports.target import whole
from pebble.system.parallel import each
from pebble.timing.floor import TimeFloor
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Step(NamedTuple):
    """One value of the size: the fastest kernel for it, and the floor."""

    value: int
    workload: Workload
    kernel: SimulatedKernel
    best: TimedSchedule
    floor: TimeFloor


@dataclass(frozen=True, repr=False)
class Sweep(Report):
    """What ``pebble time --sweep`` found.

    Attributes
    ----------
    workload : Workload
        As it was given.
    size : str
        What varies.
    steps : tuple of Step
        In the order of the values.
    notes : tuple of str
    """

    workload: Workload
    size: str
    steps: tuple[Step, ...]
    notes: tuple[str, ...]

    question = "time"

    @property
    def machine(self) -> Machine | None:
        return self.steps[0].kernel.target.machine

    @property
    def memory_bound_to(self) -> int | None:
        """The last value, from the least on, up to which DRAM binds most waves; None where it does for none."""
        last = None
        for step in sorted(self.steps, key=lambda step: step.value):
            if next(iter(step.best.time.binds)) != "DRAM":
                break
            last = step.value
        return last

    def summary(self) -> str:
        last = self.memory_bound_to
        if last is None:
            return f"{self.workload.label}: not DRAM-bound at any {self.size} of the sweep, by the model"
        return f"{self.workload.label}: DRAM-bound up to {self.size} = {last:,}, by the model"

    def rows(self) -> list[dict[str, Any]]:
        """A row per value."""
        return [
            {
                self.size: step.value,
                "name": step.best.order,
                "tile": step.kernel.tile,
                **time_row(step.best.time),
                **sustained_row(step.best.sustained),
                "floor_ms": step.floor.seconds * MILLI,
                "floor_binds": floor_word(step.floor),
                "tflops": step.workload.flops / step.best.ranked_seconds / 1e12,
            }
            for step in self.steps
        ]

    def document(self) -> dict[str, Any]:
        return {
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "size": self.size,
            "memory_bound_to": self.memory_bound_to,
            "steps": self.rows(),
            "notes": list(self.notes),
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """What each resource needs, and the modelled time, against the size."""
        from pebble.plots.time import plot_sweep

        steps = [(step.value, step.best.time, step.floor.seconds) for step in self.steps]
        return plot_sweep(self.size, steps, ax)

    def figure(self) -> Figure:
        """The same with its legend below."""
        from pebble.plots.time import time_figure

        return time_figure(self.plot, f"{self.summary()}\n{'' if self.machine is None else self.machine.name}")


def resized(workload: Workload, size: str, value: int) -> Workload:
    """The workload with another size.

    Raises
    ------
    UnknownNameError
        It has no such size.
    InputError
        Not a value for it.
    """
    sizes = [name for name, now in workload.values().items() if isinstance(now, int) and not isinstance(now, bool)]
    if size == "tokens" and "m" in sizes and size not in sizes:
        size = "m"  # the rows of a layer's product
    if size not in sizes:
        raise UnknownNameError("size", size, sizes, "pebble workloads")
    return workload.replaced(**{size: value})


def time_sweep(
    workload: Workload,
    sweep: tuple[str, Sequence[int]],
    schedules: Schedules | None = None,
    **options: Unpack[KernelOptions],
) -> Sweep:
    """The fastest order for each value of a size; arguments and errors as for `pebble.time`.

    Without ``tile`` each has the kernel of `pebble.advise`: few rows need small tiles to keep all SMs busy.
    """
    size, values = sweep
    every = [resized(workload, size, value) for value in values]

    def step(at: int) -> Step:
        kernel, rates = timed_kernel(every[at], **options)
        best = fastest(every[at], schedules, kernel, rates, power_of_kernel(every[at], kernel))
        return Step(values[at], every[at], kernel, best, kernel_floor(every[at], kernel))

    steps = dict(each(step, list(range(len(values)))))
    done = tuple(steps[at] for at in range(len(values)))
    how = sustained_note(all(item.best.sustained for item in done), workload)
    return Sweep(workload, size, done, (*time_notes(workload), how))


def read_sweep(sweep: str | Mapping[str, Sequence[int]]) -> tuple[str, list[int]]:
    """The size that varies, and its values.

    Raises
    ------
    InputError
        Not NAME=VALUE,VALUE.
    """
    if isinstance(sweep, Mapping):
        name, values = next(iter(sweep.items()), ("", ()))
        parts: Sequence[Any] = list(values)
    else:
        name, _, text = sweep.partition("=")
        parts = [part for part in text.split(",") if part]
    if not name or not parts:
        raise InputError(f"--sweep: got {sweep!r}, expected NAME=VALUE,VALUE such as tokens=16,256,4096.")
    return name.strip().replace("-", "_"), [whole(f"--sweep {name}", part, 1, 2**31) for part in parts]

"""Modelled time of the schedules of one workload on a GPU, beside the floor that is proved, and what binds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

from pebble.errors import InputError
from pebble.families import accounting, kernel_family
from pebble.models.machine import Machine
from pebble.reports.base import Report
from pebble.reports.bounded import trace_bound
from pebble.reports.chosen import Own, chosen_schedules, walk_alike
from pebble.reports.given import check_seed
from pebble.reports.kernel_notes import kernel_notes
from pebble.reports.simulated_kernel import Kernel, KernelOptions, read_kernel
from pebble.system.parallel import each
from pebble.timing.floor import TimeFloor, time_floor
from pebble.timing.sustained import Rates, sustained_rates
from pebble.timing.waves import ModelledTime, modelled_time
from pebble.workloads.base import Workload

MILLI = 1e3  # milliseconds of a second
_BINDS = {"operations": "compute-bound", "dram": "DRAM-bound", "l2": "L2-bound"}
ESTIMATE = (
    "modelled times are estimates at rates that kernels sustain, fitted to launches on an H100 and an H200; the floor "
    "is proved at the vendor's peaks"
)
_NO_OVERLAP = (
    "the exponentials of a step are timed after its products: the overlap of the two in FlashAttention-3 is not in the "
    "model, so fa2 and fa3 differ by the order of their blocks alone"
)


def time_notes(*workloads: Workload) -> tuple[str, ...]:
    """What a reader must know of the modelled times of these workloads."""
    return ESTIMATE, *([_NO_OVERLAP] if any(kernel_family(workload).hides_phases for workload in workloads) else [])


class Timed(NamedTuple):
    """A schedule and its modelled time."""

    order: str
    time: ModelledTime


@dataclass(frozen=True, repr=False)
class Timing(Report):
    """What ``pebble time`` found.

    Attributes
    ----------
    workload : Workload
    kernel : Kernel
        How it runs.
    floor : TimeFloor
        No launch of this kernel takes less.
    orders : tuple of Timed
        Fastest first.
    notes : tuple of str
        What a reader must know of the assumptions.
    """

    workload: Workload
    kernel: Kernel
    floor: TimeFloor
    orders: tuple[Timed, ...]
    notes: tuple[str, ...]

    question = "time"

    @property
    def machine(self) -> Machine | None:
        return self.kernel.target.machine

    def summary(self) -> str:
        best = self.orders[0]
        return (
            f"{self.workload.label}, tile {self.kernel.tile}: {best.order} takes {best.time.seconds * MILLI:.3f} ms by "
            f"the model, bound by {next(iter(best.time.binds))}; floor {self.floor.seconds * MILLI:.3f} ms"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row per schedule."""
        return [
            {
                "name": order,
                "tile": self.kernel.tile,
                **time_row(time),
                "floor_ms": self.floor.seconds * MILLI,
                "tflops": self.workload.flops / time.seconds / 1e12,
            }
            for order, time in self.orders
        ]

    def document(self) -> dict[str, Any]:
        return {
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "kernel": self.kernel.to_dict(),
            "time": self.floor.to_json(),
            "schedules": self.rows(),
            "notes": list(self.notes),
        }


def time_row(time: ModelledTime) -> dict[str, Any]:
    """A modelled time as plain data."""
    return {
        "modelled_ms": time.seconds * MILLI,
        "compute_ms": time.compute_seconds * MILLI,
        "shared_ms": time.shared_seconds * MILLI,
        "l2_ms": time.l2_seconds * MILLI,
        "dram_ms": time.dram_seconds * MILLI,
        "latency_ms": time.latency_seconds * MILLI,
        "fill_and_drain_ms": time.around_seconds * MILLI,
        "launch_ms": time.launch_seconds * MILLI,
        "throttled_ms": time.throttled_seconds * MILLI,  # what the power limit adds
        "waves": len(time.waves),
        "binds": time.binds,
        "dram_bytes": time.dram_bytes,
        "l2_bytes": time.l2_bytes,
    }


def timed_kernel(workload: Workload, **options: Unpack[KernelOptions]) -> tuple[Kernel, Rates]:
    """The kernel that the options describe, and the rates that its chip sustains.

    Raises
    ------
    InputError
        No machine, or one whose file lacks a rate; or as for `read_kernel`.
    """
    if options.get("cache") is not None and options.get("gpu") is None and options.get("machine") is None:
        raise InputError("time: got --cache, expected --gpu or --machine, whose rates tell how long a kernel runs.")
    kernel = read_kernel(workload, **options)
    check_seed(options, kernel.config.execution.kind)
    machine = kernel.target.machine
    assert machine is not None
    return kernel, sustained_rates(machine, workload.dtype)


def time_schedule(
    workload: Workload, schedule: Any, kernel: Kernel, rates: Rates, residual: bool = False
) -> ModelledTime:
    """The modelled time of one schedule; arguments as from `timed_kernel`."""
    program = kernel_family(workload).program(workload, schedule, kernel.config, residual)
    return modelled_time(program, kernel.config, rates)


def kernel_floor(workload: Workload, kernel: Kernel) -> TimeFloor:
    """No launch of the kernel takes less time, whatever its schedule."""
    assert kernel.target.machine is not None
    return time_floor(accounting(workload), kernel.target.machine, trace_bound(workload, kernel).bound)


def floor_word(floor: TimeFloor) -> str:
    """What sets a floor: compute-bound, DRAM-bound or L2-bound; empty where no peak is known."""
    return "" if floor.binds is None else _BINDS[floor.binds.name]


def fastest(workload: Workload, schedules: str | Sequence[str] | None, kernel: Kernel, rates: Rates) -> Timed:
    """The schedule that takes least by the model, of these or of those in daily use."""
    chosen = chosen_schedules(workload, kernel, schedules or kernel_family(workload).daily)
    timed = [Timed(one.name, time_schedule(workload, one, kernel, rates)) for one in chosen]
    return min(timed, key=lambda one: one.time.seconds)


def time_schedules(
    workload: Workload,
    schedules: str | Sequence[str] = "all",
    schedule: Own | Sequence[Own] | None = None,
    residual: bool = False,
    **options: Unpack[KernelOptions],
) -> Timing:
    """The modelled time of each schedule; arguments and errors as for `pebble.time`."""
    family = kernel_family(workload)
    kernel, rates = timed_kernel(workload, **options)
    chosen = chosen_schedules(workload, kernel, schedules, schedule)
    family.check(workload, kernel.config)
    alike = walk_alike(workload, chosen, kernel.config)
    found: dict[int, Timed] = {}
    for at, took in each(lambda same: time_schedule(workload, chosen[same[0]], kernel, rates, residual), alike):
        found |= {i: Timed(chosen[i].name, took) for i in alike[at]}
    orders = sorted((found[i] for i in sorted(found)), key=lambda one: (one.time.seconds, one.time.dram_bytes))
    said = kernel_notes(workload, kernel, [one.order for one in orders])
    notes = (*time_notes(workload), *said, *family.notes(residual))
    return Timing(workload, kernel, kernel_floor(workload, kernel), tuple(orders), notes)

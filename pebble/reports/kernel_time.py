"""Modelled time of the schedules of one workload on a GPU, beside the floor that is proved, and what binds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Unpack

from pebble.errors import InputError
from pebble.families import accounting, kernel_family
from pebble.models.machine import Machine
from pebble.reports.default_kernel import advised_kernel
from pebble.reports.hand_over import HandOver, check_room, hand_over
from pebble.reports.kernel_notes import kernel_notes
from pebble.reports.refusals import check_seed
from pebble.reports.report import Report
from pebble.reports.schedule_names import Schedules, named_schedules
from pebble.reports.simulated_kernel import KernelOptions, SimulatedKernel, trace_bound
from pebble.reports.target import whole
from pebble.simulation.merging import KEYS
from pebble.system.parallel import each
from pebble.timing.floor import TITLES, TimeFloor, time_floor
from pebble.timing.modelled import ModelledTime
from pebble.timing.power import LIMIT_WATTS, Power, Sustained, both_times, power_of
from pebble.timing.sustained import Rates, sustained_rates
from pebble.timing.waves import modelled_time
from pebble.tuning.advisors.ours import most_lines
from pebble.tuning.worth import walk_alike
from pebble.workloads.workload import Workload

MILLI = 1e3  # milliseconds of a second
_BINDS = {"operations": "compute-bound", "dram": "DRAM-bound", "l2": "L2-bound"}
ESTIMATE = (
    "modelled times are estimates at rates that kernels sustain, fitted to launches on an H100 and an H200; the floor "
    "is proved at the vendor's peaks"
)
_OVERLAP = (
    "exponentials are timed beside products in the exported kernel's own tile on Hopper, elsewhere after them; fa2 and "
    "fa3 differ by the order of their blocks alone"
)
_NO_OVERLAP = "exponentials are timed after products; fa2 and fa3 differ by the order of their blocks alone"


CUT = (
    "where k is cut, times are less sure: of 40 single launches on an H200 26 are within 10 % "
    "(benchmarks/hardware/split_k.py)"
)
_SUSTAINED = (
    f"sustained: run again and again at the chip's {LIMIT_WATTS:g} W, a model of a persistent TMA kernel fitted to one "
    "H200's matrix products; a kernel with one block a tile takes about 1.2 times as long; joules are of one launch, "
    "modelled too; a launch alone is one of it after a pause, at full clock"
)
_SUSTAINED_ATTENTION = (
    f"sustained: run again and again at the chip's {LIMIT_WATTS:g} W, a model fitted to one H200's matrix products and "
    "exported attention; joules are of one launch, modelled too"
)
_PROMOTED = (
    "promoted sums are one addition each on the vector pipes, while tensor cores wait; a kernel whose registers spill "
    "takes longer (benchmarks/hardware/pipes.py)"
)
_UNSUSTAINED = (
    "ranked by single launches: sustained runs, which the power limit slows, were measured for bf16 on an H200 alone, "
    "and are modelled for bf16 and fp16 there and on an H100"
)


def time_notes(*workloads: Workload) -> tuple[str, ...]:
    """What a reader must know of the modelled times of these workloads."""
    softmax = [_overlaps(workload) for workload in workloads if kernel_family(workload).hides_phases]
    return ESTIMATE, *([_OVERLAP if any(softmax) else _NO_OVERLAP] if softmax else [])


def _overlaps(workload: Workload) -> bool:
    """Whether the exported kernel of its own tile computes exponentials beside products, where a chip can."""
    kernel = kernel_family(workload).kernel
    tile = kernel.exported_tile(workload)
    return tile is not None and kernel.overlaps(workload, tile.bm, tile.bn)


def sustained_note(modelled: bool, *workloads: Workload) -> str:
    """What sustained times of these workloads are, or why there are none."""
    if not modelled:
        return _UNSUSTAINED
    return _SUSTAINED_ATTENTION if all(map(_overlaps, workloads)) else _SUSTAINED


PING_PONG, IN_TURN = "ping-pong", "one after the other"
"""How a kernel of attention orders products and exponentials: two warp groups take turns, or each block does both."""


class TimedSchedule(NamedTuple):
    """A schedule and its modelled time: of a single launch, and sustained where that was measured on such a chip."""

    order: str
    time: ModelledTime
    sustained: Sustained | None = None

    @property
    def ranked_seconds(self) -> float:
        """What schedules are ranked by: the sustained time where it is modelled."""
        return self.time.seconds if self.sustained is None else self.sustained.seconds


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
        Fastest first, sustained where that is modelled.
    notes : tuple of str
        What a reader must know of the assumptions.
    complete : bool
        False when the rest of the schedules was interrupted.
    programs : mapping of str to TimedSchedule
        The fastest under each program that its kernel may have, its own first; empty where there is one alone.
    handed_over : tuple of HandOver
        Schedules that copy an intermediate from SM to SM, each beside the fastest that does not.
    """

    workload: Workload
    kernel: SimulatedKernel
    floor: TimeFloor
    orders: tuple[TimedSchedule, ...]
    notes: tuple[str, ...]
    complete: bool = True
    programs: Mapping[str, TimedSchedule] = field(default_factory=dict)
    handed_over: tuple[HandOver, ...] = ()

    question = "time"
    table_keys = ("name", "dram_bytes", "sustained_ms", "single_ms", "floor_ms")
    bar_keys = ("sustained_ms", "single_ms")

    @property
    def best(self) -> TimedSchedule:
        """The schedule that is fastest by the model."""
        return self.orders[0]

    @property
    def machine(self) -> Machine | None:
        return self.kernel.target.machine

    def summary(self) -> str:
        best = self.orders[0]
        again = "" if best.sustained is None else f", {best.sustained.seconds * MILLI:.3f} sustained"
        return (
            f"{self.workload.label}, tile {self.kernel.tile}: {best.order} takes {best.time.seconds * MILLI:.3f} ms"
            f"{again} by the model, bound by {next(iter(best.time.binds))}; floor {self.floor.seconds * MILLI:.3f} ms"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row per schedule."""
        return [
            {
                "name": order,
                "tile": self.kernel.tile,
                **time_row(time),
                **sustained_row(again),
                "floor_ms": self.floor.seconds * MILLI,
                "tflops": self.workload.flops / time.seconds / 1e12,
            }
            for order, time, again in self.orders
        ]

    def document(self) -> dict[str, Any]:
        return {
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "kernel": self.kernel.to_dict(),
            "time": self.floor.to_json(),
            "schedules": self.rows(),
            "programs": [
                {"name": name, "schedule": each.order, **time_row(each.time), **sustained_row(each.sustained)}
                for name, each in self.programs.items()
            ],
            **({"handed_over": [each.to_json() for each in self.handed_over]} if self.handed_over else {}),
            "notes": list(self.notes),
            "complete": self.complete,
        }


def time_row(time: ModelledTime) -> dict[str, Any]:
    """A modelled time as plain data."""
    return {
        "modelled_ms": time.seconds * MILLI,
        "single_ms": time.seconds * MILLI,  # the same: of a launch by itself
        "compute_ms": time.compute_seconds * MILLI,
        "shared_ms": time.shared_seconds * MILLI,
        "l2_ms": time.l2_seconds * MILLI,
        "dram_ms": time.dram_seconds * MILLI,
        "latency_ms": time.latency_seconds * MILLI,
        "fill_and_drain_ms": time.around_seconds * MILLI,
        "launch_ms": time.launch_seconds * MILLI,
        "throttled_ms": time.throttled_seconds * MILLI,  # what the power limit adds
        "pipes_ms": {name: part * MILLI for name, part in time.pipes.items()},
        "busiest": time.busiest,
        "lost_ms": {name: part * MILLI for name, part in time.lost.items()},
        "waves": len(time.waves),
        "occupancy": time.occupancy if time.waves else None,  # the share of the time in which a slot has a block
        "binds": time.binds,
        "dram_bytes": time.dram_bytes,
        "l2_bytes": time.l2_bytes,
    }


def sustained_row(result: Sustained | None) -> dict[str, Any]:
    """A sustained run as plain data, nothing of it where none is modelled."""
    if result is None:
        return dict.fromkeys(("sustained_ms", "joules", "joules_by", "watts", "clock_mhz", *KEYS))
    return {
        "sustained_ms": result.seconds * MILLI,
        "joules": result.total_joules,
        "joules_by": dict(result.joules),
        "watts": result.watts,
        "clock_mhz": result.clock_mhz,
        **result.requested.to_json(),
    }


def timed_kernel(workload: Workload, **options: Unpack[KernelOptions]) -> tuple[SimulatedKernel, Rates]:
    """The kernel that the options describe, and the rates that its chip sustains.

    Raises
    ------
    InputError
        No machine, or one whose file lacks a rate; or as for `read_kernel`.
    """
    if options.get("cache") is not None and options.get("gpu") is None and options.get("machine") is None:
        raise InputError("time: got --cache, expected --gpu or --machine, whose rates tell how long a kernel runs.")
    kernel = advised_kernel(workload, **options)
    check_seed(options, kernel.config.execution.kind)
    machine = kernel.target.machine
    assert machine is not None
    return kernel, sustained_rates(machine, workload.dtype)


def time_schedule(
    workload: Workload,
    schedule: Any,
    kernel: SimulatedKernel,
    rates: Rates,
    power: Power | None = None,
    residual: bool = False,
    in_part: bool = False,
) -> TimedSchedule:
    """One schedule with its modelled time, sustained too where ``power`` says what the chip takes.

    ``in_part``: of a kernel that would take many seconds, the first part is simulated, as `pebble.advise` does.
    """
    program = kernel_family(workload).program(workload, schedule, kernel.config, residual)
    most = most_lines(program, kernel.config.execution.is_asynchronous) if in_part else None
    time = modelled_time(program, kernel.config, rates, most_lines=most)
    return TimedSchedule(schedule.name, *both_times(program, kernel.config, time, power))


def kernel_floor(workload: Workload, kernel: SimulatedKernel) -> TimeFloor:
    """No launch of the kernel takes less time, whatever its schedule."""
    assert kernel.target.machine is not None
    return time_floor(accounting(workload), kernel.target.machine, trace_bound(workload, kernel).bound)


def floor_word(floor: TimeFloor) -> str:
    """What sets a floor: compute-bound, DRAM-bound or L2-bound; empty where no peak is known.

    Where the peak of operations is not known, nothing can be said to bind.
    """
    if floor.binds is not None and floor.part("operations") is None:
        return f"by {TITLES[floor.binds.name]} alone"
    return "" if floor.binds is None else _BINDS[floor.binds.name]


def fastest(
    workload: Workload,
    schedules: Schedules | None,
    kernel: SimulatedKernel,
    rates: Rates,
    power: Power | None = None,
) -> TimedSchedule:
    """The schedule that takes least by the model, of these or of those that `pebble.advise` tries.

    Sustained where ``power`` says what the chip takes, else of a single launch.
    """
    family = kernel_family(workload)
    named_orders = named_schedules(
        workload, kernel, schedules or tuple(dict.fromkeys((*family.baseline, *family.advised)))
    )
    return min((time_schedule(workload, item, kernel, rates, power) for item in named_orders), key=_rank)


def _rank(timed: TimedSchedule) -> tuple[float, int]:
    return timed.ranked_seconds, timed.time.dram_bytes


def time_schedules(
    workload: Workload,
    schedules: Schedules = "all",
    schedule: Schedules | None = None,
    residual: bool = False,
    *,
    promote_every: int | str | None = None,
    progress: Callable[[int], Callable[[str], object]] = lambda total: lambda name: None,
    **options: Unpack[KernelOptions],
) -> Timing:
    """The modelled time of each schedule; arguments and errors as for `pebble.time`."""
    family = kernel_family(workload)
    kernel, rates = timed_kernel(workload, **options)
    rates = replace(rates, promotions=_promotions(workload, promote_every))
    named_orders = named_schedules(workload, kernel, schedules, schedule, timed=True)
    family.check(workload, kernel.config)
    kernel = check_room(workload, kernel, named_orders, bool(options.get("allow_infeasible")))
    alike = walk_alike(workload, named_orders, kernel.config)
    result: dict[int, TimedSchedule] = {}
    power = power_of_kernel(workload, kernel)
    tell, complete = progress(len(alike)), True
    try:
        for at, took in each(
            lambda same: time_schedule(workload, named_orders[same[0]], kernel, rates, power, residual), alike
        ):
            result |= {i: took._replace(order=named_orders[i].name) for i in alike[at]}
            tell(took.order)
    except KeyboardInterrupt:
        if not result:
            raise
        complete = False
    orders = sorted((result[i] for i in sorted(result)), key=_rank)
    said = kernel_notes(workload, kernel, [order.order for order in orders])
    how = sustained_note(orders[0].sustained is not None, workload)
    cut = [CUT] if kernel.config.execution.cuts_k else []
    promoted = [] if promote_every is None else [_PROMOTED]
    notes = (*time_notes(workload), *cut, *promoted, how, *said, *family.notes(residual))
    chosen = next(item for item in named_orders if item.name == orders[0].order)
    programs = _programs(workload, chosen, kernel, rates, power, orders[0])
    copying = {item.name: item for item in named_orders if family.in_clusters(workload, item, kernel.config)}
    times = {order.order: order.time for order in orders}
    others = [name for name in times if name not in copying]
    least = min(others, key=lambda name: times[name].seconds, default=None)
    handed = [
        hand_over(workload, item, kernel, rates, times, least)
        for name, item in copying.items()
        if least is not None and name in times
    ]
    floor = kernel_floor(workload, kernel)
    return Timing(workload, kernel, floor, tuple(orders), notes, complete, programs, tuple(handed))


def _promotions(workload: Workload, every: int | str | None) -> float:
    """How often in a step sums of fp8 products are promoted to fp32; 0 where they are not."""
    if every is None:
        return 0.0
    if workload.dtype != "fp8" or kernel_family(workload).hides_phases:
        raise InputError(
            f"--promote-every: got {workload.label}, expected products of fp8 (--dtype fp8), whose sums tensor cores "
            "keep in fewer bits."
        )
    return 1 / whole("--promote-every", every, 1, 1 << 20)


def _programs(
    workload: Workload, schedule: Any, kernel: SimulatedKernel, rates: Rates, power: Power | None, timed: TimedSchedule
) -> dict[str, TimedSchedule]:
    """A schedule in the exported file's program and in a plain one, of the same bytes."""
    program = kernel_family(workload).program(workload, schedule, kernel.config)
    if not rates.exported or not any(phase.overlapped for group in program.groups for phase in group.phases):
        return {}
    plain = modelled_time(program, kernel.config, replace(rates, exported=False), timed.time.dram_bytes)
    other = TimedSchedule(timed.order, *both_times(program, kernel.config, plain, power))
    return {PING_PONG: timed, IN_TURN: other}


def power_of_kernel(workload: Workload, kernel: SimulatedKernel) -> Power | None:
    """What the chip takes, where sustained runs are modelled."""
    machine = kernel.target.machine
    return None if machine is None else power_of(machine, workload.dtype, kernel.config.sms)

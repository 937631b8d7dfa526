"""An intermediate handed over from SM to SM: whether it fits, and at what price of a copy it would pay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.reports.simulated_kernel import SimulatedKernel
from pebble.timing.energy import estimate, load_energy_table
from pebble.timing.modelled import ModelledTime
from pebble.timing.sustained import Rates
from pebble.timing.waves import modelled_time
from pebble.units import format_bytes, format_capacity, format_ratio
from pebble.workloads.workload import Workload

TABLE = "h100"
"""Whose prices of a byte are measured, copies between SMs among them."""
_CAPABILITY = "9.0"  # of the chips that they stand for
_CLOSE = 1e-3  # of a rate that is looked for
_FASTEST = 1e3  # times as fast as the chip copies: no more is asked for


@dataclass(frozen=True)
class HandOver:
    """A schedule that copies between SMs, beside the fastest that does not.

    Attributes
    ----------
    schedule, other : str
    cluster : int
        SMs that read each other's shared memories.
    kept_bytes, free_bytes : int
        What each keeps of the intermediate, and has beside its stages.
    copied_bytes : int
    copies_per_second : float
        Bytes that all SMs together copy in a second, as the machine file says.
    seconds, free_seconds, other_seconds : float
        Modelled: of a launch, of the same if copies took no time, and of the other.
    break_even : float or None
        Copies per second, in bytes, at which both take as long; None where it loses at any.
    joules, other_joules : float or None
        By measured prices of bytes and operations, what is drawn in any case left out; None on another kind of chip.
    clusters, idle_clusters : int
        Clusters of the chip, and those that a band has no tile row for.
    """

    schedule: str
    other: str
    cluster: int
    kept_bytes: int
    free_bytes: int
    copied_bytes: int
    copies_per_second: float
    seconds: float
    free_seconds: float
    other_seconds: float
    break_even: float | None
    joules: float | None
    other_joules: float | None
    clusters: int
    idle_clusters: int

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "schedule": self.schedule,
            "beside": self.other,
            "cluster": self.cluster,
            "kept_bytes_per_sm": self.kept_bytes,
            "free_bytes_per_sm": self.free_bytes,
            "copied_bytes": self.copied_bytes,
            "copies_bytes_per_second": self.copies_per_second,
            "modelled_ms": self.seconds * 1e3,
            "with_free_copies_ms": self.free_seconds * 1e3,
            "beside_ms": self.other_seconds * 1e3,
            "break_even_bytes_per_second": self.break_even,
            "joules": self.joules,
            "beside_joules": self.other_joules,
            "clusters": self.clusters,
            "idle_clusters": self.idle_clusters,
        }

    def __str__(self) -> str:
        text = (
            f"{self.schedule}: {format_bytes(self.copied_bytes)} from SM to SM at {self.copies_per_second / 1e12:.2f} "
            f"TB/s at best, by the model; {self.other} takes {self.other_seconds * 1e3:.3f} ms, this "
            f"{self.seconds * 1e3:.3f}, with copies for free {self.free_seconds * 1e3:.3f}"
        )
        if self.seconds <= self.other_seconds:
            text += ": it pays"
        elif self.break_even is None:
            text += ": it loses at any price of a copy"
        else:
            wider = format_ratio(self.break_even / self.copies_per_second, ".2f")
            text += f": it would pay with {wider} times the copies in a second"
        if self.joules is not None and self.other_joules is not None:
            text += f"; by table {TABLE}, of what moves and multiplies alone, {self.joules:.3g} J beside "
            text += f"{self.other_joules:.3g}"
        if self.idle_clusters:
            text += f"; its band has no tile row for {self.idle_clusters} of {self.clusters} clusters"
        return text


def check_room(workload: Workload, kernel: SimulatedKernel, schedules: Sequence[Any], allow: bool) -> SimulatedKernel:
    """The kernel, with what these schedules keep in shared memory beside the stages of its blocks.

    ``allow``: also what does not fit there.

    Raises
    ------
    InputError
        A chip without such copies, a cluster too large, or no room.
    """
    family, config, machine = kernel_family(workload), kernel.config, kernel.target.machine
    most = 0
    for schedule in schedules:
        clusters = family.in_clusters(workload, schedule, config)
        if clusters is None:
            continue
        assert machine is not None
        if machine.cluster_blocks < 2 or machine.get("dsmem_bandwidth") is None:
            raise InputError(
                f"schedule {schedule.name}: got {machine.name}, expected a chip whose SMs read each other's shared "
                "memory at a known rate, such as --gpu h100-sxm5-80gb."
            )
        if clusters.sms > machine.cluster_blocks:
            raise InputError(
                f"schedule {schedule.name}: got clusters of {clusters.sms} SMs, expected at most "
                f"{machine.cluster_blocks}; or leave -dsmem out, and H goes through L2."
            )
        kept, free = clusters.kept_bytes, free_bytes(kernel)
        if kept > free and not allow:
            raise InputError(
                f"schedule {schedule.name}: each SM would keep {format_capacity(kept)} of H and has "
                f"{format_capacity(max(0, free))} beside its {config.stages} stages; take a lower tile, fewer --stages "
                "or a lower band, or time it in spite of that with --allow-infeasible."
            )
        most = max(most, kept)
    return replace(kernel, kept_bytes=most * config.sms) if most else kernel


def free_bytes(kernel: SimulatedKernel) -> int:
    """Shared memory of an SM that the stages of its blocks leave."""
    machine, fit = kernel.target.machine, kernel.fit
    assert machine is not None and fit is not None
    return (machine.shared_bytes_per_block or 0) - kernel.config.blocks_per_sm * fit.needs.shared_bytes


def hand_over(
    workload: Workload, schedule: Any, kernel: SimulatedKernel, rates: Rates, times: dict[str, ModelledTime], other: str
) -> HandOver:
    """What a schedule that copies would need to be as fast as another."""
    family, config, machine = kernel_family(workload), kernel.config, kernel.target.machine
    assert machine is not None
    program, time = family.program(workload, schedule, config), times[schedule.name]
    assert time.counts is not None
    written = rates.with_writes(time.counts.written_share)

    def at(copies: float) -> float:
        """What it takes with that rate of copies; its bytes are simulated once, and booked as `modelled_time` does."""
        return modelled_time(program, config, replace(written, copies=copies), [0, time.dram_bytes]).seconds

    free, wanted, least = at(math.inf), times[other].seconds, None
    if free < wanted:
        low, high = rates.copies / _FASTEST, rates.copies * _FASTEST
        while high / low > 1 + _CLOSE:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if at(middle) <= wanted else (middle, high)
        least = high
    joules: list[float | None] = [None, None]
    if machine.compute_capability == _CAPABILITY and machine.dram_kind.lower().startswith("hbm"):
        table = load_energy_table(TABLE)
        joules = [
            estimate(table, machine, workload, each.dram_bytes, each.l2_bytes, copied).total
            for each, copied in ((time, program.copied_bytes), (times[other], 0))
        ]
    all_sms = machine.sms * 1e9
    clusters = family.in_clusters(workload, schedule, config)
    assert clusters is not None
    return HandOver(
        schedule.name,
        other,
        clusters.sms,
        clusters.kept_bytes,
        free_bytes(kernel),
        program.copied_bytes,
        rates.copies * all_sms,
        time.seconds,
        free,
        wanted,
        None if least is None else least * all_sms,
        joules[0],
        joules[1],
        clusters.clusters,
        clusters.clusters - clusters.busy,
    )

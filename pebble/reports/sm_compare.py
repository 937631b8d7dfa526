"""``compare --level l2``: schedules of a workload between L2 and the SMs, against the proved bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from pebble.bounds.memories import balanced_share, buffer_lower_bound, check_workload
from pebble.bounds.proofs import LowerBound
from pebble.errors import InputError
from pebble.families import BALANCED, OnSms, accounting, kernel_family
from pebble.game.buffer_model import BufferModel
from pebble.models.machine import Machine
from pebble.reports.flows_in_buffers import TOLERANCE, FlowInBuffers, flows_in_buffers
from pebble.reports.options import Buffers, refuse
from pebble.reports.report import Report
from pebble.reports.sm_bound import atomic_adds, into_sms
from pebble.reports.sm_memory import SmCapacity, in_words, read_buffers, read_sms, sm_capacity
from pebble.reports.target import Target, TargetOptions, read_target
from pebble.schedules.tile import TileShape
from pebble.timing.energy import EnergyTable, estimate_on_sms, load_energy_table
from pebble.units import format_bytes, format_ratio
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class SmComparison(Report):
    """What ``pebble compare --level l2`` found.

    Attributes
    ----------
    workload : Workload
    target : Target
    capacity : SmCapacity
        Of one SM.
    buffers : BufferModel
    bound, balanced : LowerBound
        Loads + stores + omega * copies.
    schedules : tuple of (str, OnSms)
        Least cost first.
    table : EnergyTable or None
        What energy is estimated by; None where it was not asked for.
    """

    workload: Workload
    target: Target
    capacity: SmCapacity
    buffers: BufferModel
    bound: LowerBound
    balanced: LowerBound
    schedules: tuple[tuple[str, OnSms], ...]
    table: EnergyTable | None = None

    question = "compare"
    table_keys = ("name", "from_l2_bytes", "from_other_sms_bytes", "to_l2_bytes", "cost_bytes", "ratio_to_lower_bound")

    @property
    def machine(self) -> Machine | None:
        return self.target.machine

    def summary(self) -> str:
        name, best = self.schedules[0]
        traffic = float(best.cost_bytes(self.buffers.omega))
        where, ratio = (
            in_words(self.machine, f"L2 to SMs, {self.buffers}"),
            format_ratio(traffic / self.bound.bytes, ".2f"),
        )
        return (
            f"{self.workload.label}, {where}: {name} moves {format_bytes(traffic)}, {ratio}x the bound of "
            f"{format_bytes(self.bound.bytes)}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row per schedule."""
        omega, sms = self.buffers.omega, self.buffers.sms
        rows = []
        for name, schedule in self.schedules:
            cost = float(schedule.cost_bytes(omega))
            rows.append(
                {
                    "name": name,
                    "schedule": schedule.name,
                    **into_sms(schedule, sms),
                    "hop_bytes": schedule.hop_bytes,
                    "cost_bytes": cost,
                    "imbalance": schedule.imbalance,
                    "ratio_to_lower_bound": cost / self.bound.bytes,
                    **self._energy(schedule),
                }
            )
        return rows

    def _energy(self, schedule: OnSms) -> dict[str, Any]:
        if self.table is None:
            return {}
        moved = schedule.l2_read_bytes + schedule.l2_write_bytes
        energy = estimate_on_sms(self.table, self.workload, moved, schedule.remote_bytes)
        return {"energy_estimate": energy.to_json()}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a schedule that costs less than the best balanced one pays for it; how dataflows and that one differ."""
        notes = []
        name, best = self.schedules[0]
        even = isinstance(best, FlowInBuffers) and best.imbalance <= TOLERANCE
        if not (even or name.startswith(BALANCED)):
            notes.append(
                f"{BALANCED} is the least among schedules that spread the work evenly, the upper bound of `pebble "
                "bound`; a row above it costs less and leaves SMs idle longer"
            )
        if any(isinstance(each, FlowInBuffers) for _, each in self.schedules):
            sums = ", with partial sums in fp32," if self.target.accumulator_bytes else ""
            notes.append(
                f"{BALANCED} moves single values, with partial sums as wide as outputs, and uses all storage of a "
                f"core; dataflows move slices{sums} and use the scratchpads alone"
            )
        return tuple(in_words(self.machine, note) for note in notes)

    def document(self) -> dict[str, Any]:
        rows, sms = self.rows(), self.buffers.sms
        return {
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "level": "l2",
            "buffers": self.buffers.kind,
            "sms": sms,
            "omega": self.buffers.to_json()["omega"],
            "topology": self.buffers.to_json()["topology"],
            **atomic_adds(self.workload, self.capacity, self.buffers),
            "lower_bound": {"bytes": self.bound.bytes, "capacity_bytes": self.capacity.bytes, "what": "sm"},
            "balanced_bound": {"bytes": self.balanced.bytes},
            "upper_bound": {
                "bytes": rows[0]["cost_bytes"],
                "what": "least cost",  # of all that are counted here; `bound` has the best balanced one
                "name": rows[0]["name"],
                "schedule": rows[0]["schedule"],
            },
            "schedules": rows,
            **({} if self.table is None else {"energy_estimate": self.table.to_json()}),
            "notes": list(self.notes),
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """What each schedule costs, as bars, and the bound."""
        from pebble.plots.bars import plot_bars

        bars = [(row["name"], (row["cost_bytes"] / 1e6,)) for row in self.rows()]
        title = f"{self.workload.label}, {self.buffers}"
        return plot_bars(bars, "between L2 and SMs, MB", title, ax, line=self.bound.bytes / 1e6)


def _candidates(
    workload: Workload, capacity: int, buffers: BufferModel, tile: TileShape, target: Target
) -> Iterator[tuple[str, OnSms]]:
    best = kernel_family(workload).best_in_buffers(workload, capacity, buffers)
    assert best is not None
    if target.machine is not None and target.machine.explicit:
        for each in flows_in_buffers(target.machine, workload, buffers, target.accumulator_bytes):
            yield each.flow.title, each
        yield BALANCED, best
        return
    yield BALANCED, best
    if buffers.kind == "connected":
        local = kernel_family(workload).best_in_buffers(workload, capacity, BufferModel("sm-local", buffers.sms))
        assert local is not None
        yield f"{BALANCED} without copies", local
    yield from kernel_family(workload).more_in_buffers(workload, capacity, buffers, tile)


def compare_sms(
    workload: Workload,
    buffers: Buffers,
    *,
    sms: int | str | None = None,
    tile: str | None = None,
    energy: str | None = None,
    **where: Unpack[TargetOptions],
) -> SmComparison:
    """Bound a workload between L2 and the SMs and count what schedules move there; arguments as `pebble.compare`.

    Raises
    ------
    InputError
        Pooled buffers, or a malformed option.
    """
    problem = accounting(workload)
    check_workload(problem)
    table = None if energy is None else load_energy_table(energy)
    target = read_target(**where)
    if table is not None and target.machine is not None and target.machine.explicit:
        raise InputError("--energy: got it with buffers of a machine of scratchpads; leave out --buffers and --level.")
    model = read_buffers(buffers.buffers, read_sms(sms, target), buffers.omega, buffers.topology, target.machine)
    if model.memories == 1:
        why = in_words(target.machine, "no SM has a pooled memory")
        raise InputError(f"compare: got --buffers {model.kind}, expected sm-local or connected: {why}.")
    if target.machine is not None and target.machine.explicit:
        refuse("a machine of scratchpads", {"tile": tile})
    capacity, _ = sm_capacity(target, workload)
    default = kernel_family(workload).default_tile(workload)
    shape = default if tile is None else TileShape.parse(tile, default.bk)
    share = balanced_share(workload, model.sms)
    result: dict[str, tuple[str, OnSms]] = {}
    for name, schedule in _candidates(workload, capacity.schedule_elements, model, shape, target):
        result.setdefault(schedule.name, (name, schedule))
    return SmComparison(
        workload,
        target,
        capacity,
        model,
        buffer_lower_bound(problem, capacity.elements, model),
        buffer_lower_bound(problem, capacity.elements, model, share),
        tuple(sorted(result.values(), key=lambda pair: pair[1].cost_bytes(model.omega))),
        table,
    )

"""``compare`` and ``time`` on a machine of scratchpads: dataflows under explicit control beside the proved bounds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Unpack

from pebble.bounds.memories import buffer_lower_bound, covers_memories
from pebble.bounds.proofs import LowerBound
from pebble.errors import InfeasibleError
from pebble.families import accounting, family_of
from pebble.game.buffer_model import BufferModel
from pebble.models.machine import Machine
from pebble.reports.capacity import Capacity, chip_capacity
from pebble.reports.dataflow_steps import steps_of
from pebble.reports.report import Report
from pebble.reports.sm_memory import machine_capacities
from pebble.reports.target import PlaceOptions, Target, read_target
from pebble.reports.timed import WorkloadTime, check_time_options
from pebble.schedules.explicit.dataflow import Cores
from pebble.schedules.explicit.flow import Flow
from pebble.timing.energy import Energy, EnergyTable, estimate_on_cores, load_energy_table
from pebble.timing.floor import TimeFloor
from pebble.timing.on_cores import cores_of, cost_on_cores, seconds_on_cores, unknown_widths
from pebble.units import format_bytes, format_ratio
from pebble.workloads.widths import Widths
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TABLE = "7nm"
"""The energy table where none is named."""


@dataclass(frozen=True, repr=False)
class DataflowComparison(Report):
    """What ``pebble compare`` found on a machine of scratchpads.

    Attributes
    ----------
    workload : Workload
    target : Target
        The machine.
    cores : Cores
        What its schedules may use.
    capacity : Capacity
        All on-chip stores.
    bound : LowerBound
        Of the bytes to and from off-chip memory.
    into_cores : LowerBound or None
        Of the bytes into and out of all cores, from wherever they come; None where none is proved.
    floor : TimeFloor
        Proved.
    table : EnergyTable
        What is not in the machine file is estimated by it.
    flows : tuple of Flow
        The best first: the fastest, and of those within 3 % of operations spread evenly the one that moves least.
    """

    workload: Workload
    target: Target
    cores: Cores
    capacity: Capacity
    bound: LowerBound
    into_cores: LowerBound | None
    floor: TimeFloor
    table: EnergyTable
    flows: tuple[Flow, ...]

    question = "compare"
    table_keys = (
        "name",
        "off_chip_bytes",
        "shared_bytes",
        "copied_bytes",
        "modelled_ms",
        "joules",
        "ratio_to_lower_bound",
    )

    @property
    def machine(self) -> Machine:
        assert self.target.machine is not None
        return self.target.machine

    def seconds(self, flow: Flow) -> dict[str, float]:
        """How long each way needs, modelled."""
        return seconds_on_cores(self.machine, self.workload, flow.moved)

    def energy(self, flow: Flow) -> Energy:
        """An estimate."""
        return estimate_on_cores(self.table, self.machine, self.workload, flow.moved)

    def summary(self) -> str:
        best = self.flows[0]
        ratio = format_ratio(best.moved.off_chip / self.bound.bytes, ".2f")
        return (
            f"{self.workload.label}, {self.machine.name}: {best.name} moves {format_bytes(best.moved.off_chip)} off "
            f"chip, {ratio}x the bound of {format_bytes(self.bound.bytes)}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row per dataflow."""
        rows = []
        for flow in self.flows:
            moved, seconds = flow.moved, self.seconds(flow)
            into = moved.into_cores(self.cores.shared > 0)
            binds = max(seconds, key=lambda name: seconds[name], default=None)
            rows.append(
                {
                    **flow.to_json(),
                    "steps": steps_of(flow),
                    "off_chip_bytes": moved.off_chip,
                    "shared_bytes": moved.shared,
                    "copied_bytes": moved.copied,
                    "hop_bytes": moved.hop_bytes,
                    "into_cores_bytes": into,
                    "imbalance": moved.work - 1,
                    "modelled_ms": max(seconds.values()) * 1e3 if seconds else None,
                    "binds": binds,
                    **{f"{name}_ms": value * 1e3 for name, value in seconds.items()},
                    "joules": self.energy(flow).total,
                    "energy": self.energy(flow).to_json(),
                    "ratio_to_lower_bound": moved.off_chip / self.bound.bytes,
                    "ratio_into_cores": None if self.into_cores is None else into / self.into_cores.bytes,
                }
            )
        return rows

    @property
    def notes(self) -> tuple[str, ...]:
        """What is left out, and what is an estimate."""
        machine, notes = self.machine, []
        if unknown := unknown_widths(machine, self.workload):
            notes.append(f"time leaves out {' and '.join(unknown)}: the machine file does not say how wide")
        if machine.get("dram_bandwidth") is None:
            notes.append("the width off chip is not known, so the dataflow with the least bytes off chip is the first")
        if getattr(self.workload, "causal", False):
            notes.append("dataflows do what the causal mask hides, in bytes, time and joules; bounds and floor do not")
        if machine.network and machine.get("energy.network") is None and "copies" not in self.table.prices:
            notes.append("energy leaves out the network: neither table nor machine file has its price")
        notes.append(f"energy is an estimate by table {self.table.key} ({self.table.name}), not a bound")
        return tuple(notes)

    def document(self) -> dict[str, Any]:
        machine, rows, buffer = self.machine, self.rows(), self.cores.shared
        into = (
            None if self.into_cores is None else {"bytes": self.into_cores.bytes, "what": "into and out of all cores"}
        )
        best = rows[0]
        return {
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "cores": self.cores.count,
            "scratchpad_bytes": self.cores.scratchpad,
            "shared_buffer_bytes": buffer or None,
            "network": machine.network or None,
            "lower_bound": {**self.bound.to_json(), "capacity_bytes": self.capacity.bytes, "what": "chip"},
            "into_cores_bound": into,
            "upper_bound": {"bytes": best["off_chip_bytes"], "schedule": best["name"]},
            "time_floor": self.floor.to_json(),
            "energy_table": self.table.to_json(),
            "schedules": rows,
            "notes": list(self.notes),
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Bytes off chip of each dataflow, as bars, and the bound."""
        from pebble.plots.bars import plot_bars

        bars = [(flow.title, (flow.moved.off_chip / 1e6,)) for flow in self.flows]
        title = f"{self.workload.label}, {self.machine.name}"
        return plot_bars(bars, "to and from off-chip memory, MB", title, ax, line=self.bound.bytes / 1e6)


def compare_dataflows(
    workload: Workload, *, accumulator: str | None = None, energy: str | None = None, **where: Unpack[PlaceOptions]
) -> DataflowComparison:
    """Dataflows of a workload on a machine of scratchpads; arguments as `pebble.compare`.

    Raises
    ------
    InputError
        A family without dataflows, or a malformed option.
    InfeasibleError
        Not one block fits a scratchpad.
    """
    target = read_target(**where)
    machine = target.machine
    assert machine is not None
    sums = check_time_options(machine, accumulator, energy)
    cores, widths = cores_of(machine), Widths.of(workload, target.accumulator_bytes)
    cost = cost_on_cores(machine, workload)
    flows = family_of(workload).dataflows(workload, cores, widths, cost)
    if not flows:
        raise InfeasibleError(
            f"{machine.name}: no block of this workload fits a scratchpad of {cores.scratchpad} bytes."
        )
    capacity = chip_capacity(machine, workload, target.accumulator_bytes)
    bound = family_of(workload).lower_bound(workload, capacity.elements, False, capacity.memory)
    problem, core = accounting(workload), machine_capacities(machine, workload)[0]
    into = None
    if covers_memories(problem):
        into = buffer_lower_bound(problem, core.elements, BufferModel("connected", machine.sms, Fraction(1)))
    floor = WorkloadTime.of(workload, machine, bound, sums).floor
    ranked = tuple(sorted(flows, key=lambda flow: cost(flow.moved)))
    return DataflowComparison(
        workload, target, cores, capacity, bound, into, floor, load_energy_table(energy or TABLE), ranked
    )

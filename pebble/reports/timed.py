"""The floor on time and the energy of a workload on a machine, for any report that knows a bound on its DRAM bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pebble.bounds import LowerBound
from pebble.errors import InputError
from pebble.families import accounting
from pebble.models.machine import Machine
from pebble.models.rates import check_accumulator
from pebble.schedules.explicit.dataflow import Moved
from pebble.timing.energy import Energy, EnergyTable, estimate, estimate_on_cores, load_energy_table
from pebble.timing.floor import TimeFloor, sm_traffic, time_floor
from pebble.workloads.workload import Workload


@dataclass(frozen=True)
class WorkloadTime:
    """What a workload takes at least in time, and about in energy.

    Attributes
    ----------
    workload : Workload
    machine : Machine
    floor : TimeFloor
        Proved.
    table : EnergyTable or None
        What energy is estimated by; None where it was not asked for.
    energy : Energy or None
        Of the bound on DRAM bytes and that on SM traffic: an estimate.
    """

    workload: Workload
    machine: Machine
    floor: TimeFloor
    table: EnergyTable | None = None
    energy: Energy | None = None

    @classmethod
    def of(
        cls,
        workload: Workload,
        machine: Machine,
        dram: LowerBound,
        accumulator: str,
        recompute: bool = False,
        energy: str | None = None,
    ) -> WorkloadTime:
        """With a bound on the bytes between DRAM and what can be held."""
        problem = accounting(workload)
        floor = time_floor(problem, machine, dram, accumulator, recompute)
        if energy is None:
            return cls(workload, machine, floor)
        table = load_energy_table(energy)
        if machine.explicit:
            buffer = dram.bytes if machine.store_bytes("shared_buffer") else 0
            moved = Moved(dram.bytes, buffer, 0, 0, 1.0)
            return cls(workload, machine, floor, table, estimate_on_cores(table, machine, workload, moved))
        into_sms, _ = sm_traffic(problem, machine, recompute)
        return cls(workload, machine, floor, table, estimate(table, machine, workload, dram.bytes, into_sms.bytes))

    def energy_of(self, dram_bytes: int, l2_bytes: int) -> Energy | None:
        """Of a schedule that moves so many bytes; None where energy was not asked for."""
        return None if self.table is None else estimate(self.table, self.machine, self.workload, dram_bytes, l2_bytes)

    def to_json(self, verdict: str) -> dict[str, Any]:
        """Plain data for ``--json``."""
        result: dict[str, Any] = {"time_floor": {**self.floor.to_json(), "verdict": verdict or None}}
        if self.table is not None and self.energy is not None:
            result["energy_estimate"] = {"of_the_bounds": self.energy.to_json(), **self.table.to_json()}
        return result


def check_time_options(machine: Machine | None, accumulator: str | None, energy: str | None = None) -> str:
    """The type that sums are kept in.

    Raises
    ------
    InputError
        An option that only a machine gives a meaning.
    UnknownNameError
        No such type or table.
    """
    if accumulator is not None:
        check_accumulator(accumulator)
    if energy is not None:
        load_energy_table(energy)
    for option, value in (("accumulator", accumulator), ("energy", energy)):
        if machine is None and value is not None:
            raise InputError(f"--{option}: expected --gpu or --machine with it: a bare memory has no speed.")
    return accumulator or "fp32"

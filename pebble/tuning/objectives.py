"""What a search makes least: bytes between L2 and DRAM, time, or energy.

An objective answers two questions of a candidate: what it looks like before anything is simulated, and what it is
worth once its bytes are known. Every search asks the objective, none asks which one it is. Of values that are equal,
to a tenth of a per cent where they are modelled times or joules, the fewer bytes win.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pebble.errors import InputError, UnknownNameError
from pebble.families.family import KernelFamily
from pebble.families.spaces.candidate import Candidate, Condition, estimated_bytes, program_of
from pebble.models.machine import Machine
from pebble.simulation import KernelConfig, Traffic
from pebble.timing.power import Power, Sustained, both_times, power_of
from pebble.timing.sustained import Rates, sustained_rates
from pebble.timing.waves import group_of_operands, modelled_time
from pebble.tuning.advisors.coarse import quick_look
from pebble.units import format_bytes, format_seconds
from pebble.workloads.workload import Workload

TIME, BYTES, ENERGY = "time", "bytes", "energy"
NAMES = (TIME, BYTES, ENERGY)


class Look(NamedTuple):
    """A candidate at a glance: its value, infinite where it is not to be tried, and the bytes that it moves."""

    value: float
    dram_bytes: float


class TuningProblem(NamedTuple):
    """What a search is for.

    Attributes
    ----------
    family : KernelFamily
    workload : Workload
    sms : int
        That run the kernel.
    conditions : sequence of Condition
        Under which schedules are ranked.
    """

    family: KernelFamily[Any, Any]
    workload: Workload
    sms: int
    conditions: Sequence[Condition]


class Objective(ABC):
    """What is to be least.

    Attributes
    ----------
    name : str
        As the user writes it.
    what : str
        What its value is, for a reader.
    unit : str
        Of the numbers of a table: ``MB``, ``ms`` or ``J``.
    tie : float
        Values up to this times the least are equal.
    spread : float
        Orders of one kernel differ in this objective by about this power of what they differ in bytes: thresholds on
        looks are stated for bytes.
    """

    name: str
    what: str
    unit: str
    tie: float = 1.0
    spread: float = 1.0

    @abstractmethod
    def look(self, candidate: Candidate) -> Look:
        """A candidate at a glance."""

    @abstractmethod
    def value(self, candidate: Candidate, condition: Condition, traffic: Traffic) -> float:
        """What it is worth, having moved what was simulated under a condition."""

    @abstractmethod
    def text(self, value: float) -> str:
        """A value for a reader, with its unit."""

    @abstractmethod
    def number(self, value: float) -> str:
        """A value for a table, in `unit`."""

    def within(self, factor: float) -> float:
        """A threshold that is stated for bytes."""
        return float(factor**self.spread)


class Bytes(Objective):
    """Bytes between L2 and DRAM."""

    name, what, unit = BYTES, "DRAM bytes", "MB"

    def __init__(self, problem: TuningProblem) -> None:
        self.family, self.workload = problem.family, problem.workload

    def look(self, candidate: Candidate) -> Look:
        if self.family.space is None:
            raise InputError(f"{self.workload.label}: expected a family whose schedules are searched.")
        traffic = estimated_bytes(self.family, self.family.space, self.workload, candidate)
        return Look(traffic, traffic)

    def value(self, candidate: Candidate, condition: Condition, traffic: Traffic) -> float:
        return traffic.dram_bytes

    def text(self, value: float) -> str:
        return format_bytes(round(value))

    def number(self, value: float) -> str:
        return f"{value / 1e6:,.1f}"


class Seconds(Objective):
    """Modelled time: sustained where that is modelled on a chip, else of a single launch.

    Raises
    ------
    InputError
        The machine file lacks a number that time needs.
    """

    name, unit, tie, spread = TIME, "ms", 1.001, 0.15

    def __init__(self, problem: TuningProblem, machine: Machine) -> None:
        self.family, self.workload, workload, sms = problem.family, problem.workload, problem.workload, problem.sms
        self.free = any(condition.execution.is_asynchronous for condition in problem.conditions)
        self.rates = sustained_rates(machine, workload.dtype)
        self.power = power_of(machine, workload.dtype, sms)
        self.what = "modelled time" if self.power is None else "modelled sustained time"

    def look(self, candidate: Candidate) -> Look:
        look = quick_look(self.family, self.workload, candidate, self.rates, self.power, self.free)
        return Look(self._of(look.seconds, look.sustained), look.dram_bytes)

    def value(self, candidate: Candidate, condition: Condition, traffic: Traffic) -> float:
        config = condition.of(candidate.config)
        seconds, again = timed_by_traffic(
            self.family, self.workload, candidate, config, traffic, self.rates, self.power
        )
        return self._of(seconds, again)

    def text(self, value: float) -> str:
        return format_seconds(value)

    def number(self, value: float) -> str:
        return f"{value * 1e3:.4g}"

    def _of(self, seconds: float, again: Sustained | None) -> float:
        return seconds if again is None else again.seconds


class Joules(Seconds):
    """Modelled energy of a launch that is run again and again.

    Raises
    ------
    InputError
        No sustained run was measured on a chip like it.
    """

    name, unit = ENERGY, "J"

    def __init__(self, problem: TuningProblem, machine: Machine) -> None:
        super().__init__(problem, machine)
        if self.power is None:
            raise InputError(
                f"--objective: got energy for {machine.name} and {problem.workload.dtype}, expected time or bytes: "
                "joules are modelled for all SMs of an H100 or H200 and bf16 or fp16, where they were measured."
            )
        self.what = "modelled joules"

    def _of(self, seconds: float, again: Sustained | None) -> float:
        return math.inf if again is None else again.total_joules

    def text(self, value: float) -> str:
        return f"{self.number(value)} J"

    def number(self, value: float) -> str:
        return f"{value:.4g}"


def timed_by_traffic(
    family: KernelFamily[Any, Any],
    workload: Workload,
    candidate: Candidate,
    config: KernelConfig,
    traffic: Traffic,
    rates: Rates,
    power: Power | None = None,
) -> tuple[float, Sustained | None]:
    """The modelled seconds of a single launch whose bytes are known, and the same launch run again and again.

    Nothing is simulated: waves share the bytes as they share loads. Some milliseconds.
    """
    program = program_of(family, workload, replace(candidate, config=config))
    of_operands = [sum(each.values()) for each in traffic.by_operand().values()]
    groups = group_of_operands(program, len(of_operands))
    of_groups: Sequence[float] = np.bincount(groups, of_operands, len(program.groups)).tolist()
    rates = rates.with_writes(traffic.counts.written_share)
    time = modelled_time(program, config, rates, dram_bytes=[int(each) for each in of_groups])
    time, again = both_times(program, config, time, power)
    return time.seconds, again


def objective_of(name: str, problem: TuningProblem, machine: Machine | None) -> Objective:
    """The objective of that name.

    Raises
    ------
    UnknownNameError
        Not one of `NAMES`.
    InputError
        Time or energy where that is not modelled.
    """
    if name not in NAMES:
        raise UnknownNameError("objective", name, NAMES, "pebble tune --help")
    if name == BYTES:
        return Bytes(problem)
    if machine is None:
        raise InputError(f"--objective: got {name} with --cache, expected --gpu or --machine, whose rates give a time.")
    return (Joules if name == ENERGY else Seconds)(problem, machine)


def default_objective(machine: Machine | None, dtype: str) -> str:
    """Time on a machine whose rates are known, else bytes."""
    try:
        return BYTES if machine is None or not sustained_rates(machine, dtype) else TIME
    except InputError:
        return BYTES

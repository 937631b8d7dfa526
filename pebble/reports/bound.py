"""``bound``: the least traffic any schedule can have, proved, beside the best schedule known."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from pebble.bounds import MAX_CASES, Formula, LowerBound, WeightedBound, WorkloadPart
from pebble.bounds.parts import SumOfParts, of_part
from pebble.bounds.proofs import COMPULSORY, Proof
from pebble.errors import check_flag
from pebble.families import Explicit, accounting, command_words, family_of
from pebble.families.schedules import InParts
from pebble.models.machine import Machine
from pebble.reports.capacity import Capacity, cache_capacity, chip_capacity, known_of
from pebble.reports.options import refuse
from pebble.reports.report import Report
from pebble.reports.target import MAX_SMS, Target, TargetOptions, read_target, whole
from pebble.reports.timed import WorkloadTime, check_time_options
from pebble.timing.floor import verdict_of_bound
from pebble.units import Size, format_bytes, format_capacity, format_ratio
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class Bound(Report):
    """What is proved and what is known of a workload at one capacity.

    Attributes
    ----------
    workload : Workload
    target : Target
        The machine or memory asked about.
    capacity : Capacity
    lower : LowerBound
        No schedule moves less.
    upper : Explicit or None
        A legal schedule; None where none is built, or fits.
    separate : LowerBound or None
        For chains: the least when every intermediate goes through slow memory.
    formulas : tuple of Formula
        Published bounds on this instance.
    others : tuple of (Capacity, LowerBound)
        The bound at other capacities of the machine.
    recompute : bool
        Whether ``lower`` holds for schedules that compute a value twice.
    accumulator : str
        The type that sums are kept in, for the floor on time.
    energy : str or None
        The table of an energy estimate, if one was asked for.
    cases : int
        How many cases the proof might tell apart.
    """

    workload: Workload
    target: Target
    capacity: Capacity
    lower: LowerBound
    upper: Explicit | None
    separate: LowerBound | None
    formulas: tuple[Formula, ...]
    others: tuple[tuple[Capacity, LowerBound], ...]
    recompute: bool
    accumulator: str = "fp32"
    energy: str | None = None
    cases: int = 0

    question = "bound"

    @property
    def best(self) -> Explicit | None:
        """The best schedule known; None where none is built, or fits."""
        return self.upper

    @property
    def machine(self) -> Machine | None:
        return self.target.machine

    @cached_property
    def timed(self) -> WorkloadTime | None:
        """The floor on time, what sets it, and energy; None without a machine."""
        if self.machine is None:
            return None
        return WorkloadTime.of(self.workload, self.machine, self.lower, self.accumulator, self.recompute, self.energy)

    @property
    def verdict(self) -> str:
        """What sets the floor, and what DRAM needs for the best schedule, in a line; empty without a machine."""
        known = None if self.upper is None else self.upper.bytes
        return "" if self.timed is None else verdict_of_bound(self.timed.floor, known)

    @property
    def gap(self) -> float | None:
        """The schedule over the bound; 1 is optimal."""
        return None if self.upper is None else self.over_bound(self.upper)

    @cached_property
    def stateless(self) -> Explicit | None:
        """For attention: a schedule whose softmax state takes no room; the bound counts none either."""
        return family_of(self.workload).stateless_schedule(self.workload, self.capacity.schedules(self.workload))

    @property
    def stateless_gap(self) -> float | None:
        """The same for the schedule without softmax state."""
        return None if self.stateless is None else self.over_bound(self.stateless)

    def over_bound(self, schedule: Explicit) -> float:
        """What a schedule moves over the bound; in bytes where values differ in width."""
        if self.capacity.memory is not None:
            return schedule.bytes / self.lower.bytes
        return schedule.elements / self.lower.elements

    @cached_property
    def parts(self) -> list[dict[str, Any]]:
        """Of a layer: bytes of each part, alone and in the layer, proved and by the best schedule; else nothing."""
        kernels = family_of(self.workload).part_kernels(self.workload)
        if not kernels:
            return []
        moved = {} if self.upper is None else cast(InParts, self.upper).by_part
        results = []
        terms = accounting(self.workload).parts
        for at, (part, kernel) in enumerate(zip(terms, kernels, strict=True)):
            room = memory_of(self.target, kernel)
            alone, known, *_ = known_of(kernel, room.elements, room.schedules(kernel), 1, self.recompute, room.memory)
            least, theorem = _in_layer(self.lower.proof, at, part, self.workload.narrowest_bytes)
            results.append(
                {
                    "name": part.name,
                    "alone_bytes": alone.bytes,
                    "alone_theorem": alone.theorem.name,
                    "alone_schedule_bytes": None if known is None else known.bytes,
                    "bytes": least,
                    "theorem": theorem,
                    "schedule_bytes": moved.get(part.name),
                }
            )
        return results

    @property
    def separate_ratio(self) -> float | None:
        """The least of kernels by themselves over the bound, in what the bound is counted in; None without any."""
        if self.separate is None:
            return None
        if self.capacity.memory is None:
            return self.separate.elements / self.lower.elements
        return self.separate.bytes / self.lower.bytes

    @property
    def published(self) -> list[dict[str, Any]]:
        """Each published bound, and what it is worth here."""
        # without a schedule nothing is refuted: any number may still be a bound
        known = self.upper.elements if self.upper is not None else None
        return [formula.to_json(self.lower.elements, known) for formula in self.formulas]

    def summary(self) -> str:
        known = "no schedule known"
        if self.upper is not None and self.gap is not None:
            known = f"best schedule {format_bytes(self.upper.bytes)} ({format_ratio(self.gap, '.3f')}x)"
        held = f"{format_capacity(self.capacity.bytes)} ({self.capacity.what})"
        return f"{self.workload.label}: at least {format_bytes(self.lower.bytes)} with {held}, {known}"

    def rows(self) -> list[dict[str, Any]]:
        """The bound, the schedule, and each published bound."""
        results = [
            {"what": "lower bound", "elements": self.lower.elements, "status": "proven", "by": self.lower.method}
        ]
        if self.upper is not None:
            known = {"elements": self.upper.elements, "status": "legal schedule", "by": self.upper.name}
            results.append({"what": "upper bound", **known})
        if self.separate is not None:
            known = {"elements": self.separate.elements, "status": "proven", "by": self.separate.method}
            results.append({"what": "separate kernels", **known})
        return results + [
            {"what": p["name"], "elements": p["elements"], "status": p["status"].replace("_", " "), "by": p["source"]}
            for p in self.published
        ]

    def document(self) -> dict[str, Any]:
        result: dict[str, Any] = {
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "capacity": self.capacity.to_json(),
            "buffers": "single",
            "level": "dram",
            "recompute": "allowed" if self.recompute else "forbidden",
            "accumulate": self.target.accumulate,
            "lower_bound": self.lower.to_json(),
            "upper_bound": None,
            "gap": self.gap,
        }
        if self.upper is not None:
            result["upper_bound"] = _schedule_json(self.upper)
        if self.stateless is not None:
            result["upper_bound_without_softmax_state"] = {
                **_schedule_json(self.stateless),
                "gap": self.stateless_gap,
            }
        if self.separate is not None:
            result["separate_kernels_bound"] = self.separate.to_json()
            result["separate_over_fused_bound"] = self.separate_ratio
        if self.timed is not None:
            result |= self.timed.to_json(self.verdict)
        if self.parts:
            result["parts"] = self.parts
        others = [{"capacity": c.to_json(), "lower_bound": b.to_json()} for c, b in self.others]
        return result | {"published": self.published, "other_capacities": others}

    def plot(self, ax: Axes | None = None) -> Axes:
        """The bound, the schedule and the published bounds as bars."""
        from pebble.plots.bars import plot_bound

        return plot_bound(self.rows(), self.lower.elements, self.workload.label, ax)

    def certificate(self) -> dict[str, Any]:
        """The proof as data that `pebble.verify` checks without this program's bounds.

        Raises
        ------
        NotCertifiedError
            A number could not be proved: report it, it may be wrong.
        """
        from pebble.proof.certificate import bound_certificate

        return bound_certificate(self.workload, self)

    def certify(self, path: str | Path) -> dict[str, Any]:
        """Write `certificate` to a file, and return it."""
        from pebble.proof.certificate import write_certificate

        document = self.certificate()
        write_certificate(document, path)
        return document

    def prove(self, form: str = "markdown") -> str:
        """The proof for a reader, its numbers filled in: ``"markdown"`` or ``"latex"``."""
        from pebble.proof.prove import prove

        return prove(self.workload, self, self.command, form)

    @property
    def command(self) -> str:
        """The command line that gives this answer."""
        words = ["pebble", "bound", *command_words(self.workload), *self.target.words]
        words += ["--recompute", "allowed"] * self.recompute + ["--cases", str(self.cases)] * (self.cases > 0)
        return shlex.join(words)


def _in_layer(proof: Proof, at: int, part: WorkloadPart, narrow: int) -> tuple[int, str]:
    """What is proved of a part in the layer, in bytes, and by what."""
    if isinstance(proof, WeightedBound):
        kernel = proof.kernels[at]
        return kernel.times * kernel.bytes, COMPULSORY.name if kernel.proof is None else kernel.proof.theorem.name
    result = proof.segments[at] if isinstance(proof, SumOfParts) else None
    return narrow * part.count * of_part(part, result), COMPULSORY.name if result is None else proof.theorem.name


def _schedule_json(schedule: Explicit) -> dict[str, Any]:
    return {
        "elements": schedule.elements,
        "bytes": schedule.bytes,
        "schedule": schedule.name,
        "details": schedule.to_json(),
    }


def memory_of(target: Target, workload: Workload) -> Capacity:
    """The whole chip of a machine, or one explicitly managed memory."""
    if target.machine is not None:
        return chip_capacity(target.machine, workload, target.accumulator_bytes)
    assert target.cache is not None
    return cache_capacity(target.cache, workload, target.accumulator_bytes)


def bound_workload(
    workload: Workload,
    *,
    sms: int | str | None = None,
    recompute: bool = False,
    cases: int | str | None = None,
    accumulator: str | None = None,
    energy: str | None = None,
    **where: Unpack[TargetOptions],
) -> Bound:
    """Bound a workload from both sides between DRAM and one memory; arguments as for `pebble.bound`."""
    family = family_of(workload)
    check_flag("recompute", recompute)
    target = read_target(**where)
    sums = check_time_options(target.machine, accumulator, energy)
    most = 0 if cases is None else whole("--cases", cases, 0, MAX_CASES)
    if most and not (family.chained or family.part_kernels(workload)):
        refuse(family.name, {"cases": cases})
    capacity = memory_of(target, workload)
    others: list[Capacity] = []
    processors = 1
    if target.machine is not None:
        own, processors = target.machine, target.machine.sms
        if alone := own.store_bytes("shared_buffer") if own.explicit else own.l2_bytes:
            size = Size(alone, None, own.in_words(f"the L2 alone, {format_capacity(alone)}"))
            others.append(cache_capacity(size, workload, target.accumulator_bytes))
    if sms is not None:
        processors = whole("--sms", sms, 1, MAX_SMS)
    room, memory = capacity.schedules(workload), capacity.memory
    known = known_of(workload, capacity.elements, room, processors, recompute, memory, most)
    other_bounds = tuple((o, family.lower_bound(workload, o.elements, recompute, o.memory)) for o in others)
    return Bound(workload, target, capacity, *known, other_bounds, recompute, sums, energy, most)

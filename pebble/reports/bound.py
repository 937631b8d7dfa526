"""``bound``: the least traffic any schedule can have, proved, beside the best schedule known."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pebble.bounds.base import LowerBound, PublishedBound, judge
from pebble.families import Explicit, command_words, family_of
from pebble.models.machine import Machine
from pebble.reports.base import Report
from pebble.reports.capacity import Capacity, cache_capacity, chip_capacity
from pebble.reports.target import MAX_SMS, Target, TargetOptions, read_target, whole
from pebble.units import Size, format_bytes, format_capacity
from pebble.workloads.base import TypedWorkload

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class Bound(Report):
    """What is proved and what is known of a workload at one capacity.

    Attributes
    ----------
    workload : Gemm, Ffn, Attention, ...
    target : Target
        The machine or memory asked about.
    capacity : Capacity
    lower : LowerBound
        No schedule moves less.
    upper : Explicit or None
        A legal schedule; None where none is built, or fits.
    separate : LowerBound or None
        For chains: the least when every intermediate goes through slow memory.
    published : tuple of PublishedBound
        Judged on this instance.
    others : tuple of (Capacity, LowerBound)
        The bound at other capacities of the machine.
    recompute : bool
        Whether ``lower`` holds for schedules that compute a value twice.
    """

    workload: TypedWorkload
    target: Target
    capacity: Capacity
    lower: LowerBound
    upper: Explicit | None
    separate: LowerBound | None
    published: tuple[PublishedBound, ...]
    others: tuple[tuple[Capacity, LowerBound], ...]
    recompute: bool

    question = "bound"

    @property
    def machine(self) -> Machine | None:
        return self.target.machine

    @property
    def gap(self) -> float | None:
        """The schedule over the bound; 1 is optimal."""
        return None if self.upper is None else self.upper.elements / self.lower.elements

    def summary(self) -> str:
        known = "no schedule known"
        if self.upper is not None:
            known = f"best schedule {format_bytes(self.upper.bytes)} ({self.gap:.3f}x)"
        return (
            f"{self.workload.label}: at least {format_bytes(self.lower.bytes)} with {format_capacity(self.capacity.bytes)}"
            f" ({self.capacity.what}), {known}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """The bound, the schedule, and each published bound."""
        found = [{"what": "lower bound", "elements": self.lower.elements, "status": "proven", "by": self.lower.method}]
        if self.upper is not None:
            known = {"elements": self.upper.elements, "status": "legal schedule", "by": self.upper.name}
            found.append({"what": "upper bound", **known})
        if self.separate is not None:
            known = {"elements": self.separate.elements, "status": "proven", "by": self.separate.method}
            found.append({"what": "separate kernels", **known})
        return found + [
            {"what": p.name, "elements": p.elements, "status": p.status.replace("_", " "), "by": p.source}
            for p in self.published
        ]

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "capacity": self.capacity.to_json(),
            "buffers": "single",
            "level": "dram",
            "recompute": "allowed" if self.recompute else "forbidden",
            "lower_bound": self.lower.to_json(),
            "upper_bound": None,
            "gap": self.gap,
        }
        if self.upper is not None:
            found["upper_bound"] = {
                "elements": self.upper.elements,
                "bytes": self.upper.bytes,
                "schedule": self.upper.name,
                "details": self.upper.to_json(),
            }
        if self.separate is not None:
            found["separate_kernels_bound"] = self.separate.to_json()
            found["separate_over_fused_bound"] = self.separate.elements / self.lower.elements
        others = [{"capacity": c.to_json(), "lower_bound": b.to_json()} for c, b in self.others]
        return found | {"published": [p.to_json() for p in self.published], "other_capacities": others}

    def plot(self, ax: Axes | None = None) -> Axes:
        """The bound, the schedule and the published bounds as bars."""
        from pebble.plots.bound import plot_bound

        return plot_bound(self, ax)

    def certificate(self) -> dict[str, Any]:
        """The proof as data that `pebble.verify` checks without this program's bounds.

        Raises
        ------
        NotCertifiedError
            A number could not be proved: report it, it may be wrong.
        """
        from pebble.proof.certificate import bound_certificate

        return bound_certificate(self.workload, [self.lower, self.separate], self.upper)

    def certify(self, path: str | Path) -> dict[str, Any]:
        """Write `certificate` to a file, and return it."""
        from pebble.proof.certificate import write_certificate

        document = self.certificate()
        write_certificate(document, path)
        return document

    def prove(self, form: str = "markdown") -> str:
        """The proof for a reader, its numbers filled in: ``"markdown"`` or ``"latex"``."""
        from pebble.proof.prove import prove

        return prove(self.workload.label, self.certificate(), self.command, form)

    @property
    def command(self) -> str:
        """The command line that gives this answer."""
        words = ["pebble", "bound", *command_words(self.workload), *self.target.words]
        return shlex.join([*words, *(["--recompute", "allowed"] if self.recompute else [])])


def memory_of(target: Target, workload: TypedWorkload) -> Capacity:
    """The whole chip of a machine, or one explicitly managed memory."""
    if target.machine is not None:
        return chip_capacity(target.machine, workload)
    assert target.cache is not None
    return cache_capacity(target.cache, workload)


def bound_workload(
    workload: TypedWorkload, *, sms: int | str | None = None, recompute: bool = False, **where: Unpack[TargetOptions]
) -> Bound:
    """Bound a workload from both sides between DRAM and one memory; arguments as for `pebble.bound`."""
    family = family_of(workload)
    target = read_target(**where)
    capacity = memory_of(target, workload)
    others: list[Capacity] = []
    processors = 1
    if target.machine is not None:
        l2 = target.machine.l2_bytes
        others.append(cache_capacity(Size(l2, None, f"the L2 alone, {format_capacity(l2)}"), workload))
        processors = target.machine.sms
    if sms is not None:
        processors = whole("--sms", sms, 1, MAX_SMS)
    lower = family.lower_bound(workload, capacity.elements, recompute)
    upper = family.best_schedule(workload, capacity.schedule_elements)
    formulas = family.published(workload, capacity.elements, processors)
    # without a schedule nothing is refuted: any number may still be a bound
    known = upper.elements if upper is not None else None
    return Bound(
        workload,
        target,
        capacity,
        lower,
        upper,
        family.separate_bound(workload, capacity.elements),
        tuple(judge(formula, lower.elements, known) for formula in formulas),
        tuple((o, family.lower_bound(workload, o.elements, recompute)) for o in others),
        recompute,
    )

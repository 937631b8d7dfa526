"""``bound --buffers``: a workload on SMs with buffers of their own, at the boundary between L2 and the SMs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pebble.bounds.memories import balanced_share, buffer_lower_bound, check_workload, multicast_bound, of_sms
from pebble.bounds.proofs import LowerBound
from pebble.errors import InputError
from pebble.families import BALANCED, OnSms, accounting, family_of
from pebble.game.buffer_model import BufferModel
from pebble.models.machine import Machine
from pebble.models.rates import copy_cost
from pebble.reports.capacity import chip_capacity
from pebble.reports.flows_in_buffers import TOLERANCE, flows_in_buffers
from pebble.reports.options import Buffers
from pebble.reports.report import Report
from pebble.reports.sm_memory import MEASURED, SmCapacity, in_words, read_buffers, read_sms, sm_capacity
from pebble.reports.target import Target, TargetOptions, read_target, whole
from pebble.units import format_bytes, format_ratio
from pebble.workloads.widths import FastMemory
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes


OMEGAS = (Fraction(1, 10), Fraction(1, 4), Fraction(1, 2))


@dataclass(frozen=True)
class BufferAnswer:
    """What is known of a workload under one buffer model.

    Attributes
    ----------
    lower, balanced : LowerBound
        For any split of the work, and when no SM does more than its share.
    upper_elements, upper_bytes : int
        Of the best schedule, balanced where there are several memories; loads + stores + omega * copies.
    upper_name : str
    schedule : OnSms or None
        The schedule, where there are several memories.
    """

    lower: LowerBound
    balanced: LowerBound
    upper_elements: int
    upper_bytes: int
    upper_name: str
    schedule: OnSms | None

    @property
    def upper_what(self) -> str:
        """What the schedule is the best of: `compare` also counts schedules that leave SMs idle longer."""
        return "best schedule" if self.schedule is None else f"{BALANCED} schedule"


def buffer_answer(
    workload: Workload,
    capacity: SmCapacity,
    buffers: BufferModel,
    recompute: bool = False,
    others: Iterable[OnSms] = (),
) -> BufferAnswer:
    """Bound a workload from both sides under a buffer model; ``others`` are schedules that may be better."""
    problem = accounting(workload)
    lower = buffer_lower_bound(problem, capacity.elements, buffers, None, recompute)
    balanced = lower
    if buffers.memories > 1:
        share = balanced_share(workload, buffers.sms)
        balanced = buffer_lower_bound(problem, capacity.elements, buffers, share, recompute)
    schedule = family_of(workload).best_in_buffers(workload, capacity.schedule_elements, buffers)
    if schedule is None:
        # with atomic adds a schedule of C := A B is one of C += A B: the first store of a cell adds to it
        atomic = problem.fresh is not None and buffers.kind != "single"
        played = of_sms(problem).workload if atomic else workload
        size = buffers.memory_size(capacity.schedule_elements)
        single = family_of(played).best_schedule(played, FastMemory.of_values(size, played))
        assert single is not None
        name = f"{single.name}, atomic adds" if atomic else single.name
        return BufferAnswer(lower, balanced, single.elements, single.bytes, name, None)
    omega = buffers.omega
    if balanced_flows := [each for each in others if each.imbalance <= max(TOLERANCE, schedule.imbalance)]:
        schedule = min(schedule, *balanced_flows, key=lambda each: each.cost_elements(omega))  # as the gap is counted
    elements, total = ceil(schedule.cost_elements(omega)), ceil(schedule.cost_bytes(omega))
    return BufferAnswer(lower, balanced, elements, total, schedule.name, schedule)


def _document(
    workload: Workload,
    capacity: SmCapacity,
    buffers: BufferModel,
    recompute: bool = False,
    others: Sequence[SmCapacity] = (),
    multicast: int = 1,
    flows: Iterable[OnSms] = (),
) -> dict[str, Any]:
    """Everything that ``pebble bound --buffers`` says at the L2 boundary, as plain data.

    Raises
    ------
    InputError
        Multicast for a model other than sm-local.
    """
    if multicast > 1 and buffers.kind != "sm-local":
        raise InputError(f"--multicast: got buffers {buffers.kind}, expected sm-local: a multicast is a read of L2.")
    result = buffer_answer(workload, capacity, buffers, recompute, flows)
    family, spec, sms, schedule = family_of(workload), accounting(workload), buffers.sms, result.schedule
    document: dict[str, Any] = {
        "workload": {"label": workload.label, **workload.to_json()},
        "capacity": {**capacity.to_json(), "total_elements": capacity.elements * sms},
        "level": "l2",
        "buffers": buffers.kind,
        "sms": sms,
        "omega": buffers.to_json()["omega"],
        "topology": buffers.to_json()["topology"],
        "recompute": "allowed" if recompute else "forbidden",
        **atomic_adds(workload, capacity, buffers),
        "lower_bound": result.lower.to_json(),
        "balanced_bound": result.balanced.to_json(),
        "upper_bound": {
            "elements": result.upper_elements,
            "bytes": result.upper_bytes,
            "what": result.upper_what,
            "schedule": result.upper_name,
            "details": schedule and schedule.to_json(),
        },
        "gap": result.upper_elements / result.lower.elements,
        "into_sms": schedule and {**into_sms(schedule, sms), "imbalance": schedule.imbalance},
        "models": models(workload, capacity, sms, buffers),
        "other_capacities": [
            {"capacity": o.to_json(), "lower_bound": buffer_lower_bound(spec, o.elements, buffers).to_json()}
            for o in others
        ],
        "published": [],
    }
    per_sm = family.busiest_sm(workload, capacity.elements, sms) if buffers.memories > 1 else None
    if per_sm is not None:
        document["per_sm"] = per_sm
    if multicast > 1:
        document["multicast"] = {
            "sms_per_read": multicast,
            "l2_requests_bound": multicast_bound(spec, capacity.elements, sms, multicast).to_json(),
        }
        cast = family.best_multicast(workload, sms, capacity.schedule_elements, multicast)
        if cast is not None:
            document["multicast"]["schedule"] = {"name": cast.name, "l2_elements": cast.l2_elements}
    return document


def atomic_adds(workload: Workload, capacity: SmCapacity, buffers: BufferModel) -> dict[str, Any]:
    """Whether SMs may add to values in L2; and what is proved where they may not, if an output begins at a value."""
    game: dict[str, Any] = {"atomic_adds": "forbidden" if buffers.kind == "single" else "allowed"}
    problem = accounting(workload)
    if problem.fresh is not None and buffers.kind != "single":
        share = balanced_share(workload, buffers.sms) if buffers.memories > 1 else None
        bounds = (buffer_lower_bound(problem, capacity.elements, buffers, most, atomic=False) for most in (None, share))
        game["without_atomic_adds"] = dict(
            zip(("lower_bound", "balanced_bound"), (bound.to_json() for bound in bounds), strict=True)
        )
    return game


def into_sms(schedule: OnSms, sms: int) -> dict[str, Any]:
    """What a schedule moves into and out of SMs, in bytes, in all and per SM."""
    return {
        "from_l2_bytes": schedule.l2_read_bytes,
        "from_other_sms_bytes": schedule.remote_bytes,
        "to_l2_bytes": schedule.l2_write_bytes,
        "from_l2_bytes_per_sm": schedule.l2_read_bytes / sms,
        "from_other_sms_bytes_per_sm": schedule.remote_bytes / sms,
    }


def models(workload: Workload, capacity: SmCapacity, sms: int, own_model: BufferModel) -> list[dict[str, Any]]:
    """Each model side by side: bounds, and the factor over pooled."""
    topology = own_model.topology if own_model.kind == "connected" else "all-to-all"
    omegas = sorted({*OMEGAS, *([own_model.omega] if own_model.kind == "connected" else [])})
    rows = [BufferModel("pooled", sms), *(BufferModel("connected", sms, w, topology) for w in omegas)]
    rows.append(BufferModel("sm-local", sms))
    share = balanced_share(workload, sms)
    problem = accounting(workload)
    pooled = buffer_lower_bound(problem, capacity.elements, rows[0])
    results = []
    for model in rows:
        lower = buffer_lower_bound(problem, capacity.elements, model)
        balanced = lower if model.memories == 1 else buffer_lower_bound(problem, capacity.elements, model, share)
        results.append(
            {
                "buffers": str(model),
                "omega": model.to_json()["omega"],
                "lower_bound_elements": lower.elements,
                "lower_bound_bytes": lower.bytes,
                "balanced_bound_elements": balanced.elements,
                "balanced_bound_bytes": balanced.bytes,
                "over_pooled": balanced.elements / pooled.elements,
            }
        )
    return results


@dataclass(frozen=True, repr=False)
class SmBound(Report):
    """What is known of a workload at the boundary between L2 and the SMs.

    Attributes
    ----------
    workload : Workload
    target : Target
    buffers : BufferModel
    answer : dict
        Everything, as plain data: bounds, schedule, each buffer model, the boundary to DRAM.
    """

    workload: Workload
    target: Target
    buffers: BufferModel
    answer: dict[str, Any]

    question = "bound"
    old_names = (("found", "answer"),)
    table_keys = ("buffers", "lower_bound_bytes", "balanced_bound_bytes", "over_pooled")

    @property
    def machine(self) -> Machine | None:
        return self.target.machine

    def summary(self) -> str:
        lower, upper = self.answer["lower_bound"], self.answer["upper_bound"]
        where = in_words(self.machine, f"L2 to SMs, {self.buffers}")
        return (
            f"{self.workload.label}, {where}: at least {format_bytes(lower['bytes'])}, "
            f"{upper['what']} {format_bytes(upper['bytes'])} ({format_ratio(self.answer['gap'], '.3f')}x)"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row per buffer model."""
        rows: list[dict[str, Any]] = self.answer["models"]
        return rows

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of the assumptions."""
        if self.buffers.kind != "connected":
            return ()
        net, notes = self.buffers.topology, []
        if net.startswith("mesh"):
            notes.append(
                f"the bounds are those of all-to-all: every copy counts as one hop; {net} may need more, so they hold, "
                "but longer ways are not proved"
            )
        price = None if self.machine is None else copy_cost(self.machine)
        if price is not None:
            notes.append(f"by bandwidth a copy on this chip costs {price}; `--omega {MEASURED}` takes that")
        return tuple(notes)

    def document(self) -> dict[str, Any]:
        price = None if self.machine is None else copy_cost(self.machine)
        copy_price = {} if price is None else {"measured_copy_price": price.to_json()}
        return {**self.answer, **copy_price, "notes": list(self.notes)}

    def certificate(self) -> dict[str, Any]:
        """The proofs of both bounds, for any split and balanced, as data that `pebble.verify` checks by itself.

        Raises
        ------
        InputError
            One memory.
        NotCertifiedError
            A number could not be proved: report it, it may be wrong.
        """
        from pebble.proof.on_sms import sm_certificate

        share = balanced_share(self.workload, self.buffers.sms)
        return sm_certificate(accounting(self.workload), self.answer["capacity"]["elements"], self.buffers, share)

    def certify(self, path: str | Path) -> dict[str, Any]:
        """Write `certificate` to a file, and return it."""
        from pebble.proof.certificate import write_certificate

        document = self.certificate()
        write_certificate(document, path)
        return document

    def plot(self, ax: Axes | None = None) -> Axes:
        """The bound under each buffer model, as bars."""
        from pebble.plots.bars import plot_bars

        bars = [(row["buffers"], (row["lower_bound_bytes"] / 1e6,)) for row in self.rows()]
        return plot_bars(bars, "proved bound between L2 and SMs, MB", self.workload.label, ax)


def bound_sms(
    workload: Workload,
    buffers: Buffers,
    *,
    sms: int | str | None = None,
    recompute: bool = False,
    **where: Unpack[TargetOptions],
) -> SmBound:
    """Bound a workload between L2 and the SMs; arguments as for `pebble.bound`."""
    problem = accounting(workload)
    check_workload(problem)
    target = read_target(**where)
    model = read_buffers(buffers.buffers, read_sms(sms, target), buffers.omega, buffers.topology, target.machine)
    capacity, others = sm_capacity(target, workload)
    cast = 1 if buffers.multicast is None else whole("--multicast", buffers.multicast, 1, model.sms)
    if model.memories > 1:
        check_workload(problem, recompute)
    flows = (
        () if target.machine is None else flows_in_buffers(target.machine, workload, model, target.accumulator_bytes)
    )
    result = _document(workload, capacity, model, recompute, others, cast, flows)
    boundary = {"boundary": in_words(target.machine, "L2 to SMs"), "capacity": result["capacity"]}
    result["levels"] = [{**boundary, "lower_bound": result["lower_bound"]}]
    if target.machine is not None:  # the next boundary: whatever the SMs do, the chip as a whole moves this much
        chip = chip_capacity(target.machine, workload, target.accumulator_bytes)
        dram = family_of(workload).lower_bound(workload, chip.elements, recompute, chip.memory)
        level = {"boundary": "DRAM to chip", "capacity": chip.to_json(), "lower_bound": dram.to_json()}
        result["levels"].append(level)
    return SmBound(workload, target, model, result)

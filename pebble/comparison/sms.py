"""A workload on SMs with buffers of their own: bounds, schedules and the factor between the models, as one answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Protocol

from pebble.bounds.base import LowerBound
from pebble.bounds.memories import balanced_share, buffer_lower_bound, busiest_sm_elements, multicast_bound
from pebble.bounds.published import words_per_processor
from pebble.errors import InputError
from pebble.game.buffer_model import BufferModel
from pebble.models.machine import Machine
from pebble.schedules.explicit.parallel_chain import best_attention_on_sms, best_ffn_on_sms
from pebble.schedules.explicit.parallel_search import best_parallel_schedule
from pebble.units import Size, format_capacity
from pebble.workloads import Attention, Ffn, Gemm

OMEGAS = (Fraction(1, 10), Fraction(1, 4), Fraction(1, 2))
SharedWork = Gemm | Ffn | Attention


class OnSms(Protocol):
    """A schedule on several SMs, of any family."""

    @property
    def name(self) -> str: ...
    @property
    def l2_elements(self) -> int: ...
    @property
    def remote_elements(self) -> int: ...
    @property
    def l2_read_bytes(self) -> int: ...
    @property
    def l2_write_bytes(self) -> int: ...
    @property
    def remote_bytes(self) -> int: ...
    @property
    def imbalance(self) -> float: ...
    def cost_elements(self, omega: Fraction) -> Fraction: ...
    def cost_bytes(self, omega: Fraction) -> Fraction: ...
    def to_json(self) -> dict[str, object]: ...


@dataclass(frozen=True)
class SmCapacity:
    """What one SM holds.

    Attributes
    ----------
    elements : int
        S for bounds, values of the narrowest width.
    schedule_elements : int
        Values that surely fit, of the widest.
    bytes : int
    detail : str
    """

    elements: int
    schedule_elements: int
    bytes: int
    detail: str

    @classmethod
    def of_bytes(cls, size: int, workload: SharedWork, detail: str) -> SmCapacity:
        """So many bytes."""
        return cls(size // workload.narrowest_bytes, size // workload.widest_bytes, size, detail)

    @classmethod
    def of_size(cls, size: Size, workload: SharedWork) -> SmCapacity:
        """A size as the user gave it."""
        detail = f"one explicitly managed memory of {size.text} per SM"
        if size.bytes is not None:
            return cls.of_bytes(size.bytes, workload, detail)
        elements = size.to_elements(workload.narrowest_bytes)
        return cls(elements, elements, size.to_bytes(workload.narrowest_bytes), detail)

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {"elements": self.elements, "bytes": self.bytes, "what": "sm", "detail": self.detail}


def machine_capacities(machine: Machine, workload: SharedWork) -> tuple[SmCapacity, SmCapacity | None]:
    """All storage of an SM, and its shared memory alone where the machine file has it."""
    parts = [s for s in machine.stores if s.key.endswith("_per_sm")]
    names = ", ".join(f"{s.key[7:-7].replace('_', ' ')} {format_capacity(s.each_bytes)}" for s in parts)
    whole = SmCapacity.of_bytes(machine.sm_bytes, workload, f"all storage of one SM of {machine.name}: {names}")
    shared = machine.shared_bytes_per_sm
    if shared is None:
        return whole, None
    return whole, SmCapacity.of_bytes(shared, workload, f"the shared memory of one SM alone, {format_capacity(shared)}")


def best_on_sms(workload: SharedWork, capacity: int, buffers: BufferModel) -> OnSms | None:
    """The best schedule built for a model; None for one memory, which has schedules of its own.

    In a ring, a mesh or two partitions no copies are used: what is shown is the sm-local schedule.
    """
    if buffers.memories == 1:
        return None
    group = 1
    if buffers.kind == "connected" and (buffers.net.group < buffers.sms or buffers.net.uniform):
        group = buffers.net.group
    if isinstance(workload, Gemm):
        return best_parallel_schedule(workload, buffers.sms, capacity, buffers.omega, group)
    if isinstance(workload, Ffn):
        return best_ffn_on_sms(workload, buffers.sms, capacity, buffers.omega, group)
    return best_attention_on_sms(workload, buffers.sms, capacity, buffers.omega, group)


@dataclass(frozen=True)
class BufferAnswer:
    """What is known of a workload under one buffer model.

    Attributes
    ----------
    lower, balanced : LowerBound
        For any split of the work, and when no SM does more than its share.
    upper_elements, upper_bytes : int
        Of the best schedule; loads + stores + omega * copies.
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


def buffer_answer(
    workload: SharedWork, capacity: SmCapacity, buffers: BufferModel, recompute: bool = False
) -> BufferAnswer:
    """Bound a workload from both sides under a buffer model."""
    lower = buffer_lower_bound(workload, capacity.elements, buffers, None, recompute)
    balanced = lower
    if buffers.memories > 1:
        share = balanced_share(workload, buffers.sms)
        balanced = buffer_lower_bound(workload, capacity.elements, buffers, share, recompute)
    schedule = best_on_sms(workload, capacity.schedule_elements, buffers)
    if schedule is None:
        from pebble.bounded import answer

        size = buffers.memory_size
        one = answer(workload, size(capacity.elements), size(capacity.schedule_elements)).upper
        assert one is not None
        return BufferAnswer(lower, balanced, one.elements, one.bytes, one.name, None)
    omega = buffers.omega
    elements, total = ceil(schedule.cost_elements(omega)), ceil(schedule.cost_bytes(omega))
    return BufferAnswer(lower, balanced, elements, total, schedule.name, schedule)


def buffer_document(
    workload: SharedWork,
    capacity: SmCapacity,
    buffers: BufferModel,
    recompute: bool = False,
    others: Sequence[SmCapacity] = (),
    multicast: int = 1,
) -> dict[str, Any]:
    """Everything that ``pebble bound --buffers`` says at the L2 boundary, as plain data.

    Raises
    ------
    InputError
        Multicast for a model other than sm-local.
    """
    if multicast > 1 and buffers.kind != "sm-local":
        raise InputError(f"--multicast: got buffers {buffers.kind}, expected sm-local: a multicast is a read of L2.")
    found = buffer_answer(workload, capacity, buffers, recompute)
    sms = buffers.sms
    document: dict[str, Any] = {
        "workload": {"label": workload.label, **workload.to_json()},
        "capacity": {**capacity.to_json(), "total_elements": capacity.elements * sms},
        "level": "l2",
        "buffers": buffers.kind,
        "sms": sms,
        "omega": buffers.to_json()["omega"],
        "topology": buffers.to_json()["topology"],
        "recompute": "allowed" if recompute else "forbidden",
        "lower_bound": found.lower.to_json(),
        "balanced_bound": found.balanced.to_json(),
        "upper_bound": {
            "elements": found.upper_elements,
            "bytes": found.upper_bytes,
            "schedule": found.upper_name,
            "details": found.schedule.to_json() if found.schedule else None,
        },
        "gap": found.upper_elements / found.lower.elements,
        "into_sms": _into_sms(workload, found, sms),
        "models": models(workload, capacity, sms, buffers),
        "other_capacities": [
            {"capacity": o.to_json(), "lower_bound": buffer_lower_bound(workload, o.elements, buffers).to_json()}
            for o in others
        ],
        "published": [],
    }
    if isinstance(workload, Gemm) and buffers.memories > 1:
        words, regime = words_per_processor(workload.m, workload.n, workload.k, sms)
        document["per_sm"] = {
            "busiest_elements_at_least": busiest_sm_elements(workload, capacity.elements, sms),
            "memory_independent_words": words,
            "memory_independent_regime": regime,
        }
    if multicast > 1:
        document["multicast"] = {
            "sms_per_read": multicast,
            "l2_requests_bound": multicast_bound(workload, capacity.elements, sms, multicast).to_json(),
        }
        if isinstance(workload, Gemm):
            cast = best_parallel_schedule(
                workload, sms, capacity.schedule_elements, largest_cluster=multicast, multicast=True
            )
            document["multicast"]["schedule"] = {"name": cast.name, "l2_elements": cast.l2_elements}
    return document


def _into_sms(workload: SharedWork, found: BufferAnswer, sms: int) -> dict[str, Any] | None:
    """Words of the best schedule at the two boundaries, in all and per SM."""
    schedule = found.schedule
    if schedule is None:
        return None
    return {
        "from_l2_bytes": schedule.l2_read_bytes,
        "from_other_sms_bytes": schedule.remote_bytes,
        "to_l2_bytes": schedule.l2_write_bytes,
        "from_l2_bytes_per_sm": schedule.l2_read_bytes / sms,
        "from_other_sms_bytes_per_sm": schedule.remote_bytes / sms,
        "imbalance": schedule.imbalance,
    }


def models(workload: SharedWork, capacity: SmCapacity, sms: int, chosen: BufferModel) -> list[dict[str, Any]]:
    """Each model side by side: bounds, and the factor over pooled."""
    topology = chosen.topology if chosen.kind == "connected" else "all-to-all"
    omegas = sorted({*OMEGAS, *([chosen.omega] if chosen.kind == "connected" else [])})
    rows = [BufferModel("pooled", sms), *(BufferModel("connected", sms, w, topology) for w in omegas)]
    rows.append(BufferModel("sm-local", sms))
    share = balanced_share(workload, sms)
    pooled = buffer_lower_bound(workload, capacity.elements, rows[0])
    found = []
    for model in rows:
        lower = buffer_lower_bound(workload, capacity.elements, model)
        balanced = lower if model.memories == 1 else buffer_lower_bound(workload, capacity.elements, model, share)
        found.append(
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
    return found

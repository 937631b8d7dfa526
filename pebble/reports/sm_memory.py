"""The memories of SMs that a question is about: how many, what each holds, what a copy between them costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pebble.errors import InputError, check_text
from pebble.game.buffer_model import BufferModel, parse_omega
from pebble.models.machine import Machine
from pebble.models.rates import CopyCost, copy_cost
from pebble.reports.target import MAX_SMS, Target, whole
from pebble.units import Size, format_capacity
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    pass


MEASURED = "measured"
"""An omega that stands for the machine's own."""


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
    def of_bytes(cls, size: int, workload: Workload, detail: str) -> SmCapacity:
        """So many bytes."""
        return cls(size // workload.narrowest_bytes, size // workload.widest_bytes, size, detail)

    @classmethod
    def of_size(cls, size: Size, workload: Workload) -> SmCapacity:
        """A size as the user gave it."""
        detail = f"one explicitly managed memory of {size.text} per SM"
        if size.bytes is not None:
            return cls.of_bytes(size.bytes, workload, detail)
        elements = size.to_elements(workload.narrowest_bytes)
        return cls(elements, elements, size.to_bytes(workload.narrowest_bytes), detail)

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {"elements": self.elements, "bytes": self.bytes, "what": "sm", "detail": self.detail}


def in_words(machine: Machine | None, text: str) -> str:
    """A text on SMs and L2 in the words of a machine, which may have cores and a shared buffer."""
    return text if machine is None else machine.in_words(text)


def machine_capacities(machine: Machine, workload: Workload) -> tuple[SmCapacity, SmCapacity | None]:
    """All storage of an SM, and its shared memory alone where the machine file has it."""
    parts = [s for s in machine.stores if s.of_each]
    names = ", ".join(f"{s.title} {format_capacity(s.each_bytes)}" for s in parts)
    whole = SmCapacity.of_bytes(
        machine.sm_bytes, workload, f"all storage of one {machine.core_word} of {machine.name}: {names}"
    )
    shared = machine.shared_bytes_per_sm
    if shared is None:
        return whole, None
    return whole, SmCapacity.of_bytes(shared, workload, f"the shared memory of one SM alone, {format_capacity(shared)}")


def read_buffers(
    kind: str | None,
    sms: int,
    omega: str | float | None = None,
    topology: str | None = None,
    machine: Machine | None = None,
    level: str = "l2",
) -> BufferModel:
    """The buffer model of that name, for that many SMs; omega ``measured`` is that of the machine at a level.

    Raises
    ------
    InputError
        An option out of range, or one that its model does not have; a price that was not measured.
    """
    kind = "sm-local" if kind is None else kind
    if topology is not None:
        check_text("--topology", topology, "a name such as 'all-to-all'")
    if kind != "connected" and (omega is not None or topology is not None):
        raise InputError(f"--omega, --topology: got buffers {kind}, expected --buffers connected with them.")
    if kind != "connected":
        return BufferModel(kind, 1 if kind == "single" else sms)
    net = topology or (machine.network if machine is not None else "") or "all-to-all"
    if omega == MEASURED:
        return BufferModel(kind, sms, measured_cost(machine, level).omega, net)
    price = parse_omega("0.25" if omega is None else str(omega))
    return BufferModel(kind, sms, price, net)


def measured_cost(machine: Machine | None, level: str = "l2") -> CopyCost:
    """What a copy between SMs costs on a machine, in reads of L2 or DRAM.

    Raises
    ------
    InputError
        No machine, or its file has no bandwidth between SMs.
    """
    if machine is None:
        raise InputError(f"--omega: got {MEASURED}, expected a machine with it (--gpu SKU), or a number such as 0.25.")
    price = copy_cost(machine, level)
    if price is None:
        raise InputError(
            f"--omega: got {MEASURED}, expected a number: the machine file of {machine.name} has no dsmem_bandwidth, "
            "for want of such a network or of a measurement."
        )
    return price


def read_sms(sms: int | str | None, target: Target) -> int:
    """P: what was given, else the machine's.

    Raises
    ------
    InputError
        Neither is known.
    """
    if sms is not None:
        return whole("--sms", sms, 1, MAX_SMS)
    if target.machine is None:
        raise InputError(
            "--sms missing: expected --sms NUMBER beside --cache, the number of SMs; --cache is of one SM."
        )
    return target.machine.sms


def sm_capacity(target: Target, workload: Workload) -> tuple[SmCapacity, list[SmCapacity]]:
    """What one SM holds, and other readings of it."""
    if target.machine is not None:
        capacity, shared = machine_capacities(target.machine, workload)
        return capacity, [] if shared is None else [shared]
    assert target.cache is not None
    return SmCapacity.of_size(target.cache, workload), []

"""What is asked of a schedule of any family: by name, under explicit control, of a workload made of parts, one part
after the other, and on several SMs with memories of their own.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pebble.errors import InputError
from pebble.game.buffer_model import BufferModel
from pebble.schedules.explicit.dataflow import Cores
from pebble.schedules.explicit.dataflow_search import Cost
from pebble.schedules.explicit.flow import Flow
from pebble.schedules.tile import TileShape
from pebble.workloads.widths import ALIKE, FastMemory, Widths
from pebble.workloads.workload import Workload


class Named(Protocol):
    """A schedule that a kernel runs, as the user calls it."""

    @property
    def name(self) -> str: ...


class Explicit(Protocol):
    """A schedule under explicit control, of any family."""

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""

    @property
    def bytes(self) -> int:
        """The same in bytes, each operand at its own width."""

    @property
    def name(self) -> str:
        """What it does, in a line."""

    @property
    def loads(self) -> Mapping[str, int]:
        """Values loaded, by operand (``part.operand`` where there are parts)."""

    @property
    def stores(self) -> Mapping[str, int]:
        """Values stored, by operand."""

    @property
    def peak_elements(self) -> int:
        """The most values that it holds."""

    @property
    def memory(self) -> FastMemory:
        """The memory that it is for."""

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""


class InParts(Explicit, Protocol):
    """A schedule of a workload made of parts."""

    @property
    def by_part(self) -> Mapping[str, int]:
        """Bytes of each part."""


@dataclass(frozen=True)
class PartSchedule:
    """One part after the other, each by a schedule of its own.

    Attributes
    ----------
    parts : tuple of (str, Explicit, int)
        What the part is called, its schedule, and how many equal parts run so.
    memory : FastMemory
        The memory, which each has to itself.
    """

    parts: tuple[tuple[str, Explicit, int], ...]
    memory: FastMemory

    @property
    def elements(self) -> int:
        """Loads plus stores of all parts."""
        return sum(count * schedule.elements for _, schedule, count in self.parts)

    @property
    def bytes(self) -> int:
        """The same in bytes."""
        return sum(count * schedule.bytes for _, schedule, count in self.parts)

    @property
    def by_part(self) -> dict[str, int]:
        """Bytes of each part."""
        return {name: count * schedule.bytes for name, schedule, count in self.parts}

    @property
    def name(self) -> str:
        """What runs, in a line."""
        shown = [f"{name}: {s.name}" if n == 1 else f"{n} x {name}: {s.name}" for name, s, n in self.parts[:4]]
        more = len(self.parts) - len(shown)
        return "one after the other: " + "; ".join(shown) + (f"; ... ({more} more)" if more else "")

    @property
    def loads(self) -> dict[str, int]:
        """Values loaded, by part and operand."""
        return {f"{name}.{x}": count * n for name, item, count in self.parts for x, n in item.loads.items()}

    @property
    def stores(self) -> dict[str, int]:
        """Values stored, by part and operand."""
        return {f"{name}.{x}": count * n for name, item, count in self.parts for x, n in item.stores.items()}

    @property
    def peak_elements(self) -> int:
        """The most values that a part holds."""
        return max(schedule.peak_elements for _, schedule, _ in self.parts)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        parts = [{"name": name, "count": count, **schedule.to_json()} for name, schedule, count in self.parts]
        fields: dict[str, Any] = {"kind": "parts", "parts": parts}
        return fields if self.memory.widths == ALIKE else fields | {"widths_bytes": self.memory.widths.to_json()}


def in_turn(parts: Iterable[tuple[str, Explicit | None, int]], memory: FastMemory) -> PartSchedule | None:
    """The parts one after the other; None if one of them has no schedule."""
    results = []
    for name, schedule, count in parts:
        if schedule is None:
            return None
        results.append((name, schedule, count))
    return PartSchedule(tuple(results), memory)


W = TypeVar("W", bound=Workload)

BALANCED = "best balanced"
"""The name of what `Family.best_in_buffers` finds: the least among schedules that spread the work evenly."""


class OnSms(Protocol):
    """A schedule on several SMs, of any family."""

    @property
    def name(self) -> str:
        """What it does, in a line."""

    @property
    def l2_elements(self) -> int:
        """Values loaded from L2 and stored there, all SMs together."""

    @property
    def remote_elements(self) -> int:
        """Values copied from other SMs."""

    @property
    def l2_read_bytes(self) -> int:
        """Bytes loaded from L2."""

    @property
    def l2_write_bytes(self) -> int:
        """Bytes stored to L2."""

    @property
    def remote_bytes(self) -> int:
        """Bytes copied from other SMs."""

    @property
    def hop_bytes(self) -> int:
        """The same, times the hops they take."""

    @property
    def imbalance(self) -> float:
        """Work of the busiest SM over the mean, minus 1."""

    def cost_elements(self, omega: Fraction) -> Fraction:
        """Values through L2, and copied ones at ``omega`` each."""

    def cost_bytes(self, omega: Fraction) -> Fraction:
        """The same in bytes."""

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""


class OnSeveralSms(ABC, Generic[W]):
    """What is asked of any family where SMs have memories of their own.

    Attributes
    ----------
    name : str
        The word that selects the family.
    """

    name: ClassVar[str]

    def best_on_sms(self, workload: W, sms: int, capacity: int, omega: Fraction, group: int) -> OnSms:
        """The best schedule known on ``sms`` memories of ``capacity`` values, copies within groups of ``group``.

        Raises
        ------
        InputError
            The family is not bounded for several SMs.
        """
        raise InputError(
            f"buffers: got {self.name}, expected gemm, ffn or attention: only these are bounded for several SMs."
        )

    def best_in_buffers(self, workload: W, capacity: int, buffers: BufferModel) -> OnSms | None:
        """The best schedule known under a buffer model; None for one memory, which has schedules of its own.

        In a ring, a mesh or two partitions no copies are used: what is shown is the sm-local schedule.
        """
        if buffers.memories == 1:
            return None
        group = 1
        if buffers.kind == "connected" and (buffers.net.group < buffers.sms or buffers.net.uniform):
            group = buffers.net.group
        return self.best_on_sms(workload, buffers.sms, capacity, buffers.omega, group)

    def dataflows(self, workload: W, cores: Cores, widths: Widths, cost: Cost) -> list[Flow]:
        """The best schedule of each dataflow on cores with scratchpads, those that fit; ``widths`` in bytes.

        Raises
        ------
        InputError
            No dataflow of the family, or of this workload, is known.
        """
        raise InputError(
            f"compare: got {self.name} on a machine of scratchpads, expected gemm, grouped, ffn, attention or "
            "latent-attention: only these have dataflows; `pebble bound` takes this one."
        )

    def busiest_sm(self, workload: W, capacity: int, sms: int) -> dict[str, int] | None:
        """What is proved of the SM that does most, as plain data; None where nothing is."""
        return None

    def best_multicast(self, workload: W, sms: int, capacity: int, multicast: int) -> OnSms | None:
        """The best schedule known in which a read of L2 feeds up to ``multicast`` SMs; None where none is built."""
        return None

    def more_in_buffers(
        self, workload: W, capacity: int, buffers: BufferModel, tile: TileShape
    ) -> Iterator[tuple[str, OnSms]]:
        """Schedules under a buffer model that are worth a look beside `best_in_buffers`, each with a name."""
        return iter(())

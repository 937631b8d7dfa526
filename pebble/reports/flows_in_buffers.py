"""Dataflows of a machine of scratchpads under a buffer model: what they cost between the cores and what is outside."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from pebble.errors import InputError
from pebble.families import family_of
from pebble.schedules.explicit.parallel import OnSms
from pebble.timing.on_cores import cores_of, unevenness
from pebble.workloads.widths import Widths

if TYPE_CHECKING:
    from pebble.game.buffer_model import BufferModel
    from pebble.models.machine import Machine
    from pebble.schedules.explicit.dataflow import Moved
    from pebble.schedules.explicit.flow import Flow
    from pebble.workloads.workload import Workload

TOLERANCE = 0.1
"""Work of the busiest core above the mean that still counts as balanced: sides of blocks are multiples of a step."""


@dataclass(frozen=True)
class FlowInBuffers(OnSms):
    """A dataflow as a schedule on several SMs. In values it counts as many as its bytes can be: the narrowest.

    Attributes
    ----------
    flow : Flow
    shared : bool
        Whether a shared buffer is what is outside of the cores; else off-chip memory is.
    value_bytes : int
        Of the narrowest value.
    idle_work : float
        Multiply-adds of the dataflow, which leaves out nothing that a mask hides, over those of the workload.
    """

    flow: Flow
    shared: bool
    value_bytes: int
    idle_work: float = 1.0

    @property
    def name(self) -> str:
        """What it does, in a line."""
        return f"{self.flow.title}, {self.flow.detail}"

    @property
    def _crossing(self) -> int:
        moved = self.flow.moved
        return moved.shared if self.shared else moved.off_chip

    @property
    def l2_write_bytes(self) -> int:
        """Bytes that leave the cores."""
        return self.flow.sent

    @property
    def l2_read_bytes(self) -> int:
        """Bytes that come from outside."""
        return self._crossing - self.flow.sent

    @property
    def remote_bytes(self) -> int:
        """Bytes from core to core."""
        return self.flow.moved.copied

    @property
    def hop_bytes(self) -> int:
        """Those times the hops they take."""
        return self.flow.moved.hop_bytes

    @property
    def l2_elements(self) -> int:
        """Values that cross to outside, at most."""
        return self._crossing // self.value_bytes

    @property
    def remote_elements(self) -> int:
        """Values from core to core, at most."""
        return self.remote_bytes // self.value_bytes

    @property
    def imbalance(self) -> float:
        """Work of the busiest core over the mean of what must be done, minus 1; with a mask that at most."""
        return self.flow.moved.work * self.idle_work - 1

    def cost_bytes(self, omega: Fraction) -> Fraction:
        """Loads + stores + omega * hops, in bytes."""
        return Fraction(self._crossing + omega * self.hop_bytes)

    def cost_elements(self, omega: Fraction) -> Fraction:
        """The same in values, at most."""
        return self.cost_bytes(omega) / self.value_bytes

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {**self.flow.to_json(), "hop_bytes": self.hop_bytes, "imbalance": self.imbalance}


def flows_in_buffers(
    machine: Machine, workload: Workload, buffers: BufferModel, accumulator_bytes: int
) -> list[FlowInBuffers]:
    """Of each dataflow the cheapest under a buffer model, of those that spread the work evenly if there are any.

    None for a machine that is no machine of scratchpads, where nothing fits, where the workload has no dataflow, and in
    a network that arrays of cores are not laid out on.
    """
    if not machine.explicit or buffers.memories == 1:
        return []
    omega = float(buffers.omega)

    def cost(moved: Moved) -> tuple[float, ...]:
        crossing = moved.shared if cores.shared else moved.off_chip
        return unevenness(moved.work, TOLERANCE), crossing + omega * moved.hop_bytes, moved.off_chip

    try:
        cores = cores_of(machine, buffers)
        widths = Widths.of(workload, accumulator_bytes)
        flows = family_of(workload).dataflows(workload, cores, widths, cost)
    except InputError:
        return []
    idle = workload.unmasked_flops / workload.flops
    return [FlowInBuffers(flow, cores.shared > 0, workload.narrowest_bytes, idle) for flow in flows]

"""A workload on several SMs with memories of their own: what is asked of a family there, and of its schedules."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar, Generic, Protocol, TypeVar

from pebble.errors import InputError
from pebble.game.buffer_model import BufferModel
from pebble.schedules.tile import TileShape
from pebble.workloads.base import Workload

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

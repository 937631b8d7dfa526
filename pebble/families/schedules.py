"""What is asked of a schedule of any family: by name, under explicit control, and on several SMs."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Protocol

from pebble.workloads.widths import Room


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
    def room(self) -> Room:
        """The memory that it is for."""

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""


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

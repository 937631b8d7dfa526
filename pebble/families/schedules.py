"""What is asked of a schedule of any family: by name, and under explicit control."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pebble.workloads.widths import FastMemory


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

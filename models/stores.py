"""On-chip stores of a machine: the terms of the sum that makes the chip capacity."""

from __future__ import annotations

from typing import NamedTuple

_PER_PROCESSOR = ("_per_sm", "_per_core")


def copies_of(key: str, processors: int) -> int:
    """How many of a store the chip has: one for each SM or core, or one."""
    return processors if key.endswith(_PER_PROCESSOR) else 1


class Store(NamedTuple):
    """One line of the sum that makes the chip capacity.

    Attributes
    ----------
    key : str
        In ``[stores]`` of the machine file.
    each_bytes, copies : int
        Size of one, and how many the chip has.
    """

    key: str
    each_bytes: int
    copies: int

    @property
    def total_bytes(self) -> int:
        """Bytes of all of them."""
        return self.each_bytes * self.copies

    @property
    def of_each(self) -> bool:
        """Whether every SM or core has one of its own."""
        return self.key.endswith(_PER_PROCESSOR)

    @property
    def title(self) -> str:
        """For a reader."""
        return self.key.removeprefix("stores.").removesuffix("_per_sm").removesuffix("_per_core").replace("_", " ")

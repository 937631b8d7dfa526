"""What values take in fast memory and in a transfer, where that depends on what they are."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.workloads.base import Workload


@dataclass(frozen=True)
class Widths:
    """Bytes that a value takes, held or moved."""

    read: int  #: w, an input or a complete intermediate
    hidden: int  #: p_H, an intermediate that is begun and not complete
    partial: int  #: p, an output that is begun and not complete
    written: int  #: w_o, a complete output

    @classmethod
    def of(cls, workload: Workload, accumulator_bytes: int = 0) -> Widths:
        """Those of a workload; partial sums take ``accumulator_bytes`` at least, by default what they end as."""
        read, written = workload.in_bytes, workload.out_bytes
        return cls(read, max(read, accumulator_bytes), max(written, accumulator_bytes), written)

    @property
    def uniform(self) -> bool:
        """Whether every value has one width: then counting values says as much as counting bytes."""
        return len({self.read, self.hidden, self.partial, self.written}) == 1

    def to_json(self) -> dict[str, int]:
        """Plain data for ``--json``."""
        return {
            "input": self.read,
            "partial_hidden": self.hidden,
            "partial_output": self.partial,
            "output": self.written,
        }


@dataclass(frozen=True)
class Room:
    """A fast memory in bytes, and what the values in it take."""

    bytes: int  #: S
    widths: Widths
    values: int | None = None  #: the most values that it holds, however narrow; None for as many as fit

    def holds(self, values: int) -> bool:
        """Whether that are not too many values."""
        return self.values is None or values <= self.values

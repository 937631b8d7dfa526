"""What values take in fast memory and in a transfer, where that depends on what they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from pebble.workloads.workload import Workload


@dataclass(frozen=True)
class Widths:
    """Bytes that a value takes, held or moved."""

    read: int  #: w, an input or a complete intermediate
    hidden: int  #: p_H, an intermediate that is initialised and not complete
    partial: int  #: p, an output that is initialised and not complete
    written: int  #: w_o, a complete output

    @classmethod
    def of(cls, workload: Workload, accumulator_bytes: int = 0) -> Widths:
        """Those of a workload; partial sums take ``accumulator_bytes`` at least, by default what they end as."""
        read, written = workload.in_bytes, workload.out_bytes
        return cls(read, max(read, accumulator_bytes), max(written, accumulator_bytes), written)

    @property
    def accumulator(self) -> int:
        """What partial sums take at least, where any takes more than what it ends as; else 0."""
        ends = (self.hidden, self.read), (self.partial, self.written)
        return max((partial for partial, end in ends if partial > end), default=0)

    @property
    def uniform(self) -> bool:
        """Whether every value has one width: then counting values says as much as counting bytes."""
        return len({self.read, self.hidden, self.partial, self.written}) == 1

    @property
    def unit(self) -> int:
        """The greatest common divisor of all, in which lower bounds count."""
        return gcd(self.read, self.hidden, self.partial, self.written)

    @property
    def in_units(self) -> tuple[int, int, int, int]:
        """w, p_H, p and w_o in these units."""
        unit = self.unit
        return self.read // unit, self.hidden // unit, self.partial // unit, self.written // unit

    def to_json(self) -> dict[str, int]:
        """Plain data for ``--json``."""
        return {
            "input": self.read,
            "partial_hidden": self.hidden,
            "partial_output": self.partial,
            "output": self.written,
        }


ALIKE = Widths(1, 1, 1, 1)
"""The classic game: every value counts as one."""


@dataclass(frozen=True)
class FastMemory:
    """A fast memory: how much it holds, and what the values in it take; of the classic game, so many values."""

    bytes: int  #: S, in the units of ``widths``
    widths: Widths  #: what a value takes when it is held
    values: int | None = None  #: the most values that it holds, however narrow; None for as many as fit
    moves: Widths | None = None  #: what a transfer of a value counts, where that is not what it takes when held

    @classmethod
    def of_values(cls, capacity: int, workload: Workload | None = None) -> FastMemory:
        """The classic game: so many values; a transfer counts the bytes of its operand, or one."""
        return cls(capacity, ALIKE, moves=None if workload is None else Widths.of(workload))

    @property
    def cost(self) -> Widths:
        """What a transfer of a value counts."""
        return self.widths if self.moves is None else self.moves

    def compulsory(self, workload: Workload) -> int:
        """What a workload surely moves, as transfers count."""
        moves = ((o.elements * (o.read + o.written), o.written) for o in workload.operands)
        return sum(count * (self.cost.written if written else self.cost.read) for count, written in moves)

    @property
    def state_cost(self) -> int:
        """What a transfer of a maximum or sum of a row counts: in the classic game that of an intermediate."""
        return self.cost.read if self.moves is not None else max(self.widths.hidden, self.widths.partial)

    @property
    def limits(self) -> tuple[tuple[int, Widths], ...]:
        """What it holds at most, and what each value counts towards that."""
        own = (self.bytes, self.widths)
        return (own,) if self.values is None else (own, (self.values, ALIKE))

    @property
    def handing_on(self) -> FastMemory:
        """The same for a kernel whose result is an intermediate: complete, it is like an input."""

        def inside(of: Widths) -> Widths:
            return Widths(of.read, of.hidden, of.hidden, of.read)

        return replace(self, widths=inside(self.widths), moves=None if self.moves is None else inside(self.moves))

    def of_part(self, part: Workload) -> FastMemory:
        """The same for a part of the workload, with operands of its own."""
        if self.widths == ALIKE:
            return replace(self, moves=Widths.of(part))
        return replace(self, widths=Widths.of(part, self.widths.accumulator))

    def smaller(self, many: int) -> list[FastMemory]:
        """This memory and those that hold a little less, ``many`` in all."""
        step = gcd(self.widths.read, self.widths.hidden, self.widths.partial)
        return [replace(self, bytes=size) for size in range(self.bytes, max(self.bytes - many * step, 2), -step)]

    def holds(self, values: int) -> bool:
        """Whether that are not too many values."""
        return self.values is None or values <= self.values

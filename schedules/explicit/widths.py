"""Explicit schedules in a memory of bytes, where a partial sum is wider than what it ends as.

An output that is stored unfinished and loaded again moves at the width of its accumulator both times; complete, it is
stored once at its own width. The blocks of `gemm` are the same, but a block of C holds accumulators, so fewer cells of
it fit than of A or B.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.blocks import block_sizes, largest_partner
from pebble.schedules.explicit.gemm import AXES, operand_of
from pebble.schedules.explicit.nest import Nest
from pebble.units import ceil_div
from pebble.workloads import Gemm
from pebble.workloads.base import Workload
from pebble.workloads.widths import Room, Widths

_LOOK_CLOSELY = 24


@dataclass(frozen=True)
class WideNest(Nest):
    """The loop nest of a blocked GEMM in bytes; ``capacity`` is that of the memory."""

    stationary_bytes: int = 1  #: of a value of the block
    p_bytes: int = 1  #: of a value of the vectors of P, p x r
    q_bytes: int = 1  #: of those of Q, q x r

    @classmethod
    def wide(cls, gemm: Gemm, room: Room, stationary: str, bp: int, bq: int, across: str) -> WideNest:
        """As `Nest.of`."""
        plain = Nest.of(gemm, room.bytes, stationary, bp, bq, across)
        first, second, streamed = plain.axes
        of = operand_bytes(room.widths)
        sides = (operand_of(first, streamed), operand_of(second, streamed))
        sizes = (plain.p, plain.q, plain.r, plain.bp, plain.bq)
        return cls(plain.axes, *sizes, room.bytes, of[stationary], of[sides[0]], of[sides[1]])

    def kept_across(self, height: int, width: int) -> int:
        free = self.capacity - self.q_bytes - self.stationary_bytes * height * width
        return min(self.r, max(0, free // (self.p_bytes * height)))

    def kept_down(self, row: int, width: int) -> int:
        steps = self.r
        if self.cols > 1:
            steps -= max(self.kept_across(self.height(r), self.bq) for r in (row, row + 1))
        free = self.capacity - self.p_bytes - self.stationary_bytes * self.bp * width
        return min(steps, max(0, free // (self.q_bytes * width)))

    @property
    def plain_bytes(self) -> int:
        """What a block needs with nothing kept for the next: the block, a vector and one value, either kind."""
        wider = max(self.p_bytes, self.q_bytes)
        return self.stationary_bytes * self.bp * self.bq + wider * (min(self.bp, self.bq) + 1)


@dataclass(frozen=True)
class WideGemmSchedule:
    """A blocked GEMM in a memory of bytes, and its exact traffic.

    Attributes
    ----------
    stationary, block_p, block_q, across, gemm, loads, stores
        As of `pebble.schedules.explicit.gemm.ExplicitSchedule`.
    room : Room
        The memory.
    """

    stationary: str
    block_p: int
    block_q: int
    across: str
    gemm: Gemm
    room: Room
    loads: Mapping[str, int]
    stores: Mapping[str, int]

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return sum(self.loads.values()) + sum(self.stores.values())

    @property
    def spilled(self) -> int:
        """Partial sums stored, and loaded again."""
        return self.stores["C"] - self.gemm.m * self.gemm.n

    @property
    def bytes(self) -> int:
        """Loads plus stores in bytes, partial sums at the width of accumulators."""
        inputs = self.loads["A"] + self.loads["B"]
        return gemm_bytes(self.gemm, self.room.widths, inputs, self.spilled)

    @property
    def name(self) -> str:
        """For tables."""
        p, q, _ = AXES[self.stationary]
        text = f"{self.stationary}-stationary, blocks {self.block_p}x{self.block_q} ({p} x {q})"
        return f"compulsory: {text}" if self.elements == self.gemm.compulsory_elements else text

    @property
    def peak_elements(self) -> int:
        """Most values held at once."""
        return self.nest.peak()

    @property
    def nest(self) -> WideNest:
        """Its loops."""
        return WideNest.wide(self.gemm, self.room, self.stationary, self.block_p, self.block_q, self.across)

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {
            "family": f"{self.stationary.lower()}-stationary",
            "block": [self.block_p, self.block_q],
            "block_dimensions": list(AXES[self.stationary][:2]),
            "walks_first": self.across,
            "loads_elements": dict(self.loads),
            "stores_elements": dict(self.stores),
            "peak_elements": self.peak_elements,
            "partial_sums_spilled": self.spilled,
            "widths_bytes": self.room.widths.to_json(),
        }


def operand_bytes(widths: Widths) -> dict[str, int]:
    """Bytes that a value of A, B or C may take while blocks of it are worked on."""
    return {"A": widths.read, "B": widths.read, "C": widths.partial}


def gemm_bytes(gemm: Gemm, widths: Widths, inputs: int, spilled: int) -> int:
    """Bytes moved: values of A and B, partial sums there and back, and each cell of C once (twice if added to)."""
    cells = gemm.m * gemm.n * (2 if gemm.accumulate else 1)
    return widths.read * inputs + 2 * widths.partial * spilled + widths.written * cells


def _evaluate(gemm: Gemm, room: Room, stationary: str, bp: int, bq: int, across: str) -> WideGemmSchedule:
    nest = WideNest.wide(gemm, room, stationary, bp, bq, across)
    first, second, streamed = nest.axes
    moved = {
        operand_of(first, streamed): nest.p * nest.r * nest.cols - nest.saved_across(),
        operand_of(second, streamed): nest.q * nest.r * nest.rows - nest.saved_down(),
        stationary: nest.p * nest.q,
    }
    begun = 0 if gemm.accumulate else gemm.m * gemm.n
    loads = {"A": moved["A"], "B": moved["B"], "C": moved["C"] - begun}
    return WideGemmSchedule(stationary, bp, bq, across, gemm, room, loads, {"A": 0, "B": 0, "C": moved["C"]})


def gemm_schedules_in_bytes(gemm: Gemm, room: Room) -> Iterator[WideGemmSchedule]:
    """The best schedule of each stationary operand and walk; cost and meaning as `gemm.gemm_schedules`.

    Raises
    ------
    InfeasibleError
        Not one value of each operand fits.
    """
    of = operand_bytes(room.widths)
    if room.bytes < sum(of.values()):
        raise InfeasibleError(
            f"capacity: got {room.bytes} bytes, expected at least {sum(of.values())} bytes (the operands of a "
            "multiply-add and its accumulator): no schedule exists."
        )
    size = {"m": gemm.m, "n": gemm.n, "k": gemm.k}
    for stationary, (first, second, _) in AXES.items():
        blocks, own = [], of[stationary]
        wider = max(width for name, width in of.items() if name != stationary)
        for bp in block_sizes(size[first], room.bytes // own):
            partner = min(largest_partner(room.bytes, bp, own, wider), size[second])
            if partner > 0:
                bq = ceil_div(size[second], ceil_div(size[second], partner))
                blocks.append((_bytes_without_keeping(gemm, room, stationary, bp, bq), bp, bq))
        blocks.sort()
        for across in (second, first):
            found = [_evaluate(gemm, room, stationary, bp, bq, across) for _, bp, bq in blocks[:_LOOK_CLOSELY]]
            if found:
                yield min(found, key=lambda s: (s.bytes, s.elements))


def _bytes_without_keeping(gemm: Gemm, room: Room, stationary: str, bp: int, bq: int) -> int:
    first, second, _ = AXES[stationary]
    block = {"m": gemm.m, "n": gemm.n, "k": gemm.k} | {first: bp, second: bq}
    rounds = {axis: ceil_div(getattr(gemm, axis), block[axis]) for axis in "mnk"}
    inputs = gemm.m * gemm.k * rounds["n"] + gemm.k * gemm.n * rounds["m"]
    return gemm_bytes(gemm, room.widths, inputs, gemm.m * gemm.n * (rounds["k"] - 1))


class Counted(Protocol):
    """A schedule that says what it moves, by operand."""

    @property
    def elements(self) -> int: ...
    @property
    def peak_elements(self) -> int: ...
    @property
    def name(self) -> str: ...
    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class WideSchedule:
    """A schedule of values that all fit at the widest width, with what it moves in bytes."""

    schedule: Counted
    room: Room
    bytes: int

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return self.schedule.elements

    @property
    def name(self) -> str:
        """For tables."""
        return self.schedule.name

    @property
    def peak_elements(self) -> int:
        """The most values that it holds."""
        return self.schedule.peak_elements

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {**self.schedule.to_json(), "widths_bytes": self.room.widths.to_json()}


def in_wide_memory(schedule: Any, room: Room) -> WideSchedule:
    """What a schedule of values moves in bytes, where each fits at the widest width.

    Outputs stored more often than there are of them were partial sums; of an intermediate it is not told which are, so
    all that move count at the width of one.
    """
    parts = getattr(schedule, "parts", None)
    if parts is not None:
        return WideSchedule(schedule, room, sum(n * _moved_bytes(one, room.widths) for _, one, n in parts))
    return WideSchedule(schedule, room, _moved_bytes(schedule, room.widths))


def _moved_bytes(schedule: Any, widths: Widths) -> int:
    of: Workload = next(getattr(schedule, name) for name in ("workload", "gemm", "conv") if hasattr(schedule, name))
    inputs = {o.name for o in of.operands if not o.written} | {"Wg+Wu"}
    total = 0
    for o in of.operands:
        if o.written:
            loaded, stored = schedule.loads.get(o.name, 0), schedule.stores.get(o.name, 0)
            spilled = stored - o.elements
            total += 2 * max(widths.partial, o.element_bytes) * spilled
            total += o.element_bytes * (o.elements + loaded - spilled)
    for moved in (schedule.loads, schedule.stores):
        for name, count in moved.items():
            if name in inputs:
                total += widths.read * count
            elif all(name != o.name for o in of.operands):
                total += widths.hidden * count
    return total

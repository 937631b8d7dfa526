"""Explicit schedules in a memory of bytes, where a partial sum is wider than what it ends as.

An output that is stored unfinished and loaded again moves at the width of its accumulator both times; complete, it is
stored once at its own width. The blocks of `gemm` are the same, but a block of C holds accumulators, so fewer cells of
it fit than of A or B.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import isqrt
from typing import Any, Protocol

import numpy as np

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.blocks import block_sizes, largest_partner
from pebble.schedules.explicit.corner import FloatArray
from pebble.schedules.explicit.gemm import AXES, operand_of
from pebble.schedules.explicit.nest import Memory, Nest, visits_of_many
from pebble.workloads import Gemm
from pebble.workloads.base import Workload
from pebble.workloads.widths import Room, Widths

_MOST_PAIRS = 4096  # of sizes of blocks, beyond which each has one partner


@dataclass(frozen=True)
class WideNest(Nest):
    """The loop nest of a blocked GEMM in bytes; ``capacity`` is that of the memory."""

    stationary_bytes: int = 1  #: of a value of the block
    p_bytes: int = 1  #: of a value of the vectors of P, p x r
    q_bytes: int = 1  #: of those of Q, q x r
    values: int | None = None  #: the most that are held

    @classmethod
    def wide(cls, gemm: Gemm, room: Room, stationary: str, bp: int, bq: int, across: str) -> WideNest:
        """As `Nest.of`."""
        plain = Nest.of(gemm, room.bytes, stationary, bp, bq, across)
        first, second, streamed = plain.axes
        of = operand_bytes(room.widths)
        sides = (operand_of(first, streamed), operand_of(second, streamed))
        sizes = (plain.p, plain.q, plain.r, plain.bp, plain.bq)
        return cls(plain.axes, *sizes, room.bytes, of[stationary], of[sides[0]], of[sides[1]], room.values)

    def kept_across(self, height: int, width: int) -> int:
        free = self.capacity - self.q_bytes - self.stationary_bytes * height * width
        kept = min(self.r, max(0, free // (self.p_bytes * height)))
        if self.values is None:
            return kept
        return min(kept, max(0, (self.values - 1 - height * width) // height))

    def kept_down(self, row: int, width: int) -> int:
        steps = self.r
        if self.cols > 1:
            steps -= max(self.kept_across(self.height(r), self.bq) for r in (row, row + 1))
        free = self.capacity - self.p_bytes - self.stationary_bytes * self.bp * width
        kept = min(steps, max(0, free // (self.q_bytes * width)))
        if self.values is None:
            return kept
        return min(kept, max(0, (self.values - 1 - self.bp * width) // width))

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
    """The best schedule of each stationary operand and walk; about a millisecond.

    Of blocks with at most ``_MOST_PAIRS`` pairs of sizes every pair is looked at, and its traffic is exact: a pair that
    fits a memory fits every larger one. Of more, each size has the largest partner that fits.

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
    for stationary, (first, second, streamed) in AXES.items():
        bp, bq = _pairs(gemm, room, stationary)
        for across in (second, first) if len(bp) else ():
            walked = (first, second) if across == second else (second, first)
            sides = (bp, bq) if across == second else (bq, bp)
            names = [operand_of(axis, streamed) for axis in walked]
            extents = [getattr(gemm, axis) for axis in (*walked, streamed)]
            memories = [Memory(room.bytes, of[stationary], of[names[0]], of[names[1]])]
            memories += [Memory(room.values, 1, 1, 1)] if room.values is not None else []
            counted = visits_of_many((extents[0], extents[1], extents[2]), *sides, memories)
            visits = dict(zip(names, counted, strict=True)) | {stationary: extents[0] * extents[1]}
            cells = gemm.m * gemm.n
            inputs, spilled = visits["A"] + visits["B"], visits["C"] - cells
            order = np.lexsort((inputs + 2 * spilled, room.widths.read * inputs + 2 * room.widths.partial * spilled))
            best = int(order[0])
            yield _evaluate(gemm, room, stationary, int(bp[best]), int(bq[best]), across)


def _pairs(gemm: Gemm, room: Room, stationary: str) -> tuple[FloatArray, FloatArray]:
    """Sides of blocks that fit."""
    first, second, _ = AXES[stationary]
    of = operand_bytes(room.widths)
    own, wider = of[stationary], max(width for name, width in of.items() if name != stationary)
    found: list[tuple[int, int]] = []
    largest = dict.fromkeys((first, second), room.bytes // own)
    few = 4 * _sizes(gemm, first) * _sizes(gemm, second) <= _MOST_PAIRS
    for bp in block_sizes(getattr(gemm, first), largest[first]):
        partner = min(largest_partner(room.bytes, bp, own, wider), getattr(gemm, second))
        if room.values is not None:
            partner = min(partner, largest_partner(room.values, bp))
        if partner > 0:
            sizes = block_sizes(getattr(gemm, second), partner)
            found += [(bp, bq) for bq in (sizes if few else islice(sizes, 1))]
    both = np.array(found, np.float64).reshape(-1, 2)  # exact below 2^53; of what is larger about is enough
    return both[:, 0], both[:, 1]


def _sizes(gemm: Gemm, axis: str) -> int:
    """About half of how many sizes of blocks there are along an axis."""
    return isqrt(getattr(gemm, axis))


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

"""GEMM schedules in bands of blocks: one description for A-, B- and C-stationary blocks, slabs, and mixtures.

One output or inner axis q is cut into bands of any widths. Within a band, one operand X that has q stays, in blocks: X
has the axes (p, q), p is cut into as many blocks as the band says, and the third axis r streams by. The other two
operands are P (p x r), which every band reads once, and Q (q x r), which every block of a band reads once. With one
block a band is a slab: all of p stays. Bands with different X or numbers of blocks lie side by side.

At each index of r the shorter side of a block is held as a vector and the longer passes through one place, so a block
of s x t needs s t + min(s, t) + 1. The walk is a snake: from block to block in a band, then back in the next. Each
step passes vectors of the shared operand through a turned corner (`pebble.schedules.explicit.corner`): Q inside a band,
P from band to band if both keep the same operand. Kept partial sums of C save a store and a load each.

Gate and up of a network are one product, whose columns go in pairs: a value of B is two, and so is a cell of C until
both are complete and become one cell of H (`GateAndUp`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from pebble.schedules.explicit.corner import NO_CORNER, Corner, Side, Stage, best_corners
from pebble.units import ceil_div
from pebble.workloads import Gemm
from pebble.workloads.widths import ALIKE, FastMemory, Widths

# stationary operand -> (its two dimensions, the streamed one)
AXES = {"C": ("m", "n", "k"), "A": ("m", "k", "n"), "B": ("k", "n", "m")}
_OPERAND_OF = {frozenset("mk"): "A", frozenset("kn"): "B", frozenset("mn"): "C"}

Turn = tuple[Corner, Corner]  # how vectors come to stay in one block, and how they leave from the next


def operand_of(*axes: str) -> str:
    """The operand with these two dimensions."""
    return _OPERAND_OF[frozenset(axes)]


def other_axes(stationary: str, axis: str) -> tuple[str, str]:
    """Of bands along an axis: the axis that is cut into blocks, and the streamed one."""
    first, second, streamed = AXES[stationary]
    return (second if axis == first else first), streamed


@dataclass(frozen=True)
class Band:
    """``count`` bands of this ``width``, each with so many ``blocks`` of the operand that stays."""

    stationary: str
    width: int
    blocks: int
    count: int = 1


@dataclass(frozen=True)
class Steps:
    """The corners of one kind of band: inside it, from one such band to the next, to the first of the next kind."""

    across: Corner = NO_CORNER
    down: Turn = (NO_CORNER, NO_CORNER)
    next: Turn = (NO_CORNER, NO_CORNER)


def taken(widths: Widths, streams: int = 1) -> dict[str, int]:
    """What a value of A, B or C may take while blocks of it are worked on: of C, as a partial sum.

    ``streams``: columns of B and C that go together as one.
    """
    return {"A": widths.read, "B": streams * widths.read, "C": streams * widths.partial}


def visit_costs(memory: FastMemory, streams: int = 1) -> dict[str, int]:
    """What it counts that a value of each operand comes to fast memory; one of C comes and goes."""
    cost = memory.cost
    return {"A": cost.read, "B": streams * cost.read, "C": 2 * streams * cost.partial}


@dataclass(frozen=True)
class StationaryProduct(ABC):
    """A product of which one operand stays, part by part, and its exact traffic.

    Attributes
    ----------
    gemm : Gemm
    memory : FastMemory
        The memory, of values or of bytes.
    """

    streams: ClassVar[int] = 1  #: columns of B and C that go together

    gemm: Gemm
    memory: FastMemory

    @property
    @abstractmethod
    def visits(self) -> dict[str, int]:
        """How often values of each operand come to fast memory, in all."""

    @abstractmethod
    def _peak(self, of: Mapping[str, int]) -> int:
        """Most that is held at once, where values of the operands take so much."""

    @property
    @abstractmethod
    def name(self) -> str:
        """For tables."""

    def extent(self, axis: str) -> int:
        """A dimension by its letter."""
        return self.gemm.along(axis)

    @property
    def loads(self) -> dict[str, int]:
        """Values loaded, by operand."""
        initialised = 0 if self.gemm.accumulate else self.gemm.m * self.gemm.n
        return {**self.visits, "C": self.visits["C"] - initialised}

    @property
    def stores(self) -> dict[str, int]:
        """Values stored, by operand."""
        return {"A": 0, "B": 0, "C": self.visits["C"]}

    @cached_property
    def peak_elements(self) -> int:
        """Most values held at once."""
        return self._peak(taken(ALIKE, self.streams))

    @cached_property
    def limits(self) -> tuple[tuple[int, Mapping[str, int]], ...]:
        """What the memory holds at most, and what a value of each operand takes of it."""
        return tuple((size, taken(of, self.streams)) for size, of in self.memory.limits)

    @property
    def fits(self) -> bool:
        """Whether what is held at once is within the memory."""
        return all(self._peak(of) <= size for size, of in self.limits)

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return sum(self.loads.values()) + sum(self.stores.values())

    @property
    def compulsory_elements(self) -> int:
        """What any schedule moves."""
        return self.gemm.compulsory_elements

    @property
    def spilled(self) -> int:
        """Partial sums stored, and loaded again."""
        return self.visits["C"] - self.gemm.m * self.gemm.n

    @cached_property
    def bytes(self) -> int:
        """Loads plus stores, in bytes, partial sums at the width of accumulators."""
        cost, cells = self.memory.cost, self.gemm.m * self.gemm.n * (2 if self.gemm.accumulate else 1)
        inputs = cost.read * (self.visits["A"] + self.visits["B"])
        return inputs + 2 * cost.partial * self.spilled + cost.written * cells

    def traffic_json(self) -> dict[str, object]:
        """What is moved and held, as plain data."""
        traffic = {"loads_elements": dict(self.loads), "stores_elements": dict(self.stores)}
        fields: dict[str, object] = {**traffic, "peak_elements": self.peak_elements}
        if self.memory.widths != ALIKE:
            fields |= {"partial_sums_spilled": self.spilled, "widths_bytes": self.memory.widths.to_json()}
        return fields


@dataclass(frozen=True)
class BandedProduct(StationaryProduct):
    """A product in bands of blocks, and its exact traffic.

    Attributes
    ----------
    axis : {"m", "n", "k"}
        What is cut into bands.
    bands : tuple of Band
        In the order in which they run.
    """

    axis: str
    bands: tuple[Band, ...]

    def layout(self, band: Band) -> tuple[int, int, int]:
        """Of a band: the extent that is cut into blocks, that of the longest block, and the streamed one."""
        p, r = (self.extent(axis) for axis in other_axes(band.stationary, self.axis))
        return p, ceil_div(p, band.blocks), r

    @cached_property
    def steps(self) -> tuple[Steps, ...]:
        """The corners of each kind of band."""
        across = [self._across(band) for band in self.bands]
        results = []
        for i, band in enumerate(self.bands):
            down = nxt = (NO_CORNER, NO_CORNER)
            if band.count > 1:
                down = self._turn((band, across[i]), (band, across[i]))
            if i + 1 < len(self.bands) and self.bands[i + 1].stationary == band.stationary:
                nxt = self._turn((band, across[i]), (self.bands[i + 1], across[i + 1]))
            results.append(Steps(across[i], down, nxt))
        return tuple(results)

    def sides(self, band: Band, of: Mapping[str, int]) -> tuple[Side, Side]:
        """Of the longest block of a band, where values take so much: at a step inside the band, and at its end."""
        p_axis, r_axis = other_axes(band.stationary, self.axis)
        own, of_p, of_q = (
            of[name] for name in (band.stationary, operand_of(p_axis, r_axis), operand_of(self.axis, r_axis))
        )
        _, block, _ = self.layout(band)
        inside = Side(band.width, cell=own, vector=of_q, pivot=of_p)
        return inside, Side(block, cell=own, vector=of_p, pivot=of_q)

    def _across(self, band: Band) -> Corner:
        if band.blocks == 1:
            return NO_CORNER
        p, _, r = self.layout(band)
        limit = r if band.blocks == 2 else r // 2  # a block is through with what it got before it keeps more
        return self._corner(band, 0, p // band.blocks, limit)

    def _corner(self, band: Band, end: int, depth: int, limit: int) -> Corner:
        """The best at a step inside a band (0), or at its end (1)."""
        limits = []
        for size, of in self.limits:
            block = of[band.stationary] * self.layout(band)[1] * band.width
            limits.append((size - block, self.sides(band, of)[end]))
        return best_corners((Stage(depth, tuple(limits)),), limit)[0]

    def _turn(self, *sides: tuple[Band, Corner]) -> Turn:
        most = None
        for _ in range(2):  # the second time with what both can carry
            results = []
            for band, across in dict.fromkeys(sides):  # a band and the next of its kind have one corner
                r = self.layout(band)[2]
                alone = band.blocks == 1 and sum(b.count for b in self.bands) > 2
                limit = r // 2 if alone else r - across.vectors
                limit = limit if most is None else min(limit, most)
                results.append(self._corner(band, 1, band.width, limit))
            most = min(corner.vectors for corner in results)
        leave, enter = results[0], results[-1]
        return (leave, enter) if leave.vectors == enter.vectors else (NO_CORNER, NO_CORNER)

    @cached_property
    def visits(self) -> dict[str, int]:
        """How often values of each operand come to fast memory, in all."""
        visits = {"A": 0, "B": 0, "C": 0}
        number = 0
        for i, band in enumerate(self.bands):
            (p_axis, r_axis), (p, _, r), steps = (
                other_axes(band.stationary, self.axis),
                self.layout(band),
                self.steps[i],
            )
            first, second = operand_of(p_axis, r_axis), operand_of(self.axis, r_axis)
            visits[band.stationary] += band.count * band.width * p
            visits[first] += band.count * p * r
            across = (band.blocks - 1) * steps.across.vectors
            visits[second] += band.count * band.width * (band.blocks * r - across)
            far, inside = number % 2 == 0, band.count - 1  # bands end at the far side, and at the near one, in turn
            for at_far, times in ((far, ceil_div(inside, 2)), (not far, inside // 2)):
                visits[first] -= times * steps.down[0].vectors * self.end_block(band, at_far)
            number += band.count
            if i + 1 < len(self.bands):
                ends = (self.end_block(b, number % 2 == 1) for b in (band, self.bands[i + 1]))
                visits[first] -= steps.next[0].vectors * min(ends)
        return visits

    def end_block(self, band: Band, far: bool) -> int:
        """Extent of a band's last block or of its first: the longer ones come first."""
        p, block, _ = self.layout(band)
        return p // band.blocks if far else block

    def _peak(self, of: Mapping[str, int]) -> int:
        most = 0
        for i, band in enumerate(self.bands):
            steps, (inside, end) = self.steps[i], self.sides(band, of)
            _, block, _ = self.layout(band)
            extra = [max(inside.vector, end.vector) * (min(block, band.width) + 1), steps.across.footprint(inside)]
            extra += [corner.footprint(end) for corner in (*steps.down, steps.next[0])]
            extra += [self.steps[i - 1].next[1].footprint(end)] if i else []
            most = max(most, end.cell * block * band.width + max(extra))
        return most

    @property
    def name(self) -> str:
        """For tables: ``C-stationary, bands of m: 2 x 4096 (2 blocks)``; ``compulsory`` in front when it is."""
        kinds = dict.fromkeys(band.stationary for band in self.bands)
        label = ", ".join(f"{b.count} x {b.width} ({_blocks(b.blocks)}{_of(b, kinds)})" for b in self.bands)
        text = f"{' and '.join(kinds)}-stationary, bands of {self.axis}: {label}"
        return f"compulsory: {text}" if self.elements == self.compulsory_elements else text

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        kinds = dict.fromkeys(band.stationary for band in self.bands)
        first = self.bands[0]
        p, _ = other_axes(first.stationary, self.axis)
        sides = {self.axis: first.width, p: self.layout(first)[1]}
        return {
            "family": f"{' and '.join(kinds).lower()}-stationary",
            # of the first band; ``bands`` tells all
            "block": [sides[axis] for axis in AXES[first.stationary][:2]],
            "block_dimensions": list(AXES[first.stationary][:2]),
            "walks_first": p,
            "bands_of": self.axis,
            "bands": [
                {
                    "count": band.count,
                    "width": band.width,
                    "stationary": band.stationary,
                    "blocks": band.blocks,
                    "block": [band.width, self.layout(band)[1]],
                    "block_dimensions": [self.axis, other_axes(band.stationary, self.axis)[0]],
                    "vectors_carried": [steps.across.vectors, steps.down[0].vectors, steps.next[0].vectors],
                }
                for band, steps in zip(self.bands, self.steps, strict=True)
            ],
            **self.traffic_json(),
        }

    def each(self) -> Iterator[tuple[Band, Steps, bool]]:
        """Every band by itself, its corners, and whether the next is of the same kind."""
        for band, steps in zip(self.bands, self.steps, strict=True):
            for copy in range(band.count):
                yield band, steps, copy + 1 < band.count


@dataclass(frozen=True)
class GateAndUp(BandedProduct):
    """Both first products of a gated network in bands, in one kernel: A is X, and C is H, which is stored complete.

    ``gemm`` has one column for each of H: a pair of gate and up. What a pair takes of the memory is always counted as
    that of two, though it becomes one cell. Every cell stays until it is complete: ``spilled`` is 0.
    """

    streams: ClassVar[int] = 2

    @property
    def loads(self) -> dict[str, int]:
        """Values loaded, by operand: of B those of both weights."""
        return {"A": self.visits["A"], "B": self.streams * self.visits["B"], "C": 0}

    @property
    def compulsory_elements(self) -> int:
        """What any schedule moves."""
        return self.gemm.compulsory_elements + (self.streams - 1) * self.gemm.k * self.gemm.n

    @cached_property
    def bytes(self) -> int:
        """Loads plus stores, in bytes; a cell of H is stored as what reads it will find."""
        cost = self.memory.cost
        return cost.read * (self.loads["A"] + self.loads["B"]) + cost.written * self.stores["C"]


def _blocks(count: int) -> str:
    return "slab" if count == 1 else f"{count} blocks"


def _of(band: Band, kinds: dict[str, None]) -> str:
    return f" of {band.stationary}" if len(kinds) > 1 else ""

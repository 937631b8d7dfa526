"""Explicit schedules of the backward pass of a product, both products at once: a block stays, an axis streams by.

Values lie in three planes: A and dA over m x k, B and dB over k x n, dC over m x n. A block of one plane stays, with
all values that it has there, while the axis that the plane lacks streams by: at each of its indices the shorter vector
of the two other planes is held, and the longer passes through one place. A plane is read once for every block across
it; sums are stored each time, and loaded each time but the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Protocol, TypeVar

from pebble.units import ceil_div
from pebble.workloads.backward import GemmBackward
from pebble.workloads.widths import ALIKE, FastMemory, Widths

# plane -> its axes, the axis that streams by, and the planes that meet the first and the second axis of a block
PLANES = {"A": ("m", "k", "n", "C", "B"), "B": ("n", "k", "m", "C", "A"), "C": ("m", "n", "k", "A", "B")}
_FEW_BLOCKS = 64  # numbers of blocks along an axis that are all tried; further ones grow by a sixteenth


class _Fitting(Protocol):
    @property
    def fits(self) -> bool: ...


B = TypeVar("B", bound=_Fitting)


@dataclass(frozen=True)
class BackwardSchedule:
    """A legal schedule of dA := dC B^T and dB := A^T dC, and its exact traffic.

    Attributes
    ----------
    workload : GemmBackward
    memory : FastMemory
        The memory, of values or of bytes.
    stays : {"A", "B", "C"}
        Of which plane a block stays: with A its dA, with B its dB; C is dC.
    block : tuple of int
        Its extents, values along the two axes of the plane.
    """

    workload: GemmBackward
    memory: FastMemory
    stays: str
    block: tuple[int, int]

    @cached_property
    def visits(self) -> dict[str, int]:
        """How often the values of each plane come to fast memory."""
        p, q, _, first, second = PLANES[self.stays]
        sizes = self.workload.dimensions
        down, across = ceil_div(sizes[p], self.block[0]), ceil_div(sizes[q], self.block[1])
        return {self.stays: 1, first: across, second: down}

    @property
    def _sizes(self) -> dict[str, int]:
        m, n, k = self.workload.m, self.workload.n, self.workload.k
        return {"A": m * k, "B": k * n, "C": m * n}

    @property
    def loads(self) -> dict[str, int]:
        """Values loaded, by operand."""
        size, visits = self._sizes, self.visits
        inputs = {name: size[plane] * visits[plane] for name, plane in (("A", "A"), ("B", "B"), ("dC", "C"))}
        return {**inputs, **{f"d{plane}": size[plane] * (visits[plane] - 1) for plane in "AB"}}

    @property
    def stores(self) -> dict[str, int]:
        """Values stored, by operand."""
        return {f"d{plane}": self._sizes[plane] * self.visits[plane] for plane in "AB"}

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return sum(self.loads.values()) + sum(self.stores.values())

    @property
    def bytes(self) -> int:
        """The same in bytes: partial sums at the width of accumulators."""
        cost, loads = self.memory.cost, self.loads
        spilled = loads["dA"] + loads["dB"]
        inputs = cost.read * (loads["A"] + loads["B"] + loads["dC"])
        return inputs + 2 * cost.partial * spilled + cost.written * (self._sizes["A"] + self._sizes["B"])

    def peak(self, of: Widths) -> int:
        """Most that is held at once, where values take so much."""
        (s, t), w, p = self.block, of.read, of.partial
        if self.stays == "C":  # one product after the other, each with a vector of one kind
            return s * t * w + (min(s, t) + 1) * max(w, p)
        return s * t * (w + p) + min(s * w, t * (w + p)) + max(w, p)

    @property
    def peak_elements(self) -> int:
        """Most values held at once."""
        return self.peak(ALIKE)

    @property
    def fits(self) -> bool:
        """Whether what is held at once is within the memory."""
        return all(self.peak(of) <= size for size, of in self.memory.limits)

    @property
    def name(self) -> str:
        """For tables; ``compulsory`` in front when nothing is moved twice."""
        kept = "dC" if self.stays == "C" else f"{self.stays} and d{self.stays}"
        p, q = PLANES[self.stays][:2]
        text = f"both products at once, blocks of {kept} of {self.block[0]} {p} x {self.block[1]} {q}"
        return f"compulsory: {text}" if self.elements == self.workload.compulsory_elements else text

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        fields: dict[str, object] = {
            "kind": "backward",
            "stays": self.stays,
            "block": list(self.block),
            "block_dimensions": list(PLANES[self.stays][:2]),
            "loads_elements": self.loads,
            "stores_elements": self.stores,
            "peak_elements": self.peak_elements,
        }
        return fields if self.memory.widths == ALIKE else fields | {"widths_bytes": self.memory.widths.to_json()}


@dataclass(frozen=True)
class Elementwise:
    """Inputs or complete intermediates that come and go one by one, of each operand a value at a time.

    Attributes
    ----------
    memory : FastMemory
        The memory, of values or of bytes.
    loads, stores : dict of str to int
        Values, by operand.
    name : str
        When it is done: by itself, or beside what another part holds at its end.
    """

    memory: FastMemory
    loads: Mapping[str, int]
    stores: Mapping[str, int] = field(default_factory=dict)
    name: str = "as each sum is completed"

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return sum(self.loads.values()) + sum(self.stores.values())

    @property
    def peak_elements(self) -> int:
        """Values of as many operands; results take their place."""
        return len(self.loads)

    @property
    def bytes(self) -> int:
        """The same in bytes."""
        return self.memory.cost.read * self.elements

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {"kind": "elementwise", "loads_elements": dict(self.loads), "stores_elements": dict(self.stores)}


def backward_schedules(workload: GemmBackward, memory: FastMemory) -> Mapping[str, BackwardSchedule]:
    """The best schedule for each plane of which a block may stay; nothing for one of which none fits."""
    best: dict[str, BackwardSchedule] = {}
    for plane, (p, q, *_) in PLANES.items():
        build = partial(BackwardSchedule, workload, memory, plane)
        fits = list(even_blocks(workload.dimensions[p], workload.dimensions[q], 1, build))
        if fits:
            best[plane] = min(fits, key=lambda single: single.bytes)
    return best


def even_blocks(rows: int, cols: int, unit: int, build: Callable[[tuple[int, int]], B]) -> Iterator[B]:
    """For numbers of blocks along the rows, the fewest along the columns that fit, as even as they can be.

    Parameters
    ----------
    rows, cols, unit : int
        Extents, in values, and what the blocks' columns are a multiple of, but for the last.
    build : callable
        The schedule with blocks of so many rows and columns.
    """
    units, down = ceil_div(cols, unit), 1
    while down <= rows:
        s, low, high = ceil_div(rows, down), 0, units
        while low < high:
            middle = (low + high + 1) // 2
            if build((s, min(cols, middle * unit))).fits:
                low = middle
            else:
                high = middle - 1
        if low:
            yield build((s, min(cols, unit * ceil_div(units, ceil_div(units, low)))))
        down += 1 if down < _FEW_BLOCKS else down // 16

"""Explicit schedules of a product with block scales: a block of A, B or C stays, the third axis streams by.

Inputs come in slices along k as deep as a block of values that share a scale, each with its scales, so that no scale
comes without its block. *C stays*: slice by slice the shorter of the rows of A and the columns of B is held, and those
of the other pass one by one. *A stays*, or *B*: for each row or column of the other either the cells of C that it meets
are held and its slices pass, or it is held and the cells pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from pebble.schedules.explicit.backward import even_blocks
from pebble.units import ceil_div
from pebble.workloads.scaled import UNITS, ScaledGemm
from pebble.workloads.widths import FastMemory


@dataclass(frozen=True)
class ScaledSchedule:
    """A legal schedule of a product with block scales, and its exact traffic.

    Attributes
    ----------
    workload : ScaledGemm
    memory : FastMemory
        The memory, of bytes.
    stays : {"A", "B", "C"}
    block : tuple of int
        Its extents: rows of A, or columns of B, by k; rows by columns of C. Of k whole slices, or all.
    """

    workload: ScaledGemm
    memory: FastMemory
    stays: str
    block: tuple[int, int]

    @cached_property
    def visits(self) -> dict[str, int]:
        """How often values of each operand come to fast memory."""
        w, (s, t) = self.workload, self.block
        if self.stays == "C":
            return {"A": ceil_div(w.n, t), "B": ceil_div(w.m, s), "C": 1}
        other, side = ("B", w.m) if self.stays == "A" else ("A", w.n)
        return {self.stays: 1, other: ceil_div(side, s), "C": ceil_div(w.k, t)}

    @property
    def peak_units(self) -> int:
        """Most that is held at once, in units of 1/32 byte."""
        w, (s, t), p = self.workload, self.block, UNITS * self.memory.widths.partial
        deep = min(w.k, slice_of(w))
        a, b = w.formats
        if self.stays == "C":
            return p * s * t + min(s * a.size(deep) + b.size(deep), t * b.size(deep) + a.size(deep))
        own, other = (a, b) if self.stays == "A" else (b, a)
        return s * own.size(t) + min(s * p + other.size(deep), other.size(t) + p)

    @property
    def fits(self) -> bool:
        """Whether that is within the memory."""
        return self.peak_units <= UNITS * self.memory.bytes

    @property
    def peak_elements(self) -> int:
        """Values that what it holds would be at most."""
        return self.workload.values_in(ceil_div(self.peak_units, UNITS))

    @property
    def loads(self) -> dict[str, int]:
        """Values loaded, by operand; scales left out."""
        w, visits = self.workload, self.visits
        return {"A": w.m * w.k * visits["A"], "B": w.k * w.n * visits["B"], "C": w.m * w.n * (visits["C"] - 1)}

    @property
    def stores(self) -> dict[str, int]:
        """Values stored."""
        return {"C": self.workload.m * self.workload.n * self.visits["C"]}

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return sum(self.loads.values()) + sum(self.stores.values())

    @property
    def bytes(self) -> int:
        """Bytes moved: values and scales, partial sums at the width of accumulators."""
        w, visits, cost = self.workload, self.visits, self.memory.cost
        inputs = sum(o.bytes * visits[o.name[-1]] for o in w.operands if o.read)
        return inputs + w.m * w.n * (2 * cost.partial * (visits["C"] - 1) + cost.written)

    @property
    def name(self) -> str:
        """For tables."""
        axes = {"A": "m x {} k", "B": "n x {} k", "C": "m x {} n"}[self.stays].format(self.block[1])
        text = f"blocks of {self.stays} of {self.block[0]} {axes}"
        return f"compulsory: {text}" if self.bytes == self.workload.compulsory_bytes else text

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {
            "kind": "block scales",
            "stays": self.stays,
            "block": list(self.block),
            "visits": self.visits,
            "peak_bytes": ceil_div(self.peak_units, UNITS),
        }


def slice_of(workload: ScaledGemm) -> int:
    """Values along k of a slice: those that share a scale in either operand; one where none do."""
    return max(1, *(of.block for of in workload.formats))


def scaled_schedules(workload: ScaledGemm, memory: FastMemory) -> Mapping[str, ScaledSchedule]:
    """The best for each operand of which a block may stay; nothing for one of which none fits."""
    w, deep = workload, slice_of(workload)
    extents = {"A": (w.m, w.k, deep), "B": (w.n, w.k, deep), "C": (w.m, w.n, 1)}
    found = {x: list(even_blocks(*of, partial(ScaledSchedule, w, memory, x))) for x, of in extents.items()}
    return {f"{stays} stays": min(fits, key=lambda one: one.bytes) for stays, fits in found.items() if fits}

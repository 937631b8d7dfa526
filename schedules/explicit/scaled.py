"""Explicit schedules of a product with block scales: a block of A, B or C stays, the third axis streams by.

Inputs come in slices along k as deep as a block of values that share a scale, each with its scales, so that no scale
comes without its block. *C stays*: slice by slice the shorter of the rows of A and the columns of B is held, and those
of the other pass one by one. *A stays*, or *B*: for each row or column of the other either the cells of C that it meets
are held and its slices pass, or it is held and the cells pass. Scales that rows share as well stay from one row to the
next: a block of rows that begins within those of a scale loads it once more.

A network runs in panels of tokens: their rows of X stay, and their sums of Y. Columns of the hidden layer come in
groups that share scales: a column of each up weight passes, the group's cells of H are completed, and for each column
of W2 its slice of the group passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import gcd

from pebble.schedules.explicit.backward import even_blocks
from pebble.units import ceil_div
from pebble.workloads.scaled import UNITS, Format, Formatted, ScaledFfn, ScaledGemm
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
        passing = other.size(deep) + (_scales(other, t) if other.rows > 1 else 0)
        return s * own.size(t) + min(s * p + passing, other.size(t) + p)

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
        (s, t), sides = self.block, dict(zip("AB", zip((w.m, w.n), w.formats, strict=True), strict=True))
        extent = {"C": {"A": s, "B": t}, "A": {"A": s}, "B": {"B": s}}[self.stays]
        inputs = 0
        for name, (rows, of) in sides.items():
            inputs += visits[name] * _moved(of, rows, w.k, extent.get(name, rows))
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


def _scales(of: Format, depth: int) -> int:
    """Units of the scales of a row."""
    return UNITS * of.scale * ceil_div(depth, of.block) if of.block else 0


def _moved(of: Format, rows: int, depth: int, extent: int) -> int:
    """Bytes of all rows and their scales once, in blocks of so many rows, which may begin within those of a scale."""
    begin = ceil_div(rows, extent) - 1
    scales = ceil_div(rows, of.rows) + begin - begin * gcd(extent, of.rows) // of.rows
    return rows * ceil_div(depth * of.bits, 8) + scales * _scales(of, depth) // UNITS


def slice_of(workload: Formatted) -> int:
    """Values along the sum of a slice: those that share a scale in any operand; one where none do."""
    return max(1, *(of.block for of in workload.formats))


def scaled_schedules(workload: ScaledGemm, memory: FastMemory) -> Mapping[str, ScaledSchedule]:
    """The best for each operand of which a block may stay; nothing for one of which none fits."""
    w, deep = workload, slice_of(workload)
    extents = {"A": (w.m, w.k, deep), "B": (w.n, w.k, deep), "C": (w.m, w.n, 1)}
    found = {x: list(even_blocks(*of, partial(ScaledSchedule, w, memory, x))) for x, of in extents.items()}
    return {f"{stays} stays": min(fits, key=lambda one: one.bytes) for stays, fits in found.items() if fits}


@dataclass(frozen=True)
class ScaledPanels:
    """A legal schedule of a network with block scales in panels of tokens, and its exact traffic.

    Attributes
    ----------
    workload : ScaledFfn
    memory : FastMemory
        The memory, of bytes.
    size : int
        Tokens of a panel.
    """

    workload: ScaledFfn
    memory: FastMemory
    size: int

    @property
    def panels(self) -> int:
        """How many there are."""
        return ceil_div(self.workload.tokens, self.size)

    def peak_units(self, size: int) -> int:
        """Most that a panel of so many tokens holds at once, in units of 1/32 byte."""
        w, of = self.workload, self.memory.widths
        x, weights, h = w.formats
        group = min(w.hidden, slice_of(w))
        cell = max(UNITS * of.hidden, UNITS * h.bits // 8)
        token = x.size(w.d_model) + UNITS * of.partial * w.d_out + w.up_products * group * cell + _scales(h, group)
        passing = max(w.up_products * weights.size(w.d_model), weights.size(group))
        return size * token + passing

    @property
    def peak_elements(self) -> int:
        """Values that what it holds would be at most."""
        return self.workload.values_in(ceil_div(self.peak_units(self.size), UNITS))

    @property
    def loads(self) -> dict[str, int]:
        """Values loaded, by operand; scales left out."""
        w = self.workload
        ups = dict.fromkeys(("Wg", "Wu") if w.gated else ("W1",), w.d_model * w.hidden * self.panels)
        return {"X": w.tokens * w.d_model, **ups, "W2": w.hidden * w.d_out * self.panels}

    @property
    def stores(self) -> dict[str, int]:
        """Values stored."""
        return {"Y": self.workload.tokens * self.workload.d_out}

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return sum(self.loads.values()) + sum(self.stores.values())

    @property
    def bytes(self) -> int:
        """Bytes moved: values and scales."""
        w = self.workload
        x, weights, _ = w.formats
        ups = w.up_products * _moved(weights, w.hidden, w.d_model, w.hidden)
        # a slice of W2 has the scales of its group, which none shares
        down = _moved(weights, w.d_out, w.hidden, w.d_out)
        rows = _moved(x, w.tokens, w.d_model, self.size)
        return rows + self.panels * (ups + down) + self.memory.cost.written * w.tokens * w.d_out

    @property
    def name(self) -> str:
        """For tables."""
        text = f"panels of {self.size} tokens ({self.panels})"
        return f"compulsory: {text}" if self.bytes == self.workload.compulsory_bytes else text

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        peak = ceil_div(self.peak_units(self.size), UNITS)
        return {"kind": "panels with block scales", "size": self.size, "panels": self.panels, "peak_bytes": peak}


def scaled_panels(workload: ScaledFfn, memory: FastMemory) -> Mapping[str, ScaledPanels]:
    """The fewest panels that fit; nothing where not one token fits."""
    one = ScaledPanels(workload, memory, 1)
    base = one.peak_units(0)
    fits = min(workload.tokens, (UNITS * memory.bytes - base) // (one.peak_units(1) - base))
    if fits < 1:
        return {}
    size = ceil_div(workload.tokens, ceil_div(workload.tokens, fits))
    return {"panels of tokens": ScaledPanels(workload, memory, size)}

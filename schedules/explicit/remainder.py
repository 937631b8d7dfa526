"""A product whose stationary operand just does not fit: it stays but for a corner, which is computed apart.

If an operand X (p x q) is cut into bands of q so that a band is a little more than fast memory holds, one band more
costs a whole pass of P (p x r). Instead every band stays without its last a x b values, so that it fits. At each index
of the streamed axis r the shorter side of a band is there and the longer passes, as everywhere; only the products of
the corner are left out. At last the corners of all n bands, which have their a indices of p in common, make one block
of a x n b. It reads a vectors of P and n b of Q once more: with e values too many in a band, about 2 sqrt(n e) vectors
instead of p.

Where X is an input, results of the corner's vectors are stored incomplete and loaded again. Powers of two are where
this matters: 4096 x 4096 results in 32 MiB of bf16 leave no room for one vector, and a corner of 64 x 65 apart moves
1 % more than the inputs, where two blocks move 36 % more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isqrt

from pebble.schedules.explicit.blocks import even
from pebble.schedules.explicit.gemm import AXES, StationaryProduct, operand_of, other_axes, taken, visit_costs
from pebble.units import ceil_div
from pebble.workloads import Gemm
from pebble.workloads.widths import FastMemory

_FEWER = 2  # bands fewer than where nothing but what stays would have to fit
_AROUND = 3  # sides of a corner beside the best, of the smallest


@dataclass(frozen=True)
class BandsWithRemainder(StationaryProduct):
    """A product in bands of one block each that lack a corner, and its exact traffic.

    Attributes
    ----------
    stationary : {"A", "B", "C"}
    axis : {"m", "n", "k"}
        What is cut into bands, q.
    count : int
        Bands, as even as whole numbers allow, longer ones first.
    corner : tuple of int
        a and b: the last indices of p, and of each band, whose products are left to the end.
    """

    stationary: str
    axis: str
    count: int
    corner: tuple[int, int]

    @property
    def axes(self) -> tuple[str, str, str]:
        """p, q and r."""
        p, r = other_axes(self.stationary, self.axis)
        return p, self.axis, r

    @property
    def operands(self) -> tuple[str, str]:
        """P, which every band reads, and Q, of which every band reads its part."""
        p, q, r = self.axes
        return operand_of(p, r), operand_of(q, r)

    @property
    def widths(self) -> list[int]:
        """Of the bands."""
        return [size for size, times in even(self.extent(self.axis), self.count) for _ in range(times)]

    @property
    def visits(self) -> dict[str, int]:
        p, q, r = (self.extent(axis) for axis in self.axes)
        (a, b), (first, second) = self.corner, self.operands
        result = {self.stationary: p * q, first: (self.count * p + a) * r, second: (q + self.count * b) * r}
        return {name: result[name] for name in "ABC"}

    def _peak(self, of: Mapping[str, int]) -> int:
        p, q, _ = (self.extent(axis) for axis in self.axes)
        (a, b), width = self.corner, ceil_div(q, self.count)
        own, vector = of[self.stationary], max(of[name] for name in self.operands)
        band = own * (p * width - a * b) + vector * (min(p, width) + 1)
        return max(band, own * a * self.count * b + vector * (min(a, self.count * b) + 1))

    @property
    def name(self) -> str:
        """For tables: ``C-stationary, 1 band of m, a corner of 64 x 65 (n x m) apart``."""
        p, q, _ = self.axes
        a, b = self.corner
        bands = f"{self.count} band{'s' if self.count > 1 else ''} of {q}"
        of_each = " of each" if self.count > 1 else ""
        return f"{self.stationary}-stationary, {bands}, a corner of {a} x {b} ({p} x {q}){of_each} apart"

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        p, q, _ = self.axes
        sides = {p: self.extent(p), q: self.widths[0]}
        return {
            "family": f"{self.stationary.lower()}-stationary",
            "block": [sides[axis] for axis in AXES[self.stationary][:2]],
            "block_dimensions": list(AXES[self.stationary][:2]),
            "walks_first": p,
            "bands_of": q,
            "bands": [
                {
                    "count": times,
                    "width": width,
                    "stationary": self.stationary,
                    "blocks": 1,
                    "block": [width, sides[p]],
                    "block_dimensions": [q, p],
                    "corner_apart": [self.corner[1], self.corner[0]],
                }
                for width, times in even(self.extent(q), self.count)
            ],
            **self.traffic_json(),
        }


def remainders(gemm: Gemm, memory: FastMemory) -> Iterator[BandsWithRemainder]:
    """Of each operand, way of cutting and number of bands the best corner, where one is needed and fits."""
    of, visit = taken(memory.widths), visit_costs(memory)
    for stationary, (first, second, _) in AXES.items():
        for axis in (first, second):
            single = BandsWithRemainder(gemm, memory, stationary, axis, 1, (0, 0))
            p, q, _ = (single.extent(letter) for letter in single.axes)
            own, vector = of[stationary], max(of[name] for name in single.operands)
            most = ceil_div(p * q * own, memory.bytes)
            for count in range(max(1, most - _FEWER), min(q, most + 1) + 1):
                width = ceil_div(q, count)
                excess = ceil_div(own * p * width + vector * (min(p, width) + 1) - memory.bytes, own)
                sides = _sides(excess, [visit[name] for name in single.operands], count) if excess > 0 else ()
                for a, b in sides:
                    if 0 < a < p and 0 < b < q // count and (tried := replace(single, count=count, corner=(a, b))).fits:
                        yield tried
                        break


def _sides(excess: int, weights: list[int], count: int) -> list[tuple[int, int]]:
    """Corners a x b of at least ``excess`` values, least ``weights[0] a + weights[1] count b`` first."""
    about = isqrt(excess * count * weights[1] // weights[0])
    around = _AROUND + isqrt(about)  # whole numbers move the best by about so much
    result = {
        (ceil_div(excess, ceil_div(excess, a)), ceil_div(excess, a))
        for a in range(max(1, about - around), about + around + 1)
    }
    return sorted(result, key=lambda single: (weights[0] * single[0] + weights[1] * count * single[1], single))

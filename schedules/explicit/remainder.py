"""What just does not fit stays but for a corner, which is computed apart: the stationary operand of one product;
panels of two products, of the output or of its weights.

If an operand X (p x q) is cut into bands of q so that a band is a little more than fast memory holds, one band more
costs a whole pass of P (p x r). Instead every band stays without its last a x b values, so that it fits. At each index
of the streamed axis r the shorter side of a band is there and the longer passes, as everywhere; only the products of
the corner are left out. At last the corners of all n bands, which have their a indices of p in common, make one block
of a x n b. It reads a vectors of P and n b of Q once more: with e values too many in a band, about 2 sqrt(n e) vectors
instead of p.

Where X is an input, results of the corner's vectors are stored incomplete and loaded again. Powers of two are where
this matters: 4096 x 4096 results in 32 MiB of bf16 leave no room for one vector, and a corner of 64 x 65 apart moves
1 % more than the inputs, where two blocks move 36 % more.

Row panels of A and Y stay while B and D stream by, or column panels of B and D while A and Y do, as in `chain`. If a
panel holds a little more than fast memory, one panel more costs a whole pass of what streams. Instead a corner is left
out, and the corners of all n panels are one block at the end; the cells of H that it needs are stored when they are
complete, and loaded then.

- ``rows``: of Y the last u columns of the last c rows of each panel. For each of the f columns of H n c cells come
  again, and u values of D: 2 n c f + f u values more, about 2 f sqrt(2 n e) where a panel has e values too many.
- ``hidden``: of D the last u columns of the last c rows of each panel. For each of the m rows n c cells of H come
  again, and u partial sums of Y come and go: 2 m (n c + u) values more, about 4 m sqrt(n e).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isqrt

from pebble.schedules.explicit.blocked import even
from pebble.schedules.explicit.chain import SIDES, Chain, ChainTraffic
from pebble.schedules.explicit.gemm import AXES, StationaryProduct, operand_of, other_axes, taken, visit_costs
from pebble.units import ceil_div
from pebble.workloads import Gemm
from pebble.workloads.widths import ALIKE, FastMemory, Widths

_FEWER_BANDS = 2  # bands fewer than where nothing but what stays would have to fit
_AROUND_A_SIDE = 3  # sides of a corner beside the best, of the smallest


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
            for count in range(max(1, most - _FEWER_BANDS), min(q, most + 1) + 1):
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
    around = _AROUND_A_SIDE + isqrt(about)  # whole numbers move the best by about so much
    result = {
        (ceil_div(excess, ceil_div(excess, a)), ceil_div(excess, a))
        for a in range(max(1, about - around), about + around + 1)
    }
    return sorted(result, key=lambda single: (weights[0] * single[0] + weights[1] * count * single[1], single))


_FEWER_PANELS = 2  # panels fewer than where nothing but what stays would have to fit
_AROUND_A_LINE = 3  # lines of a corner beside the best, of the smallest


@dataclass(frozen=True)
class PanelsWithRemainder(ChainTraffic):
    """Panels that lack a corner, and their exact traffic.

    Attributes
    ----------
    chain : Chain
        Without softmax state or a mask.
    memory : FastMemory
        The memory.
    side : {"rows", "hidden"}
        What is cut into panels: rows of A and Y, or columns of H.
    panels : int
        As even as whole numbers allow, longer ones first.
    corner : tuple of int
        c and u: the last lines of each panel, and the last columns of Y, whose products are left to the end.
    """

    chain: Chain
    memory: FastMemory
    side: str
    panels: int
    corner: tuple[int, int]

    @property
    def extents(self) -> list[int]:
        """Lines of the panels."""
        return [size for size, times in self.sizes for _ in range(times)]

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Lines of a panel, and how many there are of them."""
        return even(self.lines, self.panels)

    @property
    def lines(self) -> int:
        """Rows or hidden columns, in all."""
        return self.chain.m if self.side == "rows" else self.chain.f

    @property
    def spilled(self) -> int:
        """Cells of H that are stored, and loaded again."""
        return self.panels * self.corner[0] * (self.chain.f if self.side == "rows" else self.chain.m)

    @property
    def loads(self) -> dict[str, int]:
        """Values loaded, by operand."""
        c, n, u = self.chain, self.panels, self.corner[1]
        a, b, outputs = c.m * c.k, c.streams * c.k * c.f, c.m * c.l
        if self.side == "rows":
            return {"A": a, "B": n * b, "D": (n * c.l + u) * c.f, "H": self.spilled, "Y": 0}
        return {"A": n * a, "B": b, "D": c.f * c.l, "H": self.spilled, "Y": (n - 1) * outputs + c.m * u}

    @property
    def stores(self) -> dict[str, int]:
        """Values stored, by operand."""
        return {"H": self.spilled, "Y": self.loads["Y"] + self.chain.m * self.chain.l}

    @property
    def peak_elements(self) -> int:
        """Most values held at once."""
        return self.taken(ALIKE)

    @property
    def fits(self) -> bool:
        """Whether what is held at once is within the memory."""
        return all(self.taken(of) <= size for size, of in self.memory.limits)

    def taken(self, widths: Widths) -> int:
        """The most that is held at once, each value at its width."""
        chain, (c, u), lines = self.chain, self.corner, ceil_div(self.lines, self.panels)
        w, initialised, p = widths.read, widths.hidden, widths.partial
        rows = self.side == "rows"
        own, passing, in_corner = (p, w, w) if rows else (w, max(w, p), max(w, p))
        stays = w * chain.k + p * chain.l if rows else w * (chain.streams * chain.k + chain.l)
        # the cells of one line across the panel, initialised or complete, and a value that passes
        extra = max(chain.streams * initialised * lines + w, w * lines + passing)
        block = own * self.panels * c * u + in_corner * (min(self.panels * c, u) + 1)
        return max(lines * stays - own * c * u + extra, block)

    def describe(self) -> str:
        """A phrase for tables."""
        c, u = self.corner
        text = ", ".join(f"{times} x {size} {self.side} (panel)" for size, times in self.sizes)
        of_each = " of each" if self.panels > 1 else ""
        what = f"of Y of the last {c} rows" if self.side == "rows" else f"of W2 of the last {c} hidden"
        return f"{text}, {u} columns {what}{of_each} apart"


def best_panels_with_remainder(chain: Chain, memory: FastMemory) -> PanelsWithRemainder | None:
    """The one that moves least among numbers of panels of which one would just not fit; None where there is none."""
    if chain.state or chain.masked or chain.m < 2 or chain.f < 2:
        return None
    results: list[PanelsWithRemainder] = []
    for side in SIDES:
        single = PanelsWithRemainder(chain, memory, side, 1, (0, 0))
        most = ceil_div(single.taken(memory.widths), memory.bytes)
        for panels in range(max(1, most - _FEWER_PANELS), min(single.lines, most + 1) + 1):
            results += _with_corners(replace(single, panels=panels))
    return min(results, key=lambda single: (single.bytes, single.elements, single.panels), default=None)


def _with_corners(bare: PanelsWithRemainder) -> Iterator[PanelsWithRemainder]:
    """The same with corners that make it fit."""
    rows, capacity = bare.side == "rows", bare.memory
    own = capacity.widths.partial if rows else capacity.widths.read
    excess = ceil_div(bare.taken(capacity.widths) - capacity.bytes, own)
    if excess <= 0:
        return
    # what a column of the corner costs over a line of it
    column, line = (1, 2 * bare.panels) if rows else (2 * capacity.cost.partial, 2 * capacity.cost.read * bare.panels)
    about = isqrt(excess * column // line)
    around = _AROUND_A_LINE + isqrt(about)  # whole numbers move the best by about so much
    for c in range(max(1, about - around), min(bare.lines // bare.panels - 1, about + around) + 1):
        u = ceil_div(excess, c)
        single = replace(bare, corner=(ceil_div(excess, u), u))
        if u < bare.chain.l and single.fits:
            yield single

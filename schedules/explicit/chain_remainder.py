"""Panels of two products that just do not fit: of the output, or of its weights, a corner is left to the end.

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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isqrt

from pebble.schedules.explicit.blocks import even
from pebble.schedules.explicit.chain import SIDES, Chain, ChainTraffic
from pebble.units import ceil_div
from pebble.workloads.widths import ALIKE, FastMemory, Widths

_FEWER = 2  # panels fewer than where nothing but what stays would have to fit
_AROUND = 3  # lines of a corner beside the best, of the smallest


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
        own, passing, apart = (p, w, w) if rows else (w, max(w, p), max(w, p))
        stays = w * chain.k + p * chain.l if rows else w * (chain.streams * chain.k + chain.l)
        # the cells of one line across the panel, begun or complete, and a value that passes
        beside = max(chain.streams * initialised * lines + w, w * lines + passing)
        block = own * self.panels * c * u + apart * (min(self.panels * c, u) + 1)
        return max(lines * stays - own * c * u + beside, block)

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
        for panels in range(max(1, most - _FEWER), min(single.lines, most + 1) + 1):
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
    around = _AROUND + isqrt(about)  # whole numbers move the best by about so much
    for c in range(max(1, about - around), min(bare.lines // bare.panels - 1, about + around) + 1):
        u = ceil_div(excess, c)
        single = replace(bare, corner=(ceil_div(excess, u), u))
        if u < bare.chain.l and single.fits:
            yield single

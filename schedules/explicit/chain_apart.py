"""Row panels of two products that just do not fit: of Y a corner is left to the end.

Panels of A and Y stay, B and D stream by, as in `chain`. If a panel holds a little more than fast memory, one panel
more costs a whole pass of B and D. Instead the last u columns of Y of the last a rows of each of n panels are left out.
The cells of H of these rows are stored when they are complete, and at the end loaded once more, with the last u columns
of D: of f columns of H 2 n a f + f u values, about 2 f sqrt(2 n e) where a panel has e values too many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isqrt

from pebble.schedules.explicit.blocks import even
from pebble.schedules.explicit.chain import Chain
from pebble.units import ceil_div
from pebble.workloads.widths import Room, Widths

_ALIKE = Widths(1, 1, 1, 1)
_FEWER = 2  # panels fewer than where nothing but what stays would have to fit
_AROUND = 3  # rows of a corner beside the best in whole numbers


@dataclass(frozen=True)
class PanelsApart:
    """Panels that lack a corner of Y, and their exact traffic.

    Attributes
    ----------
    chain : Chain
        Without softmax state or a mask.
    capacity : int
        Values that fast memory holds, or bytes where there is a ``room``.
    panels : int
        As even as whole numbers allow, taller ones first.
    corner : tuple of int
        a and u: the last rows of each panel, and the last columns of Y, whose products are left to the end.
    room : Room, optional
        A memory of bytes.
    """

    chain: Chain
    capacity: int
    panels: int
    corner: tuple[int, int]
    room: Room | None = None

    @property
    def heights(self) -> list[int]:
        """Rows of the panels."""
        return [size for size, times in even(self.chain.m, self.panels) for _ in range(times)]

    @property
    def loads(self) -> dict[str, int]:
        """Values loaded, by operand."""
        c, (a, u) = self.chain, self.corner
        b, d = self.panels * c.streams * c.k * c.f, (self.panels * c.l + u) * c.f
        return {"A": c.m * c.k, "B": b, "D": d, "H": self.panels * a * c.f, "Y": 0}

    @property
    def stores(self) -> dict[str, int]:
        """Values stored, by operand."""
        return {"H": self.panels * self.corner[0] * self.chain.f, "Y": self.chain.m * self.chain.l}

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return sum(self.loads.values()) + sum(self.stores.values())

    @property
    def peak_elements(self) -> int:
        """Most values held at once."""
        return self.taken(_ALIKE)

    @property
    def fits(self) -> bool:
        """Whether what is held at once is within the capacity."""
        if self.room is None:
            return self.peak_elements <= self.capacity
        return self.taken(self.room.widths) <= self.capacity and self.room.holds(self.peak_elements)

    def taken(self, widths: Widths) -> int:
        """The most that is held at once, each value at its width."""
        c, (a, u), rows = self.chain, self.corner, ceil_div(self.chain.m, self.panels)
        w, p = widths.read, widths.partial
        cells = max(c.streams * widths.hidden, w) * rows + w  # of one column, and a value that passes
        panel = rows * (w * c.k + p * c.l) - p * a * u + cells
        return max(panel, p * self.panels * a * u + w * (min(self.panels * a, u) + 1))

    def describe(self) -> str:
        """A phrase for tables."""
        a, u = self.corner
        told = ", ".join(f"{times} x {size} rows (panel)" for size, times in even(self.chain.m, self.panels))
        of_each = " of each" if self.panels > 1 else ""
        return f"{told}, {u} columns of Y of the last {a} rows{of_each} apart"


def best_panels_apart(chain: Chain, capacity: int, room: Room | None = None) -> PanelsApart | None:
    """The one that moves least among numbers of panels of which one would just not fit; None where there is none."""
    if chain.state or chain.masked or chain.l < 2 or chain.f < 2:
        return None
    widths = _ALIKE if room is None else room.widths
    whole = chain.m * (widths.read * chain.k + widths.partial * chain.l)
    most = ceil_div(whole, capacity)
    found = [
        one
        for panels in range(max(1, most - _FEWER), min(chain.m, most) + 1)
        for one in _with_corners(PanelsApart(chain, capacity, panels, (0, 0), room), widths)
    ]
    return min(found, key=lambda one: (one.elements, one.panels), default=None)


def _with_corners(bare: PanelsApart, widths: Widths) -> Iterator[PanelsApart]:
    """The same with corners that make it fit."""
    excess = ceil_div(bare.taken(widths) - bare.capacity, widths.partial)
    if excess <= 0:
        return
    about = isqrt(excess // (2 * bare.panels))
    for a in range(max(1, about - _AROUND), min(bare.chain.m // bare.panels - 1, about + _AROUND) + 1):
        u = ceil_div(excess, a)
        one = replace(bare, corner=(ceil_div(excess, u), u))
        if u < bare.chain.l and one.fits:
            yield one

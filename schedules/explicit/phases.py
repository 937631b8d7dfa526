"""Two products in a row in two phases: some columns of Y along with H, the others afterwards.

Panels of rows of A stay, and with them the first c columns of Y; B and those columns of D stream by, and H is stored.
Then the other columns of Y are one product, H times the rest of D. So a pass of the weights need not serve all of Y:
A alone leaves more room than A and Y, accumulators of Y are as wide as they are, and what A leaves free begins Y. With
c = 0 the phases are two kernels.

The last panel may *hand on* columns of H: for the rows of the first block of Y afterwards the last w columns are
neither stored nor loaded. They lie beside the panel, or take the place of A by a turned corner, and give way to Y by
another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pebble.schedules.explicit.chain import Band, Chain, ChainPlan, ChainTraffic, is_panel
from pebble.schedules.explicit.corner import NO_CORNER, Corner, Side
from pebble.schedules.explicit.gemm import BandedProduct
from pebble.schedules.explicit.gemm_search import ExplicitProduct
from pebble.workloads.widths import ALIKE, FastMemory, Widths


@dataclass(frozen=True)
class Handover:
    """Columns of H that stay from the first phase to the second.

    Attributes
    ----------
    rows : int
        Of the first block of the second phase; the last ones of the last panel.
    leave, enter : Corner
        How the columns come to stay in the place of A, and how they give way to Y.
    """

    rows: int = 0
    leave: Corner = NO_CORNER
    enter: Corner = NO_CORNER

    @property
    def cells(self) -> int:
        """Of H, neither stored nor loaded."""
        return self.rows * self.leave.vectors


@dataclass(frozen=True)
class Phases(ChainTraffic):
    """Both phases, and their exact traffic.

    Attributes
    ----------
    chain : Chain
        Without softmax state or a mask.
    memory : FastMemory
        The memory.
    first : ChainPlan
        The first phase, a chain with the first columns of Y, which besides stores H.
    rest : ExplicitProduct
        The product of H and the other columns of D.
    handed : Handover
    """

    chain: Chain
    memory: FastMemory
    first: ChainPlan
    rest: ExplicitProduct
    handed: Handover = Handover()

    @property
    def columns(self) -> int:
        """Of Y, in the first phase."""
        return self.first.chain.l

    @cached_property
    def loads(self) -> dict[str, int]:
        """Values loaded, by operand."""
        single, other = self.first.loads, self.rest.loads
        both = {"D": single["D"] + other["B"], "H": other["A"] - self.handed.cells, "Y": single["Y"] + other["C"]}
        return {"A": single["A"], "B": single["B"], **both}

    @cached_property
    def stores(self) -> dict[str, int]:
        """Values stored, by operand."""
        cells = self.chain.m * self.chain.f - self.handed.cells
        return {"H": cells, "Y": self.first.stores["Y"] + self.rest.stores["C"]}

    @cached_property
    def peak_elements(self) -> int:
        """Most values held at once."""
        return max(self.first.peak_elements, self.rest.peak_elements, self._handing(ALIKE))

    @property
    def fits(self) -> bool:
        """Whether what is handed on fits; each phase does by itself."""
        return all(self._handing(of) <= size for size, of in self.memory.limits)

    def _handing(self, widths: Widths) -> int:
        """The most that is held while columns of H come to stay and give way, each value at its width."""
        if not self.handed.cells:
            return 0
        c, (last, _), rows = self.first.chain, self.first.runs[-1], self.handed.rows
        leave, enter, w = self.handed.leave, self.handed.enter, widths.read
        beside = w * rows * leave.plain
        held = last.extent * (w * c.k + widths.partial * c.l)
        left = held + beside + panel_works(c, last.extent, widths)
        if leave.turned:
            left = max(left, held + beside + turned_part(leave).room(leaving_side(c, last.extent, widths)))
        block = widths.partial * rows * (self.chain.l - c.l)
        return max(left, block + enter.room(entering_side(rows, widths)))

    def describe(self) -> str:
        """A phrase for tables."""
        along = f" with {self.columns} columns of Y" if self.columns else ""
        text = f"{self.first.describe()}{along} and H stored, then {self.rest.name}"
        return f"{text}, {self.handed.cells} cells of H handed on" if self.handed.cells else text


def hands_on(first: ChainPlan, rest: ExplicitProduct) -> bool:
    """Whether the last panel may hand on H to the first block afterwards: it has its rows, that all columns of Y."""
    band: Band = first.runs[-1][0]
    if not is_panel(first.chain, first.side, band) or band.block > 1:
        return False
    if not isinstance(rest, BandedProduct) or rest.axis != "m":
        return False
    block = rest.bands[0]
    return block.stationary == "C" and block.blocks == 1 and block.width <= band.extent


def panel_works(chain: Chain, rows: int, widths: Widths) -> int:
    """Bytes that a panel of rows of A and Y needs besides these: a column of H, and a value that passes."""
    computed = widths.hidden * chain.streams * rows + widths.read
    used = widths.read * rows + max(widths.partial, widths.read)
    return max(computed, used) if chain.l else computed


def leaving_side(chain: Chain, rows: int, widths: Widths) -> Side:
    """A column of A in a panel that gives way to columns of H, with B as the pivot."""
    w = widths.read
    return Side(rows, streams=chain.streams, cell=w, vector=widths.hidden, pivot=w)


def entering_side(rows: int, widths: Widths) -> Side:
    """A column of Y in a block that takes the place of columns of H, with D as the pivot."""
    return Side(rows, cell=widths.partial, vector=widths.read, pivot=widths.read)


def turned_part(corner: Corner) -> Corner:
    """The turned part alone; complete columns that lie beside the panel are narrower than those that turn."""
    return Corner(corner.group, corner.turned, 0)

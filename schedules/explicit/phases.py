"""Two products in a row in two phases: some columns of Y along with H, the others afterwards; and the search for how
many columns of Y the first has, and what is handed on.

Panels of rows of A stay, and with them the first c columns of Y; B and those columns of D stream by, and H is stored.
Then the other columns of Y are one product, H times the rest of D. So a pass of the weights need not serve all of Y:
A alone leaves more room than A and Y, accumulators of Y are as wide as they are, and what A leaves free begins Y. With
c = 0 the phases are two kernels.

The last panel may *hand on* columns of H: for the rows of the first block of Y afterwards the last w columns are
neither stored nor loaded. They lie beside the panel, or take the place of A by a turned corner, and give way to Y by
another.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt

import numpy as np

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.blocked import even
from pebble.schedules.explicit.chain import Chain, ChainBand, ChainPlan, ChainTraffic, handed_on, is_panel
from pebble.schedules.explicit.chain_search import built
from pebble.schedules.explicit.corner import NO_CORNER, Corner, FloatArray, Side, Stage, best_corners, vectors_carried
from pebble.schedules.explicit.gemm import Band, BandedProduct
from pebble.schedules.explicit.gemm_search import ExplicitProduct, best_gemm_schedule
from pebble.units import ceil_div
from pebble.workloads import Gemm
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
        plain = w * rows * leave.plain
        held = last.extent * (w * c.k + widths.partial * c.l)
        left = held + plain + panel_works(c, last.extent, widths)
        if leave.turned:
            left = max(left, held + plain + turned_part(leave).footprint(leaving_side(c, last.extent, widths)))
        block = widths.partial * rows * (self.chain.l - c.l)
        return max(left, block + enter.footprint(entering_side(rows, widths)))

    def describe(self) -> str:
        """A phrase for tables."""
        along = f" with {self.columns} columns of Y" if self.columns else ""
        text = f"{self.first.describe()}{along} and H stored, then {self.rest.name}"
        return f"{text}, {self.handed.cells} cells of H handed on" if self.handed.cells else text


def hands_on(first: ChainPlan, rest: ExplicitProduct) -> bool:
    """Whether the last panel may hand on H to the first block afterwards: it has its rows, that all columns of Y."""
    band: ChainBand = first.runs[-1][0]
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


_MOST_PANELS = 24
_PARTS = 49  # numbers of columns in the first phase that are estimated, for each number of panels
_CLOSE = 1.03  # estimates are that good where it matters
_LOOK_CLOSELY = 3  # of them, with the number of columns moved to where it is best
_NEAR = 0.97  # bands of blocks move no less of the bytes that squares without end would
_BLOCKS = (1.0, 0.75, 0.5, 0.25)  # of the most columns that fit, where the second phase is in blocks rather than slabs


def best_phases(
    chain: Chain, gemm: Gemm, memory: FastMemory, below: int, most_panels: int | None = None
) -> Phases | None:
    """Those that move least, of fewer bytes than ``below`` as far as can be told; None where none fits.

    Parameters
    ----------
    chain : Chain
    gemm : Gemm
        The second product, with the types of its operands.
    memory : FastMemory
    below : int
        Bytes that another schedule moves.
    most_panels : int, optional
        Of the first phase; by default as many as are worth a look.

    Notes
    -----
    Cost: some ten milliseconds, closed forms over all numbers of panels, columns and blocks, the best built exactly.
    """
    if chain.state or chain.masked or chain.m < 2 or chain.f < 2 or chain.l < 2:
        return None
    search = _Search(chain, gemm, memory, most_panels)
    results = [search.traffic_columns(*slab) for slab in search.slabs(below)]
    known = [plan for plan in results if plan is not None]
    below = min([below, *(plan.bytes for plan in known)])
    known += search.blocks(below)
    return min(known, key=lambda plan: (plan.bytes, plan.elements), default=None)


class _Search:
    """Phases of one chain in one memory; those in slabs are built once."""

    def __init__(self, chain: Chain, gemm: Gemm, memory: FastMemory, most_panels: int | None = None) -> None:
        self.chain, self.gemm, self.memory, self.widths = chain, gemm, memory, memory.widths
        self.panels_at_most = most_panels or chain.m
        self.built: dict[tuple[int, int, int], Phases | None] = {}

    def most_columns(self, panels: int) -> int:
        """Of Y that fit beside A in so many panels; below 0 where A does not fit."""
        return min(self._columns_in(ceil_div(self.chain.m, panels), *limit) for limit in self.memory.limits)

    def _columns_in(self, rows: int, capacity: int, widths: Widths) -> int:
        single, none = replace(self.chain, l=1), replace(self.chain, l=0)
        free = capacity - rows * widths.read * self.chain.k
        if free < panel_works(none, rows, widths):
            return -1
        return max(0, min(self.chain.l - 1, (free - panel_works(single, rows, widths)) // (widths.partial * rows)))

    def panels(self) -> range:
        """Numbers of panels worth a look: the fewest, and as many more as leave half of a panel to Y."""
        c, w = self.chain, self.widths
        rows = (self.memory.bytes - w.read) // (w.read * c.k + w.hidden * c.streams)
        fewest = ceil_div(c.m, rows) if rows > 0 else c.m + 1
        return range(fewest, min(self.panels_at_most, 2 * fewest + 1, fewest + _MOST_PANELS) + 1)

    def slabs(self, below: int) -> list[tuple[int, int, int]]:
        """Panels, columns beside A, and slabs of Y afterwards: what looks best, by closed forms."""
        c, p, passing = self.chain, self.widths.partial, 2 * self.widths.read
        tried = []
        for panels in self.panels():
            if (most := self.most_columns(panels)) < 0:
                continue
            # with at least so many columns before, so many slabs do
            jumps = [
                max(0, c.l - (self.memory.bytes - passing) // (p * ceil_div(c.m, slabs)) + 1)
                for slabs in range(1, 2 * _MOST_PANELS)
            ]
            columns = {*np.linspace(0, most, _PARTS).astype(int).tolist(), *jumps, *((x + most) // 2 for x in jumps)}
            tried += [(panels, item) for item in sorted(columns) if item <= most]
        if not tried:
            return []
        panels_of, columns_of = np.array(tried * 2, float).T
        highest = np.floor(self.memory.bytes / (p * (c.l - columns_of) + passing))
        slabs_of = np.ceil(c.m / np.maximum(highest, 1e-9))
        slabs_of[len(tried) :] += 1  # the fewest, and one more
        value = self.about(panels_of, columns_of, slabs_of)
        best: dict[tuple[int, int], tuple[int, int, int]] = {}
        for i in np.argsort(value, kind="stable"):
            if len(best) == _LOOK_CLOSELY or value[i] >= _CLOSE * below:
                break
            if slabs_of[i] <= c.m:
                single = int(panels_of[i]), int(columns_of[i]), int(slabs_of[i])
                best.setdefault((single[0], single[2]), single)
        return list(best.values())

    def about(self, panels: FloatArray, columns: FloatArray, slabs: FloatArray) -> FloatArray:
        """About what such phases move, in bytes; infinite where they do not fit."""
        c, w, p, hidden, u = self.chain, self.widths.read, self.widths.partial, self.widths.hidden, self.chain.streams
        cost = self.memory.cost
        rows, block, left = np.ceil(c.m / panels), np.ceil(c.m / slabs), c.l - columns
        spare = self.memory.bytes - rows * (w * c.k + p * columns + hidden * u)
        second = self.memory.bytes - block * p * left
        shared = u * c.k + columns
        turn = vectors_carried(spare, w * c.k + p * columns, rows, np.float64(hidden * u), w * shared)
        down = vectors_carried(second, p * block, left, np.float64(w), w * block)
        # of what is free beside a panel so much turns as is worth more than what it would keep as it is
        turned = np.minimum(np.maximum(spare, 0), (w * block) ** 2 / (4 * hidden * u * u))
        leave = np.sqrt(turned / hidden) / u + (np.maximum(spare, 0) - turned) / (w * block)
        handed = np.where(block <= rows, block * np.minimum(np.minimum(leave, down), c.f), 0)
        traffic = panels * c.f * shared - (panels - 1) * np.minimum(turn, c.f / 2) * shared
        traffic += slabs * c.f * left - (slabs - 1) * np.minimum(down, c.f / 2) * left
        traffic += c.m * c.k + 2.0 * (c.m * c.f - handed)
        return np.where((spare >= 0) & (second >= 0), cost.read * traffic + cost.written * c.m * c.l, np.inf)

    def traffic_columns(self, panels: int, columns: int, slabs: int) -> Phases | None:
        """The number of columns in the first phase where it is best, by steps of half the length."""
        most, step = self.most_columns(panels), max(1, self.chain.l // 32)
        best = self.in_slabs(panels, columns, slabs)
        while step:
            tried = [item for item in (columns - step, columns + step) if 0 <= item <= most]
            fit = [(plan.bytes, element, plan) for element in tried if (plan := self.in_slabs(panels, element, slabs))]
            least = min(fit, key=lambda t: t[:2], default=None)
            if least is not None and (best is None or least[0] < best.bytes):
                columns, best = least[1], least[2]
            else:
                step //= 2
        return best

    def in_slabs(self, panels: int, columns: int, slabs: int) -> Phases | None:
        """Such phases, the second in slabs of Y; None where they do not fit."""
        if (panels, columns, slabs) not in self.built:
            gemm = replace(self.gemm, n=self.chain.l - columns)
            bands = tuple(Band("C", size, 1, count) for size, count in even(self.chain.m, slabs))
            rest = BandedProduct(gemm, self.memory, "m", bands)
            first = self.panels_with(panels, columns) if rest.fits else None
            self.built[panels, columns, slabs] = None if first is None else self.phases(first, rest)
        return self.built[panels, columns, slabs]

    def blocks(self, below: int) -> list[Phases]:
        """The fewest panels, with any bands and blocks in the second phase."""
        c, p, cost, result = self.chain, self.widths.partial, self.memory.cost, []
        for panels in self.panels()[:2]:
            most = self.most_columns(panels)
            for columns in sorted({int(most * part) for part in _BLOCKS} - {0} if most > 0 else ()):
                first, left = self.panels_with(panels, columns), c.l - columns
                if first is None:
                    continue
                inputs = max(c.m * c.f + c.f * left, _NEAR * 2 * c.m * c.f * left * sqrt(p / self.memory.bytes))
                rest = cost.read * (c.m * c.f + inputs) + cost.written * c.m * left  # and the stores of H
                if first.bytes + rest >= below:
                    continue
                with suppress(InfeasibleError):  # the product fits, but not in so few values
                    product = best_gemm_schedule(replace(self.gemm, n=left), self.memory)
                    if (plan := self.phases(first, product)) is not None:
                        result.append(plan)
                        below = min(below, plan.bytes)
        return result

    def panels_with(self, panels: int, columns: int) -> ChainPlan | None:
        """So many panels of nearly one height, longer ones last, with that many columns of Y; None where too many."""
        c = replace(self.chain, l=columns)
        plan = built(c, "rows", self.memory, [("panel", c.m, panels)])
        return plan if plan is not None and all(is_panel(c, "rows", band) for band, _ in plan.runs) else None

    def phases(self, first: ChainPlan, rest: ExplicitProduct) -> Phases | None:
        """These two, with what one hands to the other; None where they hold too many values."""
        alone = Phases(self.chain, self.memory, first, rest)
        handing = replace(alone, handed=self.handover(first, rest))
        return handing if handing.fits else alone if alone.fits else None

    def handover(self, first: ChainPlan, rest: ExplicitProduct) -> Handover:
        """What the last panel can hand on, beside what came to it and what the first block hands on itself."""
        if not hands_on(first, rest):
            return Handover()
        assert isinstance(rest, BandedProduct)
        c, (last, count) = first.chain, first.runs[-1]
        came = 0
        if count > 1 or len(first.runs) > 1:
            before = last if count > 1 else first.runs[-2][0]
            handed = handed_on(c, "rows", first.memory, before, last, c.f)
            if handed.values and not handed.enter.vectors:  # plain values that the panel finds are in its way
                return Handover()
            came = handed.enter.vectors
        block, steps = rest.bands[0], rest.steps[0]
        goes = (steps.down if block.count > 1 else steps.next)[0].vectors
        left, leaves, enters = self.chain.l - c.l, [], []
        for size, of in self.memory.limits:
            w, p = of.read, of.partial
            resident = ceil_div(w * block.width, of.hidden)  # of a complete column, counted like those that turn
            free = size - last.extent * (w * c.k + p * c.l) - panel_works(c, last.extent, of)
            leaves.append((free, replace(leaving_side(c, last.extent, of), resident=resident)))
            enters.append((size - p * block.width * left, entering_side(block.width, of)))
        most = c.f - max(came, goes)
        leave = enter = NO_CORNER
        for _ in range(2):  # the second time with what both can carry
            (leave,) = best_corners((Stage(c.k, tuple(leaves)),), most)
            (enter,) = best_corners((Stage(left, tuple(enters)),), most)
            most = min(leave.vectors, enter.vectors)
        return Handover(block.width, leave, enter) if 0 < leave.vectors == enter.vectors else Handover()

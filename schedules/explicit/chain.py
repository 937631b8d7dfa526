"""Fused schedules for two matrix products in a row, H = act(A B) and Y = H D, with ragged blocks.

H (m x f) is cut into bands along one of its sides, a band into blocks along the other. A block of H is computed with A
(k columns) and B streaming by, then used with D and Y (l columns) streaming by; it never leaves fast memory.

- ``rows``: a band is some rows of H. Between the blocks of a band, some columns of A and Y stay. With all of them a
  block can be one column: the row panel, where the weights stream by once per band (FlashAttention). With none, the
  hidden block alone is resident, and Y is stored and loaded between blocks.
- ``hidden``: a band is some columns of H, and parts of B and D stay between its blocks. With all of them a block can
  be one row: the column panel. Y is stored and loaded between bands.
- Y stationary: a band of rows computes all its columns of H with A resident, storing those that do not fit, then uses
  them with Y resident. Bands can be twice as high, at the price of moving H.

- In ``rows`` the first block of a band may be wider than the others: Y is not there while it is computed. The columns
  of Y that stay come in through a turned corner (`pebble.schedules.explicit.corner`) while the block is used.
- In a band that computes all its H first, columns of H stay for the second half in the place of A, by such a corner.

From one row panel to the next, columns of B and D pass through a turned corner. Elsewhere, what is free beside a
band's peak keeps values of the streaming side (B and D, or Y and A) for the next band. Bands may differ: a few as high
as they can be, and the rest of the rows cut evenly and blocked by another rule.

Room, with u = 2 for a gated FFN, until H has taken the place of the gate: a block of r x c takes u r c cells of H that
are initialised, then r c complete ones; beside it are what stays, one vector of min(r, u c) and one slot for what
streams by; the vector is not needed where all columns stay. Each value counts what it takes of the memory: one in the
classic game; its bytes on a chip, where a cell that is initialised may be wider than what it ends as.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from pebble.schedules.explicit.corner import NO_CORNER, Corner, Side, Stage, best_corners
from pebble.units import ceil_div
from pebble.workloads.widths import ALIKE, FastMemory, Widths

SIDES = ("rows", "hidden")


@dataclass(frozen=True)
class Chain:
    """The two products as the schedules see them.

    Attributes
    ----------
    m, k, f, l : int
        A is m x k, B k x f, D f x l; l = 0 leaves the second product out (H is then stored, which is not counted here).
    streams : int
        Hidden products that share A: 2 for a gated FFN.
    state : int
        Values kept per row while its band runs (softmax: 2, maximum and sum, and one more for the factor that
        rescales stored outputs).
    whole_rows : bool
        A row of H must be complete before it is used (strict softmax).
    one_pass : bool
        Y may not be stored and loaded again between bands (its softmax state would have to travel too).
    masked : int
        0, or, for a causal mask, rows per query: row i sees f - (m - 1) // masked + i // masked columns of H.
    turns : bool
        Whether panels may hand on by turned corners.
    """

    m: int
    k: int
    f: int
    l: int
    streams: int = 1
    state: int = 0
    whole_rows: bool = False
    one_pass: bool = False
    masked: int = 0
    turns: bool = True

    def seen(self, rows: int) -> int:
        """Columns of H that the first ``rows`` rows see."""
        if not self.masked:
            return self.f
        return self.f - (self.m - 1) // self.masked + (rows - 1) // self.masked

    @property
    def weights_per_column(self) -> int:
        """Values of B and D that belong to one column of H."""
        return self.streams * self.k + self.l


@dataclass(frozen=True)
class ChainBand:
    """A band of H and its blocks.

    Attributes
    ----------
    extent : int
        Rows of H in the band (``rows``), or columns (``hidden``).
    block, blocks : int
        Size of a block along the other side (the last one is short), and their number.
    kept_first, kept_second : int
        Columns of A and of Y (``rows``), or rows of B and columns of D (``hidden``), that stay between blocks.
    traffic : int
        What transfers of these operands, and of H, count while the band runs.
    peaks : tuple of int
        Most that is held at once by each limit of the memory, without what is kept for the next band.
    spilled : int
        Columns of H that are stored and loaded again: all of the band's H is computed with A resident, before any of
        it is used with Y resident. Else 0.
    wider : int
        Size of the first block, if it is wider than the others (``rows``). Else 0.
    enter, leave : Corner
        How columns that stay come in, of Y beside the wider first block, of H when ``spilled``; and how these leave.
    """

    extent: int
    block: int
    blocks: int
    carried_first: int = 0
    carried_second: int = 0
    traffic: int = 0
    peaks: tuple[int, ...] = ()
    spilled: int = 0
    wider: int = 0
    enter: Corner = NO_CORNER
    leave: Corner = NO_CORNER


@dataclass(frozen=True)
class Handed:
    """What passes from one band to the next: values kept beside both, or the vectors of a corner; and its room."""

    values: int
    peak: int
    leave: Corner = NO_CORNER
    enter: Corner = NO_CORNER


NOTHING = Handed(0, 0)


class _OfChain(Protocol):
    @property
    def chain(self) -> Chain: ...

    @property
    def memory(self) -> FastMemory: ...

    @property
    def loads(self) -> dict[str, int]: ...

    @property
    def stores(self) -> dict[str, int]: ...


class ChainTraffic:
    """What schedules of a chain move, from what they load and store of each operand."""

    @property
    def elements(self: _OfChain) -> int:
        """Loads plus stores, in values."""
        return sum(self.loads.values()) + sum(self.stores.values())

    @property
    def bytes(self: _OfChain) -> int:
        """What the transfers count; partial sums of Y with their own width."""
        return chain_bytes(self.chain, self.memory.cost, self.loads, self.stores)


@dataclass(frozen=True)
class ChainPlan(ChainTraffic):
    """Bands in the order they run, as (band, how many times), and the exact traffic.

    ``loads`` and ``stores`` are values moved, of A, B (all hidden products), D, H and Y; ``peak_elements`` the most
    values held at once, in a memory like ``memory``.
    """

    side: str
    runs: tuple[tuple[ChainBand, int], ...]
    chain: Chain
    memory: FastMemory
    loads: dict[str, int]
    stores: dict[str, int]
    peak_elements: int

    @property
    def bands(self) -> list[ChainBand]:
        """All bands, one by one."""
        return [band for band, count in self.runs for _ in range(count)]

    def describe(self) -> str:
        """A phrase for tables."""
        c = self.chain
        parts = []
        for band, count in self.runs:
            if band.blocks == 1 and not band.spilled:
                inside = "one block"
            elif band.wider:
                inside = (
                    f"{band.blocks} blocks, first {band.wider}, others {band.block}, {band.carried_second} of Y stay"
                )
            elif band.spilled:
                inside = f"Y stationary, {band.spilled} columns of H spilled"
            elif (band.carried_first, band.carried_second) == (c.k, c.l):
                inside = "panel"
            else:
                inside = (
                    f"{band.blocks} blocks of {band.block}, {band.carried_first}+{band.carried_second} columns stay"
                )
            parts.append(f"{count} x {band.extent} {self.side} ({inside})")
        return ", ".join(parts)


def is_panel(chain: Chain, side: str, band: ChainBand) -> bool:
    """Whether A and Y stay for all of a band of rows, so that only B and D stream by."""
    carried = (band.carried_first, band.carried_second) == (chain.k, chain.l) and band.blocks > 1
    return carried and side == "rows" and not (chain.masked or band.spilled)


def chain_bytes(chain: Chain, cost: Widths, loads: dict[str, int], stores: dict[str, int]) -> int:
    """What the transfers of a chain count: complete outputs once, every other store of one is a partial sum's."""
    whole, outputs = loads["A"] + loads["B"] + loads["D"] + loads["H"] + stores["H"], chain.m * chain.l
    return cost.read * whole + 2 * cost.partial * (stores["Y"] - outputs) + cost.written * outputs


def state_of(chain: Chain, widths: Widths, outputs_stay: bool) -> int:
    """What the softmax state of a row takes; outputs that are never stored before they are complete need no factor."""
    return max(widths.hidden, widths.partial) * (min(chain.state, 2) if outputs_stay else chain.state)


def _works(widths: Widths, streams: int, rows: int, cols: int, second: bool, vector: bool = True) -> int:
    """What a block takes with what meets it: under its first products, or complete and under the second ones."""
    w, wider = widths.read, max(widths.read, widths.partial)
    computed = widths.hidden * streams * rows * cols + w * (1 + (min(rows, streams * cols) if vector else 0))
    used = w * rows * cols + wider * (1 + (min(rows, cols) if vector else 0))
    return max(computed, used) if second else computed


def _holds(chain: Chain, side: str, band: ChainBand, widths: Widths) -> int:
    """The most that a band holds, without what is kept for the next."""
    k, l, u, w, p = chain.k, chain.l, chain.streams, widths.read, widths.partial
    extent, across = band.extent, chain.f if side == "rows" else chain.m
    if band.spilled:
        plain, state = w * extent * band.enter.plain, extent * state_of(chain, widths, True)
        first, second = extent * w * k, extent * p * l
        most = w + plain + max(first + extent * widths.hidden * u, second + extent * w)
        if band.enter.turned:
            turned = [Corner(item.group, item.turned, 0) for item in (band.enter, band.leave)]
            sides = spilling_sides(extent, u, widths)
            held = (first, second)
            most = max(most, *(plain + h + c.footprint(s) for h, c, s in zip(held, turned, sides, strict=True)))
        return most + state
    if band.wider:
        alone = _works(widths, u, extent, band.wider, True)
        comes = w * extent * band.wider + band.enter.footprint(column_of_y(extent, widths))
        later = p * extent * band.carried_second + _works(widths, u, extent, band.block, True)
        return extent * state_of(chain, widths, False) + max(alone, comes, later)
    whole = band.block < across and (band.carried_first, band.carried_second) == (k, l)
    rows, cols = (extent, band.block) if side == "rows" else (band.block, extent)
    of_a, of_y = (w, p) if side == "rows" else (w * u, w)
    carried = extent * (of_a * band.carried_first + of_y * band.carried_second)
    return carried + rows * state_of(chain, widths, whole) + _works(widths, u, rows, cols, l > 0, not whole)


def column_of_y(extent: int, widths: Widths) -> Side:
    """A column of H in a block that gives way to columns of Y, with D as the pivot."""
    return Side(extent, cell=widths.read, vector=widths.partial, pivot=widths.read)


def spilling_sides(extent: int, streams: int, widths: Widths) -> tuple[Side, Side]:
    """A column of A that gives way to columns of H, with B as the pivot; one of Y that takes their place, with D.

    D has one product, but at the second corner as many values are counted as at the first.
    """
    w = widths.read
    resident = ceil_div(w * extent, widths.hidden)  # of a complete column, counted like those that turn
    return (
        Side(extent, 0, streams, resident, cell=w, vector=widths.hidden, pivot=w),
        Side(extent, 0, streams, extent, cell=widths.partial, vector=w, pivot=w),
    )


def placed(chain: Chain, side: str, band: ChainBand, memory: FastMemory) -> ChainBand | None:
    """The band with what it holds; None where that does not fit."""
    peaks = tuple(_holds(chain, side, band, widths) for _, widths in memory.limits)
    fits = all(peak <= size for peak, (size, _) in zip(peaks, memory.limits, strict=True))
    return replace(band, peaks=peaks) if fits else None


def values_held(chain: Chain, side: str, band: ChainBand, memory: FastMemory) -> int:
    """The most values that a band holds, without those kept for the next."""
    return band.peaks[-1] if memory.limits[-1][1] == ALIKE else _holds(chain, side, band, ALIKE)


def spare_values(side: str, memory: FastMemory, peaks: tuple[int, ...]) -> int:
    """Values of the streaming side, of B and D or of Y and A, that fit beside so much, each at its widest."""
    return min(
        (size - peak) // (of.read if side == "rows" else max(of.read, of.partial))
        for (size, of), peak in zip(memory.limits, peaks, strict=True)
    )


def handed_on(chain: Chain, side: str, memory: FastMemory, before: ChainBand, after: ChainBand, seen: int) -> Handed:
    """What passes from one band to the next; ``seen``: columns of H that the first sees."""
    panels = [is_panel(chain, side, band) for band in (before, after)]
    values = max(values_held(chain, side, band, memory) for band in (before, after))
    if not (chain.turns and any(panels)):
        most = seen * chain.weights_per_column if side == "rows" else chain.m * (chain.k + chain.l)
        peaks = tuple(max(both) for both in zip(before.peaks, after.peaks, strict=True))
        carried = min(most, spare_values(side, memory, peaks))
        return Handed(carried, values + carried)
    if not all(panels):  # the panel's own corners need the room
        return Handed(0, values)
    corners, most = [NO_CORNER, NO_CORNER], chain.f // 2  # a band is through with what it got before it keeps more
    for _ in range(2):  # the second time with what both can carry
        corners = [best_corners((_panel_ends(chain, band.extent, memory),), most)[0] for band in (before, after)]
        most = min(corner.vectors for corner in corners)
    leave, enter = corners
    plain = Side(chain.k, chain.l, chain.streams)
    held = [band.extent * (plain.held + min(chain.state, 2)) for band in (before, after)]
    peak = max(values, *(own + corner.footprint(plain) for own, corner in zip(held, corners, strict=True)))
    return Handed(leave.vectors * chain.weights_per_column, peak, leave, enter)


def _panel_ends(chain: Chain, extent: int, memory: FastMemory) -> Stage:
    """A row of A and Y that gives way to columns of B and D, with cells of H as the pivot; a row is a line."""
    limits = []
    for size, of in memory.limits:
        row = Side(
            chain.k,
            chain.l,
            chain.streams,
            cell=of.read,
            cell_second=of.partial,
            vector=of.read,
            pivot=of.hidden,
        )
        limits.append((size - extent * (row.taken + state_of(chain, of, True)), row))
    return Stage(extent, tuple(limits))

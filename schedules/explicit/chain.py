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

Room: a block of r x c takes u r c (u = 2 for a gated FFN, until H has taken the place of the gate), what stays, one
vector of min(r, u c) and one slot for what streams by; the vector is not needed where all columns stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from pebble.schedules.explicit.corner import NO_CORNER, Corner, Side, best_corner
from pebble.units import ceil_div
from pebble.workloads.widths import Room

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
    room : Room, optional
        The memory in bytes, where values differ in width: the room of such corners.
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
    room: Room | None = None

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
class Band:
    """A band of H and its blocks.

    Attributes
    ----------
    extent : int
        Rows of H in the band (``rows``), or columns (``hidden``).
    block, blocks : int
        Size of a block along the other side (the last one is short), and their number.
    kept_first, kept_second : int
        Columns of A and of Y (``rows``), or rows of B and columns of D (``hidden``), that stay between blocks.
    moved : int
        Values of these operands, and of H, that move while the band runs.
    peak : int
        Most values held at once, without those kept for the next band.
    spilled : int
        Columns of H that are stored and loaded again: all of the band's H is computed with A resident, before any of
        it is used with Y resident. Else 0.
    wider : int
        Size of the first block, if it is wider than the others (``rows``). Else 0.
    enter : Corner
        How columns that stay come in: of Y beside the wider first block, of H when ``spilled``.
    """

    extent: int
    block: int
    blocks: int
    kept_first: int
    kept_second: int
    moved: int
    peak: int
    spilled: int = 0
    wider: int = 0
    enter: Corner = NO_CORNER


@dataclass(frozen=True)
class Handed:
    """What passes from one band to the next: values kept beside both, or the vectors of a corner; and its room."""

    values: int
    peak: int
    leave: Corner = NO_CORNER
    enter: Corner = NO_CORNER


NOTHING = Handed(0, 0)


@dataclass(frozen=True)
class ChainPlan:
    """Bands in the order they run, as (band, how many times), and the exact traffic.

    ``loads`` and ``stores`` are values moved, of A, B (all hidden products), D and Y; ``peak_elements`` the most held
    at once, of a capacity in values.
    """

    side: str
    runs: tuple[tuple[Band, int], ...]
    chain: Chain
    capacity: int
    loads: dict[str, int]
    stores: dict[str, int]
    peak_elements: int

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return sum(self.loads.values()) + sum(self.stores.values())

    @property
    def bands(self) -> list[Band]:
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
                inside = f"{band.blocks} blocks, first {band.wider}, others {band.block}, {band.kept_second} of Y stay"
            elif band.spilled:
                inside = f"Y stationary, {band.spilled} columns of H spilled"
            elif (band.kept_first, band.kept_second) == (c.k, c.l):
                inside = "panel"
            else:
                inside = f"{band.blocks} blocks of {band.block}, {band.kept_first}+{band.kept_second} columns stay"
            parts.append(f"{count} x {band.extent} {self.side} ({inside})")
        return ", ".join(parts)


def is_panel(chain: Chain, side: str, band: Band) -> bool:
    """Whether A and Y stay for all of a band of rows, so that only B and D stream by."""
    kept = (band.kept_first, band.kept_second) == (chain.k, chain.l) and band.blocks > 1
    return kept and side == "rows" and not (chain.masked or band.spilled)


def handed_on(chain: Chain, side: str, capacity: int, before: Band, after: Band, seen: int) -> Handed:
    """What passes from one band to the next; ``seen``: columns of H that the first sees."""
    panels = [is_panel(chain, side, band) for band in (before, after)]
    if not (chain.turns and any(panels)):
        most = seen * chain.weights_per_column if side == "rows" else chain.m * (chain.k + chain.l)
        peak = max(before.peak, after.peak)
        values = min(most, capacity - peak)
        return Handed(values, peak + values)
    if not all(panels):  # the panel's own corners need the room
        return Handed(0, max(before.peak, after.peak))
    plain, corners = Side(chain.k, chain.l, chain.streams), [NO_CORNER, NO_CORNER]
    of_row, of_state, limit = plain, 1, capacity
    if chain.room is not None:
        widths, limit = chain.room.widths, chain.room.bytes
        w, hidden, partial = widths.read, widths.hidden, widths.partial
        of_row = replace(plain, cell=w, cell_second=partial, vector=w, pivot=hidden)
        of_state = max(hidden, partial)
    most = chain.f // 2  # a band is through with what it got before it keeps more
    for _ in range(2):  # the second time with what both can carry
        corners = [
            best_corner(
                limit - band.extent * (of_row.taken + of_state * min(chain.state, 2)), of_row, band.extent, most
            )
            for band in (before, after)
        ]
        most = min(corner.vectors for corner in corners)
    leave, enter = corners
    held = [band.extent * (plain.held + min(chain.state, 2)) for band in (before, after)]
    peak = max(before.peak, after.peak, *(own + corner.room(plain) for own, corner in zip(held, corners, strict=True)))
    return Handed(leave.vectors * chain.weights_per_column, peak, leave, enter)


@lru_cache(maxsize=1 << 14)
def best_band(chain: Chain, side: str, extent: int, capacity: int, rule: str = "any") -> Band | None:
    """The rule that moves least of the band's own operands, or None when the band does not fit.

    ``moved`` counts, for ``rows``, A and Y (stored at least once) and, for ``hidden``, B and D.
    """
    across, rows = (chain.f, True) if side == "rows" else (chain.m, False)
    counts = _block_counts(chain, side, extent, capacity) if rule != "panel" else {across}
    if chain.whole_rows and rows:
        counts = {1}
    found = [
        band
        for blocks in sorted(counts if rule != "spill" else ())
        if (band := _band(chain, side, extent, blocks, capacity, keep=rule != "block")) is not None
        and (rule != "panel" or band.blocks == 1 or band.kept_first == chain.k)
        and not (rule == "keep" and is_panel(chain, side, band))
    ]
    if rule in ("any", "keep") and rows and not (chain.whole_rows or chain.masked):
        fewest = max(2, ceil_div(chain.streams * chain.f * extent, capacity))
        found += [band for n in range(fewest, fewest + 3) if (band := wider_band(chain, extent, n, capacity))]
    if rule in ("any", "spill") and rows and (spilled := _spilled_band(chain, extent, capacity)):
        found.append(spilled)
    return min(found, key=lambda b: (b.moved, b.peak), default=None)


def _block_counts(chain: Chain, side: str, extent: int, capacity: int) -> set[int]:
    """Numbers of blocks worth trying: the fewest with nothing, half, one or both operands kept, and a few more."""
    across = chain.f if side == "rows" else chain.m
    if chain.masked and side == "rows":
        return {1, across}
    counts = {1, across}
    k, l = chain.k, chain.l
    for kept in (0, l // 2, l, l + k // 4, l + k // 2, l + k * 3 // 4):
        if most := widest(chain, side, extent, capacity - kept * extent):
            fewest = ceil_div(across, min(most, across))
            counts.update(n for n in range(fewest, fewest + 3) if n <= across)
    return counts


def widest(chain: Chain, side: str, extent: int, room: int) -> int:
    """Longest block of a band in that room, with softmax state; the shorter of its vectors lies along it or across."""
    u, state = chain.streams, chain.state
    if side == "rows":
        room -= 1 + state * extent
        return max(0, (room - extent) // (u * extent), min(room // (u * extent + u), extent // u))
    return max(
        0, (room - 1 - u * extent) // (u * extent + state), min((room - 1) // (u * extent + state + 1), u * extent)
    )


def _spilled_band(chain: Chain, extent: int, capacity: int) -> Band | None:
    """All of the band's H first, then Y: A and Y resident one after the other.

    With softmax state scores are stored as they are; the maximum and sum of each row, known once all have been
    computed, stay with it until its outputs are complete.
    """
    k, l, f, u = chain.k, chain.l, chain.f, chain.streams
    state = extent * min(chain.state, 2)
    resident = state + extent * max(k + u, l + 1) + 1
    if chain.masked or l == 0 or resident > capacity:
        return None
    if u == 1 and (capacity - resident) // extent >= f:  # one block of all columns does with less
        return None
    of_column = Side(extent, 0, u, extent)
    beside = (capacity - resident) // extent  # a column is computed beside those that stay
    enter = best_corner(capacity - state - extent * max(k, l), of_column, min(k, l), f - 1, beside)
    peak = _room_of_spilled(chain, extent, enter)
    stays = enter.vectors
    return Band(extent, 1, f, k, l, extent * (k + l + 2 * (f - stays)), peak, f - stays, 0, enter)


def _room_of_spilled(chain: Chain, extent: int, enter: Corner) -> int:
    k, l, u = chain.k, chain.l, chain.streams
    plain = extent * (max(k + u, l + 1) + enter.plain) + 1
    room = max(plain, extent * max(k, l) + enter.room(Side(extent, 0, u, extent)))
    return room + extent * min(chain.state, 2)


def wider_band(chain: Chain, extent: int, blocks: int, capacity: int) -> Band | None:
    """A band of rows in so many blocks, the first one wider, with as many columns of Y as can stay."""
    k, l, f, u = chain.k, chain.l, chain.f, chain.streams
    if chain.masked or l == 0 or blocks > f or f * extent * u > blocks * capacity:
        return None
    of_column, state = Side(extent), chain.state * extent
    alone = widest(chain, "rows", extent, capacity)

    def wide(stay: int) -> int:
        """Columns of a first block beside which that many columns of Y come in."""
        if u == 1:
            turned = min(stay, extent // 2)  # the next one would need more than a plain one
            room = capacity - state - turned * (turned + 1) - extent * (stay - turned) - (stay > turned)
        else:  # the gate's place is free by then
            room = capacity - state - extent * (stay + 1) - 1
        return min(alone, room // extent, f - blocks + 1)

    low, high = -1, l
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high)
            if wide(middle) + (blocks - 1) * widest(chain, "rows", extent, capacity - extent * middle) >= f
            else (low, middle - 1)
        )
    if low < 0:
        return None
    first = wide(low)
    enter = Corner(0, 0, low) if u > 1 else best_corner(capacity - state - extent * first, of_column, first, low)
    low, rest = enter.vectors, f - first
    block = ceil_div(rest, blocks - 1) if blocks > 1 else 0
    if rest < 1 or block < 1 or block > first or ceil_div(rest, block) != blocks - 1:
        return None
    peak = max(
        u * extent * first + state + min(extent, u * first) + 1,
        extent * first + state + enter.room(of_column),
        extent * (u * block + low) + state + min(extent, u * block) + 1,
    )
    moved = extent * (k + l + (blocks - 1) * (k + 2 * (l - low)))
    return Band(extent, block, blocks, 0, low, moved, peak, 0, first, enter) if peak <= capacity else None


def _band(chain: Chain, side: str, extent: int, blocks: int, capacity: int, keep: bool) -> Band | None:
    """The band with that many blocks, keeping what fits; None when it does not fit."""
    k, l, u = chain.k, chain.l, chain.streams
    across = chain.f if side == "rows" else chain.m
    block = ceil_div(across, blocks)
    blocks = ceil_div(across, block)
    rows = extent if side == "rows" else block
    area = u * extent * block
    # per column kept: a column of A or of Y, or of all hidden products' B or of D
    first, second = (extent, extent) if side == "rows" else (u * extent, extent)
    state = chain.state * rows
    kept_first = kept_second = 0
    vector = min(rows, u * (extent + block - rows)) + 1
    if blocks > 1:
        if keep and area + k * first + l * second + min(state, 2 * rows) + 1 <= capacity:
            kept_first, kept_second, vector, state = k, l, 1, min(state, 2 * rows)
        elif chain.masked:
            return None
        else:
            room = capacity - area - state - vector
            if room < 0:
                return None
            if keep:
                kept_second = min(l, room // second)
                kept_first = min(k, (room - kept_second * second) // first)
    peak = area + kept_first * first + kept_second * second + state + vector
    if peak > capacity:
        return None
    again = blocks - 1
    if side == "rows":  # Y is stored and loaded again
        moved = extent * (k + l + again * (k - kept_first + 2 * (l - kept_second)))
    else:
        moved = extent * (u * k + l + again * (u * (k - kept_first) + l - kept_second))
    return Band(extent, block, blocks, kept_first, kept_second, moved, peak)

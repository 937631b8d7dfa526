"""Upper bounds for two products in a row, H = act(A B), Y = H D, fused: bands and blocks of H that never leave.

H (m x f) is cut into bands, of rows (``rows``) or of columns (``hidden``), a band into blocks along the other side. A
block is computed with A and B streaming by, then used with D and Y streaming by. What a band holds at most:

- the block: u values per position (u = 2 when gated: gate and up);
- of its own operands (A and Y for rows, B and D for hidden) the columns that stay between its blocks;
- the softmax state of its rows;
- the shorter of the two vectors of a product, and one place for what passes. A column that stays is that vector.

A band of rows may instead compute all its columns of H with all of A there, then use them with all of Y there, and
store and load those that do not fit (``spilled``).

Values of the streaming side (B and D, or Y and A) may stay for the next band, in the order in which it needs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .reading import RefusedError, array, choice, equal, fields, integer
from .upper import Moved

MAX_RUNS = 4096
MAX_MASKED_BANDS = 1 << 18


@dataclass(frozen=True)
class Shape:
    """The chain: dimensions, hidden products (2 when gated), softmax state per row, and what softmax forbids."""

    m: int
    k: int
    f: int
    l: int
    streams: int = 1
    state: int = 0
    whole_rows: bool = False  #: strict softmax: all of a row of H is there before any of it is used
    one_pass: bool = False  #: stored outputs cannot be taken up by a later band, their state is gone
    sharing: int = 0  #: with a causal mask the rows of one query, else 0

    def seen(self, rows: int) -> int:
        """Columns of H that the first rows see; the last query sees all."""
        if not self.sharing:
            return self.f
        return self.f - (self.m // self.sharing - 1) + (rows - 1) // self.sharing


@dataclass(frozen=True)
class _Band:
    extent: int
    count: int
    blocks: int
    first: int
    second: int
    spilled: int
    peak: int
    to_itself: int
    to_next: int


def check_chain(shape: Shape, capacity: int, schedule: Any, at: str) -> Moved:
    """Traffic (of A, B, D, Y and, when l = 0, of H) and room of a fused schedule.

    Parameters
    ----------
    shape : Shape
    capacity : int
    schedule : object
        ``side``; ``runs``: for each kind of band, in order, its ``extent``, how many there are (``count``), its
        ``blocks``, the columns that ``stay`` (of the two operands), the values ``kept`` for the next band: from one
        of this kind to the next of it, and to the first of the next kind; perhaps the columns ``spilled``.
    """
    fields(schedule, at, ("kind", "side", "runs"))
    rows_side = choice(schedule["side"], f"{at}.side", ("rows", "hidden")) == "rows"
    runs = array(schedule["runs"], f"{at}.runs", 1, MAX_RUNS if not shape.sharing else MAX_MASKED_BANDS)
    bands = [_band(shape, rows_side, run, f"{at}.runs[{i}]") for i, run in enumerate(runs)]
    side = shape.m if rows_side else shape.f
    equal(sum(b.extent * b.count for b in bands), side, f"{at}.runs", "extents of all bands together")
    if shape.one_pass and not rows_side and (len(bands), bands[0].count) != (1, 1):
        raise RefusedError(f"{at}.runs", "softmax state cannot pass from one band of keys to the next")
    if shape.sharing and rows_side and any(b.count > 1 for b in bands):
        raise RefusedError(f"{at}.runs", "with a mask every band stands alone")
    m, k, l, u = shape.m, shape.k, shape.l, shape.streams
    loads = dict.fromkeys("ABDY", 0)
    hidden = done = 0
    peak = max(band.peak for band in bands)
    for number, band in enumerate(bands):
        extent = band.extent * band.count
        done += extent
        hidden += extent * band.spilled
        # of its own operands the columns that do not stay come again for each further block
        first, second = ((band.blocks - 1) * (side - stays) for side, stays in ((k, band.first), (l, band.second)))
        if rows_side:
            seen = shape.seen(done)
            own = {"A": extent * (k + first), "Y": extent * second}
            passing = {"B": seen * u * k, "D": seen * l}
        else:
            own = {"B": extent * u * (k + first), "D": extent * (l + second)}
            passing = {"Y": m * l, "A": m * k}
        for name, moved in own.items():
            loads[name] += moved
        for name, moved in passing.items():  # once per band, less what is kept
            loads[name] += band.count * moved
        last = number + 1 == len(bands)
        following = band.peak if last else max(band.peak, bands[number + 1].peak)
        steps = ((band.to_itself, band.count - 1, band.peak), (band.to_next, 0 if last else 1, following))
        for which, (kept, times, room) in enumerate(steps):
            if kept and not times:
                raise RefusedError(f"{at}.runs[{number}].kept[{which}]", "there is no next band of this kind")
            if kept > sum(passing.values()):
                raise RefusedError(f"{at}.runs[{number}].kept[{which}]", "more values than pass by")
            if not times:
                continue
            peak = max(peak, kept + room)  # they are there while this band ends and while the next begins
            saved = min(kept, m * l)  # values of Y first
            if rows_side:  # column by column of H: its weights of B, then of D
                columns, rest = divmod(kept, u * k + l)
                saved = columns * u * k + min(rest, u * k)
            for name, moved in zip(passing, (saved, kept - saved), strict=True):
                loads[name] -= times * moved
    if not rows_side:
        loads["Y"] -= m * l  # a value of Y is begun in the first band and comes back in the others
    if peak > capacity:
        raise RefusedError(at, f"it holds {peak:,} values, the capacity is {capacity:,}")
    stores = {"Y": m * l + loads["Y"]}
    if not l:
        stores["H"] = m * shape.f
    if hidden:
        loads["H"] = stores["H"] = hidden
    return Moved(loads, stores, peak)


def _band(shape: Shape, rows_side: bool, run: Any, at: str) -> _Band:
    fields(run, at, ("extent", "count", "blocks", "stay", "kept"), ("spilled",))
    side, across = (shape.m, shape.f) if rows_side else (shape.f, shape.m)
    extent = integer(run["extent"], f"{at}.extent", 1, side)
    count = integer(run["count"], f"{at}.count", 1, side)
    blocks = integer(run["blocks"], f"{at}.blocks", 1, across)
    stay = array(run["stay"], f"{at}.stay", 2, 2)
    kept = array(run["kept"], f"{at}.kept", 2, 2)
    first, second = (integer(stay[i], f"{at}.stay[{i}]", 0, (shape.k, shape.l)[i]) for i in range(2))
    to_itself, to_next = (integer(kept[i], f"{at}.kept[{i}]") for i in range(2))
    block = -(-across // blocks)
    equal(blocks, -(-across // block), f"{at}.blocks", "blocks of that size")
    rows, cols = (extent, block) if rows_side else (block, extent)
    everything = blocks > 1 and (first, second) == (shape.k, shape.l)
    if blocks == 1 and (first or second):
        raise RefusedError(f"{at}.stay", "there is no second block for columns to stay for")
    if rows_side and shape.whole_rows and blocks > 1:
        raise RefusedError(f"{at}.blocks", "a strict softmax needs whole rows of scores")
    if shape.sharing and blocks > 1 and not everything:
        raise RefusedError(f"{at}.stay", "with a mask, all columns stay or there is one block")
    u = shape.streams
    spilled = integer(run.get("spilled", 0), f"{at}.spilled", 0, shape.f)
    if spilled:
        if not rows_side or not everything or block > 1 or shape.state or shape.sharing or not shape.l:
            raise RefusedError(f"{at}.spilled", "H is spilled column by column, in bands of rows, without softmax")
        # A and a column of H for each hidden product, or Y and a column of H; the columns that are not spilled
        room = extent * (max(shape.k + u, shape.l + 1) + shape.f - spilled) + 1
        return _Band(extent, count, blocks, first, second, spilled, room, to_itself, to_next)
    # a column of an operand of the band: of A or Y, extent values; of B (each hidden product's) or D, extent values
    room = u * extent * block + first * extent * (1 if rows_side else u) + second * extent
    state = min(shape.state, 2) if everything else shape.state  # outputs that are never stored need no factor
    room += state * rows + 1 + (0 if everything else min(rows, u * cols))
    return _Band(extent, count, blocks, first, second, 0, room, to_itself, to_next)

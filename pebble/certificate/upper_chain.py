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

Turned corners (`corner`) pass more in three places:

- from one band of rows to the next, when all of A and Y stay in both: columns of B and D pass, the lines are rows, and
  nothing else is kept for or by these bands. Bands are walked forwards and backwards in turn.
- the ``first`` block of a band of rows may be wider than the others: the columns of Y that stay come while it is used,
  beside it or, unless gated, in its place. (When gated, the gate's cells have gone by then.) Its lines are columns.
- the columns of H of a spilling band that are not spilled: beside A and then Y, or in their place. Lines are columns
  of A, and of Y.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .corner import NO_CORNER, Corner, read_corner, read_turn
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
    panel: int
    turns: tuple[tuple[Corner, Corner], tuple[Corner, Corner]]


def check_chain(shape: Shape, capacity: int, schedule: Any, at: str) -> Moved:
    """Traffic (of A, B, D, Y and, when l = 0, of H) and room of a fused schedule.

    Parameters
    ----------
    shape : Shape
    capacity : int
    schedule : object
        ``side``; ``runs``: for each kind of band, in order, its ``extent``, how many there are (``count``), its
        ``blocks``, the columns that ``stay`` (of the two operands), the values ``kept`` for the next band: from one
        of this kind to the next of it, and to the first of the next kind; perhaps the columns ``spilled``, the size
        of the ``first`` block, the corner by which what stays comes in (``enter``, [group, turned, plain]), and
        ``turns`` in place of what is kept, both [leave, enter].
    """
    fields(schedule, at, ("kind", "side", "runs"))
    rows_side = choice(schedule["side"], f"{at}.side", ("rows", "hidden")) == "rows"
    runs = array(schedule["runs"], f"{at}.runs", 1, MAX_RUNS if not shape.sharing else MAX_MASKED_BANDS)
    bands = [_band(shape, rows_side, run, f"{at}.runs[{i}]") for i, run in enumerate(runs)]
    side = shape.m if rows_side else shape.f
    _check_turns(shape, bands, f"{at}.runs")
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
        turned = [corners[0].vectors * (u * k + l) for corners in band.turns]
        for corner in band.turns[0]:
            peak = max(peak, band.panel + corner.room(k, l, u))
        peak = max(peak, band.panel + band.turns[1][0].room(k, l, u))
        if number:
            peak = max(peak, band.panel + bands[number - 1].turns[1][1].room(k, l, u))
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
            kept += turned[which]
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


def _check_turns(shape: Shape, bands: list[_Band], at: str) -> None:
    """Corners only between bands in which A and Y stay, which keep nothing otherwise and not more than passes by."""
    for number, band in enumerate(bands):
        where, following = f"{at}[{number}].turns", bands[number + 1] if number + 1 < len(bands) else None
        entering = bands[number - 1] if number else None
        came = entering.turns[1][1].vectors if entering else 0
        inside, on = (corners[0].vectors for corners in band.turns)
        if inside and band.count == 1:
            raise RefusedError(f"{where}[0]", "vectors are kept for a step that does not occur")
        if on and (following is None or not following.panel):
            raise RefusedError(f"{where}[1]", "vectors are kept for a step that does not occur")
        if not (inside or on or came):
            continue
        if not band.panel or band.to_itself or band.to_next or (entering and entering.to_next):
            raise RefusedError(where, "bands with turned corners keep all of A and Y, and nothing for others")
        if came and entering and entering.turns[1][1].group > band.extent:
            raise RefusedError(where, "a group of more lines than the block has")
        ends = [came, *[inside] * min(2, band.count - 1), on]
        if max(one + other for one, other in pairwise(ends)) > shape.f:
            raise RefusedError(where, "a band would keep columns for both sides at once")


def _band(shape: Shape, rows_side: bool, run: Any, at: str) -> _Band:
    fields(run, at, ("extent", "count", "blocks", "stay", "kept"), ("spilled", "first", "enter", "turns"))
    side, across = (shape.m, shape.f) if rows_side else (shape.f, shape.m)
    extent = integer(run["extent"], f"{at}.extent", 1, side)
    count = integer(run["count"], f"{at}.count", 1, side)
    blocks = integer(run["blocks"], f"{at}.blocks", 1, across)
    stay = array(run["stay"], f"{at}.stay", 2, 2)
    kept = array(run["kept"], f"{at}.kept", 2, 2)
    first, second = (integer(stay[i], f"{at}.stay[{i}]", 0, (shape.k, shape.l)[i]) for i in range(2))
    to_itself, to_next = (integer(kept[i], f"{at}.kept[{i}]") for i in range(2))
    spilled = integer(run.get("spilled", 0), f"{at}.spilled", 0, shape.f)
    wider = integer(run.get("first", 0), f"{at}.first", 0, across)
    if wider:
        return _wider_band(shape, rows_side, run, at, (extent, count, blocks, wider), (first, second), kept)
    block = -(-across // blocks)
    equal(blocks, -(-across // block), f"{at}.blocks", "blocks of that size")
    rows, cols = (extent, block) if rows_side else (block, extent)
    everything = blocks > 1 and (first, second) == (shape.k, shape.l)
    if blocks == 1 and (first or second) and not spilled:
        raise RefusedError(f"{at}.stay", "there is no second block for columns to stay for")
    if rows_side and shape.whole_rows and blocks > 1 and not spilled:  # all of H is computed before any is used
        raise RefusedError(f"{at}.blocks", "a strict softmax needs whole rows of scores")
    if shape.sharing and blocks > 1 and not everything:
        raise RefusedError(f"{at}.stay", "with a mask, all columns stay or there is one block")
    u = shape.streams
    panel = extent * (shape.k + shape.l + min(shape.state, 2))
    panel = panel if everything and rows_side and not (shape.sharing or spilled) else 0
    given = array(run["turns"], f"{at}.turns", 2, 2) if "turns" in run else [[[0, 0, 0]] * 2] * 2
    lines = (extent, side)
    turns = tuple(read_turn(one, f"{at}.turns[{i}]", extent, lines[i], shape.f) for i, one in enumerate(given))
    known = extent, count, blocks, first, second
    enter = read_corner(run["enter"], f"{at}.enter", min(shape.k, shape.l), shape.f) if "enter" in run else None
    if spilled:
        whole = (first, second) == (shape.k, shape.l) and block == 1
        if not rows_side or not whole or shape.sharing or not shape.l or "turns" in run:
            raise RefusedError(f"{at}.spilled", "H is spilled column by column, in bands of rows, without a mask")
        if enter is None:
            enter = Corner(0, 0, shape.f - spilled)
        equal(enter.vectors, shape.f - spilled, f"{at}.enter", "columns of H that are not spilled")
        # A and a column of H for each hidden product, or Y and a column of H; the columns that lie beside them
        room = extent * (max(shape.k + u, shape.l + 1) + enter.plain) + 1
        room = max(room, extent * max(shape.k, shape.l) + enter.room(extent, 0, u, extent))
        room += extent * min(shape.state, 2)  # maximum and sum, until the outputs of the row are complete
        return _Band(*known, spilled, room, to_itself, to_next, 0, (turns[0], turns[1]))
    if enter is not None:
        raise RefusedError(f"{at}.enter", "nothing comes in by a corner here")
    # a column of an operand of the band: of A or Y, extent values; of B (each hidden product's) or D, extent values
    room = u * extent * block + first * extent * (1 if rows_side else u) + second * extent
    state = min(shape.state, 2) if everything else shape.state  # outputs that are never stored need no factor
    room += state * rows + 1 + (0 if everything else min(rows, u * cols))
    return _Band(*known, 0, room, to_itself, to_next, panel, (turns[0], turns[1]))


def _wider_band(
    shape: Shape, rows_side: bool, run: Any, at: str, sizes: tuple[int, int, int, int], stay: tuple[int, int], kept: Any
) -> _Band:
    """A band of rows whose first block is wider; columns of Y come in while it is used."""
    extent, count, blocks, wide = sizes
    u, rest = shape.streams, shape.f - wide
    if not rows_side or blocks < 2 or shape.whole_rows or shape.sharing or "spilled" in run or "turns" in run:
        raise RefusedError(f"{at}.first", "only plain bands of rows have a wider first block")
    if stay[0] or not shape.l or rest < blocks - 1:
        raise RefusedError(f"{at}.first", "columns of Y alone stay, and every block has columns of H")
    block = -(-rest // (blocks - 1))
    equal(blocks, 1 + -(-rest // block), f"{at}.blocks", "blocks of that size")
    enter = read_corner(run.get("enter", [0, 0, 0]), f"{at}.enter", wide, shape.l)
    equal(enter.vectors, stay[1], f"{at}.enter", "columns of Y that stay")
    state = shape.state * extent
    room = max(
        u * extent * wide + min(extent, u * wide) + 1,
        # gate and up are one by now
        extent * wide + enter.room(extent),
        extent * (u * block + stay[1]) + min(extent, u * block) + 1,
    )
    to_itself, to_next = (integer(kept[i], f"{at}.kept[{i}]") for i in range(2))
    none = (NO_CORNER, NO_CORNER)
    return _Band(extent, count, blocks, 0, stay[1], 0, room + state, to_itself, to_next, 0, (none, none))

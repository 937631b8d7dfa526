"""Upper bounds for two products in a row, H = act(A B), Y = H D, fused: bands and blocks of H that never leave; and
panels that lack a corner, which comes at the end.

H (m x f) is cut into bands, of rows (``rows``) or of columns (``hidden``), a band into blocks along the other side. A
block is computed with A and B streaming by, then used with D and Y streaming by. What a band holds at most:

- the block: u values per position (u = 2 when gated: gate and up) under its first products, one under the second;
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
  of A, and of Y; the groups by which they come and those by which they leave may differ.

Where values differ in width each counts with its own: a cell of H as a partial sum under its first products and
complete afterwards, a cell of Y as a partial sum as long as it stays, what is kept for the next band at its widest.

``rows``: A (m x k) and Y (m x l) are cut into panels of rows as evenly as whole numbers allow. While a panel stays,
columns of B and rows of D stream by, each value through one place: the cells of one column of H are computed, used and
forgotten. Of the last c rows of a panel the last u columns of Y are left out, and their cells of H are stored,
complete. At the end the corners of all panels are one block of Y: for each column of H its cells in these rows and the
last u values of that row of D come once more. So A and Y move once, B once a panel, D once a panel and its last u
columns once more, H of the corners' rows there and back.

``hidden``: the columns of B and rows of D are cut, and rows of A and Y stream by, each value through one place: the
cells of one row of H are computed, used and forgotten. Of the last c rows of D of a panel the last u columns are left
out, and their cells of H are stored. At the end the corners are one block of D: for each row of H these cells and u
partial sums of Y come once more. So B and D move once, A once a panel, Y there and back for each panel but the first
and in its last u columns once more, H of the corners' columns there and back.

At the end the shorter of two vectors is held and the longer passes value by value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from .corner import NO_CORNER, Corner, read_corner, read_turn
from .reading import RefusedError, array, choice, equal, fields, integer
from .statement import ALIKE, ClaimedWidths
from .upper import ScheduleTraffic, fits

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

    def columns(self, widths: ClaimedWidths) -> tuple[int, int]:
        """What a row of A and of Y takes."""
        return widths.read * self.k, widths.partial * self.l


@dataclass(frozen=True)
class _Band:
    shape: Shape
    rows_side: bool
    extent: int
    count: int
    blocks: int
    first: int  #: columns that stay, of the first operand of the band, and of the second
    second: int
    to_itself: int  #: values kept for the next
    to_next: int
    spilled: int = 0
    wider: int = 0  #: the first block, if it is wider than the others
    block: int = 1  #: the longest other block
    enter: Corner = NO_CORNER
    leave: Corner = NO_CORNER
    turns: tuple[tuple[Corner, Corner], tuple[Corner, Corner]] = ((NO_CORNER, NO_CORNER), (NO_CORNER, NO_CORNER))

    @property
    def everything(self) -> bool:
        """Whether all columns of its operands stay from block to block."""
        return self.blocks > 1 and (self.first, self.second) == (self.shape.k, self.shape.l)

    @property
    def is_panel(self) -> bool:
        """Whether it may hand on vectors by turned corners."""
        return self.everything and self.rows_side and not (self.shape.sharing or self.spilled)

    def panel(self, widths: ClaimedWidths) -> int:
        """What stays of a panel."""
        return self.extent * (sum(self.shape.columns(widths)) + widths.state * min(self.shape.state, 2))

    def turn(self, corner: Corner, widths: ClaimedWidths) -> int:
        """A panel, with columns of B and D that come to stay or leave; they take the place of its rows."""
        s, w = self.shape, widths.read
        return self.panel(widths) + corner.footprint(s.k, s.l, s.streams, widths=(w, w, widths.hidden, widths.partial))

    def footprint(self, widths: ClaimedWidths) -> int:
        """The most that it holds, without what is kept for the next."""
        if self.spilled:
            return self._spilling(widths)
        shape, extent, w = self.shape, self.extent, widths.read
        if self.wider:
            p, state = widths.partial, extent * shape.state * widths.state
            comes = w * extent * self.wider  # gate and up are one by now
            comes += self.enter.footprint(extent, widths=(w, p, w, w))
            later = p * extent * self.second + self._works(widths, extent, self.block, True)
            return state + max(self._works(widths, extent, self.wider, True), comes, later)
        rows, cols = (extent, self.block) if self.rows_side else (self.block, extent)
        # outputs that are never stored need no factor
        state = rows * widths.state * (min(shape.state, 2) if self.everything else shape.state)
        # a column of an operand: of A or Y, extent values; of B (each hidden product's) or D, extent values
        of_a, of_y = (w, widths.partial) if self.rows_side else (w * shape.streams, w)
        stays = extent * (of_a * self.first + of_y * self.second)
        return stays + state + self._works(widths, rows, cols, not self.everything)

    def _works(self, widths: ClaimedWidths, rows: int, cols: int, vector: bool) -> int:
        """A block with a vector and a value that pass: under its first products, and complete under the second."""
        u, w = self.shape.streams, widths.read
        computed = widths.hidden * u * rows * cols + w * (1 + (min(rows, u * cols) if vector else 0))
        used = w * rows * cols + widths.wider * (1 + (min(rows, cols) if vector else 0))
        return max(computed, used) if self.shape.l else computed

    def _spilling(self, widths: ClaimedWidths) -> int:
        """A and a column of H for each hidden product, then Y and a column of H, beside the columns that stay."""
        shape, extent, w = self.shape, self.extent, widths.read
        u, (of_a, of_y) = shape.streams, shape.columns(widths)
        most = extent * max(of_a + widths.hidden * u, of_y + w) + w
        for corner, held, of in (
            # columns of A go, initialised columns of H come, B is the pivot
            (self.enter, of_a, (w, widths.hidden, w, w)),
            (self.leave, of_y, (widths.partial, w, w, w)),  # complete ones go, columns of Y come, D is the pivot
        ):
            turned = Corner(corner.group, corner.turned, 0)
            most = max(most, extent * held + turned.footprint(extent, 0, u, extent, of) if corner.turned else 0)
        plain = w * extent * self.enter.plain
        # maximum and sum of a row, until its outputs are complete
        return most + plain + extent * widths.state * min(shape.state, 2)


def _check_bands(shape: Shape, rows_side: bool, bands: list[_Band], widths: ClaimedWidths, at: str) -> None:
    """Whether bands make up the whole, and are of a kind that is counted here."""
    _check_turns(shape, bands, at)
    if shape.state and widths.hidden > widths.read and any(band.spilled for band in bands):
        raise RefusedError(at, "scores before the softmax are wider than this counts")
    equal(
        sum(b.extent * b.count for b in bands), shape.m if rows_side else shape.f, at, "extents of all bands together"
    )
    if shape.one_pass and not rows_side and (len(bands), bands[0].count) != (1, 1):
        raise RefusedError(at, "softmax state cannot pass from one band of keys to the next")
    if shape.sharing and rows_side and any(b.count > 1 for b in bands):
        raise RefusedError(at, "with a mask every band stands alone")


def check_chain(shape: Shape, capacity: int, schedule: Any, at: str, widths: ClaimedWidths = ALIKE) -> ScheduleTraffic:
    """Traffic (of A, B, D, Y and, when l = 0, of H) and room of a fused schedule.

    Parameters
    ----------
    shape : Shape
    capacity : int
        What fits, as ``widths`` count.
    schedule : object
        ``side``; ``runs``: for each kind of band, in order, its ``extent``, how many there are (``count``), its
        ``blocks``, the columns that ``stay`` (of the two operands), the values ``kept`` for the next band: from one
        of this kind to the next of it, and to the first of the next kind; perhaps the columns ``spilled``, the size
        of the ``first`` block, the corner by which what stays comes in (``enter``, [group, turned, plain]) and leaves
        (``leave``, the same unless told), and ``turns`` in place of what is kept, both [leave, enter].
    """
    fields(schedule, at, ("kind", "side", "runs"))
    rows_side = choice(schedule["side"], f"{at}.side", ("rows", "hidden")) == "rows"
    runs = array(schedule["runs"], f"{at}.runs", 1, MAX_RUNS if not shape.sharing else MAX_MASKED_BANDS)
    bands = [_band(shape, rows_side, run, f"{at}.runs[{i}]") for i, run in enumerate(runs)]
    _check_bands(shape, rows_side, bands, widths, f"{at}.runs")
    m, k, l, u = shape.m, shape.k, shape.l, shape.streams
    loads = dict.fromkeys("ABDY", 0)
    hidden = done = 0
    footprints = [band.footprint(widths) for band in bands]
    peak, each_carried = max(footprints), widths.read if rows_side else widths.wider
    for number, band in enumerate(bands):
        extent = band.extent * band.count
        done += extent
        hidden += extent * band.spilled
        # of its own operands the columns that do not stay come again for each further block
        first, second = ((band.blocks - 1) * (side - stays) for side, stays in ((k, band.first), (l, band.second)))
        turned = [corners[0].vectors * (u * k + l) for corners in band.turns]
        if band.is_panel:
            came = bands[number - 1].turns[1][1] if number else NO_CORNER
            peak = max(peak, *(band.turn(corner, widths) for corner in (*band.turns[0], band.turns[1][0], came)))
        if rows_side:
            seen = shape.seen(done)
            own = {"A": extent * (k + first), "Y": extent * second}
            passing = {"B": seen * u * k, "D": seen * l}
        else:
            own = {"B": extent * u * (k + first), "D": extent * (l + second)}
            passing = {"Y": m * l, "A": m * k}
        for name, traffic in own.items():
            loads[name] += traffic
        for name, traffic in passing.items():  # once per band, less what is kept
            loads[name] += band.count * traffic
        last = number + 1 == len(bands)
        following = footprints[number] if last else max(footprints[number : number + 2])
        steps = ((band.to_itself, band.count - 1, footprints[number]), (band.to_next, 0 if last else 1, following))
        for which, (carried, times, free_capacity) in enumerate(steps):
            if carried and not times:
                raise RefusedError(f"{at}.runs[{number}].kept[{which}]", "there is no next band of this kind")
            if carried > sum(passing.values()):
                raise RefusedError(f"{at}.runs[{number}].kept[{which}]", "more values than pass by")
            if not times:
                continue
            peak = max(
                peak, carried * each_carried + free_capacity
            )  # they are there while this band ends and while the next begins
            carried += turned[which]
            saved = min(carried, m * l)  # values of Y first
            if rows_side:  # column by column of H: its weights of B, then of D
                columns, rest = divmod(carried, u * k + l)
                saved = columns * u * k + min(rest, u * k)
            for name, traffic in zip(passing, (saved, carried - saved), strict=True):
                loads[name] -= times * traffic
    if not rows_side:
        loads["Y"] -= m * l  # a value of Y is initialised in the first band and comes back in the others
    fits(peak, capacity, widths, at)
    stores = {"Y": m * l + loads["Y"]}
    if not l:
        stores["H"] = m * shape.f
    if hidden:
        loads["H"] = stores["H"] = hidden
    return ScheduleTraffic(loads, stores, peak)


def _check_turns(shape: Shape, bands: list[_Band], at: str) -> None:
    """Corners only between bands in which A and Y stay, which keep nothing otherwise and not more than passes by."""
    for number, band in enumerate(bands):
        where, following = f"{at}[{number}].turns", bands[number + 1] if number + 1 < len(bands) else None
        entering = bands[number - 1] if number else None
        came = entering.turns[1][1].vectors if entering else 0
        inside, on = (corners[0].vectors for corners in band.turns)
        if inside and band.count == 1:
            raise RefusedError(f"{where}[0]", "vectors are kept for a step that does not occur")
        if on and (following is None or not following.is_panel):
            raise RefusedError(f"{where}[1]", "vectors are kept for a step that does not occur")
        if not (inside or on or came):
            continue
        if not band.is_panel or band.to_itself or band.to_next or (entering and entering.to_next):
            raise RefusedError(where, "bands with turned corners keep all of A and Y, and nothing for others")
        if came and entering and entering.turns[1][1].group > band.extent:
            raise RefusedError(where, "a group of more lines than the block has")
        ends = [came, *[inside] * min(2, band.count - 1), on]
        if max(item + other for item, other in pairwise(ends)) > shape.f:
            raise RefusedError(where, "a band would keep columns for both sides at once")


def _band(shape: Shape, rows_side: bool, run: Any, at: str) -> _Band:
    fields(run, at, ("extent", "count", "blocks", "stay", "kept"), ("spilled", "first", "enter", "leave", "turns"))
    side, across = (shape.m, shape.f) if rows_side else (shape.f, shape.m)
    extent = integer(run["extent"], f"{at}.extent", 1, side)
    count = integer(run["count"], f"{at}.count", 1, side)
    blocks = integer(run["blocks"], f"{at}.blocks", 1, across)
    stay = array(run["stay"], f"{at}.stay", 2, 2)
    carried = array(run["kept"], f"{at}.kept", 2, 2)
    first, second = (integer(stay[i], f"{at}.stay[{i}]", 0, (shape.k, shape.l)[i]) for i in range(2))
    to_itself, to_next = (integer(carried[i], f"{at}.kept[{i}]") for i in range(2))
    spilled = integer(run.get("spilled", 0), f"{at}.spilled", 0, shape.f)
    wider = integer(run.get("first", 0), f"{at}.first", 0, across)
    bare = _Band(shape, rows_side, extent, count, blocks, first, second, to_itself, to_next, spilled, wider)
    if wider:
        return _wider_band(bare, run, at)
    band = replace(bare, block=-(-across // blocks))
    equal(blocks, -(-across // band.block), f"{at}.blocks", "blocks of that size")
    if blocks == 1 and (first or second) and not spilled:
        raise RefusedError(f"{at}.stay", "there is no second block for columns to stay for")
    if rows_side and shape.whole_rows and blocks > 1 and not spilled:  # all of H is computed before any is used
        raise RefusedError(f"{at}.blocks", "a strict softmax needs whole rows of scores")
    if shape.sharing and blocks > 1 and not band.everything:
        raise RefusedError(f"{at}.stay", "with a mask, all columns stay or there is one block")
    given = array(run["turns"], f"{at}.turns", 2, 2) if "turns" in run else [[[0, 0, 0]] * 2] * 2
    turns = tuple(
        read_turn(item, f"{at}.turns[{i}]", extent, lines, shape.f)
        for i, (item, lines) in enumerate(zip(given, (extent, side), strict=True))
    )
    band = replace(band, turns=(turns[0], turns[1]))
    if spilled:
        return _spilling_band(band, run, at)
    if "enter" in run or "leave" in run:
        raise RefusedError(f"{at}.enter", "nothing comes in by a corner here")
    return band


def _spilling_band(band: _Band, run: dict[str, Any], at: str) -> _Band:
    """A band of rows that computes all its columns of H before it uses any; some of them stay."""
    shape, whole = band.shape, (band.first, band.second) == (band.shape.k, band.shape.l)
    if not (band.rows_side and whole and band.block == 1) or shape.sharing or not shape.l or "turns" in run:
        raise RefusedError(f"{at}.spilled", "H is spilled column by column, in bands of rows, without a mask")
    enter = Corner(0, 0, shape.f - band.spilled)
    if "enter" in run:
        lines = shape.k if "leave" in run else min(shape.k, shape.l)
        enter = read_corner(run["enter"], f"{at}.enter", lines, shape.f)
    equal(enter.vectors, shape.f - band.spilled, f"{at}.enter", "columns of H that are not spilled")
    leave = read_corner(run["leave"], f"{at}.leave", shape.l, shape.f) if "leave" in run else enter
    equal(leave.turned, enter.turned, f"{at}.leave", "columns that leave as they came")
    equal(leave.plain, enter.plain, f"{at}.leave", "columns that leave as they came")
    return replace(band, enter=enter, leave=leave)


def _wider_band(bare: _Band, run: dict[str, Any], at: str) -> _Band:
    """A band of rows whose first block is wider; columns of Y come in while it is used."""
    shape, rest = bare.shape, bare.shape.f - bare.wider
    plain = bare.rows_side and not (shape.whole_rows or shape.sharing or {"spilled", "turns", "leave"} & run.keys())
    if not plain or bare.blocks < 2:
        raise RefusedError(f"{at}.first", "only plain bands of rows have a wider first block")
    if bare.first or not shape.l or rest < bare.blocks - 1:
        raise RefusedError(f"{at}.first", "columns of Y alone stay, and every block has columns of H")
    block = -(-rest // (bare.blocks - 1))
    equal(bare.blocks, 1 + -(-rest // block), f"{at}.blocks", "blocks of that size")
    enter = read_corner(run.get("enter", [0, 0, 0]), f"{at}.enter", bare.wider, shape.l)
    equal(enter.vectors, bare.second, f"{at}.enter", "columns of Y that stay")
    return replace(bare, block=block, enter=enter)


def check_panels(shape: Shape, capacity: int, schedule: Any, at: str, widths: ClaimedWidths = ALIKE) -> ScheduleTraffic:
    """Traffic and room of a network in panels that lack a corner.

    Parameters
    ----------
    shape : Shape
        Two products in a row, without softmax state.
    capacity : int
        What fits, as ``widths`` count.
    schedule : object
        The ``side`` that is cut, the number of ``panels``, and the ``corner``: its lines of each panel and its columns
        of Y.
    """
    fields(schedule, at, ("kind", "side", "panels", "corner"))
    m, k, f, l, streams = shape.m, shape.k, shape.f, shape.l, shape.streams
    if shape.state:
        raise RefusedError(at, "a cell of the hidden matrix that needs the rest of its row cannot be stored complete")
    rows = choice(schedule["side"], f"{at}.side", ("rows", "hidden")) == "rows"
    lines, others = (m, f) if rows else (f, m)
    panels = integer(schedule["panels"], f"{at}.panels", 1, lines)
    spec = array(schedule["corner"], f"{at}.corner", 2, 2)
    # a line or a column that is in the corner alone would have nothing to do in the panel
    c = integer(spec[0], f"{at}.corner[0]", 1, lines // panels - 1)
    u = integer(spec[1], f"{at}.corner[1]", 1, l - 1)
    peak = _free_capacity(shape, rows, panels, (c, u), widths)
    fits(peak, capacity, widths, at)
    again = panels * c * others
    if rows:
        loads = {"A": m * k, "B": panels * streams * k * f, "D": (panels * l + u) * f, "H": again, "Y": 0}
    else:
        loads = {"A": panels * m * k, "B": streams * k * f, "D": f * l, "H": again, "Y": m * ((panels - 1) * l + u)}
    return ScheduleTraffic(loads, {"H": again, "Y": m * l + loads["Y"]}, peak)


def _free_capacity(shape: Shape, rows: bool, panels: int, corner: tuple[int, int], widths: ClaimedWidths) -> int:
    """The most that is held: a panel with what meets it, or the corners."""
    (c, u), value, output = corner, widths.read, widths.partial
    lines = -(-(shape.m if rows else shape.f) // panels)
    own, passing = (output, value) if rows else (value, widths.wider)
    line = value * shape.k + output * shape.l if rows else value * (shape.streams * shape.k + shape.l)
    extra = max(shape.streams * widths.hidden * lines + value, value * lines + passing)
    block = own * panels * c * u + passing * (min(panels * c, u) + 1)
    return max(lines * line - own * c * u + extra, block)

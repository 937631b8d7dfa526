"""The moves of a fused schedule for two products in a row, one by one, so that a checker can replay the formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from pebble.schedules.explicit.chain import NOTHING, ChainBand, ChainPlan, handed_on
from pebble.schedules.explicit.corner import Corner
from pebble.schedules.explicit.moves import groups_of
from pebble.schedules.explicit.phases import Handover, Phases
from pebble.schedules.explicit.remainder import PanelsWithRemainder
from tests.schedules.panel_moves import Event, Value, panels_apart_moves
from tests.schedules.phase_moves import rest_moves

NOTHING_HANDED = Handover()


def chain_moves(plan: ChainPlan | PanelsWithRemainder | Phases) -> Iterator[Event]:
    """Play the plan.

    Parameters
    ----------
    plan : ChainPlan, PanelsApart or Phases
        Meant for small ones: it yields at least one event per multiply-add.

    Yields
    ------
    (str, str, tuple of int)
        ``load``, ``store`` or ``delete`` of a value; ``begin`` of a value that takes room without a load (softmax
        state); ``compute`` of H with (s, i, j, t), H[s,i,j] += A[i,t] B[s,t,j], and of Y with (i, q, j),
        Y[i,q] += H[0,i,j] D[j,q] (the first of either begins the cell); ``finish`` of H with (i, j): activation, or
        softmax, after which, when gated, H[1, i, j] is no longer needed.
    """
    if isinstance(plan, Phases):
        first = _Player(plan.first, plan.handed, stored=True)
        yield from first.play()
        yield from rest_moves(plan, first.order)
    else:
        yield from panels_apart_moves(plan) if isinstance(plan, PanelsWithRemainder) else _Player(plan).play()


def _multiply(a: Value, b: Value) -> Iterator[Event]:
    (i, t), (s, _, j) = a[1], b[1]
    yield "compute", "H", (s, i, j, t)


def _accumulate(y: Value, d: Value) -> Iterator[Event]:
    (i, q), (j, _) = y[1], d[1]
    yield "compute", "Y", (i, q, j)


class _Player:
    def __init__(self, plan: ChainPlan, handed: Handover = NOTHING_HANDED, stored: bool = False) -> None:
        self.plan = plan
        self.handed = handed
        self.stored = stored or plan.chain.l == 0  # H is
        self.chain = plan.chain
        self.rows = plan.side == "rows"
        self.red: set[Value] = set()
        self.initialised: set[Value] = set()  # cells of Y that have a partial sum somewhere
        self.order: Sequence[int] = range(self.chain.f)  # of columns of H, in the last panel
        self.next_kept = 0  # values of the streaming side that stay for the next band

    def rank(self, value: Value) -> int:
        """Position of a streaming value in the order in which they are kept for the next band."""
        c, (name, index) = self.chain, value
        if self.rows:
            if name == "B":
                return index[2] * c.weights_per_column + index[0] * c.k + index[1]
            return index[0] * c.weights_per_column + c.streams * c.k + index[1]
        return index[0] * c.l + index[1] if name == "Y" else c.m * c.l + index[0] * c.k + index[1]

    def streams(self, value: Value) -> bool:
        return value[0] in (("B", "D") if self.rows else ("A", "Y"))

    def fetch(self, value: Value) -> Iterator[Event]:
        if value in self.red:
            return
        self.red.add(value)
        if value[0] != "Y" or value in self.initialised:
            yield "load", *value
        self.initialised.add(value)

    def drop(self, value: Value) -> Iterator[Event]:
        if self.streams(value) and self.rank(value) < self.next_kept:
            return
        self.red.remove(value)
        if value[0] == "Y":
            yield "store", *value
        yield "delete", *value

    def sweep(
        self,
        lines: Sequence[Value],
        others: Sequence[Value],
        hold: bool,
        stay: bool,
        update: Callable[[Value, Value], Iterator[Event]],
    ) -> Iterator[Event]:
        """All pairs of two vectors; ``lines`` is held when ``hold``, else the shorter; ``stay`` keeps it afterwards."""
        held, single = (lines, others) if hold or len(lines) <= len(others) else (others, lines)
        for value in held:
            yield from self.fetch(value)
        for other in single:
            yield from self.fetch(other)
            for value in held:
                yield from update(value, other) if held is lines else update(other, value)
            yield from self.drop(other)
        for value in held:
            if not (stay and held is lines):
                yield from self.drop(value)

    def used_up(self, cell: tuple[int, ...]) -> Iterator[Event]:
        """A cell of H that no product needs any more, or none before the next phase."""
        if self.stored:
            yield "store", "H", cell
        yield "delete", "H", cell

    def block(
        self, band: ChainBand, rows: Sequence[int], cols: Sequence[int], last: bool, stays_in: Sequence[int] = ()
    ) -> Iterator[Event]:
        """Compute a block of H and use it; of some rows it stays."""
        c = self.chain
        several = band.blocks > 1

        def multiply(a: Value, b: Value) -> Iterator[Event]:
            if b[1][2] < c.seen(a[1][0] + 1):
                yield from _multiply(a, b)

        def accumulate(y: Value, d: Value) -> Iterator[Event]:
            if d[1][0] < c.seen(y[1][0] + 1):
                yield from _accumulate(y, d)

        for t in range(c.k):
            kept = several and t < band.carried_first
            a: list[Value] = [("A", (i, t)) for i in rows]
            b: list[Value] = [("B", (s, t, j)) for j in cols for s in range(c.streams)]
            if self.rows:
                yield from self.sweep(a, b, kept, kept and not last, multiply)
            else:
                yield from self.sweep(b, a, kept, kept and not last, lambda b, a: multiply(a, b))
        pairs = [(i, j) for i in rows for j in cols if j < c.seen(i + 1)]
        for i, j in pairs:
            yield "finish", "H", (i, j)
            if c.streams == 2:
                yield "delete", "H", (1, i, j)
        wider = band.wider and self.rows and cols[0] == 0
        stay = band.carried_second
        # the first, wider block: what stays comes in last, and what turns after what lies beside
        for q in [*range(stay, c.l), *range(stay - band.enter.turned)] if wider else range(c.l):
            kept = several and q < band.carried_second
            y: list[Value] = [("Y", (i, q)) for i in rows]
            d: list[Value] = [("D", (j, q)) for j in cols]
            if self.rows:
                yield from self.sweep(y, d, kept, kept and not last, accumulate)
            else:
                yield from self.sweep(d, y, kept, kept and not last, lambda d, y: accumulate(y, d))
        if wider and band.enter.turned:
            yield from self.turned_outputs(rows, cols, range(stay - band.enter.turned, stay), band.enter.group, True)
            return
        for i, j in pairs:
            if i not in stays_in:
                yield from self.used_up((0, i, j))

    def turned_outputs(
        self, rows: Sequence[int], cols: Sequence[int], qs: Sequence[int], group: int, block_of_h: bool
    ) -> Iterator[Event]:
        """Y(rows, qs) takes the place of a block of H; or the other way round, H leaves as it comes to an end."""
        lines = cols if block_of_h else qs
        groups = groups_of(lines, group, short_first=not block_of_h)
        for some in groups:
            js, outputs = (some, qs) if block_of_h else (cols, some)
            for j in js:
                for q in outputs:
                    yield from self.fetch(("D", (j, q)))
            for i in rows:
                for q in outputs:
                    yield from self.fetch(("Y", (i, q)))
                    for j in js:
                        yield "compute", "Y", (i, q, j)
                if block_of_h or some is groups[-1]:
                    for j in js:
                        yield from self.used_up((0, i, j))
            for j in js:
                for q in outputs:
                    yield from self.drop(("D", (j, q)))

    def leave(self, rows: Sequence[int], columns: Sequence[int], corner: Corner) -> Iterator[Event]:
        """Rows of A and Y give way to B and D of some columns of H."""
        for group in groups_of(rows, corner.group, short_first=False):
            yield from self.met(group, columns, leaving=True, last=False)

    def come(self, rows: Sequence[int], columns: Sequence[int], corner: Corner) -> Iterator[Event]:
        """Rows of A and Y take the place of B and D of some columns."""
        groups = groups_of(rows, corner.group, short_first=True)
        for group in groups:
            yield from self.state_of(group, "begin")
            yield from self.met(group, columns, leaving=False, last=group is groups[-1])

    def met(self, rows: Sequence[int], columns: Sequence[int], leaving: bool, last: bool) -> Iterator[Event]:
        """All of H where a group of rows meets some columns, computed and used."""
        c = self.chain
        for t in range(c.k):
            weights: list[Value] = [("B", (s, t, j)) for s in range(c.streams) for j in columns]
            for w in weights:
                yield from self.fetch(w)
            for i in rows:
                yield from self.fetch(("A", (i, t)))
                for w in weights:
                    yield from _multiply(("A", (i, t)), w)
                if leaving:
                    yield from self.drop(("A", (i, t)))
            for w in weights if last else ():
                yield from self.drop(w)
        for i in rows:
            for j in columns:
                yield "finish", "H", (i, j)
                if c.streams == 2:
                    yield "delete", "H", (1, i, j)
        for q in range(c.l):
            weights = [("D", (j, q)) for j in columns]
            for w in weights:
                yield from self.fetch(w)
            for i in rows:
                yield from self.fetch(("Y", (i, q)))
                for w in weights:
                    yield from _accumulate(("Y", (i, q)), w)
                if leaving:
                    yield from self.drop(("Y", (i, q)))
            for w in weights if last else ():
                yield from self.drop(w)
        for i in rows:
            for j in columns:
                yield from self.used_up((0, i, j))
        if leaving:
            yield from self.state_of(rows, "delete")

    def panel(
        self, band: ChainBand, rows: Sequence[int], order: Sequence[int], came: Corner, goes: Corner
    ) -> Iterator[Event]:
        """A band with all of A and Y there, and its corners."""
        c, self.order = self.chain, order
        if came.turned:
            yield from self.come(rows, order[: came.turned], came)
        else:
            yield from self.state_of(rows, "begin")
        for j in order[came.turned : came.vectors]:
            for i in rows:
                yield from self.met([i], [j], leaving=False, last=i == rows[-1])
        stay = self.handed.leave.vectors if rows[-1] + 1 == c.m else goes.vectors
        middle = order[came.vectors : c.f - stay]
        for at in range(0, len(middle), band.block):
            yield from self.block(band, rows, sorted(middle[at : at + band.block]), False)
        for j in order[c.f - goes.vectors : c.f - goes.turned]:
            for i in rows:
                yield from self.met([i], [j], leaving=False, last=False)
        if goes.turned:
            yield from self.leave(rows, order[c.f - goes.turned :], goes)
        elif self.handed.cells and rows[-1] + 1 == c.m:
            yield from self.handing(band, rows, order[c.f - self.handed.leave.vectors :])
        else:
            for i in rows:
                for value in [*(("A", (i, t)) for t in range(c.k)), *(("Y", (i, q)) for q in range(c.l))]:
                    yield from self.drop(value)
            yield from self.state_of(rows, "delete")

    def handing(self, band: ChainBand, rows: Sequence[int], columns: Sequence[int]) -> Iterator[Event]:
        """The last columns of H of the last panel: of the last rows they stay, in the end in the place of A."""
        c, corner, stays = self.chain, self.handed.leave, rows[len(rows) - self.handed.rows :]
        for j in columns[: corner.plain]:
            yield from self.block(band, rows, [j], False, stays)
        turned = columns[corner.plain :]
        for group in groups_of(range(c.k), corner.group, short_first=False) if turned else ():
            yield from self.giving_way(rows, group, turned)
        yield from self.finished(rows, turned)
        for q in range(c.l):
            y: list[Value] = [("Y", (i, q)) for i in rows]
            for j in turned:
                yield from self.sweep(y, [("D", (j, q))], True, True, _accumulate)
            for value in y:
                yield from self.drop(value)
        for i in rows if turned else ():
            for j in turned if i not in stays else ():
                yield from self.used_up((0, i, j))
        for value in [("A", (i, t)) for i in rows for t in range(c.k)] if not turned else ():
            yield from self.drop(value)

    def giving_way(self, rows: Sequence[int], group: Sequence[int], chunk: Sequence[int]) -> Iterator[Event]:
        """Columns of A go as columns of H come, all with one group of rows of B."""
        weights: list[Value] = [("B", (s, t, j)) for t in group for s in range(self.chain.streams) for j in chunk]
        for w in weights:
            yield from self.fetch(w)
        for i in rows:
            for w in weights:
                yield from self.fetch(("A", (i, w[1][1])))
                yield from _multiply(("A", (i, w[1][1])), w)
            for t in group:
                yield from self.drop(("A", (i, t)))
        for w in weights:
            yield from self.drop(w)

    def spilled(self, band: ChainBand, rows: Sequence[int]) -> Iterator[Event]:
        """All columns of H of the band, then all of Y: first those that are stored, last those that turn."""
        c, turned = self.chain, band.enter.turned
        alone, chunk = range(c.f - turned), range(c.f - turned, c.f)
        for j in alone:
            for t in range(c.k):
                a: list[Value] = [("A", (i, t)) for i in rows]
                b: list[Value] = [("B", (s, t, j)) for s in range(c.streams)]
                yield from self.sweep(a, b, True, j + 1 < c.f, _multiply)
            if not c.state:  # softmax needs the maximum and the sum of the row
                yield from self.finished(rows, [j])
            for i in rows if j < band.spilled else ():
                yield "store", "H", (0, i, j)
                yield "delete", "H", (0, i, j)
        for group in groups_of(range(c.k), band.enter.group, short_first=False) if turned else ():
            yield from self.giving_way(rows, group, chunk)
        yield from self.finished(rows, chunk)
        if turned:
            yield from self.turned_outputs(rows, chunk, range(c.l), band.leave.group, False)
        for j in reversed(alone):
            for i in rows if j < band.spilled else ():
                yield "load", "H", (0, i, j)
            if c.state:
                yield from self.finished(rows, [j])
            for q in range(c.l):
                y: list[Value] = [("Y", (i, q)) for i in rows]
                yield from self.sweep(y, [("D", (j, q))], True, j > 0, _accumulate)
            for i in rows:
                yield "delete", "H", (0, i, j)

    def finished(self, rows: Sequence[int], cols: Sequence[int]) -> Iterator[Event]:
        for i in rows:
            for j in cols:
                yield "finish", "H", (i, j)
                if self.chain.streams == 2:
                    yield "delete", "H", (1, i, j)

    def state_of(self, rows: Sequence[int], op: str) -> Iterator[Event]:
        """Maximum and sum of rows whose outputs are never stored before they are complete."""
        for i in rows:
            for number in range(min(self.chain.state, 2)):
                yield op, "state", (i, number)

    def state(self, band: ChainBand, op: str, rows: Sequence[int]) -> Iterator[Event]:
        c = self.chain
        whole = band.blocks > 1 and (band.carried_first, band.carried_second) == (c.k, c.l)
        for i in rows:
            for number in range(min(c.state, 2) if whole else c.state):
                yield op, "state", (i, number)

    def play(self) -> Iterator[Event]:
        c, bands = self.chain, self.plan.bands
        start, forward, came = 0, True, Corner(0, 0, 0)
        for number, band in enumerate(bands):
            extent = range(start, start + band.extent)
            start += band.extent
            handed = NOTHING
            if number + 1 < len(bands):
                seen = c.seen(start) if self.rows else c.f
                handed = handed_on(c, self.plan.side, self.plan.memory, band, bands[number + 1], seen)
            self.next_kept = 0 if handed.leave.vectors else handed.values
            if band.spilled:
                yield from self.state_of(extent, "begin")
                yield from self.spilled(band, extent)
                yield from self.state_of(extent, "delete")
                continue
            if came.vectors or handed.leave.vectors or (self.handed.cells and start == c.m):
                order = range(c.f) if forward else range(c.f - 1, -1, -1)
                yield from self.panel(band, extent, order, came, handed.leave)
                forward, came = not forward, handed.enter
                continue
            across = c.seen(start) if self.rows else c.m
            first = min(across, band.wider or band.block)
            edges = [0, *range(first, across, band.block), across]
            blocks = [range(item, other) for item, other in pairwise(edges)]
            if self.rows:
                yield from self.state(band, "begin", extent)
            for block in blocks:
                rows, cols = (extent, block) if self.rows else (block, extent)
                if not self.rows:
                    yield from self.state(band, "begin", rows)
                yield from self.block(band, rows, cols, block is blocks[-1])
                if not self.rows:
                    yield from self.state(band, "delete", rows)
            if self.rows:
                yield from self.state(band, "delete", extent)

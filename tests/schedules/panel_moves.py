"""The moves of panels that lack a corner, in the events of `chain_moves`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pebble.schedules.explicit.remainder import PanelsWithRemainder

# (move, operand, index); operands A[i, t], B[s, t, j], H[s, i, j], D[j, q], Y[i, q] and state[i, number]
Event = tuple[str, str, tuple[int, ...]]
Value = tuple[str, tuple[int, ...]]


def panels_apart_moves(plan: PanelsWithRemainder) -> Iterator[Event]:
    """The panels one after the other, then the corners of all of them."""
    corners: list[int] = []
    start = 0
    for number, extent in enumerate(plan.extents):
        panel = range(start, start + extent)
        apart = panel[extent - plan.corner[0] :]
        if plan.side == "rows":
            yield from _rows(plan, panel, apart)
        else:
            yield from _columns(plan, panel, apart, again=number > 0)
        corners += apart
        start += extent
    yield from _corners(plan, corners)


def _last(plan: PanelsWithRemainder) -> range:
    """Columns of Y that the corners have."""
    return range(plan.chain.l - plan.corner[1], plan.chain.l)


def _rows(plan: PanelsWithRemainder, rows: Sequence[int], apart: Sequence[int]) -> Iterator[Event]:
    """Rows of A and Y stay, B and D pass."""
    c, columns = plan.chain, _last(plan)
    inputs: list[Value] = [("A", (i, t)) for i in rows for t in range(c.k)]
    yield from _all("load", inputs)
    for j in range(c.f):
        for s in range(c.streams):
            for t in range(c.k):
                yield "load", "B", (s, t, j)
                for i in rows:
                    yield "compute", "H", (s, i, j, t)
                yield "delete", "B", (s, t, j)
        yield from _finished(plan, [(i, j) for i in rows], [(i, j) for i in apart])
        for q in range(c.l):
            yield "load", "D", (j, q)
            for i in rows:
                if i not in apart or q not in columns:
                    yield "compute", "Y", (i, q, j)
            yield "delete", "D", (j, q)
        yield from _all("delete", [("H", (0, i, j)) for i in rows])
    yield from _all("delete", inputs)
    for i in rows:
        for q in range(c.l):
            if i not in apart or q not in columns:
                yield from _gone(("Y", (i, q)))


def _columns(plan: PanelsWithRemainder, panel: Sequence[int], apart: Sequence[int], again: bool) -> Iterator[Event]:
    """Columns of B and rows of D stay, A and Y pass; ``again``: Y has partial sums of panels before."""
    c, columns = plan.chain, _last(plan)
    stays: list[Value] = [("B", (s, t, j)) for j in panel for s in range(c.streams) for t in range(c.k)]
    stays += [("D", (j, q)) for j in panel for q in range(c.l) if j not in apart or q not in columns]
    yield from _all("load", stays)
    for i in range(c.m):
        for t in range(c.k):
            yield "load", "A", (i, t)
            for s in range(c.streams):
                for j in panel:
                    yield "compute", "H", (s, i, j, t)
            yield "delete", "A", (i, t)
        yield from _finished(plan, [(i, j) for j in panel], [(i, j) for j in apart])
        for q in range(c.l):
            if again:
                yield "load", "Y", (i, q)
            for j in panel:
                if j not in apart or q not in columns:
                    yield "compute", "Y", (i, q, j)
            yield from _gone(("Y", (i, q)))
        yield from _all("delete", [("H", (0, i, j)) for j in panel])
    yield from _all("delete", stays)


def _corners(plan: PanelsWithRemainder, lines: Sequence[int]) -> Iterator[Event]:
    """One block of Y or of D: at each index of the other side the shorter of two vectors is held."""
    columns, rows = _last(plan), plan.side == "rows"
    block: list[Value] = [("Y" if rows else "D", (line, q)) for line in lines for q in columns]
    if not rows:
        yield from _all("load", block)
    for x in range(plan.chain.f if rows else plan.chain.m):
        cells: list[Value] = [("H", (0, line, x) if rows else (0, x, line)) for line in lines]
        others: list[Value] = [("D" if rows else "Y", (x, q)) for q in columns]
        held, single = (cells, others) if len(cells) <= len(others) else (others, cells)
        yield from _all("load", held)
        for item in single:
            yield "load", *item
            for other in held:
                (_, (_, i, j)), (_, (_, q)) = (other, item) if held is cells else (item, other)
                yield "compute", "Y", (i, q, j)
            yield from _gone(item)
        for item in held:
            yield from _gone(item)
    for item in block:
        yield from _gone(item)


def _finished(
    plan: PanelsWithRemainder, cells: Sequence[tuple[int, int]], apart: Sequence[tuple[int, int]]
) -> Iterator[Event]:
    """Complete cells of H; those of the corner's lines are stored."""
    for cell in cells:
        yield "finish", "H", cell
        if plan.chain.streams == 2:
            yield "delete", "H", (1, *cell)
    yield from _all("store", [("H", (0, *cell)) for cell in apart])


def _all(move: str, values: Sequence[Value]) -> Iterator[Event]:
    for value in values:
        yield move, *value


def _gone(value: Value) -> Iterator[Event]:
    if value[0] == "Y":
        yield "store", *value
    yield "delete", *value

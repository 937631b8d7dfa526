"""The moves of a schedule on several SMs, one by one, so that a referee can replay what the formulas claim."""

from __future__ import annotations

from collections.abc import Iterator

from pebble.schedules.explicit.parallel import ParallelSchedule

# (move, operand, index, SM, source SM of a copy); "compute" names the update (i, j, l) of C
ParallelEvent = tuple[str, str, tuple[int, ...], int, int | None]


def parallel_moves(schedule: ParallelSchedule) -> Iterator[ParallelEvent]:
    """Play the schedule: clusters one after another, the SMs of a cluster in lockstep.

    Yields
    ------
    (str, str, tuple of int, int, int or None)
        ``load``, ``store``, ``delete``, ``copy`` or ``compute``. At least m n k events: meant for small problems.
    """
    return _ParallelPlayer(schedule).play()


def _cuts(extent: int, count: int) -> list[range]:
    """``count`` ranges of ceil(extent / count) or less, none empty unless they cannot all be filled."""
    size = -(-extent // count)
    return [range(start, min(start + size, extent)) for start in range(0, extent, size)]


class _ParallelPlayer:
    def __init__(self, schedule: ParallelSchedule) -> None:
        self.schedule = schedule
        g = schedule.gemm
        extents = (g.m, g.n, g.k)
        self.m, self.n, self.k = (_cuts(e, c) for e, c in zip(extents, schedule.grid, strict=True))
        self.initialised = set() if not g.accumulate else {(i, j) for i in range(g.m) for j in range(g.n)}

    def first_sm(self, cluster: int) -> int:
        """The lowest SM of a cluster."""
        schedule = self.schedule
        size, group = schedule.cluster[0] * schedule.cluster[1], schedule.group or schedule.sms
        return cluster // (group // size) * group + cluster % (group // size) * size

    def play(self) -> Iterator[ParallelEvent]:
        c_m, c_n = self.schedule.cluster
        number = 0
        for slab in self.k:
            for top in range(0, len(self.m), c_m):
                for left in range(0, len(self.n), c_n):
                    first = self.first_sm(number % self.schedule.clusters)
                    number += 1
                    rows, cols = self.m[top : top + c_m], self.n[left : left + c_n]
                    if self.schedule.face == "C":
                        yield from self.outer(first, rows, cols, slab)
                    else:
                        yield from self.inner(first, rows[0], cols[0], slab)

    def enter_c(self, i: int, j: int, sm: int) -> Iterator[ParallelEvent]:
        """The cell, loaded if it holds partial sums."""
        if (i, j) in self.initialised:
            yield "load", "C", (i, j), sm, None
        self.initialised.add((i, j))

    def leave_c(self, i: int, j: int, sm: int) -> Iterator[ParallelEvent]:
        yield "store", "C", (i, j), sm, None
        yield "delete", "C", (i, j), sm, None

    def outer(self, first: int, rows: list[range], cols: list[range], slab: range) -> Iterator[ParallelEvent]:
        """A cluster: C blocks held, outer products along k, each value of A and B read once and passed on."""
        c_n = self.schedule.cluster[1]
        sms = {(a, b): first + a * c_n + b for a in range(len(rows)) for b in range(len(cols))}
        for (a, b), sm in sms.items():
            for i in rows[a]:
                for j in cols[b]:
                    yield from self.enter_c(i, j, sm)
        vector_is_a = self.schedule.block[0] <= self.schedule.block[1]
        sides = {"A": rows, "B": cols}
        vector, stream = ("A", "B") if vector_is_a else ("B", "A")
        for l in slab:

            def at(name: str, x: int, l: int = l) -> tuple[int, int]:
                return (x, l) if name == "A" else (l, x)

            for x, part in enumerate(sides[vector]):
                for value in part:
                    yield from self.share(vector, at(vector, value), self.line(sms, vector, x))
            for y, part in enumerate(sides[stream]):
                line = self.line(sms, stream, y)
                for value in part:
                    yield from self.share(stream, at(stream, value), line)
                    for x, sm in enumerate(line):
                        for other in sides[vector][x]:
                            i, j = (other, value) if vector_is_a else (value, other)
                            yield "compute", "C", (i, j, l), sm, None
                        yield "delete", stream, at(stream, value), sm, None
            for x, part in enumerate(sides[vector]):
                for value in part:
                    for sm in self.line(sms, vector, x):
                        yield "delete", vector, at(vector, value), sm, None
        for (a, b), sm in sms.items():
            for i in rows[a]:
                for j in cols[b]:
                    yield from self.leave_c(i, j, sm)

    @staticmethod
    def line(sms: dict[tuple[int, int], int], name: str, place: int) -> list[int]:
        """The SMs that share a value: a row of the cluster for A, a column for B."""
        return [sm for (a, b), sm in sorted(sms.items()) if (a if name == "A" else b) == place]

    @staticmethod
    def share(name: str, index: tuple[int, int], line: list[int]) -> Iterator[ParallelEvent]:
        yield "load", name, index, line[0], None
        for sm in line[1:]:
            yield "copy", name, index, sm, line[0]

    def inner(self, sm: int, rows: range, cols: range, slab: range) -> Iterator[ParallelEvent]:
        """One SM: the face of A or B held, the third dimension streamed."""
        held_a = self.schedule.face == "A"
        across, along = (rows, cols) if held_a else (cols, rows)  # the face is across x slab
        face = [((x, l) if held_a else (l, x)) for x in across for l in slab]
        name, other = ("A", "B") if held_a else ("B", "A")
        size = self.schedule.block
        for index in face:
            yield "load", name, index, sm, None
        for y in along:
            cells = [(x, y) if held_a else (y, x) for x in across]
            values = [(l, y) if held_a else (y, l) for l in slab]
            if (size[0] if held_a else size[1]) <= size[2]:  # the cells are the vector, the other operand streams
                for i, j in cells:
                    yield from self.enter_c(i, j, sm)
                for l, value in zip(slab, values, strict=True):
                    yield "load", other, value, sm, None
                    for i, j in cells:
                        yield "compute", "C", (i, j, l), sm, None
                    yield "delete", other, value, sm, None
                for i, j in cells:
                    yield from self.leave_c(i, j, sm)
            else:
                for value in values:
                    yield "load", other, value, sm, None
                for i, j in cells:
                    yield from self.enter_c(i, j, sm)
                    for l in slab:
                        yield "compute", "C", (i, j, l), sm, None
                    yield from self.leave_c(i, j, sm)
                for value in values:
                    yield "delete", other, value, sm, None
        for index in face:
            yield "delete", name, index, sm, None

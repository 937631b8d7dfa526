"""The moves of a product in equal blocks, one by one, so that a referee can replay what the formulas claim."""

from __future__ import annotations

from collections.abc import Iterator

from pebble.schedules.explicit.gemm import operand_of
from pebble.schedules.explicit.widths import WideGemmSchedule

# (move, operand, (row, column)) or ("compute", "C", (i, j, l))
Event = tuple[str, str, tuple[int, ...]]


def nest_moves(schedule: WideGemmSchedule) -> Iterator[Event]:
    """Play a schedule, meant for small ones: at least m n k events.

    Yields ``load``, ``store`` or ``delete`` of a value of A, B or C by row and column, or ``compute`` of the update
    (i, j, l): C[i, j] += A[i, l] B[l, j].
    """
    return _Player(schedule).play()


class _Player:
    def __init__(self, schedule: WideGemmSchedule) -> None:
        gemm = schedule.gemm
        self.nest = schedule.nest
        self.updates_left = {(i, j): gemm.k for i in range(gemm.m) for j in range(gemm.n)}
        self.untouched = set() if gemm.accumulate else set(self.updates_left)
        self.red: set[tuple[str, tuple[int, int]]] = set()

    def value(self, axes: tuple[str, str], at: tuple[int, int]) -> tuple[str, tuple[int, int]]:
        """Operand and (row, column) of the value at these coordinates."""
        name = operand_of(*axes)
        where = dict(zip(axes, at, strict=True))
        rows, cols = {"A": ("m", "k"), "B": ("k", "n"), "C": ("m", "n")}[name]
        return name, (where[rows], where[cols])

    def fetch(self, axes: tuple[str, str], at: tuple[int, int]) -> Iterator[Event]:
        name, index = self.value(axes, at)
        if (name, index) in self.red:
            return
        self.red.add((name, index))
        if name != "C" or index not in self.untouched:
            yield "load", name, index

    def drop(self, axes: tuple[str, str], at: tuple[int, int]) -> Iterator[Event]:
        name, index = self.value(axes, at)
        self.red.remove((name, index))
        if name == "C":
            yield "store", name, index
        yield "delete", name, index

    def update(self, p: int, q: int, r: int) -> Iterator[Event]:
        where = dict(zip(self.nest.axes, (p, q, r), strict=True))
        i, j, l = where["m"], where["n"], where["k"]
        self.untouched.discard((i, j))
        yield "compute", "C", (i, j, l)

    def play(self) -> Iterator[Event]:
        nest = self.nest
        first, second, streamed = nest.axes
        pr, qr, pq = (first, streamed), (second, streamed), (first, second)
        walk = [
            (row, col)
            for row in range(nest.rows)
            for col in (range(nest.cols) if row % 2 == 0 else range(nest.cols - 1, -1, -1))
        ]
        keep_p = keep_q = 0  # vectors held from the last block: the first ones in this block's direction
        for number, (row, col) in enumerate(walk):
            ps = range(row * nest.bp, row * nest.bp + nest.height(row))
            qs = range(col * nest.bq, col * nest.bq + nest.width(col))
            next_p = next_q = 0
            if number + 1 < len(walk):
                if walk[number + 1][0] == row:
                    next_p = nest.kept_across(len(ps), nest.bq)
                else:
                    next_q = nest.kept_down(row, len(qs))
            order = range(nest.r) if number % 2 == 0 else range(nest.r - 1, -1, -1)
            stationary = self.value(pq, (0, 0))[0]
            if stationary != "C":
                for p in ps:
                    for q in qs:
                        yield from self.fetch(pq, (p, q))
            for step, r in enumerate(order):
                later = nest.r - step - 1  # steps after this one
                stays_p, stays_q = later < next_p, later < next_q
                whole_p = step < keep_p or stays_p
                whole_q = step < keep_q or stays_q
                if whole_p or (not whole_q and len(ps) <= len(qs)):
                    vector, singles = (pr, ps, stays_p), (qr, qs)
                else:
                    vector, singles = (qr, qs, stays_q), (pr, ps)
                axes, indices, stays = vector
                for x in indices:
                    yield from self.fetch(axes, (x, r))
                for y in singles[1]:
                    yield from self.fetch(singles[0], (y, r))
                    for x in indices:
                        p, q = (x, y) if axes == pr else (y, x)
                        if stationary == "C":
                            yield from self.fetch(pq, (p, q))
                        yield from self.update(p, q, r)
                    yield from self.drop(singles[0], (y, r))
                if not stays:
                    for x in indices:
                        yield from self.drop(axes, (x, r))
            for p in ps:
                for q in qs:
                    yield from self.drop(pq, (p, q))
            keep_p, keep_q = next_p, next_q

"""The moves of an explicit GEMM schedule, one by one, so that a referee can replay what the formulas claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pebble.schedules.explicit.blocked import BlockedProduct
from pebble.schedules.explicit.corner import NO_CORNER, Corner
from pebble.schedules.explicit.gemm import Band, BandedProduct, StationaryProduct, operand_of, other_axes
from pebble.schedules.explicit.remainder import BandsWithRemainder
from pebble.workloads import Gemm

# (move, operand, (row, column)) or ("compute", "C", (i, j, l))
Event = tuple[str, str, tuple[int, ...]]
Axes = tuple[str, str]
Missing = Mapping[str, range]  # of p and of q: products of both are left out
NOTHING: Missing = {"p": range(0), "q": range(0)}


def gemm_moves(schedule: StationaryProduct, enter: Corner = NO_CORNER) -> Iterator[Event]:
    """Play a schedule, meant for small ones: at least m n k events.

    ``enter``: how its first block takes the place of as many vectors, which are there already: the first ones of the
    operand that is cut into bands, as bands of slabs of A or C cut along m find A.

    Yields ``load``, ``store`` or ``delete`` of a value of A, B or C by row and column, or ``compute`` of the update
    (i, j, l): C[i, j] += A[i, l] B[l, j].
    """
    if isinstance(schedule, BandsWithRemainder):
        return _Remainder(schedule).play()
    if isinstance(schedule, BlockedProduct):
        return _Blocks(schedule).play()
    assert isinstance(schedule, BandedProduct)
    return _Bands(schedule, enter).play()


def groups_of(values: Sequence[int], size: int, short_first: bool) -> list[Sequence[int]]:
    """Consecutive groups of that size, the short one first or last."""
    cut = len(values) % size if short_first else 0
    groups = [values[:cut]] if cut else []
    return groups + [values[i : i + size] for i in range(cut, len(values), size)]


class _GemmPlayer:
    def __init__(self, gemm: Gemm) -> None:
        self.untouched = set() if gemm.accumulate else {(i, j) for i in range(gemm.m) for j in range(gemm.n)}
        self.red: set[tuple[str, tuple[int, int]]] = set()

    def value(self, axes: Axes, at: tuple[int, int]) -> tuple[str, tuple[int, int]]:
        """Operand and (row, column) of the value at these coordinates."""
        name = operand_of(*axes)
        where = dict(zip(axes, at, strict=True))
        rows, cols = {"A": ("m", "k"), "B": ("k", "n"), "C": ("m", "n")}[name]
        return name, (where[rows], where[cols])

    def fetch(self, axes: Axes, at: tuple[int, int]) -> Iterator[Event]:
        name, index = self.value(axes, at)
        if (name, index) in self.red:
            return
        self.red.add((name, index))
        if name != "C" or index not in self.untouched:
            yield "load", name, index

    def drop(self, axes: Axes, at: tuple[int, int]) -> Iterator[Event]:
        name, index = self.value(axes, at)
        self.red.remove((name, index))
        if name == "C":
            yield "store", name, index
        yield "delete", name, index

    def update(self, axes: tuple[str, str, str], at: tuple[int, int, int]) -> Iterator[Event]:
        where = dict(zip(axes, at, strict=True))
        i, j, l = where["m"], where["n"], where["k"]
        self.untouched.discard((i, j))
        yield "compute", "C", (i, j, l)

    def plain(
        self,
        axes: dict[str, str],
        sides: Mapping[str, Sequence[int]],
        held: str,
        r: int,
        stays: Sequence[int],
        without: Missing = NOTHING,
    ) -> Iterator[Event]:
        """Updates at one streamed index, but those of a corner: one side is held, the other passes.

        Of the side that is held, ``stays`` are kept afterwards.
        """
        other = "q" if held == "p" else "p"
        for x in sides[held]:
            yield from self.fetch((axes[held], axes["r"]), (x, r))
        for y in sides[other]:
            yield from self.fetch((axes[other], axes["r"]), (y, r))
            for x in sides[held]:
                if x not in without[held] or y not in without[other]:
                    yield from self.fetch((axes[held], axes[other]), (x, y))
                    yield from self.update((axes[held], axes[other], axes["r"]), (x, y, r))
            yield from self.drop((axes[other], axes["r"]), (y, r))
        for x in sides[held]:
            if x not in stays:
                yield from self.drop((axes[held], axes["r"]), (x, r))


class _Blocks(_GemmPlayer):
    def __init__(self, schedule: BlockedProduct) -> None:
        super().__init__(schedule.gemm)
        self.nest = schedule.nest

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
                    next_p = nest.carried_across(len(ps), nest.bq)
                else:
                    next_q = nest.carried_down(row, len(qs))
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
                        yield from self.update(nest.axes, (p, q, r))
                    yield from self.drop(singles[0], (y, r))
                if not stays:
                    for x in indices:
                        yield from self.drop(axes, (x, r))
            for p in ps:
                for q in qs:
                    yield from self.drop(pq, (p, q))
            keep_p, keep_q = next_p, next_q


class _Remainder(_GemmPlayer):
    def __init__(self, schedule: BandsWithRemainder) -> None:
        super().__init__(schedule.gemm)
        self.schedule = schedule

    def play(self) -> Iterator[Event]:
        s = self.schedule
        p, (a, b) = s.extent(s.axes[0]), s.corner
        corners: list[int] = []
        start = 0
        for width in s.widths:
            ends = range(start + width - b, start + width)
            yield from self.block(range(p), range(start, start + width), {"p": range(p - a, p), "q": ends})
            corners += ends
            start += width
        yield from self.block(range(p - a, p), corners, NOTHING)

    def block(self, ps: Sequence[int], qs: Sequence[int], without: Missing) -> Iterator[Event]:
        """All products of a block but those of a corner of it."""
        axes = dict(zip("pqr", self.schedule.axes, strict=True))
        cells = [(x, y) for x in ps for y in qs if not (x in without["p"] and y in without["q"])]
        if self.schedule.stationary != "C":
            for cell in cells:
                yield from self.fetch((axes["p"], axes["q"]), cell)
        for r in range(self.schedule.extent(axes["r"])):
            yield from self.plain(axes, {"p": ps, "q": qs}, "p" if len(ps) <= len(qs) else "q", r, (), without)
        for cell in cells:
            yield from self.drop((axes["p"], axes["q"]), cell)


class _Bands(_GemmPlayer):
    def __init__(self, schedule: BandedProduct, enter: Corner) -> None:
        super().__init__(schedule.gemm)
        self.schedule = schedule
        self.enter = enter

    def walk(self) -> Iterator[tuple[Band, range, range, Corner, Corner, str | None]]:
        """Each block: band, its indices of p and q, how vectors come in and go on, and what they share with the next.

        The letter is the axis along which the vectors of the shared operand lie: q inside a band, p at its end.
        """
        start, enter = 0, self.enter
        bands = list(self.schedule.each())
        for number, (band, steps, same) in enumerate(bands):
            qs = range(start, start + band.width)
            start += band.width
            p, _, _ = self.schedule.layout(band)
            size, longer = divmod(p, band.blocks)
            edges = [i * size + min(i, longer) for i in range(band.blocks + 1)]
            order = range(band.blocks) if number % 2 == 0 else range(band.blocks - 1, -1, -1)
            for at, block in enumerate(order):
                ps, turn, shared = range(edges[block], edges[block + 1]), (NO_CORNER, NO_CORNER), None
                if at + 1 < band.blocks:
                    turn, shared = (steps.across, steps.across), "q"
                elif number + 1 < len(bands):
                    turn, shared = (steps.down if same else steps.next), "p"
                yield band, ps, qs, enter, turn[0], shared
                enter = turn[1]

    def play(self) -> Iterator[Event]:
        blocks = list(self.walk())
        forward, came = True, "q" if self.enter.vectors else "p"  # the axis along which the vectors that came in lie
        for number, (band, ps, qs, enter, leave, shared) in enumerate(blocks):
            p_axis, r_axis = other_axes(band.stationary, self.schedule.axis)
            if number == 0:
                there = [(x, r) for x in qs for r in range(enter.vectors)]
                self.red |= {self.value((self.schedule.axis, r_axis), item) for item in there}
            axes = {"p": p_axis, "q": self.schedule.axis, "r": r_axis}
            streamed = self.schedule.extent(r_axis)
            order = range(streamed) if forward else range(streamed - 1, -1, -1)
            sides = {"p": ps, "q": qs}
            first, last = enter.vectors, streamed - leave.vectors
            stays: dict[str, Sequence[int]] = {}
            if leave.vectors:
                # of the shared operand, what the next block has too
                stays = {"p": _both(ps, blocks[number + 1][1]), "q": qs}
            if enter.turned:
                yield from self.corner(axes, sides, came, order[: enter.turned], enter, ())
            if band.stationary != "C":  # what the corner has not brought
                for x in ps:
                    for y in qs:
                        yield from self.fetch((axes["p"], axes["q"]), (x, y))
            for r in order[enter.turned : first]:
                yield from self.plain(axes, sides, came, r, ())
            for r in order[first:last]:
                yield from self.plain(axes, sides, "p" if len(ps) <= len(qs) else "q", r, ())
            came = shared or came
            for r in order[last : last + leave.plain]:
                yield from self.plain(axes, sides, came, r, stays[came])
            if leave.turned:
                yield from self.corner(axes, sides, came, order[last + leave.plain :], leave, stays[came])
            for x in ps:
                for y in qs:
                    at = self.value((axes["p"], axes["q"]), (x, y))
                    if at in self.red:
                        yield from self.drop((axes["p"], axes["q"]), (x, y))
            forward = not forward

    def corner(
        self,
        axes: dict[str, str],
        sides: dict[str, range],
        shared: str,
        chunk: Sequence[int],
        corner: Corner,
        stays: Sequence[int],
    ) -> Iterator[Event]:
        """The block gives way to vectors that are to stay, or takes the place of those that came: none to stay."""
        other = "q" if shared == "p" else "p"
        leaving = bool(stays)
        groups = groups_of(sides[other], corner.group, short_first=not leaving)
        block, vector, pivot = (axes[shared], axes[other]), (axes[shared], axes["r"]), (axes[other], axes["r"])
        for number, group in enumerate(groups):
            for y in group:
                for r in chunk:
                    yield from self.fetch(pivot, (y, r))
            for x in sides[shared]:
                for r in chunk:
                    yield from self.fetch(vector, (x, r))
                for y in group:
                    yield from self.fetch(block, (x, y))
                    for r in chunk:
                        yield from self.update((axes[shared], axes[other], axes["r"]), (x, y, r))
                    if leaving:
                        yield from self.drop(block, (x, y))
                if number + 1 == len(groups) and x not in stays:
                    for r in chunk:
                        yield from self.drop(vector, (x, r))
            for y in group:
                for r in chunk:
                    yield from self.drop(pivot, (y, r))


def _both(single: range, other: range) -> range:
    return range(max(single.start, other.start), min(single.stop, other.stop))

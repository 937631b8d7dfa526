"""Which ways of cutting the pass bound is taken with, and the numbers of cuts at which they prove least.

For each way of cutting what is certain is convex in the number of cuts (`pebble.bounds.passes`): of one way the minimum
is found by bisection, of two by bisection over the one among the numbers of the other at which it alone proves no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from pebble.bounds.passes import ByCuts, Cutting, Grid, Least, PassBound, by_cuts
from pebble.bounds.uses import Goal, Use
from pebble.workloads.widths import Widths

_FEW = 20  # largest number of gaps of a line for which two ways of cutting are joined
_FEW_WITH_SUMS = 100  # the same where columns have sums
_TRIED_WITH_SUMS = 8  # pairs of ways, the most promising
_FINE = 64  # numbers of gaps that are tried: each larger than the one before by 1/64 of it, 1 at least
_DESCENTS = 100  # steps towards the minimum of two ways, before all near it are looked at
_MOST_CUTS = 4000  # numbers of cuts of the first of two ways that are looked at


def lowest(value: Callable[[int], int], near: int = 0) -> int:
    """The first q >= 0 from which a convex function does not fall, sooner found where that is ``near``."""

    def falls(q: int) -> bool:
        return value(q + 1) < value(q)

    low, high, step = 0, near, 1
    if falls(near):
        while falls(near + step):
            step *= 2
        low, high = near + step // 2 + 1, near + step
    else:
        while step <= near and not falls(near - step):
            high, step = near - step, 2 * step
        low = max(0, near - step + 1)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if falls(middle) else (low, middle)
    return low


def at_lowest(way: ByCuts) -> Least:
    """What is certain at the number of cuts where one way alone proves least."""
    return way(lowest(lambda q: way(q).moves))


def least_moves(
    cuttings: tuple[ByCuts, ...], floor: int = -1, proved: bool = True
) -> tuple[int, tuple[int, ...]] | None:
    """The minimum of Theorem 9 over the cuts of one or two ways, and where it is.

    None where it is not above ``floor``, or would take too long to find. Unless it need be ``proved``, a number near it
    that it is not above.
    """
    first, *others = cuttings
    start = lowest(lambda q: first(q).moves)
    if not others:
        return (first(start).moves, (start,)) if first(start).moves > floor else None
    (second,) = others

    def at(q: int, near: int = 0) -> tuple[int, tuple[int, ...]]:
        fixed = first(q)
        other = lowest(lambda x: fixed.joined(second(x)).moves, near)
        return fixed.joined(second(other)).moves, (q, other)

    def back(q: int, other: int) -> int:
        fixed = second(other)
        return lowest(lambda x: fixed.joined(first(x)).moves, q)

    best, before = at(start), floor
    for _ in range(_DESCENTS):  # down along one and the other: near the minimum at once, where numbers are not huge
        if best[0] <= floor or best[0] == before:
            break
        before, best = best[0], min(best, at(back(*best[1]), best[1][1]))
    looked = 0
    for step in (1, -1) if proved else ():
        q, other = start + step, best[1][1]
        while q >= 0 and first(q).moves < best[0] > floor:
            found = at(q, other)
            best, other = min(best, found), found[1][1]  # from one number to the next the other hardly moves
            q, looked = q + step, looked + 1
            if looked > _MOST_CUTS:
                return None
    return best if best[0] > floor else None


def pass_bound(grid: Grid, capacity: int) -> PassBound | None:
    """Theorem 9 with about the best ways of cutting; None where no way of cutting proves anything.

    Parameters
    ----------
    grid : Grid
        Of one group.
    capacity : int
        S, in what the widths count: values, or bytes.

    Notes
    -----
    Which ways are tried does not depend on S, but for those that prove nothing: so the bound falls as S grows. Some
    milliseconds. Where columns have sums only the most promising pairs are tried, some tenths of a second.
    """
    capacity //= grid.widths.unit
    best: tuple[int, tuple[int, ...], tuple[Cutting, ...]] = (0, (), ())
    cut_by = {(by_rows, gaps): by_cuts(grid, capacity, way) for by_rows, gaps, way in _cuttings(grid, capacity)}
    most = _FEW_WITH_SUMS if grid.column_sums else _FEW  # what is certain of sums alone asks for segments of its own
    few = {key: at_lowest(way) for key, way in cut_by.items() if key[1] <= most}
    for key, way in sorted(cut_by.items(), key=lambda single: -single[0][1]):  # many gaps are mostly best
        if way(_guess(grid, capacity, key)).moves > best[0]:  # the minimum is at most what it is anywhere
            result = least_moves((way,), best[0])
            best = (*result, (_cutting(grid, key),)) if result else best
    # the minimum is at most what it is anywhere: the most promising pair first
    pairs = [
        (few[element].joined(few[other]).moves, element, other) for element, other in _pairs(few, grid.column_sums > 0)
    ]
    if grid.column_sums:  # of many pairs the best, as it seems after a few steps
        near = (
            (least_moves((cut_by[x], cut_by[y]), best[0], False), x, y)
            for estimate, x, y in pairs
            if estimate > best[0]
        )
        pairs = sorted(((found[0], x, y) for found, x, y in near if found), reverse=True)[:_TRIED_WITH_SUMS]
    for estimate, item, other in sorted(pairs, reverse=True):
        if estimate <= best[0]:
            break
        result = least_moves((cut_by[item], cut_by[other]), best[0])
        best = (*result, (_cutting(grid, item), _cutting(grid, other))) if result else best
    moves, cuts, cuttings = best
    return PassBound(grid, capacity, cuttings, cuts, moves) if moves else None


@dataclass(frozen=True)
class ByPasses(Use):
    """Theorem 9 of a chain, in bytes B5."""

    grid: Grid

    @property
    def about(self) -> tuple[Grid]:
        """The cells of the intermediate."""
        return (self.grid,)

    def proofs(self, goal: Goal) -> tuple[PassBound, ...]:
        """With the best ways of cutting."""
        bound = pass_bound(self.grid, goal.capacity)
        return () if bound is None else (bound,)

    def weighted(self, widths: Widths) -> tuple[ByPasses]:
        """With every value at its width."""
        return (ByPasses(self.grid.at(widths)),)

    def on_sms(self) -> tuple[ByPasses]:
        """With atomic adds."""
        return (ByPasses(replace(self.grid, atomic=True)),)


Way = tuple[bool, int]  # whether by rows, and into how many parts the longest line is cut


def _cutting(grid: Grid, way: Way) -> Cutting:
    """Segments so long that the longest line has that many gaps."""
    by_rows, gaps = way
    longest = max(run.first + run.step * (run.lengths - 1) for run in (grid.columns if by_rows else grid.rows))
    return Cutting(by_rows, (longest - grid.spare) // gaps)


def _cuttings(grid: Grid, capacity: int) -> Iterator[tuple[bool, int, Cutting]]:
    """What is tried: from the fewest segments to the most for which another cut costs moves."""
    for by_rows, values in ((False, grid.column), (True, grid.row)):
        gaps = 1
        while (way := _cutting(grid, (by_rows, gaps))).vectors >= grid.spare and way.vectors * values > capacity:
            yield by_rows, gaps, way
            gaps += max(1, gaps // _FINE)


def _guess(grid: Grid, capacity: int, way: Way) -> int:
    """About as many cuts as have room for all gaps."""
    lines = grid.f * grid.column if way[0] else grid.m * grid.row
    return lines * way[1] // capacity


def _pairs(cuttings: Iterable[Way], sums: bool) -> Iterator[tuple[Way, Way]]:
    """Two ways that may prove more than one: of both kinds, or of one kind with one gap more; where columns have sums
    also any of a half to a fourth as many gaps."""
    results = set(cuttings)
    for by_rows, gaps in sorted(results):
        if sums:
            fewer = {gaps // part + more for part in (2, 3, 4) for more in (0, 1)}
            yield from (((by_rows, gaps), other) for other in results if other[1] in fewer and other[1] < gaps)
        near = ((not by_rows, gaps + more) for more in (-1, 0, 1) if not by_rows)
        for other in (*near, (by_rows, gaps + 1)):
            if other in results:
                yield (by_rows, gaps), other

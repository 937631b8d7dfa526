r"""The pass bound: two products in a row whose vectors are much shorter than their number, as in attention.

A row of :math:`A` and the same row of :math:`Y` are :math:`k + l` values, a column of :math:`B` and the same row of
:math:`D` are :math:`c` = :math:`k + l` (:math:`2 k + l` when gated), and a cell of :math:`H` has :math:`c` products. In
attention :math:`k + l` is 256 where there are many thousands of rows and columns: so nearly all products of a cell are
done close together, each vector is used as a whole, and a pass over all columns is a whole number of things.

**Cuts by columns.** Call a cell *whole* in a segment when all its products are done there. The prover ends a segment as
soon as :math:`L` different columns have a whole cell in it. One product makes one cell whole at most, so each of the
segments but the last has exactly :math:`L` such columns. Let there be :math:`q` cuts.

- *Columns.* Column :math:`j` has a whole cell in :math:`\gamma_j` segments, :math:`\sum \gamma_j \ge q L`. All values
  of the column are used in each of these. Between two of them that follow each other a value is held over a cut or
  loaded again: a *gap*. There are :math:`f` columns, so :math:`c\, (q L - f)` gaps at least.
- *Rows.* Row :math:`i` has :math:`n_i` cells, of which :math:`z_i` are not whole in any segment. It has whole cells in
  :math:`g_i` segments, at most :math:`L` in each: :math:`n_i - z_i \le g_i L`. Between two of these each of its
  :math:`k` values of :math:`A` is held over a cut or loaded again, each of its :math:`l` accumulators of :math:`Y` is
  held, or stored and loaded. With any whole :math:`\zeta \le L` and :math:`u_i = \lfloor (n_i - \zeta) / L \rfloor` (0
  if that is negative), :math:`g_i - 1 \ge u_i - z_i / \zeta`: with :math:`t = \lfloor z_i / \zeta \rfloor`, :math:`g_i
  L \ge n_i - z_i > n_i - \zeta - t \zeta \ge (u_i - t) L`.
- *Cells.* One that is not whole has products in two segments or more. Its accumulators are joined by the operations
  that merge them, complete it and read it, so that one of them is in fast memory in two of these segments: it is held
  over a cut, or stored and loaded.

Every gap that is held takes room at the first cut in it, where no other gap of the same value does, and all cuts
together have room for :math:`q S` values.

**Accounting.** Let :math:`F` and :math:`E` be the loads of :math:`B, D` and of :math:`A` beyond the first of each
value, :math:`M` the round trips (store and load) of accumulators of :math:`Y`, :math:`N` the cells of :math:`H` that
make one. Moves are at least compulsory traffic and :math:`F + E + 2 M + 2 N`. Let :math:`U = \sum u_i`, :math:`z = \sum
z_i`. Choose any of the three kinds :math:`B D`, :math:`A`, :math:`Y`, and count their gaps. With :math:`w \le 1`

.. math:: [c\, (q L - f) - F] + [k (U - z / \zeta) - E] + [l (U - z / \zeta) - M] + w [z - N] \le q S

(only the brackets chosen, and any bracket may be replaced by 0, since what is held is not negative). Let :math:`\zeta =
\max(k + l, c)` and :math:`w = k / \zeta`, :math:`l / \zeta`, their sum or 0, as :math:`A`, :math:`Y`, both or neither
are chosen: then :math:`z` drops out. So the moves of the chosen kinds are at least :math:`b - w N`, where

.. math:: b_{BD, A, Y} = c\, (q L - f)^+ + (k + l) U - q S, \quad b_{A, Y} = (k + l) U - q S, \quad \ldots

*Cuts by rows* are the same with the roles exchanged: a segment ends when :math:`L` rows have a whole cell, :math:`U` is
a sum over columns, the kinds have :math:`c\, U`, :math:`k (q L - m)^+` and :math:`l (q L - m)^+` gaps, and :math:`w = c
/ \zeta` if :math:`B D` is chosen, else 0.

**Theorem 9.** *Cut one schedule in several ways. With* :math:`b` *of each set of kinds the largest that a way of
cutting gives, or 0,*

.. math::

   \text{moves} \ge \text{compulsory} + \min_{q} \max \{\, b_{BD, A, Y} + b_Y,\;\; b_{BD, Y} + b_{A, Y} \,\},

*the minimum over the whole numbers* :math:`q \ge 0` *of cuts of each way.*

*Proof.* The schedule decides how many cuts each way has; take its :math:`q`. :math:`F + E + 2 M` is the sum of the
moves of all three kinds and of :math:`Y`, or of :math:`BD, Y` and of :math:`A, Y`; these are at least the two
:math:`b` less :math:`w N` and :math:`w' N`, or 0. Since :math:`w, w' \le 1`, :math:`2 N` makes up for it. :math:`\Box`

For each way of cutting each :math:`b` is convex in :math:`q`, so the maximum is, while the others stand: the minimum is
found by bisection over the last of them and, over the others, among the :math:`q` at which no way alone proves more.

*Atomic adds.* Where partial sums may meet in slow memory, as those of several SMs can, an accumulator of :math:`Y`
makes a gap for one more store, and :math:`F + E + M + 2 N` moves are left: :math:`b_{BD, A, Y}` alone bounds them. A
cell of :math:`H` still is stored and loaded, since a product reads it.

No recomputation. Masks are covered: :math:`n_i` may differ. Softmax, an activation, and the elementwise product that
joins gate and up only add operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from pebble.bounds.base import Theorem
from pebble.units import ceil_div

THEOREM = Theorem("Theorem 9", __name__)
METHOD = "pass accounting"
_FEW = 20  # largest number of gaps of a line for which two ways of cutting are joined
_FINE = 64  # numbers of gaps that are tried: each larger than the one before by 1/64 of it, 1 at least
_DESCENTS = 100  # steps towards the minimum of two ways, before all near it are looked at
_MOST_CUTS = 4000  # numbers of cuts of the first of two ways that are looked at


class Run(NamedTuple):
    """Lines of n, n + step, n + 2 step, ... cells."""

    first: int  #: n
    lengths: int  #: how many lengths
    step: int = 0
    times: int = 1  #: how many lines of each length


@dataclass(frozen=True)
class Grid:
    """The cells of H, row by row and column by column, and the values that belong to a row and to a column."""

    rows: tuple[Run, ...]  #: cells of each row
    columns: tuple[Run, ...]  #: cells of each column
    k: int  #: values of A in a row
    l: int  #: accumulators of Y in a row
    column: int  #: c, values of B and D in a column
    atomic: bool = False  #: whether partial sums may meet in slow memory, each for a store
    cell: int = 1  #: what a cell that is not whole takes at least; in units, as k, l and c are where widths differ

    @classmethod
    def full(cls, m: int, k: int, f: int, l: int, gated: bool = False) -> Grid:
        """All of m x f cells."""
        return cls((Run(f, m),), (Run(m, f),), k, l, (2 if gated else 1) * k + l)

    @classmethod
    def causal(cls, queries: int, keys: int, k: int, l: int, stacked: int) -> Grid:
        """The last query sees all keys, each before it one less; ``stacked`` heads share them."""
        early = keys - queries
        seen = (Run(stacked * queries, early + 1), Run(stacked, queries - 1, stacked))
        return cls((Run(early + 1, queries, 1, stacked),), seen, k, l, k + l)

    @cached_property
    def m(self) -> int:
        """Rows."""
        return sum(run.lengths * run.times for run in self.rows)

    @cached_property
    def f(self) -> int:
        """Columns."""
        return sum(run.lengths * run.times for run in self.columns)

    @property
    def row(self) -> int:
        """Values of a row."""
        return self.k + self.l

    @property
    def spare(self) -> int:
        """Zeta: as many cells of a line that are not whole cost as much as one gap of it."""
        return ceil_div(max(self.row, self.column), self.cell)

    @property
    def compulsory(self) -> int:
        """Each input loaded once, each output stored once."""
        return self.m * self.row + self.f * self.column


class Cutting(NamedTuple):
    """A segment ends when so many rows, or columns, have a whole cell in it."""

    by_rows: bool
    vectors: int  #: L

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {"by": "rows" if self.by_rows else "columns", "vectors": self.vectors}


class Least(NamedTuple):
    """Moves beyond the compulsory ones, at least, of five sets of kinds."""

    y: int
    ay: int
    by: int  #: of B, D and Y
    all: int

    @property
    def moves(self) -> int:
        """What Theorem 9 makes of it."""
        return max(self.all + self.y, self.by + self.ay)

    def joined(self, other: Least) -> Least:
        """The larger of two, set by set."""
        return Least(*map(max, self, other))


ByCuts = Callable[[int], Least]


def crossings(runs: tuple[Run, ...], spare: int, vectors: int) -> int:
    """U: the sum of floor((n - zeta) / L) over lines of n cells, without the negative ones."""
    total = 0
    for first, lengths, step, times in runs:
        start = 0 if first >= spare else lengths if step == 0 else min(lengths, -((first - spare) // step))
        total += times * _floor_sum(lengths - start, vectors, step, first + start * step - spare)
    return total


def _floor_sum(n: int, m: int, a: int, b: int) -> int:
    """Sum of floor((a i + b) / m) for i from 0 to n - 1; in as many steps as Euclid's algorithm takes."""
    total = 0
    while n > 0:
        total += n * (n - 1) // 2 * (a // m) + n * (b // m)
        a, b = a % m, b % m
        over = a * n + b
        if over < m:
            break
        n, b = divmod(over, m)
        m, a = a, m
    return total


def by_cuts(grid: Grid, capacity: int, cutting: Cutting) -> ByCuts:
    """The moves that are certain when the schedule has q cuts of one kind."""
    vectors, k, l, c = cutting.vectors, grid.k, grid.l, grid.column
    if vectors < grid.spare:
        raise ValueError("the theorem is about segments of zeta vectors at least")
    gaps = crossings(grid.columns if cutting.by_rows else grid.rows, grid.spare, vectors)
    number = grid.m if cutting.by_rows else grid.f

    def least(q: int) -> Least:
        pairs, room = max(0, q * vectors - number), q * capacity
        rows, columns = (pairs, c * gaps) if cutting.by_rows else (gaps, c * pairs)
        y, ay = l * rows - room, (k + l) * rows - room
        if grid.atomic:
            return Least(0, max(0, ay), 0, max(0, ay + columns))
        return Least(max(0, y), max(0, ay), max(0, y + columns), max(0, ay + columns))

    return least


def lowest(value: Callable[[int], int]) -> int:
    """The first q >= 0 from which a convex function does not fall."""
    high = 1
    while value(high + 1) < value(high):
        high *= 2
    low = high // 2
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if value(middle + 1) < value(middle) else (low, middle)
    return low


def at_lowest(way: ByCuts) -> Least:
    """What is certain at the number of cuts where one way alone proves least."""
    return way(lowest(lambda q: way(q).moves))


def least_moves(ways: tuple[ByCuts, ...], floor: int = -1) -> tuple[int, tuple[int, ...]] | None:
    """The minimum of Theorem 9 over the cuts of one or two ways, and where it is.

    None where it is not above ``floor``, or would take too long to find.
    """
    first, *others = ways
    start = lowest(lambda q: first(q).moves)
    if not others:
        return (first(start).moves, (start,)) if first(start).moves > floor else None
    (second,) = others

    def at(q: int) -> tuple[int, tuple[int, ...]]:
        fixed = first(q)
        other = lowest(lambda x: fixed.joined(second(x)).moves)
        return fixed.joined(second(other)).moves, (q, other)

    def back(other: int) -> int:
        fixed = second(other)
        return lowest(lambda x: fixed.joined(first(x)).moves)

    best, before = at(start), floor
    for _ in range(_DESCENTS):  # down along one and the other: near the minimum at once, where numbers are not huge
        if best[0] <= floor or best[0] == before:
            break
        before, best = best[0], min(best, at(back(best[1][1])))
    looked = 0
    for step in (1, -1):
        q = start + step
        while q >= 0 and first(q).moves < best[0] > floor:
            best = min(best, at(q))
            q, looked = q + step, looked + 1
            if looked > _MOST_CUTS:
                return None
    return best if best[0] > floor else None


@dataclass(frozen=True)
class PassBound:
    """Theorem 9 on an instance."""

    method: str  #: what the bound is called
    grid: Grid  #: cells and vectors
    capacity: int  #: S
    cuttings: tuple[Cutting, ...]  #: one or two ways
    cuts: tuple[int, ...]  #: q of each way, where the minimum is
    elements: int  #: values moved at least
    theorem: Theorem = THEOREM  #: what it rests on

    @property
    def again(self) -> int:
        """Moves beyond the compulsory ones, at least."""
        return self.elements - self.grid.compulsory

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        ways = zip(self.cuttings, self.cuts, strict=True)
        return {
            "segments": 1 + self.cuts[0],
            "cuttings": [{**cutting.to_json(), "cuts": cuts} for cutting, cuts in ways],
            "cells_not_whole_for_a_gap": self.grid.spare,
            "compulsory": self.grid.compulsory,
        }


def pass_bound(grid: Grid, capacity: int) -> PassBound | None:
    """Theorem 9 with about the best ways of cutting; None where no way of cutting proves anything.

    Parameters
    ----------
    grid : Grid
    capacity : int
        S, values.

    Notes
    -----
    Which ways are tried does not depend on S, but for those that prove nothing: so the bound falls as S grows. Some
    milliseconds.
    """
    best: tuple[int, tuple[int, ...], tuple[Cutting, ...]] = (0, (), ())
    ways = {(by_rows, gaps): by_cuts(grid, capacity, way) for by_rows, gaps, way in _ways(grid, capacity)}
    few = {key: at_lowest(way) for key, way in ways.items() if key[1] <= _FEW}
    for key, way in sorted(ways.items(), key=lambda one: -one[0][1]):  # many gaps are mostly best
        if way(_guess(grid, capacity, key)).moves > best[0]:  # the minimum is at most what it is anywhere
            found = least_moves((way,), best[0])
            best = (*found, (_cutting(grid, key),)) if found else best
    # the minimum is at most what it is anywhere: the most promising pair first
    pairs = [(few[one].joined(few[other]).moves, one, other) for one, other in _pairs(few)]
    for estimate, one, other in sorted(pairs, reverse=True):
        if estimate <= best[0]:
            break
        found = least_moves((ways[one], ways[other]), best[0])
        best = (*found, (_cutting(grid, one), _cutting(grid, other))) if found else best
    moves, cuts, cuttings = best
    return PassBound(METHOD, grid, capacity, cuttings, cuts, grid.compulsory + moves) if moves else None


Way = tuple[bool, int]  # whether by rows, and into how many parts the longest line is cut


def _cutting(grid: Grid, way: Way) -> Cutting:
    """Segments so long that the longest line has that many gaps."""
    by_rows, gaps = way
    longest = max(run.first + run.step * (run.lengths - 1) for run in (grid.columns if by_rows else grid.rows))
    return Cutting(by_rows, (longest - grid.spare) // gaps)


def _ways(grid: Grid, capacity: int) -> Iterator[tuple[bool, int, Cutting]]:
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


def _pairs(ways: Iterable[Way]) -> Iterator[tuple[Way, Way]]:
    """Two ways that may prove more than one: of both kinds, or of one kind with one gap more."""
    found = set(ways)
    for by_rows, gaps in sorted(found):
        near = ((not by_rows, gaps + more) for more in (-1, 0, 1) if not by_rows)
        for other in (*near, (by_rows, gaps + 1)):
            if other in found:
                yield (by_rows, gaps), other

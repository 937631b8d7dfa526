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

*Sums of columns.* In a backward pass accumulators belong to columns as well (of :math:`dK` and :math:`dV`, beside those
of :math:`dQ` in the rows). Let :math:`c'` of the :math:`c` values of a column be accumulators, :math:`Z`, whose round
trips :math:`M'` cost 2 as those of :math:`Y` do. What moves beyond compulsory traffic is then :math:`F + E + 2 M + 2 M'
+ 2 N`, and :math:`Z` belongs to both brackets of both sums: with a bracket for :math:`Z` that has :math:`c'` for
:math:`c`,

.. math::

   \text{moves} \ge \text{compulsory} + \min_{q} \max \{\, b_{BD, A, Y, Z} + b_{Y, Z},\;\;
   b_{BD, Y, Z} + b_{A, Y, Z} \,\} .

*Atomic adds.* Where partial sums may meet in slow memory, as those of several SMs can, an accumulator of :math:`Y`
makes a gap for one more store, and :math:`F + E + M + 2 N` moves are left: :math:`b_{BD, A, Y}` alone bounds them. A
cell of :math:`H` still is stored and loaded, since a product reads it.

**Theorem B5.** *In bytes, where values take widths as in* `pebble.bounds.box`, *Theorem 9 holds with* :math:`w k`
*and* :math:`p l` *for the* :math:`k` *and* :math:`l` *values of a row,* :math:`w c` *for the* :math:`c` *of a column,*
:math:`S` *in bytes, and*

.. math:: \zeta = \lceil \max(w k + p l,\; w c) / w \rceil .

*Proof.* A gap of a value of :math:`A, B` or :math:`D` takes :math:`w` while it is held, and :math:`w` to load again.
Accumulators of :math:`Y` are updated before and after each of theirs, so that they are partial sums in it: they take
:math:`p` while held, and are stored and loaded at :math:`p`. A cell that is not whole takes :math:`w` at least where it
is held over a cut, partial or complete, and :math:`2 w` at least where it is stored and loaded. Let :math:`F` and
:math:`E` be the bytes of inputs loaded again, :math:`M` :math:`p` for each round trip of an accumulator, :math:`N`
:math:`w` for each cell that makes one: what moves beyond compulsory traffic is :math:`F + E + 2 M + 2 N` at least. All
cuts have room for :math:`q S` bytes, so that for the kinds chosen, say all three, and cuts by columns,

.. math:: [w c\, (q L - f) - F] + [w k (U - z / \zeta) - E] + [p l (U - z / \zeta) - M] + \omega [w z - N] \le q S .

With :math:`\omega = (w k + p l) / \zeta w`, which is 1 at most by the choice of :math:`\zeta`, :math:`z` drops out: the
moves of these kinds are :math:`b - \omega N` at least, and the rest is as above. The other sets of kinds, and cuts by
rows, where :math:`\omega = c / \zeta`, are alike. :math:`\Box` Bytes are counted in units, as for the line bound.

No recomputation. Masks are covered: :math:`n_i` may differ. Softmax, an activation, and the elementwise product that
joins gate and up only add operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from pebble.bounds.numbers import number
from pebble.bounds.proofs import InWidths, Theorem
from pebble.units import ceil_div
from pebble.workloads.backward import STATISTIC_BYTES
from pebble.workloads.widths import ALIKE, Widths

THEOREM = Theorem("Theorem 9", __name__)
IN_BYTES = Theorem("Theorem B5", __name__)
METHOD = "pass accounting"
METHOD_IN_BYTES = "pass accounting in bytes"


class Run(NamedTuple):
    """Lines of n, n + step, n + 2 step, ... cells."""

    first: int  #: n
    lengths: int  #: how many lengths
    step: int = 0
    times: int = 1  #: how many lines of each length

    @property
    def cells(self) -> int:
        """Of all lines."""
        return self.times * (self.lengths * self.first + self.step * (self.lengths * (self.lengths - 1) // 2))


@dataclass(frozen=True)
class Grid:
    """The cells of H, row by row and column by column, and the values that belong to a row and to a column."""

    rows: tuple[Run, ...]  #: cells of each row
    columns: tuple[Run, ...]  #: cells of each column
    k: int  #: values of A in a row, in units of the widths, as all that follows
    l: int  #: accumulators of Y in a row
    column: int  #: c, values of B and D in a column
    atomic: bool = False  #: whether partial sums may meet in slow memory, each for a store
    cell: int = 1  #: what a cell that is not whole takes at least
    narrower: int = 0  #: so much less the outputs of a row take than its accumulators
    widths: Widths = ALIKE  #: what values take
    column_sums: int = 0  #: c', those of a column that are accumulators
    statistics: int = 0  #: those of the values of A in a row that are in fp32, whatever the type of the others
    narrower_column: int = 0  #: so much less these take once they are complete

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

    def at(self, widths: Widths) -> Grid:
        """The same with values at their widths, for Theorem B5; of the classic game, itself."""
        w, _, p, written = widths.in_units
        sums, wider = self.column_sums, p - written
        column = w * (self.column - sums) + p * sums
        inputs = w * self.k + (0 if widths == ALIKE else STATISTIC_BYTES // widths.unit - w) * self.statistics
        values = replace(self, k=inputs, l=p * self.l, column=column, column_sums=p * sums, statistics=0)
        return replace(values, cell=w, narrower=wider * self.l, narrower_column=wider * sums, widths=widths)

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
        return self.m * (self.row - self.narrower) + self.f * (self.column - self.narrower_column)


class Cutting(NamedTuple):
    """A segment ends when so many rows, or columns, have a whole cell in it."""

    by_rows: bool
    vectors: int  #: L

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {"by": "rows" if self.by_rows else "columns", "vectors": self.vectors}


class Least(NamedTuple):
    """Moves beyond the compulsory ones, at least, of four sets of kinds; Z, sums of columns, is in each of them."""

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
        y, ay, by, both = other
        return Least(max(self.y, y), max(self.ay, ay), max(self.by, by), max(self.all, both))


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
        pairs, free_capacity = max(0, q * vectors - number), q * capacity
        rows, met = (pairs, gaps) if cutting.by_rows else (gaps, pairs)
        columns, sums = c * met, grid.column_sums * met
        y, ay = l * rows + sums - free_capacity, (k + l) * rows + sums - free_capacity
        columns -= sums
        if grid.atomic:
            return Least(0, max(0, ay), 0, max(0, ay + columns))
        return Least(max(0, y), max(0, ay), max(0, y + columns), max(0, ay + columns))

    return least


@dataclass(frozen=True)
class PassBound(InWidths):
    """Theorem 9 on an instance, in bytes B5."""

    METHODS = (METHOD, METHOD_IN_BYTES)
    rank = 2
    form = "passes"

    grid: Grid  #: cells and vectors
    capacity: int  #: S, in units of the widths, as all that follows
    cuttings: tuple[Cutting, ...]  #: one or two ways
    cuts: tuple[int, ...]  #: q of each way, where the minimum is
    again: int  #: moves beyond the compulsory ones, at least

    @property
    def widths(self) -> Widths:
        """What its values take."""
        return self.grid.widths

    @property
    def theorem(self) -> Theorem:
        """What it rests on."""
        return THEOREM if self.grid.widths == ALIKE else IN_BYTES

    @property
    def elements(self) -> int:
        """Moved at least."""
        return self.grid.compulsory + self.again

    @property
    def products(self) -> int:
        """Multiply-adds, of either product."""
        return sum(run.cells for run in self.grid.rows) * (self.grid.column // self.grid.cell)

    @property
    def segments(self) -> int:
        """How many there are where the least is proved."""
        return 1 + self.cuts[0]

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        both = zip(self.cuttings, self.cuts, strict=True)
        fields = {
            "segments": self.segments,
            "cuttings": [{**cutting.to_json(), "cuts": cuts} for cutting, cuts in both],
            "cells_not_whole_for_a_gap": self.grid.spare,
        }
        if self.grid.widths == ALIKE:
            return {**fields, "compulsory": self.grid.compulsory}
        return {"form": self.form, "unit_bytes": self.unit, **fields}

    def claim(self) -> dict[str, Any]:
        """The ways of cutting; the checker looks for the numbers of cuts itself."""
        return {"theorem": "passes", "cuttings": [cutting.to_json() for cutting in self.cuttings]}

    argument = ""  #: it names what a row and a column take, so it is told of each instance

    def text(self, traffic: Mapping[str, int]) -> str:
        """The argument, each way of cutting, and the sum."""
        grid, unit, spare = self.grid, self.unit, number(self.grid.spare)
        if grid.widths == ALIKE:
            held = rf"""values are held, so that $\zeta = {spare}$ cells that are not whole, each held or moved,
        are as dear as one gap of all values of a row or a column"""
            row = rf"""${number(grid.k)}$ values of $A$ and ${number(grid.l)}$ accumulators of $Y$, a column
        ${number(grid.column)}$ values of $B$ and $D$"""
            total = rf"""
        $$ Q \ge {number(grid.compulsory)} + {number(self.again)} \quad\Rightarrow\quad Q \ge {number(self.elements)}
        """
        else:
            units = "bytes" if unit == 1 else f"units of {unit} bytes"
            held = rf"""are held, in {units} as all that follows, where $S = {number(self.capacity)}$. A cell that is
        not whole takes {grid.cell} at least, held or moved, complete or not, so that $\zeta = {spare}$ of them are
        as dear as one gap of all values of a row or a column"""
            row = rf"""${number(grid.k)}$ {units} of $A$ and ${number(grid.l)}$ of accumulators of $Y$, which are
        partial sums between two of their updates, a column ${number(grid.column)}$ of $B$ and $D$"""
            surely = number(unit * grid.compulsory)
            total = rf"""
        What surely moves is ${surely}$ bytes:

        $$ Q \ge {surely} + {unit} \cdot {number(self.again)} = {number(self.bytes)}
        """
        return rf"""{_argument(row, held)}{_sums_of_columns(grid)}
        ## Arithmetic
        {_described(self)}{total}"""


def _argument(row: str, held: str) -> str:
    return rf"""
        ## Whole cells

        Call a cell of the intermediate whole in a segment of the schedule when all its multiply-adds are there. A row
        is {row}; where it has a whole cell, all its values are used. Between two such segments that follow each other
        each value makes a gap: it is held over a cut, or moved (an input is loaded again; an accumulator is stored and
        loaded). So does an accumulator of each cell that is not whole. A segment ends as soon as $L$ columns (or $L$
        rows) have a whole cell in it, so with $q$ cuts columns (or rows) have whole cells in at least $q L$ segments,
        counted for each. At $q$ cuts at most $q S$ {held}. A row (or column) of $n$ cells, $z$ of them not whole, has
        at least $U - z / \zeta$ gaps with $U = \max(0, \lfloor (n - \zeta) / L \rfloor)$, since no more than $L$ of its
        cells are whole in one segment.

        Choose any of the kinds columns ($B$, $D$), $A$ and $Y$: what moves again of these is at least their gaps less
        $q S$, less a share of at most 1 of the cells that are stored and loaded. All moves beyond the compulsory ones,
        where an accumulator's or a cell's round trip counts 2, are therefore at least

        $$ \max \{{ b_{{BD, A, Y}} + b_Y,\ b_{{BD, Y}} + b_{{A, Y}} \}},

        with $b = \max(0, \text{{gaps}} - q S)$, of each the largest among the ways of cutting. How many cuts there are
        is the schedule's choice: the least over all numbers of cuts counts.
        """


def _sums_of_columns(grid: Grid) -> str:
    if not grid.column_sums:
        return ""
    return rf"""
        Of the values of a column ${number(grid.column_sums)}$ are accumulators too: they make a round trip as those of
        $Y$ do, and are counted in each of the four brackets; the others in those with $B$ and $D$ alone.
        """


def _described(proof: PassBound) -> str:
    """Each way of cutting at the number of cuts where the least is proved."""
    texts = "".join(_way(proof, cutting, cuts) for cutting, cuts in zip(proof.cuttings, proof.cuts, strict=True))
    return rf"""{texts}
        No numbers of cuts give less (each $b$ is convex in $q$; the checker looks at all that could):
        """


def _way(proof: PassBound, cutting: Cutting, cuts: int) -> str:
    grid, (by_rows, vectors) = proof.grid, cutting
    kind, other = ("rows", "columns") if by_rows else ("columns", "rows")
    crossed = crossings(grid.columns if by_rows else grid.rows, grid.spare, vectors)
    least = by_cuts(grid, proof.capacity, cutting)(cuts)
    return rf"""
        Cut by {kind} with $L = {number(vectors)}$: the {other} have $U = {number(crossed)}$ gaps together. The least is
        at $q = {number(cuts)}$ cuts: $b_{{BD, A, Y}} = {number(least.all)}$, $b_{{BD, Y}} = {number(least.by)}$,
        $b_{{A, Y}} = {number(least.ay)}$, $b_Y = {number(least.y)}$.
        """

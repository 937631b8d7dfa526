"""The proof by passes for a reader, with the numbers of the instance filled in."""

from __future__ import annotations

from typing import Any

from pebble.bounds import PassBound
from pebble.bounds.passes import Cutting, by_cuts, crossings
from pebble.bounds.wide_passes import PassBytes
from pebble.proof.text import number


def passes_json(proof: PassBound) -> dict[str, Any]:
    """The proof in the checker's terms."""
    return {"theorem": "passes", "cuttings": [cutting.to_json() for cutting in proof.cuttings]}


def pass_proof(proof: PassBound) -> str:
    """The argument, each way of cutting, and the sum."""
    grid = proof.grid
    held = rf"""values are held, so that $\zeta = {number(grid.spare)}$ cells that are not whole, each held or moved,
        are as dear as one gap of all values of a row or a column"""
    row = rf"""${number(grid.k)}$ values of $A$ and ${number(grid.l)}$ accumulators of $Y$, a column
        ${number(grid.column)}$ values of $B$ and $D$"""
    return rf"""{_argument(row, held)}
        ## Arithmetic
        {_ways(proof)}
        $$ Q \ge {number(grid.compulsory)} + {number(proof.again)} \quad\Rightarrow\quad Q \ge {number(proof.elements)}
        """


def pass_bytes_proof(wide: PassBytes) -> str:
    """The same with values at their widths."""
    proof, grid = wide.found, wide.found.grid
    units = "bytes" if wide.unit == 1 else f"units of {wide.unit} bytes"
    held = rf"""are held, in {units} as all that follows, where $S = {number(proof.capacity)}$. A cell that is not whole
        takes {grid.cell} at least, held or moved, complete or not, so that $\zeta = {number(grid.spare)}$ of them are
        as dear as one gap of all values of a row or a column"""
    row = rf"""${number(grid.k)}$ {units} of $A$ and ${number(grid.l)}$ of accumulators of $Y$, which are partial sums
        between two of their updates, a column ${number(grid.column)}$ of $B$ and $D$"""
    return rf"""{_argument(row, held)}
        ## Arithmetic
        {_ways(proof)}
        What surely moves is ${number(wide.surely)}$ bytes:

        $$ Q \ge {number(wide.surely)} + {wide.unit} \cdot {number(proof.again)} = {number(wide.bytes)}
        """


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


def _ways(proof: PassBound) -> str:
    """Each way of cutting at the number of cuts where the least is proved."""
    ways = "".join(_way(proof, cutting, cuts) for cutting, cuts in zip(proof.cuttings, proof.cuts, strict=True))
    return rf"""{ways}
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

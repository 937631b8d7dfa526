"""The proof by passes for a reader, with the numbers of the instance filled in."""

from __future__ import annotations

from pebble.bounds import PassBound
from pebble.bounds.passes import Cutting, by_cuts, crossings
from pebble.proof.text import number


def pass_proof(proof: PassBound) -> str:
    """The argument, each way of cutting, and the sum."""
    grid = proof.grid
    ways = "".join(_way(proof, cutting, cuts) for cutting, cuts in zip(proof.cuttings, proof.cuts, strict=True))
    more = number(proof.elements - grid.compulsory)
    return rf"""
        ## Whole cells

        Call a cell of the intermediate whole in a segment of the schedule when all its multiply-adds are there. A row
        is ${number(grid.k)}$ values of $A$ and ${number(grid.l)}$ accumulators of $Y$, a column ${number(grid.column)}$
        values of $B$ and $D$; where it has a whole cell, all its values are used. Between two such segments that follow
        each other each value makes a gap: it is held over a cut, or moved (an input is loaded again; an accumulator is
        stored and loaded). So does an accumulator of each cell that is not whole. At $q$ cuts at most $q S$ values are
        held. A segment ends as soon as $L$ columns (or $L$ rows) have a whole cell in it, so with $q$ cuts columns (or
        rows) have whole cells in at least $q L$ segments, counted for each. A row (or column) of $n$ cells, $z$ of them
        not whole, has at least $U - z / \zeta$ gaps with $\zeta = {number(grid.spare)}$ and $U = \max(0, \lfloor (n -
        \zeta) / L \rfloor)$: no more than $L$ of its cells are whole in one segment, and $\zeta$ cells that are not
        whole, each held or moved, are as dear as one gap of all its values.

        Choose any of the kinds columns ($B$, $D$), $A$ and $Y$: what moves again of these is at least their gaps less
        $q S$, less a share of at most 1 of the cells that are stored and loaded. All moves beyond the compulsory ones,
        where an accumulator's or a cell's round trip counts 2, are therefore at least

        $$ \max \{{ b_{{BD, A, Y}} + b_Y,\ b_{{BD, Y}} + b_{{A, Y}} \}},

        with $b = \max(0, \text{{gaps}} - q S)$, of each the largest among the ways of cutting. How many cuts there are
        is the schedule's choice: the least over all numbers of cuts counts.

        ## Arithmetic
        {ways}
        No numbers of cuts give less (each $b$ is convex in $q$; the checker looks at all that could):

        $$ Q \ge {number(grid.compulsory)} + {more} \quad\Rightarrow\quad Q \ge {number(proof.elements)}
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

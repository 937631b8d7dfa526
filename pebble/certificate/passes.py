"""Whole passes over short vectors: two products in a row, cut where enough columns, or rows, have a cell done.

A cell is whole in a segment if all its products are in it. A segment ends as soon as L columns have a whole cell in it;
so with q cuts, columns and segments with a whole cell in common are q L pairs at least. A row of n cells, z of them
whole in no segment, has whole cells in g segments with n - z <= g L. Where a row or a column has a whole cell, all its
values are used. Between two such segments that follow each other each value makes a gap: it is held over a cut or
moved, an input loaded again, an accumulator stored and loaded. An accumulator of a cell that is not whole does so too.
At q cuts q S values are held. Columns have c values each and are f; rows have k inputs and l accumulators. Let zeta be
the larger of k + l and c, and U the sum over rows of (n - zeta) / L, rounded down and not below 0. Then of gaps there
are

    columns c (q L - f),   rows' inputs k (U - z / zeta),   rows' accumulators l (U - z / zeta),   cells z,

and what of any of these kinds is not held moves. Cells are counted in the share w = (values of a row among the kinds) /
zeta <= 1, so that z drops out; what they move makes w (cells that move). Cut by rows it is the same, exchanged.

    moves beyond compulsory ones = columns + inputs + 2 accumulators + 2 cells
        >= (all) + (accumulators)   and   >= (columns, accumulators) + (inputs, accumulators),

each bracket from whichever cutting makes it largest, and the cells make up for both w. The schedule chooses how many
cuts there are, so the least over all numbers of cuts counts.

Columns may have accumulators too, as dK and dV of a backward pass, where rows have dQ: these make a round trip in each
of their gaps, as those of rows do, and so count in all four sets; c above counts the inputs of a column, and zeta is
the larger of all values of a row and all of a column.

In bytes k, l and c are what the values of a row and a column take, accumulators as the partial sums that they are
between two updates, and S is in bytes. A cell that is not whole takes as much as an input at least, held or moved: zeta
is the larger of k + l and c over that, rounded up, so that w is 1 at most again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .reading import RefusedError, array, choice, fields, integer
from .statement import Workload

MAX_GAPS = 100_000
MAX_CUTS = 5000


class Vectors(NamedTuple):
    """Rows, or columns."""

    number: int
    values: tuple[int, int]  #: of each: inputs, accumulators; or the bytes of these
    longest: int  #: cells
    at_least: Callable[[int], int]  #: how many have so many cells


class Again(NamedTuple):
    """Moves beyond compulsory ones, for four sets of kinds."""

    accumulators: int
    rows: int
    columns: int  #: and accumulators
    everything: int

    def least(self, other: Again | None = None) -> int:
        """What the two brackets that add up make, of each the larger of two cuttings."""
        y, r, c, a = map(max, self, other or self)
        return max(a + y, c + r)


ByCuts = Callable[[int], Again]


def row_and_column(workload: Workload, m: int, k: int, f: int, l: int) -> tuple[Vectors, Vectors]:
    """Rows of A and Y and columns of B and D of one group, with a mask or without."""
    inside, across = (k, l), (workload.streams * k + l, 0)
    if not workload.option.get("causal"):
        full = (lambda cells: m if cells <= f else 0), (lambda cells: f if cells <= m else 0)
        return Vectors(m, inside, f, full[0]), Vectors(f, across, m, full[1])
    sharing, queries = workload.sharing, workload.size["queries"]

    def seeing(cells: int) -> int:  # query q of 1..queries sees f - queries + q keys
        return sharing * min(queries, max(0, f - cells + 1))

    def seen(cells: int) -> int:  # the last key by one query of each head, each key before by one more, up to all
        return max(0, f + 1 - max(1, -(-cells // sharing))) if cells <= m else 0

    return Vectors(m, inside, f, seeing), Vectors(f, across, m, seen)


def of_attention_backward(workload: Workload, w: int, p: int, statistics: int) -> tuple[Vectors, Vectors]:
    """Queries, with Q, dO, their ``statistics`` and dQ, and keys, with K, V, dK and dV."""
    size = workload.size
    k, l = size["head_dim"], size["value_dim"]
    rows, columns = row_and_column(workload, workload.rows_of_group, k, size["keys"], l)
    inputs = w * (k + l)
    return rows._replace(values=(inputs + statistics, p * k)), columns._replace(values=(inputs, p * (k + l)))


def prove_passes(rows: Vectors, columns: Vectors, capacity: int, proof: Any, at: str, cell: int = 1) -> int:
    """Moves beyond the compulsory ones that the one or two cuttings of a proof make certain; a cell takes ``cell``."""
    zeta = -(-max(sum(rows.values), sum(columns.values)) // cell)
    cuttings: list[ByCuts] = []
    for number, item in enumerate(array(proof, at, 1, 2)):
        where = f"{at}[{number}]"
        fields(item, where, ("by", "vectors"))
        by_rows = choice(item["by"], f"{where}.by", ("rows", "columns")) == "rows"
        cuttings.append(_way((rows, columns), by_rows, capacity, zeta, item["vectors"], f"{where}.vectors"))
    if len(cuttings) == 1:
        return cuttings[0](_bottom(lambda q: cuttings[0](q).least())).least()
    return _least_of_two(cuttings[0], cuttings[1], at)


def _way(vectors: tuple[Vectors, Vectors], by_rows: bool, capacity: int, zeta: int, stated: Any, at: str) -> ByCuts:
    rows, columns = vectors
    size = integer(stated, at, zeta)
    counted, crossed = (rows, columns) if by_rows else (columns, rows)
    if size * sum(counted.values) <= capacity:
        raise RefusedError(at, "further cuts cost nothing where segments have so few vectors")
    if crossed.longest - zeta > MAX_GAPS * size:
        raise RefusedError(at, f"lines would have more than {MAX_GAPS} gaps")
    gaps = sum(crossed.at_least(zeta + v * size) for v in range(1, (crossed.longest - zeta) // size + 1))

    def at_cuts(q: int) -> Again:
        pairs = max(0, q * size - counted.number)
        of_rows, of_columns = (pairs, gaps) if by_rows else (gaps, pairs)
        sums, c = of_columns * columns.values[1], of_columns * columns.values[0]
        y, r = of_rows * rows.values[1] + sums, of_rows * sum(rows.values) + sums
        return Again(*(max(0, total - q * capacity) for total in (y, r, c + y, c + r)))

    return at_cuts


def _bottom(value: Callable[[int], int]) -> int:
    """Where a convex function of q >= 0 that ends up rising is least: no neighbour is below."""
    step = 1
    while value(2 * step) < value(step):
        step *= 2
    q = step
    while step:
        while value(q + step) < value(q):
            q += step
        while q >= step and value(q - step) < value(q):
            q -= step
        step //= 2
    return q


def _least_of_two(first: ByCuts, second: ByCuts, at: str) -> int:
    """Over all cuts of both: for one q of the first the rest is convex, and no q that proves more alone matters."""

    def joined(q: int) -> int:
        fixed = first(q)
        return second(_bottom(lambda x: second(x).least(fixed))).least(fixed)

    start = _bottom(lambda q: first(q).least())
    best = joined(start)
    for step in (1, -1):
        q = start + step
        while q >= 0 and first(q).least() < best:
            if abs(q - start) > MAX_CUTS:
                raise RefusedError(at, f"more than {MAX_CUTS} numbers of cuts would have to be looked at")
            best = min(best, joined(q))
            q += step
    return best

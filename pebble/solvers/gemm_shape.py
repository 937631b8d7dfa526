"""Recognise an in-place GEMM in a game, whatever its names: which item is A(i,l), B(l,j), C(i,j)."""

from __future__ import annotations

from typing import NamedTuple

from pebble.game import Game, Variant


class Shape(NamedTuple):
    """A GEMM found in a game.

    ``items``: the game's item of each bit: A by rows, B by columns, C by rows. ``tasks``: its task of product
    (i n + j) k + l.
    """

    m: int
    n: int
    k: int
    items: tuple[int, ...]
    tasks: tuple[int, ...]


def recognise(game: Game) -> Shape | None:
    """The GEMM C := A B with equal weights that a game is, or None when it is something else.

    Notes
    -----
    All inputs of a row i of A reach the same cells, and rows are disjoint; columns of B likewise. The depth l is
    what connects an input of A with one of B. Everything found is checked against the tasks.
    """
    if game.variant is not Variant.IN_PLACE or len(set(game.weights)) != 1 or not game.tasks:
        return None
    cells = [x for x in range(game.size) if game.updates[x]]
    inputs = [x for x in range(game.size) if not game.updates[x]]
    if any(game.is_input[c] or not game.is_output[c] or game.uses[c] for c in cells):
        return None
    if any(not game.uses[x] for x in inputs) or any(len(t.operands) != 2 or t.after for t in game.tasks):
        return None
    reach = {x: frozenset(game.tasks[t].target for t in game.uses[x]) for x in inputs}
    first = reach[game.tasks[0].operands[0]]
    lone = len(cells) == 1  # rows and columns are the same cell: take the operands as they come
    if lone:
        left = [t.operands[0] for t in game.tasks]
        right = [t.operands[1] for t in game.tasks]
        rows, columns = [first], [first]
    else:
        left = [x for x in inputs if reach[x] == first or not reach[x] & first]
        right = [x for x in inputs if x not in set(left)]
        rows = sorted({reach[x] for x in left}, key=min)
        columns = sorted({reach[x] for x in right}, key=min)
    m, n = len(rows), len(columns)
    if len(cells) != m * n or not right or len(left) % m or len(left) // m * n != len(right):
        return None
    k = len(left) // m
    if len(game.tasks) != m * n * k:
        return None
    return _label(game, left, right, rows, columns, reach)


def _label(
    game: Game,
    left: list[int],
    right: list[int],
    rows: list[frozenset[int]],
    columns: list[frozenset[int]],
    reach: dict[int, frozenset[int]],
) -> Shape | None:
    """Give every input its depth and check all products."""
    m, n, k = len(rows), len(columns), len(left) // len(rows)
    task_of = {(frozenset(t.operands), t.target): number for number, t in enumerate(game.tasks)}
    top = [x for x in left if reach[x] == rows[0]]
    partners = [{y for t in game.uses[x] for y in game.tasks[t].operands if y != x} for x in top]
    if len(top) != k:
        return None
    A = [[-1] * k for _ in range(m)]
    B = [[-1] * k for _ in range(n)]
    for y in right:
        depths = [el for el in range(k) if y in partners[el]]
        if len(depths) != 1:
            return None
        B[columns.index(reach[y])][depths[0]] = y
    for x in left:
        others = {y for t in game.uses[x] for y in game.tasks[t].operands if y != x}
        depths = [el for el in range(k) if B[0][el] in others]
        if len(depths) != 1:
            return None
        A[rows.index(reach[x])][depths[0]] = x
    tasks: list[int] = []
    cells: list[int] = []
    for i in range(m):
        for j in range(n):
            common = rows[i] & columns[j]
            if len(common) != 1:
                return None
            (cell,) = common
            cells.append(cell)
            for el in range(k):
                number = task_of.get((frozenset((A[i][el], B[j][el])), cell))
                if number is None:
                    return None
                tasks.append(number)
    items = [*(x for row in A for x in row), *(y for column in B for y in column), *cells]
    if len(set(items)) != game.size or len(set(tasks)) != len(game.tasks):
        return None
    return Shape(m, n, k, tuple(items), tuple(tasks))

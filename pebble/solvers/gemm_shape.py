"""Recognise an in-place GEMM in a game, whatever its names: which item is A(i,l), B(l,j), C(i,j)."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from pebble.game import Game, Variant


class GemmShape(NamedTuple):
    """A GEMM found in a game.

    ``items``: the game's item of each bit: A by rows, B by columns, C by rows. ``tasks``: its task of product
    (i n + j) k + l.
    """

    m: int
    n: int
    k: int
    items: tuple[int, ...]
    tasks: tuple[int, ...]


def recognise(game: Game) -> GemmShape | None:
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
    if len(cells) == 1:  # rows and columns are the same cell: take the operands as they come
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
    # an input is known by its line, the cells it reaches, and by the one it meets at its depth
    partners = {x: {y for t in game.uses[x] for y in game.tasks[t].operands if y != x} for x in inputs}
    across = [x for x in right if reach[x] == columns[0]]
    if len(across) != k:
        return None
    of_left = {(reach[x], y): x for x in left for y in partners[x].intersection(across)}
    A = [of_left.get((row, y), -1) for row in rows for y in across]
    of_right = {(reach[y], x): y for y in right for x in partners[y].intersection(A[:k])}
    B = [of_right.get((column, x), -1) for column in columns for x in A[:k]]
    task_of = {(*sorted(t.operands), t.target): number for number, t in enumerate(game.tasks)}
    tasks, result = [], []
    for i, j in product(range(m), range(n)):
        result += (cell := list(rows[i] & columns[j]))[:1]
        pairs = zip(A[i * k : i * k + k], B[j * k : j * k + k], strict=True)
        tasks += [task_of.get((*sorted(pair), *cell), -1) for pair in pairs]
    items = (*A, *B, *result)
    if not len(items) == len(set(items)) == game.size or len(set(tasks)) != len(game.tasks) or -1 in tasks:
        return None
    return GemmShape(m, n, k, items, tuple(tasks))

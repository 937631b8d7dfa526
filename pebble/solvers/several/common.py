"""Schedules in common use on several SMs, for any game whose values bear the names of a GEMM, an FFN or attention.

A value ``H[i,j]`` lies in row i; the products that compute an intermediate and those that use it belong to its column
j, ``Y[i,c]+=H[i,j]*W2[j,c]`` to column j too. A schedule says which SM does which rows, columns or products; each SM
goes row by row, column by column, and the SMs take turns, so that what one has just loaded another can copy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pebble.errors import InputError
from pebble.game import Game
from pebble.solvers.several.play import Placed
from pebble.units import ceil_div

SEPARATE = "separate kernels"
ROWS = "rows"
COLUMNS = "columns"
PRODUCTS = "one product on each SM"
_NAME = re.compile(r"([A-Za-z]\w*?)\[(\d+(?:,\d+)*)\]")
_FIRST = ("H", "U", "S")  # intermediates that a first product computes
_BETWEEN = (*_FIRST, "P")
_LAST = 1 << 30  # column of what comes after all of a row
Phases = Sequence[Sequence[Placed]]


class Place(NamedTuple):
    """Where a task lies: 1 for what uses an intermediate, its row, its column."""

    second: int
    row: tuple[int, ...]
    column: int


def places(game: Game) -> list[Place] | None:
    """Of every task; None where the names say nothing."""
    read = [_read(name) for name in game.names]
    results = []
    for task in game.tasks:
        target = read[task.target]
        if target is None or not target[1]:
            return None
        name, index = target
        if name in _FIRST:
            results.append(Place(0, index[:-1], index[-1]))
            continue
        used = [item for item in (read[x] for x in task.operands) if item is not None and item[0] in _BETWEEN]
        row = index if name == "r" or not index[:-1] else index[:-1]
        if name == "P":
            results.append(Place(1, row, index[-1]))
        elif used:
            results.append(Place(0 if name == "r" else 1, row, used[0][1][-1]))
        elif name in ("O", "Y"):  # a last step on a sum
            results.append(Place(1, row, _LAST))
        else:
            results.append(Place(0, row, index[-1]))
    return results


def common_schedules(game: Game, sms: int) -> Mapping[str, Phases]:
    """Orders by name, each task at an SM; only an even cut of the tasks in their own order where no name is known."""
    tasks = len(game.tasks)
    size = ceil_div(tasks, sms)
    even = {"an even cut": [[(t, t // size) for t in range(tasks)]]}
    place = places(game)
    if place is None:
        return even
    rows = sorted({p.row for p in place})
    columns = sorted({p.column for p in place} - {_LAST})
    whole = any(name.startswith("P[") for name in game.names)  # strict softmax: a row of scores before its outputs

    def order(t: int) -> tuple[object, ...]:
        p = place[t]
        return (p.row, p.second, p.column, t) if whole else (p.row, p.column, p.second, t)

    def by_row(t: int) -> int:
        return rows.index(place[t].row) * sms // len(rows)

    def by_column(t: int) -> int:
        column = place[t].column
        return sms - 1 if column == _LAST else columns.index(column) * sms // len(columns)

    def its_own(t: int, by: Callable[[int], int]) -> int:
        """Of the SMs that may do a task, the one that it has where the rows or columns are spread over all."""
        may = [q for q in range(sms) if game.may_do(t, q)]
        return may[by(t) * len(may) // sms]

    result: dict[str, Phases] = {}
    linked = {p.second for p in place} == {0, 1}
    if linked:
        kernels = [[t for t in range(tasks) if place[t].second == number] for number in (0, 1)]
        if one_after_the_other(game, place):
            result[SEPARATE] = [_turns(game, kernel, sms, order, by_row) for kernel in kernels]
        half = max(1, sms // 2)

        def by_product(t: int) -> int:
            second = place[t].second
            return min(sms - 1, second * half + rows.index(place[t].row) % (sms - half if second else half))

        result[PRODUCTS] = [_turns(game, range(tasks), sms, order, by_product)]
    result[ROWS] = [_turns(game, range(tasks), sms, order, by_row)]
    result[COLUMNS] = [_turns(game, range(tasks), sms, order, by_column)]
    if game.allowed:
        for name, by in ((ROWS, by_row), (COLUMNS, by_column)):
            at = [its_own(t, by) for t in range(tasks)]
            result |= split_schedules(game, at, sms, f"{name} on the SMs of each product")
    return result | even


def one_after_the_other(game: Game, place: Sequence[Place]) -> bool:
    """Whether no first product needs a second one, as products of a backward pass do."""
    return not any(place[t].second < place[p].second for t in range(len(place)) for p in game.preds[t])


def product_sms(game: Game, first: int, second: int) -> tuple[int, ...]:
    """Per task the SMs that may do it, for `Game.allowed`: the first ones the first product, the next ones the second.

    Raises
    ------
    InputError
        The values bear no names of a chain of two products, or of attention.
    """
    place = places(game)
    if place is None or {p.second for p in place} != {0, 1} or not one_after_the_other(game, place):
        raise InputError(
            "--split: got a game whose values are not those of two products in a row, expected ffn (--gated too) or "
            "attention, played in-place."
        )
    masks = (1 << first) - 1, ((1 << second) - 1) << first
    return tuple(masks[p.second] for p in place)


def split_schedules(game: Game, at: Sequence[int], sms: int, name: str) -> Mapping[str, Phases]:
    """Orders by name for tasks that have their SMs, ``name`` before each.

    As the game goes; row by row or column by column, each SM from another one on, so that a sum that they share goes
    from one to the next once.
    """
    place = places(game)
    orders: dict[str, Callable[[int], tuple[object, ...]]] = {"in the order of the game": lambda t: (t,)}
    if place is not None:
        rows = sorted({p.row for p in place})
        columns = sorted({p.column for p in place})

        def row(t: int) -> int:
            return (rows.index(place[t].row) - at[t] * len(rows) // sms) % len(rows)

        def column(t: int) -> int:
            return (columns.index(place[t].column) - at[t] * len(columns) // sms) % len(columns)

        orders |= {
            "row by row": lambda t: (row(t), place[t].column, place[t].second, t),
            "column by column": lambda t: (column(t), place[t].second, row(t), t),
        }
    everything = range(len(game.tasks))
    named = {f"{name}, {by}": order for by, order in orders.items()}
    return {name: [_turns(game, everything, sms, order, at.__getitem__)] for name, order in named.items()}


def _turns(
    game: Game, tasks: Sequence[int], sms: int, order: Callable[[int], tuple[object, ...]], at: Callable[[int], int]
) -> list[Placed]:
    """SMs take turns, each with the next of its tasks as soon as what that needs is done."""
    waiting: list[list[int]] = [[] for _ in range(sms)]
    for t in sorted(tasks, key=order, reverse=True):
        waiting[at(t)].append(t)
    inside = set(tasks)
    done: set[int] = set()
    results: list[Placed] = []
    while any(waiting):
        before = len(results)
        for sm, queue in enumerate(waiting):
            if queue and not (game.preds[queue[-1]] & inside) - done:
                t = queue.pop()
                done.add(t)
                results.append((t, sm))
        if len(results) == before:  # each waits for another: what comes first in the order of the game
            t, sm = min(
                (t, sm) for sm, queue in enumerate(waiting) for t in queue if not (game.preds[t] & inside) - done
            )
            waiting[sm].remove(t)
            done.add(t)
            results.append((t, sm))
    return results


def _read(name: str) -> tuple[str, tuple[int, ...]] | None:
    match = _NAME.fullmatch(name)
    return None if match is None else (match[1], tuple(int(part) for part in match[2].split(",")))

"""Symmetries of a certificate's game: exchanges of values of one weight and role that take tasks to tasks."""

from __future__ import annotations

from typing import Any

from .games import Game
from .reading import RefusedError, array, integer

Map = tuple[int, ...]


def read_symmetries(game: Game, value: Any, most: int, at: str) -> list[tuple[Map, Map]]:
    """Of each symmetry where it takes every value, which the certificate says, and every task, which follows.

    Parameters
    ----------
    value : object
        At most ``most`` lists: the value that each value goes to.
    """
    task_of = {(task.target, frozenset(task.operands)): t for t, task in enumerate(game.tasks)}
    size = len(game.names)
    result: list[tuple[Map, Map]] = []
    for i, entry in enumerate(array(value, at, 0, most)):
        where = f"{at}[{i}]"
        image = tuple(integer(v, where, 0, size - 1) for v in array(entry, where, size, size))
        keeps = all(
            (game.weights[v], game.is_input[v], game.is_output[v])
            == (game.weights[w], game.is_input[w], game.is_output[w])
            for v, w in enumerate(image)
        )
        if len(set(image)) != size or not keeps or len(task_of) != len(game.tasks):
            raise RefusedError(where, "it is no exchange of values of one weight and role")
        tasks = tuple(task_of.get((image[t.target], frozenset(image[y] for y in t.operands)), -1) for t in game.tasks)
        if -1 in tasks or any(
            {tasks[u] for u in task.after} != set(game.tasks[tasks[t]].after) for t, task in enumerate(game.tasks)
        ):
            raise RefusedError(where, "it does not take tasks to tasks")
        result.append((image, tasks))
    return result

"""Automorphisms of a DAG: which of the tasks and values that they exchange comes first makes no difference.

Found along a chain of stabilisers (Sims): values are held fixed one after another, and for each a set of automorphisms
that hold the earlier ones takes it everywhere it can go; every automorphism is one product of these.

**Settled states.** Where any memory may do any task, as many as it likes, the search keeps states in which each task
that finds all it touches in one memory is done. More maps keep what these still pay: the automorphisms of the game as
`_as_settled` writes it, which of a gated network exchange the cells of gate and up in any column of the hidden layer.

- A task without operands that comes after others of its cell ("at once") finds the cell where the last of them left it,
  and is done then. So in a settled state it is done if and only if all before it are, and it moves nothing: it is left
  out, and in an image those are done that have all before them done.
- A task m that is the last of its cell x reads the cell and writes it. That is a value x' before and x" after, m with
  the target x" and the operand x', which leaves its place in memory to x". Nothing asks for x' after m. So where an
  automorphism takes m to n, of a cell z, it takes x' to an operand y' of n that nothing asks for after n; that is z',
  or another value, and then one like it goes to z'. Until n both y' and z' are in one memory at a time: an update drops
  what others hold, and what is moved after the last update is wanted for n alone, here or where it is pushed. Both are
  in slow memory from a store on, weigh the same, and cost the same to fetch; what a fetch leaves blue is of no account
  after n. Then y' and z' are gone, and z" is held where n was done, nowhere else, and not blue, as x" is after m. (A
  last task has a colour of its own: another finds room for its target beside its operands.)

So these maps take the steps and pushes from one settled state to those from another, of equal cost, and what is paid
from there on is equal. Not so where an SM may do only so many tasks (one at once counts), where tasks have their
memories, or where incomplete values weigh more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from pebble.game import Game, Task

_MOST_NODES = 128
_LARGEST_GROUP = 4096  # automorphisms that are worth a list
Map = tuple[int, ...]


@lru_cache(maxsize=32)
def automorphisms(game: Game) -> tuple[tuple[Map, ...], tuple[Map, ...]]:
    """Where each automorphism takes every task, and every value; the identity comes first.

    The whole group, or where it or the DAG is too large the part that holds the first values fixed, a group as well.

    Examples
    --------
    >>> from pebble.cdag.products import gemm_dag
    >>> len(automorphisms(Game.from_dag(gemm_dag(2, 2, 2)))[0])
    16
    """
    return _group(_Nodes(game, game.allowed or [0] * len(game.tasks)))


def _group(nodes: _Nodes) -> tuple[tuple[Map, ...], tuple[Map, ...]]:
    """Of all automorphisms, where they take tasks, and values."""
    identity = tuple(range(nodes.size))
    group = [identity]
    for coset in reversed(_transversals(nodes)):
        if len(group) * (len(coset) + 1) > _LARGEST_GROUP:
            break
        group += [tuple(outer[x] for x in inner) for outer in coset for inner in group]
    values = nodes.values
    return tuple(tuple(x - values for x in g[values:]) for g in group), tuple(g[:values] for g in group)


@lru_cache(maxsize=32)
def task_orbits(game: Game) -> tuple[tuple[int, ...], tuple[Map, ...]]:
    """One task of each orbit, and automorphisms that take every other task to one of these, as maps of values.

    Examples
    --------
    >>> from pebble.cdag.products import gemm_dag
    >>> len(task_orbits(Game.from_dag(gemm_dag(2, 2, 3)))[0])
    1
    """
    task_maps, item_maps = automorphisms(game)
    first: list[int] = []
    maps: list[Map] = []
    for t in range(len(game.tasks)):
        to = next((g for g, tasks in enumerate(task_maps) if tasks[t] in first), None)
        if to is None:
            first.append(t)
        else:
            maps.append(item_maps[to])
    return tuple(first), tuple(maps)


class SettledMaps(NamedTuple):
    """Maps of settled states, the identity first; of each the image of every task and value."""

    tasks: tuple[Map, ...]
    """-1 for a task that is done at once."""
    before: tuple[Map, ...]
    """Where values go whose last task is not done, or is not one that both reads and writes."""
    after: tuple[Map, ...]
    """Where they go when it is."""
    last: tuple[int, ...]
    """Per value the last of several tasks of its cell, where the others all come before it; elsewhere -1."""


@lru_cache(maxsize=32)
def settled_maps(game: Game) -> SettledMaps:
    """The automorphisms, or where there are more the maps that keep what a settled state pays, any split allowed.

    Examples
    --------
    >>> from pebble.cdag.products import ffn_dag
    >>> len(settled_maps(Game.from_dag(ffn_dag(2, 2, 2, gated=True))).tasks)
    64
    """
    task_maps, item_maps = automorphisms(game)
    plain = SettledMaps(task_maps, item_maps, item_maps, (-1,) * game.size)
    if game.allowed or game.weighted_partials:
        return plain
    settled, kept, last = _as_settled(game)
    joins = set(last) - {-1}
    task_maps, item_maps = _group(_Nodes(settled, [t in joins for t in kept]))
    if len(task_maps) <= len(plain.tasks):
        return plain
    split = [x for x in range(game.size) if last[x] >= 0]
    place = {t: at for at, t in enumerate(kept)}
    return SettledMaps(
        tuple(tuple(kept[g[place[t]]] if t in place else -1 for t in range(len(game.tasks))) for g in task_maps),
        tuple(g[: game.size] for g in item_maps),
        tuple(
            tuple(split[g[game.size + split.index(x)] - game.size] if x in split else g[x] for x in range(game.size))
            for g in item_maps
        ),
        tuple(last),
    )


def _as_settled(game: Game) -> tuple[Game, list[int], list[int]]:
    """The game as settled states see it, the tasks that it has, and per value its last task, or -1.

    What last tasks make of their cells are values of their own, after all others, in the order of the cells.
    """
    at_once: dict[int, set[int]] = {}
    for t, task in enumerate(game.tasks):
        if not task.operands and task.after:
            at_once[t] = set(task.after)
    after = [_without(set(task.after), at_once) for task in game.tasks]
    last = [-1] * game.size
    for x, updates in enumerate(game.updates):
        own = [t for t in updates if t not in at_once]
        if len(own) > 1 and not game.is_input[x] and after[own[-1]] == set(own[:-1]):
            last[x] = own[-1]
    kept = [t for t in range(len(game.tasks)) if t not in at_once]
    split = [x for x in range(game.size) if last[x] >= 0]
    new = {x: game.size + at for at, x in enumerate(split)}
    number = {t: at for at, t in enumerate(kept)}
    tasks = []
    for t in kept:
        task, x = game.tasks[t], game.tasks[t].target
        operands = [new.get(o, o) for o in task.operands]
        if t == last[x]:
            tasks.append(Task(task.name, tuple(sorted([*operands, x])), new[x]))
        else:
            tasks.append(Task(task.name, tuple(sorted(operands)), x, tuple(sorted(number[u] for u in after[t]))))
    more, late = range(len(split)), " at last"
    while any(f"{game.names[x]}{late}" in game.names for x in split):
        late += "'"
    result = replace(
        game,
        names=(*game.names, *(f"{game.names[x]}{late}" for x in split)),
        weights=(*game.weights, *(game.weights[x] for x in split)),
        partial_weights=(*game.weights, *(game.weights[x] for x in split)),
        is_input=(*game.is_input, *(False for _ in more)),
        is_output=(
            *(wanted and x not in new for x, wanted in enumerate(game.is_output)),
            *(game.is_output[x] for x in split),
        ),
        tasks=tuple(tasks),
    )
    return result, kept, last


def _without(tasks: set[int], at_once: dict[int, set[int]]) -> set[int]:
    """Tasks, and for those that are done at once what comes before them."""
    while inner := tasks & at_once.keys():
        tasks = tasks - inner | set().union(*(at_once[t] for t in inner))
    return tasks


class _Nodes:
    """Values, then tasks, with a colour each that automorphisms keep, and typed neighbours."""

    def __init__(self, game: Game, kinds: Sequence[object]) -> None:
        self.size = game.size + len(game.tasks)
        self.links: list[list[tuple[int, int]]] = [[] for _ in range(self.size)]
        for t, task in enumerate(game.tasks):
            at = game.size + t
            ends = [(o, 0) for o in task.operands] + [(task.target, 1)] + [(game.size + u, 2) for u in task.after]
            for other, kind in ends:
                self.links[at].append((kind, other))
                self.links[other].append((kind + 3, at))
        values = zip(game.weights, game.partial_weights, game.is_input, game.is_output, strict=True)
        self.values = game.size
        self.colors = self.refined([*values, *kinds])

    def refined(self, colors: list[object]) -> list[object]:
        """Colours told apart by those of the neighbours, as numbers in an order of their own meaning."""
        while True:
            kinds = len(set(colors))
            signs = [
                (color, *sorted((kind, colors[v]) for kind, v in links))
                for color, links in zip(colors, self.links, strict=True)
            ]
            number = {sign: n for n, sign in enumerate(sorted(set(signs), key=repr))}
            colors = [number[sign] for sign in signs]
            if len(number) == kinds:
                return colors

    def match(self, left: list[object], right: list[object]) -> Map | None:
        """An automorphism that takes the refined colours of the one side to those of the other, if there is one."""
        if sorted(map(repr, left)) != sorted(map(repr, right)):
            return None
        cells: dict[object, list[int]] = {}
        for v, color in enumerate(left):
            cells.setdefault(color, []).append(v)
        split = min((c for c in cells.values() if len(c) > 1), key=len, default=None)
        if split is None:
            at = {color: v for v, color in enumerate(right)}
            image = tuple(at[color] for color in left)
            kept = all(
                self.colors[u] == self.colors[image[u]]
                and sorted((k, image[v]) for k, v in self.links[u]) == sorted(self.links[image[u]])
                for u in range(self.size)
            )
            return image if kept else None
        fixed = self.refined(_marked(left, split[0]))
        for other in [v for v, color in enumerate(right) if color == left[split[0]]]:
            result = self.match(fixed, self.refined(_marked(right, other)))
            if result is not None:
                return result
        return None


def _marked(colors: list[object], node: int) -> list[object]:
    return [(color, v == node) for v, color in enumerate(colors)]


def _transversals(nodes: _Nodes) -> list[list[Map]]:
    """For each value held fixed after the earlier ones, automorphisms that take it to every other place it can go."""
    if nodes.size > _MOST_NODES:
        return []
    results: list[list[Map]] = []
    colors = nodes.colors
    while True:
        cells: dict[object, list[int]] = {}
        for v, color in enumerate(colors):
            cells.setdefault(color, []).append(v)
        cell = next((c for c in cells.values() if len(c) > 1), None)
        if cell is None:
            return results
        base = nodes.refined(_marked(colors, cell[0]))
        images = [nodes.match(base, nodes.refined(_marked(colors, v))) for v in cell[1:]]
        results.append([image for image in images if image is not None])
        colors = base

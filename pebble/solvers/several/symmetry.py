"""Automorphisms of a DAG: which of the tasks and values that they exchange comes first makes no difference.

Found along a chain of stabilisers (Sims): values are held fixed one after another, and for each a set of automorphisms
that hold the earlier ones takes it everywhere it can go; every automorphism is one product of these.
"""

from __future__ import annotations

from functools import lru_cache

from pebble.game import Game

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
    nodes = _Nodes(game)
    identity = tuple(range(nodes.size))
    group = [identity]
    for coset in reversed(_transversals(nodes)):
        if len(group) * (len(coset) + 1) > _LARGEST_GROUP:
            break
        group += [tuple(outer[x] for x in inner) for outer in coset for inner in group]
    values = game.size
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


class _Nodes:
    """Values, then tasks, with a colour each that automorphisms keep, and typed neighbours."""

    def __init__(self, game: Game) -> None:
        self.size = game.size + len(game.tasks)
        self.links: list[list[tuple[int, int]]] = [[] for _ in range(self.size)]
        for t, task in enumerate(game.tasks):
            at = game.size + t
            ends = [(o, 0) for o in task.operands] + [(task.target, 1)] + [(game.size + u, 2) for u in task.after]
            for other, kind in ends:
                self.links[at].append((kind, other))
                self.links[other].append((kind + 3, at))
        values = zip(game.weights, game.partial_weights, game.is_input, game.is_output, strict=True)
        self.colors = self.refined([*values, *(game.allowed or [0] * len(game.tasks))])

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

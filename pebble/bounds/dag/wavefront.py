"""The wavefront bound, by minimum vertex cuts (Elango, Rastello, Pouchet, Ramanujam, Sadayappan 2014), sharpened.

At the moment v has been computed, the values that were computed or loaded by then and are needed later separate
v and its ancestors from its descendants: on a path from one to the other take the last value that is there. So
they weigh at least the minimum vertex cut w, descendants excluded. At most S of it is red. Each of the others is
loaded later, and that is not its first load: an input among them is an ancestor of v that was used, hence loaded,
before. A value that is neither input nor output was also stored before, and no output store is that store. So

    cost >= compulsory + max(w - S, w2 - 2 S),

w2 the minimum cut when such values count twice. This implies the published 2 (w - S). Computing v a second time
would break it, so it holds only where values are computed once. Any v gives a bound; the best is taken.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pebble.bounds.dag.windows import ONE_SHOT, DagBound, edges
from pebble.game import Game

if TYPE_CHECKING:
    import networkx as nx

NAME = "wavefront"
SOURCE = "Elango et al. 2014, by minimum vertex cuts"
MOST_ITEMS = 2000


def bound(game: Game, capacity: int, seconds: float) -> DagBound:
    """The best cut found in the time given; holds for one-shot variants, with weights."""
    if game.variant not in ONE_SHOT:
        return DagBound(NAME, SOURCE, None, ONE_SHOT, "holds only where every value is computed once, without cells")
    if game.size > MOST_ITEMS:
        return DagBound(NAME, SOURCE, None, ONE_SHOT, f"the DAG has {game.size} values, the limit is {MOST_ITEMS}")
    import networkx as nx

    graph = nx.DiGraph(edges(game))
    deadline = time.monotonic() + seconds
    best, where, looked = 0, "", 0
    inner = [v for v in nx.topological_sort(graph) if game.updates[v] and graph.out_degree(v)]
    # values in the middle of the order have the widest cuts: look at them first, in case time runs out
    inner = [v for _, v in sorted(enumerate(inner), key=lambda x: abs(2 * x[0] - len(inner)))]
    for v in inner:
        if time.monotonic() > deadline:
            break
        looked += 1
        below, above = nx.descendants(graph, v), nx.ancestors(graph, v) | {v}
        for twice in (False, True):
            weights = _weights(game, twice)
            held = capacity * (2 if twice else 1)
            if _some_cut(graph, below, above, weights) - held <= best:
                continue
            extra = _least_cut(graph, below, above, weights) - held
            if extra > best:
                best, where = extra, game.names[v]
    note = f"cut at {where}" if where else "no cut exceeds the capacity"
    if looked < len(inner):
        note += f"; {looked} of {len(inner)} values looked at in {seconds:g} s"
    return DagBound(NAME, SOURCE, game.compulsory + best, ONE_SHOT, note)


def _weights(game: Game, twice: bool) -> list[int]:
    """Weights of the values, twice those that must be stored before they are loaded again."""
    return [
        weight * (2 if twice and not game.is_input[u] and not game.is_output[u] else 1)
        for u, weight in enumerate(game.weights)
    ]


def _some_cut(graph: nx.DiGraph[int], below: set[int], above: set[int], weights: list[int]) -> int:
    """Weight of the lighter of two cuts: the values next to the ancestors' outside, and next to the descendants."""
    first = sum(weights[u] for u in above if any(child not in above for child in graph.successors(u)))
    last = sum(weights[u] for u in {p for child in below for p in graph.predecessors(child)} - below)
    return min(first, last)


def _least_cut(graph: nx.DiGraph[int], below: set[int], above: set[int], weights: list[int]) -> int:
    """Least weight of values that separate v and its ancestors from the descendants of v."""
    import networkx as nx

    flow: nx.DiGraph[object] = nx.DiGraph()
    for u in graph:
        if u in below:
            continue
        flow.add_edge((u, 0), (u, 1), capacity=weights[u])
        if u in above:
            flow.add_edge("source", (u, 0))
        for child in graph.successors(u):
            flow.add_edge((u, 1), "sink" if child in below else (child, 0))
    return int(nx.maximum_flow_value(flow, "source", "sink"))

"""Tasks that an automorphism of the DAG exchanges: which of them comes first makes no difference."""

from __future__ import annotations

from functools import lru_cache

from pebble.game import Game

_MOST_NODES = 80


@lru_cache(maxsize=32)
def task_orbits(game: Game) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """One task of each orbit of the automorphism group, and automorphisms that take every other task to one of these.

    An automorphism is the value that each value goes to. Where the DAG is too large to look, all tasks and none.
    """
    import networkx as nx
    from networkx.algorithms.isomorphism import DiGraphMatcher, categorical_node_match

    tasks = range(len(game.tasks))
    if game.size + len(tasks) > _MOST_NODES:
        return tuple(tasks), ()
    graph: nx.DiGraph[tuple[str, int]] = nx.DiGraph()
    for i in range(game.size):
        graph.add_node(("item", i), kind=("item", game.weights[i], game.is_input[i], game.is_output[i]))
    for t, task in enumerate(game.tasks):
        graph.add_node(("task", t), kind=("task",))
        graph.add_edges_from((("item", o), ("task", t)) for o in task.operands)
        graph.add_edges_from((("task", u), ("task", t)) for u in task.after)
        graph.add_edge(("task", t), ("item", task.target))
    marked: dict[int, nx.DiGraph[tuple[str, int]]] = {}
    automorphisms = []
    for t in tasks:
        own = graph.copy()
        own.nodes["task", t]["kind"] = ("first",)
        for first in marked.values():
            matcher = DiGraphMatcher(own, first, node_match=categorical_node_match("kind", None))
            if matcher.is_isomorphic():
                automorphisms.append(tuple(matcher.mapping["item", i][1] for i in range(game.size)))
                break
        else:
            marked[t] = own
    return tuple(marked), tuple(automorphisms)


def task_representatives(game: Game) -> tuple[int, ...]:
    """One task of each orbit of the automorphism group; all tasks where the DAG is too large to look.

    Examples
    --------
    >>> from pebble.cdag.gemm import gemm_dag
    >>> len(task_representatives(Game.from_dag(gemm_dag(2, 2, 3))))
    1
    """
    return task_orbits(game)[0]

"""Lower bounds on the cost of pebbling any DAG: one theorem per file, and the best of them."""

from __future__ import annotations

from collections.abc import Iterator

from pebble.bounds.dag import hong_kung, spectral, wavefront
from pebble.bounds.dag.windows import DagBound, compulsory_bound, windows_bound
from pebble.game import Game, check_capacity

MOST_ITEMS = max(wavefront.MOST_ITEMS, spectral.MOST_ITEMS, hong_kung.MOST_ITEMS)  # in a game that they look at
THEOREMS = (compulsory_bound, windows_bound, wavefront.bound, spectral.bound, hong_kung.bound)


def dag_bounds(game: Game, capacity: int, seconds: float = 10.0) -> tuple[DagBound, ...]:
    """Every theorem on a DAG read for one variant, each in at most ``seconds`` where it can use more; InfeasibleError.

    Examples
    --------
    >>> from pebble.cdag import tree_dag
    >>> best_bound(dag_bounds(Game.from_dag(tree_dag(4)), 3)).value
    5
    """
    return tuple(dag_bounds_in_turn(game, capacity, seconds))


def dag_bounds_in_turn(game: Game, capacity: int, seconds: float = 10.0) -> Iterator[DagBound]:
    """Each theorem when it is done; arguments and errors as for `dag_bounds`."""
    check_capacity(game, capacity)
    for theorem in THEOREMS:
        yield theorem(game, capacity, seconds)


def best_bound(bounds: tuple[DagBound, ...]) -> DagBound:
    """The largest of those that hold; the first of equals."""
    return max((b for b in bounds if b.value is not None), key=lambda b: b.value or 0)


__all__ = ["MOST_ITEMS", "THEOREMS", "DagBound", "best_bound", "dag_bounds", "dag_bounds_in_turn"]

"""Lower bounds on the cost of pebbling any DAG: one theorem per file, and the best of them."""

from __future__ import annotations

from pebble.bounds.dag import compulsory, hong_kung, segments, spectral, wavefront
from pebble.bounds.dag.base import DagBound
from pebble.game import Game, check_capacity

THEOREMS = (compulsory.bound, segments.bound, wavefront.bound, spectral.bound, hong_kung.bound)


def dag_bounds(game: Game, capacity: int, seconds: float = 10.0) -> tuple[DagBound, ...]:
    """Every theorem on this game.

    Parameters
    ----------
    game : Game
        A DAG read for one variant.
    capacity : int
        Weight of red values allowed at any moment.
    seconds : float
        For each theorem that can use more time.

    Raises
    ------
    InfeasibleError
        No pebbling exists; the message names the least capacity.

    Examples
    --------
    >>> from pebble.dag.trees import tree_dag
    >>> best_bound(dag_bounds(Game.from_dag(tree_dag(4)), 3)).value
    5
    """
    check_capacity(game, capacity)
    return tuple(theorem(game, capacity, seconds) for theorem in THEOREMS)


def best_bound(bounds: tuple[DagBound, ...]) -> DagBound:
    """The largest of those that hold; the first of equals."""
    return max((b for b in bounds if b.value is not None), key=lambda b: b.value or 0)


__all__ = ["THEOREMS", "DagBound", "best_bound", "dag_bounds"]

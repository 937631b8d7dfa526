"""Compulsory cost: every input that is used is loaded, every output that is computed is stored."""

from pebble.bounds.dag.base import EVERY, DagBound
from pebble.game import Game


def bound(game: Game, capacity: int, seconds: float) -> DagBound:
    """Holds in every variant, with weights, for every capacity."""
    return DagBound("compulsory", "folklore", game.compulsory, EVERY, "used inputs are loaded, outputs are stored")

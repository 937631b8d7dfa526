"""Windows of consecutive tasks: each touches at least so many values, all but the held ones are loaded or begun in it.

The argument is that of `pebble.bounds.box`, with the least number of touched values found by search over sets
of tasks instead of geometry. `pebble.bounds.task_windows` computes it, from which every solver starts.
"""

from pebble.bounds.dag.base import EVERY, ONE_SHOT, DagBound
from pebble.bounds.task_windows import segment_bound
from pebble.game import Game, Variant

VARIANTS = (*ONE_SHOT, Variant.IN_PLACE)
SOURCE = "segment accounting, after Irony, Toledo, Tiskin 2004"


def bound(game: Game, capacity: int, seconds: float) -> DagBound:
    """Holds where a value is computed once, with weights."""
    if game.variant not in VARIANTS:
        return DagBound("segments", SOURCE, None, VARIANTS, "does not hold when values may be computed again")
    assert game.variant in EVERY
    return DagBound("segments", SOURCE, segment_bound(game, capacity), VARIANTS, "windows of consecutive tasks")

"""What every pebbling of a DAG moves, and windows of its tasks; and what the theorems on any DAG share.

*Compulsory.* Every input that is used is loaded and every output that is computed is stored: in every variant, with
weights, for every capacity.

*Windows* of consecutive tasks. Each touches at least so many values, and all but the held ones are loaded or
initialised in it. The argument is that of `pebble.bounds.box`, with the least number of touched values found by search
over sets of tasks instead of geometry. `pebble.bounds.task_windows` computes it, from which every solver starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pebble.bounds.proofs import Theorem
from pebble.bounds.task_windows import segment_bound
from pebble.game import Game, Variant

ONE_SHOT = (Variant.ONE_SHOT, Variant.ONE_SHOT_SLIDING)
EVERY_PLAIN = (*ONE_SHOT, Variant.RECOMPUTE, Variant.RECOMPUTE_SLIDING)
EVERY = tuple(Variant)


@dataclass(frozen=True)
class DagBound:
    """One theorem on one game: no pebbling costs less than its value.

    Attributes
    ----------
    name, source : str
        Of the theorem, and where it was published.
    value : int or None
        None where the theorem does not hold for the variant, or was not computed.
    variants : tuple of Variant
        Where the theorem holds.
    note : str
        What gave the value, or why there is none.
    searched : bool
        Whether it is of a search of this game, and no theorem.
    """

    name: str
    source: str
    value: int | None
    variants: tuple[Variant, ...]
    note: str
    searched: bool = False

    @property
    def theorem(self) -> Theorem:
        """What it rests on: a published theorem, whose proof here is in the docstring of its module, or a search."""
        return Theorem(self.name, self.source, searched=self.searched)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "name": self.name,
            "value": self.value,
            "holds_for": [str(variant) for variant in self.variants],
            "note": self.note,
            "source": self.source,
        }


def same_weight(game: Game) -> int | None:
    """The weight of every item, if all weigh the same."""
    weights = set(game.weights)
    return weights.pop() if len(weights) == 1 else None


def edges(game: Game) -> list[tuple[int, int]]:
    """(operand, value) of a game without cells."""
    return [(operand, task.target) for task in game.tasks for operand in task.operands]


def compulsory_bound(game: Game, capacity: int, seconds: float) -> DagBound:
    """Holds in every variant, with weights, for every capacity."""
    return DagBound("compulsory", "folklore", game.compulsory, EVERY, "used inputs are loaded, outputs are stored")


_WINDOWED = (*ONE_SHOT, Variant.IN_PLACE)
_WINDOW_SOURCE = "segment accounting, after Irony, Toledo, Tiskin 2004"


def windows_bound(game: Game, capacity: int, seconds: float) -> DagBound:
    """Holds where a value is computed once, with weights."""
    if game.variant not in _WINDOWED:
        return DagBound("segments", _WINDOW_SOURCE, None, _WINDOWED, "does not hold when values may be computed again")
    assert game.variant in EVERY
    return DagBound(
        "segments", _WINDOW_SOURCE, segment_bound(game, capacity), _WINDOWED, "windows of consecutive tasks"
    )

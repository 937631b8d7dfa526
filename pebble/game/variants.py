"""The variants of the pebble game."""

from __future__ import annotations

from collections.abc import Hashable
from enum import StrEnum
from typing import TYPE_CHECKING

from pebble.errors import UnknownNameError

if TYPE_CHECKING:
    import networkx as nx


class Variant(StrEnum):
    """Which game is played; every result names its own."""

    ONE_SHOT = "one-shot"  #: each value is computed once
    ONE_SHOT_SLIDING = "one-shot-sliding"  #: and a result may take over the pebble of an operand
    RECOMPUTE = "recompute"  #: a value may be computed again
    RECOMPUTE_SLIDING = "recompute-sliding"  #: both
    IN_PLACE = "in-place"  #: sums are cells, updated where they are; each task is done once

    def __str__(self) -> str:
        return self.value

    @property
    def sliding(self) -> bool:
        """Whether a result may take over the pebble of an operand."""
        return self in (Variant.ONE_SHOT_SLIDING, Variant.RECOMPUTE_SLIDING)

    @property
    def recompute(self) -> bool:
        """Whether a value may be computed more than once."""
        return self in (Variant.RECOMPUTE, Variant.RECOMPUTE_SLIDING)

    @classmethod
    def parse(cls, name: str) -> Variant:
        """The variant of that name; UnknownNameError, which offers the nearest, where there is none."""
        try:
            return cls(name)
        except ValueError:
            raise UnknownNameError("variant", name, [v.value for v in cls], "pebble solve --help") from None

    @classmethod
    def default_for(cls, dag: nx.DiGraph[Hashable]) -> Variant:
        """``in-place`` for a DAG with accumulator tasks, ``one-shot`` for any other."""
        has_tasks = any("accumulator" in data for _, data in dag.nodes(data=True))
        return cls.IN_PLACE if has_tasks else cls.ONE_SHOT

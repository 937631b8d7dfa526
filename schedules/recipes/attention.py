"""Attention in groups of heads and bands of query tiles; a block keeps its queries and walks the keys and values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pebble.schedules.recipes.recipe import Flagged
from pebble.schedules.tables import Blocks, Launch, TileTable, deal
from pebble.schedules.tables.registry import kernel_of
from pebble.workloads.workload import Workload


@dataclass(frozen=True)
class AttentionBands(Flagged):
    """Groups of heads one after the other; in each, bands of query tiles; in each, head by head.

    Attributes
    ----------
    heads : int
        Heads of a group; those that share keys and values are neighbours.
    queries : int
        Query tiles of a band.
    late_first : bool
        From the last query tile to the first; under a causal mask the longest first.
    forwards : bool
        Keys and values from the first to the last.
    sawtooth : bool
        Every second wave walks them the other way.
    shift : bool
        The blocks of a head begin at different keys, spread over all of them, and go round.
    """

    heads: int
    queries: int
    late_first: bool = False
    forwards: bool = False
    sawtooth: bool = False
    shift: bool = False

    @property
    def flags(self) -> dict[str, bool]:
        return {
            "late_first": self.late_first,
            "forwards": self.forwards,
            "sawtooth": self.sawtooth,
            "shift": self.shift,
        }

    @property
    def needs_waves(self) -> bool:
        """As `pebble.schedules.recipes.recipe.Recipe` has it; of attention nothing of the kind was measured."""
        return False

    @property
    def name(self) -> str:
        flags = [flag for flag, given in self.flags.items() if given]
        return "+".join([f"heads-{self.heads}x{self.queries}", *flags]).replace("_", "-")

    @property
    def words(self) -> str:
        parts = [f"{self.heads} head{'s' * (self.heads > 1)} together, {self.queries} query tiles of each at a time"]
        parts += ["the last queries first"] * self.late_first
        parts += [f"keys and values {'forwards' if self.forwards else 'backwards'}"]
        parts += ["to and fro by waves"] * self.sawtooth
        parts += ["begun at different keys"] * self.shift
        return "; ".join(parts)

    def table(self, workload: Workload, launch: Launch) -> TileTable:
        """The table for an attention and a launch; cost O(blocks)."""
        ((_, (q_tiles, copies), seen),) = kernel_of(workload, launch.tile).products
        number = np.arange(q_tiles * copies, dtype=np.int64)
        tile, head = number % q_tiles, number // q_tiles
        place = q_tiles - 1 - tile if self.late_first else tile
        order = np.lexsort((place, head, place // self.queries, head // self.heads))
        tile, head = tile[order], head[order]
        count = seen[tile]
        start = None
        if self.shift:
            spread = np.arange(len(tile)) % launch.wave_blocks / launch.wave_blocks
            start = (spread * count).astype(np.int64)
        blocks = Blocks(np.stack((tile, head), axis=1), count, 0, start, 1 if self.forwards else -1)
        return TileTable(self.name, workload, launch, deal([blocks], launch.wave_blocks, self.sawtooth))

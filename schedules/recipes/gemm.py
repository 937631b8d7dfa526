"""GEMM tiles in bands, with what named orders leave open: heights, ends, waves, and where each tile begins in k."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pebble.errors import InputError
from pebble.schedules.recipes.recipe import Column, Flagged, columnwise, heights_text, heights_words, ranges, shifted
from pebble.schedules.tables import Blocks, Launch, TileTable, deal
from pebble.units import ceil_div
from pebble.workloads import Gemm


@dataclass(frozen=True)
class GemmBands(Flagged):
    """An order of tiles in bands.

    Attributes
    ----------
    axis : str
        ``m``: bands of tile rows, each walked column by column; ``n``: the same with rows and columns exchanged.
    heights : tuple of int
        Of each band, in tiles.
    snake : bool
        Every second band is walked back.
    sawtooth : bool
        Every second wave walks k the other way.
    shift : bool
        Each column of a band begins k later than the one before, so that a wave touches all of k all the time and an
        LRU keeps the whole band.
    whole : bool
        A wave ends where its band ends.
    strip : int
        The last tiles of every band that are left to one band across, walked last; so bands can end with a wave.
    wave : int
        Blocks of a wave, fewer than run at once; 0 for all.
    slabs : int
        Parts of k, one after the other; from the second on C is read and added to.
    """

    axis: str
    heights: tuple[int, ...]
    snake: bool = False
    sawtooth: bool = False
    shift: bool = False
    whole: bool = False
    strip: int = 0
    wave: int = 0
    slabs: int = 1

    @property
    def flags(self) -> dict[str, bool]:
        return {"snake": self.snake, "sawtooth": self.sawtooth, "shift": self.shift, "whole": self.whole}

    @property
    def needs_waves(self) -> bool:
        return self.shift or self.whole or self.wave > 0

    @property
    def name(self) -> str:
        flags = [flag for flag, given in self.flags.items() if given]
        numbers = [f"{key}-{value}" for key, value in (("strip", self.strip), ("wave", self.wave)) if value]
        slabs = [f"slabs-{self.slabs}"] * (self.slabs > 1)
        return "+".join([f"bands-{self.axis}-{heights_text(self.heights)}", *flags, *numbers, *slabs])

    @property
    def words(self) -> str:
        parts = [heights_words(self.heights, "tile rows" if self.axis == "m" else "tile columns")]
        parts += [f"the last {self.strip} tiles of each left to a band across"] * (self.strip > 0)
        parts += ["every second one walked back"] * (self.snake and len(self.heights) > 1)
        parts += ["k to and fro by waves"] * self.sawtooth
        parts += ["k begun later from column to column" if self.axis == "m" else "k begun later from row to row"] * (
            self.shift
        )
        parts += [f"waves of {self.wave} blocks"] * (self.wave > 0)
        parts += ["waves that end with their band"] * self.whole
        parts += [f"k in {self.slabs} slabs"] * (self.slabs > 1)
        return "; ".join(parts)

    def _bands(self, across: int, along: int) -> Iterator[tuple[Column, Column, int]]:
        """Place across and along of the tiles of each band, and how many share a column of it."""
        if sum(self.heights) != across or not 0 <= self.strip < along:
            raise InputError(
                f"schedule {self.name}: got {sum(self.heights)} tiles in bands and a strip of {self.strip} on a grid "
                f"of {across} by {along} tiles, expected heights that add up to {across} and a strip below {along}."
            )
        for number, band in enumerate(ranges(self.heights)):
            walked = range(along - self.strip)
            yield *columnwise(band, walked[::-1] if self.snake and number % 2 else walked), len(band)
        if self.strip:
            yield *columnwise(range(along - self.strip, along), range(across))[::-1], self.strip

    def blocks(self, workload: Gemm, launch: Launch) -> list[Blocks]:
        """The blocks in issue order; each group begins a wave.

        Raises
        ------
        InputError
            Heights that do not add up to the grid.
        """
        rows, cols, depth = launch.tile.grid(workload)
        bands = list(self._bands(*((rows, cols) if self.axis == "m" else (cols, rows))))
        slab = ceil_div(depth, self.slabs)
        groups = []
        for phase, first in enumerate(range(0, depth, slab)):
            steps = min(slab, depth - first)
            parts = []
            for across, along, height in bands:
                tiles = np.stack((across, along) if self.axis == "m" else (along, across), axis=1)
                start = shifted(len(tiles), height if self.shift else len(tiles), steps, self.slots(launch), first)
                parts.append(Blocks(tiles, steps, first, start, phase=phase, adds=first > 0))
            if not self.whole:
                tiles, starts = np.concatenate([p.tiles for p in parts]), np.concatenate([p.k_start for p in parts])
                parts = [parts[0]._replace(tiles=tiles, k_start=starts)]
            groups += parts
        return groups

    def slots(self, launch: Launch) -> int:
        """Blocks of a wave."""
        return min(self.wave or launch.wave_blocks, launch.wave_blocks)

    def table(self, workload: Gemm, launch: Launch) -> TileTable:
        """The table for a GEMM and a launch; cost O(tiles times slabs). Errors as `blocks`."""
        return TileTable(
            self.name, workload, launch, deal(self.blocks(workload, launch), self.slots(launch), self.sawtooth)
        )

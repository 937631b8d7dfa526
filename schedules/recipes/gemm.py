"""GEMM tiles in bands, with what named orders leave open: heights, ends, waves, and where each tile begins in k."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.schedules.recipes.recipe import Column, Flagged, heights_text, heights_words, shifted
from pebble.schedules.tables import Blocks, Launch, TileTable, deal
from pebble.traces.jit import jit
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

    def blocks(self, workload: Gemm, launch: Launch) -> list[Blocks]:
        """The blocks in issue order; each group begins a wave.

        Raises
        ------
        InputError
            Heights that do not add up to the grid.
        """
        rows, cols, depth = launch.tile.grid(workload)
        across, along = (rows, cols) if self.axis == "m" else (cols, rows)
        if sum(self.heights) != across or not 0 <= self.strip < along:
            raise InputError(
                f"schedule {self.name}: got {sum(self.heights)} tiles in bands and a strip of {self.strip} on a grid "
                f"of {across} by {along} tiles, expected heights that add up to {across} and a strip below {along}."
            )
        places, column = np.empty((rows * cols, 2), np.int64), np.empty(rows * cols, np.int64)
        heights = np.array(self.heights, np.int64)
        _walk(heights, along, self.strip, self.snake, places, column)
        tiles = places if self.axis == "m" else places[:, ::-1]
        heights, sizes = np.append(heights, self.strip), np.append(heights * (along - self.strip), self.strip * across)
        begins = np.cumsum(sizes)[: -1 if self.whole else 0]
        slab = ceil_div(depth, self.slabs)
        groups = []
        for phase, first in enumerate(range(0, depth, slab)):
            steps = min(slab, depth - first)
            later = np.repeat(heights * steps / self.slots(launch), sizes) if self.shift else 0.0
            start = first + shifted(column, later, steps)
            parts = zip(np.split(tiles, begins), np.split(start, begins), strict=True)
            groups += [Blocks(t, steps, first, k, phase=phase, adds=first > 0) for t, k in parts if len(t)]
        return groups

    def slots(self, launch: Launch) -> int:
        """Blocks of a wave."""
        return min(self.wave or launch.wave_blocks, launch.wave_blocks)

    def table(self, workload: Gemm, launch: Launch) -> TileTable:
        """The table for a GEMM and a launch; cost O(tiles times slabs). Errors as `blocks`."""
        return TileTable(
            self.name, workload, launch, deal(self.blocks(workload, launch), self.slots(launch), self.sawtooth)
        )


@jit
def _walk(
    heights: NDArray[np.int64], along: int, strip: int, snake: bool, places: NDArray[np.int64], column: Column
) -> None:
    # Places across and along of all tiles in order, band by band and then the strip, and the column of each in its own.
    at = low = 0
    for band in range(heights.shape[0]):
        for number in range(along - strip):
            for place in range(low, low + heights[band]):
                places[at, 0], column[at] = place, number
                places[at, 1] = along - strip - 1 - number if snake and band % 2 else number
                at += 1
        low += heights[band]
    for number in range(low if strip else 0):
        for place in range(along - strip, along):
            places[at, 0], places[at, 1], column[at] = number, place, number
            at += 1

"""Feed-forward networks in bands: both products of a band one after the other, or one product after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pebble.schedules.ffn import FfnKernel
from pebble.schedules.recipes.gemm import GemmBands
from pebble.schedules.recipes.recipe import Flagged, Recipe, columnwise, heights_text, heights_words, ranges, shifted
from pebble.schedules.tables import COLUMNS, Blocks, Launch, TileTable, deal
from pebble.units import ceil_div
from pebble.workloads import Ffn, Gemm


@dataclass(frozen=True)
class FusedBands(Flagged):
    """Bands of tile rows; in each the first product and then the second, column by column.

    Attributes
    ----------
    heights : tuple of int
        Tile rows of each band.
    split : int
        Parts of the hidden layer; from the second on Y is read and added to.
    snake : bool
        Every second band walks its columns back.
    sawtooth : bool
        Every second wave walks k the other way.
    shift : bool
        Each column begins k later than the one before.
    wave : int
        Blocks of a wave, fewer than run at once; 0 for all.
    """

    heights: tuple[int, ...]
    split: int = 1
    snake: bool = False
    sawtooth: bool = False
    shift: bool = False
    wave: int = 0

    @property
    def flags(self) -> dict[str, bool]:
        return {"snake": self.snake, "sawtooth": self.sawtooth, "shift": self.shift}

    @property
    def needs_waves(self) -> bool:
        return self.shift or self.wave > 0

    @property
    def name(self) -> str:
        split = f"-split-{self.split}" if self.split > 1 else ""
        flags = [flag for flag, given in self.flags.items() if given]
        flags += [f"wave-{self.wave}"] * (self.wave > 0)
        return "+".join([f"row-fused-{heights_text(self.heights)}{split}", *flags])

    @property
    def words(self) -> str:
        parts = [f"fused, {heights_words(self.heights, 'tile rows')}"]
        parts += [f"the hidden layer in {self.split} parts"] * (self.split > 1)
        parts += ["every second band walked back"] * (self.snake and len(self.heights) > 1)
        parts += ["k to and fro by waves"] * self.sawtooth
        parts += ["k begun later from column to column"] * self.shift
        parts += [f"waves of {self.wave} blocks"] * (self.wave > 0)
        return "; ".join(parts)

    def table(self, workload: Ffn, launch: Launch) -> TileTable:
        """The table for a network and a launch; cost O(tiles times parts).

        Raises
        ------
        InputError
            Heights that do not add up to the grid.
        """
        kernel = FfnKernel(workload, launch.tile)
        part = ceil_div(kernel.hidden_cols, min(self.split, kernel.hidden_cols))
        starts = range(0, kernel.hidden_cols, part)
        groups: list[Blocks] = []
        slots = min(self.wave or launch.wave_blocks, launch.wave_blocks)

        def add(rows: range, cols: range, first: int, steps: int, product: int, adds: bool = False) -> None:
            tiles = np.stack(columnwise(rows, cols), axis=1)
            column = np.arange(len(tiles)) // len(rows)
            start = first + shifted(column, len(rows) * steps / slots, steps) if self.shift else None
            groups.append(Blocks(tiles, steps, first, start, phase=len(groups), product=product, adds=adds))

        for number, rows in enumerate(ranges(self.heights)):
            turned = slice(None, None, -1 if self.snake and number % 2 else 1)
            for begin in starts:
                end = min(begin + part, kernel.hidden_cols)
                add(rows, range(begin, end)[turned], 0, kernel.x.grid[1], 0)
                first, last = begin * kernel.per_tile, min(end * kernel.per_tile, kernel.units)
                add(rows, range(kernel.out_cols)[turned], first, last - first, 1, adds=begin > 0)
        return TileTable(self.name, workload, launch, deal(groups, slots, self.sawtooth))


@dataclass(frozen=True)
class SeparateBands(Recipe):
    """Two kernels, each with bands of its own."""

    first: GemmBands  #: of the first product, whose result is the hidden layer
    second: GemmBands  #: of the second product
    sawtooth: bool = False  #: every second wave walks k the other way

    @property
    def needs_waves(self) -> bool:
        return self.first.needs_waves or self.second.needs_waves

    @property
    def name(self) -> str:
        return f"separate:{self.first.name}:{self.second.name}" + "+sawtooth" * self.sawtooth

    @property
    def words(self) -> str:
        words = f"two kernels: first {self.first.words}, then {self.second.words}"
        return words + "; k to and fro by waves" * self.sawtooth

    def table(self, workload: Ffn, launch: Launch) -> TileTable:
        """The table for a network and a launch; cost O(tiles).

        Raises
        ------
        InputError
            Heights that do not add up to a grid.
        """
        kernel = FfnKernel(workload, launch.tile)
        products = (
            Gemm(workload.tokens, workload.hidden, workload.d_model),
            Gemm(workload.tokens, workload.d_out, workload.hidden),
        )
        launch = replace(launch, tile=kernel.tile)
        parts = []
        waves = 0
        for number, (bands, product) in enumerate(zip((self.first, self.second), products, strict=True)):
            groups = [blocks._replace(phase=number, product=number) for blocks in bands.blocks(product, launch)]
            entries = deal(groups, bands.slots(launch), self.sawtooth)
            entries[:, COLUMNS.index("wave")] += waves
            waves = int(entries[-1, COLUMNS.index("wave")]) + 1
            parts.append(entries)
        return TileTable(self.name, workload, launch, np.concatenate(parts))

"""What a search needs to know of a family: what has a name, what can be made, and what lies beside it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

from pebble.schedules.recipes import Flagged, Recipe, cut_heights, even_heights
from pebble.schedules.tables import TileTable
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.workloads.workload import Workload

W = TypeVar("W", bound=Workload)
R = TypeVar("R", bound=Recipe)


class Space(ABC, Generic[W, R]):
    """Schedules of one family."""

    def refusal(self, workload: W) -> str:
        """Why none of these schedules computes a workload, in a sentence; empty where they do."""
        return ""

    @abstractmethod
    def swept(self, workload: W, config: KernelConfig) -> Sequence[Any]:
        """Named schedules with other numbers than the customary ones."""

    @abstractmethod
    def made(self, workload: W, config: KernelConfig) -> Iterable[R]:
        """Recipes to begin with."""

    @abstractmethod
    def near(self, workload: W, recipe: R, config: KernelConfig) -> Iterable[R]:
        """Recipes that differ a little from one."""

    @abstractmethod
    def recipe(self, workload: W, schedule: Any, config: KernelConfig) -> R | None:
        """The recipe of a named schedule; None where none makes it."""

    @abstractmethod
    def tiles(self, workload: W, default: TileShape) -> Iterable[TileShape]:
        """Block tiles to try, the family's own first."""

    @abstractmethod
    def intensity(self, workload: W, tile: TileShape) -> float:
        """Products per value that a block loads from L2."""

    @abstractmethod
    def least_time(self, workload: W, config: KernelConfig) -> float:
        """Products that the busiest SM must do in full waves, each block taking as long as it multiplies."""

    @abstractmethod
    def operands(self, workload: W) -> tuple[str, ...]:
        """What an exported file can keep in a set-aside."""

    def uneven(self, workload: W) -> bool:
        """Whether blocks are of so unequal length that waves would take much longer than blocks that run free."""
        return False

    def products(self, workload: W, product: int) -> int:
        """Tiles that a block of the first product (0) or the second (1) multiplies in a step."""
        return 1

    def time(self, workload: W, table: TileTable) -> float:
        """The same of a table: its waves one after the other, each as long as its longest block."""
        starts = table.wave_starts()
        ups = np.array([self.products(workload, product) for product in (0, 1)])[table.column("product")]
        longest = np.maximum.reduceat(table.column("steps") * ups, starts).sum()
        return float(longest) * self.step(table.launch.tile)

    def step(self, tile: TileShape) -> int:
        """Products of a block in a step, for one tile of weights."""
        return tile.bm * tile.bn * tile.bk

    def coarse(self, workload: W, tile: TileShape) -> TileShape:
        """A tile whose steps are longer, for a quick look; the same blocks in the same order."""
        return tile


def changed(recipe: R, **fields: Any) -> R:
    """The recipe with some fields of other values."""
    made: Any = recipe  # a dataclass, as every recipe is
    other: R = replace(made, **fields)
    return other


F = TypeVar("F", bound=Flagged)


def flipped(recipe: F) -> list[F]:
    """The recipe with one of its flags turned, for each."""
    return [changed(recipe, **{flag: not given}) for flag, given in recipe.flags.items()]


def spread(most: int, count: int) -> list[int]:
    """Whole numbers from 1 to ``most``: all of them, or ``count`` of them at most, the smaller ones closer together.

    Examples
    --------
    >>> spread(8, 10)
    [1, 2, 3, 4, 5, 6, 7, 8]
    >>> spread(100, 9)
    [1, 2, 3, 6, 10, 18, 32, 56, 100]
    """
    if most <= count:
        return list(range(1, most + 1))
    return sorted({round(float(value)) for value in np.geomspace(1, most, count)})


def band_choices(tiles: int, count: int) -> list[tuple[int, ...]]:
    """Heights to begin with: one height and a rest, or as even as can be, for about ``count`` heights."""
    results = []
    for height in spread(tiles, count):
        results += [cut_heights(tiles, height), even_heights(tiles, -(-tiles // height))]
    return list(dict.fromkeys(results))


def near_heights(heights: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Heights a little off: a tile moved from a band to another, the common height changed, a band more or less."""
    tiles, count = sum(heights), len(heights)
    results = [heights[::-1]]
    for step in (1, 2, 4):
        for base in {max(heights), heights[0]}:
            results += [cut_heights(tiles, h) for h in (base + step, base - step) if 1 <= h <= tiles]
        for give, take in {(0, -1), (-1, 0), (0, count // 2), (count // 2, 0), (-2 % count, -1), (-1, -2 % count)}:
            traffic = list(heights)
            traffic[give] -= step
            traffic[take] += step
            if min(traffic) >= 1 and sum(traffic) == tiles:
                results.append(tuple(traffic))
    results += [even_heights(tiles, bands) for bands in (count - 1, count, count + 1) if 1 <= bands <= tiles]
    if count > 1:  # the last two as one, and the last in two
        results.append((*heights[:-2], heights[-2] + heights[-1]))
    if heights[-1] > 1:
        results.append((*heights[:-1], *even_heights(heights[-1], 2)))
    return [each for each in dict.fromkeys(results) if each != heights]

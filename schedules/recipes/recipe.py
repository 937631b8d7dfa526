"""What every recipe of a table shares: its name, its words, and the pieces that bands are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebble.schedules.tables import Launch, TileTable

Column = NDArray[np.int64]


class Recipe(ABC):
    """How a table is made, in a few numbers that a search can turn."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A word for tables and files."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What it does, for a reader."""

    @property
    @abstractmethod
    def needs_waves(self) -> bool:
        """Whether what it saves is lost where blocks do not wait for each other.

        Measured, free: waves of fewer blocks read 1.2 to 1.9 times what the model says, k begun later 1.1 times
        (``benchmarks/hardware/exports/tuned_orders.csv``); waves that end with a band were not measured.
        """

    @abstractmethod
    def table(self, workload: Any, launch: Launch) -> TileTable:
        """The table for a workload and a launch.

        Raises
        ------
        InputError
            Numbers that do not suit the grid.
        """


class Flagged(Recipe):
    """A recipe of which some things are done or not."""

    @property
    @abstractmethod
    def flags(self) -> Mapping[str, bool]:
        """What is done or not, by name."""


def runs(heights: Sequence[int]) -> list[tuple[int, int]]:
    """Equal neighbours together, as (height, count)."""
    return [(value, len(list(run))) for value, run in groupby(heights)]


def heights_text(heights: Sequence[int]) -> str:
    """Heights of bands, equal ones together.

    Examples
    --------
    >>> heights_text([16, 16, 10])
    '16x2/10'
    """
    return "/".join(f"{value}x{count}" if count > 1 else str(value) for value, count in runs(heights))


def heights_words(heights: Sequence[int], unit: str) -> str:
    """The same for a reader.

    Examples
    --------
    >>> heights_words([16, 16, 10], "tile rows")
    'bands of 2 x 16 and 10 tile rows'
    """
    parts = [f"{count} x {value}" if count > 1 else str(value) for value, count in runs(heights)]
    listed = " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
    return f"{'bands' if len(heights) > 1 else 'a band'} of {listed} {unit}"


def even_heights(tiles: int, bands: int) -> tuple[int, ...]:
    """Bands whose heights differ by at most one, the higher ones first.

    Examples
    --------
    >>> even_heights(64, 3)
    (22, 21, 21)
    """
    least, more = divmod(tiles, bands)
    return (least + 1,) * more + (least,) * (bands - more)


def cut_heights(tiles: int, height: int) -> tuple[int, ...]:
    """Bands of one height, the last as low as it must be.

    Examples
    --------
    >>> cut_heights(64, 24)
    (24, 24, 16)
    """
    full, rest = divmod(tiles, height)
    return (height,) * full + ((rest,) if rest else ())


def ranges(heights: Sequence[int]) -> list[range]:
    """The tiles of each band."""
    ends = np.cumsum(heights).tolist()
    return [range(end - height, end) for end, height in zip(ends, heights, strict=True)]


def shifted(column: Column, later: NDArray[np.float64] | float, depth: int) -> Column:
    """The k step of so many that each block of a band begins with, so that one wave spreads over all of k.

    Blocks of a column of a band begin ``later`` steps before those of the column before it: its height times the depth
    over the blocks of a wave. So each k of the band is touched again after that many steps, not only in the next wave.

    Examples
    --------
    >>> shifted(np.array([0, 0, 1, 1, 2, 2]), 2 * 8 / 4, 8).tolist()
    [0, 0, 4, 4, 0, 0]
    """
    return np.asarray(-np.round(column * later).astype(np.int64) % depth)


def columnwise(inner: Sequence[int], outer: Sequence[int]) -> tuple[Column, Column]:
    """Pairs (inner, outer), the inner one fastest."""
    return np.tile(np.asarray(inner, np.int64), len(outer)), np.repeat(np.asarray(outer, np.int64), len(inner))

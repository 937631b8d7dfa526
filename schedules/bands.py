"""Orders of GEMM tiles in bands, with what named orders leave open: heights, ends, and where each tile begins in k.

Names: ``bands-AXIS-HEIGHTS[+OPTION...]``. ``bands-m-16x3/10`` is three bands of 16 tile rows and one of 10, each walked
column by column; ``bands-n-...`` is the same with rows and columns exchanged. Options:

- ``snake``: every second band is walked back.
- ``sawtooth``: every second wave walks k backwards.
- ``shift``: tile number t of a band of height h begins h K / P steps of k behind the tile before it in its row (P
  blocks at once, K steps) and goes round. So a wave touches each k of the band all the time, not once a wave, and an
  LRU keeps the whole band.
- ``strip-N``: the last N tiles of every band are left to one band across, walked last, so that bands end with a wave.
- ``wave-N``: waves of N blocks, fewer than run at once.
- ``whole``: a wave ends where its band ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError, check_text
from pebble.schedules.grid import Tiles, check_grid
from pebble.units import ceil_div

PREFIX = "bands-"
_FLAGS = ("snake", "sawtooth", "shift", "whole")
_NUMBERS = ("strip", "wave")
_HEIGHTS = re.compile(r"[0-9]{1,7}(x[0-9]{1,7})?(/[0-9]{1,7}(x[0-9]{1,7})?)*")
_EXAMPLE = "bands-m-16x3/10+sawtooth"


def heights_text(heights: Sequence[int]) -> str:
    """Heights of bands, equal ones together.

    Examples
    --------
    >>> heights_text([16, 16, 10])
    '16x2/10'
    """
    runs = [(value, len(list(run))) for value, run in groupby(heights)]
    return "/".join(f"{value}x{count}" if count > 1 else str(value) for value, count in runs)


def parse_heights(text: str) -> tuple[int, ...]:
    """The inverse of `heights_text`.

    Raises
    ------
    InputError
        Not heights, or more than 2^20 bands.
    """
    runs = [part.split("x") for part in text.split("/")] if _HEIGHTS.fullmatch(text) else []
    pairs = [(int(run[0]), int(run[1]) if len(run) > 1 else 1) for run in runs]
    if not pairs or min(map(min, pairs)) < 1 or sum(count for _, count in pairs) > 1 << 20:
        raise InputError(f"bands: got {text[:40]!r}, expected heights of at least 1 such as 16x3/10 (16, 16, 16, 10).")
    return tuple(value for value, count in pairs for _ in range(count))


def even_heights(tiles: int, bands: int) -> tuple[int, ...]:
    """Bands whose heights differ by at most one, the higher ones first.

    Examples
    --------
    >>> even_heights(64, 3)
    (22, 21, 21)
    """
    least, more = divmod(tiles, bands)
    return (least + 1,) * more + (least,) * (bands - more)


def k_shift(number: NDArray[np.int64], height: int, depth: int, wave_blocks: int) -> NDArray[np.int64]:
    """The k step at which tile ``number`` of a band begins, under ``shift``."""
    return -np.round(number // height * (height * depth / wave_blocks)).astype(np.int64) % depth


@dataclass(frozen=True)
class BandTable:
    """Tiles in issue order; shapes (tiles, 2), (tiles,), (tiles,)."""

    tiles: Tiles
    k_start: NDArray[np.int64]  #: step of k at which each begins
    wave: NDArray[np.int64]  #: number of its wave


@dataclass(frozen=True)
class Bands:
    """An order of tiles in bands.

    Attributes
    ----------
    axis : str
        ``m``: bands of tile rows; ``n``: of tile columns.
    heights : tuple of int
        Of each band, in tiles.
    snake, sawtooth, shift, whole : bool
    strip, wave : int
        The options that the module names; 0 for none.
    """

    axis: str
    heights: tuple[int, ...]
    snake: bool = False
    sawtooth: bool = False
    shift: bool = False
    whole: bool = False
    strip: int = 0
    wave: int = 0

    @property
    def name(self) -> str:
        """The name that `parse_bands` reads."""
        options = [flag for flag in _FLAGS if getattr(self, flag)]
        options += [f"{key}-{getattr(self, key)}" for key in _NUMBERS if getattr(self, key)]
        return "+".join([f"{PREFIX}{self.axis}-{heights_text(self.heights)}", *options])

    @property
    def words(self) -> str:
        """What it does, for a reader."""
        unit = "rows" if self.axis == "m" else "columns"
        runs = [(value, len(list(run))) for value, run in groupby(self.heights)]
        parts = [", ".join(f"{count} bands of {value}" if count > 1 else f"a band of {value}" for value, count in runs)]
        parts[0] += f" tile {unit}"
        if self.strip:
            parts.append(f"the last {self.strip} tiles of each left to a band across")
        parts += ["every second band walked back"] * self.snake
        parts += ["k to and fro by waves"] * self.sawtooth
        parts += ["k begun later from tile to tile"] * self.shift
        parts += [f"waves of {self.wave} blocks"] if self.wave else []
        parts += ["waves end with their band"] * self.whole
        return "; ".join(parts)

    def _bands(self, across: int, along: int) -> Iterator[tuple[range, range, bool]]:
        """Range across, range along, and whether it is the strip, which lies the other way."""
        if sum(self.heights) != across or self.strip >= along:
            raise InputError(
                f"schedule {self.name}: got {sum(self.heights)} tiles in bands and a strip of {self.strip} on a grid "
                f"of {across} tiles by {along}, expected heights that add up to {across} and a strip below {along}."
            )
        first = 0
        for number, height in enumerate(self.heights):
            walked = range(along - self.strip)
            yield range(first, first + height), walked[::-1] if self.snake and number % 2 else walked, False
            first += height
        if self.strip:
            yield range(across), range(along - self.strip, along), True

    def table(self, rows: int, cols: int, depth: int, wave_blocks: int) -> BandTable:
        """The tiles of a grid in order.

        Parameters
        ----------
        rows, cols, depth : int
            Tiles along M and N, and steps of k.
        wave_blocks : int
            P, blocks that run at once.

        Raises
        ------
        InputError
            Heights that do not add up to the grid. Cost O(tiles).
        """
        rows, cols = check_grid(rows, cols)
        across, along = (rows, cols) if self.axis == "m" else (cols, rows)
        slots = min(self.wave, wave_blocks) or wave_blocks
        tiles, starts, waves = [], [], []
        first_wave = before = 0
        for wide, walked, is_strip in self._bands(across, along):
            inner, outer = (np.array(walked), np.array(wide)) if is_strip else (np.array(wide), np.array(walked))
            slow, fast = np.repeat(outer, len(inner)), np.tile(inner, len(outer))
            pair = (slow, fast) if is_strip else (fast, slow)
            tiles.append(np.stack(pair if self.axis == "m" else pair[::-1], axis=1).astype(np.int32))
            number = np.arange(len(slow))
            starts.append(k_shift(number, len(inner), depth, slots) if self.shift else number * 0)
            waves.append(first_wave + (before + number) // slots)
            before += len(slow)
            if self.whole:
                first_wave, before = first_wave + ceil_div(before, slots), 0
        return BandTable(np.concatenate(tiles), np.concatenate(starts), np.concatenate(waves))


def parse_bands(text: str) -> Bands:
    """Read a name.

    Raises
    ------
    InputError
        Not a name of this module.

    Examples
    --------
    >>> parse_bands("bands-n-40/24+snake+shift").heights
    (40, 24)
    """
    plain, *options = check_text("schedule", text, f"a name such as {_EXAMPLE}").strip().lower().split("+")
    axis, _, heights = plain.removeprefix(PREFIX).partition("-")
    values: dict[str, int] = {}
    for option in options:
        key, _, number = option.partition("-")
        if option in _FLAGS:
            values[option] = True
        elif key in _NUMBERS and number.isdecimal() and 0 < len(number) < 8:
            values[key] = int(number)
        else:
            known = ", ".join((*_FLAGS, *(f"{key}-N" for key in _NUMBERS)))
            raise InputError(f"schedule: got {text[:60]!r}, expected of {known} after a plus, such as {_EXAMPLE}.")
    if not plain.startswith(PREFIX) or axis not in ("m", "n"):
        raise InputError(f"schedule: got {text[:60]!r}, expected bands-m-HEIGHTS or bands-n-HEIGHTS, such as {_EXAMPLE}.")
    return Bands(axis, parse_heights(heights), **values)  # type: ignore[arg-type]

"""Requests and sectors of a warp's loads and stores, from the addresses that its lanes touch.

A warp's load or store is one request. It touches the 32-byte sectors that hold at least one byte of a lane: fewest when
the lanes lie side by side, one a value when they lie a sector or more apart. So rows x cols values of b bytes take
between rows cols b / 32 and rows cols sectors. Accesses begin at multiples of their size, as the hardware demands.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from pebble.counters.quantities import SECTOR_BYTES
from pebble.counters.shapes import WARP
from pebble.errors import InputError
from pebble.units import ceil_div
from pebble.workloads.workload import check_dimension

VALUE_BYTES = (1, 2, 4, 8, 16)
MAX_ACCESS_BYTES = 16  # of one lane in one instruction
MAX_VALUES = 2**40
_MOST_EACH = 1024


@dataclass(frozen=True)
class Pattern:
    """Which values the lanes of a kernel touch in an array in row-major order.

    Attributes
    ----------
    rows, cols : int
        Values that are touched; a vector has one row.
    value_bytes : int
        Bytes of a value.
    vector : int
        Values that one lane moves in one instruction, side by side.
    stride : int
        Distance of neighbouring values that are touched, in values; 1 without gaps.
    offset_bytes : int
        Of the first value from a 128-byte line.
    pitch : int
        Distance of rows, in values; 0 for what the columns take.
    threads : tuple of int, optional
        Threads of a block along columns and rows; without it lanes follow each other along a row.
    each : tuple of int
        Values of a thread, side by side, along columns and rows: neighbouring threads lie so far apart. Each is moved
        by an instruction of its own, save for ``vector``.
    """

    rows: int
    cols: int
    value_bytes: int = 4
    vector: int = 1
    stride: int = 1
    offset_bytes: int = 0
    pitch: int = 0
    threads: tuple[int, int] | None = None
    each: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        check_dimension("rows", self.rows)
        check_dimension("cols", self.cols)
        check_dimension("vector", self.vector)
        check_dimension("stride", self.stride)
        if self.rows * self.cols > MAX_VALUES:
            raise InputError(f"rows x cols: got {self.rows * self.cols} values, expected at most 2^40.")
        if self.value_bytes not in VALUE_BYTES:
            raise InputError(f"bytes: got {self.value_bytes}, expected one of {', '.join(map(str, VALUE_BYTES))}.")
        if self.vector * self.value_bytes > MAX_ACCESS_BYTES or self.vector & (self.vector - 1):
            raise InputError(
                f"vector: got {self.vector} values of {self.value_bytes} bytes, expected 1, 2, 4 ... of at most "
                f"{MAX_ACCESS_BYTES} bytes together."
            )
        if not 0 <= self.offset_bytes < 2**40:
            raise InputError(f"offset: got {self.offset_bytes}, expected bytes from 0.")
        if self.vector > 1 and self.stride > 1:
            raise InputError(
                "vector: got it with a stride, expected one of them: the values of a vector lie side by side."
            )
        access = self.vector * self.value_bytes
        if self.cols % self.vector or self.offset_bytes % access or (self.vector > 1 and self.pitch % self.vector):
            raise InputError(
                f"vector: got rows of {self.cols} values, pitch {self.row_values}, offset {self.offset_bytes}, "
                f"expected columns and pitch in whole vectors, and an offset in whole accesses of {access} bytes."
            )
        if self.each[0] * self.each[1] > _MOST_EACH:
            raise InputError(f"each: got {self.each[0]}x{self.each[1]} values a thread, expected at most {_MOST_EACH}.")
        least = (self.cols - 1) * self.stride + 1
        if self.pitch and self.pitch < least:
            raise InputError(f"pitch: got {self.pitch}, expected at least the {least} values of a row.")
        across, down = self.threads or (1, 1)
        if not (across >= 1 and down >= 1 and across * down <= 1024):
            raise InputError(f"threads: got {across}x{down}, expected a block of 1 to 1024 threads.")
        for side, name, sides in zip(self.each, ("cols", "rows"), (self.cols, self.rows), strict=True):
            check_dimension("each", side)
            if side > sides:
                raise InputError(f"each: got {side} values of {name} for a thread, expected at most {sides}.")
        if self.threads is None and self.each != (1, 1):
            raise InputError("each: expected --threads beside it, the block whose threads have so many values.")
        if self.threads is not None and self.each[0] % self.vector:
            raise InputError(f"vector: got {self.vector}, expected a divisor of the {self.each[0]} values of a thread.")

    @property
    def row_values(self) -> int:
        """Distance of rows, in values."""
        return self.pitch or ((self.cols - 1) * self.stride + 1)


@dataclass(frozen=True)
class Coalescing:
    """What a pattern takes.

    Attributes
    ----------
    pattern : Pattern
    requests, sectors : int
        Instructions of warps, and sectors that they touch, as ``l1tex__t_requests`` and ``l1tex__t_sectors`` count.
    least_sectors, most_sectors : int
        Bounds for any pattern of so many values: all bytes / 32, and one a value.
    """

    pattern: Pattern
    requests: int
    sectors: int
    least_sectors: int
    most_sectors: int

    @property
    def sectors_per_request(self) -> float:
        """Sectors of a request, on average."""
        return self.sectors / self.requests

    @property
    def efficiency(self) -> float:
        """Bytes asked for over bytes moved."""
        return self.pattern.rows * self.pattern.cols * self.pattern.value_bytes / (self.sectors * SECTOR_BYTES)


def count_sectors(addresses: np.ndarray, access_bytes: int) -> int:
    """Sectors that requests touch.

    Parameters
    ----------
    addresses : numpy.ndarray
        Shape (requests, lanes): the first byte that each lane touches; negative for a lane that is off.
    access_bytes : int
        Bytes of a lane.

    Returns
    -------
    int
        Summed over the requests; a sector that several lanes of one request share counts once.

    Examples
    --------
    >>> lanes = np.arange(32)
    >>> count_sectors(4 * lanes[None], 4), count_sectors(8 * lanes[None], 4), count_sectors(4 * lanes[None] + 4, 4)
    (4, 8, 5)
    """
    first, last = addresses // SECTOR_BYTES, (addresses + access_bytes - 1) // SECTOR_BYTES
    touched = np.concatenate([np.where(addresses >= 0, sector, -1) for sector in (first, last)], axis=1)
    touched.sort(axis=1)
    fresh = np.ones_like(touched, dtype=bool)
    fresh[:, 1:] = touched[:, 1:] != touched[:, :-1]
    return int((fresh & (touched >= 0)).sum())


def coalesce(pattern: Pattern) -> Coalescing:
    """Requests and sectors of a pattern.

    What repeats is walked once, so the cost does not grow with the array.

    Examples
    --------
    >>> coalesce(Pattern(1, 8192)).sectors, coalesce(Pattern(1, 8192, stride=2)).sectors
    (1024, 2048)
    >>> coalesce(Pattern(2048, 2048, threads=(16, 16), each=(4, 4))).sectors
    2097152
    """
    requests, sectors = _blocks(pattern) if pattern.threads else _rows(pattern)
    values = pattern.rows * pattern.cols
    return Coalescing(pattern, requests, sectors, ceil_div(values * pattern.value_bytes, SECTOR_BYTES), values)


def first_request(pattern: Pattern) -> np.ndarray:
    """The first byte that each lane of the first warp touches, -1 for a lane that is off; shape (32,)."""
    if pattern.threads is None:
        return _row_addresses(pattern, 0, 0)
    result: np.ndarray = _block_addresses(pattern, 0, 0)[0]
    return result


def _row_addresses(pattern: Pattern, row: int, warp: int) -> np.ndarray:
    """Of a warp of a row: shape (32,)."""
    value = (warp * WARP + np.arange(WARP, dtype=np.int64)) * pattern.vector
    place = (row * pattern.row_values + value * pattern.stride) * pattern.value_bytes + pattern.offset_bytes
    result: np.ndarray = np.where(value < pattern.cols, place, -1)
    return result


def _rows(pattern: Pattern) -> tuple[int, int]:
    """Lanes along each row; rows at the same place within a sector are alike, and so are warps within a row."""
    access = pattern.vector * pattern.value_bytes
    warps = ceil_div(ceil_div(pattern.cols, pattern.vector), WARP)
    warp_bytes = WARP * pattern.vector * pattern.stride * pattern.value_bytes
    alike = SECTOR_BYTES // int(np.gcd(SECTOR_BYTES, warp_bytes))  # warps until they lie at the same place again
    full = max(0, warps - 1)  # the last may have lanes that are off
    row_bytes = pattern.row_values * pattern.value_bytes
    period = SECTOR_BYTES // int(np.gcd(SECTOR_BYTES, row_bytes))
    total = 0
    for row in range(min(period, pattern.rows)):
        times = ceil_div(pattern.rows - row, period)
        here = 0
        for start in range(min(alike, full)):
            single = count_sectors(_row_addresses(pattern, row, start)[None], access)
            here += single * ceil_div(full - start, alike)
        here += count_sectors(_row_addresses(pattern, row, warps - 1)[None], access)
        total += here * times
    return pattern.rows * warps, total


def _block_addresses(pattern: Pattern, first_row: int, first_col: int) -> np.ndarray:
    """Of every warp of a block whose first thread is at this value: shape (warps, 32)."""
    assert pattern.threads is not None
    wide, high = pattern.threads
    thread = np.arange(ceil_div(wide * high, WARP) * WARP, dtype=np.int64)
    row = first_row + (thread // wide) * pattern.each[1]
    col = first_col + (thread % wide) * pattern.each[0]
    place = (row * pattern.row_values + col * pattern.stride) * pattern.value_bytes + pattern.offset_bytes
    on = (thread < wide * high) & (row < pattern.rows) & (col < pattern.cols)
    result: np.ndarray = np.where(on, place, -1).reshape(-1, WARP)
    return result


def _blocks(pattern: Pattern) -> tuple[int, int]:
    """Blocks of threads over the array; blocks of the same size at the same place within a sector are alike."""
    assert pattern.threads is not None
    wide, high = (side * each for side, each in zip(pattern.threads, pattern.each, strict=True))
    access = pattern.vector * pattern.value_bytes
    across, down = ceil_div(pattern.cols, wide), ceil_div(pattern.rows, high)
    columns = _alike(across, wide * pattern.stride * pattern.value_bytes, pattern.cols % wide > 0)
    lines = _alike(down, high * pattern.row_values * pattern.value_bytes, pattern.rows % high > 0)
    requests = sectors = 0
    for (i, line_times), (j, column_times) in product(lines, columns):
        times = line_times * column_times
        for a, b in product(range(pattern.each[1]), range(0, pattern.each[0], pattern.vector)):
            addresses = _block_addresses(pattern, i * high + a, j * wide + b)
            requests += times * int((addresses >= 0).any(axis=1).sum())
            sectors += times * count_sectors(addresses, access)
    return requests, sectors


def _alike(count: int, step_bytes: int, ragged: bool) -> list[tuple[int, int]]:
    """Of blocks so many bytes apart, one of each place within a sector and how many lie there; a cut one apart."""
    period = SECTOR_BYTES // int(np.gcd(SECTOR_BYTES, step_bytes))
    whole = count - ragged
    results = [(start, ceil_div(whole - start, period)) for start in range(min(period, whole))]
    return [*results, (count - 1, 1)] if ragged else results

"""Block tiles, how many values of each operand a block works on at a time; and the grid of output tiles, where an
order is an array of (tile row, tile column) pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError, check_text
from pebble.traces import LINE_BYTES
from pebble.units import ceil_div
from pebble.workloads import Gemm, check_dimension

_MAX_TILE = 1 << 16
_ROWS_AT_ONCE, _COLS_AT_ONCE = 64, 256  # of a tensor-core instruction of compute capability 9.0
_MOST_SUMS = 128 * 256  # values of a tile whose sums fill the registers of two warp groups


@dataclass(frozen=True)
class TileShape:
    """Block tile BM x BN x BK, in values.

    Attributes
    ----------
    bm, bn, bk : int
        Rows and columns of the block's part of C, and the depth of one step.

    Examples
    --------
    >>> TileShape.parse("128x256x64")
    TileShape(bm=128, bn=256, bk=64)
    """

    bm: int
    bn: int
    bk: int

    @staticmethod
    def parse(text: str, default_bk: int = 64) -> TileShape:
        """Read ``128x128x64``, or ``128x128`` with the default depth.

        Raises
        ------
        InputError
            Not two or three positive whole numbers up to 65536.
        """
        parts = check_text("tile", text, "BMxBN or BMxBNxBK, such as '128x128x64'").lower().split("x")
        try:
            numbers = [int(part) for part in parts]
        except ValueError:
            numbers = []
        if len(numbers) not in (2, 3) or not all(1 <= v <= _MAX_TILE for v in numbers):
            raise InputError(
                f"tile: got {text!r}, expected BMxBN or BMxBNxBK, whole numbers from 1 to {_MAX_TILE}, e.g. 128x128x64."
            )
        return TileShape(numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else default_bk)

    @staticmethod
    def default(gemm: Gemm) -> TileShape:
        """128 x 128, and 128 bytes of k."""
        return TileShape(128, 128, LINE_BYTES // gemm.in_bytes)

    def cut_to(self, gemm: Gemm) -> TileShape:
        """The same tile, cut short where it is larger than the problem."""
        return TileShape(min(self.bm, gemm.m), min(self.bn, gemm.n), min(self.bk, gemm.k))

    def cut_rows(self, rows: int) -> int:
        """BM, cut short where there are fewer rows."""
        return min(self.bm, rows)

    def grid(self, gemm: Gemm) -> tuple[int, int, int]:
        """Tiles along m, n and k; edge tiles are short."""
        return ceil_div(gemm.m, self.bm), ceil_div(gemm.n, self.bn), ceil_div(gemm.k, self.bk)

    def operations_per_byte(self, element_bytes: int) -> float:
        """2 BM BN / ((BM + BN) b): the intensity at the SM boundary, of what a block loads; not that at DRAM.

        Examples
        --------
        >>> TileShape(128, 256, 64).operations_per_byte(2)
        85.33333333333333
        """
        return 2 * self.bm * self.bn / ((self.bm + self.bn) * element_bytes)

    def __str__(self) -> str:
        return f"{self.bm}x{self.bn}x{self.bk}"


def operand_reads(rows: int, cols: int, k: int, rows_in_registers: bool = False) -> int:
    """Values that tensor cores read from shared memory for one product of tiles, where they take operands from there.

    An instruction of compute capability 9.0 multiplies 64 rows by up to 256 columns, so each row is read once for 256
    columns and each column once for 64 rows; rows may come from registers instead.

    Examples
    --------
    >>> operand_reads(128, 256, 64), operand_reads(256, 128, 64)
    (40960, 49152)
    """
    return k * (
        ceil_div(rows, _ROWS_AT_ONCE) * cols + (0 if rows_in_registers else rows * ceil_div(cols, _COLS_AT_ONCE))
    )


def product_bytes(tile: TileShape, element_bytes: int, products: int = 1) -> int:
    """Bytes that one step of a block moves through shared memory: what loads write and tensor cores read.

    ``products`` share the tile of A, as gate and up do.
    """
    reads = products * operand_reads(tile.bm, tile.bn, tile.bk)
    return element_bytes * (reads + tile.bk * (tile.bm + products * tile.bn))


def joins_tiles(up_sums: int, bm: int, bn: int) -> bool:
    """Whether an exported file takes two tiles of an FFN's down product as one: of a gated one, whose up product has
    two sums in registers where its down product has one.
    """
    return up_sums == 2 and 2 * bm * bn <= _MOST_SUMS


Tiles = NDArray[np.int32]  # shape (tiles, 2): tile row, tile column
Index = NDArray[np.int64]

MAX_TILES = 2**23  # every order is made in seconds; a grid above this is a mistyped tile size


def cut_sides(most: int, *sides: tuple[int, int], longest: int = 0) -> list[int]:
    """Lengths cut in proportion so that the longest has at most ``most`` tiles; each is (length, side of its tile).

    ``longest``: tiles on the longest side, where that is none of these.

    Examples
    --------
    >>> cut_sides(8, (4096, 128), (1024, 128))
    [1024, 256]
    """
    counts = [ceil_div(length, side) for length, side in sides]
    share = max(1, (longest or max(counts)) / most)
    return [
        min(length, side * min(most, max(1, round(count / share))))
        for (length, side), count in zip(sides, counts, strict=True)
    ]


def round_up(a: int, multiple: int) -> int:
    """The least multiple of ``multiple`` that is not below a.

    Examples
    --------
    >>> round_up(9, 4)
    12
    """
    return ceil_div(a, multiple) * multiple


def check_grid(rows: object, cols: object) -> tuple[int, int]:
    """A grid of tiles as two positive whole numbers, or one clear sentence.

    Parameters
    ----------
    rows, cols : int
        Tiles along M and along N.

    Raises
    ------
    InputError
        A side that is not a positive whole number, or more than 2^26 tiles.
    """
    m, n = check_dimension("tile rows", rows), check_dimension("tile columns", cols)
    if m * n > MAX_TILES:
        raise InputError(
            f"grid: got {m}x{n} = {m * n} tiles, expected at most {MAX_TILES}; use larger tiles or a smaller problem."
        )
    return m, n


def tile_ids(rows: int, cols: int) -> Index:
    """The ids 0, 1, ... of a grid, which each order maps to tiles. Shape (rows * cols,)."""
    return np.arange(rows * cols, dtype=np.int64)


def pairs(row: NDArray[Any], col: NDArray[Any]) -> Tiles:
    """Join tile rows and tile columns into pairs, shape (tiles, 2)."""
    tiles = np.empty((row.size, 2), dtype=np.int32)
    tiles[:, 0] = row
    tiles[:, 1] = col
    return tiles

"""What can be tried for a GEMM, and for groups of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import gcd

from pebble.families.spaces.space import Space, band_choices, flipped, near_heights
from pebble.schedules.orders import REGISTRY, TileOrder
from pebble.schedules.recipes import GemmBands, cut_heights
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.traces import LINE_BYTES
from pebble.units import ceil_div
from pebble.workloads import Gemm, GroupedGemm

SWEPT = 64  # numbers of a named order, 1 to this
_HEIGHTS = 40  # band heights to begin with, along each axis
_STEPS = 16  # of k, in a quick look
LEAST_WAVE = 0.95  # of the blocks that can run at once
SIDES = (64, 128, 256)  # of a block tile; powers of two, as kernel languages want them


class GemmSpace(Space[Gemm, GemmBands]):
    """Bands of tile rows or columns."""

    def tiles(self, workload: Gemm, default: TileShape) -> Iterable[TileShape]:
        results = [default, *(TileShape(bm, bn, default.bk) for bm in SIDES for bn in SIDES)]
        alike = workload.m == workload.n  # then the mirror image of a tile moves the same
        return [tile for tile in dict.fromkeys(results) if not (alike and tile.bm > tile.bn)]

    def operands(self, workload: Gemm) -> tuple[str, ...]:
        return "A", "B"

    def intensity(self, workload: Gemm, tile: TileShape) -> float:
        return tile.bm * tile.bn / (tile.bm + tile.bn)

    def least_time(self, workload: Gemm, config: KernelConfig) -> float:
        rows, cols, depth = config.tile.grid(workload)
        return ceil_div(rows * cols, config.wave_blocks) * depth * self.step(config.tile)

    def coarse(self, workload: Gemm, tile: TileShape) -> TileShape:
        return _long_steps(tile, workload)

    def swept(self, workload: Gemm, config: KernelConfig) -> Sequence[TileOrder]:
        rows, cols, _ = config.tile.grid(workload)
        return swept_orders(rows, cols)

    def made(self, workload: Gemm, config: KernelConfig) -> Iterator[GemmBands]:
        rows, cols, depth = config.tile.grid(workload)
        alike = rows == cols and workload.m == workload.n  # then one axis moves what the other does
        for axis, across, along in (("m", rows, cols), ("n", cols, rows))[: 1 if alike else 2]:
            for heights in band_choices(across, _HEIGHTS):
                yield GemmBands(axis, heights)
                yield GemmBands(axis, heights, snake=True, sawtooth=True)
                wave = whole_columns(heights[0], config.wave_blocks)
                if wave:
                    yield GemmBands(axis, heights, snake=True, sawtooth=True, wave=wave)
                if depth > 1:
                    yield GemmBands(axis, heights, snake=True, shift=True)
                    strip = _whole_waves(along, heights[0], config.wave_blocks)
                    if strip:
                        yield GemmBands(axis, heights, shift=True, strip=strip)

    def recipe(self, workload: Gemm, schedule: TileOrder, config: KernelConfig) -> GemmBands | None:
        rows, cols, _ = config.tile.grid(workload)
        number = schedule.number or 1
        if schedule.base == "grouped":
            return GemmBands("m", cut_heights(rows, min(number, rows)), sawtooth=schedule.sawtooth)
        if schedule.base == "snake-strips":
            heights = cut_heights(cols, min(number, cols))
            return GemmBands("n", heights, snake=True, sawtooth=schedule.sawtooth)
        return None

    def near(self, workload: Gemm, recipe: GemmBands, config: KernelConfig) -> Iterator[GemmBands]:
        rows, cols, depth = config.tile.grid(workload)
        along = cols if recipe.axis == "m" else rows
        for heights in near_heights(recipe.heights):
            yield replace(recipe, heights=heights)
        yield from flipped(recipe)
        most, height = config.wave_blocks, recipe.heights[0]
        for wave in {0, whole_columns(height, most), most // 8 * 8, most // 4 * 4}:
            if wave == 0 or LEAST_WAVE * most <= wave < most:
                yield replace(recipe, wave=wave)
        for strip in {
            0,
            _whole_waves(along, height, most),
            *(recipe.strip + d for d in (-2, -1, 1, 2) if recipe.strip),
        }:
            if 0 <= strip < along:
                yield replace(recipe, strip=strip)
        for slabs in {1, 2, recipe.slabs + 1}:
            if slabs <= min(depth, 8):
                yield replace(recipe, slabs=slabs)


class GroupedSpace(Space[GroupedGemm, GemmBands]):
    """Named orders with their numbers, in each group: no recipe makes a table of several products."""

    def tiles(self, workload: GroupedGemm, default: TileShape) -> Iterable[TileShape]:
        return dict.fromkeys([default, *(TileShape(bm, bn, default.bk) for bm in SIDES for bn in SIDES)])

    def operands(self, workload: GroupedGemm) -> tuple[str, ...]:
        return ()

    def intensity(self, workload: GroupedGemm, tile: TileShape) -> float:
        return tile.bm * tile.bn / (tile.bm + tile.bn)

    def least_time(self, workload: GroupedGemm, config: KernelConfig) -> float:
        tile = config.tile
        tiles = ceil_div(workload.n, tile.bn) * sum(ceil_div(rows, tile.bm) for rows in workload.rows)
        return ceil_div(tiles, config.wave_blocks) * ceil_div(workload.k, tile.bk) * self.step(tile)

    def coarse(self, workload: GroupedGemm, tile: TileShape) -> TileShape:
        return _long_steps(tile, workload)

    def swept(self, workload: GroupedGemm, config: KernelConfig) -> Sequence[TileOrder]:
        return swept_orders(ceil_div(max(workload.rows), config.tile.bm), ceil_div(workload.n, config.tile.bn))

    def made(self, workload: GroupedGemm, config: KernelConfig) -> Iterator[GemmBands]:
        return iter(())

    def recipe(self, workload: GroupedGemm, schedule: TileOrder, config: KernelConfig) -> GemmBands | None:
        return None

    def near(self, workload: GroupedGemm, recipe: GemmBands, config: KernelConfig) -> Iterator[GemmBands]:
        return iter(())


def _long_steps(tile: TileShape, workload: Gemm | GroupedGemm) -> TileShape:
    """A tile of about `_STEPS` steps, each of whole lines of A: what shares a line is fetched with it in any case."""
    steps = ceil_div(ceil_div(workload.k, tile.bk), _STEPS)
    of_lines = LINE_BYTES // gcd(LINE_BYTES, tile.bk * workload.in_bytes)
    return replace(tile, bk=tile.bk * ceil_div(steps, of_lines) * of_lines)


def swept_orders(rows: int, cols: int) -> list[TileOrder]:
    """Named orders of a grid with other numbers than the customary ones."""
    most = {"grouped": rows, "snake-strips": cols}  # others with a number walk as these do
    return [
        TileOrder(base, number, sawtooth)
        for base, limit in most.items()
        for number in range(1, min(SWEPT, limit) + 1)
        if number != REGISTRY[base].number
        for sawtooth in (False, True)
    ]


def whole_columns(height: int, wave_blocks: int) -> int:
    """Blocks of a wave that ends with a column of a band; 0 where that is all of them or leaves too many idle."""
    blocks = wave_blocks // height * height
    return blocks if LEAST_WAVE * wave_blocks <= blocks < wave_blocks else 0


def _whole_waves(along: int, height: int, wave_blocks: int) -> int:
    """Tiles to leave at the end of a band so that the rest is whole waves; 0 where that is none or too many."""
    waves = height * along // wave_blocks
    left = along - waves * wave_blocks // height
    return left if waves and 0 < left <= along // 2 else 0

"""What can be tried for a feed-forward network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pebble.schedules.ffn import FfnSchedule
from pebble.schedules.recipes import FusedBands, GemmBands, SeparateBands, cut_heights
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.tuning.base import Space, band_choices, near_heights, spread
from pebble.tuning.gemm import SWEPT, GemmSpace
from pebble.units import ceil_div
from pebble.workloads import Ffn, Gemm

_HEIGHTS = 48
_PAIRS = 6  # band heights of each of two kernels, along each axis
_SPLITS = (1, 2, 4)
_PRODUCT = GemmSpace()

FfnRecipe = FusedBands | SeparateBands


def _products(ffn: Ffn) -> tuple[Gemm, Gemm]:
    """The two GEMMs, as grids of tiles: gate and up share a tile."""
    return Gemm(ffn.tokens, ffn.hidden, ffn.d_model), Gemm(ffn.tokens, ffn.d_out, ffn.hidden)


class FfnSpace(Space[Ffn, FfnRecipe]):
    """Fused bands of tile rows, and two kernels with bands of their own."""

    def sides(self, default: TileShape) -> Iterable[TileShape]:
        return _PRODUCT.sides(default)

    def intensity(self, workload: Ffn, tile: TileShape) -> float:
        ups = workload.up_products
        first, second = ups * tile.bm * tile.bn / (tile.bm + ups * tile.bn), tile.bm * tile.bn / (tile.bm + tile.bn)
        return min(first, second)

    def busy(self, workload: Ffn, config: KernelConfig) -> float:
        first, second = (_PRODUCT.busy(product, config) for product in _products(workload))
        return workload.up_products * workload.d_model * first + workload.hidden * second

    def coarse(self, workload: Ffn, tile: TileShape) -> TileShape:
        return replace(tile, bk=max(tile.bk, tile.bn))

    def swept(self, workload: Ffn, config: KernelConfig) -> Sequence[FfnSchedule]:
        rows = ceil_div(workload.tokens, config.tile.bm)
        most = min(rows, SWEPT)
        found = [FfnSchedule("row-fused", band=band) for band in range(1, most + 1)]
        found += [FfnSchedule("row-fused", band=band, split=split) for band in spread(most, 12) for split in (2, 4)]
        for base in ("grouped", "snake-strips", "thunderkittens"):
            found += [FfnSchedule("separate", order=f"{base}-{number}") for number in spread(SWEPT, 24)]
        return [replace(schedule, sawtooth=sawtooth) for schedule in found for sawtooth in (False, True)]

    def made(self, workload: Ffn, config: KernelConfig) -> Iterator[FfnRecipe]:
        rows = ceil_div(workload.tokens, config.tile.bm)
        for heights in band_choices(rows, _HEIGHTS):
            for split in _SPLITS:
                yield FusedBands(heights, split, snake=True, sawtooth=True)
                yield FusedBands(heights, split, snake=True, shift=True)
            yield FusedBands(heights, sawtooth=True)
        sides = [ceil_div(product.n, config.tile.bn) for product in _products(workload)]
        bands = [
            [
                GemmBands(axis, heights, snake=True)
                for axis, tiles in (("m", rows), ("n", cols))
                for heights in (cut_heights(tiles, height) for height in spread(tiles, 2 * _PAIRS)[_PAIRS // 2 :])
            ]
            for cols in sides
        ]
        for first in bands[0]:
            for second in bands[1]:
                yield SeparateBands(first, second, sawtooth=True)
                yield SeparateBands(replace(first, shift=True), replace(second, shift=True))

    def recipe(self, workload: Ffn, schedule: FfnSchedule, config: KernelConfig) -> FfnRecipe | None:
        rows = ceil_div(workload.tokens, config.tile.bm)
        if schedule.kind == "row-fused":
            heights = cut_heights(rows, min(schedule.band, rows))
            return FusedBands(heights, schedule.split, sawtooth=schedule.sawtooth)
        return None

    def near(self, workload: Ffn, recipe: FfnRecipe, config: KernelConfig) -> Iterator[FfnRecipe]:
        if isinstance(recipe, FusedBands):
            for heights in near_heights(recipe.heights):
                yield replace(recipe, heights=heights)
            for flag in ("snake", "sawtooth", "shift"):
                yield replace(recipe, **{flag: not getattr(recipe, flag)})
            for split in {1, recipe.split - 1, recipe.split + 1}:
                if split >= 1:
                    yield replace(recipe, split=split)
            return
        yield replace(recipe, sawtooth=not recipe.sawtooth)
        for field, product in zip(("first", "second"), _products(workload), strict=True):
            for bands in _PRODUCT.near(product, getattr(recipe, field), config):
                if not bands.wave and bands.slabs == 1 and not bands.sawtooth:  # waves are those of the whole
                    yield replace(recipe, **{field: bands})

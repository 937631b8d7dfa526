"""What can be tried for a feed-forward network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pebble.families.gemm import GEMM
from pebble.families.spaces.candidate import Candidate, estimated_bytes
from pebble.families.spaces.gemm import SIDES, SWEPT, GemmSpace, whole_columns
from pebble.families.spaces.space import Space, band_choices, changed, flipped, near_heights, spread
from pebble.schedules.ffn import FfnSchedule
from pebble.schedules.recipes import FusedBands, GemmBands, SeparateBands, cut_heights
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.units import ceil_div
from pebble.workloads import Ffn, Gemm

_HEIGHTS = 32
_PAIRS = 5  # orders of each of two kernels
_PRODUCT = GemmSpace()

FfnRecipe = FusedBands | SeparateBands


def _products(ffn: Ffn) -> tuple[Gemm, Gemm]:
    """The two GEMMs, as grids of tiles: gate and up share a tile."""
    return Gemm(ffn.tokens, ffn.hidden, ffn.d_model), Gemm(ffn.tokens, ffn.d_out, ffn.hidden)


class FfnSpace(Space[Ffn, FfnRecipe]):
    """Fused bands of tile rows, and two kernels with bands of their own."""

    def tiles(self, workload: Ffn, default: TileShape) -> Iterable[TileShape]:
        return dict.fromkeys([default, *(TileShape(bm, bn, default.bk) for bm in SIDES for bn in SIDES)])

    def operands(self, workload: Ffn) -> tuple[str, ...]:
        return "X", *(("Wg", "Wu") if workload.gated else ("W1",)), "H", "W2"

    def intensity(self, workload: Ffn, tile: TileShape) -> float:
        ups = workload.up_products
        first, second = ups * tile.bm * tile.bn / (tile.bm + ups * tile.bn), tile.bm * tile.bn / (tile.bm + tile.bn)
        return min(first, second)

    def products(self, workload: Ffn, product: int) -> int:
        return 1 if product else workload.up_products

    def least_time(self, workload: Ffn, config: KernelConfig) -> float:
        return sum(
            self.products(workload, number) * _PRODUCT.least_time(product, config)
            for number, product in enumerate(_products(workload))
        )

    def coarse(self, workload: Ffn, tile: TileShape) -> TileShape:
        return replace(tile, bk=max(tile.bk, tile.bn))

    def swept(self, workload: Ffn, config: KernelConfig) -> Sequence[FfnSchedule]:
        rows = ceil_div(workload.tokens, config.tile.bm)
        most = min(rows, SWEPT)
        results = [FfnSchedule("row-fused", band=band) for band in {*range(1, min(most, 32) + 1), *spread(most, 16)}]
        results += [FfnSchedule("row-fused", band=band, split=split) for band in spread(most, 8) for split in (2, 4)]
        for base in ("grouped", "snake-strips"):
            results += [FfnSchedule("separate", order=f"{base}-{number}") for number in spread(SWEPT, 16)]
        return [replace(schedule, sawtooth=sawtooth) for schedule in results for sawtooth in (False, True)]

    def made(self, workload: Ffn, config: KernelConfig) -> Iterator[FfnRecipe]:
        rows = ceil_div(workload.tokens, config.tile.bm)
        for heights in band_choices(rows, _HEIGHTS):
            if heights[0] == 1 < rows:
                continue
            yield FusedBands(heights, snake=True, sawtooth=True)
            yield FusedBands(heights, snake=True, shift=True)
            yield FusedBands(heights, 2, snake=True, sawtooth=True)
            wave = whole_columns(heights[0], config.wave_blocks)
            if wave:
                yield FusedBands(heights, sawtooth=True, wave=wave)
        first, second = (
            _best_bands(product, self.products(workload, number), config)
            for number, product in enumerate(_products(workload))
        )
        for item in first:
            for other in second:
                if item.shift == other.shift:
                    yield SeparateBands(replace(item, sawtooth=False), replace(other, sawtooth=False), not item.shift)

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
            for wave in {0, whole_columns(recipe.heights[0], config.wave_blocks)}:
                yield replace(recipe, wave=wave)
            yield from flipped(recipe)
            for split in {1, recipe.split - 1, recipe.split + 1}:
                if split >= 1:
                    yield replace(recipe, split=split)
            return
        yield replace(recipe, sawtooth=not recipe.sawtooth)
        halves = {"first": recipe.first, "second": recipe.second}
        for (field, half), product in zip(halves.items(), _products(workload), strict=True):
            for bands in _PRODUCT.near(product, half, config):
                if bands.slabs == 1 and not bands.sawtooth:  # which is of the whole
                    yield changed(recipe, **{field: bands})


def _best_bands(product: Gemm, tiles: int, config: KernelConfig) -> list[GemmBands]:
    """Orders of one product alone that look best, with sawtooth and with shift; weights of ``tiles`` tiles a block."""
    wide = replace(product, n=product.n * tiles)
    alone = replace(config, tile=replace(config.tile, bn=config.tile.bn * tiles))
    results: list[GemmBands] = []
    made = [bands for bands in _PRODUCT.made(wide, alone) if not bands.strip]
    for shift in (False, True):
        kind = [bands for bands in made if bands.shift == shift and (shift or bands.sawtooth)]
        looks = {bands: estimated_bytes(GEMM, _PRODUCT, wide, Candidate(bands, alone)) for bands in kind}
        results += sorted(looks, key=lambda bands: looks[bands])[:_PAIRS]
    return results

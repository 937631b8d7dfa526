"""The dimensions of a model's layer from counters of several sequence lengths.

A product of M tokens with a weight of N x K stores M N b / 32 sectors, loads 2 M N K b / (32 T) sectors by square tiles
of side T, and takes M N K / 32 FMA instructions of a warp (without tensor cores). Each counter, divided by what is
known, is one of the unknown products N, N K, N K / T times noise; logarithms make the noise additive, and its spread is
what the lengths disagree by. A candidate fits as well as the least sum of squared, weighted residuals over the value
sizes and tile sides that the counters leave open. What fits nearly as well as the best is listed: if that is more than
one pair of dimensions, the answer is ambiguous and says so.

A grid of one block a tile of BM x BN has ceil(M / BM) ceil(N / BN) blocks, which is exact: tiles and widths that do not
have the grids of all lengths are left out. Where none have them, a block is not a tile, and the grids are not used.

A layer whose counters would differ from those measured by more than a tenth fits none, however noisy they are.
Counters that do not grow as the tokens are not those of a layer, whatever fits their mean: then no layer is named, and
the power of the tokens that each does follow is said instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, expm1, log, sqrt
from typing import NamedTuple

from pebble.counters.laws import Law, laws_of
from pebble.counters.names import Tile
from pebble.counters.quantities import SECTOR_BYTES
from pebble.counters.shapes import UNTOLD_BYTES, WARP
from pebble.errors import InputError
from pebble.units import ceil_div
from pebble.workloads.named import model_layers, model_names, model_shape

COUNTERS = ("store_sectors", "load_sectors", "fma_instructions")
TILE_SIDES = (16, 32, 64, 128, 192, 256)
LEAST_SPREAD = 0.005  # no counter is trusted beyond this
MOST_SPREAD = 0.1  # of the counters of one layer; layers lie no farther apart
# The sum of squares beyond the least possible at which a candidate is refused, at a level of one in a thousand: of
# chi-square for three counters where the noise is known, more where it is estimated from few lengths (F distribution).
NEAR, NEAR_FEW = 16.0, 14.0
STEP = 128  # integer candidates are multiples of it
_MOST_CANDIDATES = 8
_MOST_INTEGERS = 400


class Sample(NamedTuple):
    """Counters of one sequence length, and the blocks of its grid; None where one was not taken."""

    tokens: int
    store_sectors: float | None = None
    load_sectors: float | None = None
    fma_instructions: float | None = None
    blocks: int | None = None

    @property
    def counters(self) -> dict[str, float | None]:
        """Each of `COUNTERS` by its name."""
        return dict(zip(COUNTERS, (self.store_sectors, self.load_sectors, self.fma_instructions), strict=True))


@dataclass(frozen=True)
class LayerFit:
    """A layer that fits the counters.

    Attributes
    ----------
    n, k : int
        Output and input width, in values.
    value_bytes : int
    tile : Tile or None
        With which it fits best; None where neither loads nor grids tell a tile.
    misfit : float
        Sum of squared residuals, in standard deviations.
    layers : tuple of str
        ``MODEL:LAYER`` names that have these widths; empty for a candidate of integers.
    """

    n: int
    k: int
    value_bytes: int
    tile: Tile | None
    misfit: float
    layers: tuple[str, ...] = ()

    @property
    def tile_side(self) -> int:
        """Harmonic mean of the tile's sides; 0 without a tile."""
        return round(_side(self.tile)) if self.tile else 0


@dataclass(frozen=True)
class Dimensions:
    """What counters of several lengths say of a layer.

    Attributes
    ----------
    samples : tuple of Sample
    spread : float
        Relative noise of a counter, as the lengths disagree.
    named : tuple of LayerFit
        Layers of named models that fit, best first.
    integers : tuple of LayerFit
        Multiples of `STEP` that fit, best first, named or not; cut to a few.
    integers_fitting : int
        How many there are; 0 where the counters do not tell both widths.
    notes : tuple of str
    laws : tuple of Law
        The power of the tokens that each counter follows.
    by_grid : bool
        Whether the grids were used.
    """

    samples: tuple[Sample, ...]
    spread: float
    named: tuple[LayerFit, ...]
    integers: tuple[LayerFit, ...]
    integers_fitting: int
    notes: tuple[str, ...]
    laws: tuple[Law, ...]
    by_grid: bool = False

    @property
    def of_a_layer(self) -> bool:
        """Whether the counters grow as the tokens, as those of a layer do."""
        return self.spread <= MOST_SPREAD

    @property
    def best(self) -> LayerFit | None:
        """The named layer that fits best, else the best of integers."""
        return next(iter((*self.named, *self.integers)), None)

    @property
    def ambiguous(self) -> bool:
        """More than one pair of dimensions is left: among named models where any fits, else among integers."""
        if not self.of_a_layer:
            return False
        return len({(fit.n, fit.k) for fit in self.named}) > 1 if self.named else self.integers_fitting != 1

    @property
    def models(self) -> tuple[tuple[str, int, int], ...]:
        """Named models of the best fit, with their hidden and intermediate width."""
        if not self.named:
            return ()
        names = dict.fromkeys(layer.partition(":")[0] for layer in self.named[0].layers)
        return tuple((name, model_shape(name).hidden, model_shape(name).intermediate) for name in names)


def recover(
    samples: Sequence[Sample],
    tile_side: int | None = None,
    value_bytes: int | Sequence[int] | None = None,
    tile: Tile | None = None,
) -> Dimensions:
    """The widths N and K of a layer from counters of several sequence lengths.

    Parameters
    ----------
    samples : sequence of Sample
        Two lengths or more, one kernel: the product of ``tokens`` rows with one weight.
    tile_side : int, optional
        Harmonic mean of the sides of the block tile, where known.
    value_bytes : int or sequence of int, optional
        Bytes of a value, where known.
    tile : Tile, optional
        The block tile itself, where known.

    Returns
    -------
    Dimensions

    Raises
    ------
    InputError
        Fewer than two lengths, or no counter that is there for all.

    Examples
    --------
    >>> lengths = (256, 512, 1024, 2048)
    >>> found = recover([Sample(m, m * 13824 / 16, m * 13824 * 5120 / 16 / 64, m * 13824 * 5120 / 32) for m in lengths])
    >>> found.models[0], found.ambiguous
    (('llama-2-13b', 5120, 13824), False)
    """
    if len({sample.tokens for sample in samples}) < 2:
        raise InputError("dims: expected counters of two sequence lengths or more, such as --tokens 256,512,1024,2048.")
    if any(sample.tokens < 1 for sample in samples):
        raise InputError("dims: expected lengths of one token or more.")
    logs = _per_token(samples)
    if not logs:
        raise InputError(
            f"dims: no counter is there for all lengths; expected one of {', '.join(COUNTERS)}, all above zero."
        )
    spread, laws = _spread(logs.values()), laws_of([sample.tokens for sample in samples], logs)
    if spread > MOST_SPREAD:
        return Dimensions(tuple(samples), spread, (), (), 0, (), laws)
    sizes = (value_bytes,) if isinstance(value_bytes, int) else tuple(value_bytes or UNTOLD_BYTES)
    gridded = all(sample.blocks for sample in samples)
    result = _Search(samples, logs, spread, sizes, _tiles(tile_side, tile, gridded), gridded)
    named, integers = result.named(), result.integers()
    notes = result.notes()
    if gridded and not named and not integers:
        result = _Search(samples, logs, spread, sizes, _tiles(tile_side, tile, False), False)
        named, integers = result.named(), result.integers()
        if named or integers:
            notes += ("the grids are not those of a block a tile, and were not used",)
    return Dimensions(
        tuple(samples),
        spread,
        tuple(named),
        tuple(integers[:_MOST_CANDIDATES]),
        len(integers),
        notes,
        laws,
        result.by_grid,
    )


def _side(tile: Tile) -> float:
    """The side of the square tile that loads as much a value."""
    return 2 * tile.bm * tile.bn / (tile.bm + tile.bn)


def _tiles(side: int | None, tile: Tile | None, gridded: bool) -> tuple[Tile, ...]:
    """The tiles to try, squares first: loads tell of a tile its mean side alone, grids both."""
    if side is None and tile is not None:
        return tuple(dict.fromkeys((Tile(tile.bm, tile.bn), Tile(tile.bn, tile.bm))))
    squares = [Tile(element, element) for element in ((side,) if side else TILE_SIDES)]
    if not gridded:
        return tuple(squares)
    oblong = [Tile(a, b) for a in TILE_SIDES for b in TILE_SIDES if a != b]
    return (*squares, *(item for item in oblong if side is None or round(_side(item)) == side))


@dataclass(frozen=True)
class _Search:
    """What fits some counters, over the value sizes and tiles that are left open."""

    samples: Sequence[Sample]
    logs: Mapping[str, Sequence[float]]
    spread: float
    sizes: Sequence[int]
    tiles: Sequence[Tile]
    by_grid: bool

    def named(self) -> list[LayerFit]:
        """The layers of named models that fit, best first."""
        return self._fitting((n, k, names) for (n, k), names in _named_layers().items())

    def integers(self) -> list[LayerFit]:
        """The multiples of `STEP` that fit, best first; none where the counters do not tell both widths."""
        if "store_sectors" not in self.logs or len(self.logs) < 2:
            return []
        sides = dict.fromkeys(map(_side, self.tiles))
        return self._fitting((n, k, ()) for n, k in _integers(self.logs, self.spread, (*sides,), self.sizes))

    def notes(self) -> tuple[str, ...]:
        """What the counters cannot tell."""
        if "store_sectors" not in self.logs:
            return ("without stores only products of N and K are told: layers that share one cannot be told apart",)
        if len(self.logs) == 1:
            return ("stores alone tell N, not K: any layer of that width fits; count loads or FMA instructions too",)
        return ()

    def _fitting(self, widths: Iterable[tuple[int, int, tuple[str, ...]]]) -> list[LayerFit]:
        free = sum(len(values) - 1 for values in self.logs.values())
        near = NEAR * (1 + NEAR_FEW / free) if self.spread > LEAST_SPREAD else NEAR
        limit = _allowed(self.logs, self.spread) + near
        results = [
            fit
            for width in widths
            if (fit := self._best(*width)) is not None
            and fit.misfit <= limit
            and _farthest(self.logs, fit) <= MOST_SPREAD
        ]
        return sorted(results, key=lambda fit: fit.misfit)

    def _best(self, n: int, k: int, layers: tuple[str, ...]) -> LayerFit | None:
        """With the value size and tile that fit best; None where no tile has the grids."""
        spec = "load_sectors" in self.logs or self.by_grid
        tiles = [tile for tile in self.tiles if not self.by_grid or self._has_grids(n, tile)] if spec else [None]
        fits = (
            LayerFit(n, k, size, tile, _misfit(self.logs, self.spread, n, k, size, tile), layers)
            for size in self.sizes
            for tile in tiles
        )
        return min(fits, key=lambda fit: (fit.misfit, fit.tile_side), default=None)

    def _has_grids(self, n: int, tile: Tile) -> bool:
        across = ceil_div(n, tile.bn)
        return all(ceil_div(sample.tokens, tile.bm) * across == sample.blocks for sample in self.samples)


def _per_token(samples: Sequence[Sample]) -> dict[str, list[float]]:
    """Logarithms of each counter over the tokens, of counters that are there for all lengths."""
    result = {}
    for name in COUNTERS:
        values = [sample.counters[name] or 0.0 for sample in samples]
        if all(0 < value < float("inf") for value in values):
            result[name] = [log(value / sample.tokens) for value, sample in zip(values, samples, strict=True)]
    return result


def _spread(logs: Iterable[Sequence[float]]) -> float:
    """Standard deviation of one counter, pooled over the counters; each has a mean of its own."""
    total, free = 0.0, 0
    for values in logs:
        middle = sum(values) / len(values)
        total += sum((value - middle) ** 2 for value in values)
        free += len(values) - 1
    return max(LEAST_SPREAD, sqrt(total / free))


def _allowed(logs: Mapping[str, Sequence[float]], spread: float) -> float:
    """The least sum of squares that any candidate can have: each counter at its own mean."""
    return sum(
        sum((value - sum(values) / len(values)) ** 2 for value in values) / spread**2 for values in logs.values()
    )


def _farthest(logs: Mapping[str, Sequence[float]], fit: LayerFit) -> float:
    """How far the mean of a counter lies off what the layer would have, relative, the farthest one."""
    expected = _expected(fit.n, fit.k, fit.value_bytes, fit.tile)
    far = (abs(sum(values) / len(values) - expected[name]) for name, values in logs.items() if name in expected)
    return expm1(min(700.0, max(far, default=0.0)))


def _expected(n: int, k: int, size: int, tile: Tile | None) -> dict[str, float]:
    """Logarithms of what a layer counts a token; of loads only where there is a tile."""
    result = {"store_sectors": log(n * size / SECTOR_BYTES), "fma_instructions": log(n * k / WARP)}
    return result | ({"load_sectors": log(2 * n * k * size / (SECTOR_BYTES * _side(tile)))} if tile else {})


def _misfit(logs: Mapping[str, Sequence[float]], spread: float, n: int, k: int, size: int, tile: Tile | None) -> float:
    expected = {"load_sectors": 0.0, **_expected(n, k, size, tile)}
    return sum(((value - expected[name]) / spread) ** 2 for name, values in logs.items() for value in values)


def _named_layers() -> dict[tuple[int, int], tuple[str, ...]]:
    """Widths of the layers of named models, a gated FFN's two halves also apart, with all names that have them."""
    result: dict[tuple[int, int], list[str]] = {}
    for model in model_names():
        shape = model_shape(model)
        if shape.gated:
            result.setdefault((shape.intermediate, shape.hidden), []).append(f"{model}:gate or up")
        for layer in model_layers(model):
            result.setdefault((layer.n, layer.k), []).append(f"{model}:{layer.name}")
    return {widths: tuple(names) for widths, names in result.items()}


def _integers(
    logs: Mapping[str, Sequence[float]], spread: float, sides: Sequence[float], sizes: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Multiples of `STEP` within four standard deviations of what the counters say, the nearest of each first."""
    mean = {name: sum(values) / len(values) for name, values in logs.items()}
    factor = exp(4 * spread / sqrt(len(next(iter(logs.values())))))
    seen: set[tuple[int, int]] = set()
    for size in sizes:
        n_free = exp(mean["store_sectors"]) * SECTOR_BYTES / size
        if "fma_instructions" in mean:
            products = [exp(mean["fma_instructions"]) * WARP]
        else:
            products = [exp(mean["load_sectors"]) * SECTOR_BYTES * side / (2 * size) for side in sides]
        for product in products:
            for n in _multiples(n_free / factor, n_free * factor):
                for k in _multiples(product / n / factor, product / n * factor):
                    if (n, k) not in seen and len(seen) < _MOST_INTEGERS:
                        seen.add((n, k))
                        yield n, k


def _multiples(low: float, high: float) -> list[int]:
    if not 0 < low < high < 2**40:
        return []
    results = [STEP * i for i in range(max(1, int(low // STEP)), int(high // STEP) + 2) if low <= STEP * i <= high]
    return sorted(results, key=lambda value: abs(value - sqrt(low * high)))[:40]

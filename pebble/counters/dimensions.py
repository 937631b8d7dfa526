"""The dimensions of a model's layer from counters of several sequence lengths.

A product of M tokens with a weight of N x K stores M N b / 32 sectors, loads 2 M N K b / (32 T) sectors by square tiles
of side T, and takes M N K / 32 fp32 FMA instructions of a warp (without tensor cores). Each counter, divided by what is
known, is one of the unknown products N, N K, N K / T times noise; logarithms make the noise additive, and its spread is
what the lengths disagree by. A candidate fits as well as the least sum of squared, weighted residuals over the value
sizes and tile sides that the counters leave open. What fits nearly as well as the best is listed: if that is more than
one pair of dimensions, the answer is ambiguous and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import NamedTuple

from pebble.counters.quantities import SECTOR_BYTES
from pebble.counters.shapes import VALUE_BYTES, WARP
from pebble.errors import InputError
from pebble.workloads.named import model_layers, model_names, model_shape

COUNTERS = ("store_sectors", "load_sectors", "fma_instructions")
TILE_SIDES = (16, 32, 64, 128, 192, 256)
LEAST_SPREAD = 0.005  # no counter is trusted beyond this
# The sum of squares beyond the least possible at which a candidate is refused, at a level of one in a thousand: of
# chi-square for three counters where the noise is known, more where it is estimated from few lengths (F distribution).
NEAR, NEAR_FEW = 16.0, 14.0
STEP = 128  # integer candidates are multiples of it
_MOST_CANDIDATES = 8
_MOST_INTEGERS = 400


class Sample(NamedTuple):
    """Counters of one sequence length; None where one was not taken."""

    tokens: int
    store_sectors: float | None = None
    load_sectors: float | None = None
    fma_instructions: float | None = None


@dataclass(frozen=True)
class LayerFit:
    """A layer that fits the counters.

    Attributes
    ----------
    n, k : int
        Output and input width, in values.
    value_bytes, tile_side : int
        With which it fits best; a tile side of 0 where no loads were counted.
    misfit : float
        Sum of squared residuals, in standard deviations.
    layers : tuple of str
        ``MODEL:LAYER`` names that have these widths; empty for a candidate of integers.
    """

    n: int
    k: int
    value_bytes: int
    tile_side: int
    misfit: float
    layers: tuple[str, ...] = ()


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
    """

    samples: tuple[Sample, ...]
    spread: float
    named: tuple[LayerFit, ...]
    integers: tuple[LayerFit, ...]
    integers_fitting: int
    notes: tuple[str, ...]

    @property
    def best(self) -> LayerFit | None:
        """The named layer that fits best, else the best of integers."""
        return next(iter((*self.named, *self.integers)), None)

    @property
    def ambiguous(self) -> bool:
        """More than one pair of dimensions is left: among named models where any fits, else among integers."""
        return len({(fit.n, fit.k) for fit in self.named}) > 1 if self.named else self.integers_fitting != 1

    @property
    def models(self) -> tuple[tuple[str, int, int], ...]:
        """Named models of the best fit, with their hidden and intermediate width."""
        if not self.named:
            return ()
        names = dict.fromkeys(layer.partition(":")[0] for layer in self.named[0].layers)
        return tuple((name, model_shape(name).hidden, model_shape(name).intermediate) for name in names)


def recover(samples: Sequence[Sample], tile_side: int | None = None, value_bytes: int | None = None) -> Dimensions:
    """The widths N and K of a layer from counters of several sequence lengths.

    Parameters
    ----------
    samples : sequence of Sample
        Two lengths or more, one kernel: the product of ``tokens`` rows with one weight.
    tile_side : int, optional
        Harmonic mean of the sides of the block tile, where known.
    value_bytes : int, optional
        Bytes of a value, where known.

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
    spread = _spread(logs.values())
    free = sum(len(values) - 1 for values in logs.values())
    near = NEAR * (1 + NEAR_FEW / free) if spread > LEAST_SPREAD else NEAR
    sides = (tile_side,) if tile_side else TILE_SIDES
    sizes = (value_bytes,) if value_bytes else VALUE_BYTES

    def fit(n: int, k: int, layers: tuple[str, ...] = ()) -> LayerFit:
        return min(
            (
                LayerFit(n, k, size, side, _misfit(logs, spread, n, k, size, side), layers)
                for size in sizes
                for side in (sides if "load_sectors" in logs else (0,))
            ),
            key=lambda one: (one.misfit, one.tile_side),
        )

    named = sorted((fit(n, k, names) for (n, k), names in _named_layers().items()), key=lambda one: one.misfit)
    limit = _allowed(logs, spread) + near
    notes = []
    fitting = [one for one in named if one.misfit <= limit]
    integers: list[LayerFit] = []
    if "store_sectors" in logs and len(logs) > 1:
        integers = sorted((fit(n, k) for n, k in _integers(logs, spread, sides, sizes)), key=lambda one: one.misfit)
        integers = [one for one in integers if one.misfit <= limit]
    elif "store_sectors" in logs:
        notes.append("stores alone tell N, not K: any layer of that width fits; count loads or FMA instructions too")
    else:
        notes.append("without stores only products of N and K are told: layers that share one cannot be told apart")
    return Dimensions(
        tuple(samples), spread, tuple(fitting), tuple(integers[:_MOST_CANDIDATES]), len(integers), tuple(notes)
    )


def _per_token(samples: Sequence[Sample]) -> dict[str, list[float]]:
    """Logarithms of each counter over the tokens, of counters that are there for all lengths."""
    found = {}
    for name in COUNTERS:
        values = [getattr(sample, name) for sample in samples]
        if all(value is not None and 0 < value < float("inf") for value in values):
            found[name] = [log(value / sample.tokens) for value, sample in zip(values, samples, strict=True)]
    return found


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


def _misfit(logs: Mapping[str, Sequence[float]], spread: float, n: int, k: int, size: int, side: int) -> float:
    expected = {
        "store_sectors": log(n * size / SECTOR_BYTES),
        "fma_instructions": log(n * k / WARP),
        "load_sectors": log(2 * n * k * size / (SECTOR_BYTES * side)) if side else 0.0,
    }
    return sum(((value - expected[name]) / spread) ** 2 for name, values in logs.items() for value in values)


def _named_layers() -> dict[tuple[int, int], tuple[str, ...]]:
    """Widths of the layers of named models, a gated FFN's two halves also apart, with all names that have them."""
    found: dict[tuple[int, int], list[str]] = {}
    for model in model_names():
        shape = model_shape(model)
        if shape.gated:
            found.setdefault((shape.intermediate, shape.hidden), []).append(f"{model}:gate or up")
        for layer in model_layers(model):
            found.setdefault((layer.n, layer.k), []).append(f"{model}:{layer.name}")
    return {widths: tuple(names) for widths, names in found.items()}


def _integers(
    logs: Mapping[str, Sequence[float]], spread: float, sides: Sequence[int], sizes: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Multiples of `STEP` within four standard deviations of what the counters say, the nearest of each first."""
    mean = {name: sum(values) / len(values) for name, values in logs.items()}
    wide = exp(4 * spread / sqrt(len(next(iter(logs.values())))))
    seen: set[tuple[int, int]] = set()
    for size in sizes:
        n_free = exp(mean["store_sectors"]) * SECTOR_BYTES / size
        if "fma_instructions" in mean:
            products = [exp(mean["fma_instructions"]) * WARP]
        else:
            products = [exp(mean["load_sectors"]) * SECTOR_BYTES * side / (2 * size) for side in sides]
        for product in products:
            for n in _multiples(n_free / wide, n_free * wide):
                for k in _multiples(product / n / wide, product / n * wide):
                    if (n, k) not in seen and len(seen) < _MOST_INTEGERS:
                        seen.add((n, k))
                        yield n, k


def _multiples(low: float, high: float) -> list[int]:
    if not 0 < low < high < 2**40:
        return []
    found = [STEP * i for i in range(max(1, int(low // STEP)), int(high // STEP) + 2) if low <= STEP * i <= high]
    return sorted(found, key=lambda value: abs(value - sqrt(low * high)))[:40]

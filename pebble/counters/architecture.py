"""A model's dimensions from the products of its layers.

A product of M tokens stores M N values and multiplies M N K times. With the bytes of a value the stores tell M N, and K
is the number of multiplications over it; without those, the reads of DRAM from an empty L2, each operand once, tell
(M + N) K. A layer says most of its widths twice: its width is K of queries, keys and values, K into the feed-forward
network, and N of both projections back; the inside of the network is N into it and K out of it. So M follows, and how
much the two disagree, and the launches of one product in the mean, says whether these are the products of a layer at
all: beyond `ALLOWED` no layer fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from math import ceil, exp, expm1, log
from statistics import median
from typing import NamedTuple

from pebble.counters.forward import ForwardPass, Product
from pebble.counters.names import Tile, library_tile, tile_of
from pebble.counters.quantities import SECTOR_BYTES
from pebble.counters.shapes import multiplications, stored_sectors, value_sizes
from pebble.counters.whole_widths import Counted, columns, whole_widths
from pebble.errors import InputError

ALLOWED = 0.05  # of widths that must be the same
_MOST_ROWS = 2.0**20
_STEP, _FINE = 1.01, 1.0002
_AS_GOOD = 1e-3  # of what readings disagree by
_BY = ("operations on tensor cores", "FMA instructions", "load sectors of tiles", "tensor pipe")
_PADDED = ("operations on tensor cores", "tensor pipe")  # which count the edges of tiles
_VOCABULARIES = range(4096, 1_000_000)
READS = "DRAM reads, each operand once"


class Reading(NamedTuple):
    """What the launches of one product say, their median."""

    stored_bytes: float
    products: float | None  #: M N K
    by: str
    read_bytes: float | None
    tile: Tile | None  #: by the name, where a block may have one
    blocks: int
    spread: float  #: how far a launch lies off the median, in the mean
    counted: Counted | None = None  #: the same where the library's tiles say what counters count beyond the values

    @property
    def tiled(self) -> float:
        """Values of all tiles of the grid; 0 where the name tells no tile."""
        return float(self.tile.bm * self.tile.bn * self.blocks) if self.tile else 0.0

    def has_grid(self, m: float, n: float, off: float) -> bool:
        """Whether the grid is a block a tile of M x N, which lie ``off`` either way."""
        return self.tile is not None and any(
            ceil(m * (1 - off) / down) * ceil(n * (1 - off) / across)
            <= self.blocks
            <= ceil(m * (1 + off) / down) * ceil(n * (1 + off) / across)
            for down, across in ((self.tile.bm, self.tile.bn), (self.tile.bn, self.tile.bm))
        )


@dataclass(frozen=True)
class Architecture:
    """Dimensions that the products of a layer have.

    Attributes
    ----------
    layers : int
    tokens : float
        Rows of the products.
    hidden, intermediate : float
        Width of the model, and of the inside of its feed-forward network.
    gated : bool
    query_width, key_width : float
        Values of a token's queries, and of its keys.
    vocabulary : float or None
        None where the report has no projection to one.
    input_bytes, output_bytes : int
        Of a value.
    off : float
        How much two readings of one width, or the launches of one product, disagree.
    by : tuple of str
        What the readings rest on.
    weights : float
        Of the layers' products and the projection to the vocabulary.
    grids : bool
        Whether every grid is a block a tile of these dimensions.
    """

    layers: int
    tokens: float
    hidden: float
    intermediate: float
    gated: bool
    query_width: float
    key_width: float
    vocabulary: float | None
    input_bytes: int
    output_bytes: int
    off: float
    by: tuple[str, ...]
    weights: float
    grids: bool


def architectures(found: ForwardPass, tokens: int | None = None) -> tuple[Architecture, ...]:
    """The dimensions that fit, the best first; where none does, the nearest alone, whose ``off`` says so.

    Parameters
    ----------
    found : ForwardPass
    tokens : int, optional
        Rows of the products, where known.

    Raises
    ------
    InputError
        Counters that are missing, or products that are not those of a layer by their number.
    """
    count = len(found.inputs), len(found.after)
    if count[0] > 3 or count[1] not in (3, 4):
        raise InputError(
            f"model: got {count[0]} products before the attention and {count[1]} after it in each layer, expected 1 to "
            "3 (queries, keys, values), and 3 or 4 (projection, then up and down, with a gate or without)."
        )
    roles = (*found.inputs, *found.after)
    sizes = [value_sizes(role[0].launch) for role in roles]
    results = []
    for read, wide in combinations(*(sorted({b for size in sizes for b in size[side]}) for side in (0, 1))):
        readings = [_read(role, read) for role in roles]
        head = [_read((single,), read) for single in found.head]
        exact = _exact(found.layers, readings, head, count[0], (read, wide), tokens)
        if exact is not None and exact.off <= ALLOWED:
            results.append(exact)
            continue
        for padded in (False, True) if any(r.tiled and r.by in _PADDED for r in readings) else (False,):
            solved = _Layer(readings, count[0], read, wide, padded)
            results += [solved.fit(found.layers, rows, head) for rows in solved.rows(tokens)]
    results.sort(key=lambda fit: fit.off)
    fitting = [fit for fit in results if fit.off <= ALLOWED]
    fitting = [fit for fit in fitting if fit.grids] or fitting  # blocks are exact, where one has a tile
    return tuple(_distinct(fitting)) or tuple(results[:1])


def _exact(
    layers: int, readings: Sequence[Reading], head: Sequence[Reading], inputs: int, sizes: tuple[int, int],
    rows: int | None,
) -> Architecture | None:  # fmt: skip
    """The dimensions as whole numbers, where the tiles of all products are known."""
    counted = [reading.counted for reading in readings if reading.counted is not None]
    if len(counted) < len(readings):
        return None
    found = whole_widths(counted[:inputs], counted[inputs:], sizes[1], rows)
    if found is None:
        return None
    vocabulary = None
    for product in (reading.counted for reading in head if reading.counted is not None):
        for m, size in combinations(dict.fromkeys((found.rows, 1)), dict.fromkeys((sizes[1], 4, 2))):
            n = columns(product, m, found.hidden, size)
            if n is not None and n in _VOCABULARIES and abs(product.depth(m, n) / found.hidden - 1) <= _AS_GOOD:
                vocabulary = float(n)
    keys = (sum(found.inputs) - found.query) / 2
    inner = found.hidden * (sum(found.inputs) + found.query + sum(found.ups) + found.inside)
    return Architecture(
        layers, found.rows, found.hidden, found.inside, found.gated, found.query, keys, vocabulary, *sizes,
        max(*found.off, *(reading.spread for reading in readings), 0.0 if keys > 0 else 1.0),
        tuple(dict.fromkeys(reading.by for reading in readings)),
        layers * inner + (vocabulary or 0) * found.hidden, True,
    )  # fmt: skip


def _distinct(fits: Sequence[Architecture]) -> Iterator[Architecture]:
    """Without those that say the same, or lie beside a better one."""
    kept: list[Architecture] = []
    for fit in fits:
        if not any(_near(fit.hidden, other.hidden) and _near(fit.tokens, other.tokens) for other in kept):
            kept.append(fit)
            yield fit


def _near(single: float, other: float) -> bool:
    return abs(log(single / other)) <= 2 * ALLOWED


def _read(role: Sequence[Product], input_bytes: int) -> Reading:
    """The median of a product over the layers."""
    first = role[0].launch
    stored = [item[0] for product in role if (item := stored_sectors(product.stores)) is not None and item[0] > 0]
    if len(stored) < len(role):
        raise InputError(
            f"model: {first.ident} {first.short_name}: the report does not say what it stored; profile it with "
            "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum and lts__t_sectors_srcunit_tex_op_write.sum."
        )
    tile = tile_of(first.kernel)
    counted: dict[str, list[float]] = {}
    for product in role:
        for value, by, _ in multiplications(product.launch, tile, (input_bytes,)):
            counted.setdefault(by, []).extend([value] * (value > 0))
    by = next((name for name in _BY if len(counted.get(name, ())) == len(role)), "")
    reads = [amount for product in role if (amount := product.launch.value("dram_read_bytes") or 0.0) > 0]
    read_bytes = median(reads) if len(reads) == len(role) else None
    if not by and read_bytes is None:
        raise InputError(
            f"model: {first.ident} {first.short_name}: nothing says how much it multiplies; profile it with "
            "sm__ops_path_tensor_src_bf16_dst_fp32.sum (of its data type) or dram__bytes_read.sum."
        )
    alone = role[0].reduced_by is None
    slices = first.grid[2] if alone and first.grid is not None else 1  # along K: each stores the result
    sectors, products = median(stored) / slices, median(counted[by]) if by else None
    spread = max(_spread(stored), _spread(counted[by] if by else reads))
    library, by_tma = library_tile(first.kernel), alone and not first.value("l1_store_sectors")
    exact = None
    if library is not None and products is not None and by == _BY[0]:
        exact = Counted(sectors, products, library, library if by_tma else None)
    tile = tile if alone and slices == 1 and first.blocks else None
    values = sectors * SECTOR_BYTES
    return Reading(values, products, by or READS, read_bytes, tile, first.blocks or 0, spread, exact)


def _spread(values: Sequence[float]) -> float:
    return sum(abs(value / median(values) - 1) for value in values) / len(values)


@dataclass(frozen=True)
class _Layer:
    """The readings of one layer's products, and how to take them."""

    readings: Sequence[Reading]
    inputs: int  # products before the attention
    input_bytes: int
    output_bytes: int
    padded: bool  # tiles are counted as if they were full

    def _values(self, reading: Reading) -> float:
        return reading.stored_bytes / self.output_bytes

    def _depth(self, reading: Reading, rows: float) -> float:
        """K."""
        values = self._values(reading)
        if reading.products is None:
            assert reading.read_bytes is not None
            return reading.read_bytes / self.input_bytes / (rows + values / rows)
        whole = self.padded and reading.by in _PADDED and reading.tiled >= values
        return reading.products / (reading.tiled if whole else values)

    def rows(self, tokens: int | None) -> list[float]:
        """The numbers of tokens for which the widths agree best."""
        if tokens is not None:
            return [float(tokens)]
        at, points = 1.0, []
        while at < _MOST_ROWS:
            points.append(at)
            at *= _STEP
        off = [self._off(point) for point in points]
        lows = [
            i
            for i in range(len(points))
            if off[i] <= min(off[max(0, i - 1)], off[min(len(off) - 1, i + 1)]) and off[i] <= 4 * ALLOWED
        ]
        lows = lows or [off.index(min(off))]
        return [self._finer(points[i]) for i in lows]

    def _finer(self, rows: float) -> float:
        near = [rows * _FINE**i for i in range(-60, 61)]
        best = min(near, key=self._off)
        exact = self._values(self.readings[self.inputs]) / self._hidden(best)
        off = self._off(best)
        rounder = (max(1.0, float(round(best / step) * step)) for step in (64, 8))
        for rows in rounder:  # where counters are not exact to a row
            if self._off(rows) <= 1.5 * off:
                return rows
        whole = (max(1.0, round(exact)), max(1.0, round(best)))  # of equals the one that the stores tell
        return next((rows for rows in whole if self._off(rows) <= self._off(best) + _AS_GOOD), best)

    def _widths(self, rows: float) -> tuple[list[float], list[float], bool]:
        """Readings of the width of the model, of the inside of the network, and whether it is gated."""
        n = [self._values(reading) / rows for reading in self.readings]
        k = [self._depth(reading, rows) for reading in self.readings]
        at = self.inputs
        hidden = [*k[:at], n[at], *k[at + 1 : -1], n[-1]]
        inside = [k[-1]]
        if len(n) - at == 4:
            return hidden, [*inside, *n[at + 1 : -1]], True
        gated = n[at + 1] / k[-1] > 2**0.5
        return hidden, [*inside, n[at + 1] / (2 if gated else 1)], gated

    def _hidden(self, rows: float) -> float:
        hidden = self._widths(rows)[0]
        return exp(sum(map(log, hidden)) / len(hidden))

    def _off(self, rows: float) -> float:
        hidden, inside, _ = self._widths(rows)
        return max(max(values) / min(values) - 1 for values in (hidden, inside))

    def fit(self, layers: int, rows: float, head: Sequence[Reading]) -> Architecture:
        """The dimensions for so many tokens."""
        hidden, inside, gated = self._widths(rows)
        width, intermediate = median(hidden), median(inside)
        n = [self._values(reading) / rows for reading in self.readings]
        query = self._depth(self.readings[self.inputs], rows)
        keys = (sum(n[: self.inputs]) - query) / 2
        vocabulary = self._vocabulary(rows, width, head)
        inner = sum(n[: self.inputs]) * width + query * width + (3 if gated else 2) * width * intermediate
        weights = layers * inner + (vocabulary or 0) * width
        by = tuple(dict.fromkeys(reading.by for reading in self.readings))
        off = max(self._off(rows), *(reading.spread for reading in self.readings), 0.0 if keys > 0 else 1.0)
        if self.inputs == 3:  # keys and values are as wide as each other, queries as the projection takes
            off = max(off, expm1(abs(log(n[1] / n[2]))), expm1(abs(log(n[0] / query))))
        return Architecture(
            layers, rows, width, intermediate, gated, query, keys, vocabulary, self.input_bytes, self.output_bytes,
            off, by, weights, self._has_grids(rows, n, off),
        )  # fmt: skip

    def _has_grids(self, rows: float, n: Sequence[float], off: float) -> bool:
        near = max(off, _AS_GOOD)
        return all(
            reading.has_grid(rows, width, near)
            # what counts whole tiles is no more than the values only where each is full
            and (self.padded or reading.by not in _PADDED or reading.tiled <= (1 + near) * self._values(reading))
            for reading, width in zip(self.readings, n, strict=True)
        )

    def _vocabulary(self, rows: float, width: float, head: Sequence[Reading]) -> float | None:
        """Of all rows, else of the last one; by results of either width, where K tells which."""
        results = []
        for reading in head:
            for size in dict.fromkeys((self.output_bytes, 4, 2)):
                values = reading.stored_bytes / size
                for taken in (rows, 1.0):
                    entries = values / taken
                    off = self._off_width(reading, values, taken, width)
                    if round(entries) in _VOCABULARIES and off <= ALLOWED:
                        results.append((off, entries))
            entries = 0.0 if reading.products is None else reading.products / rows / width
            if not results and round(entries) in _VOCABULARIES and reading.has_grid(rows, entries, 2 * _AS_GOOD):
                results.append((ALLOWED, entries))  # rows that begin inside a sector: no stores tell it, tiles do
        return min(results, key=lambda item: item[0])[1] if results else None

    def _off_width(self, reading: Reading, values: float, rows: float, width: float) -> float:
        """How far K of a product lies off the width; tiles may be counted as if they were full."""
        if reading.products is None:
            assert reading.read_bytes is not None
            depths = [reading.read_bytes / self.input_bytes / (rows + values / rows)]
        else:
            padded = reading.by in _PADDED and reading.has_grid(rows, values / rows, _AS_GOOD)
            whole = [reading.tiled] * padded
            depths = [reading.products / area for area in (values, *whole)]
        return min(abs(log(depth / width)) for depth in depths)

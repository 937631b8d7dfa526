"""The shape of a GEMM from its launch: tiles from name and grid, M N from stores, K from loads, FMAs, the tensor pipe.

Nothing is guessed: each reading says what it rests on, and where several fit, all are listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt

from pebble.counters.datatypes import BYTES, TENSOR_AT_WORK, data_type, tensor_operations
from pebble.counters.names import Tile, tile_of, value_bytes
from pebble.counters.profile import MeasuredLaunch
from pebble.counters.quantities import SECTOR_BYTES
from pebble.counters.stores import VALUE_BYTES, StoreVerdict, read_stores

WARP = 32
UNTOLD_BYTES = (1, 2, 4)  # bytes of a value where nothing says them; fp64 says itself, by its name or its instructions
_DOUBLE = (8,)
_K_STEPS = ((64, 1.0), (32, 0.6), (16, 0.3), (8, 1e-3))  # K is a multiple of one; the finer, the nearer it must be
_NEAR = 0.003  # of loads, which barriers and tails add a little to
_NEAR_TENSOR, _NEAR_FMA = 0.01, 0.02
_LIBRARY = re.compile("nvjet|xmma|cutlass|ampere_|hopper_|volta_|turing_|sm[0-9]+_")  # which swizzle their grids
_WRITTEN_TWICE = 1.5  # L2 sectors a sector stored where there are two partitions: half are passed to the other one
_TWO_PARTITIONS = ("8.0", "9.0", "10.0")  # taken where the report does not count what one asks of the other
_FACTORS = (1, 2, 4)
MOST_READINGS = 12
# products of bf16 a cycle and SM on the tensor pipe, by compute capability (dense rate / SMs / clock / 2)
_TENSOR_RATE = {"8.0": 1024, "8.6": 512, "8.7": 512, "8.9": 512, "9.0": 2048, "10.0": 4096}


@dataclass(frozen=True)
class ShapeReading:
    """One shape of a GEMM that fits a launch.

    Attributes
    ----------
    m, n : int
        Rows and columns of the result; which is which cannot be told where M and N may be exchanged.
    k : int
        0 where nothing tells it.
    tile : Tile
        Block tile.
    out_bytes : int
        Bytes of a stored value.
    factor : int
        How often each stored sector is touched.
    rests_on : tuple of str
        What says so.
    """

    m: int
    n: int
    k: int
    tile: Tile
    out_bytes: int
    factor: int
    rests_on: tuple[str, ...]

    @property
    def text(self) -> str:
        """In words."""
        shape = f"{self.m} x {self.n}" + (f" x {self.k}" if self.k else ", K unknown")
        return f"{shape}, tile {self.tile}, {self.out_bytes}-byte results ({'; '.join(self.rests_on)})"


def value_sizes(launch: MeasuredLaunch) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Bytes of an input and of an output value that a launch allows: by its name, else by the pipe that multiplies.

    Without tensor cores a product of 16-bit values is made of fp16 FMAs, one of fp32 values of fp32 FMAs, one of fp64
    values of fp64 FMAs; the tensor pipe says of itself whether it works in fp64.
    """
    inputs, outputs = value_bytes(launch.kernel)
    if outputs != UNTOLD_BYTES:
        return inputs, outputs
    sizes = {BYTES.get(kind, 0) for kind in data_type(launch).types}
    untold = launch.value("half_fma_instructions") is None  # values of 16 bits may be multiplied in fp32
    if len(sizes) != 1 or 0 in sizes or (sizes == {4} and untold):
        return inputs, outputs
    (size,) = sizes
    return (size,), {1: (1, 2, 4), 2: (2, 4)}.get(size, (size,))


def multiply_adds(launch: MeasuredLaunch) -> float | None:
    """FMA instructions of warps on the pipe that multiplies, where the report counts them."""
    return launch.value("double_fma_instructions" if value_sizes(launch)[0] == _DOUBLE else "fma_instructions")


def stores_of(launch: MeasuredLaunch, sectors: int, rows: int, cols: int) -> StoreVerdict:
    """What the stored sectors of a launch say of a result of so many rows and columns.

    By the data types that its name or its pipes say; where those do not fit or leave doubt, by all.
    """
    sizes = value_sizes(launch)[1]
    verdict = read_stores(sectors, rows, cols, sizes)
    if verdict.readings and not verdict.ambiguous:
        return verdict
    none_double = launch.value("double_fma_instructions") == 0 and not launch.value("double_tensor_percent")
    return read_stores(sectors, rows, cols, UNTOLD_BYTES if none_double else VALUE_BYTES, sizes)


def stored_sectors(launch: MeasuredLaunch) -> tuple[int, str] | None:
    """Sectors that the kernel stored, and how they are known; TMA stores pass the L1's counters by."""
    stored = launch.value("l1_store_sectors")
    if stored:
        return round(stored), "stored sectors"
    if by_sms := launch.value("l2_sm_write_sectors"):
        return round(by_sms), "sectors that SMs wrote to L2"
    written, fabric = launch.value("l2_write_sectors"), launch.value("l2_fabric_sectors")
    if not written or written > 2**52:
        return None
    twice = launch.compute_capability in _TWO_PARTITIONS if fabric is None else bool(fabric)
    return round(written / _WRITTEN_TWICE) if twice else round(written), "sectors written to L2"


def read_shapes(launch: MeasuredLaunch, rows: int | None = None, cols: int | None = None) -> tuple[ShapeReading, ...]:
    """The shapes of a GEMM that fit a launch, at most `MOST_READINGS`; empty where it says too little.

    Where K is told by several counters, shapes on which most of them agree are kept; where ``rows`` or ``cols`` of the
    result are known, those that have them.
    """
    stored, blocks = stored_sectors(launch), launch.blocks
    if stored is None or blocks is None or launch.grid is None or stored[0] > 2**52:
        return ()
    sectors, how = stored
    named = tile_of(launch.kernel)
    inputs, outputs = value_sizes(launch)
    result: dict[tuple[int, int, int], tuple[int, ShapeReading]] = {}
    for size in outputs:
        for factor in _factors(launch, size):
            values = sectors * SECTOR_BYTES // (size * factor)
            for tile, why in _tiles(named, values, blocks):
                for m, n, grid in _sides(launch, tile, values, exact=how == "stored sectors"):
                    if rows not in (None, m) or cols not in (None, n):
                        continue
                    rests = [
                        why,
                        grid,
                        f"{how} as {size}-byte values" + (f", each sector touched {factor} times" * (factor > 1)),
                    ]
                    sizes = inputs if len(inputs) < 3 else (size,)
                    for k, by in (_depths(launch, m, n, tile, sizes) or {0: []}).items():
                        rests_on = (*rests, f"K from {' and '.join(by)}") if by else tuple(rests)
                        result.setdefault((m, n, k), (len(by), ShapeReading(m, n, k, tile, size, factor, rests_on)))
    most = max((votes for votes, _ in result.values()), default=0)
    readings = [reading for votes, reading in result.values() if votes == most]
    usual = (2, 4, 1, 8) if (launch.value("tensor_percent") or 0) >= TENSOR_AT_WORK else (4, 2, 1, 8)
    readings.sort(key=lambda r: (r.factor, usual.index(r.out_bytes), max(r.m, r.n) / min(r.m, r.n)))
    return tuple(readings[:MOST_READINGS])


def _factors(launch: MeasuredLaunch, size: int) -> tuple[int, ...]:
    """How often each sector may be touched: more than once only where a request has more sectors than a full warp."""
    sectors, requests = launch.value("l1_store_sectors"), launch.value("l1_store_requests")
    if not sectors or not requests:
        return (1,)
    share = sectors / requests / size  # 32 lanes store `size` sectors; wider where vectors or gaps make it so
    return tuple(factor for factor in _FACTORS if factor <= share + 0.01) or (1,)


def _tiles(named: Tile | None, values: int, blocks: int) -> Iterator[tuple[Tile, str]]:
    """The tile that the name says; else those that the values of a block and the shape of a block allow."""
    if named is not None:
        yield named, "tile in the name"
        return
    each, rest = divmod(values, blocks)
    if rest or each < 64:
        return
    side = isqrt(each)
    if side * side == each:
        yield Tile(side, side), f"{each:,} values a block"
        return
    half = isqrt(each // 2)
    if half * half * 2 == each:
        yield Tile(2 * half, half), f"{each:,} values a block"
        yield Tile(half, 2 * half), f"{each:,} values a block"


def _sides(launch: MeasuredLaunch, tile: Tile, values: int, exact: bool) -> Iterator[tuple[int, int, str]]:
    """M and N whose product is that of the stores.

    A grid of two sides says them, unless a library may have swizzled it; else all ways to lay out so many tiles, the
    most nearly square first.
    """
    area = tile.bm * tile.bn
    tiles = round(values / area)
    if tiles < 1 or (exact and values % area) or abs(values / area - tiles) > 0.02 * tiles:
        return
    assert launch.grid is not None
    wide = [side for side in launch.grid if side > 1]
    if len(wide) == 2 and wide[0] * wide[1] == tiles and not _LIBRARY.search(launch.kernel):
        for across, down in dict.fromkeys((tuple(wide), (wide[1], wide[0]))):
            yield across * tile.bm, down * tile.bn, f"grid of {wide[0]} x {wide[1]}"
        return
    for rows in range(isqrt(tiles), 0, -1):
        if tiles % rows == 0:
            for across, down in dict.fromkeys(((rows, tiles // rows), (tiles // rows, rows))):
                yield across * tile.bm, down * tile.bn, f"{tiles:,} tiles"


def multiplications(
    launch: MeasuredLaunch, tile: Tile | None, sizes: tuple[int, ...]
) -> list[tuple[float, str, float]]:
    """M N K of a product as each counter tells it, what tells, and how near it must come.

    Operations on tensor cores, load sectors by tiles (with none, and without tiles), FMA instructions, and the tensor
    pipe's cycles at its rate; the tiles' edges are counted as if they were full.
    """
    results: list[tuple[float, str, float]] = []
    operations = sum(tensor_operations(launch).values())
    if operations:
        results.append((operations / 2, "operations on tensor cores", _NEAR))
    loads = launch.value("l1_load_sectors")
    fma, tensor = multiply_adds(launch), launch.value("tensor_percent") or 0.0
    for size in sizes if loads else ():
        assert loads is not None
        if tile is not None:
            by_tiles = loads * SECTOR_BYTES / size / (1 / tile.bm + 1 / tile.bn)
            results.append((by_tiles, "load sectors of tiles", _NEAR))
        if tensor < TENSOR_AT_WORK and not operations:
            results.append((loads * WARP / (1 + size), "load sectors, untiled", _NEAR))
    if fma and tensor < TENSOR_AT_WORK and not operations:
        results.append((fma * WARP, "FMA instructions", _NEAR_FMA))
    cycles, rate = launch.value("sm_cycles"), _TENSOR_RATE.get(launch.compute_capability)
    if tensor >= TENSOR_AT_WORK and cycles and rate:
        results += [
            (tensor / 100 * cycles * rate * 2 / size, "tensor pipe", _NEAR_TENSOR)
            for size in sizes
            if size not in _DOUBLE
        ]
    return results


def _depths(launch: MeasuredLaunch, m: int, n: int, tile: Tile, sizes: tuple[int, ...]) -> dict[int, list[str]]:
    """K as the counters tell it; those that would need more reads than there were are left out."""
    read = launch.value("dram_read_bytes")
    capacity = None if read is None else 1.05 * read + (launch.value("l2_bytes") or 0.0)
    result: dict[int, list[str]] = {}
    for products, by, near in multiplications(launch, tile, sizes):
        k = _snapped(products / (m * n), near)
        if k and (capacity is None or min(sizes) * k * (m + n) <= capacity):
            result.setdefault(k, []).append(by)
    return result


def _snapped(value: float, near: float) -> int:
    """The nearest multiple of a step of K, the coarsest that is near enough; 0 where none is."""
    for step, share in _K_STEPS:
        k = round(value / step) * step if value < 2**40 else 0
        if k and abs(value - k) <= near * share * k:
            return k
    return 0

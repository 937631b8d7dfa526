"""Independent matrix products in one kernel: the tiles of one group after the other, in waves that span groups.

This is the persistent grouped kernel of CUTLASS and Triton: the output tiles of all groups have one numbering, group by
group and inside a group in the chosen order, and P blocks take them as they come. A wave may end one group and begin
the next; every group has a B of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pebble.schedules.kernel import Product, TableKernel, Work
from pebble.schedules.orders import OrderParams, TileOrder
from pebble.schedules.tables.table import Blocks, Launch
from pebble.schedules.tile import Tiles, TileShape, check_grid, product_bytes
from pebble.traces import READ, WRITE, Layout
from pebble.traces.layout import Strided
from pebble.traces.program import Group, Phase, Steps, Walk
from pebble.traces.touches import check_length
from pebble.units import ceil_div
from pebble.workloads import GroupedGemm


class GroupedKernel(TableKernel):
    """The layout of a group of products under one tile, and its trace.

    Raises
    ------
    InputError
        More tiles than an order may have or than fit in memory, or 4e9 touches of tiles.
    """

    shape = GroupedGemm
    template = "grouped"

    def __init__(self, grouped: GroupedGemm, tile: TileShape) -> None:
        self.grouped, self.tile = grouped, tile
        sizes, cols = Counter(grouped.rows), ceil_div(grouped.n, tile.bn)
        for rows in sizes:
            check_grid(ceil_div(rows, tile.bm), cols)
        self.depth = ceil_div(grouped.k, tile.bk)
        tiles = cols * sum(ceil_div(rows, tile.bm) for rows in grouped.rows)
        check_length(tiles * (2 * self.depth + 1 + grouped.accumulate))
        self.layout = Layout()
        add, n, k, width = self.layout.add, grouped.n, grouped.k, grouped.in_bytes
        # groups of one size are copies of one shape
        self.a = {m: add("A", m, k, tile.bm, tile.bk, width, copies=count) for m, count in sizes.items()}
        self.b = add("B", k, n, tile.bk, tile.bn, width, copies=len(grouped.rows))
        self.c = {m: add("C", m, n, tile.bm, tile.bn, grouped.out_bytes, copies=count) for m, count in sizes.items()}
        heights = np.array([ceil_div(rows, tile.bm) for rows in grouped.rows], np.int64)
        self._first_row = np.cumsum(heights) - heights  # of each group, among the tile rows of all groups
        self.grid = (int(heights.sum()), cols)  #: tile rows of all groups, one after the other; tile columns
        self._group = np.repeat(np.arange(len(heights)), heights)
        seen: Counter[int] = Counter()
        firsts = []
        for m in grouped.rows:
            down = np.arange(self.c[m].grid[0], dtype=np.int64)
            firsts.append([operand[m].ids(down, 0, seen[m]) for operand in (self.a, self.c)])
            seen[m] += 1
        self._a, self._c = (np.concatenate(first) for first in zip(*firsts, strict=True))  # first tile of each tile row

    @classmethod
    def of(cls, workload: GroupedGemm, tile: TileShape, residual: bool = False) -> Self:
        return cls(workload, tile)

    @classmethod
    def work(cls, workload: GroupedGemm, tile: TileShape) -> list[Work]:
        parts = [
            (Work.product(rows, workload.n, workload.k, tile, workload.in_bytes), count)
            for rows, count in Counter(workload.rows).items()
        ]
        blocks = sum(count * part.blocks for part, count in parts)
        traffic = sum(count * part.bytes for part, count in parts)
        return [replace(parts[0][0], blocks=blocks, bytes=traffic)]

    @classmethod
    def extents(cls, workload: GroupedGemm) -> tuple[int, int, int]:
        return max(workload.rows), workload.n, workload.k

    @classmethod
    def exported_shape(cls, workload: GroupedGemm) -> Mapping[str, object]:
        return {**super().exported_shape(workload), "rows": list(workload.rows), "accumulate": workload.accumulate}

    @classmethod
    def operator_key(cls, workload: GroupedGemm) -> tuple[object, ...]:
        return () if workload.accumulate else ("grouped", tuple(workload.rows), workload.n, workload.k)

    @property
    def products(self) -> tuple[Product, ...]:
        return (Product.even("C", self.grid, self.depth),)

    def named_blocks(self, schedule: TileOrder, launch: Launch) -> list[Blocks]:
        return [Blocks(self.tiles(schedule, launch.order_params), self.depth)]

    def walks(self, order: TileOrder, params: OrderParams | None = None) -> dict[int, Tiles]:
        """The tiles of a group of each size, in order."""
        return {m: order.tiles(*c.grid, params or OrderParams()) for m, c in self.c.items()}

    def tiles(self, order: TileOrder, params: OrderParams | None = None) -> Tiles:
        """The tiles of `grid`: one group after the other, inside a group in order."""
        walks = self.walks(order, params)
        parts = [walks[m] + np.array([first, 0]) for m, first in zip(self.grouped.rows, self._first_row, strict=True)]
        return np.concatenate(parts).astype(np.int32)

    def blocks_of(self, product: int, tiles: Tiles, walk: Walk, adds: NDArray[np.bool_]) -> Phase:
        rows, cols = tiles.T.astype(np.int64)
        reads = self.grouped.accumulate
        adds = adds & (not reads)
        c = self._c[rows] + cols
        left = Strided(self._a[rows].astype(np.int32), 1)
        results = [*[np.where(adds, c, -1)] * bool(adds.any()), *[c] * (reads + 1)]
        return Phase(
            Steps((left, self.b.down(cols, self._group[rows])), (READ, READ), walk),
            epilogue=Steps(results, (READ,) * (len(results) - 1) + (WRITE,)),
            flops=2 * self.tile.bm * self.tile.bn * self.tile.bk,
            shared_bytes=product_bytes(self.tile, self.grouped.in_bytes),
            cut_rest="k",
        )

    def group(self, order: TileOrder, wave_blocks: int, params: OrderParams | None = None) -> Group:
        """All products in one phase on ``wave_blocks`` block slots."""
        tiles = self.tiles(order, params)
        phase = self.blocks_of(0, tiles, Walk(0, self.depth), np.zeros(len(tiles), np.bool_))
        return Group([phase], wave_blocks, order.sawtooth)

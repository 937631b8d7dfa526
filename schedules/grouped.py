"""Independent matrix products in one kernel: the tiles of one group after the other, in waves that span groups.

This is the persistent grouped kernel of CUTLASS and Triton: the output tiles of all groups have one numbering, group by
group and inside a group in the chosen order, and P blocks take them as they come. A wave may end one group and begin
the next; every group has a B of its own.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from pebble.schedules.grid import Tiles, check_grid
from pebble.schedules.orders import OrderParams, TileOrder
from pebble.schedules.tile import TileShape, product_bytes
from pebble.traces import READ, WRITE, Layout
from pebble.traces.layout import Strided
from pebble.traces.program import Group, Phase, Steps, check_length
from pebble.traces.walk import Walk
from pebble.units import ceil_div
from pebble.workloads import GroupedGemm


class GroupedKernel:
    """The layout of a group of products under one tile, and its trace.

    Raises
    ------
    InputError
        More tiles than an order may have or than fit in memory, or 4e9 touches of tiles.
    """

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

    def walks(self, order: TileOrder, params: OrderParams | None = None) -> dict[int, Tiles]:
        """The tiles of a group of each size, in order."""
        return {m: order.tiles(*c.grid, params or OrderParams()) for m, c in self.c.items()}

    def group(self, order: TileOrder, wave_blocks: int, params: OrderParams | None = None) -> Group:
        """All products in one phase on ``wave_blocks`` block slots."""
        walks, seen = self.walks(order, params), dict.fromkeys(self.c, 0)
        bases = []
        for group, m in enumerate(self.grouped.rows):
            rows, cols = walks[m].T.astype(np.int64)
            copy = seen[m]
            seen[m] += 1
            a, b, c = self.a[m].along(rows, copy).base, self.b.down(cols, group).base, self.c[m].ids(rows, cols, copy)
            bases.append((a, b, c))
        a, b, c = (np.concatenate(base) for base in zip(*bases, strict=True))
        reads = self.grouped.accumulate
        steps = Steps((Strided(a, 1), Strided(b, self.b.grid[1])), (READ, READ), Walk(0, self.depth))
        results = Steps([c] * (reads + 1), (READ,) * reads + (WRITE,))
        flops = 2 * self.tile.bm * self.tile.bn * self.tile.bk
        shared = product_bytes(self.tile, self.grouped.in_bytes)
        return Group([Phase(steps, epilogue=results, flops=flops, shared_bytes=shared)], wave_blocks, order.sawtooth)

"""A tiled GEMM as a program of block steps, in lock step or under an execution model.

In lock step output tiles are taken in traversal order, P at a time (a wave). Inside a wave each block advances one
k-tile per step; in a step the blocks, in issue order, each touch their A tile and then their B tile. After the last
step the wave's C tiles are written in issue order (C += AB reads each just before it is written). The next wave starts
when all have finished. With ``sawtooth`` every second wave walks k backwards.

Where k is cut (split-K, Stream-K) a block that does not own its tile writes a partial tile in fp32; the owner, or a
second kernel, reads the partial tiles when the last of them is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pebble.schedules.execution import Execution, StepSegments, run_segments
from pebble.schedules.kernel import Product, TableKernel, Work
from pebble.schedules.orders import OrderParams, TileOrder
from pebble.schedules.tables.table import Blocks, Launch
from pebble.schedules.tile import Tiles, TileShape, check_grid, product_bytes
from pebble.system.parallel import check_memory
from pebble.traces import READ, WRITE, Layout, LockstepGemm
from pebble.traces.layout import Index
from pebble.traces.program import Group, Phase, Program, StepClock, Steps, Walk
from pebble.traces.touches import TICKS, check_length
from pebble.units import ceil_div
from pebble.workloads import Gemm

_STEP_BYTES = 40
PARTIALS = "partials"  # their operand in the layout
_PARTIAL_BYTES = 4


def cluster_tiles(
    order: TileOrder, rows: int, cols: int, params: OrderParams, cluster: tuple[int, int]
) -> tuple[Tiles, Index]:
    """Tiles cluster by cluster, the order walking over clusters; and the cluster of each tile."""
    m, n = cluster
    if cluster == (1, 1):
        tiles = order.tiles(rows, cols, params)
        return tiles, np.arange(len(tiles), dtype=np.int64)
    corners = order.tiles(ceil_div(rows, m), ceil_div(cols, n), params).astype(np.int64) * (m, n)
    inside = np.array([(i, j) for i in range(m) for j in range(n)], np.int64)
    every = (corners[:, None] + inside).reshape(-1, 2)
    there = (every[:, 0] < rows) & (every[:, 1] < cols)
    which = np.repeat(np.arange(len(corners), dtype=np.int64), m * n)
    return np.ascontiguousarray(every[there].astype(np.int32)), which[there]


class GemmKernel(TableKernel):
    """The layout of one GEMM under one tile, and the ways to run it.

    Raises
    ------
    InputError
        More tiles than an order may have or than fit in memory, or 4e9 touches of tiles.
    """

    shape = Gemm
    template = "gemm"

    def __init__(self, gemm: Gemm, tile: TileShape) -> None:
        self.gemm = gemm
        self.tile = tile = tile.cut_to(gemm)
        check_grid(ceil_div(gemm.m, tile.bm), ceil_div(gemm.n, tile.bn))
        self.layout = Layout()
        add = self.layout.add
        self.a = add("A", gemm.m, gemm.k, tile.bm, tile.bk, gemm.in_bytes)
        self.b = add("B", gemm.k, gemm.n, tile.bk, tile.bn, gemm.in_bytes)
        self.c = add("C", gemm.m, gemm.n, tile.bm, tile.bn, gemm.out_bytes)
        self.grid, self.depth = self.c.grid, self.a.grid[1]
        check_length(self.c.tiles * (2 * self.depth + 1 + gemm.accumulate))

    @classmethod
    def of(cls, workload: Gemm, tile: TileShape, residual: bool = False) -> Self:
        return cls(workload, tile)

    @classmethod
    def work(cls, workload: Gemm, tile: TileShape) -> list[Work]:
        return [Work.product(workload.m, workload.n, workload.k, tile, workload.in_bytes)]

    @classmethod
    def extents(cls, workload: Gemm) -> tuple[int, int, int]:
        return workload.m, workload.n, workload.k

    @classmethod
    def exported_shape(cls, workload: Gemm) -> Mapping[str, object]:
        return {**super().exported_shape(workload), "accumulate": workload.accumulate}

    @classmethod
    def operator_key(cls, workload: Gemm) -> tuple[object, ...]:
        return () if workload.accumulate else ("gemm", workload.m, workload.n, workload.k)

    @property
    def products(self) -> tuple[Product, ...]:
        return (Product.even("C", self.grid, self.depth),)

    def named_blocks(self, schedule: TileOrder, launch: Launch) -> list[Blocks]:
        return [Blocks(schedule.tiles(*self.grid, launch.order_params), self.depth)]

    def phase(
        self, tiles: Tiles, walk: Walk | None = None, results: Steps | None = None, cluster: tuple[int, int] = (1, 1)
    ) -> Phase:
        """Blocks that each compute some k of one output tile.

        Parameters
        ----------
        tiles : ndarray of int32, shape (blocks, 2)
            Output tile of each block, in issue order.
        walk : Walk, optional
            Which k tiles, from where and in which direction; by default all of them, from the first.
        results : Steps, optional
            What blocks touch at the end; by default each writes its tile of C.
        cluster : tuple of int
            In a cluster of M x N blocks the first of each row fetches A for all of it, the first of each column B.
        """
        rows, cols = np.ascontiguousarray(tiles.T)
        a, b = self.a.along(rows), self.b.down(cols)
        if cluster != (1, 1):
            a = a._replace(base=np.where(cols % cluster[1] == 0, a.base, -1))
            b = b._replace(base=np.where(rows % cluster[0] == 0, b.base, -1))
        return Phase(
            Steps((a, b), (READ, READ), walk or Walk(0, self.depth)),
            epilogue=results or self._results(tiles),
            flops=2 * self.tile.bm * self.tile.bn * self.tile.bk,
            shared_bytes=product_bytes(self.tile, self.gemm.in_bytes),
            cut_rest="k",
        )

    def _results(self, tiles: Tiles, pieces: Sequence[Index] = ()) -> Steps:
        """The owner of a tile reads the partial tiles of others, reads C if it is added to, and writes it."""
        reads = self.gemm.accumulate
        c = self.c.ids(tiles[:, 0], tiles[:, 1])
        return Steps([*pieces, *[c] * (reads + 1)], (READ,) * (len(pieces) + reads) + (WRITE,))

    def blocks_of(self, product: int, tiles: Tiles, walk: Walk, adds: NDArray[np.bool_]) -> Phase:
        adds = adds & (not self.gemm.accumulate)  # which reads C in any case
        c = self.c.ids(tiles[:, 0], tiles[:, 1])
        return self.phase(tiles, walk, self._results(tiles, [np.where(adds, c, -1)] if adds.any() else ()))

    def closed_form(self, tiles: Tiles, wave_blocks: int, sawtooth: bool = False) -> LockstepGemm | None:
        """What a closed form needs to know of the lock-step trace; None where tiles share lines."""
        if self.layout.shares_lines:
            return None
        rows, cols = np.ascontiguousarray(tiles.T)
        return LockstepGemm(self.a, self.b, self.c, rows, cols, wave_blocks, sawtooth, self.gemm.accumulate)

    def timed(self, order: TileOrder, slots: int, execution: Execution, params: OrderParams | None = None) -> Program:
        """An order under an execution model, with its clock.

        Raises
        ------
        InputError
            More block steps than fit in memory, or a cluster of more blocks than run at once.
        """
        check_memory(
            f"execution {execution.name}", self.c.tiles * self.depth, "block steps", _STEP_BYTES,
            "use larger tiles or waves",
        )  # fmt: skip
        tiles, cluster = cluster_tiles(order, *self.grid, params or OrderParams(), execution.cluster)
        s = run_segments(tiles, cluster, self.depth, slots, execution)
        walk = Walk(s.begin, s.end - s.begin)
        if s.owner.all():
            runs = [(self.phase(tiles[s.tile], walk, cluster=execution.cluster), s.clock(s.finish))]
        else:
            runs = self._with_partials(tiles, walk, s, slots)
        phases, clocks = zip(*runs, strict=True)
        return Program(self.layout, [Group(phases, slots, order.sawtooth)], clocks=clocks)

    def _with_partials(self, tiles: Tiles, walk: Walk, s: StepSegments, slots: int) -> list[tuple[Phase, StepClock]]:
        gemm, tile = self.gemm, self.tile
        number, count = _partial_numbers(s, len(tiles))
        partials = self.layout.add(PARTIALS, gemm.m, gemm.n, tile.bm, tile.bn, _PARTIAL_BYTES, copies=int(count.max()))

        def gathered(tiles: Tiles, count: Index) -> Steps:
            pieces = [
                np.where(i < count, partials.ids(tiles[:, 0], tiles[:, 1], i), -1) for i in range(partials.copies)
            ]
            return self._results(tiles, pieces)

        of = tiles[s.tile]
        owned = gathered(of, count[s.tile])
        written = np.where(s.owner, -1, partials.ids(of[:, 0], of[:, 1], number))
        results = Steps([written, *np.where(s.owner, owned.bases.T, -1)], (WRITE, *owned.ops))
        last = np.zeros(len(tiles))  # an owner waits for the last of its tile
        np.maximum.at(last, s.tile, s.finish)
        written_first = 1 / TICKS  # partial tiles are written before they are read
        finish = np.where(s.owner, np.maximum(s.finish, last[s.tile]) + written_first, s.finish)
        runs = [(self.phase(of, walk, results), s.clock(finish))]
        if not s.owner.any():  # split-K: a second kernel, one block per tile
            every = np.arange(len(tiles), dtype=np.int64)
            time = s.finish.max() + 1 + every // slots + written_first
            clock = StepClock(every % slots, every // slots, time, np.ones(len(tiles)), time)
            runs.append((self.phase(tiles, Walk(0, 0), gathered(tiles, count)), clock))
        return runs


def _partial_numbers(s: StepSegments, tiles: int) -> tuple[Index, Index]:
    """Which partial tile of its tile each segment writes, -1 where it writes none; and how many each tile has."""
    number, count = np.full(len(s.tile), -1, np.int64), np.zeros(tiles, np.int64)
    for i in np.flatnonzero(~s.owner).tolist():
        number[i] = count[s.tile[i]]
        count[s.tile[i]] += 1
    return number, count

"""The feed-forward network as GPU traces: separate kernels, row-fused bands, split hidden layer, producer/consumer.

Names:

- ``separate:ORDER``: GEMM0 over all tiles, then GEMM1, both in that tile order, with H through the cache.
- ``row-fused-R``: as soon as a band of R tile rows of H is complete, GEMM1 of that band runs over its full width.
  Inside a band both walk column by column, so a weight tile serves R rows in a row.
- ``row-fused-R-split-S``: the same, the hidden layer cut into S parts; Y is a partial sum, written and re-read
  between parts.
- ``row-fused-R-flags``: the same without barriers, one band ahead: GEMM0 of the next band runs before GEMM1 of this
  one, whose blocks wait for flags of their tile rows, so that no SM rests between bands. Its bytes are those of the
  blocks in that order.
- ``interleaved-R``: GEMM0 and GEMM1 on disjoint sets of SMs, in proportion to their work; the consumer starts a band
  of R tile rows when its H is complete. ``interleaved-R-P:Q``: P slots do GEMM0 for Q that do GEMM1, as 32:1.
  ``interleaved-R-P:Q-dsmem``: these P + Q SMs are a cluster, with tile rows of its own; H stays in its shared memories
  and is read from there, and never goes to L2.

A gated FFN computes gate and up of a tile in one block (two accumulators) and writes H once. ``+sawtooth`` walks k
backwards in every second wave. H has the inputs' type. All dirty lines are written back at the end, those of H too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError, UnknownNameError, check_text
from pebble.schedules.kernel import InClusters, Product, TableKernel, Work
from pebble.schedules.orders import ALL_ORDERS, OrderParams, parse_order
from pebble.schedules.tables.table import Blocks, Launch, TileTable
from pebble.schedules.tile import Tiles, TileShape, joins_tiles, product_bytes
from pebble.traces import READ, WRITE, Layout, OperandTiles
from pebble.traces.layout import Index
from pebble.traces.program import Flags, Group, Phase, Steps, Walk
from pebble.units import ceil_div
from pebble.workloads import Ffn

_FUSED = re.compile(r"row-fused-([0-9]{1,7})(?:-split-([0-9]{1,7})|-(flags))?")
_INTERLEAVED = re.compile(r"interleaved-([0-9]{1,7})(?:-([0-9]{1,7}):([0-9]{1,7})(-dsmem)?)?")
_FAMILIES = (
    "separate:row", "row-fused-8", "row-fused-8-split-4", "row-fused-8-flags", "interleaved-8", "interleaved-8-1:1"
)  # fmt: skip


@dataclass(frozen=True)
class FfnSchedule:
    """A parsed name."""

    kind: str  #: ``separate``, ``row-fused`` or ``interleaved``
    order: str = "row"  #: tile order of separate kernels
    band: int = 1  #: tile rows of a band
    split: int = 1  #: parts of the hidden layer
    sawtooth: bool = False  #: whether every second wave walks k backwards
    flags: bool = False  #: of tile rows, in place of barriers between bands
    shares: tuple[int, int] = (0, 0)  #: block slots of GEMM0 to those of GEMM1, side by side; 0: by their work
    dsmem: bool = False  #: whether H stays in the shared memories of clusters of so many SMs

    @property
    def name(self) -> str:
        """The name in full."""
        if self.kind == "separate":
            text = f"separate:{self.order}"
        else:
            text = (
                f"{self.kind}-{self.band}" + (f"-split-{self.split}" if self.split > 1 else "") + "-flags" * self.flags
            )
            text += "-{}:{}".format(*self.shares) if self.shares[0] else ""
            text += "-dsmem" * self.dsmem
        return text + ("+sawtooth" if self.sawtooth else "")


def parse_ffn_schedule(text: str) -> FfnSchedule:
    """Read a schedule name.

    Raises
    ------
    UnknownNameError
        Not a name of this module.
    InputError
        A band or split of zero.

    Examples
    --------
    >>> parse_ffn_schedule("row-fused-8-split-2+sawtooth").band
    8
    """
    name = check_text("schedule", text, "a name such as 'row-fused-8'").strip().lower()
    sawtooth = name.endswith("+sawtooth")
    plain = name.removesuffix("+sawtooth")
    if plain.startswith("separate:"):
        order = parse_order(plain.removeprefix("separate:"))
        return FfnSchedule("separate", order=order.plain_name, sawtooth=sawtooth)
    fused, interleaved = _FUSED.fullmatch(plain), _INTERLEAVED.fullmatch(plain)
    if fused:
        result = FfnSchedule("row-fused", "row", int(fused[1]), int(fused[2] or 1), sawtooth, bool(fused[3]))
    elif interleaved:
        shares = (int(interleaved[2]), int(interleaved[3])) if interleaved[2] else (0, 0)
        if interleaved[2] and 0 in shares:
            raise InputError(f"schedule: got {text!r}, expected at least one slot of each product, such as 32:1.")
        dsmem = bool(interleaved[4])
        result = FfnSchedule("interleaved", "row", int(interleaved[1]), 1, sawtooth, False, shares, dsmem)
    else:
        raise UnknownNameError("ffn schedule", text, _FAMILIES, "pebble compare --help")
    if result.band < 1 or result.split < 1:
        raise InputError(f"schedule: got {text!r}, expected a band and a split of at least 1, such as row-fused-8.")
    return result


def all_ffn_schedules(ffn: Ffn, tile: TileShape) -> list[FfnSchedule]:
    """Every tile order as separate kernels, and a sweep of band heights; each without and with sawtooth.

    Heights are 1, 2, 3, 4, 6, 8, 12 ... for row-fused, powers of two for the rest.
    """
    rows = ceil_div(ffn.tokens, tile.cut_rows(ffn.tokens))
    powers = sorted({min(1 << i, rows) for i in range(rows.bit_length() + 1)})
    sweep = sorted({*powers, *(3 << i for i in range(rows.bit_length()) if 3 << i < rows)})
    plain = [FfnSchedule("separate", order=order) for order in ALL_ORDERS]
    plain += [FfnSchedule("row-fused", band=band) for band in sweep]
    plain += [FfnSchedule("row-fused", band=band, split=2) for band in powers if band > 1]
    plain += [FfnSchedule("interleaved", band=band) for band in powers if band < rows]
    return [FfnSchedule(s.kind, s.order, s.band, s.split, saw) for s in plain for saw in (False, True)]


class FfnKernel(TableKernel):
    """The layout of one FFN under one tile, and the phases that schedules are made of."""

    shape = Ffn
    template = "ffn"

    def __init__(self, ffn: Ffn, tile: TileShape, residual: bool = False) -> None:
        if residual and ffn.d_out != ffn.d_model:
            raise InputError(
                f"residual: got d_model {ffn.d_model} and d_out {ffn.d_out}, expected them equal to add X to Y."
            )
        self.ffn = ffn
        self.residual = residual
        bm, bn, bk = tile.cut_rows(ffn.tokens), tile.bn, tile.bk
        if bn % bk and ffn.hidden > bk:
            raise InputError(
                f"tile {tile}: got BN = {bn} and BK = {bk}, expected BN a multiple of BK, because GEMM1 reads H in "
                "steps of BK what GEMM0 wrote in tiles of BN."
            )
        self.tile = TileShape(bm, bn, bk)
        self.layout = Layout()
        add, width = self.layout.add, ffn.in_bytes
        self.x = add("X", ffn.tokens, ffn.d_model, bm, bk, width)
        names = ("Wg", "Wu") if ffn.gated else ("W1",)
        self.ups = [add(name, ffn.d_model, ffn.hidden, bk, bn, width) for name in names]
        self.h = add("H", ffn.tokens, ffn.hidden, bm, bk, width)
        self.w2 = add("W2", ffn.hidden, ffn.d_out, bk, bn, width)
        self.y = add("Y", ffn.tokens, ffn.d_out, bm, bn, ffn.out_bytes)
        self.rows, self.out_cols = self.y.grid
        self.hidden_cols, self.units = self.ups[0].grid[1], self.h.grid[1]
        self.per_tile = max(1, bn // bk)
        self._step_flops = 2 * bm * bn * bk

    @classmethod
    def of(cls, workload: Ffn, tile: TileShape, residual: bool = False) -> Self:
        return cls(workload, tile, residual)

    @classmethod
    def work(cls, workload: Ffn, tile: TileShape) -> list[Work]:
        m, f, width = workload.tokens, workload.hidden, workload.in_bytes
        return [
            replace(
                Work.product(m, f, workload.d_model, tile, width, workload.up_products), activations=tile.bm * tile.bn
            ),
            Work.product(m, workload.d_out, f, tile, width),
        ]

    @classmethod
    def up_sums(cls, workload: Ffn) -> int:
        return workload.up_products

    @classmethod
    def extents(cls, workload: Ffn) -> tuple[int, int, int]:
        f = workload.hidden
        return workload.tokens, max(f, workload.d_out), max(f, workload.d_model)

    @classmethod
    def exported_shape(cls, workload: Ffn) -> Mapping[str, object]:
        return {**super().exported_shape(workload), "gated": workload.gated}

    @classmethod
    def operator_key(cls, workload: Ffn) -> tuple[object, ...]:
        return ("ffn", workload.tokens, workload.d_model, workload.hidden, workload.d_out, workload.gated)

    @property
    def products(self) -> tuple[Product, ...]:
        hidden = Product.even("H", (self.rows, self.hidden_cols), self.x.grid[1])
        return hidden, Product.even("Y", (self.rows, self.out_cols), self.units)

    def blocks_of(self, product: int, tiles: Tiles, walk: Walk, adds: NDArray[np.bool_]) -> Phase:
        at = tiles.astype(np.int64)
        return self.gemm1(at, walk, adds) if product else self.gemm0(at, walk=walk)

    def named_blocks(self, schedule: FfnSchedule, launch: Launch) -> list[Blocks] | None:
        depth, units, per_tile = self.x.grid[1], self.units, self.per_tile
        if schedule.kind == "separate":
            order = parse_order(schedule.order)
            params = OrderParams(sms=launch.wave_blocks, tile_m=self.tile.bm, tile_n=self.tile.bn)
            tiles = [order.tiles(self.rows, cols, params) for cols in (self.hidden_cols, self.out_cols)]
            return [Blocks(tiles[0], depth), Blocks(tiles[1], units, phase=1, product=1)]
        if schedule.kind != "row-fused" or schedule.flags:
            return None
        part = ceil_div(self.hidden_cols, min(schedule.split, self.hidden_cols))
        blocks: list[Blocks] = []
        for rows in self.bands(schedule.band):
            for start in range(0, self.hidden_cols, part):
                end, phase = min(start + part, self.hidden_cols), len(blocks)
                first, last = start * per_tile, min(end * per_tile, units)
                h, y = (by_columns(rows, cols) for cols in (range(start, end), range(self.out_cols)))
                blocks.append(Blocks(h, depth, phase=phase))
                blocks.append(Blocks(y, last - first, first, phase=phase + 1, product=1, adds=start > 0))
        return blocks

    def too_early(self, table: TileTable) -> NDArray[np.bool_]:
        """Tiles of Y that are computed before a tile of H that they read."""
        product, row, col, first, steps, phase = (
            table.column(name) for name in ("product", "row", "col", "first", "steps", "phase")
        )
        written = np.zeros((self.rows, self.hidden_cols), np.int64)
        h = product == 0
        written[row[h], col[h]] = phase[h]
        at = np.flatnonzero(~h)
        left, right = first[at] // self.per_tile, -(-(first[at] + steps[at]) // self.per_tile)
        keys, which = np.unique(np.stack([row[at], left, right], axis=1), axis=0, return_inverse=True)
        latest = np.array([written[r, a:b].max() for r, a, b in keys.tolist()])
        wrong = np.zeros(table.blocks, np.bool_)
        wrong[at] = latest[which.ravel()] >= phase[at]
        return wrong

    def gemm0(self, tiles: Index, after: int = 0, walk: Walk | None = None, kept: bool = False) -> Phase:
        """H tiles (row, column) in this order; ``kept`` in the shared memory of their SM, not written to L2."""
        rows, cols = tiles.T
        touched = (self.x.along(rows), *(w.down(cols) for w in self.ups))
        write = None if kept else Steps(self._units(self.h, rows, cols), (WRITE,) * self.per_tile)
        walk = walk or Walk(0, self.x.grid[1])
        flops, shared = len(self.ups) * self._step_flops, product_bytes(self.tile, self.ffn.in_bytes, len(self.ups))
        steps = Steps(touched, (READ,) * len(touched), walk)
        activations = self.tile.bm * self.tile.bn
        return Phase(
            steps, epilogue=write, after=after, flops=flops, activations=activations, shared_bytes=shared, rows=rows,
            cut_rest="columns" if len(self.ups) > 1 else "k",
        )  # fmt: skip

    def gemm1(self, tiles: Index, walk: Walk, adds: Flags = False, after: int = 0, kept: bool = False) -> Phase:
        """Y tiles over the units of the hidden layer that ``walk`` says; where ``adds``, Y is read and added to.

        H is copied from the SM that has it where it was ``kept`` there.
        """
        rows, cols = tiles.T
        y = self.y.ids(rows, cols)
        reads = [np.where(adds, y, -1)] if np.any(adds) else []
        if self.residual:
            complete = np.equal(np.add(walk.begin, walk.count), self.units)
            reads = [*(np.where(complete, unit, -1) for unit in self._units(self.x, rows, cols)), *reads]
        finish = Steps([*reads, y], (READ,) * len(reads) + (WRITE,))
        touched = [*([] if kept else [self.h.along(rows)]), self.w2.down(cols)]
        steps = Steps(touched, (READ,) * len(touched), walk)
        bm, bn, bk = self.tile.bm, self.tile.bn, self.tile.bk
        shared, paired = product_bytes(self.tile, self.ffn.in_bytes), 0
        if joins_tiles(self.ffn.up_products, bm, bn):
            paired = product_bytes(TileShape(bm, 2 * bn, bk), self.ffn.in_bytes) // 2
        return Phase(
            steps, epilogue=finish, after=after, flops=self._step_flops, shared_bytes=shared, paired_bytes=paired,
            cut_rest="k", rows=rows, copied_bytes=bm * bk * self.ffn.in_bytes if kept else 0,
        )  # fmt: skip

    def _units(self, operand: OperandTiles, rows: Index, cols: Index) -> list[Index]:
        """Units of BK columns under a tile of BN columns; beyond the edge there is none."""
        units = [cols * self.per_tile + i for i in range(self.per_tile)]
        return [np.where(unit < operand.grid[1], operand.ids(rows, unit), -1) for unit in units]

    def bands(self, height: int) -> list[range]:
        """Tile rows in bands of this height; the last may be lower."""
        return [range(r, min(r + height, self.rows)) for r in range(0, self.rows, height)]


def by_columns(rows: range, cols: range) -> Index:
    """Tiles of a band, column by column."""
    return np.stack([np.tile(rows, len(cols)), np.repeat(cols, len(rows))], axis=1).astype(np.int64)


def _fused_phases(kernel: FfnKernel, schedule: FfnSchedule) -> list[Phase]:
    phases = []
    tile_cols = kernel.hidden_cols
    part = ceil_div(tile_cols, min(schedule.split, tile_cols))
    for rows in kernel.bands(schedule.band):
        for start in range(0, tile_cols, part):
            end = min(start + part, tile_cols)
            phases.append(kernel.gemm0(by_columns(rows, range(start, end))))
            out = by_columns(rows, range(kernel.out_cols))
            last = min(end * kernel.per_tile, kernel.units)
            first = start * kernel.per_tile
            phases.append(kernel.gemm1(out, Walk(first, last - first), adds=start > 0))
    return phases


def _flagged_phases(kernel: FfnKernel, schedule: FfnSchedule) -> list[Phase]:
    """GEMM0 of each band, and behind it GEMM1 of the band before."""
    phases: list[Phase] = []
    waiting: Phase | None = None
    for rows in kernel.bands(schedule.band):
        up = kernel.gemm0(by_columns(rows, range(kernel.hidden_cols)))
        down = kernel.gemm1(by_columns(rows, range(kernel.out_cols)), Walk(0, kernel.units))
        phases.append(up)
        ready = len(phases) - 1
        if waiting is not None:
            phases.append(waiting)
        waiting = replace(down, reads=ready)
    return phases if waiting is None else [*phases, waiting]


def ffn_groups(kernel: FfnKernel, schedule: FfnSchedule, wave_blocks: int) -> list[Group]:
    """The groups of phases of one schedule on ``wave_blocks`` block slots."""
    every_h, every_y = range(kernel.hidden_cols), range(kernel.out_cols)
    units = Walk(0, kernel.units)
    if schedule.kind == "separate":
        order = parse_order(schedule.order)
        params = OrderParams(sms=wave_blocks, tile_m=kernel.tile.bm, tile_n=kernel.tile.bn)
        tiles0 = order.tiles(kernel.rows, kernel.hidden_cols, params).astype(np.int64)
        tiles1 = order.tiles(kernel.rows, kernel.out_cols, params).astype(np.int64)
        return [Group([kernel.gemm0(tiles0), kernel.gemm1(tiles1, units)], wave_blocks, schedule.sawtooth)]
    if schedule.kind == "row-fused":
        phases = (_flagged_phases if schedule.flags else _fused_phases)(kernel, schedule)
        return [Group(phases, wave_blocks, schedule.sawtooth, schedule.flags)]
    if wave_blocks < 2:
        raise InputError(
            f"schedule {schedule.name}: got {wave_blocks} block at once, expected at least 2 to share out."
        )
    bands = kernel.bands(schedule.band)
    first, second = (
        schedule.shares if schedule.shares[0] else (kernel.ffn.up_products * kernel.ffn.d_model, kernel.ffn.d_out)
    )
    producers = min(wave_blocks - 1, max(1, round(wave_blocks * first / (first + second))))
    kept = schedule.dsmem
    produce = [kernel.gemm0(by_columns(rows, every_h), kept=kept) for rows in bands]
    consume = [
        kernel.gemm1(by_columns(rows, every_y), units, after=number + 1, kept=kept) for number, rows in enumerate(bands)
    ]
    return [
        Group(produce, producers, schedule.sawtooth),
        Group(consume, wave_blocks - producers, schedule.sawtooth),
    ]


def in_clusters(kernel: FfnKernel, schedule: FfnSchedule, slots: int) -> InClusters:
    """Of a schedule that hands H over in clusters, each of which has its part of a band's tile rows.

    Examples
    --------
    >>> kernel = FfnKernel(Ffn(1024, 2048, 2048), TileShape(128, 256, 64))
    >>> in_clusters(kernel, parse_ffn_schedule("interleaved-8-8:8-dsmem"), 132)
    InClusters(sms=16, kept_bytes=32768, clusters=8, busy=8)
    """
    sms, band = sum(schedule.shares), min(schedule.band, kernel.rows)
    clusters = max(1, slots // sms)
    kept = ceil_div(ceil_div(band, clusters) * kernel.tile.bm * kernel.ffn.hidden * kernel.ffn.in_bytes, sms)
    return InClusters(sms, kept, clusters, min(band, clusters))

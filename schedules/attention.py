"""Attention as GPU traces: FlashAttention-1, -2, -3, FlashDecoding, sawtooth, and three separate kernels.

Names (in flash-attention: fa1 is csrc/flash_attn/src/fmha_fprop_kernel_1xN.h, fa2 flash_fwd_launch_template.h beside
it, flash-decoding csrc/flash_attn/flash_api.cpp, fa3 hopper/tile_scheduler.hpp):

- ``fa1``: one block per head, outer loop over KV tiles, inner loop over Q tiles; O is a partial sum in fp32, read and
  written for each KV tile.
- ``fa2``: one block per Q tile and head, Q tiles fastest; the block keeps Q and O and walks KV from last to first.
- ``fa2-heads-first``: the same, heads fastest, so that the heads that share one KV head run together.
- ``fa3``: longest first, in sections of heads whose K and V fit 32 MiB of L2.
- ``flash-decoding``, ``split-kv-N``: KV cut into splits (chosen by FlashDecoding's rule, or N); each writes a partial
  O and its log-sum-exp in fp32, a second kernel combines them.
- ``unfused``: scores, softmax and the product with V as three kernels, with scores and probabilities through the cache.

``+sawtooth`` walks KV (or k) the other way in every second wave.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pebble.schedules.attention_names import MAX_SPLITS, AttentionSchedule
from pebble.schedules.kernel import Product, TableKernel, Work
from pebble.schedules.tables.table import Blocks, Launch
from pebble.schedules.tile import Tiles, TileShape, operand_reads
from pebble.traces import READ, WRITE, Layout
from pebble.traces.layout import Index
from pebble.traces.program import Group, Phase, Script, Steps, Walk
from pebble.units import ceil_div
from pebble.workloads import Attention, LatentAttention
from pebble.workloads.workload import Workload

_L2_SECTION_BYTES = 32 * 2**20
_PARTIAL_BYTES = 4
DECODED_ROWS = 64  # queries of heads that share keys, which an exported file takes as rows of one tile
_DECODED_TILE = 16
MASKED_STEPS = 1  # fitted: benchmarks/hardware/fit_attention.py
_LOOKED_AT = 1024  # tiles of queries, to know how many keys one sees on the mean


class Heads(Protocol):
    """What a kernel of attention asks of its workload; `Attention` and `LatentAttention` have it."""

    @property
    def queries(self) -> int: ...
    @property
    def keys(self) -> int: ...
    @property
    def head_dim(self) -> int: ...
    @property
    def value_dim(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def batch(self) -> int: ...
    @property
    def groups(self) -> int: ...
    @property
    def causal(self) -> bool: ...
    @property
    def in_bytes(self) -> int: ...
    @property
    def out_bytes(self) -> int: ...


class AttentionKernel(TableKernel):
    """The layout of one attention under Q tiles of ``bm`` rows and KV tiles of ``bn`` rows.

    ``rows``: of Q and O in each of ``copies`` matrices, which number batch by batch; ``stacked`` rows are of one query.
    """

    shape: ClassVar[type[Workload]] = Attention
    direction = -1
    template = "attention"
    bare_stages = 2

    def __init__(self, attention: Heads, bm: int, bn: int) -> None:
        self.attention = a = attention
        self.stacked = self.rows_of_query(a)
        self.rows, self.copies = a.queries * self.stacked, a.batch * a.heads // self.stacked
        self.group = self.copies // a.groups  # matrices of Q that share keys and values
        self.bm, self.bn = min(bm, self.rows), min(bn, a.keys)
        self.layout = Layout()
        add = self.layout.add
        self.q = add("Q", self.rows, a.head_dim, self.bm, a.head_dim, a.in_bytes, self.copies)
        # what a block loads of each tile of keys
        self.streamed = [add(x, a.keys, d, self.bn, d, a.in_bytes, a.groups) for x, d in self.key_matrices(a).items()]
        self.k, self.v = self.streamed[0], self.streamed[-1]
        self.o = add("O", self.rows, a.value_dim, self.bm, a.value_dim, a.out_bytes, self.copies)
        self.q_tiles, self.kv_tiles = self.q.grid[0], self.k.grid[0]
        self._scores = self.bm * self.bn
        self._flops = 2 * self._scores * (a.head_dim + a.value_dim)
        # scores from Q in shared memory, values with the probabilities in registers; loads write K and V
        reads = operand_reads(self.bm, self.bn, a.head_dim)
        reads += operand_reads(self.bm, a.value_dim, self.bn, rows_in_registers=True)
        self._key_width = sum(self.key_matrices(a).values())
        self._shared_bytes = a.in_bytes * (reads + self.bn * self._key_width)
        self._overlapped = self.overlaps(a, bm, bn)

    @classmethod
    def rows_of_query(cls, attention: Heads) -> int:
        """Rows of Q that are of one query: 1, or the heads that share keys where few queries leave a tile empty.

        So do FlashAttention (``seqlenq_ngroups_swapped`` in flash_api.cpp) and the exported file.
        """
        shared = attention.batch * attention.heads // attention.groups
        return shared if attention.queries * shared <= DECODED_ROWS else 1

    @staticmethod
    def key_matrices(attention: Heads) -> dict[str, int]:
        """The matrices with a row for each key, with their columns: first that of the keys, last that of the values."""
        return {"K": attention.head_dim, "V": attention.value_dim}

    @classmethod
    def of(cls, workload: Heads, tile: TileShape, residual: bool = False) -> Self:
        return cls(workload, tile.bm, tile.bn)

    @classmethod
    def work(cls, workload: Heads, tile: TileShape) -> list[Work]:
        kernel = cls(workload, tile.bm, tile.bn)
        some = np.linspace(0, kernel.q_tiles - 1, min(kernel.q_tiles, _LOOKED_AT)).astype(np.int64)
        steps = float(kernel.visible(some).mean())
        blocks, both = kernel.q_tiles * kernel.copies, workload.head_dim + workload.value_dim
        loads = steps * tile.bn * sum(cls.key_matrices(workload).values()) + tile.bm * workload.head_dim
        scores = tile.bm * tile.bn
        read, beside = round(blocks * loads) * workload.in_bytes, cls.overlaps(workload, tile.bm, tile.bn)
        return [Work(blocks, steps, 2 * scores * both, scores, read, overlapped=beside)]

    @classmethod
    def extents(cls, workload: Heads) -> tuple[int, int, int]:
        return workload.queries * cls.rows_of_query(workload), workload.keys, 1

    @classmethod
    def exported_shape(cls, workload: Any) -> Mapping[str, object]:
        return {**super().exported_shape(workload), "causal": workload.causal}

    @classmethod
    def exported_template(cls, workload: Any) -> str:
        return "decode" if workload.queries * workload.group <= DECODED_ROWS else cls.template

    @classmethod
    def operator_key(cls, workload: Any) -> tuple[object, ...]:
        w = workload
        q, keys = (w.batch, w.heads, w.queries, w.head_dim), (w.kv_heads, w.keys)
        return ("attention", *q, *keys, w.value_dim, w.causal)

    @classmethod
    def exported_tile(cls, workload: Any) -> TileShape | None:
        if cls.exported_template(workload) == "decode":
            rows, wide = workload.queries * workload.group, max(workload.head_dim, workload.value_dim)
            keys = 128 if wide <= 32 else max(64, 128**2 >> (wide - 1).bit_length())  # 64 KiB of K and V a step
            return TileShape(max(_DECODED_TILE, 1 << (rows - 1).bit_length()), keys, 1)
        wide = max(workload.head_dim, workload.value_dim) > 128
        return TileShape(128, 64 if wide else 128, 1) if workload.queries > 64 else None

    @classmethod
    def overlaps(cls, workload: Any, bm: int, bn: int) -> bool:
        tile = cls.exported_tile(workload) if cls.exported_template(workload) == AttentionKernel.template else None
        return tile is not None and (bm, bn) == (tile.bm, tile.bn)

    @classmethod
    def exported_stages(cls, tile: TileShape) -> int:
        return 2 if tile.bm > _DECODED_TILE and tile.bn < 128 else 3

    @classmethod
    def result_columns(cls, workload: Heads, bn: int) -> int:
        return workload.value_dim

    @property
    def products(self) -> tuple[Product, ...]:
        seen = self.visible(np.arange(self.q_tiles, dtype=np.int64))
        return (Product("O (Q tile, head)", (self.q_tiles, self.copies), seen.astype(np.int64)),)

    def blocks_of(self, product: int, tiles: Tiles, walk: Walk, adds: NDArray[np.bool_]) -> Phase:
        return self.flash(tiles[:, 0].astype(np.int64), tiles[:, 1].astype(np.int64), walk)

    def named_blocks(self, schedule: AttentionSchedule, launch: Launch) -> list[Blocks] | None:
        decodes = schedule.kind in ("flash-decoding", "split-kv") and self.decodes()
        if schedule.kind not in ("fa2", "fa2-heads-first", "fa3") and not decodes:
            return None
        longest = schedule.kind == "fa3"
        tile, head = self.longest_first() if longest else self.blocks(schedule.kind == "fa2-heads-first")
        return [Blocks(np.stack([tile, head], axis=1), self.visible(tile), k_direction=-1)]

    def decodes(self) -> bool:
        """Whether its exported file deals the keys of all heads evenly to its blocks, whatever the splits."""
        return self.exported_template(self.attention) == "decode"

    def visible(self, q_tile: Index) -> Index:
        """KV tiles that some query of a Q tile sees."""
        a = self.attention
        if not a.causal:
            return np.full(q_tile.shape, self.kv_tiles, np.int64)
        last_query = (np.minimum((q_tile + 1) * self.bm, self.rows) - 1) // self.stacked
        return np.asarray((a.keys - a.queries + last_query) // self.bn + 1, np.int64)

    def kv_copy(self, copy: Index) -> Index:
        """The K and V matrix of a query head; copies are numbered batch by batch, head by head."""
        return np.asarray(copy // self.group, np.int64)

    def blocks(self, heads_first: bool) -> tuple[Index, Index]:
        """(Q tile, head copy) of each block in issue order."""
        number = np.arange(self.q_tiles * self.copies, dtype=np.int64)
        if heads_first:
            return number // self.copies, number % self.copies
        return number % self.q_tiles, number // self.q_tiles

    def longest_first(self) -> tuple[Index, Index]:
        """FlashAttention-3's order: sections of heads that fit L2 together, in each the longest Q tiles first."""
        a = self.attention
        head_bytes = a.keys * self._key_width * a.in_bytes
        fit = _L2_SECTION_BYTES // head_bytes
        section = (1 << (fit.bit_length() - 1) if fit else 1) * self.group
        tiles, heads = [], []
        for start in range(0, self.copies, section):
            here = np.arange(start, min(start + section, self.copies), dtype=np.int64)
            tiles.append(np.repeat(np.arange(self.q_tiles - 1, -1, -1, dtype=np.int64), len(here)))
            heads.append(np.tile(here, self.q_tiles))
        return np.concatenate(tiles), np.concatenate(heads)

    def flash(self, tile: Index, copy: Index, walk: Walk | None = None) -> Phase:
        """One block per Q tile and head, KV as ``walk`` says, by default from last to first."""
        write = Steps([self.o.ids(tile, 0, copy)], (WRITE,))
        return self._over_kv(tile, copy, walk or Walk(0, self.visible(tile), backwards=True), write)

    def _over_kv(self, tile: Index, copy: Index, walk: Walk, write: Steps) -> Phase:
        """Blocks that load Q, then K and V tile by tile, and write a result."""
        source = self.kv_copy(copy)
        load = Steps([self.q.ids(tile, 0, copy)], (READ,))
        return Phase(
            Steps([tile.down(0, source) for tile in self.streamed], (READ,) * len(self.streamed), walk),
            load,
            write,
            0,
            self._flops,
            self._scores,
            self._shared_bytes,
            self._overlapped,
            MASKED_STEPS if self._overlapped and self.attention.causal else 0,
        )

    def flash1(self) -> list[Phase]:
        """One block per head, KV outside, Q inside, O a partial sum in fp32."""
        a = self.attention
        partial = self.layout.add("Opart", self.rows, a.value_dim, self.bm, a.value_dim, _PARTIAL_BYTES, self.copies)
        seen = self.visible(np.arange(self.q_tiles, dtype=np.int64))
        kv, tile = np.nonzero(np.arange(self.kv_tiles)[:, None] < seen)
        first_of_kv = np.concatenate([[True], kv[1:] != kv[:-1]])
        begins, ends = kv == 0, kv == seen[tile] - 1
        copy = np.arange(self.copies, dtype=np.int64)
        k, v = (operand.down(0, self.kv_copy(copy)) for operand in (self.k, self.v))
        q, part, o = (operand.down(0, copy) for operand in (self.q, partial, self.o))
        steps = [
            (k, READ, kv, first_of_kv), (v, READ, kv, first_of_kv), (q, READ, tile, tile >= 0),
            (part, READ, tile, ~begins), (part, WRITE, tile, ~ends), (o, WRITE, tile, ends),
        ]  # fmt: skip
        tiles, ops, at, there = zip(*steps, strict=True)
        script = Script(np.where(np.stack(there, 1), np.stack(at, 1), -1))
        return [Phase(Steps(tiles, ops, script), flops=self._flops, exps=self._scores)]

    def split_kv(self, splits: int) -> list[Phase]:
        """Each split writes a partial O and its log-sum-exp; a second kernel combines them."""
        a = self.attention
        splits = min(splits, self.kv_tiles)
        if splits == 1:
            return [self.flash(*self.blocks(heads_first=False))]
        width = a.value_dim + 1
        part = self.layout.add("Opart", self.rows, width, self.bm, width, _PARTIAL_BYTES, self.copies * splits)
        length = ceil_div(self.kv_tiles, splits)
        number = np.arange(self.q_tiles * splits * self.copies, dtype=np.int64)
        tile, split, copy = number % self.q_tiles, number // self.q_tiles % splits, number // self.q_tiles // splits
        begin = split * length
        count = np.maximum(np.minimum(length, self.visible(tile) - begin), 0)
        wrote = Steps([part.ids(tile, 0, copy * splits + split)], (WRITE,))
        tiles, heads = self.blocks(heads_first=False)
        pieces = part.copies_of(tiles, heads * splits)
        combined = Steps([self.o.ids(tiles, 0, heads)], (WRITE,))
        return [
            self._over_kv(tile, copy, Walk(begin, count, backwards=True), wrote),
            Phase(Steps([pieces], (READ,), Walk(0, splits, one_way=True)), epilogue=combined),
        ]

    def decoding_splits(self, sms: int) -> int:
        """FlashDecoding's rule: 1 when the blocks nearly fill the chip, else the fewest splits within 85 % of the best
        wave efficiency."""
        blocks = self.q_tiles * self.copies
        slots = 2 * sms
        if blocks >= 0.8 * slots:
            return 1
        most = min(MAX_SPLITS, slots, self.kv_tiles)
        efficiency = {}
        for splits in range(1, most + 1):
            # a count that cuts KV into no more pieces than a smaller one is not eligible
            if splits > 1 and ceil_div(self.kv_tiles, splits) == ceil_div(self.kv_tiles, splits - 1):
                continue
            waves = blocks * splits / slots
            efficiency[splits] = waves / np.ceil(waves)
        best = max(efficiency.values())
        return next(splits for splits, value in efficiency.items() if value >= 0.85 * best)

    def unfused(self) -> list[Phase]:
        """Scores, softmax, product with V: three kernels over square-ish tiles of bm x bn."""
        a = self.attention
        scores, probs = (
            self.layout.add(name, self.rows, a.keys, self.bm, self.bn, a.in_bytes, self.copies, padded=True)
            for name in ("S", "P")
        )
        tile, copy = self.blocks(heads_first=False)
        seen = self.visible(tile)
        q, head = np.repeat(tile, seen), np.repeat(copy, seen)
        kv = np.arange(len(q)) - np.repeat(np.cumsum(seen) - seen, seen)
        pair = (self.q.ids(q, 0, head), self.k.ids(kv, 0, self.kv_copy(head)))
        normalised = (scores.along(tile, copy), probs.along(tile, copy))
        values = (probs.along(tile, copy), self.v.down(0, self.kv_copy(copy)))
        return [
            Phase(
                Steps(pair, (READ, READ)),
                epilogue=Steps([scores.ids(q, kv, head)], (WRITE,)),
                flops=2 * self._scores * a.head_dim,
            ),
            Phase(Steps(normalised, (READ, WRITE), Walk(0, seen, one_way=True)), exps=self._scores),
            Phase(
                Steps(values, (READ, READ), Walk(0, seen)),
                epilogue=Steps([self.o.ids(tile, 0, copy)], (WRITE,)),
                flops=2 * self._scores * a.value_dim,
            ),
        ]


class LatentKernel(AttentionKernel):
    """The same where all heads of a sequence read one latent matrix: a tile of it is loaded once for both products.

    Rows of Q are stacked query by query, the heads of a query side by side, so that they share what a block loads.
    """

    shape = LatentAttention
    template = "latent"

    @classmethod
    def exported_template(cls, workload: Any) -> str:
        return cls.template

    @classmethod
    def operator_key(cls, workload: Any) -> tuple[object, ...]:
        return ()

    @classmethod
    def rows_of_query(cls, attention: Heads) -> int:
        return attention.heads

    @staticmethod
    def key_matrices(attention: Heads) -> dict[str, int]:
        return {"KV": attention.head_dim}


def attention_groups(kernel: AttentionKernel, schedule: AttentionSchedule, sms: int, wave_blocks: int) -> list[Group]:
    """The phases of one schedule; adds the intermediates that it needs to the kernel's layout."""
    if schedule.kind == "fa1":
        phases = kernel.flash1()
    elif schedule.kind in ("fa2", "fa2-heads-first"):
        phases = [kernel.flash(*kernel.blocks(heads_first=schedule.kind == "fa2-heads-first"))]
    elif schedule.kind == "fa3":
        phases = [kernel.flash(*kernel.longest_first())]
    elif schedule.kind == "unfused":
        phases = kernel.unfused()
    else:
        phases = kernel.split_kv(schedule.splits or kernel.decoding_splits(sms))
    return [Group(phases, wave_blocks, schedule.sawtooth)]

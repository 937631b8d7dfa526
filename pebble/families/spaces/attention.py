"""What can be tried for attention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pebble.families.spaces.space import Space, flipped, spread
from pebble.schedules.attention_names import AttentionSchedule
from pebble.schedules.recipes import AttentionBands
from pebble.schedules.tables import TileTable
from pebble.schedules.tables.registry import kernel_of
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.units import ceil_div
from pebble.workloads import Attention
from pebble.workloads.workload import Workload

_SPLITS = (2, 3, 4, 6, 8, 12, 16)
_QUERIES, _KEYS = (128, 256), (64, 128)  # rows of a tile
_CHOICES = 10  # sizes of groups of heads, and of bands of query tiles
_STEPS = 32  # over the keys, in a quick look


class AttentionSpace(Space[Attention, AttentionBands]):
    """Groups of heads, bands of query tiles, and the way through the keys."""

    def refusal(self, workload: Attention) -> str:
        if workload.softmax != "strict":
            return ""
        return "--softmax: got strict, expected online: all orders that are tried rescale sums as they go."

    def tiles(self, workload: Attention, default: TileShape) -> Iterable[TileShape]:
        return dict.fromkeys([default, *(TileShape(bm, bn, default.bk) for bm in _QUERIES for bn in _KEYS)])

    def operands(self, workload: Attention) -> tuple[str, ...]:
        return tuple(operand.name for operand in workload.operands if operand.read)

    def intensity(self, workload: Attention, tile: TileShape) -> float:
        return float(tile.bm)  # each key and value that a block loads meets all of its queries

    def uneven(self, workload: Attention) -> bool:
        return workload.causal  # the last queries see all keys, the first see few

    def least_time(self, workload: Attention, config: KernelConfig) -> float:
        """As if every wave were as long as the mean block: under a causal mask blocks are of any length."""
        ((_, (q_tiles, copies), seen),) = kernel_of(workload, config.tile).products
        return ceil_div(q_tiles * copies, config.wave_blocks) * float(seen.mean()) * self.step(config.tile)

    def time(self, workload: Attention, table: TileTable) -> float:
        """The same: a table's waves are kept together by nothing, as softmax takes any pace."""
        return self.least_time(
            workload, KernelConfig(table.launch.tile, table.launch.sms, table.launch.blocks_per_sm, 0)
        )

    def coarse(self, workload: Attention, tile: TileShape) -> TileShape:
        return replace(tile, bn=tile.bn * ceil_div(ceil_div(workload.keys, tile.bn), _STEPS))

    def swept(self, workload: Attention, config: KernelConfig) -> Sequence[AttentionSchedule]:
        return [AttentionSchedule("split-kv", splits, saw) for splits in _SPLITS for saw in (False, True)]

    def _sizes(self, workload: Attention, config: KernelConfig) -> tuple[list[int], list[int]]:
        tiles, copies = _grid(workload, config)
        group = max(1, copies // workload.groups)
        heads = {*spread(copies, _CHOICES), *(group * i for i in spread(copies // group, _CHOICES))}
        return sorted(heads), spread(tiles, _CHOICES)

    def made(self, workload: Attention, config: KernelConfig) -> Iterator[AttentionBands]:
        heads, queries = self._sizes(workload, config)
        for h in heads:
            for q in queries:
                for late in (False, True):
                    yield AttentionBands(h, q, late, sawtooth=True)
                    yield AttentionBands(h, q, late, forwards=True)
                    if not workload.causal:
                        yield AttentionBands(h, q, late, shift=True)

    def recipe(self, workload: Attention, schedule: AttentionSchedule, config: KernelConfig) -> AttentionBands | None:
        tiles, copies = _grid(workload, config)
        if schedule.kind == "fa2":
            return AttentionBands(1, tiles, sawtooth=schedule.sawtooth)
        if schedule.kind == "fa2-heads-first":
            return AttentionBands(copies, 1, sawtooth=schedule.sawtooth)
        return None

    def near(self, workload: Attention, recipe: AttentionBands, config: KernelConfig) -> Iterator[AttentionBands]:
        tiles, copies = _grid(workload, config)
        for step in (1, 2, 4):
            for sign in (-1, 1):
                heads, queries = recipe.heads + sign * step, recipe.queries + sign * step
                if 1 <= heads <= copies:
                    yield replace(recipe, heads=heads)
                if 1 <= queries <= tiles:
                    yield replace(recipe, queries=queries)
        yield from flipped(recipe)


def _grid(workload: Workload, config: KernelConfig) -> tuple[int, int]:
    """Tiles of queries, and matrices of Q: one a head, or one a sequence where heads are stacked."""
    return kernel_of(workload, config.tile).products[0].grid

"""Attention, O := softmax(Q K^T) V per head."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pebble.cdag.attention import attention_dag
from pebble.cdag.catalogue import SUMS, DagFamily
from pebble.errors import InfeasibleError
from pebble.families.base import Explicit, KernelFamily, OnSms
from pebble.models.kernel_fit import KernelNeeds
from pebble.schedules.attention import (
    AttentionSchedule,
    all_attention_schedules,
    attention_trace,
    parse_attention_schedule,
)
from pebble.schedules.explicit.attention import best_attention_schedule
from pebble.schedules.explicit.parallel_chain import best_attention_on_sms
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.traces import Trace
from pebble.workloads import Attention
from pebble.workloads.attention import SOFTMAX
from pebble.workloads.parameters import Parameter, flag, needed, optional


class AttentionFamily(KernelFamily[Attention, AttentionSchedule]):
    """``attention``."""

    name = "attention"
    shape = Attention
    computes = "O := softmax(Q K^T) V per head; --heads --kv-heads --batch --causal --softmax online|strict"
    example = "attention --queries 8192 --keys 8192 --head-dim 128"
    parameters = (
        *needed(
            queries="rows of Q and O per head; 1 is a decode step",
            keys="rows of K and V per head",
            head_dim="columns of Q, K, V, O",
        ),
        *optional(
            value_dim="columns of V and O (head-dim)",
            heads="query heads (1)",
            kv_heads="key/value heads (heads)",
            batch="independent sequences (1)",
        ),
        flag("--causal", "each query sees only the keys up to its own"),
        Parameter("--softmax", "choice", "online, or strict (a row is used only when complete)", choices=SOFTMAX),
    )
    chained = True
    schedules_help = "fa1, fa2, fa2-heads-first, fa3, flash-decoding, split-kv-N, unfused"

    def best_schedule(self, workload: Attention, capacity: int) -> Explicit | None:
        try:
            return best_attention_schedule(workload, capacity)
        except InfeasibleError:  # no schedule of ours fits this little; that is not a proof that nothing does
            return None

    def best_on_sms(self, workload: Attention, sms: int, capacity: int, omega: Fraction, group: int) -> OnSms:
        return best_attention_on_sms(workload, sms, capacity, omega, group)

    @property
    def dag(self) -> DagFamily:
        parameters = (*(p for p in self.parameters if p.name != "value_dim"), *SUMS)
        text = "softmax(Q K^T) V; tiles over queries x keys x head-dim"
        return DagFamily(self.name, text, attention_dag, parameters, "--queries 2 --keys 2 --head-dim 1")

    def default_tile(self, workload: Attention) -> TileShape:
        """FlashAttention-2's: 128 queries by 128 keys, 64 above head-dim 64."""
        return TileShape(128, 128 if workload.head_dim <= 64 else 64, 1)

    def cut_tile(self, tile: TileShape, workload: Attention) -> TileShape:
        return TileShape(min(tile.bm, workload.queries), min(tile.bn, workload.keys), 1)

    def tile_text(self, tile: TileShape) -> str:
        return f"{tile.bm}x{tile.bn}"

    def all_schedules(self, workload: Attention, tile: TileShape) -> Sequence[AttentionSchedule]:
        return all_attention_schedules()

    def parse_schedule(self, text: str) -> AttentionSchedule:
        return parse_attention_schedule(text)

    def kernel_needs(self, workload: Attention, tile: TileShape, stages: int = 1) -> KernelNeeds:
        """O, the scores of a tile, maximum and sum of each row; Q; and tiles of K and V."""
        head, value = workload.head_dim, workload.value_dim
        kept = tile.bm * (value + tile.bn + 2)
        return KernelNeeds(kept, tile.bm * head, tile.bn * (head + value), stages, workload.in_bytes)

    def named_trace(
        self, workload: Attention, schedule: AttentionSchedule, config: KernelConfig, residual: bool
    ) -> Trace:
        tile = config.tile
        return attention_trace(workload, schedule, tile.bm, tile.bn, config.sms, config.blocks_per_sm)


ATTENTION = AttentionFamily()

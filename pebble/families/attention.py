r"""Attention, O := softmax(Q K^T) V per head.

**Attention**: a chain with :math:`A = Q` (:math:`m` = queries, :math:`k` = head_dim), :math:`B = K^T` (:math:`f` =
keys), :math:`D = V` (:math:`l` = value_dim), :math:`H` = the scores. A probability takes the place of its score: with
two values a schedule may drop the score when the probability is made, since the row sum has read it before (strict) or
reads it in the same step (online). Row maxima and sums, rescaling and the last division only add operations and values:
leaving them out is a relaxation.

- *Grouped heads.* The query heads that share K and V are one chain with their queries stacked: no product is lost or
  added. Sequences and key/value heads are equal groups that share no value.
- *Causal mask.* Fewer pairs :math:`(i, j)` exist: a subset of the box, with as many cells as pairs. With one segment
  this is below compulsory, so the maximum with compulsory matters: all of Q, K, V, O, since the last query sees every
  key and every query sees one at least. Theorem 8 is not used: lines differ in length. Theorem 9 is.
- *Strict softmax, no recomputation.* When the last score of a row of :math:`n` has been added to the row's sum, all are
  computed and none has been used: each is in fast memory beside the sum, at most :math:`S - 1` of them, or was stored
  and will be loaded. So :math:`\max(0, n - S + 1)` stores come on top of Theorem 2, which charges loads of scores only,
  and as many loads and stores on top of compulsory.
- *Decode* (one query): nothing to reuse but across grouped heads; compulsory, K and V read once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Generic, TypeVar

from pebble.bounds import Accounting, Chain, Grid, StrictSoftmax, chain_uses
from pebble.bounds.chain import SEPARATE
from pebble.cdag.attention import attention_dag
from pebble.cdag.catalogue import SUMS, DagFamily
from pebble.errors import InfeasibleError, InputError
from pebble.families.family import KernelFamily
from pebble.families.schedules import Explicit, OnSms
from pebble.families.spaces.attention import AttentionSpace
from pebble.models.kernel_fit import KernelNeeds
from pebble.schedules.attention import AttentionKernel, attention_groups
from pebble.schedules.attention_names import AttentionSchedule, all_attention_schedules, parse_attention_schedule
from pebble.schedules.explicit.attention import best_attention_schedule
from pebble.schedules.explicit.dataflow import Cores
from pebble.schedules.explicit.dataflow_search import Cost, attention_flows
from pebble.schedules.explicit.flow import Flow
from pebble.schedules.explicit.parallel_chain import best_attention_on_sms
from pebble.schedules.tables import TileTable
from pebble.schedules.tables.own import OwnSchedule
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.traces.program import Program
from pebble.workloads import Attention
from pebble.workloads.attention import SOFTMAX, SoftmaxWorkload
from pebble.workloads.parameters import Parameter, flag, needed, optional
from pebble.workloads.widths import FastMemory, Widths

_DRAWN_HEADS = 4


def strict_spills(attention: Attention, capacity: int) -> int:
    """Scores of one group that a strict softmax must store: sum over rows of max(0, scores - S + 1)."""
    most = attention.keys - capacity + 1
    if attention.softmax != "strict" or most <= 0:
        return 0
    if not attention.causal:
        return attention.stacked_queries * most
    rows = min(most, attention.queries)  # a query earlier, one key less
    return attention.group * (rows * most - rows * (rows - 1) // 2)


A = TypeVar("A", bound=SoftmaxWorkload)


class SoftmaxFamily(KernelFamily[A, AttentionSchedule], Generic[A]):
    """What families with the kernels of attention share: a block keeps rows of Q, and tiles of keys stream by."""

    hides_phases = True  # FlashAttention-3 computes exponentials of one tile beside products of another
    walks = "fa1, fa2, fa3, flash-decoding: walks in a modelled kernel, not those programs"
    space = AttentionSpace()

    def tile_text(self, tile: TileShape) -> str:
        return f"{tile.bm}x{tile.bn}"

    @abstractmethod
    def key_columns(self, workload: A) -> int:
        """Columns of what a step brings of each key."""

    def dataflows(self, workload: A, cores: Cores, widths: Widths, cost: Cost) -> list[Flow]:
        return attention_flows(workload, self.key_columns(workload), cores, widths, cost)

    def kernel_needs(self, workload: A, tile: TileShape, stages: int = 1) -> KernelNeeds:
        """O, the scores of a tile, maximum and sum of each row; Q; and a tile of keys with their values."""
        head, value = workload.columns
        brought = tile.bn * self.key_columns(workload)
        return KernelNeeds(tile.bm * (value + tile.bn + 2), tile.bm * head, brought, stages, workload.in_bytes)

    def k_tile(self, workload: A, tile: TileShape) -> tuple[int, int, bool]:
        """Q stays; a step brings a tile of keys, which meets Q, and as values the scores."""
        return tile.bn, sum(workload.columns), True


class AttentionFamily(SoftmaxFamily[Attention]):
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
    baseline = ("fa2", "fa3", "flash-decoding")  # the walks of libraries
    advised = ("fa2-heads-first", "fa2-heads-first+sawtooth", "split-kv-8", "split-kv-8+sawtooth")

    def accounting(self, workload: Attention) -> Accounting:
        m, k, f, l = workload.stacked_queries, workload.head_dim, workload.keys, workload.value_dim
        scores = workload.group * workload.pairs_per_head
        chain = Chain(m, k, f, l, scores, hidden="the scores")
        grid = Grid.causal(workload.queries, f, k, l, workload.group) if workload.causal else Grid.full(m, k, f, l)
        groups = workload.groups
        surely = StrictSoftmax(workload.compulsory_elements // groups, workload.flops // (2 * groups))
        return Accounting(
            workload,
            chain_uses(chain, grid, surely),
            groups=workload.groups,
            chain=chain,
            spilled=lambda capacity: strict_spills(workload, capacity),
            compulsory_kernels=SEPARATE,
            game="per group of query heads that share keys and values, with their queries stacked: "
            "$H := \\mathrm{softmax}(A B)$ and $Y := H D$ with $A = Q$ ($m \\times k$), $B = K^{T}$ ($k \\times f$), "
            "$D = V$ ($f \\times l$); a probability takes the place of its score",
            symbols={"m": m, "k": k, "f": f, "l": l, "scores": scores, "groups": workload.groups},
        )

    def best_schedule(self, workload: Attention, memory: FastMemory) -> Explicit | None:
        try:
            return best_attention_schedule(workload, memory)
        except InfeasibleError:  # no schedule of ours fits this little; that is not a proof that nothing does
            return None

    def stateless_schedule(self, workload: Attention, memory: FastMemory) -> Explicit | None:
        """Without the maximum, sum and factor of each row, as peers count that leave softmax out."""
        try:
            return best_attention_schedule(workload, memory, state=False)
        except InfeasibleError:
            return None

    def dataflows(self, workload: Attention, cores: Cores, widths: Widths, cost: Cost) -> list[Flow]:
        if workload.softmax == "strict":
            raise InputError(
                "--softmax: got strict on a machine of scratchpads, expected online: in its dataflows scores are used "
                "before their row is complete."
            )
        return super().dataflows(workload, cores, widths, cost)

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
        return TileShape(min(tile.bm, AttentionKernel.extents(workload)[0]), min(tile.bn, workload.keys), 1)

    def all_schedules(self, workload: Attention, tile: TileShape) -> Sequence[AttentionSchedule]:
        strict = workload.softmax == "strict"
        return [s for s in all_attention_schedules() if not strict or s.kind == "unfused"]

    def every_schedule(self, workload: Attention, tile: TileShape) -> Sequence[AttentionSchedule]:
        return self.all_schedules(workload, tile)  # a strict softmax has few of them

    def parse_schedule(self, text: str) -> AttentionSchedule:
        return parse_attention_schedule(text)

    def key_columns(self, workload: Attention) -> int:
        """Of K and V."""
        return workload.head_dim + workload.value_dim

    def reduced(self, workload: Attention, tile: TileShape, side: int, depth: int) -> Attention:
        queries, keys = min(workload.queries, side * tile.bm), min(workload.keys, side * tile.bn)
        if workload.causal:
            queries = keys = min(queries, keys)
        group = workload.group
        heads = min(workload.heads, max(group, _DRAWN_HEADS // group * group))
        return replace(workload, queries=queries, keys=keys, heads=heads, kv_heads=heads // group, batch=1, name="")

    def named_program(
        self, workload: Attention, schedule: AttentionSchedule, config: KernelConfig, residual: bool
    ) -> Program:
        if schedule.kind != "unfused":
            _refuse_strict(workload, schedule.name)
        kernel = AttentionKernel(workload, config.tile.bm, config.tile.bn)
        groups = attention_groups(kernel, schedule, config.sms, config.wave_blocks)
        return Program(kernel.layout, groups)

    def drifts(self, workload: Attention, schedule: str, config: KernelConfig) -> str:
        if not workload.causal or not schedule.startswith("fa2-heads-first"):
            return ""
        return "causal, heads first: blocks drift less than the model says, and most launches move less than it says"

    def notes(self, residual: bool) -> tuple[str, ...]:
        return (
            "fa1, fa2, fa3, flash-decoding: the walks of FlashAttention-1, -2, -3 and FlashDecoding in a modelled "
            "kernel of the tile above; no figure is one of those programs'",
        )

    def table(self, workload: Attention, schedule: AttentionSchedule | OwnSchedule, config: KernelConfig) -> TileTable:
        _refuse_strict(workload, schedule.name)  # the blocks of a table rescale sums as keys stream by
        return super().table(workload, schedule, config)


def _refuse_strict(workload: Attention, schedule: str) -> None:
    """For a schedule that uses scores before their row is complete."""
    if workload.softmax == "strict":
        raise InputError(
            f"--softmax: got strict with the schedule {schedule}, which uses scores before their row is complete, "
            "expected online, or the schedule unfused."
        )


ATTENTION = AttentionFamily()

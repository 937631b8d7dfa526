r"""Latent attention, O := softmax(Q KV^T) V, V the first columns of KV: MLA as it runs.

**Latent attention**: in a sequence all heads read one matrix KV, :math:`f` keys times :math:`k` = latent + rope
columns, whose first :math:`l` = latent columns are the values too. With the queries of all heads stacked to :math:`m`
rows it is a chain as attention is (:math:`A = Q`, :math:`B = KV^T`, :math:`H` the scores, :math:`D = V`), but that
:math:`D` is part of :math:`B`: a load of a value serves both products, and counts once.

- *Segments.* In the box of a chain, :math:`f \times m \times (k + l)`, the value :math:`(j, t)` of KV is met at depth
  :math:`t` and, for :math:`t < l`, at depth :math:`k + t` too. So :math:`a` values of KV stand for at most :math:`2 a`
  pairs of a key and a depth. That is the overlap :math:`R = 2` of Theorem 1, as where one input of a convolution meets
  several taps: with :math:`b` values of Q and O and :math:`c` scores, :math:`v` products have :math:`v^2 \le 2\,a b c`,
  :math:`v \le 2 m\,a`, :math:`v \le f\,b`, :math:`v \le (k + l)\,c`. The :math:`mf` scores begin free and are not
  stored. From about :math:`S = (k + l)^2 / 2` on this is about :math:`m f (k + l)^2 / 2 S` values, where panels of
  queries move :math:`m f k (k + l) / S`: with 512 and 64 columns 6 % more.
- *Lines.* In Theorems 7 and 8 a value of the first :math:`l` columns stands for :math:`R = 2` parallel lines with
  :math:`2 m` products in all: in :math:`s` segments these are in at most :math:`2 s` parts. It is an input: loaded
  once, and in each gap held or loaded again. One of the other columns has a line of :math:`m`. All else is as in a
  chain. *Causal mask:* every query sees the first :math:`f` - queries + 1 keys. Of a schedule keep the moves of Q and
  O, of these keys, and of their scores: a schedule of that box; the other keys are loaded once besides.
- Sequences are equal groups that share no value. Theorems 2 to 6, 9 and 10 and those in bytes charge :math:`B` and
  :math:`D` apart and are not used; with recomputation only compulsory traffic is proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pebble.bounds import Accounting, Box, ByLines, LineProblem, Lines, LowerBound, Piece, lower_bound
from pebble.bounds.chain_lines import Hidden
from pebble.cdag.attention import latent_dag
from pebble.cdag.catalogue import SUMS, DagFamily
from pebble.errors import InputError
from pebble.families.attention import SoftmaxFamily
from pebble.families.schedules import Explicit
from pebble.schedules.attention import LatentKernel, attention_groups
from pebble.schedules.attention_names import AttentionSchedule, all_attention_schedules, parse_attention_schedule
from pebble.schedules.explicit.latent import best_latent_schedule
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.traces.program import Program
from pebble.workloads import LatentAttention
from pebble.workloads.parameters import flag, needed, optional
from pebble.workloads.widths import FastMemory

_MULTIPLIERS = (1.0, 1.15, 1.3, 1.5, 1.75)
_LOADS_APART = ("fa1", "unfused")  # schedules whose keys and values come at different times


class LatentFamily(SoftmaxFamily[LatentAttention]):
    """``latent-attention``."""

    name = "latent-attention"
    shape = LatentAttention
    computes = "O := softmax(Q KV^T) V, V the first columns of one KV for all heads (MLA); --causal"
    example = "latent-attention --queries 1 --keys 32768 --heads 128 --latent 512 --rope 64"
    parameters = (
        *needed(queries="rows of Q and O per head; 1 is a decode step", keys="rows of KV"),
        *optional(
            latent="columns of KV that are keys and values (512)",
            rope="columns of KV that are keys alone (64)",
            heads="query heads (1)",
            batch="independent sequences (1)",
        ),
        flag("--causal", "each query sees only the keys up to its own"),
    )
    schedules_help = "fa2, fa2-heads-first, fa3, flash-decoding, split-kv-N, each with one load for both products"
    baseline = ("fa2", "flash-decoding")
    advised = ("fa3", "split-kv-8")

    def accounting(self, workload: LatentAttention) -> Accounting:
        m, k, f, l = workload.stacked_queries, workload.head_dim, workload.keys, workload.value_dim
        scores = workload.pairs_per_group
        method = "segment accounting, one latent for both products"
        piece = Piece("latent", method, Box(f, m, k + l, 2), (scores * k, scores * l), scores, whole_numbers=False)
        seen = f - workload.queries + 1 if workload.causal else f  # keys that every query sees
        kinds = (
            Lines("Q", m * k, seen),
            Lines("KV, keys and values", seen * l, 2 * m, overlap=2),
            Lines("KV, keys alone", seen * (k - l), m),
            Lines("O", m * l, seen, again=2),
            Hidden("the scores", m * seen, k, l),
        )
        return Accounting(
            workload,
            (piece, ByLines(LineProblem("latent", kinds, m * seen * (k + l), (f - seen) * k, _MULTIPLIERS))),
            groups=workload.groups,
            computed_once=True,
            game="per sequence, with the queries of all heads stacked: $H := \\mathrm{softmax}(A B)$ and $Y := H D$ "
            "with $A = Q$ ($m \\times k$), $B = KV^{T}$ ($k \\times f$), and $D$ ($f \\times l$) the first $l$ "
            "columns of $KV$; a probability takes the place of its score"
            + "; lines are those of the keys that every query sees, and the vectors of the others are loaded besides"
            * workload.causal,
            symbols={"m": m, "k": k, "f": f, "l": l, "scores": scores, "groups": workload.groups},
        )

    def lower_bound(
        self,
        workload: LatentAttention,
        capacity: int,
        recompute: bool = False,
        memory: FastMemory | None = None,
        cases: int = 0,
    ) -> LowerBound:
        """By values alone, also for a memory of bytes: the theorems in bytes charge keys and values apart."""
        return lower_bound(self.accounting(workload), capacity, recompute)

    def best_schedule(self, workload: LatentAttention, memory: FastMemory) -> Explicit:
        return best_latent_schedule(workload, memory)

    @property
    def dag(self) -> DagFamily:
        example = "--queries 1 --keys 2 --latent 1 --rope 1"
        return DagFamily(self.name, "softmax(Q KV^T) V", latent_dag, (*self.parameters, SUMS[0]), example)

    def default_tile(self, workload: LatentAttention) -> TileShape:
        """FlashMLA's: 64 rows, heads of a query side by side, by 64 keys."""
        return TileShape(64, 64, 1)

    def cut_tile(self, tile: TileShape, workload: LatentAttention) -> TileShape:
        return TileShape(min(tile.bm, workload.stacked_queries), min(tile.bn, workload.keys), 1)

    def all_schedules(self, workload: LatentAttention, tile: TileShape) -> Sequence[AttentionSchedule]:
        return [schedule for schedule in all_attention_schedules() if schedule.kind not in _LOADS_APART]

    def parse_schedule(self, text: str) -> AttentionSchedule:
        result = parse_attention_schedule(text)
        if result.kind in _LOADS_APART:
            raise InputError(
                f"schedule: got {text!r} for latent-attention, expected fa2, fa2-heads-first, fa3, flash-decoding or "
                "split-kv-N: it loads keys and values at different times, and these are one matrix."
            )
        return result

    def key_columns(self, workload: LatentAttention) -> int:
        """Of KV, whose rows are multiplied as keys and as values."""
        return workload.head_dim

    def reduced(self, workload: LatentAttention, tile: TileShape, side: int, depth: int) -> LatentAttention:
        heads = min(workload.heads, side * tile.bm)
        queries, keys = max(1, min(workload.queries, side * tile.bm // heads)), min(workload.keys, side * tile.bn)
        queries = min(queries, keys) if workload.causal else queries
        return replace(workload, queries=queries, keys=keys, heads=heads, batch=1, name="")

    def named_program(
        self, workload: LatentAttention, schedule: AttentionSchedule, config: KernelConfig, residual: bool
    ) -> Program:
        kernel = LatentKernel(workload, config.tile.bm, config.tile.bn)
        return Program(kernel.layout, attention_groups(kernel, schedule, config.sms, config.wave_blocks))

    def notes(self, residual: bool) -> tuple[str, ...]:
        return (
            "a modelled kernel that loads a tile of KV once for both products, with the walks of FlashAttention-2, -3 "
            "and FlashDecoding; no figure is one of those programs' or FlashMLA's",
        )


LATENT = LatentFamily()

r"""A feed-forward network, Y := act(X W1) W2, or gated.

**FFN**: a chain with :math:`m` = tokens, :math:`k` = d_model, :math:`f` = hidden, :math:`l` = d_out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from pebble.bounds import Accounting, Chain, Formula, Grid, chain_uses
from pebble.bounds.published import chain_formula
from pebble.cdag.catalogue import DagFamily
from pebble.cdag.products import ffn_dag
from pebble.errors import InputError
from pebble.families.family import KernelFamily
from pebble.families.schedules import Explicit, OnSms
from pebble.families.spaces.ffn import FfnSpace
from pebble.models.kernel_fit import KernelNeeds
from pebble.schedules.explicit.dataflow import Cores
from pebble.schedules.explicit.dataflow_search import Cost, ffn_flows
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.schedules.explicit.flow import Flow
from pebble.schedules.explicit.parallel_chain import best_ffn_on_sms
from pebble.schedules.ffn import FfnKernel, FfnSchedule, all_ffn_schedules, ffn_groups, in_clusters, parse_ffn_schedule
from pebble.schedules.kernel import InClusters
from pebble.schedules.tables.own import OwnSchedule
from pebble.schedules.tile import TileShape, cut_sides
from pebble.simulation import KernelConfig
from pebble.traces.program import Program
from pebble.units import ceil_div
from pebble.workloads import Ffn
from pebble.workloads.parameters import flag, needed, optional
from pebble.workloads.widths import FastMemory, Widths


class FfnFamily(KernelFamily[Ffn, FfnSchedule]):
    """``ffn``."""

    name = "ffn"
    shape = Ffn
    computes = "Y := act(X W1) W2; --gated: (act(X Wg) * X Wu) W2"
    example = "ffn --tokens 8192 --d-model 4096 --hidden 11008"
    parameters = (
        *needed(tokens="rows of X and Y", d_model="columns of X", hidden="columns of the hidden layer"),
        *optional(d_out="columns of Y (d-model)"),
        flag("--gated", "gate and up products (SwiGLU)"),
    )
    chained = True
    has_residual = True
    space = FfnSpace()
    rounds_partial_sums = True  # where the hidden layer is split, Y is written and read again between the parts
    schedules_help = (
        "separate:ORDER, row-fused-R, row-fused-R-split-S, row-fused-R-flags, interleaved-R, interleaved-R-P:Q(-dsmem)"
    )
    baseline = ("separate:row", "separate:grouped-8", "row-fused-16")
    advised = (
        "separate:grouped-8+sawtooth",
        "separate:deepgemm+sawtooth",
        "row-fused-16+sawtooth",
        "row-fused-16-split-2",
    )
    library = ("cuBLAS", "separate:cutlass3-8")

    def chain(self, workload: Ffn) -> Chain:
        """Its two products."""
        m, f = workload.tokens, workload.hidden
        return Chain(m, workload.d_model, f, workload.d_out, m * f, workload.gated)

    def accounting(self, workload: Ffn) -> Accounting:
        chain = self.chain(workload)
        return Accounting(
            workload,
            chain_uses(chain, Grid.full(chain.m, chain.k, chain.f, chain.l, chain.gated)),
            chain=chain,
            game="$H := \\mathrm{act}(A B)$ and $Y := H D$ with $A$ ($m \\times k$), $B$ ($k \\times f$), $D$ ($f "
            "\\times l$), multiply-adds in any order; $H$ need never be in slow memory",
            symbols={"m": chain.m, "k": chain.k, "f": chain.f, "l": chain.l},
        )

    def published(self, workload: Ffn, capacity: int, processors: int = 1) -> tuple[Formula, ...]:
        known = () if workload.gated else (chain_formula(workload.multiply_adds, capacity),)
        return *super().published(workload, capacity), *known

    def best_schedule(self, workload: Ffn, memory: FastMemory) -> Explicit | None:
        return best_ffn_schedule(workload, memory)

    def dataflows(self, workload: Ffn, cores: Cores, widths: Widths, cost: Cost) -> list[Flow]:
        return ffn_flows(workload, cores, widths, cost)

    def best_on_sms(self, workload: Ffn, sms: int, capacity: int, omega: Fraction, group: int) -> OnSms:
        return best_ffn_on_sms(workload, sms, capacity, omega, group)

    @property
    def dag(self) -> DagFamily:
        example = "--tokens 2 --d-model 2 --hidden 2"
        return self.dag_of(ffn_dag, "tokens x d-model x hidden x d-out", example, "act(X W1) W2, or gated")

    def cut_tile(self, tile: TileShape, workload: Ffn) -> TileShape:
        return TileShape(min(tile.bm, workload.tokens), tile.bn, tile.bk)

    def all_schedules(self, workload: Ffn, tile: TileShape) -> Sequence[FfnSchedule]:
        return all_ffn_schedules(workload, tile)

    def parse_schedule(self, text: str) -> FfnSchedule:
        result = parse_ffn_schedule(text)
        if result.dsmem:
            raise InputError(
                f"schedule {result.name}: H stays in shared memory, which is not counted here; ask `pebble time`, or "
                "leave -dsmem out."
            )
        return result

    def parse_timed(self, text: str) -> FfnSchedule:
        return parse_ffn_schedule(text)

    def kernel_needs(self, workload: Ffn, tile: TileShape, stages: int = 1) -> KernelNeeds:
        """Of the first GEMM, which needs more: a tile of gate and one of up, and the tiles of X and both weights."""
        ups = workload.up_products
        return KernelNeeds(ups * tile.bm * tile.bn, 0, tile.bk * (tile.bm + ups * tile.bn), stages, workload.in_bytes)

    def k_tile(self, workload: Ffn, tile: TileShape) -> tuple[int, int, bool]:
        return tile.bn * workload.up_products, tile.bk, False

    def reduced(self, workload: Ffn, tile: TileShape, side: int, depth: int) -> Ffn:
        hidden_side = max(1, tile.bn // workload.up_products)  # a block of a gated network computes gate and up tiles
        f, wide, out = workload.hidden, workload.d_model, workload.d_out
        longest = max(ceil_div(workload.tokens, tile.bm), ceil_div(f, hidden_side))
        sides = (workload.tokens, tile.bm), (f, tile.bn), (wide, tile.bn), (out, tile.bn)
        tokens, f, wide, out = cut_sides(side, *sides, longest=longest)
        return replace(workload, tokens=tokens, hidden=f, d_model=wide, d_out=out, name="")

    def named_program(self, workload: Ffn, schedule: FfnSchedule, config: KernelConfig, residual: bool) -> Program:
        kernel = FfnKernel(workload, config.tile, residual=residual)
        return Program(kernel.layout, ffn_groups(kernel, schedule, config.wave_blocks))

    def in_clusters(
        self, workload: Ffn, schedule: FfnSchedule | OwnSchedule, config: KernelConfig
    ) -> InClusters | None:
        if not (isinstance(schedule, FfnSchedule) and schedule.dsmem):
            return None
        return in_clusters(FfnKernel(workload, config.tile), schedule, config.wave_blocks)

    def loops(self, workload: Ffn, tile: TileShape) -> Sequence[tuple[int, int]]:
        down = ceil_div(workload.tokens, tile.bm)
        sides = (workload.d_model, workload.hidden), (workload.hidden, workload.d_out)
        return [(ceil_div(k, tile.bk), down * ceil_div(n, tile.bn)) for k, n in sides]

    def notes(self, residual: bool) -> tuple[str, ...]:
        written = "H left dirty in the cache is counted as written, though nobody needs it"
        again = "the residual input is read again; the bound does without that and stays valid"
        return (written, again) if residual else (written,)


FFN = FfnFamily()

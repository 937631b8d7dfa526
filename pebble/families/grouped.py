r"""A batch of matrix products, or the experts of a mixture: independent products that share their widths.

**Groups of products**: each is a part by itself, a box :math:`m_g \times n \times k` accounted for as one GEMM. No
value is handed over, so the parts add up whatever the interleaving, and recomputation does not help.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace

from pebble.bounds import Accounting, WorkloadPart
from pebble.cdag.catalogue import DagFamily
from pebble.cdag.products import grouped_dag
from pebble.families.family import KernelFamily
from pebble.families.gemm import GEMM
from pebble.families.schedules import Explicit, in_turn
from pebble.families.spaces.gemm import GroupedSpace
from pebble.models.kernel_fit import KernelNeeds
from pebble.schedules.explicit.dataflow import Cores
from pebble.schedules.explicit.dataflow_search import Cost, grouped_flows
from pebble.schedules.explicit.flow import Flow
from pebble.schedules.grouped import GroupedKernel
from pebble.schedules.orders import TileOrder, all_schedules, parse_order
from pebble.schedules.tables.own import OwnSchedule
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.traces.program import Program
from pebble.units import ceil_div
from pebble.workloads import Gemm, GroupedGemm
from pebble.workloads.parameters import Parameter, flag, needed
from pebble.workloads.widths import FastMemory, Widths


class GroupedFamily(KernelFamily[GroupedGemm, TileOrder]):
    """``grouped``, and ``gemm --batch``."""

    name = "grouped"
    shape = GroupedGemm
    computes = "C_g := A_g B_g for groups of --rows each, such as experts; `gemm --batch N` for equal ones"
    example = "grouped --rows 512,384,1024,128 -n 4096 -k 7168"
    parameters = (
        Parameter("--rows", "counts", "rows of each group, such as the tokens of each expert", required=True),
        *needed(n="columns of every B and C", k="columns of every A"),
        flag("--accumulate-into", "C += A B, C is read as well as written", "accumulate"),
    )
    recompute_helps = False
    schedules_help = "the orders of `pebble schedules`, in each group, one group after the other"
    baseline = ("row", "grouped-8")
    advised = ("deepgemm", "grouped-8+sawtooth")
    space = GroupedSpace()
    library = ("CUTLASS", "cutlass3-8")

    def words(self, workload: GroupedGemm) -> list[str]:
        """A batch as one: hundreds of equal numbers are no command."""
        if len(set(workload.rows)) > 1 or len(workload.rows) == 1:
            return super().words(workload)
        one = GEMM.words(workload.gemms[0])
        return [*one, "--batch", str(len(workload.rows))]

    def accounting(self, workload: GroupedGemm) -> Accounting:
        parts = [product_part(f"m={gemm.m}", gemm, count) for gemm, count in Counter(workload.gemms).items()]
        return Accounting(
            workload,
            parts=tuple(parts),
            game="$C_g$ ($m_g \\times n$) $:= A_g$ ($m_g \\times k$) $B_g$ ($k \\times n$) for every group $g$, "
            "one multiply-add per triple, in any order",
            symbols={"n": workload.n, "k": workload.k, "groups": len(workload.rows)},
            fresh=self.accounting(replace(workload, accumulate=False)) if workload.accumulate else None,
        )

    def best_schedule(self, workload: GroupedGemm, memory: FastMemory) -> Explicit | None:
        sizes = Counter(workload.gemms)
        return in_turn(((f"m={g.m}", GEMM.best_schedule(g, memory), n) for g, n in sizes.items()), memory)

    def dataflows(self, workload: GroupedGemm, cores: Cores, widths: Widths, cost: Cost) -> list[Flow]:
        return grouped_flows(workload, cores, widths, cost)

    @property
    def dag(self) -> DagFamily:
        return self.dag_of(grouped_dag, "m x n x k", "--rows 2,1 -n 2 -k 1", "C_g := A_g B_g for each group")

    def cut_tile(self, tile: TileShape, workload: GroupedGemm) -> TileShape:
        return TileShape(min(tile.bm, max(workload.rows)), min(tile.bn, workload.n), min(tile.bk, workload.k))

    def sm_intensity(self, workload: GroupedGemm, tile: TileShape) -> float:
        return tile.operations_per_byte(workload.in_bytes)

    def all_schedules(self, workload: GroupedGemm, tile: TileShape) -> Sequence[TileOrder]:
        return all_schedules()

    def parse_schedule(self, text: str) -> TileOrder:
        return parse_order(text)

    def kernel_needs(self, workload: GroupedGemm, tile: TileShape, stages: int = 1) -> KernelNeeds:
        """Those of one product."""
        return GEMM.kernel_needs(workload.gemms[0], tile, stages)

    def advised_needs(self, workload: GroupedGemm, tile: TileShape, stages: int = 1) -> KernelNeeds:
        """Those of one product."""
        return GEMM.advised_needs(workload, tile, stages)

    def named_program(
        self, workload: GroupedGemm, schedule: TileOrder, config: KernelConfig, residual: bool
    ) -> Program:
        kernel = GroupedKernel(workload, config.tile)
        return Program(kernel.layout, [kernel.group(schedule, config.wave_blocks, config.order_params)])

    def walk(self, workload: GroupedGemm, schedule: TileOrder | OwnSchedule, config: KernelConfig) -> Hashable:
        if isinstance(schedule, OwnSchedule):
            return super().walk(workload, schedule, config)
        walks = GroupedKernel(workload, config.tile).walks(schedule, config.order_params)
        return hashlib.sha256(b"".join(tiles.tobytes() for tiles in walks.values())).digest(), schedule.sawtooth

    def loops(self, workload: GroupedGemm, tile: TileShape) -> Sequence[tuple[int, int]]:
        tiles = ceil_div(workload.n, tile.bn) * sum(ceil_div(rows, tile.bm) for rows in workload.rows)
        return ((ceil_div(workload.k, tile.bk), tiles),)

    def check(self, workload: GroupedGemm, config: KernelConfig) -> None:
        GroupedKernel(workload, config.tile)


def product_part(name: str, gemm: Gemm, count: int) -> WorkloadPart:
    """Equal products, each by itself."""
    return WorkloadPart(name, GEMM.accounting(gemm).uses, gemm.compulsory_elements, count)


GROUPED = GroupedFamily()

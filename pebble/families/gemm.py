r"""One matrix product, C := A B or C += A B.

**GEMM**, :math:`C := A B`: one box :math:`m \times n \times k`, all cells stored, with and without recomputation;
:math:`C \mathrel{+}= A B` begins none of them free, so its :math:`mn` stores come on top.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pebble.bounds import Accounting, Formula, product_uses
from pebble.bounds.memories import busiest_sm_elements
from pebble.bounds.published import compulsory_formula, product_formulas, words_per_processor
from pebble.cdag.catalogue import DagFamily
from pebble.cdag.products import gemm_dag
from pebble.errors import InputError
from pebble.families.family import KernelFamily
from pebble.families.schedules import BALANCED, Explicit, OnSms
from pebble.families.spaces.gemm import GemmSpace
from pebble.game.buffer_model import BufferModel
from pebble.models.caches import parse_policy
from pebble.models.kernel_fit import KernelNeeds
from pebble.models.tile_model import tile_needs
from pebble.schedules.explicit import best_gemm_schedule
from pebble.schedules.explicit.dataflow import Cores
from pebble.schedules.explicit.dataflow_search import Cost, gemm_flows
from pebble.schedules.explicit.flow import Flow
from pebble.schedules.explicit.parallel import ParallelSchedule, best_parallel_schedule
from pebble.schedules.gemm import GemmKernel
from pebble.schedules.orders import TileOrder, all_schedules, parse_order
from pebble.schedules.tables.own import OwnSchedule
from pebble.schedules.tile import TileShape, cut_sides
from pebble.simulation import KernelConfig, Traffic
from pebble.traces import LINE_BYTES
from pebble.traces.program import Group, Program
from pebble.workloads import Gemm, GroupedGemm
from pebble.workloads.grouped import MAX_GROUPS
from pebble.workloads.parameters import flag, needed, optional
from pebble.workloads.widths import FastMemory, Widths
from pebble.workloads.workload import Workload

_CLUSTERS = (2, 4, 8, 16)


class GemmFamily(KernelFamily[Gemm, TileOrder]):
    """``gemm``."""

    name = "gemm"
    shape = Gemm
    computes = "C := A B; --accumulate-into makes it C += A B"
    example = "gemm -m 8192 -n 8192 -k 8192"
    parameters = (
        *needed(m="rows of A and C", n="columns of B and C", k="columns of A, rows of B"),
        *optional(batch="independent products of these sizes (1)"),
        flag("--accumulate-into", "C += A B, C is read as well as written", "accumulate"),
    )
    recompute_helps = False
    schedules_help = "the orders of `pebble schedules`"
    baseline = ("row", "grouped-8")
    advised = ("deepgemm", "grouped-8+sawtooth", "deepgemm+sawtooth")  # groups of 8 or 16
    # ten products on an H200: cuBLAS takes 0.94 to 1.01 times what is modelled of this walk (docs/tile.rst)
    library = ("cuBLAS", "cutlass3-8")
    timed = True
    one_product = True
    space = GemmSpace()

    def make(self, batch: int = 1, m: int = 0, **values: Any) -> Workload:
        if batch > 1:
            if batch > MAX_GROUPS:
                raise InputError(f"--batch: got {batch}, expected at most {MAX_GROUPS} products.")
            return GroupedGemm((m,) * batch, **values)
        return Gemm(m, **values)

    def accounting(self, workload: Gemm) -> Accounting:
        m, n, k = workload.m, workload.n, workload.k
        sizes = {"m": m, "n": n, "k": k}
        return Accounting(
            workload,
            product_uses(m, n, k, workload.accumulate),
            game="$C$ ($m \\times n$) $:= A$ ($m \\times k$) $B$ ($k \\times n$), one multiply-add $C_{ij} "
            "\\mathrel{+}= A_{il} B_{lj}$ per triple $(i, j, l)$, in any order",
            symbols=sizes,
            instance={**sizes, "accumulate_into": workload.accumulate},
            fresh=self.accounting(replace(workload, accumulate=False)) if workload.accumulate else None,
        )

    def published(self, workload: Gemm, capacity: int, processors: int = 1) -> tuple[Formula, ...]:
        note = "every input is read and every output written at least once"
        known = product_formulas(workload.m, workload.n, workload.k, workload.accumulate, capacity, processors)
        return compulsory_formula(workload.compulsory_elements, note), *known

    def best_schedule(self, workload: Gemm, memory: FastMemory) -> Explicit:
        return best_gemm_schedule(workload, memory)

    def best_on_sms(self, workload: Gemm, sms: int, capacity: int, omega: Fraction, group: int) -> OnSms:
        return best_parallel_schedule(workload, sms, capacity, omega, group, atomic=workload.accumulate)

    def dataflows(self, workload: Gemm, cores: Cores, widths: Widths, cost: Cost) -> list[Flow]:
        return gemm_flows(workload, cores, widths, cost)

    def busiest_sm(self, workload: Gemm, capacity: int, sms: int) -> dict[str, int]:
        words, regime = words_per_processor(workload.m, workload.n, workload.k, sms)
        return {
            "busiest_elements_at_least": busiest_sm_elements(self.accounting(workload), capacity, sms),
            "memory_independent_words": words,
            "memory_independent_regime": regime,
        }

    def best_multicast(self, workload: Gemm, sms: int, capacity: int, multicast: int) -> ParallelSchedule:
        return best_parallel_schedule(
            workload, sms, capacity, largest_cluster=multicast, multicast=True, atomic=workload.accumulate
        )

    def more_in_buffers(
        self, workload: Gemm, capacity: int, buffers: BufferModel, tile: TileShape
    ) -> Iterator[tuple[str, OnSms]]:
        """The best within clusters of each size, and one tile per SM at a time, alone or in clusters."""
        sms, reach, connected = buffers.sms, buffers.net.group, buffers.kind == "connected"
        atomic = workload.accumulate
        if connected and (reach < sms or buffers.net.uniform):
            for size in (size for size in _CLUSTERS if size < reach):
                best = best_parallel_schedule(workload, sms, capacity, buffers.omega, size, atomic=atomic)
                yield f"{BALANCED}, clusters up to {size}", best
        grid, name = (*tile.grid(workload)[:2], 1), f"tile {tile.bm}x{tile.bn}"
        yield name, ParallelSchedule(workload, sms, capacity, grid, atomic=atomic)
        for rows, cols in ((2, 1), (2, 2), (4, 2), (4, 4)) if connected else ():
            if rows * cols <= reach:
                cluster = ParallelSchedule(workload, sms, capacity, grid, "C", (rows, cols), reach, atomic)
                yield f"{name}, cluster {rows}x{cols}", cluster

    @property
    def dag(self) -> DagFamily:
        return self.dag_of(gemm_dag, "m x n x k", "-m 2 -n 2 -k 3", "C := A B")

    def cut_tile(self, tile: TileShape, workload: Gemm) -> TileShape:
        return tile.cut_to(workload)

    def grid(self, workload: Gemm, tile: TileShape) -> tuple[int, int]:
        return tile.grid(workload)[:2]

    def sm_intensity(self, workload: Gemm, tile: TileShape) -> float:
        return tile.operations_per_byte(workload.in_bytes)

    def all_schedules(self, workload: Gemm, tile: TileShape) -> Sequence[TileOrder]:
        return all_schedules()

    def parse_schedule(self, text: str) -> TileOrder:
        return parse_order(text)

    def kernel_needs(self, workload: Gemm, tile: TileShape, stages: int = 1) -> KernelNeeds:
        """A tile of C, and tiles of A and B."""
        return KernelNeeds(tile.bm * tile.bn, 0, tile.bk * (tile.bm + tile.bn), stages, workload.in_bytes)

    def advised_needs(self, workload: Gemm | GroupedGemm, tile: TileShape, stages: int = 1) -> KernelNeeds:
        """With the output tile, barriers and, for fp8, scales of A."""
        scales = 4 * tile.bm if workload.dtype == "fp8" else 0
        widths = workload.in_bytes, workload.out_bytes
        return tile_needs(tile.bm, tile.bn, tile.bk, stages, widths[0], out_bytes=widths[1], scale_bytes=scales)

    def reduced(self, workload: Gemm, tile: TileShape, side: int, depth: int) -> Gemm:
        rows, cols = cut_sides(side, (workload.m, tile.bm), (workload.n, tile.bn))
        return replace(workload, m=rows, n=cols, k=min(workload.k, depth * tile.bk), name="")

    def named_program(self, workload: Gemm, schedule: TileOrder, config: KernelConfig, residual: bool) -> Program:
        kernel = GemmKernel(workload, config.tile)
        if not (config.execution.is_reference or config.execution.is_asynchronous):
            return kernel.timed(schedule, config.wave_blocks, config.execution, config.order_params)
        tiles = schedule.tiles(*kernel.grid, config.order_params)
        return Program(kernel.layout, [Group([kernel.phase(tiles)], config.wave_blocks, schedule.sawtooth)])

    def simulate(
        self, workload: Gemm, schedule: TileOrder | OwnSchedule, config: KernelConfig, residual: bool = False
    ) -> Traffic:
        """For LRU in lock step in closed form, independent of k."""
        if not isinstance(schedule, OwnSchedule) and config.execution.is_reference:
            kernel = GemmKernel(workload, config.tile)
            tiles = schedule.tiles(*kernel.grid, config.order_params)
            shape = kernel.closed_form(tiles, config.wave_blocks, schedule.sawtooth)
            lines = config.cache_bytes // LINE_BYTES
            counts = None if shape is None else parse_policy(config.policy).closed_form(shape, lines)
            if counts is not None:
                return Traffic(schedule.name, counts)
        return super().simulate(workload, schedule, config, residual)

    def walk(self, workload: Gemm, schedule: TileOrder | OwnSchedule, config: KernelConfig) -> Hashable:
        if config.execution.blocks_in_cluster > 1 or isinstance(schedule, OwnSchedule):
            return super().walk(workload, schedule, config)  # with clusters the order walks another grid
        tiles = schedule.tiles(*GemmKernel(workload, config.tile).grid, config.order_params)
        return hashlib.sha256(tiles.tobytes()).digest(), schedule.sawtooth

    def loops(self, workload: Gemm, tile: TileShape) -> Sequence[tuple[int, int]]:
        rows, cols, steps = tile.grid(workload)
        return ((steps, rows * cols),)

    def check(self, workload: Gemm, config: KernelConfig) -> None:
        GemmKernel(workload, config.tile)


GEMM = GemmFamily()

"""One matrix product, C := A B or C += A B."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

from pebble.cdag.catalogue import DagFamily
from pebble.cdag.gemm import gemm_dag
from pebble.errors import InputError
from pebble.families.base import Explicit, KernelFamily, OnSms
from pebble.models.caches import parse_policy
from pebble.models.kernel_fit import KernelNeeds
from pebble.schedules.explicit import best_gemm_schedule
from pebble.schedules.explicit.parallel_search import best_parallel_schedule
from pebble.schedules.gemm import GemmKernel
from pebble.schedules.orders import TileOrder, all_schedules, parse_order
from pebble.schedules.tables.own import OwnSchedule
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig, Traffic
from pebble.traces import LINE_BYTES, Trace
from pebble.workloads import Gemm, GroupedGemm
from pebble.workloads.base import Workload
from pebble.workloads.grouped import MAX_GROUPS
from pebble.workloads.parameters import flag, needed, optional


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

    def make(self, batch: int = 1, m: int = 0, **values: Any) -> Workload:
        if batch > 1:
            if batch > MAX_GROUPS:
                raise InputError(f"--batch: got {batch}, expected at most {MAX_GROUPS} products.")
            return GroupedGemm((m,) * batch, **values)
        return Gemm(m, **values)

    def best_schedule(self, workload: Gemm, capacity: int) -> Explicit:
        return best_gemm_schedule(workload, capacity)

    def best_on_sms(self, workload: Gemm, sms: int, capacity: int, omega: Fraction, group: int) -> OnSms:
        return best_parallel_schedule(workload, sms, capacity, omega, group)

    @property
    def dag(self) -> DagFamily:
        return self.dag_of(gemm_dag, "m x n x k", "-m 2 -n 2 -k 3", "C := A B")

    def cut_tile(self, tile: TileShape, workload: Gemm) -> TileShape:
        return tile.cut_to(workload)

    def all_schedules(self, workload: Gemm, tile: TileShape) -> Sequence[TileOrder]:
        return all_schedules()

    def parse_schedule(self, text: str) -> TileOrder:
        return parse_order(text)

    def kernel_needs(self, workload: Gemm, tile: TileShape, stages: int = 1) -> KernelNeeds:
        """A tile of C, and tiles of A and B."""
        return KernelNeeds(tile.bm * tile.bn, 0, tile.bk * (tile.bm + tile.bn), stages, workload.in_bytes)

    def named_trace(self, workload: Gemm, schedule: TileOrder, config: KernelConfig, residual: bool) -> Trace:
        kernel, slots = GemmKernel(workload, config.tile), config.wave_blocks
        if not config.execution.is_reference:
            return kernel.timed(schedule, slots, config.execution, config.order_params, config.sms)
        tiles = schedule.tiles(*kernel.grid, config.order_params)
        return kernel.lockstep(kernel.phase(tiles), slots, schedule.sawtooth, config.sms)

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

    def check(self, workload: Gemm, config: KernelConfig) -> None:
        GemmKernel(workload, config.tile)


GEMM = GemmFamily()

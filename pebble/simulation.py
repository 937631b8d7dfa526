"""A workload, a schedule and a cache: the traffic that the kernel causes. The one place where all three meet."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pebble.errors import InputError
from pebble.models.caches import CacheCounts, parse_policy
from pebble.schedules.attention import AttentionKernel, AttentionSchedule, attention_trace
from pebble.schedules.execution import LOCKSTEP, Execution
from pebble.schedules.ffn import FfnKernel, FfnSchedule, ffn_trace
from pebble.schedules.gemm import GemmKernel
from pebble.schedules.orders import OrderParams, TileOrder
from pebble.schedules.tile import TileShape, values_held_by_blocks
from pebble.traces import LINE_BYTES, Trace
from pebble.workloads import Attention, Ffn, Gemm

Schedule = TileOrder | FfnSchedule | AttentionSchedule
Kernel = Gemm | Ffn | Attention


@dataclass(frozen=True)
class KernelConfig:
    """How a tiled kernel runs on a GPU.

    Attributes
    ----------
    tile : TileShape
        Block tile, already cut to the problem.
    sms : int
        Streaming multiprocessors.
    blocks_per_sm : int
        Blocks that run at once on each.
    cache_bytes : int
        The cache between the SMs and DRAM.
    policy : str
        Its model, a name that `pebble.models.caches.parse_policy` reads.
    execution : Execution
        How the blocks run in time.
    """

    tile: TileShape
    sms: int
    blocks_per_sm: int
    cache_bytes: int
    policy: str = "lru"
    execution: Execution = LOCKSTEP

    @property
    def wave_blocks(self) -> int:
        """P: blocks that run at once on the chip."""
        return self.sms * self.blocks_per_sm

    @property
    def order_params(self) -> OrderParams:
        """What tile orders need to know of the kernel."""
        return OrderParams(sms=self.sms, tile_m=self.tile.bm, tile_n=self.tile.bn)


@dataclass(frozen=True)
class Traffic:
    """What one schedule moves.

    Attributes
    ----------
    order : str
        Name of the tile order or schedule.
    counts : CacheCounts
        Lines by operand.
    """

    order: str
    counts: CacheCounts

    @property
    def dram_read_bytes(self) -> int:
        """Bytes fetched from DRAM."""
        return sum(self.counts.read_misses) * self.counts.unit_bytes

    @property
    def dram_write_bytes(self) -> int:
        """Bytes written to DRAM, dirty lines at the end included."""
        return sum(self.counts.write_backs) * self.counts.unit_bytes

    @property
    def dram_bytes(self) -> int:
        """Bytes read and written."""
        return self.dram_read_bytes + self.dram_write_bytes

    @property
    def residue_bytes(self) -> int:
        """The part of the writes that was still dirty in the cache at the end."""
        return sum(self.counts.residue) * self.counts.unit_bytes

    @property
    def hit_rate(self) -> float:
        """Lines that needed no fetch over lines touched; a write needs none."""
        return self.counts.hits_lines / self.counts.accesses_lines

    @property
    def both_hit_share(self) -> float:
        """Share of block steps whose A tile and B tile were both in the cache."""
        return self.counts.block_steps_both_hit / max(1, self.counts.block_steps)

    def by_operand(self) -> dict[str, dict[str, int]]:
        """Bytes read and written of each operand."""
        counts = self.counts
        return {
            name: {
                "read_bytes": counts.read_misses[i] * counts.unit_bytes,
                "write_bytes": counts.write_backs[i] * counts.unit_bytes,
            }
            for i, name in enumerate(counts.operand_names)
        }


def held_values(workload: Kernel, config: KernelConfig, stages: int = 1) -> int:
    """Values that the running blocks hold besides the cache."""
    if isinstance(workload, Gemm):
        return values_held_by_blocks(config.tile, config.wave_blocks, stages)
    if isinstance(workload, Ffn):
        return config.wave_blocks * FfnKernel(workload, config.tile).values_held(stages)
    return config.wave_blocks * AttentionKernel(workload, config.tile.bm, config.tile.bn).values_held(stages)


def trace_of(workload: Kernel, schedule: Schedule, config: KernelConfig, residual: bool = False) -> Trace:
    """The trace of one schedule; ``residual``: an FFN reads its input again to add it to the output.

    Raises
    ------
    InputError
        A schedule of another family, or a trace that is too long.
    """
    tile, slots = config.tile, config.wave_blocks
    if isinstance(workload, Gemm) and isinstance(schedule, TileOrder):
        kernel = GemmKernel(workload, tile)
        if not config.execution.is_reference:
            return kernel.timed(schedule, slots, config.execution, config.order_params, config.sms)
        tiles = schedule.tiles(*kernel.grid, config.order_params)
        return kernel.lockstep(kernel.phase(tiles), slots, schedule.sawtooth, config.sms)
    if isinstance(workload, Ffn) and isinstance(schedule, FfnSchedule):
        return ffn_trace(FfnKernel(workload, tile, residual=residual), schedule, slots, config.sms)
    if isinstance(workload, Attention) and isinstance(schedule, AttentionSchedule):
        return attention_trace(workload, schedule, tile.bm, tile.bn, config.sms, config.blocks_per_sm)
    raise InputError(f"schedule: got {schedule.name}, expected one for {workload.label}.")


def walk_key(workload: Kernel, schedule: Schedule, config: KernelConfig) -> str:
    """The same for schedules that make the same trace: a GEMM's tile orders may visit the tiles alike."""
    # with clusters an order walks another grid
    if not isinstance(workload, Gemm) or not isinstance(schedule, TileOrder) or config.execution.blocks_in_cluster > 1:
        return schedule.name
    tiles = schedule.tiles(*GemmKernel(workload, config.tile).grid, config.order_params)
    return f"{hashlib.sha256(tiles.tobytes()).hexdigest()}{'+sawtooth' * schedule.sawtooth}"


def simulate(workload: Kernel, schedule: Schedule, config: KernelConfig, residual: bool = False) -> Traffic:
    """Run the trace of one schedule through the cache.

    Parameters
    ----------
    workload : Gemm, Ffn or Attention
        The problem.
    schedule : TileOrder, FfnSchedule or AttentionSchedule
        What runs when. Of an attention's tile, BM and BN are the rows of a Q and of a KV tile.
    config : KernelConfig
        Tile, SMs, cache and policy.
    residual : bool
        An FFN reads its input again to add it to the output.

    Returns
    -------
    Traffic
        DRAM bytes, by operand. Cost: O(block steps), about 10 ns each; for LRU in lock step in closed form, independent
        of k.

    Raises
    ------
    InputError
        The trace is too long, or the cache smaller than the largest tile.
    """
    if isinstance(workload, Gemm) and isinstance(schedule, TileOrder) and config.execution.is_reference:
        kernel = GemmKernel(workload, config.tile)
        tiles = schedule.tiles(*kernel.grid, config.order_params)
        shape = kernel.closed_form(tiles, config.wave_blocks, schedule.sawtooth)
        policy = parse_policy(config.policy)
        counts = None if shape is None else policy.closed_form(shape, config.cache_bytes // LINE_BYTES)
        if counts is not None:
            return Traffic(schedule.name, counts)
    return simulate_trace(
        schedule.name, trace_of(workload, schedule, config, residual), config.cache_bytes, config.policy
    )  # fmt: skip


def simulate_trace(name: str, trace: Trace, cache_bytes: int, policy: str = "lru") -> Traffic:
    """Run any trace through a cache of ``cache_bytes``; errors as for `simulate`."""
    return Traffic(name, parse_policy(policy).simulate(trace, cache_bytes // LINE_BYTES))

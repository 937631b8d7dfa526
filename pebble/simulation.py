"""A workload, a tile order and a cache: the traffic that the kernel causes. The one place where all three meet."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.models.cache_policy import parse_policy
from pebble.models.caches import CacheCounts, get_policy
from pebble.models.caches.base import LINE_BYTES
from pebble.models.caches.lockstep_lru import LockstepGemm, lockstep_lru
from pebble.schedules.execution import LOCKSTEP, Execution
from pebble.schedules.lockstep import TileShape, check_length, lockstep_trace
from pebble.schedules.lockstep_shape import lockstep_shape
from pebble.schedules.orders import OrderParams, TileOrder
from pebble.schedules.timed import TimedGemm
from pebble.schedules.trace import Trace
from pebble.workloads import Gemm


@dataclass(frozen=True)
class KernelConfig:
    """How a tiled GEMM runs on a GPU.

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
        Its model, a name of `pebble.models.cache_policy`.
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


def simulate_gemm(gemm: Gemm, order: TileOrder, config: KernelConfig) -> Traffic:
    """Run the reference trace of one tile order through the cache.

    Parameters
    ----------
    gemm : Gemm
        The problem.
    order : TileOrder
        Tile order, with or without sawtooth.
    config : KernelConfig
        Tile, SMs, cache and policy.

    Returns
    -------
    Traffic
        DRAM bytes, by operand. Cost: O(block steps), about 10 ns each; for LRU in closed form, independent of k.

    Raises
    ------
    InputError
        The trace is too long, or the cache smaller than the largest tile.
    """
    check_length(gemm, config.tile)  # before a grid of hundreds of millions of tiles is walked
    rows, cols, _ = config.tile.grid(gemm)
    policy = parse_policy(config.policy)
    if not config.execution.is_reference:
        return simulate_trace(order.name, timed_trace(gemm, order, config), config.cache_bytes, config.policy)
    tiles = order.tiles(rows, cols, config.order_params)
    if policy == parse_policy("lru"):
        closed = lockstep_shape(gemm, tiles, config.tile, config.wave_blocks, order.sawtooth)
        counts = lockstep_lru(LockstepGemm(**closed), config.cache_bytes // LINE_BYTES) if closed else None
        if counts is not None:
            return Traffic(order.name, counts)
    granularity = "line" if policy.needs_lines else "auto"
    trace = lockstep_trace(gemm, tiles, config.tile, config.wave_blocks, order.sawtooth, granularity, config.sms)
    return simulate_trace(order.name, trace, config.cache_bytes, config.policy)


def timed_trace(gemm: Gemm, order: TileOrder, config: KernelConfig) -> Trace:
    """The trace of an order under ``config.execution``.

    Raises
    ------
    InputError
        Too many block steps, or a tile that is not whole lines wide.
    """
    kernel = TimedGemm(gemm, order, config.tile, config.wave_blocks, config.execution, config.order_params)
    return kernel.trace(config.sms)


def simulate_trace(name: str, trace: Trace, cache_bytes: int, policy: str = "lru") -> Traffic:
    """Run any trace through a cache of ``cache_bytes``; errors as for `simulate_gemm`."""
    return Traffic(name, get_policy(policy)(trace, cache_bytes // LINE_BYTES))

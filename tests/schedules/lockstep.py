"""The lock-step trace of one order of output tiles."""

from __future__ import annotations

from pebble.schedules.gemm import GemmKernel
from pebble.schedules.grid import Tiles
from pebble.schedules.tile import TileShape
from pebble.traces import Trace
from pebble.workloads import Gemm


def lockstep_trace(
    gemm: Gemm, tiles: Tiles, tile: TileShape, wave_blocks: int, sawtooth: bool = False, sms: int | None = None
) -> Trace:
    """``wave_blocks`` blocks at once, in the order of ``tiles``."""
    kernel = GemmKernel(gemm, tile)
    return kernel.lockstep(kernel.phase(tiles), wave_blocks, sawtooth, sms)

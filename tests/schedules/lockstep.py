"""The lock-step trace of one order of output tiles."""

from __future__ import annotations

from pebble.schedules.gemm import GemmKernel
from pebble.schedules.grid import Tiles
from pebble.schedules.tile import TileShape
from pebble.traces import Trace
from pebble.traces.program import Group, Phase, program_trace
from pebble.workloads import Gemm


def waves(kernel: GemmKernel, phase: Phase, wave_blocks: int, sawtooth: bool = False, sms: int | None = None) -> Trace:
    """The blocks of a phase in waves."""
    return program_trace(kernel.layout, [Group([phase], wave_blocks, sawtooth)], sms)


def lockstep_trace(
    gemm: Gemm, tiles: Tiles, tile: TileShape, wave_blocks: int, sawtooth: bool = False, sms: int | None = None
) -> Trace:
    """``wave_blocks`` blocks at once, in the order of ``tiles``."""
    kernel = GemmKernel(gemm, tile)
    return waves(kernel, kernel.phase(tiles), wave_blocks, sawtooth, sms)

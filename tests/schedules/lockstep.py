"""Lock-step traces of kernels by themselves, one block on each SM."""

from __future__ import annotations

from pebble.schedules.attention import AttentionKernel, attention_groups
from pebble.schedules.attention_names import AttentionSchedule
from pebble.schedules.ffn import FfnKernel, FfnSchedule, ffn_groups
from pebble.schedules.gemm import GemmKernel
from pebble.schedules.tile import Tiles, TileShape
from pebble.traces import Trace
from pebble.traces.program import Group, Phase
from pebble.traces.touches import program_trace
from pebble.workloads import Attention, Gemm


def waves(kernel: GemmKernel, phase: Phase, wave_blocks: int, sawtooth: bool = False, sms: int | None = None) -> Trace:
    """The blocks of a phase in waves."""
    return program_trace(kernel.layout, [Group([phase], wave_blocks, sawtooth)], sms)


def lockstep_trace(
    gemm: Gemm, tiles: Tiles, tile: TileShape, wave_blocks: int, sawtooth: bool = False, sms: int | None = None
) -> Trace:
    """``wave_blocks`` blocks at once, in the order of ``tiles``."""
    kernel = GemmKernel(gemm, tile)
    return waves(kernel, kernel.phase(tiles), wave_blocks, sawtooth, sms)


def attention_trace(attention: Attention, schedule: AttentionSchedule, bm: int, bn: int, sms: int) -> Trace:
    """One schedule, tiles of ``bm`` queries and ``bn`` keys."""
    kernel = AttentionKernel(attention, bm, bn)
    return program_trace(kernel.layout, attention_groups(kernel, schedule, sms, sms), sms)


def ffn_trace(kernel: FfnKernel, schedule: FfnSchedule, wave_blocks: int) -> Trace:
    """One schedule, ``wave_blocks`` blocks at once."""
    return program_trace(kernel.layout, ffn_groups(kernel, schedule, wave_blocks))

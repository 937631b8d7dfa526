"""Attention kernels: FlashAttention in its versions, and three separate kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pebble.bounds import lower_bound, separate_bound
from pebble.comparison.core import Comparison, KernelReport, Progress, Upper, build_comparison
from pebble.models.machine import Machine
from pebble.schedules.attention import AttentionKernel, AttentionSchedule, attention_trace
from pebble.schedules.explicit.attention import best_attention_schedule
from pebble.simulation import KernelConfig, Traffic, simulate_trace
from pebble.workloads import Attention


def simulate_attention(attention: Attention, schedule: AttentionSchedule, config: KernelConfig) -> Traffic:
    """The traffic of one schedule; the tile's BM and BN are the rows of a Q and of a KV tile."""
    trace = attention_trace(attention, schedule, config.tile.bm, config.tile.bn, config.sms, config.blocks_per_sm)
    return simulate_trace(schedule.name, trace, config.cache_bytes, config.policy)


def compare_attention(
    attention: Attention,
    config: KernelConfig,
    schedules: Sequence[AttentionSchedule],
    machine: Machine | None = None,
    stages: int = 1,
    notes: Sequence[str] = (),
    progress: Progress = lambda name: None,
) -> Comparison:
    """Bound an attention and simulate its kernels; parameters as for `compare_orders`."""

    def simulations() -> Iterator[tuple[str, Callable[[], Traffic]]]:
        for schedule in schedules:
            yield schedule.name, lambda s=schedule: simulate_attention(attention, s, config)  # type: ignore[misc]

    def explicit(capacity: int) -> Upper:
        best = best_attention_schedule(attention, capacity)
        return Upper(best.bytes, best.name, best.to_json())

    kernel = AttentionKernel(attention, config.tile.bm, config.tile.bn)
    return build_comparison(
        attention,
        KernelReport(f"{kernel.bm}x{kernel.bn}", config.sms, config.blocks_per_sm, config.cache_bytes, config.policy),
        config.wave_blocks * kernel.values_held(stages),
        lambda capacity: lower_bound(attention, capacity),
        explicit,
        simulations(),
        machine,
        notes,
        progress,
        separate_of=lambda capacity: separate_bound(attention, capacity),
    )

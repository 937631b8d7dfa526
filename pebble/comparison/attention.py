"""Attention kernels: FlashAttention in its versions, and three separate kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pebble.bounds.attention import attention_lower_bound, attention_separate_bound
from pebble.comparison.core import Comparison, KernelReport, Progress, Upper, build_comparison
from pebble.models.machine import Machine
from pebble.schedules.attention import AttentionKernel, AttentionSchedule
from pebble.schedules.explicit.attention import best_attention_schedule
from pebble.simulation import KernelConfig, Traffic, held_values, simulate
from pebble.workloads import Attention


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
            yield schedule.name, lambda s=schedule: simulate(attention, s, config)  # type: ignore[misc]

    def explicit(capacity: int) -> Upper:
        best = best_attention_schedule(attention, capacity)
        return Upper(best.bytes, best.name, best.to_json())

    kernel = AttentionKernel(attention, config.tile.bm, config.tile.bn)
    return build_comparison(
        attention,
        KernelReport(f"{kernel.bm}x{kernel.bn}", config.sms, config.blocks_per_sm, config.cache_bytes, config.policy),
        held_values(attention, config, stages),
        lambda capacity: attention_lower_bound(attention, capacity),
        explicit,
        simulations(),
        machine,
        notes,
        progress,
        separate_of=lambda capacity: attention_separate_bound(attention, capacity),
    )

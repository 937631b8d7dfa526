"""Schedules of a feed-forward network: separate kernels, row-fused bands, producer and consumer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pebble.bounds import lower_bound, separate_bound
from pebble.comparison.core import Comparison, KernelReport, Progress, Upper, build_comparison
from pebble.models.machine import Machine
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.schedules.ffn import FfnKernel, FfnSchedule, ffn_trace
from pebble.simulation import KernelConfig, Traffic, simulate_trace
from pebble.workloads import Ffn


def simulate_ffn(ffn: Ffn, schedule: FfnSchedule, config: KernelConfig, residual: bool = False) -> Traffic:
    """The traffic of one schedule; ``residual`` reads X again to add it to Y."""
    kernel = FfnKernel(ffn, config.tile, residual=residual)
    trace = ffn_trace(kernel, schedule, config.wave_blocks, config.sms)
    return simulate_trace(schedule.name, trace, config.cache_bytes, config.policy)


def compare_ffn(
    ffn: Ffn,
    config: KernelConfig,
    schedules: Sequence[FfnSchedule],
    machine: Machine | None = None,
    stages: int = 1,
    notes: Sequence[str] = (),
    progress: Progress = lambda name: None,
    residual: bool = False,
) -> Comparison:
    """Bound an FFN and simulate its schedules; parameters as for `compare_orders`."""

    def simulations() -> Iterator[tuple[str, Callable[[], Traffic]]]:
        for schedule in schedules:
            yield schedule.name, lambda s=schedule: simulate_ffn(ffn, s, config, residual)  # type: ignore[misc]

    def explicit(capacity: int) -> Upper:
        best = best_ffn_schedule(ffn, capacity)
        return Upper(best.bytes, best.name, best.to_json())

    kernel = FfnKernel(ffn, config.tile)
    notes = [*notes, "H left dirty in the cache is counted as written, though nobody needs it"]
    if residual:
        notes.append("the residual input is read again; the bound does without that and stays valid")
    return build_comparison(
        ffn,
        KernelReport(str(kernel.tile), config.sms, config.blocks_per_sm, config.cache_bytes, config.policy),
        config.wave_blocks * kernel.values_held(stages),
        lambda capacity: lower_bound(ffn, capacity),
        explicit,
        simulations(),
        machine,
        notes,
        progress,
        separate_of=lambda capacity: separate_bound(ffn, capacity),
    )

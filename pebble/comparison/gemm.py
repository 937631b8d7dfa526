"""All tile orders of one GEMM kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pebble.bounds import gemm_lower_bound
from pebble.comparison.core import Comparison, KernelReport, Progress, Upper, build_comparison
from pebble.models.machine import Machine
from pebble.schedules.explicit import best_gemm_schedule
from pebble.schedules.orders import TileOrder
from pebble.simulation import KernelConfig, Traffic, held_values, simulate, walk_key
from pebble.workloads import Gemm


def compare_orders(
    gemm: Gemm,
    config: KernelConfig,
    orders: Sequence[TileOrder],
    machine: Machine | None = None,
    stages: int = 1,
    notes: Sequence[str] = (),
    progress: Progress = lambda name: None,
) -> Comparison:
    """Bound a GEMM kernel and simulate its tile orders.

    Parameters
    ----------
    gemm : Gemm
        The problem.
    config : KernelConfig
        Tile, SMs, cache and policy.
    orders : sequence of TileOrder
        What to simulate. Orders that visit the tiles in the same sequence are simulated once.
    machine : Machine, optional
        The GPU, for the chip bound.
    stages : int
        A and B tiles that each block holds, for the trace capacity.
    notes, progress
        As for `build_comparison`.
    """
    seen: dict[str, Traffic] = {}

    def simulated(order: TileOrder) -> Traffic:
        key = walk_key(gemm, order, config)
        if key not in seen:
            seen[key] = simulate(gemm, order, config)
        return replace(seen[key], order=order.name)

    def simulations() -> Iterator[tuple[str, Callable[[], Traffic]]]:
        for order in orders:
            yield order.name, lambda order=order: simulated(order)  # type: ignore[misc]

    def explicit(capacity: int) -> Upper:
        best = best_gemm_schedule(gemm, capacity)
        return Upper(best.bytes, best.name, best.to_json())

    return build_comparison(
        gemm,
        KernelReport(str(config.tile), config.sms, config.blocks_per_sm, config.cache_bytes, config.policy),
        held_values(gemm, config, stages),
        lambda capacity: gemm_lower_bound(gemm, capacity),
        explicit,
        simulations(),
        machine,
        notes,
        progress,
    )

"""All tile orders of one GEMM kernel."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pebble.bounds import lower_bound
from pebble.comparison.core import Comparison, KernelReport, Progress, Upper, build_comparison
from pebble.models.machine import Machine
from pebble.schedules.explicit import best_gemm_schedule
from pebble.schedules.lockstep import check_length, values_held_by_blocks
from pebble.schedules.orders import TileOrder
from pebble.simulation import KernelConfig, Traffic, simulate_gemm
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
    check_length(gemm, config.tile)
    rows, cols, _ = config.tile.grid(gemm)
    seen: dict[tuple[bytes, bool, str], Traffic] = {}
    clusters = config.execution.blocks_in_cluster > 1  # then the order walks another grid

    def simulate(order: TileOrder) -> Traffic:
        tiles = order.tiles(rows, cols, config.order_params)
        key = (hashlib.sha256(tiles.tobytes()).digest(), order.sawtooth, order.name if clusters else "")
        if key not in seen:
            seen[key] = simulate_gemm(gemm, order, config)
        return replace(seen[key], order=order.name)

    def simulations() -> Iterator[tuple[str, Callable[[], Traffic]]]:
        for order in orders:
            yield order.name, lambda order=order: simulate(order)  # type: ignore[misc]

    def explicit(capacity: int) -> Upper:
        best = best_gemm_schedule(gemm, capacity)
        return Upper(best.bytes, best.name, best.to_json())

    return build_comparison(
        gemm,
        KernelReport(str(config.tile), config.sms, config.blocks_per_sm, config.cache_bytes, config.policy),
        values_held_by_blocks(config.tile, config.wave_blocks, stages),
        lambda capacity: lower_bound(gemm, capacity),
        explicit,
        simulations(),
        machine,
        notes,
        progress,
    )

"""All tile orders of one kernel against the proved bound: the arrow from bounds and traffic to a report."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pebble.bounds import LowerBound, gemm_lower_bound
from pebble.capacity import Capacity, cache_capacity, chip_capacity, trace_capacity
from pebble.models.machine import Machine
from pebble.schedules.explicit import ExplicitSchedule, best_gemm_schedule
from pebble.schedules.orders import TileOrder
from pebble.simulation import KernelConfig, Traffic, simulate_gemm
from pebble.units import Size
from pebble.workloads import Gemm


@dataclass(frozen=True)
class Bounded:
    """A capacity and the bound that it gives."""

    capacity: Capacity
    bound: LowerBound


@dataclass(frozen=True)
class Comparison:
    """What ``pebble compare`` found.

    Attributes
    ----------
    gemm : Gemm
    config : KernelConfig
    trace : Bounded
        What the simulated kernel can hold; holds for every order in ``orders``.
    chip : Bounded or None
        Every on-chip store of the GPU, when one was named.
    cache_only : Bounded
        One explicitly managed memory of the cache's size; real kernels may go below it.
    explicit : ExplicitSchedule
        The best schedule under explicit control at the trace capacity.
    orders : tuple of Traffic
        Simulated orders, least traffic first.
    notes : tuple of str
        What a reader must know of the assumptions.
    """

    gemm: Gemm
    config: KernelConfig
    trace: Bounded
    chip: Bounded | None
    cache_only: Bounded
    explicit: ExplicitSchedule
    orders: tuple[Traffic, ...]
    notes: tuple[str, ...]

    def ratio(self, traffic_bytes: int) -> float:
        """Bytes over the trace bound."""
        return traffic_bytes / self.trace.bound.bytes

    @property
    def best_found(self) -> tuple[int, str]:
        """Bytes and name of the best schedule known, explicit or simulated."""
        best = min(self.orders, key=lambda t: t.dram_bytes, default=None)
        if best is not None and best.dram_bytes < self.explicit.bytes:
            return best.dram_bytes, best.order
        return self.explicit.bytes, self.explicit.name

    def to_json(self) -> dict[str, Any]:
        """The document of ``pebble compare --json``."""

        def bounded(one: Bounded) -> dict[str, Any]:
            return {
                "bytes": one.bound.bytes,
                "elements": one.bound.elements,
                "method": one.bound.method,
                "capacity_bytes": one.capacity.bytes,
                "capacity_elements": one.capacity.elements,
                "what": one.capacity.what,
            }

        upper_bytes, upper_name = self.best_found
        best = self.orders[0] if self.orders else None
        return {
            "workload": {"label": self.gemm.label, **self.gemm.to_json()},
            "kernel": {
                "tile": str(self.config.tile),
                "sms": self.config.sms,
                "blocks_per_sm": self.config.blocks_per_sm,
                "cache_bytes": self.config.cache_bytes,
                "policy": self.config.policy,
            },
            "lower_bound": bounded(self.trace),
            "chip_bound": bounded(self.chip) if self.chip else None,
            "cache_only_bound": bounded(self.cache_only),
            "upper_bound": {"bytes": upper_bytes, "schedule": upper_name, "details": self.explicit.to_json()},
            "best_order": {"name": best.order, "dram_bytes": best.dram_bytes} if best else None,
            "schedules": [
                {
                    "name": t.order,
                    "tile": str(self.config.tile),
                    "dram_read_bytes": t.dram_read_bytes,
                    "dram_write_bytes": t.dram_write_bytes,
                    "dram_bytes": t.dram_bytes,
                    "l2_hit_rate": t.hit_rate,
                    "both_tiles_hit_share": t.both_hit_share,
                    "ratio_to_lower_bound": self.ratio(t.dram_bytes),
                    "by_operand": t.by_operand(),
                }
                for t in self.orders
            ],
            "notes": list(self.notes),
        }


def compare_orders(
    gemm: Gemm,
    config: KernelConfig,
    orders: Sequence[TileOrder],
    machine: Machine | None = None,
    stages: int = 1,
    notes: Sequence[str] = (),
    progress: Callable[[str], None] = lambda name: None,
) -> Comparison:
    """Bound the kernel, find the best explicit schedule, simulate every order.

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
    notes : sequence of str
        Carried into the result.
    progress : callable
        Called with each order's name when it is done.

    Returns
    -------
    Comparison
        With the orders that were done, and a note, when interrupted by KeyboardInterrupt.
    """
    cache = Size(config.cache_bytes, None, f"{config.cache_bytes}B")
    capacities = {
        "trace": trace_capacity(config.cache_bytes, gemm, config.tile, config.wave_blocks, stages),
        "cache": cache_capacity(cache, gemm),
    }
    bounded = {name: Bounded(c, gemm_lower_bound(gemm, c.elements)) for name, c in capacities.items()}
    chip = None
    if machine is not None:
        capacity = chip_capacity(machine, gemm)
        chip = Bounded(capacity, gemm_lower_bound(gemm, capacity.elements))
    explicit = best_gemm_schedule(gemm, capacities["trace"].schedule_elements)

    rows, cols, _ = config.tile.grid(gemm)
    done: dict[str, Traffic] = {}
    seen: dict[tuple[bytes, bool], Traffic] = {}
    interrupted = False
    try:
        for order in orders:
            tiles = order.tiles(rows, cols, config.order_params)
            key = (hashlib.sha256(tiles.tobytes()).digest(), order.sawtooth)
            if key not in seen:
                seen[key] = simulate_gemm(gemm, order, config)
            done[order.name] = replace(seen[key], order=order.name)
            progress(order.name)
    except KeyboardInterrupt:
        interrupted = True
    notes = [*notes]
    if interrupted:
        notes.append(f"interrupted after {len(done)} of {len(orders)} orders")
    return Comparison(
        gemm=gemm,
        config=config,
        trace=bounded["trace"],
        chip=chip,
        cache_only=bounded["cache"],
        explicit=explicit,
        orders=tuple(sorted(done.values(), key=lambda t: t.dram_bytes)),
        notes=tuple(notes),
    )

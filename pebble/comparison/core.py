"""What a comparison is, for any family of workloads, and the loop that simulates its schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pebble.bounds import LowerBound
from pebble.capacity import Capacity, cache_capacity, chip_capacity, trace_capacity
from pebble.errors import InputError
from pebble.models.caches import parse_policy
from pebble.models.machine import Machine
from pebble.simulation import Traffic
from pebble.units import Size
from pebble.workloads import Workload

BoundOf = Callable[[int], LowerBound]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Bounded:
    """A capacity and the bound that it gives."""

    capacity: Capacity
    bound: LowerBound

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "bytes": self.bound.bytes,
            "elements": self.bound.elements,
            "method": self.bound.method,
            "capacity_bytes": self.capacity.bytes,
            "capacity_elements": self.capacity.elements,
            "what": self.capacity.what,
        }


@dataclass(frozen=True)
class Upper:
    """The best schedule under explicit control: its bytes, its name, and what it does in detail."""

    bytes: int
    name: str
    details: dict[str, Any]


@dataclass(frozen=True)
class KernelReport:
    """How the simulated kernels run, for titles and JSON.

    Attributes
    ----------
    tile : str
    sms, blocks_per_sm : int
    cache_bytes : int
    policy : str
    """

    tile: str
    sms: int
    blocks_per_sm: int
    cache_bytes: int
    policy: str

    @property
    def wave_blocks(self) -> int:
        """Blocks that run at once."""
        return self.sms * self.blocks_per_sm


@dataclass(frozen=True)
class Comparison:
    """What ``pebble compare`` found.

    Attributes
    ----------
    workload : Workload
    kernel : KernelReport
    trace : Bounded
        What the simulated kernel can hold; holds for every schedule in ``orders``.
    chip : Bounded or None
        Every on-chip store of the GPU, when one was named.
    cache_only : Bounded
        One explicitly managed memory of the cache's size; real kernels may go below it.
    separate : Bounded or None
        For chains: the least when each kernel passes its whole result through memory, at the trace capacity.
    explicit : Upper
        The best schedule under explicit control at the trace capacity.
    orders : tuple of Traffic
        Simulated schedules, least traffic first.
    notes : tuple of str
        What a reader must know of the assumptions.
    complete : bool
        False when the simulation was interrupted.
    """

    workload: Workload
    kernel: KernelReport
    trace: Bounded
    chip: Bounded | None
    cache_only: Bounded
    separate: Bounded | None
    explicit: Upper
    orders: tuple[Traffic, ...]
    notes: tuple[str, ...]
    complete: bool = True

    def ratio(self, traffic_bytes: int) -> float:
        """Bytes over the trace bound."""
        return traffic_bytes / self.trace.bound.bytes

    @property
    def best_band(self) -> Traffic | None:
        """For an FFN: the fused schedule with the least traffic; its name tells the band height."""
        fused = [t for t in self.orders if t.order.startswith("row-fused")]
        return min(fused, key=lambda t: t.dram_bytes, default=None)

    @property
    def best_found(self) -> tuple[int, str]:
        """Bytes and name of the best schedule known, explicit or simulated."""
        best = min(self.orders, key=lambda t: t.dram_bytes, default=None)
        if best is not None and best.dram_bytes < self.explicit.bytes:
            return best.dram_bytes, best.order
        return self.explicit.bytes, self.explicit.name

    def to_json(self) -> dict[str, Any]:
        """The document of ``pebble compare --json``."""
        upper_bytes, upper_name = self.best_found
        best = self.orders[0] if self.orders else None
        kernel = self.kernel
        document = {
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "kernel": {
                "tile": kernel.tile,
                "sms": kernel.sms,
                "blocks_per_sm": kernel.blocks_per_sm,
                "cache_bytes": kernel.cache_bytes,
                "policy": kernel.policy,
            },
            "lower_bound": self.trace.to_json(),
            "chip_bound": self.chip.to_json() if self.chip else None,
            "cache_only_bound": self.cache_only.to_json(),
            "upper_bound": {"bytes": upper_bytes, "schedule": upper_name, "details": self.explicit.details},
            "best_order": {"name": best.order, "dram_bytes": best.dram_bytes} if best else None,
            "schedules": [
                {
                    "name": t.order,
                    "tile": kernel.tile,
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
        band = self.best_band
        if band is not None:
            document["best_band"] = {"name": band.order, "dram_bytes": band.dram_bytes}
        if self.separate is not None:
            document["separate_kernels_bound"] = self.separate.to_json()
        return document


def build_comparison(
    workload: Workload,
    kernel: KernelReport,
    held: int,
    bound_of: BoundOf,
    explicit_of: Callable[[int], Upper],
    simulations: Iterable[tuple[str, Callable[[], Traffic]]],
    machine: Machine | None = None,
    notes: Iterable[str] = (),
    progress: Progress = lambda name: None,
    separate_of: BoundOf | None = None,
) -> Comparison:
    """Bound the kernel, find the best explicit schedule, simulate every schedule.

    Parameters
    ----------
    workload : Workload
        The problem.
    kernel : KernelReport
        How it runs.
    held : int
        Values that all running blocks hold together, for the trace capacity.
    bound_of, separate_of : callable
        Lower bounds for a capacity in elements; ``separate_of`` for kernels that pass everything through memory.
    explicit_of : callable
        The best explicit schedule for a capacity in elements.
    simulations : iterable of (name, callable)
        What to simulate, lazily.
    machine : Machine, optional
        The GPU, for the chip bound.
    notes : iterable of str
        Carried into the result.
    progress : callable
        Called with each name when it is done.

    Returns
    -------
    Comparison
        With what was done by then, and a note, when interrupted by KeyboardInterrupt.
    """
    policy = parse_policy(kernel.policy)
    if policy.warm:
        raise InputError("compare: got a policy with +warm, expected a cold start: the bounds count every first load.")
    # every line once, however many partitions keep it; a memory-side cache holds lines too
    held_bytes = kernel.cache_bytes + policy.last_level_bytes
    cache = cache_capacity(Size(held_bytes, None, f"{held_bytes}B"), workload)
    trace = trace_capacity(held_bytes, workload, held, kernel.wave_blocks)
    chip = None
    if machine is not None:
        capacity = chip_capacity(machine, workload)
        chip = Bounded(capacity, bound_of(capacity.elements))
    trace_bound = Bounded(trace, bound_of(trace.elements))
    explicit = explicit_of(trace.schedule_elements)
    done: list[Traffic] = []
    complete = True
    all_notes = list(notes)
    try:
        for name, simulate in simulations:
            done.append(simulate())
            progress(name)
    except KeyboardInterrupt:
        complete = False
        all_notes.append(f"interrupted after {len(done)} schedule{'s' * (len(done) != 1)}; the rest are missing")
    return Comparison(
        workload=workload,
        kernel=kernel,
        trace=trace_bound,
        chip=chip,
        cache_only=Bounded(cache, bound_of(cache.elements)),
        separate=Bounded(trace, separate_of(trace.elements)) if separate_of else None,
        explicit=explicit,
        orders=tuple(sorted(done, key=lambda t: t.dram_bytes)),
        notes=tuple(all_notes),
        complete=complete,
    )

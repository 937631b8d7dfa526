"""How much the answer moves when its assumptions do: skew between blocks, cache size, which SM sits where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.models.caches import parse_policy
from pebble.models.caches.sm_map import SM_MAPS
from pebble.schedules.execution import parse_execution
from pebble.schedules.orders import TileOrder
from pebble.schedules.tables.own import OwnSchedule
from pebble.simulation import KernelConfig, curve_of
from pebble.traces import LINE_BYTES
from pebble.workloads.workload import Workload

SKEWS = (1, 2, 5, 10, 20)
SEEDS = (0, 1, 2)
SCALES = (0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25)
CLIFF = 0.15  # a change of traffic by this share within 10 % of capacity or 5 % of skew is worth a warning


@dataclass(frozen=True)
class TrafficRange:
    """DRAM bytes under one changed assumption: least and most over the seeds."""

    what: str  #: the changed assumption
    least_bytes: int  #: over the seeds
    most_bytes: int  #: over the seeds

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"what": self.what, "least_bytes": self.least_bytes, "most_bytes": self.most_bytes}


@dataclass(frozen=True)
class Sensitivity:
    """What ``pebble simulate --sensitivity`` adds.

    Attributes
    ----------
    base_bytes : int
        The answer itself.
    skew, capacity, maps : tuple of Moved
        Under skew between blocks, at other cache sizes, and under other SM-to-part maps (partitions and chiplets only).
    warnings : tuple of str
        One sentence for each cliff; empty when the answer is steady.
    """

    base_bytes: int
    skew: tuple[TrafficRange, ...]
    capacity: tuple[TrafficRange, ...]
    maps: tuple[TrafficRange, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "base_bytes": self.base_bytes,
            "skew": [m.to_json() for m in self.skew],
            "capacity": [m.to_json() for m in self.capacity],
            "maps": [m.to_json() for m in self.maps],
            "warnings": list(self.warnings),
        }


def _skewed(
    workload: Workload, order: TileOrder | OwnSchedule, config: KernelConfig, cluster: str
) -> list[TrafficRange]:
    simulate = kernel_family(workload).simulate
    traffic = []
    for skew in SKEWS:
        runs = [
            simulate(workload, order, replace(config, execution=parse_execution(f"dynamic-{skew}", cluster, seed)))
            for seed in SEEDS
        ]
        results = [run.dram_bytes for run in runs]
        traffic.append(TrafficRange(f"skew {skew} %", min(results), max(results)))
    return traffic


def sensitivity(workload: Workload, order: TileOrder | OwnSchedule, config: KernelConfig) -> Sensitivity:
    """Vary the assumptions of one simulation.

    Parameters
    ----------
    workload, order, config
        A GEMM, its order and kernel; the skew starts from dynamic dispatch of the same tiles (clusters kept), the
        capacities from the execution of ``config``.

    Returns
    -------
    Sensitivity
        Cost: some 25 simulations.

    Raises
    ------
    InputError
        Not a GEMM.
    """
    simulate = kernel_family(workload).simulate
    if not kernel_family(workload).timed:
        raise InputError(f"--sensitivity: got {workload.label}, expected a gemm.")
    base = simulate(workload, order, config).dram_bytes
    cluster = "x".join(map(str, config.execution.cluster))
    tiled = config.execution.kind in ("waves", "persistent", "dynamic")
    skew = _skewed(workload, order, config, cluster) if tiled else []
    trace = kernel_family(workload).trace(workload, order, config)
    least = int(trace.tile_lines.max()) * LINE_BYTES
    scaled = [(scale, int(config.cache_bytes * scale) // LINE_BYTES * LINE_BYTES) for scale in SCALES]
    scaled = [(scale, size) for scale, size in scaled if size >= least]
    curve = curve_of(order.name, trace, config.policy, [size // LINE_BYTES for _, size in scaled])
    capacity = [
        TrafficRange(f"cache x {scale:g}", b, b) for (scale, _), b in zip(scaled, curve.dram_bytes, strict=True)
    ]
    maps: list[TrafficRange] = []
    if parse_policy(config.policy).parts > 1:
        plain = config.policy.split("+")
        plain = [part for part in plain if not part.startswith(("map-", "seed-"))]
        for sm_map in SM_MAPS:
            seeds = SEEDS if sm_map == "random" else SEEDS[:1]
            names = ["+".join([*plain, f"map-{sm_map}", f"seed-{seed}"]) for seed in seeds]
            results = [simulate(workload, order, replace(config, policy=name)).dram_bytes for name in names]
            maps.append(TrafficRange(f"SM map {sm_map}", min(results), max(results)))
    return Sensitivity(base, tuple(skew), tuple(capacity), tuple(maps), tuple(_warnings(base, skew, capacity, maps)))


def _warnings(base: int, skew: list[TrafficRange], capacity: list[TrafficRange], maps: list[TrafficRange]) -> list[str]:
    results = []
    near = [m for m in capacity if m.what in ("cache x 0.9", "cache x 0.95", "cache x 1.05", "cache x 1.1")]
    small = [m for m in skew if m.what in ("skew 1 %", "skew 2 %", "skew 5 %")]
    for what, values in (
        ("a cliff of capacity: within 10 % of this cache size", near),
        ("sensitive to skew: with up to 5 % between blocks", small),
        ("sensitive to which SM sits where: with another map", maps),
    ):
        far = max((max(abs(m.least_bytes - base), abs(m.most_bytes - base)) for m in values), default=0) / base
        if far > CLIFF:
            results.append(f"{what} traffic changes by {far:.0%}")
    return results

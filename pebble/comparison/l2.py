"""Schedules of one workload at the boundary between L2 and the SMs, against the proved bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pebble.bounds.base import LowerBound
from pebble.bounds.memories import balanced_share, buffer_lower_bound
from pebble.comparison.sms import OnSms, SharedWork, SmCapacity, best_on_sms
from pebble.game.buffer_model import BufferModel
from pebble.schedules.explicit.parallel import ParallelSchedule
from pebble.schedules.explicit.parallel_search import best_parallel_schedule
from pebble.schedules.lockstep import TileShape
from pebble.workloads import Gemm

_CLUSTERS = (2, 4, 8, 16)


@dataclass(frozen=True)
class L2Comparison:
    """What ``pebble compare --level l2`` found.

    Attributes
    ----------
    workload : Gemm, Ffn or Attention
    capacity : SmCapacity
        Of one SM.
    buffers : BufferModel
    bound, balanced : LowerBound
        Loads + stores + omega * copies.
    schedules : tuple of (str, OnSms)
        Least cost first.
    """

    workload: SharedWork
    capacity: SmCapacity
    buffers: BufferModel
    bound: LowerBound
    balanced: LowerBound
    schedules: tuple[tuple[str, OnSms], ...]

    def to_json(self) -> dict[str, Any]:
        """The document of ``pebble compare --level l2 --json``."""
        omega, sms = self.buffers.omega, self.buffers.sms
        rows = []
        for name, schedule in self.schedules:
            cost = float(schedule.cost_bytes(omega))
            rows.append(
                {
                    "name": name,
                    "schedule": schedule.name,
                    "from_l2_bytes": schedule.l2_read_bytes,
                    "from_other_sms_bytes": schedule.remote_bytes,
                    "to_l2_bytes": schedule.l2_write_bytes,
                    "from_l2_bytes_per_sm": schedule.l2_read_bytes / sms,
                    "from_other_sms_bytes_per_sm": schedule.remote_bytes / sms,
                    "cost_bytes": cost,
                    "imbalance": schedule.imbalance,
                    "ratio_to_lower_bound": cost / self.bound.bytes,
                }
            )
        return {
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "level": "l2",
            "buffers": self.buffers.kind,
            "sms": sms,
            "omega": self.buffers.to_json()["omega"],
            "topology": self.buffers.to_json()["topology"],
            "lower_bound": {"bytes": self.bound.bytes, "capacity_bytes": self.capacity.bytes, "what": "sm"},
            "balanced_bound": {"bytes": self.balanced.bytes},
            "upper_bound": {"bytes": rows[0]["cost_bytes"], "schedule": rows[0]["schedule"]},
            "schedules": rows,
        }


def _candidates(
    workload: SharedWork, capacity: int, buffers: BufferModel, tile: TileShape | None
) -> Iterator[tuple[str, OnSms]]:
    best = best_on_sms(workload, capacity, buffers)
    assert best is not None
    yield "best", best
    if buffers.kind == "connected":
        local = best_on_sms(workload, capacity, BufferModel("sm-local", buffers.sms))
        assert local is not None
        yield "best without copies", local
    if not isinstance(workload, Gemm):
        return
    sms, reach = buffers.sms, buffers.net.group
    if buffers.kind == "connected" and (reach < sms or buffers.net.uniform):
        for size in _CLUSTERS:
            if size < reach:
                yield (
                    f"best, clusters up to {size}",
                    best_parallel_schedule(workload, sms, capacity, buffers.omega, size),
                )
    if tile is not None:
        grid = (-(-workload.m // tile.bm), -(-workload.n // tile.bn), 1)
        yield f"tile {tile.bm}x{tile.bn}", ParallelSchedule(workload, sms, capacity, grid)
        if buffers.kind == "connected":
            for shape in ((2, 1), (2, 2), (4, 2), (4, 4)):
                if shape[0] * shape[1] <= reach:
                    name = f"tile {tile.bm}x{tile.bn}, cluster {shape[0]}x{shape[1]}"
                    yield name, ParallelSchedule(workload, sms, capacity, grid, "C", shape, reach)


def compare_at_l2(
    workload: SharedWork, capacity: SmCapacity, buffers: BufferModel, tile: TileShape | None = None
) -> L2Comparison:
    """Bound a workload at the L2-to-SM boundary and count what schedules move there.

    Parameters
    ----------
    workload : Gemm, Ffn or Attention
    capacity : SmCapacity
        Of one SM.
    buffers : BufferModel
        ``sm-local`` or ``connected``.
    tile : TileShape, optional
        A GEMM kernel of these output tiles beside the best grids, alone and in clusters.
    """
    share = balanced_share(workload, buffers.sms)
    found: dict[str, tuple[str, OnSms]] = {}
    for name, schedule in _candidates(workload, capacity.schedule_elements, buffers, tile):
        found.setdefault(schedule.name, (name, schedule))
    return L2Comparison(
        workload,
        capacity,
        buffers,
        buffer_lower_bound(workload, capacity.elements, buffers),
        buffer_lower_bound(workload, capacity.elements, buffers, share),
        tuple(sorted(found.values(), key=lambda pair: pair[1].cost_bytes(buffers.omega))),
    )

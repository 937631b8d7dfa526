"""One trace at many capacities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pebble.errors import InputError
from pebble.models.cache_policy import parse_policy
from pebble.models.caches import cache_model
from pebble.models.caches.base import LINE_BYTES
from pebble.models.caches.lru_curve import lru_curve
from pebble.models.caches.opt_curve import opt_curve
from pebble.schedules.trace import Trace


@dataclass(frozen=True)
class ScheduleCurve:
    """One schedule's DRAM bytes at each capacity of the report."""

    name: str
    read_bytes: tuple[int, ...]
    write_bytes: tuple[int, ...]

    @property
    def dram_bytes(self) -> tuple[int, ...]:
        """Bytes read and written."""
        return tuple(r + w for r, w in zip(self.read_bytes, self.write_bytes, strict=True))


def curve_of(name: str, trace: Trace, policy: str, capacities_lines: Sequence[int]) -> ScheduleCurve:
    """DRAM bytes at each capacity: LRU and OPT from one curve, other policies by one simulation each.

    Raises
    ------
    InputError
        A capacity below the largest tile.
    """
    parsed = parse_policy(policy)
    least = int(trace.tile_lines.max())
    if min(capacities_lines) < least:
        raise InputError(
            f"curve: got a capacity of {min(capacities_lines) * LINE_BYTES} bytes, expected at least "
            f"{least * LINE_BYTES}, the largest tile."
        )
    if parsed == parse_policy("lru"):
        curve = lru_curve(trace)
        found = [curve.at(capacity) for capacity in capacities_lines]
        moved = [(read, back) for read, _, back in found]
    elif parsed == parse_policy("opt") and _writes_once(trace):
        # each written line is a miss and a write-back, whatever the capacity
        written = int(trace.tile_lines[_written(trace)].sum())
        misses = opt_curve(trace, max(capacities_lines))
        moved = [(misses.at(capacity) - written, written) for capacity in capacities_lines]
    else:
        counts = [cache_model(parsed)(trace, capacity) for capacity in capacities_lines]
        moved = [
            (sum(c.read_misses) * c.unit_bytes // LINE_BYTES, sum(c.write_backs) * c.unit_bytes // LINE_BYTES)
            for c in counts
        ]
    return ScheduleCurve(name, *(tuple(value * LINE_BYTES for value in part) for part in zip(*moved, strict=True)))


def _written(trace: Trace) -> np.ndarray[Any, np.dtype[np.bool_]]:
    written = np.zeros(len(trace.tile_lines), bool)
    for chunk in trace.chunks():
        written[chunk.ids[chunk.ops == 1]] = True
    return written


def _writes_once(trace: Trace) -> bool:
    """Whether every written tile is touched that one time only."""
    touched = np.zeros(len(trace.tile_lines), np.int64)
    for chunk in trace.chunks():
        touched += np.bincount(chunk.ids, minlength=len(touched))
    return bool(np.all(touched[_written(trace)] == 1))

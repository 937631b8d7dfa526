"""What sets the floor on time, and how long DRAM is busy with the bytes of a schedule alone, in one line."""

from __future__ import annotations

from collections.abc import Mapping

from pebble.timing.floor import TimeFloor
from pebble.units import format_seconds

_WORDS = {"operations": "compute-bound", "dram": "DRAM-bound", "l2": "L2-bound"}
_NEEDS = {"operations": "operations need", "dram": "DRAM needs", "l2": "L2 needs"}


def verdict_of_bound(floor: TimeFloor, best_bytes: int | None = None) -> str:
    """Of a bound: what sets the floor, and what DRAM needs for a schedule that moves ``best_bytes``."""
    return _verdict(floor, {} if best_bytes is None else {"the best schedule known": best_bytes})


def verdict_of_orders(floor: TimeFloor, traffic: Mapping[str, int]) -> str:
    """Of simulated orders: what sets the floor, and what DRAM needs for those that move most and least.

    The floor is the same whatever orders are compared; how long one takes is not said, only what its bytes take.

    Parameters
    ----------
    floor : TimeFloor
    traffic : mapping of str to int
        Bytes to and from DRAM of each order.
    """
    if len(traffic) < 2:
        return _verdict(floor, traffic)
    most, least = max(traffic, key=lambda name: traffic[name]), min(traffic, key=lambda name: traffic[name])
    took = [format_seconds(floor.dram_seconds(traffic[name]) or 0.0, floor.seconds) for name in (most, least)]
    if took[0] == took[1]:  # to three digits
        return _verdict(floor, {"every schedule": traffic[most]})
    return _verdict(floor, {f"{most}, which moves most": traffic[most], f"{least}, which moves least": traffic[least]})


def _verdict(floor: TimeFloor, traffic: Mapping[str, int]) -> str:
    """Which part is the floor, what the next needs of it, and DRAM for schedules told with ``moved``, their bytes."""
    times = {part.name: part.seconds for part in floor.parts}
    if not times:
        return ""
    longest = max(times, key=lambda name: times[name])
    word = ("" if "operations" in times else "of what is known ") + _WORDS[longest]
    schedules = {who: took for who, count in traffic.items() if (took := floor.dram_seconds(count)) is not None}
    unit_of = max(times[longest], *schedules.values(), 0)

    def of_the_floor(name: str) -> str:
        value, unit = format_seconds(times[name], unit_of).split()
        return f"{_NEEDS[name]} {value} {unit} of {bare(times[longest])}"

    def bare(seconds: float) -> str:
        return format_seconds(seconds, unit_of).split()[0]

    other = next((name for name in ("dram", "operations", "l2") if name in times and name != longest), None)
    parts = [] if other is None else [of_the_floor(other)]
    if schedules:
        if other != "dram":
            parts.append(f"DRAM needs {format_seconds(times['dram'], unit_of)}")
        parts[-1] += " at the bound, " + ", ".join(f"{bare(took)} with {who}" for who, took in schedules.items())
    return f"{word}: {'; '.join(parts)}" if parts else word

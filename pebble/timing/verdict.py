"""What sets the time, and what an order can win at most, in one line."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from pebble.timing.floor import TimeFloor
from pebble.units import format_seconds

_NEEDS = {"operations": "operations need", "dram": "DRAM needs", "l2": "L2 needs"}


def _percent(share: float) -> str:
    """A share rounded up, so that "no more than" stays true."""
    return f"{ceil(share * 1000 - 1e-9) / 10:g} %"


def _what_binds(floor: TimeFloor, dram_seconds: float | None = None) -> str:
    """Compute-bound or not, and what the next part needs of that time; ``dram_seconds`` where it is not the bound's."""
    times = {part.name: part.seconds for part in floor.parts}
    if dram_seconds is not None and "dram" in times:
        times["dram"] = max(times["dram"], dram_seconds)
    longest = max(times, key=lambda name: times[name])
    word = {"operations": "compute-bound", "dram": "DRAM-bound", "l2": "L2-bound"}[longest]
    if "operations" not in times:
        word = f"of what is known {word}"
    other = next((name for name in ("dram", "operations", "l2") if name in times and name != longest), None)
    if other is None:
        return word
    whole = format_seconds(times[longest])
    value, unit = format_seconds(times[other], times[longest]).split()
    return f"{word}: {_NEEDS[other]} {value} {unit} of {whole.removesuffix(f' {unit}')}"


def verdict_of_bound(floor: TimeFloor, best_bytes: int | None = None) -> str:
    """Of a bound: what binds, and what an order can save over a schedule that moves ``best_bytes``."""
    if not floor.parts:
        return ""
    if best_bytes is None or floor.part("dram") is None:
        return _what_binds(floor)
    saved = _percent(floor.saving(best_bytes))
    return f"{_what_binds(floor)}; no order saves more than {saved} over the best schedule known"


def verdict_of_orders(floor: TimeFloor, moved: Mapping[str, int]) -> str:
    """Of simulated orders: what binds, what the choice among them saves, and what none can.

    Parameters
    ----------
    floor : TimeFloor
    moved : mapping of str to int
        Bytes to and from DRAM of each order.
    """
    if not floor.parts or not moved or floor.part("dram") is None:
        return _what_binds(floor) if floor.parts else ""
    most, least = max(moved, key=lambda name: moved[name]), min(moved, key=lambda name: moved[name])
    slow, fast = floor.with_dram(moved[most]), floor.with_dram(moved[least])
    binds = _what_binds(floor, floor.dram_seconds(moved[most]))
    which = f" with {most}, which moves most" if len(moved) > 1 else f" with {most}"
    if slow == fast == floor.seconds:
        return f"{binds}{which}; no order saves more than 0 %"
    rest = f"no order saves more than {_percent(floor.saving(moved[least]))} over {least}"
    if len(moved) == 1 or slow == fast:
        return f"{binds}{which}; {rest}"
    return f"{binds}{which}; {least} saves up to {_percent(1 - fast / slow)} of it, {rest}"

"""What a reader of ``compare`` must know of its figures, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pebble.models.machine import Machine
from pebble.simulation import Traffic
from pebble.units import format_bytes, format_capacity

BYTES_ALONE = (
    "least time: the floor, or what DRAM needs for the bytes alone where that is more; fewer bytes need not take less "
    "time: `pebble time` models how long schedules take"
)


def what_counters_do_not_see(traffic: Sequence[Traffic]) -> list[str]:
    """Where the simulated figures and those of a profiler count differently."""
    if not traffic:
        return []
    left = [t.residue_bytes for t in traffic]
    amount = " to ".join(dict.fromkeys(map(format_bytes, (min(left), max(left)))))
    return [f"lines still dirty at the end are {amount} of each write figure"] if max(left) else []


def what_execution_changes(traffic: Mapping[str, int], other: str, there: Mapping[str, int]) -> str:
    """Whether the schedule that moves least depends on the execution."""
    best = min(traffic, key=lambda name: (traffic[name], there[name]))
    best_there = min(there, key=lambda name: (there[name], traffic[name]))
    how = "if blocks run free" if other == "free" else "in waves"
    if there[best] == there[best_there]:
        return f"{other} MB: {how}; the ranking's first does not depend on it: {best}, {format_bytes(there[best])}"
    return (
        f"{other} MB: {how}; the ranking depends on it: {best_there} is then first with "
        f"{format_bytes(there[best_there])}, and {best} moves {format_bytes(there[best])}"
    )


def what_lru_ranks_first(lru_bytes: Mapping[str, int]) -> str:
    first, *tied = (name for name, traffic in lru_bytes.items() if traffic == min(lru_bytes.values()))
    return (
        f"LRU MB: the total under one fully associative LRU of the nominal L2 size, which is not this chip's cache; it "
        f"would rank {first}{f' (and {len(tied)} more)' * bool(tied)} first; `--policy lru` shows it alone"
    )


def what_stays_in_the_cache(traffic: Sequence[Traffic], separate_bytes: int) -> list[str]:
    """Simulated kernels one after the other that move less than those whose intermediate goes through memory whole."""
    less = [t for t in traffic if t.order.startswith(("separate:", "unfused")) and t.dram_bytes < separate_bytes]
    if not less:
        return []
    least = min(less, key=lambda t: t.dram_bytes)
    return [
        f"{least.order} moves less than the bound of separate kernels ({format_bytes(least.dram_bytes)}, "
        f"{format_bytes(separate_bytes)}): its second kernel finds in L2 what the first left there, while that bound "
        "is for an intermediate that is written to DRAM and read again whole"
    ]


def what_no_chip_holds(held_bytes: int, machine: Machine) -> str:
    """Why no bound of the chip stands beside a kernel that was simulated although it does not fit."""
    return (
        f"no chip bound: the kernel holds {format_capacity(held_bytes)}, more than all on-chip stores of "
        f"{machine.name} ({format_capacity(machine.on_chip_bytes)})"
    )

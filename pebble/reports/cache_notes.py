"""What a reader of simulated traffic must know of the cache that is simulated."""

from __future__ import annotations

from pebble.models.caches import CachePolicy
from pebble.models.machine import Machine
from pebble.units import format_capacity


def counted_notes(policy: CachePolicy) -> list[str]:
    """Where these figures and those of a profiler count differently."""
    begin = "warm" if policy.warm else "cold, as at a first launch"
    return [
        f"the cache starts {begin}; lines still dirty in it at the end are counted as written, which a counter read "
        "when the kernel ends does not see"
    ]


def about_the_model(machine: Machine, policy: str) -> str:
    """What the simulated cache is, and where the chip differs."""
    text = f"the cache model is one {policy.upper()} of the nominal L2 size; "
    partitions = machine.l2_partitions
    if machine.memory_side_cache_bytes:
        return text + (
            f"{machine.name} has {partitions} private L2s, each with its own copies, and a memory-side cache of "
            f"{format_capacity(machine.memory_side_cache_bytes)}, which is not modelled: traffic is "
            "what leaves the L2s; `--policy hardware` models both"
        )
    if partitions > 1:
        return text + (
            f"{machine.name} has {partitions} L2 partitions, which may keep a line twice, so measured traffic can be "
            "higher; `--policy hardware` models them"
        )
    return text + "hardware replacement and set conflicts differ"

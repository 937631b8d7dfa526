"""The cache model that a user names, and what a reader of its traffic must know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pebble.errors import InputError
from pebble.models.caches import CachePolicy, parse_policy
from pebble.models.machine import Machine
from pebble.traces import LINE_BYTES
from pebble.units import format_capacity

if TYPE_CHECKING:
    from pebble.reports.target import Target

HARDWARE, IDEAL = "hardware", "lru"


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


def read_cache_model(name: str | None, target: Target, element_bytes: int) -> tuple[str, int, list[str]]:
    """The policy's name, its capacity in bytes, and notes on what is simulated.

    Without a name it is the chip's own, or one LRU where no machine is named.

    Raises
    ------
    InputError
        An unknown policy, or ``hardware`` without a machine.
    """
    machine = target.machine
    cache_bytes = target.size_bytes(element_bytes)
    if target.cache is not None and cache_bytes < LINE_BYTES:
        raise InputError(
            f"--cache: got {target.cache.text} ({cache_bytes} bytes), expected at least a line, {LINE_BYTES} bytes."
        )
    if name is None:
        name = HARDWARE if machine is not None else IDEAL
    if name == HARDWARE:
        if machine is None:
            raise InputError("--policy hardware: expected --gpu or --machine beside it, whose cache model is meant.")
        model = machine.default_model
        text = (
            f"cache model of {machine.name} ({model.mark}): {model.policy}: {model.parsed.description}; {model.source}"
        )
        return model.policy, cache_bytes, [text, *counted_notes(model.parsed)]
    if isinstance(name, str) and name.startswith(f"{HARDWARE}+") and machine is not None:  # the chip's own with options
        name = machine.default_model.policy + name.removeprefix(HARDWARE)
    policy = parse_policy(name)
    notes = []
    if machine is not None and policy.structure == "full":
        notes.append(about_the_model(machine, name.partition("+")[0]))
    return name, cache_bytes, [*notes, f"cache policy {name}: {policy.description}", *counted_notes(policy)]

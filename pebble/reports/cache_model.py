"""The cache model that a user names."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.errors import InputError
from pebble.models.caches import CachePolicy, parse_policy
from pebble.models.machine import Machine
from pebble.reports.target import Target
from pebble.traces import LINE_BYTES

HARDWARE, IDEAL = "hardware", "lru"


@dataclass(frozen=True)
class CacheModel:
    """The cache that is simulated.

    Attributes
    ----------
    policy : str
    bytes : int
    machine : Machine or None
    default : bool
        Whether it is the chip's own model, as its machine file has it.
    """

    policy: str
    bytes: int
    machine: Machine | None
    default: bool = False

    @property
    def parsed(self) -> CachePolicy:
        """What the policy's name says."""
        return parse_policy(self.policy)


def read_cache_model(name: str | None, target: Target, element_bytes: int) -> CacheModel:
    """The cache that is simulated.

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
        return CacheModel(machine.default_model.policy, cache_bytes, machine, default=True)
    if isinstance(name, str) and name.startswith(f"{HARDWARE}+") and machine is not None:  # the chip's own with options
        name = machine.default_model.policy + name.removeprefix(HARDWARE)
    parse_policy(name)  # said here what is wrong with it
    return CacheModel(name, cache_bytes, machine)

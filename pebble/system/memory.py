"""How much memory one table may take, so that what is too large is refused in a sentence before it is made."""

from __future__ import annotations

from pathlib import Path

from pebble.errors import InputError

MEMORY_BYTES = 4 << 30
_LITTLE = 16 << 20  # bytes that are there anyhow: to ask the system takes longer than to look at such a table


def memory_allowance() -> int:
    """Bytes that one search, trace or cache may fill: `MEMORY_BYTES`, or half of what is free if that is less."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return min(MEMORY_BYTES, int(line.split()[1]) * 512)
    except (OSError, ValueError):
        pass
    return MEMORY_BYTES


def check_memory(what: str, count: int, of: str, bytes_each: int, advice: str) -> None:
    """Refuse what does not fit: ``count`` things ``of`` a kind, each about ``bytes_each`` bytes, all kept at once.

    Raises
    ------
    InputError
        More than `memory_allowance`; the message begins with ``what`` and ends with ``advice`` on how to need fewer.

    Examples
    --------
    >>> check_memory("trace", 10**12, "tiles", 64, "use larger tiles")
    Traceback (most recent call last):
    ...
    pebble.errors.InputError: trace: got 1,000,000,000,000 tiles to keep, about 64,000 GB of memory, ...
    """
    needed = count * bytes_each
    if needed <= _LITTLE or (needed <= MEMORY_BYTES and needed <= memory_allowance()):
        return
    most = memory_allowance() // bytes_each
    raise InputError(
        f"{what}: got {count:,} {of} to keep, about {needed / 1e9:,.0f} GB of memory, expected at most "
        f"{most:,}; {advice}."
    )

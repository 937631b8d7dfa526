"""Which schedules are set side by side: those that are named, and beside them the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pebble.errors import InputError, check_text
from pebble.families import kernel_family
from pebble.reports.simulated_kernel import SimulatedKernel
from pebble.schedules.tables import TileTable
from pebble.workloads.base import Workload

Own = str | Path | Callable[..., Any] | Iterator[tuple[int, int]] | TileTable


def read_schedules(text: str | Sequence[str], everything: Sequence[Any], parse: Callable[[str], Any]) -> list[Any]:
    """All, or the names given, each once.

    Raises
    ------
    InputError
        No name at all.
    UnknownNameError
        An unknown name.
    """
    if isinstance(text, str) and text.strip().lower() == "all":
        return list(everything)
    parts = text.split(",") if isinstance(text, str) else text
    if not isinstance(parts, Iterable):
        raise InputError(f"--schedules: got {repr(text)[:80]}, expected all, or names such as ['row', 'hilbert'].")
    names = [name for name in (check_text("--schedules", part, "names").strip() for part in parts) if name]
    if not names:
        raise InputError(f"--schedules: got {text!r}, expected all, or names separated by commas.")
    return list(dict.fromkeys(parse(name) for name in names))


def named_schedules(
    workload: Workload, kernel: SimulatedKernel, schedules: str | Sequence[str], own: Own | Sequence[Own] | None = None
) -> list[Any]:
    """The schedules of a workload that are named, then those of the user's own; errors as for `read_schedules`."""
    family = kernel_family(workload)
    chosen = read_schedules(schedules, family.every_schedule(workload, kernel.config.tile), family.read_schedule)
    given = own if isinstance(own, list | tuple) else [own]
    return chosen + [family.read_schedule(item) for item in given if item is not None]

"""Which schedules are set side by side: those that are named, and beside them the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.reports.simulated_kernel import SimulatedKernel
from pebble.schedules.tables import TileTable
from pebble.schedules.tables.source import own_schedule
from pebble.workloads.workload import Workload

Own = str | Path | Callable[..., Any] | Iterator[tuple[int, int]] | TileTable | Sequence[tuple[int, int]]
Schedules = Own | Sequence[Own]


def named(schedules: Schedules) -> Schedules | None:
    """Those that are named, None where that is all of them."""
    return None if _all_of(schedules) else schedules


def _all_of(schedules: Schedules) -> bool:
    return isinstance(schedules, str) and schedules.strip().lower() == "all"  # a list may hold arrays: no ==


def read_schedules(names: Schedules, everything: Sequence[Any], parse: Callable[[Any], Any]) -> list[Any]:
    """All, or those given by name or as tiles of the user's own, each once.

    Raises
    ------
    InputError
        None at all, or something that is no schedule.
    UnknownNameError
        An unknown name.
    """
    if _all_of(names):
        return list(everything)
    parts = [part for part in _parts(names) if not isinstance(part, str) or part.strip()]
    if not parts:
        raise InputError(f"--schedules: got {names!r}, expected all, or names separated by commas.")
    for part in parts:
        if not isinstance(part, str) and own_schedule(part) is None:
            raise InputError(
                f"--schedules: got {repr(part)[:80]}, expected all, names such as ['row', 'hilbert'], or tiles of your "
                "own: a function (rows, cols) that yields (row, col), a generator, a list of them or a file."
            )
    return list(dict.fromkeys(parse(part.strip() if isinstance(part, str) else part) for part in parts))


def _parts(names: Any) -> list[Any]:
    """What stands between commas, or in a list; one function, generator or list of tiles is one."""
    if isinstance(names, str):
        return names.split(",")
    if isinstance(names, Iterable) and own_schedule(names) is None:
        return list(names)
    return [names]


def named_schedules(
    workload: Workload,
    kernel: SimulatedKernel,
    schedules: Schedules,
    own: Schedules | None = None,
    timed: bool = False,
) -> list[Any]:
    """The schedules of a workload that are named, then those of the user's own; errors as for `read_schedules`.

    With ``timed`` those too that only `pebble.time` knows.
    """
    family = kernel_family(workload)

    def read(value: object) -> Any:
        return family.read_schedule(value, timed)

    orders = read_schedules(schedules, family.every_schedule(workload, kernel.config.tile), read)
    names = [own] if isinstance(own, str) else _parts(own)
    return orders + [read(item) for item in names if item is not None]

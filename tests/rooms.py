"""The classic game, for what takes a memory: so many values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pebble.workloads.widths import FastMemory

T = TypeVar("T")


def in_values(best: Callable[..., T], workload: Any, capacity: int, *more: Any, **named: Any) -> T:
    """What is found of a workload in a memory of so many values."""
    return best(workload, FastMemory.of_values(capacity, workload), *more, **named)

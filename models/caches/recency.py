"""Lists of items by recency, one for each level of a cache: a ring through a place that no item has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pebble.models.caches.base import Numbers
from pebble.traces.jit import inlined

ABSENT = -2


def empty_lists(levels: int, items: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """``newer`` and ``older``, each of shape (levels, items + 1); the oldest of a level is ``newer[level, items]``."""
    newer, older = np.full((2, levels, items + 1), ABSENT, np.int32)
    newer[:, items] = older[:, items] = items
    return newer, older


@inlined
def place(level: int, item: int, newer: Numbers, older: Numbers) -> None:
    """Make an item that is not in the list its newest."""
    n = newer.shape[1] - 1
    head = older[level, n]
    older[level, n] = item
    newer[level, item] = n
    older[level, item] = head
    newer[level, head] = item


@inlined
def leave(level: int, item: int, newer: Numbers, older: Numbers) -> None:
    """Take an item out to place it again, or to mark it ``newer[level, item] = ABSENT``."""
    newer[level, older[level, item]] = newer[level, item]
    older[level, newer[level, item]] = older[level, item]

"""A tile order played as a pebbling: one tile operation at a time, whole tiles moved, LRU or OPT eviction.

This is what a single SM with a memory of whole tiles would do: for each output tile in order, one operation per k
tile, each needing its A, B and C tile in fast memory. An initialised C tile that is evicted is stored, and loaded again
for its next operation; a complete one is stored once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InfeasibleError

Item = tuple[str, tuple[int, int]]
Operation = tuple[int, int, int]
# ("load" | "store" | "delete", operand, (row, column)) or ("compute", "C", (i, j, l))
Event = tuple[str, str, tuple[int, ...]]

EVICTIONS = ("lru", "opt")


def tile_operations(tiles: NDArray[np.int32], k_tiles: int, sawtooth: bool = False) -> list[Operation]:
    """(row, column, k) of each tile operation; ``sawtooth`` walks k backwards in every second output tile."""
    operations = []
    for number, (i, j) in enumerate(tiles.tolist()):
        ks = range(k_tiles - 1, -1, -1) if sawtooth and number % 2 else range(k_tiles)
        operations += [(i, j, l) for l in ks]
    return operations


def play_order(
    operations: Sequence[Operation],
    weight: Callable[[Item], int],
    capacity: int,
    eviction: str,
    accumulate: bool = False,
) -> Iterator[Event]:
    """The moves of an order under one eviction rule.

    Parameters
    ----------
    operations : sequence of (i, j, l)
        Every operation of the grid once.
    weight : callable
        Bytes (or any unit) of a tile.
    capacity : int
        In the same unit.
    eviction : {"lru", "opt"}
        Evict the tile used longest ago, or the one whose next use is farthest away (Belady). OPT drops what is
        not used again at once; LRU does not know.
    accumulate : bool
        C += A B: each C tile is loaded before its first operation.

    Yields
    ------
    (str, str, tuple of int)
        Moves of the in-place game.

    Raises
    ------
    InfeasibleError
        The three tiles of one operation do not fit.
    """
    touched = [_items(operation) for operation in operations]
    following: list[list[int]] = []
    upcoming: dict[Item, int] = {}
    never = len(operations)
    for at in range(len(operations) - 1, -1, -1):
        following.append([upcoming.get(item, never) for item in touched[at]])
        upcoming.update(dict.fromkeys(touched[at], at))
    following.reverse()

    held: dict[Item, int] = {}  # tile -> its next use; least recently used first
    blue: set[Item] = set()
    initialised: set[Item] = set()
    used = 0
    for at, operation in enumerate(operations):
        for item in touched[at]:
            if item in held:
                held[item] = held.pop(item)
                continue
            while used + weight(item) > capacity:
                free = [x for x in held if x not in touched[at]]
                if not free:
                    least = sum(map(weight, touched[at]))
                    raise InfeasibleError(
                        f"capacity: got {capacity}, expected at least {least}, the three tiles of an operation."
                    )
                victim = max(free, key=lambda x: held[x]) if eviction == "opt" else free[0]
                yield from _evict(victim, blue)
                del held[victim]
                used -= weight(victim)
            if item[0] != "C" or accumulate or item in initialised:
                yield "load", *item
                blue.add(item)
            held[item] = at
            used += weight(item)
        yield "compute", "C", operation
        cell = touched[at][2]
        initialised.add(cell)
        blue.discard(cell)
        for item, after in zip(touched[at], following[at], strict=True):
            held[item] = after
            if eviction == "opt" and after == never:
                yield from _evict(item, blue)
                del held[item]
                used -= weight(item)
    for item in held:
        yield from _evict(item, blue)


def _items(operation: Operation) -> tuple[Item, Item, Item]:
    i, j, l = operation
    return ("A", (i, l)), ("B", (l, j)), ("C", (i, j))


def _evict(item: Item, blue: set[Item]) -> Iterator[Event]:
    if item[0] == "C" and item not in blue:
        yield "store", *item
    yield "delete", *item

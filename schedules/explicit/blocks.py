"""Sizes of blocks worth trying."""

from __future__ import annotations

from collections.abc import Iterator

from pebble.units import ceil_div

MOST_SIZES = 1 << 15  # more than any extent up to 2^28 has


def block_sizes(extent: int, largest: int, most: int = MOST_SIZES) -> Iterator[int]:
    """Each whole number up to ``largest`` that is ceil(extent / count) for some count: the sizes worth trying.

    After ``most`` of them they fall by a 256th at least, so that their number stays small for any extent.

    Examples
    --------
    >>> list(block_sizes(10, 10))
    [10, 5, 4, 3, 2, 1]
    """
    if largest < 1:
        return
    size = ceil_div(extent, ceil_div(extent, min(largest, extent)))
    number = 0
    while True:
        yield size
        if size == 1:
            return
        number += 1
        below = size if number < most else max(2, size - size // 256)
        # the fewest blocks that need less than this size
        size = ceil_div(extent, (extent - 1) // (below - 1) + 1)


def largest_partner(capacity: int, side: int, cell: int = 1, wider: int = 1) -> int:
    """Largest t such that a block of side x t fits with a vector along its shorter side and one value, or 0.

    A value of the block takes ``cell``, one of the vector ``wider``.
    """
    longer = (capacity - wider * (side + 1)) // (cell * side)
    return longer if longer >= side else max(0, (capacity - wider) // (cell * side + wider))


def even(total: int, count: int) -> list[tuple[int, int]]:
    """``count`` whole parts of a total that differ by one at most: (size, how many), the longer ones first.

    Examples
    --------
    >>> even(10, 4)
    [(3, 2), (2, 2)]
    """
    size, longer = divmod(total, count)
    return [run for run in ((size + 1, longer), (size, count - longer)) if run[1]]

"""Where the model of blocks that run free sits at a cliff: a range of reads, not a number.

A little more room and what blocks share stays in the cache; a little less and each reads it anew. How far blocks drift
apart decides on which side a launch falls, and the model knows that less well than bytes: leaders wait for DRAM, those
behind find what they left and catch up. So a kernel whose modelled reads fall below `FALLS` of themselves in a cache
`LARGER` times as large reads anything from what they are in one `MUCH_LARGER` times as large to `MOST` times as much.

The four numbers were chosen on free-running attention of the library of measurements, and tried on exported files that
were kept out (``benchmarks/hardware/cliffs.py`` says how often launches fall into the range).

Blocks of a long product always drift far (`pebble.models.rates.drifts_far`), and launches of one product read 0.55 to
2.2 times what is modelled. So such a product reads from `FEWER` to `MORE` times that: two numbers chosen on the long
products of the library, and tried on exported files as well.
"""

from __future__ import annotations

from collections.abc import Callable

LARGER, FALLS = 1.25, 0.9
MUCH_LARGER, MOST = 1.5, 1.35
FEWER, MORE = 0.65, 1.75


def read_range(read_bytes: int, read_in: Callable[[float], int]) -> tuple[int, int] | None:
    """Between what a kernel reads at a cliff; None where there is none.

    Parameters
    ----------
    read_bytes : int
        As modelled.
    read_in : callable
        What it reads in a cache so many times as large; asked a second time only at a cliff.

    Examples
    --------
    >>> read_range(1000, lambda times: 950), read_range(1000, lambda times: 500 if times < 1.5 else 300)
    (None, (300, 1350))
    """
    if read_in(LARGER) >= FALLS * read_bytes:
        return None
    return min(read_bytes, read_in(MUCH_LARGER)), round(MOST * read_bytes)


def far_range(read_bytes: int) -> tuple[int, int]:
    """Between what a product reads whose blocks drift further apart than is modelled.

    Examples
    --------
    >>> far_range(1000)
    (650, 1750)
    """
    return round(FEWER * read_bytes), round(MORE * read_bytes)

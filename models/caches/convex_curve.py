"""A convex curve over whole numbers from few exact values: straight lines between its corners can be proved.

Misses of OPT are convex in the capacity (all lines are alike). Between two capacities they are a straight line as soon
as the slope at one end equals the chord. Else the lines that continue both ends cross at a point between; if the misses
there lie on both, the curve is those two lines; if not, the two parts are treated alike.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from pebble.errors import InputError

MOST_RUNS = 2000


@dataclass(frozen=True)
class ConvexCurve:
    """Misses at every capacity.

    Attributes
    ----------
    capacities_lines, misses_lines : tuple of int
        Corners; straight lines between them. Below the first there is no curve, above the last it is flat.
    runs : int
        Exact values that were needed.
    """

    capacities_lines: tuple[int, ...]
    misses_lines: tuple[int, ...]
    runs: int

    def at(self, capacity_lines: int) -> int:
        """Lines that miss.

        Raises
        ------
        InputError
            A capacity below the largest tile.
        """
        x, y = self.capacities_lines, self.misses_lines
        if capacity_lines < x[0]:
            raise InputError(f"curve: got {capacity_lines} lines, expected at least {x[0]}, the largest tile.")
        if capacity_lines >= x[-1]:
            return y[-1]
        i = bisect.bisect_right(x, capacity_lines) - 1
        return y[i] + (y[i + 1] - y[i]) * (capacity_lines - x[i]) // (x[i + 1] - x[i])


def convex_curve(misses_at: Callable[[int], int], least: int, most: int) -> ConvexCurve:
    """The curve from ``least`` to ``most``.

    Parameters
    ----------
    misses_at : callable
        The exact misses at a capacity; convex.
    least, most : int
        Where it begins and ends.

    Returns
    -------
    ConvexCurve
        Cost: two to three values for each corner.

    Raises
    ------
    InputError
        The curve has hundreds of corners.
    """

    @cache
    def misses(capacity: int) -> int:
        if misses.cache_info().misses > MOST_RUNS:
            raise InputError(f"curve: OPT has more corners than {MOST_RUNS} runs can find; use larger tiles.")
        return misses_at(capacity)

    corners = {least, most}
    todo = [(least, most)]
    while todo:
        a, b = todo.pop()
        rise, run = misses(b) - misses(a), b - a
        if run <= 1 or (misses(a + 1) - misses(a)) * run == rise:
            continue
        after, before = misses(a + 1) - misses(a), misses(b) - misses(b - 1)
        if before * run == rise:
            continue
        # y_a + after (x - a) = y_b + before (x - b)
        crossing = a + (misses(b) - misses(a) - before * run) // (after - before)
        middle = min(max(crossing, a + 1), b - 1)
        corners.add(middle)
        if misses(middle) != misses(a) + after * (middle - a):
            todo.append((a, middle))
        if misses(middle) != misses(b) + before * (middle - b):
            if middle + 1 < b and misses(middle + 1) == misses(b) + before * (middle + 1 - b):
                corners.add(middle + 1)  # the crossing lies between two whole numbers
            else:
                todo.append((middle, b))
    x = tuple(sorted(corners))
    return ConvexCurve(x, tuple(map(misses, x)), misses.cache_info().currsize)

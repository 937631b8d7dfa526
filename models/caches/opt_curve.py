"""OPT misses at every capacity from few exact runs: the curve is convex, so lines can be proved.

Misses of OPT are convex in the capacity (all lines are alike). Between two capacities they are a straight line as soon
as the slope at one end equals the chord. Else the lines that continue both ends cross at a point between; if the misses
there lie on both, the curve is those two lines; if not, the two parts are treated alike.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass

from pebble.errors import InputError
from pebble.models.caches.base import Touches
from pebble.models.caches.opt import OptRuns

MOST_RUNS = 2000


@dataclass(frozen=True)
class OptCurve:
    """Misses of OPT, exact at every capacity.

    Attributes
    ----------
    capacities_lines, misses_lines : tuple of int
        Corners; straight lines between them. Below the first there is no curve, above the last it is flat.
    runs : int
        Exact simulations that were needed.
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


def opt_curve(stream: Touches, most_lines: int | None = None) -> OptCurve:
    """The curve of one stream, from the largest tile to ``most_lines`` (by default all lines that it touches).

    Parameters
    ----------
    stream : Touches
        Tile touches in order.
    most_lines : int, optional
        Where to stop.

    Returns
    -------
    OptCurve
        Cost: two to three OPT runs for each corner of the curve.

    Raises
    ------
    InputError
        The stream is too long for OPT, or its curve has hundreds of corners.
    """
    runs = OptRuns(stream)
    least = int(stream.tile_lines.max())
    most = max(least, min(most_lines or 2**62, int(stream.tile_lines.sum(dtype="int64"))))
    known: dict[int, int] = {}

    def misses(capacity: int) -> int:
        if capacity not in known:
            if len(known) >= MOST_RUNS:
                raise InputError(f"curve: OPT has more corners than {MOST_RUNS} runs can find; use larger tiles.")
            known[capacity] = runs.misses_lines(capacity)
        return known[capacity]

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
    x = sorted(corners)
    return OptCurve(tuple(x), tuple(misses(c) for c in x), len(known))

"""The turned corner: how much of a shared operand passes from one stationary block to the next.

Two blocks that follow each other share one operand. What is free beside a block can keep some of its vectors
(*plain*). Better, the block gives way to them while it is let go:

    last chunk W of w streamed indices of a block X of s x d (s along the shared operand):
      for each group D of b of the d columns of X:
          hold the third operand's D x W (the pivot)
          for i in s:   [first group only: load the shared operand's (i, W), and keep it]
                        the b w updates of X(i, D); it is complete: let it go

and the next block enters in the mirror image: it begins group by group, and in the last group the shared (i, W) go.
With b = w that needs w (w + 1) values beside the block and carries s w of them over, where plain vectors carry only
what they need. Both together are a `Corner`.

In a chain, X is rows of A and Y (k + l values each), the shared operand B and D (``streams`` k + l values for each
column of H), and the pivot the cells of H, ``streams`` for each until the hidden products of one cell are joined. A
single product is k = s, l = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

import numpy as np
import numpy.typing as npt

_PARTS = 4  # numbers of plain vectors that are looked at first, where several limits bind

FloatArray = npt.NDArray[np.float64]
Floats = FloatArray | np.float64


@dataclass(frozen=True)
class Side:
    """What a line of the stationary block holds: ``first`` (of A) and ``second`` (of Y) values; hidden ``streams``.

    ``resident`` is what a vector needs that lies beside the block, where that is not all of ``shared``. Where values
    differ in width, a first value of the block takes ``cell`` of the capacity, a second one ``cell_second``, one of the
    shared operands ``vector``, and one of the third ``pivot``.
    """

    first: int
    second: int = 0
    streams: int = 1
    resident: int = 0
    cell: int = 1
    cell_second: int = 1
    vector: int = 1
    pivot: int = 1

    @property
    def held(self) -> int:
        """Values of the block for each unit of its depth."""
        return self.first + self.second

    @property
    def taken(self) -> int:
        """What they take of the capacity."""
        return self.cell * self.first + self.cell_second * self.second

    @property
    def terms(self) -> list[tuple[int, int]]:
        """At the times when most is held beside pivots: values of a turned index, and what a line has let go by then.

        At the start; with all first values of the turned vectors; with the second ones too, one value of each line
        left; in the mirror image before second values of the block begin; and, where lines let go in steps of two
        widths, between first and second ones.
        """
        u, first, second, cell, other = self.streams, self.first, self.second, self.cell, self.cell_second
        widest = max(cell, other) if second else cell
        results = [
            (u, 0),
            (u * first, (first - 1) * cell),
            (self.shared, self.taken - widest),
            (u + second, second * other),
        ]
        return [*results, (u * first + 1, first * cell)] if second and cell != other else results

    @property
    def shared(self) -> int:
        """Values of the shared operands for each streamed index."""
        return self.streams * self.first + self.second

    @property
    def plain(self) -> int:
        """Values of a vector beside the block."""
        return self.resident or self.shared

    def plain_capacity(self, vectors: int) -> int:
        """What so many vectors beside the block take."""
        return self.vector * self.plain * vectors + self.pivot * self.streams if vectors else 0


@dataclass(frozen=True)
class Corner:
    """``turned`` vectors take the block's place, in groups of ``group``; ``plain`` ones lie beside it."""

    group: int
    turned: int
    plain: int

    @property
    def vectors(self) -> int:
        """Vectors of the shared operand that pass."""
        return self.turned + self.plain

    def footprint(self, side: Side) -> int:
        """Most that is held beside the whole block while vectors come to stay, or leave."""
        if not self.turned:
            return side.plain_capacity(self.plain)  # line by line, a cell of each product at a time
        resident = side.vector * side.plain * self.plain
        index, pivots = side.vector * self.turned, side.pivot * side.streams * self.group * self.turned
        return resident + pivots + max(values * index - gone * self.group for values, gone in side.terms)


NO_CORNER = Corner(0, 0, 0)


def _groups(spare: int, side: Side, depth: int, w: int) -> tuple[int, int]:
    """The sizes of groups with which w vectors are turned in that spare room: the least and the most."""
    index, pivot = side.vector * w, side.pivot * side.streams * w
    low, high = 1, min(depth, (spare - side.streams * index) // pivot)
    for values, gone in side.terms[1:]:
        slope, short = gone - pivot, values * index - spare  # short <= slope * b
        if slope > 0:
            low = max(low, -(-short // slope))
        elif slope < 0:
            high = min(high, short // slope)
        elif short > 0:
            return 1, 0
    return low, high


def _turned(spare: int, side: Side, depth: int, limit: int) -> tuple[int, int]:
    """Most vectors that are turned in that spare room, and the size of the groups."""
    unit, other = side.vector, side.cell_second if side.second else side.cell
    if side.streams == 1 and unit == side.pivot == side.cell == other:
        # groups of w lines need w (w + 1) at the start and at the end, others more at one of them
        square = min(limit, (isqrt(4 * (spare // unit) + 1) - 1) // 2) if spare > 0 else 0
        if 2 * square < side.held and square <= depth:
            return square, square
    low, result = 0, 0
    high = min(limit, spare // ((side.vector + side.pivot) * side.streams))
    while low < high:
        middle = (low + high + 1) // 2
        least, most = _groups(spare, side, depth, middle)
        low, high, result = (middle, high, least) if least <= most else (low, middle - 1, result)
    return low, result


@lru_cache(maxsize=1 << 14)
def best_corner(spare: int, side: Side, depth: int, limit: int, resident: int | None = None) -> Corner:
    """The corner that carries most, of at most ``limit`` vectors.

    Parameters
    ----------
    spare : int
        What fits beside the whole block.
    side : Side
    depth : int
        The other extent of the block, d.
    limit : int
    beside : int, optional
        The most of them that may lie beside the block.

    Notes
    -----
    Cost: O(log spare). Turning pays while w < s / 2; what is spare beyond that keeps plain vectors.
    """
    if spare < 2 or limit < 1:
        return NO_CORNER
    each, best, pivot = side.vector * side.plain, NO_CORNER, side.pivot * side.streams
    most_plain = min(limit, max(0, spare - pivot) // each, limit if resident is None else resident)
    # with E spare about sqrt(E taken / (pivot u vector shared)) vectors turn; the next place turns less than it
    # keeps plainly once E is above this
    balanced = (spare - each * each * side.taken // (4 * pivot * side.vector * side.shared)) // each
    for plain in {0, most_plain, *(p for p in range(balanced - 1, balanced + 2) if 0 <= p <= most_plain)}:
        turned, group = _turned(spare - each * plain, side, depth, limit - plain)
        if turned + plain > best.vectors:
            best = Corner(group, turned, plain)
    return best


@dataclass(frozen=True)
class Stage:
    """A step of a block at which vectors come to stay, or leave: its depth, and what is spare by each limit.

    A limit counts values in its own way, so it has a `Side` of its own.
    """

    depth: int
    limits: tuple[tuple[int, Side], ...]

    def group(self, turned: int, plain: int) -> int:
        """A size of the groups with which so many vectors are turned beside others that lie there, or 0."""
        low, high = 1, self.depth
        for spare, side in self.limits:
            least, most = _groups(spare - side.vector * side.plain * plain, side, self.depth, turned)
            low, high = max(low, least), min(high, most)
        return low if low <= high else 0


def best_corners(stages: tuple[Stage, ...], limit: int, resident: int | None = None) -> tuple[Corner, ...]:
    """The corner that carries most through all stages; its groups may differ from one to the next.

    Parameters
    ----------
    stages : tuple of Stage
    limit : int
        The most vectors.
    beside : int, optional
        The most of them that may lie beside the block.
    """
    if len(stages) == len(stages[0].limits) == 1:
        spare, side = stages[0].limits[0]
        return (best_corner(spare, side, stages[0].depth, limit, resident),)
    every = [(spare, side, stage.depth) for stage in stages for spare, side in stage.limits]
    if len(sides := {side for _, side, _ in every}) == 1:  # the least room and depth bind
        least = min(spare for spare, _, _ in every), min(depth for _, _, depth in every)
        return (best_corner(least[0], sides.pop(), least[1], limit, resident),) * len(stages)
    none = (NO_CORNER,) * len(stages)
    if limit < 1 or min(spare for spare, _, _ in every) < 2:
        return none
    alone = [best_corner(spare, side, depth, limit, resident) for spare, side, depth in every]
    most = min(corner.vectors for corner in alone)
    most_plain = min(most, limit if resident is None else resident)

    def with_plain(plain: int) -> tuple[Corner, ...]:
        """The most that turn beside so many plain ones."""
        if any(side.plain_capacity(plain) > spare for spare, side, _ in every):
            return none
        low, high = 0, most - plain
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if all(element.group(middle, plain) for element in stages) else (low, middle - 1)
        return tuple(Corner(item.group(low, plain) if low else 0, low, plain) for item in stages)

    step = max(1, most_plain // _PARTS)
    plains = {*range(0, most_plain + 1, step), *(min(corner.plain, most_plain) for corner in alone)}
    best = max((with_plain(plain) for plain in sorted(plains)), key=lambda result: result[0].vectors)
    while step > 1:  # what passes rises and then falls with the plain ones
        step //= 2
        tried = (
            with_plain(best[0].plain + move) for move in (-step, step) if best[0].plain + move in range(most_plain + 1)
        )
        best = max((best, *tried), key=lambda result: result[0].vectors)
    return best


def vectors_carried(
    spare: Floats, held: Floats, depth: Floats, streams: Floats | int = 1, shared: Floats | None = None
) -> FloatArray:
    """About what `best_corner` carries, elementwise: shapes broadcast. ``shared`` is ``held`` for one product.

    Where values differ in width all count what they take: ``streams`` is that of the pivot.
    """
    each = held if shared is None else shared
    capacity = np.maximum(spare, 0.0)
    balanced = np.minimum(capacity, each * held / (4 * streams))
    turned = np.sqrt(balanced * held / (streams * each))
    turned = np.minimum(turned, (capacity + depth * held) / (each + streams * depth))
    return np.asarray(np.maximum(turned + (capacity - balanced) / each, capacity / each))

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

FloatArray = npt.NDArray[np.float64]
Floats = FloatArray | np.float64


@dataclass(frozen=True)
class Side:
    """What a line of the stationary block holds: ``first`` (of A) and ``second`` (of Y) values; hidden ``streams``.

    ``beside`` is what a vector needs that lies beside the block, where that is not all of ``shared``.
    """

    first: int
    second: int = 0
    streams: int = 1
    beside: int = 0

    @property
    def held(self) -> int:
        """Values of the block for each unit of its depth."""
        return self.first + self.second

    @property
    def shared(self) -> int:
        """Values of the shared operands for each streamed index."""
        return self.streams * self.first + self.second

    @property
    def plain(self) -> int:
        """Values of a vector beside the block."""
        return self.beside or self.shared


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

    def room(self, side: Side) -> int:
        """Most values held beside the whole block while vectors come to stay, or leave."""
        beside = side.plain * self.plain
        b, w, u = self.group, self.turned, side.streams
        if not w:
            return beside + u if beside else 0  # line by line, one cell of each product at a time
        first, second = side.first, side.second
        return beside + max(
            u * b * w + u * w,
            u * b * w + u * w * first - (first - 1) * b,
            u * b * w + side.shared * w - (side.held - 1) * b,
            u * b * w + (u + second) * w - second * b,
        )


NO_CORNER = Corner(0, 0, 0)


def _group(spare: int, side: Side, depth: int, w: int) -> int:
    """A size of the groups with which w vectors are turned in that spare room, or 0."""
    u, first, second = side.streams, side.first, side.second
    low, high = 1, min(depth, spare // (u * w) - 1)
    for held, needs in ((first - 1, u * first), (side.held - 1, side.shared), (second, u + second)):
        slope, short = held - u * w, needs * w - spare  # short <= slope * b
        if slope > 0:
            low = max(low, -(-short // slope))
        elif slope < 0:
            high = min(high, short // slope)
        elif short > 0:
            return 0
    return low if low <= high else 0


def _turned(spare: int, side: Side, depth: int, limit: int) -> tuple[int, int]:
    """Most vectors that are turned in that spare room, and the size of the groups."""
    if side.streams == 1:  # groups of w lines need w (w + 1) at the start and at the end, others more at one of them
        square = min(limit, (isqrt(4 * spare + 1) - 1) // 2) if spare > 0 else 0
        if 2 * square < side.held and square <= depth:
            return square, square
    low, found = 0, 0
    high = min(limit, spare // (2 * side.streams))
    while low < high:
        middle = (low + high + 1) // 2
        group = _group(spare, side, depth, middle)
        low, high, found = (middle, high, group) if group else (low, middle - 1, found)
    return low, found


@lru_cache(maxsize=1 << 14)
def best_corner(spare: int, side: Side, depth: int, limit: int) -> Corner:
    """The corner that carries most, of at most ``limit`` vectors.

    Parameters
    ----------
    spare : int
        Values that fit beside the whole block.
    side : Side
    depth : int
        The other extent of the block, d.
    limit : int

    Notes
    -----
    Cost: O(log spare). Turning pays while w < s / 2; what is spare beyond that keeps plain vectors.
    """
    if spare < 2 or limit < 1:
        return NO_CORNER
    each, best = side.plain, NO_CORNER
    most_plain = min(limit, max(0, spare - side.streams) // each)
    # with E spare values about sqrt(E held / (u shared)) vectors turn; the next value turns less than it keeps plainly
    # once E is above this
    balanced = (spare - each * each * side.held // (4 * side.streams * side.shared)) // each
    for plain in {0, most_plain, *(p for p in range(balanced - 1, balanced + 2) if 0 <= p <= most_plain)}:
        turned, group = _turned(spare - each * plain, side, depth, limit - plain)
        if turned + plain > best.vectors:
            best = Corner(group, turned, plain)
    return best


def vectors_carried(
    spare: Floats, held: Floats, depth: Floats, streams: int = 1, shared: Floats | None = None
) -> FloatArray:
    """About what `best_corner` carries, elementwise: shapes broadcast. ``shared`` is ``held`` for one product."""
    each = held if shared is None else shared
    room = np.maximum(spare, 0.0)
    balanced = np.minimum(room, each * held / (4 * streams))
    turned = np.sqrt(balanced * held / (streams * each))
    turned = np.minimum(turned, (room + depth * held) / (each + depth))
    return np.asarray(np.maximum(turned + (room - balanced) / each, room / each))

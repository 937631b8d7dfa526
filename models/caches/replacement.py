"""Which line leaves, as a policy's name says it: after the colon, or the name itself; lists by recency, and numbers
drawn at random.

Each state of the generator follows from the one before by a linear map over bits, so the state a fixed number of steps
ahead is a linear map too. A block of draws is cut into four stretches that are made side by side: the processor
overlaps what one long chain would make it wait for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches.policy import CachePolicy, Numbers
from pebble.traces.jit import inlined, jit

_MAX_DRAWN = 1024
_OLDEST = "oldest-of-"
_ORDERS = {"lru": "least recently used", "fifo": "first in, first out"}


@dataclass(frozen=True, kw_only=True)
class Replacing(CachePolicy):
    """A model that can be had with several replacements.

    Attributes
    ----------
    replacement : str
        ``lru``, ``fifo``, ``random`` or ``oldest-of-K``, whichever of them the model takes.
    """

    replacement: str = "lru"

    def __post_init__(self) -> None:
        if self.replacement.startswith(_OLDEST) and not 1 <= self.drawn <= _MAX_DRAWN:
            raise InputError(f"policy: got {self.name!r}, expected {_OLDEST}1 to {_OLDEST}{_MAX_DRAWN}.")

    @property
    def drawn(self) -> int:
        """Lines drawn at random, the oldest of which leaves; 0 where none is drawn."""
        if self.replacement.startswith(_OLDEST):
            return int(self.replacement.removeprefix(_OLDEST))
        return int(self.replacement == "random")

    @property
    def order(self) -> str:
        """Which line leaves, in words."""
        if self.drawn > 1:
            return f"oldest of {self.drawn} lines drawn at random"
        return "random replacement" if self.drawn else _ORDERS[self.replacement]

    @property
    def what(self) -> str:
        return f"{self.order}, fully associative"


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


_STRETCHES = 4  # as `refill` is written
_AT_ONCE = 4096


@inlined
def _next(x: np.uint64) -> np.uint64:
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    return x ^ (x << np.uint64(17))


@inlined
def _below(x: np.uint64, limit: np.uint64) -> np.uint64:
    return ((x >> np.uint64(32)) * limit) >> np.uint64(32)


@inlined
def draw(random: NDArray[np.uint64], limit: int) -> np.int64:
    """A number below ``limit``, and the next state of the generator."""
    random[0] = _next(random[0])
    return np.int64(_below(random[0], np.uint64(limit)))


def seeded(seed: int) -> NDArray[np.uint64]:
    """The state from which `draw` begins."""
    return np.array([np.random.default_rng(seed).integers(1, 2**63)], np.uint64)


@jit
def refill(states: NDArray[np.uint64], ahead: NDArray[np.uint64], limit: int, drawn: NDArray[np.uint32]) -> None:
    """The next numbers below ``limit``, as many as ``drawn`` holds."""
    length, most = drawn.shape[0] // 4, np.uint64(limit)
    a, b, c, d = states
    for i in range(length):
        a, b, c, d = _next(a), _next(b), _next(c), _next(d)
        drawn[i] = _below(a, most)
        drawn[length + i] = _below(b, most)
        drawn[2 * length + i] = _below(c, most)
        drawn[3 * length + i] = _below(d, most)
    states[0] = d
    _stretch(states, ahead)


@jit
def _stretch(states: NDArray[np.uint64], ahead: NDArray[np.uint64]) -> None:
    # Each stretch begins where the one before ends.
    for stretch in range(1, states.shape[0]):
        x, end = states[stretch - 1], np.uint64(0)
        for bit in range(64):
            if (x >> np.uint64(bit)) & np.uint64(1):
                end ^= ahead[bit]
        states[stretch] = end


@jit
def _jump(steps: int, ahead: NDArray[np.uint64]) -> None:
    # ahead[bit]: where a state of that bit alone is after so many steps.
    for bit in range(64):
        x = np.uint64(1) << np.uint64(bit)
        for _ in range(steps):
            x = _next(x)
        ahead[bit] = x


class Draws:
    """Numbers that are made in blocks, for a loop that takes ``k`` at a time.

    Attributes
    ----------
    drawn : ndarray of uint32
        A block, a multiple of ``k`` long; `refill` makes the next.
    cursor : ndarray of int64, shape (1,)
        How many of the block are used; all of them before the first `refill`.
    states, ahead : ndarray of uint64
        For `refill`: the state at which each stretch begins, and the map over its length.
    """

    def __init__(self, seed: int, k: int) -> None:
        length = k * max(1, _AT_ONCE // (_STRETCHES * k))
        self.drawn = np.empty(_STRETCHES * length, np.uint32)
        self.cursor = np.array([len(self.drawn)])
        self.states, self.ahead = np.repeat(seeded(seed), _STRETCHES), np.empty(64, np.uint64)
        _jump(length, self.ahead)
        _stretch(self.states, self.ahead)

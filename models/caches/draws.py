"""Numbers drawn at random ahead of their use, the same and in the same order as one by one.

Each state of the xorshift generator follows from the one before by a linear map over bits, so the state a fixed number
of steps ahead is a linear map too. A block of draws is cut into four stretches that are made side by side: the
processor overlaps what one long chain would make it wait for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pebble.models.caches.base import seeded
from pebble.traces.jit import inlined, jit

_STRETCHES = 4
_AT_ONCE = 4096


@inlined
def _next(x):  # type: ignore[no-untyped-def]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    return x ^ (x << np.uint64(17))


@jit
def refill(states, ahead, limit, drawn):  # type: ignore[no-untyped-def]
    """The next numbers below ``limit``, as many as ``drawn`` holds, each as `draw` would give it."""
    length = drawn.shape[0] // 4
    below, half = np.uint64(limit), np.uint64(32)
    a, b, c, d = states
    for i in range(length):
        a, b, c, d = _next(a), _next(b), _next(c), _next(d)
        drawn[i] = ((a >> half) * below) >> half
        drawn[length + i] = ((b >> half) * below) >> half
        drawn[2 * length + i] = ((c >> half) * below) >> half
        drawn[3 * length + i] = ((d >> half) * below) >> half
    states[0] = d
    _stretch(states, ahead)


@jit
def _stretch(states, ahead):  # type: ignore[no-untyped-def]
    # Each stretch begins where the one before ends.
    for stretch in range(1, 4):
        x, jumped = states[stretch - 1], np.uint64(0)
        for bit in range(64):
            if (x >> np.uint64(bit)) & np.uint64(1):
                jumped ^= ahead[bit]
        states[stretch] = jumped


@jit
def _jump(steps, ahead):  # type: ignore[no-untyped-def]
    # ahead[bit]: where a state of that bit alone is after so many steps.
    for bit in range(64):
        x = np.uint64(1) << np.uint64(bit)
        for _ in range(steps):
            x = _next(x)
        ahead[bit] = x


class Draws:
    """Numbers below ``limit``, drawn ``k`` at a time.

    Attributes
    ----------
    drawn : ndarray of uint32
        A block of them, a multiple of ``k``; `refill` makes the next block.
    cursor : ndarray of int64, shape (1,)
        How many of the block have been used; all of them before the first `refill`.
    states, ahead : ndarray of uint64
        For `refill`.
    """

    def __init__(self, seed: int, k: int) -> None:
        length = max(1, k) * max(1, _AT_ONCE // (_STRETCHES * max(1, k)))
        self.drawn = np.empty(_STRETCHES * length, np.uint32)
        self.cursor = np.array([len(self.drawn)])
        self.ahead: NDArray[np.uint64] = np.empty(64, np.uint64)
        self.states = np.repeat(seeded(seed), _STRETCHES)
        _jump(length, self.ahead)
        _stretch(self.states, self.ahead)

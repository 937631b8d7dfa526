"""Numbers drawn at random (xorshift), one by one or ahead of their use: the same numbers in the same order.

Each state of the generator follows from the one before by a linear map over bits, so the state a fixed number of steps
ahead is a linear map too. A block of draws is cut into four stretches that are made side by side: the processor
overlaps what one long chain would make it wait for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pebble.traces.jit import inlined, jit

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

"""Which of two positions with the same tasks done makes the other one useless, compiled.

**Dominance.** Of two positions p, q of one ideal, p can be turned into q by evicting what only p holds (1 or 2
each), storing what is clean in q alone (1 each), and loading what only q holds: for nothing, since it was touched
and is needed, so it was paid for when p evicted it. If p's cost and that price do not exceed the cost of q, any
play on from q is one from p that costs no more, and q goes.

**Exchange.** Let p hold y and q hold z in its place, and let y be touched again no later than z in any play. Then p
plays as q: if q evicts z first, p evicts y; else when q loads y, or evicts z for it, p loads z if need be, for
nothing, and both hold the same. With y clean this costs p nothing, whatever z is. A dirty y is stored first (1) -
unless z is dirty and y is touched once more only: then z's eviction costs what y's does, and later y is gone. So of
what only p holds, each y that such a z of q stands for costs 0 or 1 in place of 1 or 2; a chain of exchanges, one
after the other, gives the price for several.
"""

from __future__ import annotations

import numpy as np

from pebble.solvers.search.bits import I32, ONE, U64, ZERO, Pair, lowest, popcount, signed
from pebble.solvers.search.dag_positions import AFTER, COST
from pebble.solvers.search.ideals import HEAD, LIVE, PURE, ROW, SINGLE
from pebble.traces.jit import inlined, jit

SCANNED = 2048  # positions of an ideal that a new one is held against


@inlined
def _price(a: Pair, clean_a: Pair, b: Pair, clean_b: Pair) -> int:
    """What it costs, without exchanges, to make a position with red a as good as another one with red b."""
    only0, only1 = a[0] & ~b[0], a[1] & ~b[1]
    price = popcount(only0) + popcount(only1) + popcount(only0 & ~clean_a[0]) + popcount(only1 & ~clean_a[1])
    stored0, stored1 = a[0] & ~clean_a[0] & b[0] & clean_b[0], a[1] & ~clean_a[1] & b[1] & clean_b[1]
    return price + popcount(stored0) + popcount(stored1)


@jit
def _exchanged(
    words: U64, rows: U64, i: int, row: int, a: Pair, clean_a: Pair, b: Pair, clean_b: Pair, price: int
) -> int:
    """The same with exchanges, for two positions of ideal i, from what it costs without."""
    only0, only1, other0, other1 = a[0] & ~b[0], a[1] & ~b[1], b[0] & ~a[0], b[1] & ~a[1]
    live0, live1 = words[i, LIVE], words[i, LIVE + 1]
    while (other0 | other1) and (only0 | only1):
        if other0:
            z = other0 & (~other0 + ONE)
            other0 ^= z
            at = row + popcount(live0 & (z - ONE))
            dirty = z & ~clean_b[0]
        else:
            z = other1 & (~other1 + ONE)
            other1 ^= z
            at = row + popcount(live0) + popcount(live1 & (z - ONE))
            dirty = z & ~clean_b[1]
        y0, y1 = rows[at, 0] & only0, rows[at, 1] & only1
        if not (y0 | y1):
            continue
        price -= 1
        if dirty:
            s0, s1 = y0 & ~clean_a[0] & words[i, SINGLE], y1 & ~clean_a[1] & words[i, SINGLE + 1]
            if s0 | s1:
                price -= 1
                y0, y1 = s0, s1
        if y0:
            only0 ^= y0 & (~y0 + ONE)
        else:
            only1 ^= y1 & (~y1 + ONE)
    return price


@jit
def beaten(
    words: U64, ideal_words: U64, ideal_numbers: I32, rows: U64, i: int, red: Pair, clean: Pair, cost: int
) -> bool:
    """Whether a position there is as good as the one given; what the given one beats goes."""
    pure0, pure1 = ideal_words[i, PURE], ideal_words[i, PURE + 1]
    row = ideal_numbers[i, ROW]
    last = -1
    s = signed(ideal_numbers[i, HEAD])
    looked = price = 0
    while s >= 0 and looked < SCANNED:
        looked += 1
        there = words[s, 0], words[s, 1]
        clean_there = there[0] & (words[s, 2] | pure0), there[1] & (words[s, 3] | pure1)
        gap = cost - signed(words[s, COST])
        following = signed(words[s, AFTER]) - 1
        # an exchange saves 2 at most, and there are no more than items that only the other has
        if gap >= 0:
            price = _price(there, clean_there, red, clean)
            if gap < price <= gap + 2 * (popcount(red[0] & ~there[0]) + popcount(red[1] & ~there[1])):
                price = _exchanged(ideal_words, rows, i, row, there, clean_there, red, clean, price)
        if gap >= 0 and price <= gap:
            if last >= 0:  # to the front: what beat one beats others soon
                words[last, AFTER] = np.uint64(following + 1)
                words[s, AFTER] = np.uint64(ideal_numbers[i, HEAD] + 1)
                ideal_numbers[i, HEAD] = s
            return True
        if gap <= 0:
            price = _price(red, clean, there, clean_there)
            if -gap < price <= 2 * (popcount(there[0] & ~red[0]) + popcount(there[1] & ~red[1])) - gap:
                price = _exchanged(ideal_words, rows, i, row, red, clean, there, clean_there, price)
        if gap <= 0 and price <= -gap:
            if last < 0:
                ideal_numbers[i, HEAD] = following
            else:
                words[last, AFTER] = np.uint64(following + 1)
            s = following
            continue
        last = s
        s = following
    return False


@jit
def exchanges(better: U64, ideal_words: U64, ideal_numbers: I32, rows: U64, here: int, red: Pair, clean: Pair) -> None:
    """For each red item of a position, the red items (2 words of `better`) that may leave in its place, by exchange."""
    better[:] = ZERO
    row = ideal_numbers[here, ROW]
    x0, x1 = ideal_words[here, LIVE], ideal_words[here, LIVE + 1]
    while x0 | x1:
        z0, z1 = (x0 & (~x0 + ONE), ZERO) if x0 else (ZERO, x1 & (~x1 + ONE))
        x0 ^= z0
        x1 ^= z1
        row += 1
        if (z0 & red[0]) | (z1 & red[1]) == ZERO:
            continue
        y0, y1 = rows[row - 1, 0] & red[0] & ~z0, rows[row - 1, 1] & red[1] & ~z1
        if (z0 & ~clean[0]) | (z1 & ~clean[1]):
            y0 &= ideal_words[here, SINGLE] & ~clean[0]
            y1 &= ideal_words[here, SINGLE + 1] & ~clean[1]
        while y0:
            y = lowest(y0)
            y0 &= y0 - ONE
            better[y, 0] |= z0
            better[y, 1] |= z1
        while y1:
            y = 64 + lowest(y1)
            y1 &= y1 - ONE
            better[y, 0] |= z0
            better[y, 1] |= z1
    x0, x1 = red
    while x0 | x1:  # of two that each may leave in place of the other, the first goes
        z = lowest(x0) if x0 else 64 + lowest(x1)
        if x0:
            x0 &= x0 - ONE
        else:
            x1 &= x1 - ONE
        y0, y1 = better[z, 0] & x0, better[z, 1] & x1
        while y0 | y1:
            y = lowest(y0) if y0 else 64 + lowest(y1)
            if y0:
                y0 &= y0 - ONE
            else:
                y1 &= y1 - ONE
            if (better[y, z >> 6] >> np.uint64(z & 63)) & ONE:
                better[z, y >> 6] &= ~(ONE << np.uint64(y & 63))

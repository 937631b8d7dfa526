"""Positions of the in-place GEMM (products done, red set) in normal form, and their bounds, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from pebble.solvers.search.bits import ONE, ZERO, bit, lowest, popcount
from pebble.solvers.search.gemm_canon import least_image
from pebble.solvers.search.gemm_model import touched_twice
from pebble.solvers.search.gemm_table import NEVER, find_node, scope


@njit(cache=True, nogil=True)
def settle(mod, D, R, log):  # type: ignore[no-untyped-def]
    """Run what can run, drop what is useless, take what is free to take: (D, R, cost of the latter).

    A `log` that is not empty gets log[0, 0] rows: products done after a step, and the red set while they ran.
    """
    cost = 0
    if len(log) > 0:
        log[0, 0] = ZERO
    cbase = (mod.m + mod.n) * mod.k
    full = bit(mod.products_count) - ONE if mod.products_count < 64 else ~ZERO
    while True:
        _, _, thrice = touched_twice(mod, R)
        D |= thrice
        if len(log) > 0:
            log[0, 0] += ONE
            log[log[0, 0], 0], log[log[0, 0], 1] = D, R
        left = R
        while left:
            x = lowest(left)
            left &= left - ONE
            if (mod.touches[x] & ~D) == ZERO:
                R &= ~bit(x)
        if popcount(R) >= mod.capacity or full == D:
            return D, R, cost
        _, twice, _ = touched_twice(mod, R)
        found = -1
        for x in range(mod.items_count):
            undone = mod.touches[x] & ~D
            if undone != ZERO and (undone & ~twice) == ZERO and not (R & bit(x)):
                found = x
                break
        if found < 0:
            return D, R, cost
        if found < cbase or D & mod.touches[found]:
            cost += 1
        D |= mod.touches[found]
        if len(log) > 0:
            log[0, 0] += ONE
            log[log[0, 0], 0], log[log[0, 0], 1] = D, R | bit(found)


@njit(cache=True, nogil=True)
def compulsory_left(mod, D, R):  # type: ignore[no-untyped-def]
    """What is certainly still to pay: a load per needed A or B, or touched unfinished C, that is not red."""
    cost = 0
    cbase = (mod.m + mod.n) * mod.k
    for x in range(mod.items_count):
        if not (R & bit(x)):
            word = mod.touches[x]
            if word & ~D and (x < cbase or word & D):
                cost += 1
    return cost


@njit(cache=True, nogil=True)
def table_bound(mod, cls, pat, nodes, V, offsets, D, R, c, g):  # type: ignore[no-untyped-def]
    """V of the position's pattern; 0 where the table has no entry, 255 where no play reaches the end."""
    full = bit(mod.products_count) - ONE if mod.products_count < 64 else ~ZERO
    undone = least_image(mod, cls, c, g, scope(mod, R) & ~D)
    slot = nodes[find_node(pat, nodes, c, undone)]
    if slot == 0:
        return np.int64(0)
    untouched, stored = 0, 0
    for x in range((mod.m + mod.n) * mod.k, mod.items_count):
        if (D & mod.touches[x]) == ZERO:
            untouched += 1
        elif mod.touches[x] & ~D and not R & bit(x):
            stored += 1
    left = popcount(full & ~D)
    value = np.int64(V[offsets[untouched] + left - mod.k * untouched, slot - 1])
    # without detail V counts the store of an evicted accumulator with its reload, but it is paid already
    return value - stored if mod.detail == 0 and value != NEVER else value

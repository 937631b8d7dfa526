"""The in-place GEMM as bits: items, products, and the symmetry group.

Items: A(i,l) is bit i k + l, B(l,j) bit m k + j k + l, C(i,j) bit m k + n k + i n + j. Product (i,j,l) is bit
(i n + j) k + l. B lies by columns, so that the transposition m <-> n only swaps two blocks.
"""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np

from pebble.solvers.search.bits import I64, U64, ZERO, bit
from pebble.traces.jit import jit


class Model(NamedTuple):
    """The tables that the compiled kernels read."""

    m: int
    n: int
    k: int
    capacity: int
    items_count: int
    products_count: int
    full: np.uint64
    """All products."""
    touches: U64
    """touches[x]: the products that need item x."""
    needs: U64
    """needs[t]: the three items of product t."""
    perm_i: I64
    perm_j: I64
    perm_l: I64
    table_j: U64
    """table_j[p, w]: the n-bit word w with its bits permuted by perm_j[p]."""
    table_l: U64
    square: bool
    """m == n: the transposition is a symmetry too."""
    order: int
    """Number of symmetries."""
    detail: int
    """What the patterns remember, see the pattern table."""


def _perms(size: int) -> I64:
    return np.array(list(permutations(range(size))), dtype=np.int64)


def _word_table(perms: I64) -> U64:
    size = perms.shape[1]
    table = np.zeros((len(perms), 1 << size), dtype=np.uint64)
    for p, perm in enumerate(perms):
        for word in range(1 << size):
            table[p, word] = sum(1 << int(perm[b]) for b in range(size) if word >> b & 1)
    return table


def build_model(m: int, n: int, k: int, capacity: int, detail: int = 1) -> Model:
    """The model of C (m x n) := A (m x k) B (k x n) with `capacity` pebbles; at most 64 products and items."""
    count = m * k + n * k + m * n
    touches = np.zeros(count, dtype=np.uint64)
    needs = np.zeros(m * n * k, dtype=np.uint64)
    for i in range(m):
        for j in range(n):
            for el in range(k):
                t = (i * n + j) * k + el
                for x in (i * k + el, m * k + j * k + el, m * k + n * k + i * n + j):
                    touches[x] |= np.uint64(1 << t)
                    needs[t] |= np.uint64(1 << x)
    pi, pj, pl = _perms(m), _perms(n), _perms(k)
    order = len(pi) * len(pj) * len(pl) * (2 if m == n else 1)
    return Model(
        m, n, k, capacity, count, m * n * k, np.uint64((1 << m * n * k) - 1), touches, needs, pi, pj, pl,
        _word_table(pj), _word_table(pl), m == n, order, detail,
    )  # fmt: skip


# A symmetry is packed in one integer: perm_i | perm_j << 8 | perm_l << 16 | transposed << 24.


@jit
def move_products(mod: Model, g: int, D: np.uint64) -> np.uint64:
    """The image of a set of products under symmetry g."""
    pi, pj, pl = g & 255, (g >> 8) & 255, (g >> 16) & 255
    m, n, k = mod.m, mod.n, mod.k
    mask = np.uint64((1 << k) - 1)
    out = ZERO
    down, across = (n, 1) if (g >> 24) == 0 else (1, n)
    for i in range(m):
        base = mod.perm_i[pi, i] * n
        for j in range(n):
            word = (D >> np.uint64((i * down + j * across) * k)) & mask
            if word:
                out |= mod.table_l[pl, word] << np.uint64((base + mod.perm_j[pj, j]) * k)
    return out


@jit
def transpose_items(mod: Model, R: np.uint64) -> np.uint64:
    """The red set of the transposed problem (square shapes only)."""
    n, k = mod.n, mod.k
    block = np.uint64(n * k)
    mask = np.uint64((1 << (n * k)) - 1)
    out = ((R >> block) & mask) | ((R & mask) << block)
    base = 2 * n * k
    for i in range(n):
        for j in range(n):
            if R & bit(base + i * n + j):
                out |= bit(base + j * n + i)
    return out


@jit
def permute_items(mod: Model, pi: int, pj: int, pl: int, R: np.uint64) -> np.uint64:
    """The image of a red set under the permutations of i, j and l."""
    m, n, k = mod.m, mod.n, mod.k
    kmask, nmask = np.uint64((1 << k) - 1), np.uint64((1 << n) - 1)
    out = ZERO
    cbase = (m + n) * k
    for i in range(m):
        to = mod.perm_i[pi, i]
        out |= mod.table_l[pl, (R >> np.uint64(i * k)) & kmask] << np.uint64(to * k)
        out |= mod.table_j[pj, (R >> np.uint64(cbase + i * n)) & nmask] << np.uint64(cbase + to * n)
    for j in range(n):
        word = (R >> np.uint64((m + j) * k)) & kmask
        out |= mod.table_l[pl, word] << np.uint64((m + mod.perm_j[pj, j]) * k)
    return out


@jit
def touched_twice(mod: Model, R: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Products with at least two red items, and products with all three."""
    once, twice, thrice = ZERO, ZERO, ZERO
    for x in range(mod.items_count):
        if R & bit(x):
            word = mod.touches[x]
            thrice |= twice & word
            twice |= once & word
            once |= word
    return once, twice, thrice

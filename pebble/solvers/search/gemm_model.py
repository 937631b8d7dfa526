"""The in-place GEMM as bits: items, products, and the symmetry group; and true canonical labelling of red sets, and
of (red set, products) pairs.

Items: A(i,l) is bit i k + l, B(l,j) bit m k + j k + l, C(i,j) bit m k + n k + i n + j. Product (i,j,l) is bit
(i n + j) k + l. B lies by columns, so that the transposition m <-> n only swaps two blocks.

The canonical form of (R, D) is the lexicographic minimum over the symmetry group, red set first. For the red set
only symmetries that sort an isomorphism-invariant key of the rows, columns and depths are tried: that set of
symmetries is itself defined by invariants, so the minimum over it is a true canonical form. Once the red set is
canonical, its stabiliser (kept per class) is all that remains for D.
"""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np

from pebble.solvers.search.bits import I32, I64, U64, ZERO, bit, mix, signed
from pebble.traces.jit import inner, jit


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


@inner
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


class Classes(NamedTuple):
    """Red sets up to symmetry, each with its stabiliser, and a cache from red set to class."""

    red: U64
    first: I64
    """first[c]: where the stabiliser of class c starts in `stabiliser` (first[c + 1]: where it ends)."""
    stabiliser: I32
    table: I32
    """Hash table of canonical red sets: class + 1, or 0."""
    cache_red: U64
    cache_class: I32
    cache_symmetry: I32
    counts: I64
    """counts[0]: classes, counts[1]: stabiliser entries, counts[2]: 1 when an array is full."""


_CACHE_BITS = 20


def make_classes(max_classes: int = 1 << 24) -> Classes:
    """Empty tables; untouched pages cost no memory."""
    return Classes(
        np.empty(max_classes, dtype=np.uint64),
        np.zeros(max_classes + 1, dtype=np.int64),
        np.empty(max_classes * 4 + (1 << 20), dtype=np.int32),
        np.zeros(max_classes * 2, dtype=np.int32),
        np.full(1 << _CACHE_BITS, np.uint64(2**64 - 1), dtype=np.uint64),
        np.zeros(1 << _CACHE_BITS, dtype=np.int32),
        np.zeros(1 << _CACHE_BITS, dtype=np.int32),
        np.zeros(4, dtype=np.int64),
    )


@inner
def _keys(mod: Model, R: np.uint64, ki: I64, kj: I64, kl: I64) -> None:
    """Invariant keys of the rows i, columns j and depths l of a red set, refined once by their neighbours."""
    m, n, k = mod.m, mod.n, mod.k
    cbase = (m + n) * k
    ki[:] = 0
    kj[:] = 0
    kl[:] = 0
    for i in range(m):
        for el in range(k):
            if R & bit(i * k + el):
                ki[i] += 1
                kl[el] += 1
        for j in range(n):
            if R & bit(cbase + i * n + j):
                ki[i] += 8
                kj[j] += 8
    for j in range(n):
        for el in range(k):
            if R & bit((m + j) * k + el):
                kj[j] += 1
                kl[el] += 8
    ni, nj, nl = ki.copy(), kj.copy(), kl.copy()
    ni *= 1 << 24
    nj *= 1 << 24
    nl *= 1 << 24
    for i in range(m):
        for el in range(k):
            if R & bit(i * k + el):
                ni[i] += kl[el] * kl[el] + 7
                nl[el] += ki[i] * ki[i] + 7
        for j in range(n):
            if R & bit(cbase + i * n + j):
                ni[i] += (kj[j] * kj[j] + 5) * 517
                nj[j] += (ki[i] * ki[i] + 5) * 517
    for j in range(n):
        for el in range(k):
            if R & bit((m + j) * k + el):
                nj[j] += kl[el] * kl[el] + 7
                nl[el] += (kj[j] * kj[j] + 7) * 517
    for key, refined in ((ki, ni), (kj, nj), (kl, nl)):
        for x in range(len(key)):  # not as slices: the check of their shapes alone takes numba seconds to compile
            key[x] = refined[x]


@inner
def _sorting(perms: I64, key: I64, out: I64) -> int:
    """The permutations that put the keys in ascending order; how many."""
    size = len(key)
    count = 0
    for p in range(perms.shape[0]):
        good = True
        for a in range(size):
            for b in range(a + 1, size):
                if (key[a] < key[b] and perms[p, a] > perms[p, b]) or (key[a] > key[b] and perms[p, a] < perms[p, b]):
                    good = False
                    break
            if not good:
                break
        if good:
            out[count] = p
            count += 1
    return count


@jit
def canonical_red(mod: Model, R: np.uint64, keep: bool, out: I32) -> tuple[np.uint64, int, int]:
    """The canonical image of a red set and one symmetry that reaches it.

    With `keep`, also every symmetry with image R itself into `out` (meant for canonical R: its stabiliser);
    the third value returned is their number.
    """
    best, task, kept = ~ZERO, 0, 0
    ki, kj, kl = np.zeros(mod.m, np.int64), np.zeros(mod.n, np.int64), np.zeros(mod.k, np.int64)
    li, lj, ll = np.empty(120, np.int64), np.empty(120, np.int64), np.empty(120, np.int64)
    for flip in range(2 if mod.square else 1):
        Q = transpose_items(mod, R) if flip else R
        _keys(mod, Q, ki, kj, kl)
        ci, cj, cl = _sorting(mod.perm_i, ki, li), _sorting(mod.perm_j, kj, lj), _sorting(mod.perm_l, kl, ll)
        for c in range(cl):
            for b in range(cj):
                for a in range(ci):
                    image = permute_items(mod, li[a], lj[b], ll[c], Q)
                    if image < best:
                        best = image
                        task = li[a] | lj[b] << 8 | ll[c] << 16 | flip << 24
                    if keep and image == R:
                        out[kept] = li[a] | lj[b] << 8 | ll[c] << 16 | flip << 24
                        kept += 1
    return best, task, kept


@jit
def class_of(mod: Model, cls: Classes, R: np.uint64) -> tuple[int, int]:
    """Class of a red set and a symmetry that takes it there; class -1 when the tables are full."""
    slot = signed(mix(R, ZERO) & np.uint64(len(cls.cache_red) - 1))
    if cls.cache_red[slot] == R:
        return signed(cls.cache_class[slot]), signed(cls.cache_symmetry[slot])
    empty = np.empty(0, np.int32)
    canon, g, _ = canonical_red(mod, R, False, empty)
    size = len(cls.table)
    where = signed(mix(canon, np.uint64(77)) % np.uint64(size))
    while cls.table[where] != 0 and cls.red[cls.table[where] - 1] != canon:
        where += 1
        if where == size:
            where = 0
    c = signed(cls.table[where]) - 1
    if c < 0:
        c = cls.counts[0]
        if c + 1 >= len(cls.red) or cls.counts[1] + mod.order >= len(cls.stabiliser):
            cls.counts[2] = 1
            return -1, 0
        cls.red[c] = canon
        start = cls.counts[1]
        _, _, kept = canonical_red(mod, canon, True, cls.stabiliser[start:])
        cls.counts[1] = start + kept
        cls.first[c + 1] = start + kept
        cls.counts[0] = c + 1
        cls.table[where] = c + 1
    cls.cache_red[slot] = R
    cls.cache_class[slot] = c
    cls.cache_symmetry[slot] = g
    return c, g


@jit
def least_image(mod: Model, cls: Classes, c: int, g: int, D: np.uint64) -> np.uint64:
    """The canonical image of a set of products whose red set has class c by symmetry g."""
    D = move_products(mod, g, D)
    best = D
    for s in range(cls.first[c], cls.first[c + 1]):
        image = move_products(mod, signed(cls.stabiliser[s]), D)
        if image < best:
            best = image
    return best

"""The pattern database of the in-place GEMM: a potential that never over-estimates the cost to go.

A position is abstracted to (R, M, p, u): the red set R, the products M still undone among those *in scope*, the
number p of products left and the number u of untouched accumulators. The status of products out of scope is forgotten.
Detail 0, small tables: in scope are the products with two red items (with three they are done). Detail 1: also those
of a red accumulator. Then p - k u - |M on red accumulators| products belong to accumulators that were initialised and
evicted; each of these has at most k - 1 of them.

The relaxed game on abstract positions:

- forget: drop a red item. Free, but with detail an accumulator with undone products must be stored: 1.
- run: take a product t in M or out of scope. Its missing A and B are loaded at 1 each. Its missing C is either fresh
  (free; u falls by one; none of its products may be known to be done) or reloaded. With detail a reload costs 1 and
  comes with any choice of at most k - 1 undone products, t among them, none known to be done; a fresh C has all its
  products undone. Without, it costs 2, for its store too. Other products that come into scope are taken as undone.
  What then has three red items and is undone runs: p falls by their number. Without detail the status of some of
  these is a guess, and p may fall by less, but at least by 1.

Every move of the real game is a chain of these at the same cost (without detail: once the store of an accumulator is
counted with its reload), and V does not rise when M grows on products whose accumulator is not red, or without detail
on any product (every move stays possible). So the least cost V(R, M, p, u) to reach p = u = 0 is a lower bound on
the loads and spill stores still to come, final stores not counted. V obeys V(s) <= cost(s -> s') + V(s') for every
relaxed move: this is all that a checker of the table needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.solvers.search.bits import I32, I64, ONE, U64, ZERO, bit, borrowed, lowest, mix, popcount, signed
from pebble.solvers.search.gemm_model import Classes, Model, class_of, least_image, touched_twice
from pebble.traces.jit import inner, jit

RUNNING, DONE, FULL, GROW = 0, 1, 2, 3
NEVER = 255
FRESH = 8
_SLICE = 1024


class Patterns(NamedTuple):
    """Abstract positions (class, M) and their moves."""

    node_class: I32
    node_undone: U64
    node_open: NDArray[np.uint8]
    """Undone products on red accumulators; their number of red accumulators is in node_cells."""
    node_cells: NDArray[np.uint8]
    first_edge: I64
    edge_to: I32
    edge_kind: NDArray[np.uint16]
    """cost | fresh << 3 | fewest products run << 4 | most << 9."""
    counts: I64
    """counts[0]: nodes, counts[1]: edges, counts[2]: nodes whose moves are known."""


def make_patterns(max_nodes: int, max_edges: int) -> Patterns:
    """Empty arrays; untouched pages cost no memory."""
    return Patterns(
        np.empty(max_nodes, dtype=np.int32),
        np.empty(max_nodes, dtype=np.uint64),
        np.empty(max_nodes, dtype=np.uint8),
        np.empty(max_nodes, dtype=np.uint8),
        np.zeros(max_nodes + 1, dtype=np.int64),
        np.empty(max_edges, dtype=np.int32),
        np.empty(max_edges, dtype=np.uint16),
        np.zeros(4, dtype=np.int64),
    )


@inner
def cell_rows(mod: Model, R: np.uint64) -> np.uint64:
    """The products of the red accumulators."""
    rows = ZERO
    for x in range((mod.m + mod.n) * mod.k, mod.items_count):
        if R & bit(x):
            rows |= mod.touches[x]
    return rows


@jit
def scope(mod: Model, R: np.uint64) -> np.uint64:
    """The products whose status a pattern with red set R remembers."""
    _, twice, thrice = touched_twice(mod, R)
    if mod.detail:
        return (twice | cell_rows(mod, R)) & ~thrice
    return twice & ~thrice


@jit
def find_node(pat: Patterns, table: I32, c: int, undone: np.uint64) -> int:
    """Slot of abstract position (class, canonical M) in the hash table, its own or the free one."""
    size = len(table)
    where = signed(mix(undone, np.uint64(c)) & np.uint64(size - 1))
    while table[where] != 0:
        node = table[where] - 1
        if pat.node_class[node] == c and pat.node_undone[node] == undone:
            break
        where = (where + 1) & (size - 1)
    return where


@jit
def rehash_nodes(pat: Patterns, table: I32) -> None:
    """Fill a larger, zeroed table."""
    for node in range(pat.counts[0]):
        where = find_node(pat, table, signed(pat.node_class[node]), pat.node_undone[node])
        table[where] = node + 1


@jit
def _node(mod: Model, cls: Classes, pat: Patterns, table: I32, R: np.uint64, undone: np.uint64) -> int:
    """Number of the abstract position (R, M), entered if new; -1 when an array is full."""
    c, g = class_of(mod, cls, R)
    if c < 0:
        return -1
    undone = least_image(mod, cls, c, g, undone)
    where = find_node(pat, table, c, undone)
    if table[where] == 0:
        node = pat.counts[0]
        if node + 1 >= len(pat.node_class):
            return -1
        pat.node_class[node] = c
        pat.node_undone[node] = undone
        rows = cell_rows(mod, cls.red[c])
        pat.node_open[node] = popcount(undone & rows)
        pat.node_cells[node] = popcount(cls.red[c] >> np.uint64((mod.m + mod.n) * mod.k))
        pat.counts[0] = node + 1
        table[where] = node + 1
    return signed(table[where]) - 1


@inner
def _edge(pat: Patterns, start: int, to: int, kind: int) -> None:
    """Add a move unless an equal one of this position is there."""
    last = pat.counts[1]
    for e in range(start, last):
        if pat.edge_to[e] == to and pat.edge_kind[e] == kind:
            return
    pat.edge_to[last] = to
    pat.edge_kind[last] = kind
    pat.counts[1] = last + 1


@inner
def _run_edge(
    mod: Model, cls: Classes, pat: Patterns, table: I32, start: int, R: np.uint64, undone: np.uint64, cost: int
) -> bool:
    """The move to red set R with these products undone just before those with three red items run."""
    _, _, thrice = touched_twice(mod, R)
    to = _node(mod, cls, pat, table, R, undone & ~thrice & scope(mod, R))
    if to < 0:
        return False
    most = popcount(undone & thrice)
    fewest = most if mod.detail else 1
    _edge(pat, start, to, cost | fewest << 4 | most << 9)
    return True


@inner
def _explore_one(mod: Model, cls: Classes, pat: Patterns, table: I32, node: int) -> bool:
    """All moves of one abstract position; False when an array is full."""
    R = cls.red[pat.node_class[node]]
    M = pat.node_undone[node]
    start = pat.counts[1]
    cbase = (mod.m + mod.n) * mod.k
    known = scope(mod, R)
    rows = cell_rows(mod, R) if mod.detail else ZERO
    left = R
    while left:  # forget one item
        x = lowest(left)
        left &= left - ONE
        smaller = R & ~bit(x)
        to = _node(mod, cls, pat, table, smaller, M & scope(mod, smaller))
        if to < 0:
            return False
        _edge(pat, start, to, 1 if mod.detail and x >= cbase and M & mod.touches[x] else 0)
    left = M & ~rows
    while left:  # the same with a product less undone: no move, but real positions need the entry
        low = left & (~left + ONE)
        left ^= low
        if _node(mod, cls, pat, table, R, M & ~low) < 0:
            return False
    capacity = mod.capacity - popcount(R)
    _, _, done = touched_twice(mod, R)
    known |= done
    for t in range(mod.products_count):
        missing = mod.needs[t] & ~R
        if (known & ~M & bit(t)) or missing == ZERO or popcount(missing) > capacity:
            continue
        larger = R | mod.needs[t]
        _, _, thrice = touched_twice(mod, larger)
        cost = popcount(missing)
        accumulator = missing >> np.uint64(cbase)
        if accumulator == ZERO:
            undone = M | ((scope(mod, larger) | thrice) & ~known)
            if not _run_edge(mod, cls, pat, table, start, larger, undone, cost):
                return False
            continue
        row = mod.touches[cbase + lowest(accumulator)]
        if mod.detail == 0:
            undone = M | ((scope(mod, larger) | thrice) & ~known)
            if not _run_edge(mod, cls, pat, table, start, larger, undone, cost + 1):
                return False
            if (known & row & ~M) == ZERO and not _run_edge(
                mod, cls, pat, table, start, larger, undone, (cost - 1) | FRESH
            ):
                return False
            continue
        undone = M | ((scope(mod, larger) | thrice) & ~known & ~row)
        if (known & row & ~M) == ZERO and not _run_edge(
            mod, cls, pat, table, start, larger, undone | row, (cost - 1) | FRESH
        ):
            return False
        free = row & ~bit(t) & ~(known & ~M)
        part = free
        while True:  # every subset of the products that may be undone
            if popcount(part) + 1 < mod.k and not _run_edge(
                mod, cls, pat, table, start, larger, (undone & ~row) | part | bit(t), cost
            ):
                return False
            if part == ZERO:
                break
            part = (part - ONE) & free
    return True


@jit
def explore(mod: Model, cls: Classes, pat: Patterns, table: I32, work: int) -> int:
    """Find the moves of up to `work` abstract positions; RUNNING, DONE, FULL, or GROW to ask for a larger table."""
    mod, cls, pat, table = borrowed((mod, cls, pat, table))
    if pat.counts[0] == 0:
        _node(mod, cls, pat, table, ZERO, ZERO)
    for _ in range(work):
        node = pat.counts[2]
        if node == pat.counts[0]:
            return DONE
        if 2 * (pat.counts[0] + 4096) > len(table):
            return GROW
        if pat.counts[1] + 4096 >= len(pat.edge_to) or not _explore_one(mod, cls, pat, table, node):
            return FULL
        pat.first_edge[node + 1] = pat.counts[1]
        pat.counts[2] = node + 1
    return RUNNING


@jit
def fill_row(mod: Model, pat: Patterns, order: I32, offsets: I64, V: NDArray[np.uint8], p: int, u: int) -> None:
    """V for p products left and u accumulators untouched, from the rows with less; `order`: by red count."""
    cells = mod.m * mod.n
    row = offsets[u] + p - mod.k * u
    for at in range(pat.counts[0]):
        node = order[at]
        away = p - mod.k * u - signed(pat.node_open[node])
        initialised = cells - u - signed(pat.node_cells[node])
        best = NEVER
        if mod.detail == 0 or (away >= 0 and away <= initialised * (mod.k - 1)):
            if p == 0:
                best = 0
            for e in range(pat.first_edge[node], pat.first_edge[node + 1]):
                kind = signed(pat.edge_kind[e])
                cost = kind & 7
                if cost >= best:
                    continue
                v = u - ((kind >> 3) & 1)
                if v < 0:
                    continue
                least = mod.k * v
                for done in range((kind >> 4) & 31, (kind >> 9) + 1):
                    if p - done < least:
                        break
                    value = signed(V[offsets[v] + p - done - least, pat.edge_to[e]])
                    if value != NEVER and value + cost < best:
                        best = value + cost
        V[row, node] = best


def row_offsets(m: int, n: int, k: int) -> tuple[I64, int]:
    """Where the rows of each u start, and the number of rows: one for every (p, u) with k u <= p <= m n k."""
    offsets = np.zeros(m * n + 2, dtype=np.int64)
    for u in range(m * n + 1):
        offsets[u + 1] = offsets[u] + m * n * k - k * u + 1
    return offsets, int(offsets[m * n + 1])


class Table(NamedTuple):
    """A finished pattern table, or an empty one; values[row, node] of `row_offsets`."""

    patterns: Patterns
    nodes: I32
    values: NDArray[np.uint8]
    offsets: I64


def build_table(model: Model, classes: Classes, most: int, expired: Callable[[], bool]) -> Table | None:
    """The table of a model, or None when it has more nodes than that, or the time is over."""
    m, n, k = model.m, model.n, model.k
    patterns, nodes = make_patterns(most, 16 * most), np.zeros(1 << 16, dtype=np.int32)
    while (status := explore(model, classes, patterns, nodes, _SLICE)) != DONE:
        if status == GROW:
            nodes = np.zeros(4 * len(nodes), dtype=np.int32)
            rehash_nodes(patterns, nodes)
        elif status == FULL or expired():
            return None
    count = int(patterns.counts[0])
    sizes = np.bitwise_count(classes.red[patterns.node_class[:count]])
    order = np.argsort(sizes, kind="stable").astype(np.int32)
    offsets, rows = row_offsets(m, n, k)
    values = np.full((rows, count), NEVER, dtype=np.uint8)
    for left in range(m * n * k + 1):
        for untouched in range(min(m * n, left // k) + 1):
            fill_row(model, patterns, order, offsets, values, left, untouched)
            if expired():
                return None
    return Table(patterns, nodes, values, offsets)

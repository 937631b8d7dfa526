"""What a search keeps of the task sets that can be done first ("ideals"), each computed once, compiled.

A general game has few ideals and many positions at each: 1,462 and millions in a file of conjugate gradients. What
depends on the ideal alone is therefore computed when it is first reached: the items still needed, the tasks that are
ready with the ideals they lead to, and the lines of the bound.

**The bound** (evictions still to be paid for). When task t runs, every item that something before it touched and it
or something after it reads is live; those beyond the capacity are in slow memory by then, and those of them that are
red now are still to be paid for: 1 where slow memory has or may have the item at no further cost, else 2. A line of
it is a mask g, an overflow a and a number b of cheap items yet to come, with e = a + |red & g| and
price = 2 e - min(e, b + |red & g & cheap|). The bound is the dearest line. A line (g, a, b) is left out where another
(g', a', b') has g within g', a <= a' and b >= b': each further red item adds 1 to e' and at most 1 to what is cheap,
so the price of the other is never less.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.solvers.search.bits import (
    I32,
    I64,
    ONE,
    U64,
    ZERO,
    Pair,
    holds,
    lowest,
    popcount,
    signed,
    single,
    slot_of,
)
from pebble.solvers.search.dag_counts import Counted, counted_bound, no_counts, place_of
from pebble.solvers.search.dag_model import DagModel
from pebble.traces.jit import inlined, inner, jit

# columns of Ideals.words and Ideals.numbers
NEED, PURE, LIVE, SINGLE = 2, 4, 6, 8
READY, READY_END, LINE, LINE_END, ROW, HEAD, NEXT, PLACE = range(8)
# bits of a ready entry
INITIALISED, STORED, PAYS = 1, 2, 4
MOST_LINES = 64
BYTES_PER_IDEAL = 10 * 8 + 8 * 4 + 8 + 12 * (16 + 12 + 16 + 8) + 24 * 16


class Ideals(NamedTuple):
    """Ideals by number; `ready` and `lines` hold what each has of them one after the other."""

    words: U64
    """Tasks done (2 words), items needed (2), inputs that no task done has updated (2), needed items that were touched
    (2), items that one task alone still touches (2)."""
    numbers: I32
    """Ready entries (first, end), lines (first, end), first row, first position or -1, next ideal of its layer, place
    in the counted game or -1."""
    ready_words: U64
    """Operands of the task that nothing else needs (2 words)."""
    ready: I32
    """Task, the ideal after it or -1, bits."""
    line_words: U64
    lines: I32
    """a and b of each line."""
    rows: U64
    """For each touched and needed item, ascending: those of them (2 words) that are touched again no later than it in
    any play, since every task to come that touches it comes after or is one that touches them."""
    table: I32
    counts: I64
    """Ideals, ready entries, lines, rows."""
    counted: Counted


def make_ideals(most: int, counted: Counted | None = None) -> Ideals:
    """Empty arrays, beside the table of a counted game; untouched pages cost no memory."""
    size = 1 << max(10, (2 * most).bit_length())
    return Ideals(
        np.empty((most, 10), np.uint64),
        np.empty((most, 8), np.int32),
        np.empty((12 * most, 2), np.uint64),
        np.empty((12 * most, 3), np.int32),
        np.empty((12 * most, 2), np.uint64),
        np.empty((12 * most, 2), np.int32),
        np.empty((24 * most, 2), np.uint64),
        np.zeros(size, np.int32),
        np.zeros(4, np.int64),
        no_counts() if counted is None else counted,
    )


@inner
def find_ideal(ideals: Ideals, d0: np.uint64, d1: np.uint64) -> int:
    """Slot of an ideal in the hash table, its own or the free one."""
    return slot_of(ideals.words, ideals.table, d0, d1)


@inner
def _add_line(ideals: Ideals, first: int, g0: np.uint64, g1: np.uint64, a: int, b: int) -> None:
    """Add a line of the bound unless one there is as good; those it makes useless go."""
    line_words, lines, counts = ideals.line_words, ideals.lines, ideals.counts
    end = counts[2]
    e = first
    while e < end:
        h0, h1 = line_words[e, 0], line_words[e, 1]
        if (g0 & ~h0) | (g1 & ~h1) == ZERO and a <= lines[e, 0] and b >= lines[e, 1]:
            return
        if (h0 & ~g0) | (h1 & ~g1) == ZERO and lines[e, 0] <= a and lines[e, 1] >= b:
            end -= 1
            line_words[e, 0], line_words[e, 1] = line_words[end, 0], line_words[end, 1]
            lines[e, 0], lines[e, 1] = lines[end, 0], lines[end, 1]
        else:
            e += 1
    if end - first < MOST_LINES:
        line_words[end, 0], line_words[end, 1] = g0, g1
        lines[end, 0], lines[end, 1] = a, b
        end += 1
    counts[2] = end


@inner
def _add_rows(mod: DagModel, ideals: Ideals, i: int, d0: np.uint64, d1: np.uint64) -> None:
    """Enter which item is touched again no later than which."""
    words, rows, counts = ideals.words, ideals.rows, ideals.counts
    live0, live1 = words[i, LIVE], words[i, LIVE + 1]
    earlier = np.zeros((mod.tasks, 2), np.uint64)  # what a task, or one to come that must precede it, touches
    for t in range(mod.tasks):  # in topological order
        if ((d0 if t < 64 else d1) >> np.uint64(t & 63)) & ONE:
            continue
        x = mod.target[t]
        e0, e1 = mod.operands[t, 0], mod.operands[t, 1]
        if x < 64:
            e0 |= ONE << np.uint64(x)
        else:
            e1 |= ONE << np.uint64(x - 64)
        p0, p1 = mod.before[t, 0] & ~d0, mod.before[t, 1] & ~d1
        while p0:
            u = lowest(p0)
            p0 &= p0 - ONE
            e0 |= earlier[u, 0]
            e1 |= earlier[u, 1]
        while p1:
            u = 64 + lowest(p1)
            p1 &= p1 - ONE
            e0 |= earlier[u, 0]
            e1 |= earlier[u, 1]
        earlier[t, 0], earlier[t, 1] = e0, e1
    ideals.numbers[i, ROW] = counts[3]
    words[i, SINGLE], words[i, SINGLE + 1] = ZERO, ZERO
    for x in range(mod.items):
        if not ((live0 if x < 64 else live1) >> np.uint64(x & 63)) & ONE:
            continue
        e0, e1 = live0, live1
        p0, p1 = (mod.uses[x, 0] | mod.updates[x, 0]) & ~d0, (mod.uses[x, 1] | mod.updates[x, 1]) & ~d1
        if popcount(p0) + popcount(p1) == 1:
            if x < 64:
                words[i, SINGLE] |= ONE << np.uint64(x)
            else:
                words[i, SINGLE + 1] |= ONE << np.uint64(x - 64)
        while p0:
            u = lowest(p0)
            p0 &= p0 - ONE
            e0 &= earlier[u, 0]
            e1 &= earlier[u, 1]
        while p1:
            u = 64 + lowest(p1)
            p1 &= p1 - ONE
            e0 &= earlier[u, 0]
            e1 &= earlier[u, 1]
        rows[counts[3], 0], rows[counts[3], 1] = e0, e1
        counts[3] += 1


@inlined
def _bits_of(mod: DagModel, x: int, d0: np.uint64, d1: np.uint64) -> int:
    """What is so of the result of a ready task, item x: BEGUN, STORED, PAYS."""
    bits = 0
    own = single(x)
    updates0, updates1 = mod.updates[x, 0], mod.updates[x, 1]
    if (mod.inputs[0, 0] & own[0]) | (mod.inputs[0, 1] & own[1]) | (updates0 & d0) | (updates1 & d1):
        bits |= INITIALISED
    if popcount(updates0 & ~d0) + popcount(updates1 & ~d1) == 1:
        if (mod.outputs[0, 0] & own[0]) | (mod.outputs[0, 1] & own[1]):
            bits |= STORED
        if mod.uses[x, 0] | mod.uses[x, 1] == ZERO:
            bits |= PAYS
    return bits


@jit
def ideal_of(mod: DagModel, ideals: Ideals, d0: np.uint64, d1: np.uint64) -> int:
    """Number of the ideal with these tasks done, entered if new; -1 when an array is full."""
    where = find_ideal(ideals, d0, d1)
    if ideals.table[where] != 0:
        return signed(ideals.table[where]) - 1
    counts, numbers, words = ideals.counts, ideals.numbers, ideals.words
    i: int = counts[0]
    if i + 1 >= len(words) or counts[1] + mod.tasks >= len(ideals.ready) or counts[2] + MOST_LINES >= len(ideals.lines):
        return -1
    if counts[3] + mod.items >= len(ideals.rows):
        return -1
    operands, before, targets = mod.operands, mod.before, mod.target
    touched0, touched1, used0, used1, need0, need1, made0, made1 = ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO
    for t in range(mod.tasks):
        own0, own1 = single(targets[t])
        if holds((d0, d1), t):
            touched0 |= operands[t, 0] | own0
            touched1 |= operands[t, 1] | own1
            made0 |= own0
            made1 |= own1
        else:
            used0 |= operands[t, 0]
            used1 |= operands[t, 1]
            need0 |= own0
            need1 |= own1
    words[i, 0], words[i, 1] = d0, d1
    words[i, NEED], words[i, NEED + 1] = need0 | used0, need1 | used1
    words[i, PURE], words[i, PURE + 1] = mod.inputs[0, 0] & ~made0, mod.inputs[0, 1] & ~made1
    words[i, LIVE], words[i, LIVE + 1] = touched0 & (need0 | used0), touched1 & (need1 | used1)
    _add_rows(mod, ideals, i, d0, d1)
    live0, live1 = touched0 & used0, touched1 & used1
    cheap0, cheap1 = mod.inputs[0, 0] | mod.outputs[0, 0], mod.inputs[0, 1] | mod.outputs[0, 1]
    numbers[i, READY], numbers[i, LINE] = counts[1], counts[2]
    for t in range(mod.tasks):
        if holds((d0, d1), t):
            continue
        x = targets[t]
        own0, own1 = single(x)
        o0, o1 = operands[t, 0], operands[t, 1]
        for moment in range(2 if mod.sliding else 1):
            if moment == 0:
                # operands and what is needed later, and the result's own place unless it slides
                f0 = (live0 | mod.touched_before[t, 0]) & mod.needed_from[t, 0] | o0
                f1 = (live1 | mod.touched_before[t, 1]) & mod.needed_from[t, 1] | o1
                place, fixed0, fixed1 = 0 if mod.sliding else 1, o0, o1
            else:
                f0 = (live0 | mod.touched_before[t, 0]) & mod.needed_after[t, 0]
                f1 = (live1 | mod.touched_before[t, 1]) & mod.needed_after[t, 1]
                place, fixed0, fixed1 = 1, ZERO, ZERO
            if place:
                f0 &= ~own0
                f1 &= ~own1
            # operands of t are red at t, so what is away is chosen among the others
            g0, g1 = f0 & live0 & ~fixed0, f1 & live1 & ~fixed1
            size = popcount(g0) + popcount(g1)
            a = popcount(f0) + popcount(f1) + place - size - mod.capacity
            if a + min(size, mod.capacity) > 0:
                b = popcount(f0 & ~live0 & ~fixed0 & cheap0) + popcount(f1 & ~live1 & ~fixed1 & cheap1)
                _add_line(ideals, numbers[i, LINE], g0, g1, a, b)
        if (before[t, 0] & ~d0) | (before[t, 1] & ~d1):
            continue
        other0, other1 = need0, need1
        for u in range(mod.tasks):
            if u != t and not holds((d0, d1), u):
                other0 |= operands[u, 0]
                other1 |= operands[u, 1]
        entry = counts[1]
        ideals.ready_words[entry, 0], ideals.ready_words[entry, 1] = o0 & ~other0, o1 & ~other1
        ideals.ready[entry, 0], ideals.ready[entry, 1], ideals.ready[entry, 2] = t, -1, _bits_of(mod, x, d0, d1)
        counts[1] = entry + 1
    numbers[i, READY_END], numbers[i, LINE_END] = counts[1], counts[2]
    numbers[i, HEAD], numbers[i, NEXT], numbers[i, PLACE] = -1, -2, place_of(ideals.counted, d0, d1)
    counts[0] = i + 1
    ideals.table[where] = i + 1
    return i


@jit
def bound_at(numbers: I32, line_words: U64, lines: I32, i: int, red: Pair, cheap: Pair) -> int:
    """The bound on what a position of ideal i with these red items still pays, by `Ideals.numbers`, its lines."""
    worst = 0
    for e in range(numbers[i, LINE], numbers[i, LINE_END]):
        g0, g1 = line_words[e, 0] & red[0], line_words[e, 1] & red[1]
        over = lines[e, 0] + popcount(g0) + popcount(g1)
        if 2 * over > worst:
            low = lines[e, 1] + popcount(g0 & cheap[0]) + popcount(g1 & cheap[1])
            worst = max(worst, 2 * over - min(low, over))
    return worst


@jit
def bound_of(
    numbers: I32, line_words: U64, lines: I32, values: NDArray[np.uint8], most: int,
    i: int, red: Pair, clean: Pair, cheap: Pair, limit: int,
) -> int:  # fmt: skip
    """The dearer of the lines and of the counted game (values, most dirty); whichever is above a limit alone will do.

    The arrays come one by one: to hand over the tuples for every position costs as much as the bound.
    """
    reds = popcount(red[0]) + popcount(red[1])
    dirty = popcount(red[0] & ~clean[0]) + popcount(red[1] & ~clean[1])
    counted = counted_bound(values, most, numbers[i, PLACE], reds, dirty)
    if counted > limit:
        return counted
    return max(counted, bound_at(numbers, line_words, lines, i, red, cheap))

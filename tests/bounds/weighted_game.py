"""The least bytes of a tiny product or chain in the game of widths, by search: an oracle that knows no theorem.

Without loss: an operation whose values are all in fast memory is done at once (it frees room at most); a partial sum is
stored only to be evicted, since its copy is out of date after the next update; a complete output is stored and evicted
at once; a value without further use is evicted at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from pebble.workloads.widths import Widths

State = tuple[int, int, int, int]  # inputs in fast memory, cells there, cells in slow memory, operations done; as masks


class After(NamedTuple):
    """What operations that are done say of values, each a mask of inputs or of cells."""

    used: int  #: inputs with further use
    begun: int
    complete: int
    needed: int  #: cells with an update or a use to come
    left: int  #: outputs that are not complete


@dataclass(frozen=True)
class WideGame:
    """Operations (inputs as a mask, cells read, cell updated) and what cells are: outputs or not."""

    inputs: int
    tasks: tuple[tuple[int, tuple[int, ...], int], ...]
    output: tuple[bool, ...]
    widths: Widths
    starts_blue: bool = False  #: outputs are added to: they start in slow memory, complete

    def least(self, capacity: int) -> int | None:
        """The least bytes moved with so many bytes of fast memory; None where no schedule exists."""
        cells, w = range(len(self.output)), self.widths
        updates = [sum(1 << t for t, task in enumerate(self.tasks) if task[2] == c) for c in cells]
        reads = [sum(1 << t for t, task in enumerate(self.tasks) if c in task[1]) for c in cells]
        uses = [sum(1 << t for t, task in enumerate(self.tasks) if task[0] >> i & 1) for i in range(self.inputs)]
        full, every = (1 << len(self.tasks)) - 1, (1 << len(cells)) - 1
        outputs = sum(1 << c for c in cells if self.output[c])
        tasks = []  # each with the operations that complete what it reads
        for t, (needed, read, cell) in enumerate(self.tasks):
            tasks.append(
                (1 << t, needed, sum(1 << c for c in read) | 1 << cell, 1 << cell, sum(updates[c] for c in read))
            )

        @cache
        def after(done: int) -> After:
            left = [done & updates[c] != updates[c] for c in cells]
            return After(
                sum(1 << i for i in range(self.inputs) if uses[i] & ~done),
                sum(1 << c for c in cells if done & updates[c]),
                sum(1 << c for c in cells if not left[c]),
                sum(1 << c for c in cells if left[c] or reads[c] & ~done),
                sum(1 << c for c in cells if left[c] and self.output[c]),
            )

        def size(some: int, now: After, sums: int) -> int:
            """What cells take, those of ``sums`` partial sums of outputs."""
            inner, whole = some & ~outputs, some & outputs & ~sums
            return (
                w.partial * (some & sums).bit_count()
                + w.written * whole.bit_count()
                + w.read * (inner & now.complete).bit_count()
                + w.hidden * (inner & ~now.complete).bit_count()
            )

        def moved(some: int, now: After) -> int:
            """What cells take on their way: an output that is not begun is what it was before."""
            return size(some, now, now.left & now.begun)

        def bits(mask: int) -> Iterator[int]:
            while mask:
                yield mask & -mask
                mask &= mask - 1

        def settle(red: int, held: int, blue: int, done: int) -> tuple[State, int]:
            """Everything that is done at once, and what it costs."""
            changed = True
            while changed:
                changed = False
                for bit, needed, touched, cell, before in tasks:
                    ready = not done & bit and red & needed == needed and held & touched == touched
                    if ready and done & before == before:
                        done |= bit
                        blue &= ~cell
                        changed = True
            now = after(done)
            stored = now.complete & outputs & held & ~blue
            useless = now.complete & ~outputs & ~now.needed
            state = red & now.used, held & ~stored & ~useless, (blue | stored) & ~useless, done
            return state, w.written * stored.bit_count()

        def evicted(state: State, more: int) -> Iterator[tuple[int, int, int]]:
            """Inputs and cells that make such room, none of them more than it takes, and what storing them costs."""
            if more <= 0:
                return iter([(0, 0, 0)])
            red, held, blue, done = state
            now = after(done)
            items = [(w.read, bit, 0, 0) for bit in bits(red)]
            items += [(size(bit, now, now.left), 0, bit, moved(bit & now.begun & ~blue, now)) for bit in bits(held)]
            items.sort()  # the largest of each set is the last: without it there is no room

            def sets(start: int, lacking: int, inputs: int, gone: int, paid: int) -> Iterator[tuple[int, int, int]]:
                for at in range(start, len(items)):
                    size, i, c, cost = items[at]
                    if size >= lacking:
                        yield inputs | i, gone | c, paid + cost
                    else:
                        yield from sets(at + 1, lacking - size, inputs | i, gone | c, paid + cost)

            return sets(0, more, 0, 0, 0)

        def moves(state: State) -> Iterator[tuple[State, int]]:
            """One more value in fast memory, with no more evicted for it than it takes: what stays does no harm."""
            red, held, blue, done = state
            now = after(done)
            # an accumulator that is set up takes its room at once
            free = capacity - w.read * red.bit_count() - size(held, now, now.left)
            for bit in bits(now.used & ~red):
                for inputs, gone, paid in evicted(state, w.read - free):
                    yield (red & ~inputs | bit, held & ~gone, blue | gone & now.begun, done), w.read + paid
            for bit in bits(~held & (now.left | blue & ~outputs | every & ~outputs & ~now.complete)):
                price, copy = moved(bit & blue, now), bit & blue & (now.complete | ~now.begun)
                for inputs, gone, paid in evicted(state, size(bit, now, now.left) - free):
                    kept = (blue | gone & now.begun) & ~bit | copy
                    yield (red & ~inputs, held & ~gone | bit, kept, done), price + paid

        def still(state: State) -> int:
            """What surely moves from here on: A* looks at nothing that costs more."""
            red, held, blue, done = state
            now = after(done)
            away = moved(blue & ~held & now.needed, now)
            return w.read * (now.used & ~red).bit_count() + away + w.written * now.left.bit_count()

        start: State = (0, 0, outputs if self.starts_blue else 0, 0)
        best = {start: 0}
        heap = [(still(start), 0, start)]
        while heap:
            _, negative, state = heapq.heappop(heap)  # of equals, the one that has moved most
            cost = -negative
            if cost > best[state]:
                continue
            if state[3] == full:
                return cost
            for entered, price in moves(state):
                settled, more = settle(*entered)
                total = cost + price + more
                if total < best.get(settled, total + 1):
                    best[settled] = total
                    heapq.heappush(heap, (total + still(settled), -total, settled))
        return None


def product_game(m: int, n: int, k: int, widths: Widths, added: bool = False) -> WideGame:
    """C := A B, or C += A B."""
    tasks = tuple(
        (1 << (i * k + t) | 1 << (m * k + t * n + j), (), i * n + j)
        for i in range(m)
        for j in range(n)
        for t in range(k)
    )
    return WideGame(m * k + k * n, tasks, (True,) * (m * n), widths, added)


def chain_game(m: int, k: int, f: int, l: int, widths: Widths) -> WideGame:
    """H = A B, then Y = H D; a cell of H is complete, and one width, after its k products."""
    a, b = m * k, k * f
    first = tuple(
        (1 << (i * k + t) | 1 << (a + t * f + j), (), i * f + j) for i in range(m) for j in range(f) for t in range(k)
    )
    second = tuple(
        (1 << (a + b + j * l + q), (i * f + j,), m * f + i * l + q)
        for i in range(m)
        for q in range(l)
        for j in range(f)
    )
    return WideGame(a + b + f * l, first + second, (False,) * (m * f) + (True,) * (m * l), widths)

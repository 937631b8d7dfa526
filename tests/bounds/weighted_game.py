"""The least bytes of a tiny product or chain in the game of widths, by search: an oracle that knows no theorem.

Without loss: an operation whose values are all in fast memory is done at once (it frees room at most); a partial sum is
stored only to be evicted, since its copy is out of date after the next update; a complete output is stored and evicted
at once; a value without further use is evicted at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from pebble.workloads.widths import Widths

NONE, RED, BLUE, BOTH = range(4)  # where a computed value is
State = tuple[int, tuple[int, ...], int]  # inputs in fast memory, places of the cells, operations done


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
        updates = [sum(1 << t for t, task in enumerate(self.tasks) if task[2] == c) for c in range(len(self.output))]
        reads = [sum(1 << t for t, task in enumerate(self.tasks) if c in task[1]) for c in range(len(self.output))]
        uses = [sum(1 << t for t, task in enumerate(self.tasks) if task[0] >> i & 1) for i in range(self.inputs)]
        full, w = (1 << len(self.tasks)) - 1, self.widths

        def width(cell: int, done: int) -> int:
            complete = done & updates[cell] == updates[cell]
            if self.output[cell]:
                return w.written if complete or not done & updates[cell] else w.partial
            return w.read if complete else w.hidden

        def room(state: State) -> int:
            red, places, done = state
            held = sum(width(c, done) for c, place in enumerate(places) if place & RED)
            return w.read * red.bit_count() + held

        def settle(state: State) -> tuple[State, int]:
            """Everything that is done at once, and what it costs."""
            red, places, done = state
            cost, changed = 0, True
            cells = list(places)
            while changed:
                changed = False
                for t, (needed, cells_read, cell) in enumerate(self.tasks):
                    ready = not done >> t & 1 and red & needed == needed and cells[cell] & RED
                    if ready and all(cells[c] & RED and done & updates[c] == updates[c] for c in cells_read):
                        done |= 1 << t
                        cells[cell] = RED
                        changed = True
            for i in range(self.inputs):
                if uses[i] & ~done == 0:
                    red &= ~(1 << i)
            for c in range(len(cells)):
                if done & updates[c] == updates[c]:
                    if self.output[c] and cells[c] == RED:
                        cost += w.written
                        cells[c] = BLUE
                    elif not self.output[c] and reads[c] & ~done == 0:
                        cells[c] = NONE
            return (red, tuple(cells), done), cost

        def weigh(state: State) -> int:
            """Room, an accumulator that is set up and not begun counted as a partial sum."""
            unbegun = (c for c, place in enumerate(state[1]) if place & RED and not state[2] & updates[c])
            return room(state) + sum(w.partial - w.written for c in unbegun if self.output[c])

        def put(state: State, cell: int, where: int) -> State:
            return state[0], (*state[1][:cell], where, *state[1][cell + 1 :]), state[2]

        def wanted(state: State) -> Iterator[tuple[State, int]]:
            """One more value in fast memory, and what it costs."""
            red, places, done = state
            for i in range(self.inputs):
                if not red >> i & 1 and uses[i] & ~done:
                    yield (red | 1 << i, places, done), w.read
            for c, place in enumerate(places):
                complete = done & updates[c] == updates[c]
                if place == NONE and not complete:
                    yield put(state, c, RED), 0  # an accumulator is set up: it takes its room at once
                elif place == BLUE and not (complete and self.output[c]):
                    yield put(state, c, BOTH if complete or not done & updates[c] else RED), width(c, done)

        def evicted(state: State) -> Iterator[tuple[State, int]]:
            """One value less."""
            red, places, done = state
            for i in range(self.inputs):
                if red >> i & 1:
                    yield (red & ~(1 << i), places, done), 0
            for c, place in enumerate(places):
                initialised = done & updates[c]
                if place & RED:
                    yield (
                        put(state, c, BLUE if initialised or place == BOTH else NONE),
                        (width(c, done) if initialised and place == RED else 0),
                    )

        def moves(state: State) -> Iterator[tuple[State, int]]:
            """One more value, with no more evicted for it than it takes: what stays does no harm."""
            for after, price in wanted(state):
                taken = weigh(after) - weigh(state)
                tried = {state: 0}
                while tried:
                    larger: dict[State, int] = {}
                    for less, paid in tried.items():
                        if weigh(less) + taken <= capacity:
                            kept = after[0] & ~(state[0] & ~less[0])
                            places = tuple(
                                new if new != old else now
                                for new, old, now in zip(after[1], state[1], less[1], strict=True)
                            )
                            yield (kept, places, state[2]), price + paid
                        else:
                            for fewer, cost in evicted(less):
                                larger[fewer] = min(paid + cost, larger.get(fewer, paid + cost))
                    tried = larger

        def still(state: State) -> int:
            """What surely moves from here on: A* looks at nothing that costs more."""
            red, places, done = state
            inputs = sum(1 for i in range(self.inputs) if not red >> i & 1 and uses[i] & ~done)
            away = sum(
                width(c, done)
                for c, place in enumerate(places)
                if place == BLUE and (updates[c] & ~done or reads[c] & ~done)
            )
            outputs = sum(w.written for c, out in enumerate(self.output) if out and updates[c] & ~done)
            return w.read * inputs + away + outputs

        start: State = (0, tuple(BLUE if self.starts_blue and out else NONE for out in self.output), 0)
        best = {start: 0}
        heap = [(still(start), 0, start)]
        while heap:
            _, negative, state = heapq.heappop(heap)  # of equals, the one that has moved most
            cost = -negative
            if cost > best[state]:
                continue
            if state[2] == full:
                return cost
            for after, price in moves(state):
                settled, more = settle(after)
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

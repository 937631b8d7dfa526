"""What a proof by segments can reach that knows, of every value, where it is used and over which cuts it is held.

A linear program: columns are *histories* of a value of one operand, namely which share of its products each of h
segments of equal work does, and over which cuts it is held from one use to the next; what is not held is moved again.
Rows are what all values together must respect:

- every value has a history;
- at each cut at most S values are held, and one that is held over several cuts takes room at each;
- each segment does its work: as many products on values of A as on those of B and on cells;
- in each segment the sum of c ln c over all lines is at most v ln v, for its v products (`pebble.bounds.lines`), and
  for its first products and its second ones apart.

Moves are minimised: no sum of such inequalities, whatever its multipliers, proves more than the least sum. Histories
are found one by one, the cheapest at the prices so far; shares are whole multiples of 1 / N, so the least sum comes out
a little too large, never too small.

In a chain the share of first products in each segment is free. If prices must not depend on it, the program is convex
in it. If a proof distinguishes cases, each with prices of its own, then what it reaches is the least over all shares,
found by branching (`cases`). Floating point, and shares of products in steps: what proofs can reach, not proofs.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Any, NamedTuple

import highspy
import numpy as np

from pebble.workloads import Ffn, Gemm

NEVER = 1e30
ARTIFICIAL = 100.0  # price of what a row lacks, in units of S; no multiplier is as large
OUT, HELD, COPIED = 0, 1, 2  # a value at a cut: not in fast memory, there, there and in slow memory as well
Shares = Sequence[tuple[float, float]]  # least and most share of first products of each segment


@dataclass(frozen=True)
class Values:
    """Values of one kind; lines of so many first and second products."""

    name: str
    side: str  #: of the box, along which its lines lie
    count: int
    first: int  #: products of the first kind of each
    second: int = 0  #: of the second kind
    begins: int = 1  #: moves that are certain
    again: int = 1  #: moves to leave and return; of a cell with both kinds of products: while it is not complete
    steps: int = 12  #: N, parts into which the products of each kind are divided

    @property
    def both(self) -> bool:
        """Whether it is computed and then read."""
        return self.first > 0 and self.second > 0

    @cached_property
    def done(self) -> tuple[Any, Any]:
        """First and second products done after so many steps; arrays of float, shape (steps + 1,)."""
        steps = np.arange(self.steps * (1 + self.both) + 1) / self.steps
        if not self.both:
            return self.first * steps, self.second * steps
        return self.first * np.minimum(steps, 1), self.second * np.maximum(steps - 1, 0)


class History(NamedTuple):
    """What happens to a value: steps done after each segment, moves, and the cuts over which it is held."""

    done: tuple[int, ...]
    moves: int
    held: tuple[int, ...]


class Nest(NamedTuple):
    """Kinds of values, the sides of the box, and how many products there are of each kind."""

    values: tuple[Values, ...]
    sides: dict[str, int]
    work: tuple[int, int]


def product(gemm: Gemm, steps: int) -> Nest:
    """C := A B, whose products are all first ones."""
    m, n, k = gemm.m, gemm.n, gemm.k
    values = (
        Values("A", "columns", m * k, n, steps=steps),
        Values("B", "rows", k * n, m, steps=steps),
        Values("C", "depth", m * n, k, again=2, steps=steps),
    )
    return Nest(values, {"rows": m, "columns": n, "depth": k}, (m * n * k, 0))


def chain(ffn: Ffn, steps: int) -> Nest:
    """Two products in a row; in a gated one, gate's cells are H, and up cells end nowhere."""
    m, k, f, l, streams = ffn.tokens, ffn.d_model, ffn.hidden, ffn.d_out or ffn.d_model, 1 + ffn.gated
    values = [
        Values("A", "columns", m * k, streams * f, steps=steps),
        Values("B", "rows", streams * k * f, m, steps=steps),
        Values("D", "rows", f * l, 0, m, steps=steps),
        Values("Y", "columns", m * l, 0, f, again=2, steps=steps),
        Values("H", "depth", m * f, k, l, begins=0, again=2, steps=steps),
    ]
    if ffn.gated:
        values.append(Values("up", "depth", m * f, k, begins=0, again=2, steps=steps))
    return Nest(tuple(values), {"rows": m, "columns": f, "depth": k + l}, (streams * m * f * k, m * f * l))


def entropy(x: Any) -> Any:
    """x ln x, 0 at 0; arrays of any shape."""
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0)


class Charges:
    """What the step from i to j products done puts into the rows of a segment; arrays of shape (steps + 1,) * 2."""

    def __init__(self, values: Values, nest: Nest, segments: int) -> None:
        share = sum(nest.work) / segments
        parts = [done[None, :] - done[:, None] for done in values.done]
        length = nest.sides[values.side]

        def lines(products: Any) -> Any:
            return values.count * length * entropy(np.maximum(products, 0) / length) / share

        self.rows = {
            "first": values.count * parts[0] / share,
            "second": values.count * parts[1] / share,
            "lines": lines(parts[0] + parts[1]),
            "first lines": lines(parts[0]),
            "second lines": lines(parts[1]),
        }


class Program:
    """The linear program of a nest, a capacity and a number of segments, and its columns so far."""

    def __init__(self, nest: Nest, capacity: int, shares: Shares, touching: Sequence[float] | None = None) -> None:
        self.nest, self.capacity, self.shares, self.segments = nest, capacity, shares, len(shares)
        self.touching = (
            touching  # shares at which tangents stand for w ln w, instead of chords: the sum is then too large
        )
        self.charges = {values.name: Charges(values, nest, self.segments) for values in nest.values}
        self.solver = highspy.Highs()
        for name, value in (("output_flag", False), ("threads", 1), ("presolve", "off")):
            self.solver.setOptionValue(name, value)
        self.row: dict[tuple[str, ...], int] = {}
        self.right: list[float] = []
        self.known: set[tuple[str, History]] = set()
        self._rows()
        self.shares_from = self.solver.getNumCol()
        self.share_columns = [self._share(t, least, most) for t, (least, most) in enumerate(shares)]

    def key(self, name: str, values: Values, t: int) -> tuple[str, ...]:
        """The row of a charge."""
        return (name, values.side, str(t)) if name in ("first", "second") else (name, str(t))

    def _rows(self) -> None:
        """Empty rows; those of equations, and those that hold up to a number, have columns of what they lack."""
        nest, volume = self.nest, 1.0
        for side in nest.sides.values():
            volume *= side
        equal: dict[tuple[str, ...], float] = {("count", values.name): 1.0 for values in nest.values}
        most: dict[tuple[str, ...], float] = {}
        self.constant = log(sum(nest.work) / self.segments / volume)
        for t in range(self.segments):
            for side in nest.sides:
                equal["first", side, str(t)] = 0.0
                if nest.work[1]:
                    equal["second", side, str(t)] = 1.0
            most["lines", str(t)] = self.constant
            if nest.work[1]:
                most["first lines", str(t)] = most["second lines", str(t)] = 0.0
            if t < self.segments - 1:
                most["cut", str(t)] = 1.0
        for rows, signs in ((equal, (1.0, -1.0)), (most, (-1.0,))):
            for key, right in rows.items():
                self.row[key] = len(self.row)
                self.right.append(right)
                self.solver.addRow(right if rows is equal else -highspy.kHighsInf, right, 0, [], [])
                for sign in signs:
                    self._column(ARTIFICIAL, {key: sign})

    def _column(self, cost: float, entries: dict[tuple[str, ...], float], low: float = 0, high: float = NEVER) -> None:
        rows = [self.row[key] for key in entries]
        self.solver.addCol(
            cost, low, high, len(rows), np.array(rows, dtype=np.int32), np.array(list(entries.values()), dtype=float)
        )

    def _share(self, t: int, least: float, most: float) -> dict[tuple[str, ...], float]:
        """The column of a share w of first products: w ln w is at most its chord between the least and the most."""
        entries: dict[tuple[str, ...], float] = {}
        for side in self.nest.sides:
            entries["first", side, str(t)] = -1.0
            if self.nest.work[1]:
                entries["second", side, str(t)] = 1.0
        for name, turn in (("first lines", 1.0), ("second lines", -1.0)) if self.nest.work[1] else ():
            # the lines of so much work have v w (ln v + ln w) at most, and count from the length of a side
            ends = [w if turn > 0 else 1 - w for w in (least, most)]
            if self.touching is not None:
                x = min(max(self.touching[t] if turn > 0 else 1 - self.touching[t], 1e-4), 1 - 1e-4)
                ends, low, high = [0.0, 1.0], -x, log(x) + 1 - x
            else:
                low, high = (float(entropy(np.float64(end))) for end in ends)
            slope = (high - low) / (ends[1] - ends[0]) if ends[0] != ends[1] else 0.0
            right = low - slope * ends[0] + (0.0 if turn > 0 else slope + self.constant)
            slope *= turn
            number = self.row[name, str(t)]
            self.right[number] = right
            self.solver.changeRowBounds(number, -highspy.kHighsInf, right)
            entries[name, str(t)] = -slope - turn * self.constant
        self._column(0.0, entries, least, most)
        return entries

    def add(self, values: Values, history: History) -> None:
        """A history as a column: the share of the values that have it."""
        self.known.add((values.name, history))
        entries: dict[tuple[str, ...], float] = {("count", values.name): 1.0}
        before = 0
        for t, after in enumerate(history.done):
            for name, charge in self.charges[values.name].rows.items():
                key = self.key(name, values, t)
                if after > before and key in self.row and charge[before, after]:
                    entries[key] = float(charge[before, after])
            before = after
        entries |= {("cut", str(t)): values.count / self.capacity for t in history.held}
        self._column(values.count * history.moves / self.capacity, entries)

    def prices(self, values: Values, duals: dict[tuple[str, ...], float]) -> Iterator[tuple[Any, float]]:
        """Of each segment: what its steps cost, array of shape (steps + 1,) * 2, and the cut after it."""
        charges = self.charges[values.name].rows
        places = len(values.done[0])
        forward = np.triu(np.ones((places, places), dtype=bool), 1)
        for t in range(self.segments):
            keys = ((self.key(name, values, t), charge) for name, charge in charges.items())
            steps = -sum(duals[key] * charge for key, charge in keys if key in duals)
            room = -duals.get(("cut", str(t)), -NEVER) * values.count / self.capacity
            yield np.where(forward, steps, NEVER), room

    def cheapest(self, values: Values, duals: dict[tuple[str, ...], float]) -> tuple[float, History]:
        """The history of the least price, by dynamic programming over segments, steps done and where the value is."""
        move, last = values.count / self.capacity, len(values.done[0]) - 1
        at = np.arange(last + 1)
        complete = at >= values.steps if values.both else at > last
        entering = np.where(at == 0, values.begins, 1 if values.both else values.again).astype(float)
        cost = np.full((3, last + 1), NEVER)
        cost[OUT, 0] = 0.0
        trail = []
        for steps, room in self.prices(values, duals):
            # where it is while the segment works on it: with or without a copy that stays true
            loaded = cost[OUT] + move * entering
            fresh = np.where(complete, NEVER, loaded)
            sources = {HELD: (cost[HELD], fresh), COPIED: (cost[COPIED], np.where(complete, loaded, NEVER))}
            options: dict[int, list[tuple[Any, Any, Any, int]]] = {OUT: [], HELD: [], COPIED: []}
            idle = np.zeros(last + 1, dtype=int)
            options[OUT].append((cost[OUT], at, idle + OUT, 0))
            for state, (stayed, came) in sources.items():
                source = np.minimum(stayed, came)
                origin = np.where(stayed <= came, state, OUT)
                table = source[:, None] + steps
                before = table.argmin(0)
                reached = table[before, at]
                # what leaves with products to come is stored, if it is a cell of H without a copy
                spill = move * (values.both and state == HELD) * (at < last)
                options[OUT].append((reached + spill, before, origin[before], 0))
                options[state].append((reached + room, before, origin[before], 0))
                options[state].append((cost[state] + room, at, idle + state, 0))
                if state == HELD:  # stored, complete, and kept
                    stored = np.where(complete & (at < last), move, NEVER)
                    options[COPIED].append((reached + stored + room, before, origin[before], 1))
            after = np.full((3, last + 1), NEVER)
            chosen = np.zeros((3, last + 1, 2), dtype=int)
            for state, choices in options.items():
                stack = np.stack([choice[0] for choice in choices])
                number = stack.argmin(0)
                after[state] = np.minimum(stack[number, at], NEVER)
                chosen[state, :, 0] = np.stack([choice[1] for choice in choices])[number, at]
                chosen[state, :, 1] = np.stack([choice[2] for choice in choices])[number, at]
            trail.append(chosen)
            cost = after
        return float(cost[OUT, last]), self._history(values, trail)

    def _history(self, values: Values, trail: list[Any]) -> History:
        """The way back, and its moves."""
        state, step = OUT, len(values.done[0]) - 1
        ways = []
        for chosen in reversed(trail):
            before, origin = (int(number) for number in chosen[state, step])
            ways.append((before, origin, step, state))
            step, state = before, origin
        ways.reverse()
        moves = 0
        for before, origin, after, state in ways:
            used = after > before
            if used and origin == OUT:
                moves += values.begins if before == 0 else 1 if values.both else values.again
            copied = origin == COPIED or (origin == OUT and values.both and before >= values.steps)
            leaves = used and state == OUT and after < len(values.done[0]) - 1
            moves += values.both and not copied and (leaves or (used and state == COPIED))
        done, held = tuple(way[2] for way in ways), tuple(t for t, way in enumerate(ways) if way[3] != OUT)
        return History(done, int(moves), held)

    def solve(self, close: float = 1e-3) -> tuple[float, float, list[float]]:
        """The least moves up to ``close`` of them, what the prices prove of that, and the shares of first products."""
        proved = -NEVER
        while True:
            self.solver.run()
            least, solution = self.solver.getInfo().objective_function_value, self.solver.getSolution()
            upper = ("lines", "first lines", "second lines", "cut")
            duals = {
                key: min(0.0, solution.row_dual[number]) if key[0] in upper else solution.row_dual[number]
                for key, number in self.row.items()
            }
            value = sum(duals[key] * self.right[number] for key, number in self.row.items() if key[0] != "count")
            for (low, high), entries in zip(self.shares, self.share_columns, strict=True):
                price = -sum(duals[key] * factor for key, factor in entries.items())
                value += min(price * low, price * high)
            grew = False
            for values in self.nest.values:
                price, history = self.cheapest(values, duals)
                value += price
                if price < duals["count", values.name] - 1e-9 and (values.name, history) not in self.known:
                    self.add(values, history)
                    grew = True
            proved = max(proved, value)
            if not grew or least - proved < close * least:
                shares = solution.col_value[self.shares_from : self.shares_from + self.segments]
                return least * self.capacity, proved * self.capacity, list(shares)


def reach(nest: Nest, capacity: int, segments: int, starts: Sequence[Sequence[float]], steps: int = 8) -> float:
    """The least moves found over shares of first products: no proof proves more, whatever cases it distinguishes.

    From each start the program with tangents, which allows less, finds other shares of which it says less.
    """
    best = NEVER
    for start in starts:
        shares, last = list(start), NEVER
        for _ in range(steps):
            value, _, found = Program(nest, capacity, ((0.0, 1.0),) * segments, shares).solve()
            if value > last * (1 - 1e-3):
                break
            shares, last = found, value
        best = min(best, last)
    return best


def cases(nest: Nest, capacity: int, segments: int, most_boxes: int, close: float = 3e-3) -> dict[str, Any]:
    """The least over all shares of first products of what the program says of them: an interval, by branching.

    A box of shares is halved where w ln w is furthest below its chord.
    """
    whole = ((0.0, 1.0),) * segments
    free, proved, shares = Program(nest, capacity, whole).solve()
    queue: list[tuple[float, int, Shares, list[float]]] = [(proved, 0, whole, shares)]
    best, at, boxes = NEVER, shares, 1
    while queue and queue[0][0] < best * (1 - close) and boxes < most_boxes:
        bound, _, box, shares = heapq.heappop(queue)
        value = Program(nest, capacity, [(w, w) for w in shares]).solve()[0]
        if value < best:
            best, at = value, shares
        t = max(range(segments), key=lambda t: (_below_chord(shares[t], *box[t]), box[t][1] - box[t][0]))
        low, high = box[t]
        inside = low + (high - low) / 5 < shares[t] < high - (high - low) / 5
        middle = shares[t] if inside else (low + high) / 2
        for part in ((low, middle), (middle, high)):
            smaller = [*box[:t], part, *box[t + 1 :]]
            least, proved, found = Program(nest, capacity, smaller).solve()
            boxes += 1
            if least < ARTIFICIAL * capacity:
                heapq.heappush(queue, (max(proved, bound), boxes, smaller, found))
    least = min(best, queue[0][0]) if queue else best
    return {"segments": segments, "free": free, "low": least, "high": best, "boxes": boxes, "shares": at}


def _below_chord(w: float, low: float, high: float) -> float:
    """How far w ln w and (1 - w) ln(1 - w) are below their chords."""
    if high - low < 1e-3:
        return 0.0
    result = 0.0
    for turn in (lambda x: x, lambda x: 1 - x):
        ends = [float(entropy(np.float64(turn(end)))) for end in (low, high)]
        result += ends[0] + (ends[1] - ends[0]) * (w - low) / (high - low) - float(entropy(np.float64(turn(w))))
    return result

"""Which cases of the shares of segments, and at which prices, Theorem 15 is taken: branching, and a linear program.

In one case the right side is concave in the prices, so a linear program with a row for each history of a value that is
charged about the least, maximised, says where to look next (cutting planes). The rows are about no case, so all share
them. The case of which least is proved is parted where the segment's entropies are furthest below their chords. All of
it is in floating point, in units of sqrt(S); what is found is evaluated exactly (`pebble.bounds.cases_value`).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import log
from typing import NamedTuple

import numpy as np

from pebble.bounds.cases import OFFSETS, Box, hull
from pebble.bounds.cases_histories import Histories, Row
from pebble.bounds.lagrangian import LagrangianChain
from pebble.bounds.linear_program import Array, LinearProgram

_CLOSE, _CLOSER = 2e-3, 2e-4  # of the bound: what better prices may still gain, at first and in the end
_ROUNDS = 60
_INSIDE = 0.2  # of a case that is left on either side of where it is parted
_LEAST, _MOST = 0.02, 8.0  # of the multipliers of entropies
_OFFSET = 12.0
_FREE = 1e4
_ROUNDING = 1e-7


class Solved(NamedTuple):
    """A case: what is proved of it, at which prices, and where in it the program sees the least."""

    value: float  #: in units of S
    above: float  #: no prices in reach prove more, but for rounding
    prices: Array
    shares: list[float]  #: first products of each segment


class Node:
    """A case in the tree of cases: parted at a number of first products of one segment, or with prices of its own."""

    def __init__(self, box: Box, solved: Solved) -> None:
        self.box, self.solved = box, solved
        self.parted: tuple[int, int] | None = None  #: segment, and the most first products in the first part
        self.parts: list[Node | None] = []


class Search:
    """Prices for one chain, memory and sizes of segments, for one case after the other."""

    def __init__(self, problem: LagrangianChain, capacity: int, sizes: Sequence[int]) -> None:
        self.problem, self.sizes, self.scale = problem, tuple(sizes), capacity**1.5
        self.histories = Histories(problem, capacity, len(sizes))
        self.columns = columns = self.histories.columns
        self.counts = self.histories.counts
        costs = np.zeros(columns.number)
        costs[columns.of("room")] = 1
        costs[columns.at["taken"] : columns.at["charges"]] = 1
        costs[columns.at["charges"] :] = -self.counts
        self.low, self.high = np.full(columns.number, -_FREE), np.full(columns.number, _FREE)
        limits = {"room": (0, 2), "both": (0, _MOST), "first": (_LEAST, _MOST), "second": (_LEAST, _MOST)}
        for field, (least, most) in {**limits, **dict.fromkeys(OFFSETS, (-_OFFSET, _OFFSET))}.items():
            self.low[columns.of(field)], self.high[columns.of(field)] = least, most
        self.program = LinearProgram(costs, watched=2 * len(sizes))
        for t, size in enumerate(sizes):
            for _ in range(2):  # `solve` changes them
                self.program.add(self._taken(t, size // 2) | {columns.at["taken"] + t: -1.0}, 0.0)

    def _taken(self, t: int, first: float) -> Row:
        """What a segment with so many first products takes off."""
        at, v1, v2 = self.columns.at, first / self.scale, (self.sizes[t] - first) / self.scale
        row = {at["both"] + t: _plogp(v1 + v2), at["first"] + t: _plogp(v1), at["second"] + t: _plogp(v2)}
        row |= {at[field] + t: v1 for field in OFFSETS[:3]}
        return row | {at[field] + t: v2 for field in OFFSETS[3:]}

    def taken(self, prices: Array, t: int, first: float) -> float:
        """The same at some prices."""
        return float(sum(factor * prices[column] for column, factor in self._taken(t, first).items()))

    def solve(self, box: Box, close: float = _CLOSE) -> Solved:
        """About the best prices for a case."""
        columns = self.columns
        for t, ends in enumerate(box):
            for side, first in enumerate(ends):
                self.program.change(2 * t + side, self._taken(t, first))
        best, prices, above = -np.inf, np.zeros(columns.number), np.inf
        shares = [(low + high) / 2 for low, high in box]
        for _ in range(_ROUNDS):
            solution = self.program.solve(self.low, self.high)
            if solution is None:
                break
            at, cost = solution
            above = -cost
            least, charges = self.histories.charges(at)
            value = float(self.counts @ least) - at[columns.of("room")].sum()
            value -= sum(max(self.taken(at, t, low), self.taken(at, t, high)) for t, (low, high) in enumerate(box))
            if value > best:
                best, prices, shares = value, at, self._shares(box)
            if above - best < close * abs(best):
                break
            rows = [one for one in charges if one.value < at[columns.at["charges"] + one.number] - _ROUNDING]
            if not rows:
                break
            for one in rows:
                self.program.add(one.row | {columns.at["charges"] + one.number: 1.0}, one.certain)
        return Solved(float(best), float(above), prices, shares)

    def _shares(self, box: Box) -> list[float]:
        """First products of each segment, as the program weighs the two ends of each."""
        weights, result = np.abs(self.program.weights), []
        for t, (low, high) in enumerate(box):
            one, other = weights[2 * t : 2 * t + 2].tolist()
            result.append((low * one + high * other) / (one + other) if one + other > 0 else (low + high) / 2)
        return result

    def below_chord(self, box: Box, solved: Solved, t: int) -> float:
        """How much less a segment takes off at its share than its two ends say."""
        (low, high), share = box[t], solved.shares[t]
        if high <= low:
            return 0.0
        one, other = self.taken(solved.prices, t, low), self.taken(solved.prices, t, high)
        chord = one + (other - one) * (share - low) / (high - low)
        return chord - self.taken(solved.prices, t, share)


class Branching:
    """The tree of cases, grown where least is proved."""

    def __init__(self, problem: LagrangianChain, capacity: int, sizes: Sequence[int]) -> None:
        self.search, self.total = Search(problem, capacity, sizes), problem.products[0]
        whole = hull(tuple((0, size) for size in sizes), self.total)
        assert whole is not None  # there are so many products
        self.root = Node(whole, self.search.solve(whole))
        self.cases = 1
        self._queue = [(self.root.solved.value, 0, self.root)]
        self._finished = False

    @property
    def value(self) -> float:
        """What is proved, about, in units of S."""
        return self._queue[0][0]

    def grow(self, cases: int) -> None:
        """Until there are so many, parted ones included, or nothing is gained by more."""
        while self.cases < cases and not self._finished:
            value, number, node = heapq.heappop(self._queue)
            gaps = [self.search.below_chord(node.box, node.solved, t) for t in range(len(node.box))]
            slack = node.solved.above - node.solved.value
            if slack > max(sum(gaps), _CLOSER * abs(value)):
                self.cases += 1  # it takes as long
                better = self.search.solve(node.box, _CLOSER)
                if better.value > node.solved.value:
                    node.solved = better
                    value = max(value, better.value)
                node.solved = node.solved._replace(above=min(node.solved.value, better.above))
                heapq.heappush(self._queue, (value, number, node))
                continue
            if max(gaps) < _CLOSER / 10 * abs(value):
                heapq.heappush(self._queue, (value, number, node))
                self._finished = True
                return
            self._part(node, max(range(len(gaps)), key=gaps.__getitem__))

    def _part(self, node: Node, t: int) -> None:
        low, high = node.box[t]
        margin = (high - low) * _INSIDE
        at = int(min(max(node.solved.shares[t], low + margin), high - margin))
        at = min(max(at, low), high - 1)
        node.parted = t, at
        for part in ((low, at), (at + 1, high)):
            box = hull((*node.box[:t], part, *node.box[t + 1 :]), self.total)
            if box is None:
                node.parts.append(None)
                continue
            solved = self.search.solve(box)
            if solved.value < node.solved.value:  # the prices of the whole prove as much of a part
                solved = solved._replace(value=node.solved.value, prices=node.solved.prices)
            self.cases += 1
            child = Node(box, solved)
            node.parts.append(child)
            heapq.heappush(self._queue, (solved.value, self.cases, child))


def _plogp(x: float) -> float:
    return x * log(x) if x > 0 else 0.0

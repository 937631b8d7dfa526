"""Histories of values that are charged least at some prices (Theorem 15), in floating point, as rows for the search.

A value is touched by some of the segments, a *set*, and at one price of a product the parts that these have are the
cheapest that add up to its line: all sets are looked through at once. Products count in units of sqrt(S).
"""

from __future__ import annotations

from itertools import combinations
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.bounds.cases import OFFSETS
from pebble.bounds.lagrangian import Gap, LagrangianChain, LineGroup
from pebble.bounds.linear_program import Array

Row = dict[int, float]
_FEW = 3  # rows for each kind of value and round
_NEWTON, _WARM, _HALVINGS = 9, 5, 22
_SMALLEST = 1e-4  # of the products of a cell: fewer of both kinds in one segment are as good as none
_NONE = 1e-12


class Columns:
    """Where each price stands among the variables of the search; all but ``room`` have one for each segment."""

    def __init__(self, segments: int, charges: int) -> None:
        fields = {"room": segments - 1, **dict.fromkeys(("both", "first", "second", *OFFSETS), segments)}
        self.at: dict[str, int] = {}
        self.number = 0
        for name, size in {**fields, "taken": segments, "charges": charges}.items():
            self.at[name] = self.number
            self.number += size
        self.sizes = fields

    def of(self, field: str) -> slice:
        """All variables of a field."""
        return slice(self.at[field], self.at[field] + self.sizes[field])


class Charge(NamedTuple):
    """A history: which charge it is of, what it is charged, and how that depends on the prices."""

    number: int
    value: float
    row: Row  #: of the prices, taken off
    certain: float


class Parts(NamedTuple):
    """For each set of segments, the products in each, and what they are charged besides gaps."""

    price: Array  #: theta, shape (sets,)
    value: Array  #: shape (sets,)
    sizes: Array  #: shape (sets, segments)


def cheapest_parts(
    mu: Array, offset: Array, length: float, sets: NDArray[np.bool_], start: Array | None = None
) -> Parts:
    """The cheapest parts of a line; mu and offset of each segment, or of each set and segment."""
    mu, offset = np.broadcast_to(mu, sets.shape), np.broadcast_to(offset, sets.shape)
    price = np.where(sets, offset + mu * (1 + log(length)), np.inf).min(axis=1) if start is None else start
    for _ in range(_NEWTON if start is None else _WARM):  # the logarithm of their sum is convex and rises in the price
        power = np.where(sets, (price[:, None] - offset) / mu - 1, -np.inf)
        most = power.max(axis=1)
        weight = np.exp(power - most[:, None])
        total = weight.sum(axis=1)
        price = price - (most + np.log(total) - log(length)) / ((weight / mu).sum(axis=1) / total)
    sizes = np.where(sets, np.exp(np.clip((price[:, None] - offset) / mu - 1, -700, 300)), 0.0)
    return Parts(price, price * length - (sizes * mu).sum(axis=1), sizes)


class Histories:
    """All sets of segments, and what values of a chain are charged in each."""

    def __init__(self, problem: LagrangianChain, capacity: int, segments: int) -> None:
        self.problem, self.segments, self.root = problem, segments, capacity**0.5
        self.columns = Columns(segments, len(problem.lines) + 1)
        numbers = np.arange(1, 1 << segments)
        self.sets = (numbers[:, None] >> np.arange(segments) & 1).astype(bool)
        self.first, self.last = self.sets.argmax(axis=1), segments - 1 - self.sets[:, ::-1].argmax(axis=1)
        self.pairs = list(combinations(range(segments), 2))
        self.cuts = np.array([[a <= t < b for t in range(segments - 1)] for a, b in self.pairs], dtype=float)
        between = np.cumsum(self.sets, axis=1)
        self.gaps = np.array(
            [self.sets[:, a] & self.sets[:, b] & (between[:, b] - between[:, a] == 1) for a, b in self.pairs]
        ).T.astype(float)
        meets = [(i, j) for i in range(len(numbers)) for j in np.flatnonzero(self.first == self.last[i])]
        self.meets = np.array(meets).T  # of first and of second products, in one segment
        self.counts = np.array([line.count for line in problem.lines] + [problem.m * problem.f]) / capacity

    def charges(self, prices: Array) -> tuple[Array, list[Charge]]:
        """What each kind of value is charged, the cells of H last, and histories that are charged about the least."""
        of = {name: prices[self.columns.of(name)] for name in self.columns.sizes}
        held = self.cuts @ of["room"]
        least, result = [], list[Charge]()
        for number, line in enumerate(self.problem.lines):
            field = "first" if line.first else "second"
            parts = cheapest_parts(of["both"] + of[field], of[line.offset], line.length / self.root, self.sets)
            gap = _gap(line)
            values = line.certain + gap.width * (self.gaps @ np.minimum(gap.moves, held)) + parts.value
            least.append(values.min())
            for at in values.argsort(kind="stable")[:_FEW].tolist():
                row, moves = self._moved(at, held, gap)
                self._worked(row, parts.sizes[at], field, line.offset)
                result.append(Charge(number, float(values[at]), row, line.certain + moves))
        cells = self._cells(of, held)
        return np.array([*least, cells[0].value]), [*result, *cells]

    def _moved(self, at: int, held: Array, gap: Gap) -> tuple[Row, float]:
        """The room and the moves of the gaps of a set."""
        row: Row = {}
        moves = 0.0
        for pair in np.flatnonzero(self.gaps[at]).tolist():
            if held[pair] > gap.moves:
                moves += gap.width * gap.moves
            else:
                self._held(row, *self.pairs[pair], gap.width)
        return row, moves

    def _held(self, row: Row, since: int, to: int, width: int) -> None:
        for t in range(since, to):
            row[self.columns.at["room"] + t] = row.get(self.columns.at["room"] + t, 0.0) - width

    def _worked(self, row: Row, sizes: Array, field: str, offset: str, both: Array | None = None) -> None:
        """What products are charged; ``both``: first and second ones together."""
        at = self.columns.at
        for t in np.flatnonzero(sizes > _NONE).tolist():
            row[at[offset] + t] = -float(sizes[t])
            row[at[field] + t] = -float(sizes[t] * log(sizes[t]))
        together = sizes if both is None else both
        for t in np.flatnonzero(together > _NONE).tolist():
            row[at["both"] + t] = -float(together[t] * log(together[t]))

    def _cells(self, of: dict[str, Array], held: Array) -> list[Charge]:
        """Histories of a cell of H, the cheapest first."""
        w, p, room = self.problem.read, self.problem.hidden, np.concatenate([[0.0], np.cumsum(of["room"])])
        first = cheapest_parts(of["both"] + of["first"], of["cells"], self.problem.k / self.root, self.sets)
        second = cheapest_parts(of["both"] + of["second"], of["again"], self.problem.l / self.root, self.sets)
        begun = p * (self.gaps @ np.minimum(2, held))
        ways = w * (room[self.last] - room[self.first]), w + w * (self.gaps @ np.minimum(1, held))
        found: list[tuple[float, int, int, int, Array, Array]] = []
        for a, b in self.pairs:
            ending, starting = np.flatnonzero(self.last == a), np.flatnonzero(self.first == b)
            i = ending[(begun + first.value)[ending].argmin()]
            for way, between in enumerate((w * (room[b] - room[a]), w * min(1, room[b] - room[a]))):
                j = starting[(ways[way] + second.value)[starting].argmin()]
                value = begun[i] + first.value[i] + between + ways[way][j] + second.value[j]
                found.append((float(value), int(i), int(j), way, first.sizes[i], second.sizes[j]))
        later = np.minimum(*ways)
        i, j = self.meets
        apart = (begun + first.value)[i] + (later + second.value)[j]  # no more than they are charged together
        close = apart <= min(item[0] for item in found)
        if close.any():
            i, j = i[close], j[close]
            value, sizes = self._together(of, i, j, first, second)
            value += begun[i] + later[j]
            for at in value.argsort(kind="stable")[: 2 * _FEW].tolist():
                way = int(ways[1][j[at]] < ways[0][j[at]])
                found.append((float(value[at]), int(i[at]), int(j[at]), way, sizes[0][at], sizes[1][at]))
        found.sort(key=lambda item: item[0])
        return [self._cell(item, held, room) for item in found[: 2 * _FEW]]

    def _cell(self, found: tuple[float, int, int, int, Array, Array], held: Array, room: Array) -> Charge:
        """One of them as a row."""
        value, i, j, way, first, second = found
        w, since, to = self.problem.read, int(self.last[i]), int(self.first[j])
        row, certain = self._moved(i, held, Gap(self.problem.hidden, 2))
        if way:
            later, moves = self._moved(j, held, Gap(w, 1))
            for column, factor in later.items():
                row[column] = row.get(column, 0.0) + factor
            certain += w + moves
            if room[to] - room[since] > 1:
                certain += w
            else:
                self._held(row, since, to, w)
        else:
            self._held(row, since, int(self.last[j]), w)
        self._worked(row, first, "first", "cells", first + second)
        self._worked(row, second, "second", "again", first + second)
        return Charge(len(self.problem.lines), value, row, certain)

    def _together(
        self, of: dict[str, Array], i: NDArray[np.intp], j: NDArray[np.intp], first: Parts, second: Parts
    ) -> tuple[Array, tuple[Array, Array]]:
        """What products are charged where one segment has first and second ones, and the parts.

        C ln C is at least z C - exp(z - 1) for any z, with equality at ln C + 1; z halves until both agree.
        """
        rows, at = np.arange(len(i)), self.last[i]
        mu, k, l = of["both"][at], self.problem.k / self.root, self.problem.l / self.root
        low, high = np.full(len(i), 1 + log(_SMALLEST * (k + l))), np.full(len(i), 1 + log(k + l))
        entropies = [np.tile(of["both"] + of[field], (len(i), 1)) for field in ("first", "second")]
        offsets = [np.tile(of[field], (len(i), 1)) for field in ("cells", "again")]
        own = [offset[rows, at].copy() for offset in offsets]
        for entropy, field in zip(entropies, ("first", "second"), strict=True):
            entropy[rows, at] = of[field][at]
        sets, lengths = (self.sets[i], self.sets[j]), (k, l)
        start: list[Array | None] = [None, None]

        def parts(z: Array) -> list[Parts]:
            for offset, single in zip(offsets, own, strict=True):
                offset[rows, at] = single + mu * z
            return [cheapest_parts(*item) for item in zip(entropies, offsets, lengths, sets, start, strict=True)]

        for _ in range(_HALVINGS):
            z = (low + high) / 2
            both = parts(z)
            start = [one.price for one in both]
            more = sum(one.sizes[rows, at] for one in both) > np.exp(z - 1)
            low, high = np.where(more, z, low), np.where(more, high, z)
        one, other = parts(low)
        sizes = one.sizes * (k / one.sizes.sum(axis=1))[:, None], other.sizes * (l / other.sizes.sum(axis=1))[:, None]
        return one.value + other.value - mu * np.exp(low - 1), sizes


def _gap(line: LineGroup) -> Gap:
    """What a value pays where it leaves and returns."""
    assert line.begin.after is not None  # a line of one kind of products has gaps
    return line.begin.after

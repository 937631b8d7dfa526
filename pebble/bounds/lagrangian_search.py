"""At which multipliers Theorem 10 is taken: a linear program, a row for each way to split a value over kinds of
segments.

The right side of the theorem is concave in the multipliers. Each split of a value gives a linear function of them that
is no less than what the value is charged, so the program, maximised over a box around the best multipliers so far, says
where to look next; what is found there gives further rows, or better multipliers (a cutting-plane method with a trust
region). All of it is in floating point, in units of sqrt(S): what is found is evaluated exactly
(`pebble.bounds.lagrangian`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum, log, sqrt
from typing import NamedTuple, cast

import numpy as np

from pebble.bounds.lagrangian import (
    DISJOINT,
    LagrangianChain,
    LineGroup,
    Multipliers,
    Shares,
    Where,
)
from pebble.bounds.lagrangian_bound import LagrangianBound
from pebble.bounds.lagrangian_splits import (
    FIELDS,
    GAPS,
    LAST_STEPS,
    Array,
    Best,
    CheapestSplit,
    Columns,
    Row,
    Splits,
    most_segments,
    paid,
    plogp,
    splits,
    stays,
)
from pebble.bounds.lagrangian_value import DualPoint, lagrangian_value
from pebble.bounds.linear_program import LinearProgram
from pebble.bounds.lines import MULTIPLIER_BITS
from pebble.units import ceil_div

_ENDS = (0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98, 1)  # of the kinds, shares of second products
# about what is found for many layers: room is dear before second products, and these are dear where first ones are many
_START: dict[str, tuple[float, ...]] = {
    "before": (0, 0, 0, 0, 0, 0, 0.2, 0.4, 0.6, 0.65),
    "after": (0.35, 0.35, 0.3, 0, 0, 0, 0, 0, 0, 0),
    "first": (0.9, 1, 1, 1, 1.1, 1.2, 1.2, 1, 0.8, 0.7),
    "second": (0.7, 0.8, 1.1, 1.2, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1),
    "cells": (-1.1, -1.1, -0.9, -0.4, -0.2, 0, 0.25, 0.65, 1, 2),
    "again": (2.4, 1.3, 0.9, 0.35, 0.2, 0, -0.2, -0.7, -1, -1.1),
    "y": (0.1, 0.1, 0, 0, 0, 0, -0.1, -0.2, -0.2, -0.2),
}
_LEAST = 0.02  # of the multipliers of entropies
_MOST_ROUNDS = 120
_SURE = 0.05  # the box in which nothing better is found when the search ends
_NULL = 2  # rounds without gain after which the box shrinks
_CUTS = 2  # rows for each kind of value and round
_MEETS = 3  # rows for the cells
CLOSE = 5e-4  # of the bound: what better multipliers may still gain when the search ends


class _Choice(NamedTuple):
    """One way to split a line, or to leave it whole: value, its number, what is split, and the kind it is whole in."""

    value: float
    way: int | None
    split: LineGroup
    kind: int
    sure: float  #: what is certain if it is whole

    def __lt__(self, other: tuple[object, ...]) -> bool:
        return self.value < cast(_Choice, other).value


class _Cut(NamedTuple):
    """A row that the program may lack: which charge is at most ``value``, and how it depends on the multipliers."""

    number: int
    value: float
    choices: tuple[_Choice, ...]
    best: Best


class Search:
    """Multipliers for one problem and memory, for one number of segments after the other."""

    def __init__(self, problem: LagrangianChain, capacity: int) -> None:
        self.problem, self.capacity, self.root = problem, capacity, sqrt(capacity)
        self.lines, self.disjoint, self.together = problem.lines, problem.disjoint, problem.together
        self.columns = Columns(len(_ENDS), len(self.lines) + 1)
        counts = [split.count for split in self.lines] + [problem.m * problem.f]
        self.counts = np.array(counts) / capacity
        first, second = problem.products
        self.products = first / capacity**1.5, second / capacity**1.5
        self.multipliers = self._start()
        self.optimum: tuple[Splits, Array, int] | None = None
        self._splits: dict[tuple[int, ...], Splits] = {}
        self.cost = np.zeros(self.columns.number)
        self.cost[: self.columns.charges] = -self.counts
        self.cost[list(self.columns.shifts)] = self.products
        self.lp = LinearProgram(self.cost)
        for row in self._segments(1):  # `_cut_in` changes these
            self.lp.add(row, 0.0)
        for row, most in self._limits():
            self.lp.add(row, most)

    def _limits(self) -> Iterator[tuple[Row, float]]:
        """A gap costs no more than its room, nor than its moves."""
        columns = self.columns
        single, two, leave, before, after = (columns.of(field).start for field in (*GAPS, "before", "after"))
        for i in range(len(_ENDS)):
            for enter in (single, two):
                yield {enter + i: 1.0, before + i: -1.0, columns.at_cut: -1.0}, 0.0
            yield {two + i: 1.0, columns.share: 1.0}, 2.0
            yield {leave + i: 1.0, after + i: -1.0}, 0.0
            yield {leave + i: 1.0, columns.share: -1.0}, 0.0

    def _start(self) -> Array:
        multipliers = np.zeros(self.columns.number)
        multipliers[self.columns.at_cut] = 1
        for field, spec in _START.items():
            multipliers[self.columns.of(field)] = spec
        multipliers[self.columns.share] = 0.35
        return multipliers

    def ranges(self, segments: int) -> list[tuple[int, int]]:
        """The kinds that there are: ranges of second products."""
        largest, low, result = ceil_div(self.problem.work, segments), 0, []
        for end in _ENDS:
            high = max(low, round(end * largest))
            result.append((low, min(high, largest)))
            low = high + 1
        return result

    def _gaps(self, multipliers: Array) -> None:
        """Each gap at what it may cost at most."""
        columns, share = self.columns, multipliers[self.columns.share]
        before, after = (
            multipliers[columns.at_cut] + multipliers[columns.of("before")],
            multipliers[columns.of("after")],
        )
        most = np.minimum(before, 1), np.minimum(before, 2 - share), np.minimum(after, share)
        for field, result in zip(GAPS, most, strict=True):
            multipliers[columns.of(field)] = result

    def _segments(self, segments: int) -> list[Row]:
        """What a segment of each kind takes off is no more than the shifts give."""
        of, rows, scale = {field: self.columns.of(field).start for field in FIELDS}, [], self.capacity**1.5
        small, large = self.problem.work // segments, ceil_div(self.problem.work, segments)
        for i, (low, high) in enumerate(self.ranges(segments)):
            for size, second in ((small, low), (large, low), (small, high), (large, high)):
                v1, v2 = max(0, size - second) / scale, min(size, second) / scale
                row = {
                    of["before"] + i: 1.0,
                    of["after"] + i: 1.0,
                    of["first"] + i: plogp(v1),
                    of["second"] + i: plogp(v2),
                }
                row |= {of[field] + i: v1 for field in ("a", "b", "cells")}
                row |= {of[field] + i: v2 for field in ("d", "y", "again")}
                rows.append(row | dict(zip(self.columns.shifts, (-v1, -v2), strict=True)))
        return rows

    def charges(self, spec: Splits, multipliers: Array) -> tuple[Array, list[_Cut]]:
        """What each kind of value is charged, and ways to split it that are charged least."""
        best = spec.best(multipliers)
        values = best.values

        def least(split: LineGroup, at: int = DISJOINT) -> list[_Choice]:
            results = [self._whole(split, multipliers, at)]
            if numbers := spec.at.get((split.name, at)):  # they follow each other
                first, last = numbers[0], numbers[-1] + 1
                order = (first + values[first:last].argsort(kind="stable")[:_CUTS]).tolist()
                results += [_Choice(float(values[number]), number, split, at, 0.0) for number in order]
            return sorted(results)

        charges, cuts = [], list[_Cut]()
        for row, split in enumerate(self.lines):
            result = least(split)
            charges.append(result[0].value)
            cuts += [_Cut(row, item.value, (item,), best) for item in result[:_CUTS]]
        pairs = [(least(first), least(second)) for first, second in self.disjoint]
        first, seconds = self.together
        for i in self._meet(spec, values, multipliers).argsort()[:_MEETS].tolist():
            pairs.append((least(first, i), sorted(choice for second in seconds for choice in least(second, i))))
        cells = []
        for ups, backs in pairs:
            few = [(up, backs[0]) for up in ups[:2]] + [(ups[0], back) for back in backs[1:2]]
            cells += [(up.value + back.value, up, back) for up, back in few]
        cells.sort(key=lambda single: single[0])
        charges.append(cells[0][0])
        cuts += [_Cut(len(self.lines), value, (up, back), best) for value, up, back in cells[:_MEETS]]
        return np.array(charges), cuts

    def _meet(self, spec: Splits, values: Array, multipliers: Array) -> Array:
        """What a cell is charged whose first and second products meet in a segment, by its kind."""
        first, seconds = self.together
        up = np.minimum(self._alone(first, multipliers), spec.least(first.name, values))
        back = self._alone(seconds[0], multipliers)
        for second in seconds:
            back = np.minimum(back, spec.least(second.name, values))
        return up + back

    def _alone(self, split: LineGroup, multipliers: Array) -> Array:
        """All products of a line in one segment, by its kind, but for what is certain."""
        length, columns = split.length / self.root, self.columns
        entropy = multipliers[columns.of("first" if split.first else "second")]
        result: Array = entropy * plogp(length) + multipliers[columns.of(split.offset)] * length
        for field, width in paid(split.alone):
            result = result + width * multipliers[columns.of(field)]
        result += stays(split.alone) * multipliers[columns.at_cut]
        return result

    def _whole(self, split: LineGroup, multipliers: Array, at: int) -> _Choice:
        """The same at the best kind, or the one that is fixed, with what is certain."""
        result = self._alone(split, multipliers)
        kind = at if split.fixed else int(result.argmin())
        sure = 0.0 if split.fixed else float(split.certain)
        return _Choice(float(result[kind]) + sure, None, split, kind, sure)

    def _as_split(self, choice: _Choice, best: Best) -> CheapestSplit:
        """A choice as a function of the multipliers."""
        if choice.way is not None:
            return best.cheapest(choice.way)
        split, kind, columns = choice.split, choice.kind, self.columns
        length = split.length / self.root
        row = {
            columns.of("first" if split.first else "second").start + kind: plogp(length),
            columns.of(split.offset).start + kind: length,
        }
        for field, width in paid(split.alone):
            row[columns.of(field).start + kind] = float(width)
        if width := stays(split.alone):
            row[columns.at_cut] = float(width)
        return CheapestSplit(choice.value, row, choice.sure)

    def solve(self, segments: int, box: float = 0.1, close: float = CLOSE) -> float:
        """The best multipliers for so many segments, from the last ones on; what they prove, in units of S, about."""
        columns = self.columns
        spec = self._described(segments)
        self._cut_in(segments)
        lp, cost = self.lp, self.cost
        center, best, null = self.multipliers, -np.inf, 0
        self._gaps(center)
        for charge in self.charges(spec, center)[1]:
            self._cut(charge)
        for step in range(_MOST_ROUNDS):
            width = box if step else 0.0
            solved = lp.solve(*self._box(center, width))
            if solved is None:
                break
            multipliers, hoped = solved[0], -solved[1]
            self._gaps(multipliers)
            charges, cuts = self.charges(spec, multipliers)
            terms = zip((-cost).tolist(), [*charges.tolist(), *multipliers[columns.charges :].tolist()], strict=True)
            value = fsum(item * other for item, other in terms)  # the same sum on every machine
            for cut in cuts:
                if multipliers[cut.number] > cut.value + 1e-9:
                    self._cut(cut)
            if value > best:
                gain, center, best, null = value - best, multipliers, value, 0
                self.optimum = spec, multipliers, segments
                if step and gain > 0.5 * (hoped - best + gain):
                    box = min(2.0, 1.5 * box)
            else:
                null += 1
                if null >= _NULL:
                    box, null = box / 2, 0
            if step and hoped - best < close * abs(best):
                if width >= _SURE:
                    break
                box = 2 * _SURE  # nothing better is near: look further
        self.rounds = step
        self.multipliers = center
        return best

    def at(self, segments: int) -> float:
        """What the last multipliers prove with another number of segments, about, less what values are charged."""
        columns, multipliers = self.columns, self.multipliers
        most = max(sum(factor * multipliers[i] for i, factor in row.items()) for row in self._segments(segments))
        return float(-(segments - 1) * multipliers[columns.at_cut] - segments * most)

    def _cut_in(self, segments: int) -> None:
        """The program for so many segments: what was found of values stays."""
        self.cost[self.columns.at_cut] = segments - 1
        self.lp.cost(self.columns.at_cut, segments - 1)
        for number, row in enumerate(self._segments(segments)):
            self.lp.change(number, row)

    def _described(self, segments: int) -> Splits:
        """The ways to split values over so many segments; most numbers of segments have the same."""
        key = tuple(most_segments(split, self.root, segments) for split in self.problem.splits)
        if key not in self._splits:
            self._splits[key] = Splits(splits(self.problem, len(_ENDS), self.root, segments), self.columns, self.root)
        return self._splits[key]

    def _cut(self, cut: _Cut) -> None:
        first, *others = (self._as_split(choice, cut.best) for choice in cut.choices)
        result = _sum(first, *others) if others else first
        self.lp.add({cut.number: 1.0, **{column: -factor for column, factor in result.row.items()}}, result.constant)

    def _box(self, center: Array, width: float) -> tuple[Array, Array]:
        """Bounds of the variables: multipliers near the center, charges and shifts free."""
        columns = self.columns
        low, high = np.full(columns.number, -1e4), np.full(columns.number, 1e4)
        low[columns.at_cut], high[columns.at_cut] = (
            max(0.0, center[columns.at_cut] - width),
            center[columns.at_cut] + width,
        )
        for field in FIELDS:
            at, reach = columns.of(field), width / 2 if field in ("first", "second") else width
            low[at], high[at] = center[at] - reach, center[at] + reach
            if field in ("before", "after", "first", "second"):
                low[at] = np.maximum(low[at], _LEAST if field in ("first", "second") else 0.0)
            else:  # only differences between kinds count
                low[at.start + len(_ENDS) // 2] = high[at.start + len(_ENDS) // 2] = 0.0
        for field, moves in zip(GAPS, (1.0, 2.0, 2.0), strict=True):
            at = columns.of(field)
            low[at], high[at] = 0.0, moves
        share = center[columns.share]
        low[columns.share], high[columns.share] = max(0.0, share - width), min(2.0, share + width)
        return low, high

    def exact(self) -> LagrangianBound | None:
        """The bound of the last multipliers found, evaluated exactly; None where there are none."""
        if self.optimum is None:
            return None
        spec, multipliers, segments = self.optimum
        best = spec.best(multipliers, LAST_STEPS)
        columns, root, single = self.columns, self.root, 1 << MULTIPLIER_BITS
        shifts = dict.fromkeys(("a", "b", "cells", "d", "y", "again"), 0.0)
        shifts["a"], shifts["d"] = (-multipliers[shift] for shift in columns.shifts)

        def multiplier(field: str, i: int) -> int:
            value = multipliers[columns.of(field)][i]
            if field == "before":
                return max(0, round(float(value + multipliers[columns.at_cut]) * single))
            if field == "after":
                return max(0, round(float(value) * single))
            if field in ("first", "second"):
                return max(1, round(float(value) / root * single))
            entropy = multipliers[columns.of("first" if field in ("a", "b", "cells") else "second")][i]
            return round(float(value + shifts[field] - entropy * log(root)) / root * single)

        longest = ceil_div(self.problem.work, segments)
        kinds = tuple(
            Multipliers(high, *(multiplier(field, i) for field in FIELDS))
            for i, (low, high) in enumerate(self.ranges(segments))
            if low <= longest
        )
        thetas: dict[Where, dict[int, int]] = {}
        for where, numbers in spec.at.items():  # by parts: the best number and its neighbours prove as much as all
            middle = int(best.values[numbers].argmin())
            for number in numbers[max(0, middle - 1) : middle + 2]:
                way, theta = spec.splits[number], float(best.theta[number])
                thetas.setdefault(where, {})[way.pieces] = round((theta + shifts[way.split.offset]) / root * single)
        shares = Shares(0, min(max(0, round(float(multipliers[columns.share]) * single)), 2 * single))
        elements = lagrangian_value(self.problem, self.capacity, DualPoint(kinds, shares, segments, thetas))
        return LagrangianBound(self.problem, self.capacity, segments, kinds, shares, elements)


def _sum(up: CheapestSplit, back: CheapestSplit) -> CheapestSplit:
    row = dict(up.row)
    for column, factor in back.row.items():
        row[column] = row.get(column, 0.0) + factor
    return CheapestSplit(up.value + back.value, row, up.constant + back.constant)

"""How the values of two products in a row may be split over segments, all ways at once, in floating point.

`pebble.bounds.lagrangian` proves what a line is charged for any theta; here the best theta of each is found, and the
split that is charged least there, as a linear function of the multipliers: what the linear program of
`pebble.bounds.lagrangian_search` adds to its rows. Lengths are in units of sqrt(S), numbers of values in units of S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.bounds.lagrangian import DISJOINT, Gap, LagrangianChain, LineGroup, SegmentShare, Where

Array = NDArray[np.float64]
Row = dict[int, float]  # coefficients by column
FIELDS = ("before", "after", "first", "second", "a", "b", "cells", "d", "y", "again")
GAPS = ("enter one", "enter two", "leave two")  # what is paid for a gap of so many moves; of one move nothing before it
_BIG = 1e6
STEPS, LAST_STEPS = 12, 60  # of the search for theta, by halves
_ALL, _STEP = 20, 1.1  # numbers of parts: all up to here, then in steps of a tenth


_LN2 = log(2)


def plogp(x: float) -> float:
    """x ln x, 0 at 0."""
    return x * log(x) if x > 0 else 0.0


def exp(x: Array) -> Array:
    """e^x for x from -700 to 700, to eleven digits, by sums, products and quotients alone.

    NumPy has an exponential for each instruction set, and they differ in the last digit. The search follows such
    differences to other multipliers: a bound would depend on the machine that found it. Here powers of two are taken
    out, and the rest, at most ln(2)/2, goes through a Padé approximant of degrees 4 and 4.
    """
    twos = np.rint(x * (1 / _LN2))
    rest = x - twos * _LN2
    square = rest * rest
    even = (square * (1 / 1680) + 3 / 28) * square + 1
    odd = (square * (1 / 84) + 1 / 2) * rest
    result: Array = np.ldexp((even + odd) / (even - odd), twos.astype(np.int32))
    return result


@dataclass(frozen=True)
class Columns:
    """Where the variables of the linear program are: a charge for each kind of value, shifts, multipliers by kind."""

    kinds: int
    charges: int

    @property
    def shifts(self) -> tuple[int, int]:
        """Of the offsets of all first products, and of all second ones."""
        return self.charges, self.charges + 1

    @property
    def at_cut(self) -> int:
        """The multiplier of room before a segment that all kinds share."""
        return self.charges + 2

    @property
    def share(self) -> int:
        """What is paid before a gap of two moves, at most."""
        return self.charges + 3

    def of(self, field: str) -> slice:
        """One multiplier, for each kind."""
        at = self.charges + 4 + (FIELDS + GAPS).index(field) * self.kinds
        return slice(at, at + self.kinds)

    @property
    def number(self) -> int:
        """How many there are."""
        return self.charges + 4 + (len(FIELDS) + len(GAPS)) * self.kinds


class Group(NamedTuple):
    """Parts that choose their kind alike."""

    pieces: int
    part: SegmentShare
    at: int  #: their kind, or APART


class Split(NamedTuple):
    """Products of one line in a number of parts."""

    where: Where
    pieces: int
    split: LineGroup
    groups: tuple[Group, ...]


class CheapestSplit(NamedTuple):
    """A split that is charged least."""

    value: float
    row: Row  #: the same as a function of the multipliers
    constant: float


def enters(gap: Gap) -> str:
    """The field for what a part pays for the gap before it; where a value stays the room that all share comes to it."""
    return GAPS[gap.moves - 1] if gap.moves else "before"


def leaves(gap: Gap) -> str | None:
    """The field for what it pays for the one after it."""
    return ("after", None, GAPS[2])[gap.moves]


def paid(part: SegmentShare) -> list[tuple[str, int]]:
    """What a part pays for: fields and widths."""
    results = []
    if part.before:
        results.append((enters(part.before), part.before.width))
    if part.after and (field := leaves(part.after)):
        results.append((field, part.after.width))
    return results


def stays(part: SegmentShare) -> int:
    """How much of the room that all share it pays for besides."""
    return part.before.width if part.before and not part.before.moves else 0


def most_segments(split: LineGroup, root: float, segments: int) -> int:
    """The largest number of parts that is worth a look."""
    return int(min(segments, split.length, 2.2 * split.length / root + 4))


def numbers(split: LineGroup, root: float, segments: int) -> list[int]:
    """Numbers of parts, from 2 on: all small ones, then larger and larger steps."""
    most = most_segments(split, root, segments)
    result = list(range(2, min(most, _ALL) + 1))
    while result and result[-1] < most:
        result.append(min(most, int(result[-1] * _STEP) + 1))
    return result


def splits(problem: LagrangianChain, kinds: int, root: float, segments: int) -> list[Split]:
    """All that are worth a look in so many segments; ``root``: sqrt(S)."""
    results = []
    for split in problem.splits:
        for at in range(kinds) if split.fixed else (DISJOINT,):
            for s in numbers(split, root, segments):
                groups = tuple(
                    Group(many, part, at if name == split.fixed else DISJOINT)
                    for many, (name, part) in zip((1, s - 2, 1), split.ends, strict=True)
                )
                results.append(Split((split.name, at), s, split, groups))
    return results


class Splits:
    """The ways to split, as arrays: way x group x kind."""

    def __init__(self, results: Sequence[Split], columns: Columns, root: float) -> None:
        kinds, self.splits, self.columns = columns.kinds, results, columns
        self.length = np.array([way.split.length / root for way in results])
        self.log_length = np.array([log(max(length, 1.0)) for length in self.length.tolist()])
        self.certain = np.array([float(way.split.certain) for way in results])
        self.many = np.zeros((len(results), 3))
        self.gap = np.zeros((len(results), 3, 2), dtype=np.intp)  # before and after: column of the first kind
        self.width = np.zeros((len(results), 3, 2))  # 0 for none
        self.stays = np.zeros((len(results), 3))  # of the room that all share
        self.closed = np.zeros((len(results), 3, kinds))
        of = {field: columns.of(field).start for field in FIELDS + GAPS}
        self.entropy = np.array([of["first" if way.split.first else "second"] for way in results], dtype=np.intp)
        self.offset = np.array([of[way.split.offset] for way in results], dtype=np.intp)
        for row, way in enumerate(results):
            for group, item in enumerate(way.groups):
                self.many[row, group] = item.pieces
                self.stays[row, group] = stays(item.part)
                for side, (field, width) in enumerate(paid(item.part)):
                    self.gap[row, group, side], self.width[row, group, side] = of[field], width
                if item.at != DISJOINT:
                    self.closed[row, group] = _BIG
                    self.closed[row, group, item.at] = 0
        self.all = np.arange(kinds)
        self.row, self.group = np.arange(len(results))[:, None], np.arange(3)[None, :]
        self.at: dict[Where, list[int]] = {}
        for number, way in enumerate(results):
            self.at.setdefault(way.where, []).append(number)

    def least(self, name: str, values: Array) -> Array:
        """The least value for each kind of a fixed part."""
        numbers = [self.at.get((name, i), []) for i in range(self.columns.kinds)]
        if not numbers[0]:
            return np.full(self.columns.kinds, np.inf)
        result: Array = values[numbers[0][0] : numbers[-1][-1] + 1].reshape(len(numbers), -1).min(axis=1)
        return result

    def best(self, multipliers: Array, steps: int = STEPS) -> Best:
        """The best theta of each way: where the parts of what is charged least add up to the line."""
        mu = multipliers[self.entropy[:, None] + self.all]
        offset = multipliers[self.offset[:, None] + self.all]
        costs = self.width[..., None] * multipliers[self.gap[..., None] + self.all]
        gaps = costs.sum(axis=2) + self.closed + (self.stays * multipliers[self.columns.at_cut])[..., None]
        low = (offset + mu * -8).min(axis=1)  # parts of e^-9
        high = (offset + mu * (2 + self.log_length)[:, None]).max(axis=1)

        def shares(theta: Array) -> tuple[Array, Array, NDArray[np.intp], Array]:
            part = exp(np.clip((theta[:, None] - offset) / mu - 1, -700, 50))
            charged = gaps - (mu * part)[:, None, :]
            kind = charged.argmin(axis=2)
            size = part[self.row, kind]
            return charged, self.length - (self.many * size).sum(axis=1), kind, size

        def at(theta: Array) -> tuple[Array, Array, NDArray[np.intp], Array]:
            charged, short, kind, size = shares(theta)
            least = charged[self.row, self.group, kind]
            return theta * self.length + (self.many * least).sum(axis=1) + self.certain, short, kind, size

        for _ in range(steps):
            middle = (low + high) / 2
            rises = shares(middle)[1] > 0
            low, high = np.where(rises, middle, low), np.where(rises, high, middle)
        return Best(self, low, at(low), at(high))


class Best(NamedTuple):
    """The best theta of each way, and the splits on both sides of it."""

    splits: Splits
    theta: Array
    below: tuple[Array, Array, NDArray[np.intp], Array]
    above: tuple[Array, Array, NDArray[np.intp], Array]

    @property
    def values(self) -> Array:
        """What is charged."""
        return np.maximum(self.below[0], self.above[0])

    def cheapest(self, way: int) -> CheapestSplit:
        """One of them as a function of the multipliers: the mean of both sides whose parts add up to the line."""
        spec, row = self.splits, dict[int, float]()
        short, over = float(self.below[1][way]), float(self.above[1][way])
        share = min(1.0, max(0.0, -over / (short - over))) if short - over > 1e-12 else 0.5
        for weight, (_, _, kinds, sizes) in ((share, self.below), (1 - share, self.above)):
            for group in range(3):
                many = weight * spec.many[way, group]
                if not many:
                    continue
                kind, size = int(kinds[way, group]), float(sizes[way, group])
                if stays := float(spec.stays[way, group]):
                    row[spec.columns.at_cut] = row.get(spec.columns.at_cut, 0.0) + many * stays
                for gap, width in zip(spec.gap[way, group].tolist(), spec.width[way, group].tolist(), strict=True):
                    if width:
                        row[gap + kind] = row.get(gap + kind, 0.0) + many * width
                for column, factor in ((spec.entropy[way], plogp(size)), (spec.offset[way], size)):
                    row[int(column) + kind] = row.get(int(column) + kind, 0.0) + many * factor
        return CheapestSplit(float(self.values[way]), row, float(spec.certain[way]))

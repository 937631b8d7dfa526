"""A GEMM in blocks of one size, walked in a snake: the loop nest, in which one operand stays block by block, and the
search for it: sizes worth trying, and every pair of sizes where there are few.

Let the operand that stays have dimensions (p, q) and r be the streamed one; the other two operands are P (p x r) and Q
(q x r). The next block in the same row of blocks starts with the vectors of P that the last one ended with, as many as
the spare memory keeps; at the end of a row the same holds for Q.

The loops are those of `nest`. Bands of blocks (`gemm`) move less where blocks are many; where they are few and small,
each value of memory counts, and these are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import isqrt

import numpy as np

from pebble.schedules.explicit.corner import FloatArray
from pebble.schedules.explicit.gemm import AXES, StationaryProduct, operand_of, taken, visit_costs
from pebble.units import ceil_div
from pebble.workloads import Gemm
from pebble.workloads.widths import FastMemory

MOST_SIZES = 1 << 15  # more than any extent up to 2^28 has


def block_sizes(extent: int, largest: int, most: int = MOST_SIZES) -> Iterator[int]:
    """Each whole number up to ``largest`` that is ceil(extent / count) for some count: the sizes worth trying.

    After ``most`` of them they fall by a 256th at least, so that their number stays small for any extent.

    Examples
    --------
    >>> list(block_sizes(10, 10))
    [10, 5, 4, 3, 2, 1]
    """
    if largest < 1:
        return
    size = ceil_div(extent, ceil_div(extent, min(largest, extent)))
    number = 0
    while True:
        yield size
        if size == 1:
            return
        number += 1
        below = size if number < most else max(2, size - size // 256)
        # the fewest blocks that need less than this size
        size = ceil_div(extent, (extent - 1) // (below - 1) + 1)


def largest_partner(capacity: int, side: int, cell: int = 1, wider: int = 1) -> int:
    """Largest t such that a block of side x t fits with a vector along its shorter side and one value, or 0.

    A value of the block takes ``cell``, one of the vector ``wider``.
    """
    longer = (capacity - wider * (side + 1)) // (cell * side)
    return longer if longer >= side else max(0, (capacity - wider) // (cell * side + wider))


def even(total: int, count: int) -> list[tuple[int, int]]:
    """``count`` whole parts of a total that differ by one at most: (size, how many), the longer ones first.

    Examples
    --------
    >>> even(10, 4)
    [(3, 2), (2, 2)]
    """
    size, longer = divmod(total, count)
    return [run for run in ((size + 1, longer), (size, count - longer)) if run[1]]


@dataclass(frozen=True)
class Memory:
    """What fits beside each other, and what a value of the block, of P and of Q takes of it."""

    capacity: int
    stationary: int
    p: int
    q: int


def memories_of(memory: FastMemory, stationary: str, axes: tuple[str, str, str]) -> tuple[Memory, ...]:
    """Each limit of a memory as a nest along p, q and r meets it."""
    p, q, r = axes
    results = []
    for size, widths in memory.limits:
        of = taken(widths)
        results.append(Memory(size, of[stationary], of[operand_of(p, r)], of[operand_of(q, r)]))
    return tuple(results)


@dataclass(frozen=True)
class Nest:
    """The loop nest in its own names: stationary p x q, streamed r; rows of blocks along p, walked along q."""

    axes: tuple[str, str, str]
    p: int
    q: int
    r: int
    bp: int
    bq: int
    memories: tuple[Memory, ...]  #: all of them limit what is kept

    @classmethod
    def of(cls, gemm: Gemm, memory: FastMemory, stationary: str, bp: int, bq: int, across: str) -> Nest:
        """The nest of these blocks, bp x bq in the order of `AXES`; it walks its second dimension first."""
        first, second, streamed = AXES[stationary]
        if across == first:
            first, second, bp, bq = second, first, bq, bp
        size, axes = {"m": gemm.m, "n": gemm.n, "k": gemm.k}, (first, second, streamed)
        return cls(axes, size[first], size[second], size[streamed], bp, bq, memories_of(memory, stationary, axes))

    @property
    def rows(self) -> int:
        return ceil_div(self.p, self.bp)

    @property
    def cols(self) -> int:
        return ceil_div(self.q, self.bq)

    def height(self, row: int) -> int:
        return min(self.bp, self.p - row * self.bp)

    def width(self, col: int) -> int:
        return min(self.bq, self.q - col * self.bq)

    def carried_across(self, height: int, width: int) -> int:
        """Vectors of P (``height`` values each) kept from one block to the next in its row."""
        free = min(
            (memory.capacity - memory.q - memory.stationary * height * width) // (memory.p * height)
            for memory in self.memories
        )
        return min(self.r, max(0, free))

    def carried_down(self, row: int, width: int) -> int:
        """Vectors of Q (``width`` values each) kept at the turn below ``row``.

        A block that begins with kept vectors of P must be through with them before it begins to keep vectors of Q,
        and the other way round: a step with both would hold two whole vectors.
        """
        steps = self.r
        if self.cols > 1:
            steps -= max(self.carried_across(self.height(r), self.bq) for r in (row, row + 1))
        free = min(
            (memory.capacity - memory.p - memory.stationary * self.bp * width) // (memory.q * width)
            for memory in self.memories
        )
        return min(steps, max(0, free))

    def saved_across(self) -> int:
        """Values of P not moved again, over all steps inside rows of blocks."""
        # every step inside a row has a block of full width on at least one side
        full, last = self.bp, self.height(self.rows - 1)
        per_step = (self.rows - 1) * self.carried_across(full, self.bq) * full
        return (self.cols - 1) * (per_step + self.carried_across(last, self.bq) * last)

    def turn_column(self, row: int) -> int:
        """The column of blocks in which the walk goes from ``row`` to the next: the snake's end."""
        return self.cols - 1 if row % 2 == 0 else 0

    def saved_down(self) -> int:
        """Values of Q not moved again, over all turns between rows of blocks."""
        if self.rows == 1:
            return 0
        total = 0
        plain = self.rows - 2  # turns between two full rows of blocks; they alternate between two columns
        for parity, count in ((0, ceil_div(plain, 2)), (1, plain // 2)):
            width = self.width(self.turn_column(parity))
            total += count * (self.carried_down(0, width) * width if count else 0)
        last = self.rows - 2
        width = self.width(self.turn_column(last))
        return total + self.carried_down(last, width) * width

    def peak(self, own: int = 1, of_p: int = 1, of_q: int = 1) -> int:
        """Most that is held at once, where a value of the block, of P and of Q takes so much."""
        most = own * self.bp * self.bq + max(of_p, of_q) * (min(self.bp, self.bq) + 1)
        if self.cols > 1:
            for height in {self.bp if self.rows > 1 else self.height(0), self.height(self.rows - 1)}:
                carried = self.carried_across(height, self.bq)
                most = max(most, own * height * self.bq + of_p * carried * height + of_q if carried else 0)
        for row in {0, self.rows - 2} if self.rows > 1 else set():
            for width in {self.width(self.turn_column(row)), self.width(self.turn_column(row + 1))}:
                carried = self.carried_down(row, width)
                most = max(most, own * self.bp * width + of_q * carried * width + of_p if carried else 0)
        return most


def visits_of_many(
    extents: tuple[int, int, int], bp: FloatArray, bq: FloatArray, memories: tuple[Memory, ...]
) -> tuple[FloatArray, FloatArray]:
    """How often values of P and of Q come to fast memory, for many nests of p x q x r at once.

    Parameters
    ----------
    extents : tuple of int
        p, q and r.
    bp, bq : arrays
        Of the blocks, in whole numbers; the walk is along q.
    memories : tuple of Memory
        All of them limit what is kept.
    """
    p, q, r = extents
    rows, cols = -(-p // bp), -(-q // bq)
    last_height, last_width = p - (rows - 1) * bp, q - (cols - 1) * bq

    def across(height: FloatArray) -> FloatArray:
        carried = [(item.capacity - item.q - item.stationary * height * bq) // (item.p * height) for item in memories]
        return np.asarray(np.clip(np.minimum.reduce(carried), 0, r))

    def down(width: FloatArray, besides: FloatArray) -> FloatArray:
        carried = [
            (memory.capacity - memory.p - memory.stationary * bp * width) // (memory.q * width) for memory in memories
        ]
        return np.asarray(np.clip(np.minimum.reduce(carried), 0, r - np.where(cols > 1, besides, 0)) * width)

    full, last = across(bp), across(last_height)
    saved_p = (cols - 1) * ((rows - 1) * full * bp + last * last_height)
    between = np.maximum(rows - 2, 0)  # turns between two full rows of blocks; they alternate between two columns
    saved_q = (between + 1) // 2 * down(last_width, full) + between // 2 * down(bq, full)
    saved_q = saved_q + np.where(rows > 1, down(np.where(rows % 2 == 0, last_width, bq), np.maximum(full, last)), 0)
    return p * r * cols - saved_p, q * r * rows - saved_q


_MOST_PAIRS = 4096  # of sizes of blocks, beyond which each has one partner


@dataclass(frozen=True)
class BlockedProduct(StationaryProduct):
    """A product in blocks of one size, and its exact traffic.

    Attributes
    ----------
    stationary : {"A", "B", "C"}
    block_p, block_q : int
        Extents of a block, in the order of `AXES`.
    across : str
        The dimension of the inner walk.
    """

    stationary: str
    block_p: int
    block_q: int
    across: str

    @cached_property
    def nest(self) -> Nest:
        """Its loops."""
        return Nest.of(self.gemm, self.memory, self.stationary, self.block_p, self.block_q, self.across)

    @cached_property
    def visits(self) -> dict[str, int]:
        nest = self.nest
        first, second, streamed = nest.axes
        result = {
            operand_of(first, streamed): nest.p * nest.r * nest.cols - nest.saved_across(),
            operand_of(second, streamed): nest.q * nest.r * nest.rows - nest.saved_down(),
            self.stationary: nest.p * nest.q,
        }
        return {name: result[name] for name in "ABC"}

    def _peak(self, of: Mapping[str, int]) -> int:
        first, second, streamed = self.nest.axes
        return self.nest.peak(of[self.stationary], of[operand_of(first, streamed)], of[operand_of(second, streamed)])

    @property
    def name(self) -> str:
        """For tables."""
        p, q, _ = AXES[self.stationary]
        text = f"{self.stationary}-stationary, blocks {self.block_p}x{self.block_q} ({p} x {q})"
        return f"compulsory: {text}" if self.elements == self.gemm.compulsory_elements else text

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {
            "family": f"{self.stationary.lower()}-stationary",
            "block": [self.block_p, self.block_q],
            "block_dimensions": list(AXES[self.stationary][:2]),
            "walks_first": self.across,
            **self.traffic_json(),
        }


def blocked_products(gemm: Gemm, memory: FastMemory) -> Iterator[BlockedProduct]:
    """The best schedule of each stationary operand and walk; about a millisecond.

    Of blocks with at most ``_MOST_PAIRS`` pairs of sizes every pair is looked at, and its traffic is exact: a pair that
    fits a memory fits every larger one. Of more, each size has the largest partner that fits.
    """
    cost = visit_costs(memory)
    for stationary, (first, second, streamed) in AXES.items():
        bp, bq = _pairs(gemm, memory, stationary)
        for across in (second, first) if len(bp) else ():
            walked = (first, second) if across == second else (second, first)
            sides = (bp, bq) if across == second else (bq, bp)
            p, q, r = (gemm.along(axis) for axis in (*walked, streamed))
            counted = visits_of_many((p, q, r), *sides, memories_of(memory, stationary, (*walked, streamed)))
            names = [operand_of(axis, streamed) for axis in walked]
            visits = dict(zip(names, counted, strict=True)) | {stationary: np.float64(p * q)}
            traffic = sum((cost[name] * visits[name] for name in "ABC"), np.zeros_like(bp))
            order = np.lexsort((visits["A"] + visits["B"] + 2 * visits["C"] + 0 * bp, traffic))
            best = int(order[0])
            yield BlockedProduct(gemm, memory, stationary, int(bp[best]), int(bq[best]), across)


def _pairs(gemm: Gemm, memory: FastMemory, stationary: str) -> tuple[FloatArray, FloatArray]:
    """Sides of blocks that fit."""
    first, second, _ = AXES[stationary]
    limits = []
    for size, widths in memory.limits:
        of = taken(widths)
        limits.append((size, of[stationary], max(width for name, width in of.items() if name != stationary)))
    results: list[tuple[int, int]] = []
    largest = min(size // own for size, own, _ in limits)
    few = 4 * isqrt(gemm.along(first)) * isqrt(gemm.along(second)) <= _MOST_PAIRS  # about so many pairs
    for bp in block_sizes(gemm.along(first), largest):
        partners = (largest_partner(size, bp, own, wider) for size, own, wider in limits)
        partner = min(gemm.along(second), *partners)
        if partner > 0:
            sizes = block_sizes(gemm.along(second), partner)
            results += [(bp, bq) for bq in (sizes if few else islice(sizes, 1))]
    both = np.array(results, np.float64).reshape(-1, 2)  # exact below 2^53; of what is larger about is enough
    return both[:, 0], both[:, 1]

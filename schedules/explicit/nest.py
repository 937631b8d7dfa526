"""The loop nest of a blocked GEMM: one operand stays block by block, the walk is a snake.

Let the operand that stays have dimensions (p, q) and r be the streamed one; the other two operands are P (p x r) and Q
(q x r). The next block in the same row of blocks starts with the vectors of P that the last one ended with, as many as
the spare memory keeps; at the end of a row the same holds for Q.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pebble.schedules.explicit.corner import FloatArray
from pebble.schedules.explicit.gemm import AXES, operand_of, taken
from pebble.units import ceil_div
from pebble.workloads import Gemm
from pebble.workloads.widths import FastMemory


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

    def kept_across(self, height: int, width: int) -> int:
        """Vectors of P (``height`` values each) kept from one block to the next in its row."""
        free = min(
            (memory.capacity - memory.q - memory.stationary * height * width) // (memory.p * height)
            for memory in self.memories
        )
        return min(self.r, max(0, free))

    def kept_down(self, row: int, width: int) -> int:
        """Vectors of Q (``width`` values each) kept at the turn below ``row``.

        A block that begins with kept vectors of P must be through with them before it begins to keep vectors of Q,
        and the other way round: a step with both would hold two whole vectors.
        """
        steps = self.r
        if self.cols > 1:
            steps -= max(self.kept_across(self.height(r), self.bq) for r in (row, row + 1))
        free = min(
            (memory.capacity - memory.p - memory.stationary * self.bp * width) // (memory.q * width)
            for memory in self.memories
        )
        return min(steps, max(0, free))

    def saved_across(self) -> int:
        """Values of P not moved again, over all steps inside rows of blocks."""
        # every step inside a row has a block of full width on at least one side
        full, last = self.bp, self.height(self.rows - 1)
        per_step = (self.rows - 1) * self.kept_across(full, self.bq) * full
        return (self.cols - 1) * (per_step + self.kept_across(last, self.bq) * last)

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
            total += count * (self.kept_down(0, width) * width if count else 0)
        last = self.rows - 2
        width = self.width(self.turn_column(last))
        return total + self.kept_down(last, width) * width

    def peak(self, own: int = 1, of_p: int = 1, of_q: int = 1) -> int:
        """Most that is held at once, where a value of the block, of P and of Q takes so much."""
        most = own * self.bp * self.bq + max(of_p, of_q) * (min(self.bp, self.bq) + 1)
        if self.cols > 1:
            for height in {self.bp if self.rows > 1 else self.height(0), self.height(self.rows - 1)}:
                kept = self.kept_across(height, self.bq)
                most = max(most, own * height * self.bq + of_p * kept * height + of_q if kept else 0)
        for row in {0, self.rows - 2} if self.rows > 1 else set():
            for width in {self.width(self.turn_column(row)), self.width(self.turn_column(row + 1))}:
                kept = self.kept_down(row, width)
                most = max(most, own * self.bp * width + of_q * kept * width + of_p if kept else 0)
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
        kept = [(item.capacity - item.q - item.stationary * height * bq) // (item.p * height) for item in memories]
        return np.asarray(np.clip(np.minimum.reduce(kept), 0, r))

    def down(width: FloatArray, besides: FloatArray) -> FloatArray:
        kept = [
            (memory.capacity - memory.p - memory.stationary * bp * width) // (memory.q * width) for memory in memories
        ]
        return np.asarray(np.clip(np.minimum.reduce(kept), 0, r - np.where(cols > 1, besides, 0)) * width)

    full, last = across(bp), across(last_height)
    saved_p = (cols - 1) * ((rows - 1) * full * bp + last * last_height)
    between = np.maximum(rows - 2, 0)  # turns between two full rows of blocks; they alternate between two columns
    saved_q = (between + 1) // 2 * down(last_width, full) + between // 2 * down(bq, full)
    saved_q = saved_q + np.where(rows > 1, down(np.where(rows % 2 == 0, last_width, bq), np.maximum(full, last)), 0)
    return p * r * cols - saved_p, q * r * rows - saved_q

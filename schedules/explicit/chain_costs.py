"""About what bands of a chain cost, in closed form for many extents at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from pebble.schedules.explicit.chain import Chain, state_of
from pebble.schedules.explicit.corner import FloatArray, Floats, vectors_carried
from pebble.workloads.widths import FastMemory, Widths


@dataclass(frozen=True)
class Costs:
    """About what bands of a side cost, for arrays of extents; infinite where they do not fit a limit of the memory."""

    chain: Chain
    side: str
    memory: FastMemory

    @cached_property
    def limits(self) -> list[_Limit]:
        return [_Limit(self.chain, self.side, size, of, self.memory.cost) for size, of in self.memory.limits]

    def highest(self, rule: str) -> int:
        """Of the bands that fit."""
        return min(limit.highest(rule) for limit in self.limits)

    @property
    def beyond(self) -> int:
        """What a plan's bands cost beyond what it moves: the first loads no Y, the last stores it complete."""
        chain, moves = self.chain, self.memory.cost
        return 0 if self.side == "rows" else (2 * moves.partial - moves.written) * chain.m * chain.l

    def jumps(self, rule: str) -> FloatArray:
        """Extents at which one block fewer just fits."""
        return np.concatenate([limit.jumps(rule) for limit in self.limits])

    def cost(self, rule: str, extent: FloatArray, count: FloatArray) -> FloatArray:
        """So many bands of that extent, with what panels hand on."""
        return reduce(np.maximum, [limit.cost(rule, extent, count) for limit in self.limits])

    def evened(self, rule: str, total: Floats, count: FloatArray) -> FloatArray:
        """So many bands that differ by one at most."""
        size = np.floor(total / count)
        longer = total - size * count
        shorter = self.cost(rule, size, count)
        with np.errstate(invalid="ignore"):
            part = longer / count
            mixed = part * self.cost(rule, size + 1, count) + (1 - part) * shorter
        return np.asarray(np.where(longer > 0, mixed, shorter))


@dataclass(frozen=True)
class _Limit:
    """The same where only one thing is limited: ``of`` says what a value takes of it, ``moves`` what a transfer counts.

    A line is what stays for a unit of the extent: of A and Y, or of B and D.
    """

    chain: Chain
    side: str
    size: int
    of: Widths
    moves: Widths

    @property
    def across(self) -> int:
        return self.chain.f if self.side == "rows" else self.chain.m

    def lines(self, of: Widths) -> tuple[int, int]:
        """What a line of either operand counts."""
        c, w = self.chain, of.read
        return (w * c.k, of.partial * c.l) if self.side == "rows" else (w * c.streams * c.k, w * c.l)

    @property
    def once(self) -> int:
        """What the lines of a unit of extent count that move in any case."""
        first, second = self.lines(self.moves)
        return first + (self.moves.written * self.chain.l if self.side == "rows" else second)

    @property
    def passing(self) -> int:
        """What streams by, for a unit of the other side: of B and D, or of A and twice of Y."""
        c, w = self.chain, self.moves.read
        return w * c.weights_per_column if self.side == "rows" else w * c.k + 2 * self.moves.partial * c.l

    @property
    def cell(self) -> int:
        """What a position of a block takes while it is computed."""
        return self.of.hidden * self.chain.streams

    @property
    def spilled_line(self) -> int:
        """What a row takes that spills: of A and a column of H, then of Y and one."""
        c, w = self.chain, self.of.read
        return max(w * c.k + self.cell, self.of.partial * c.l + w) + state_of(c, self.of, True)

    def highest(self, rule: str) -> int:
        """Of the bands that fit."""
        c, w, free = self.chain, self.of.read, self.size - self.of.read
        if rule == "panel":
            return free // (sum(self.lines(self.of)) + self.cell + state_of(c, self.of, True))
        if rule == "spill":
            return free // self.spilled_line
        if self.side == "hidden":
            return (free - w - state_of(c, self.of, False)) // self.cell
        return free // (self.cell + state_of(c, self.of, False) + w)

    def jumps(self, rule: str) -> FloatArray:
        """Extents at which one block fewer just fits."""
        blocks = np.arange(1.0, 13) if rule in ("keep", "block") else np.zeros(0)
        width = self.cell * np.ceil(self.across / blocks) + self.of.read + state_of(self.chain, self.of, False)
        return np.floor((self.size - self.of.read) / np.concatenate([width, width + self.lines(self.of)[1]]))

    def cost(self, rule: str, extent: FloatArray, count: FloatArray) -> FloatArray:
        """So many bands of that extent, with what panels hand on."""
        traffic = extent * self.once + float(self.across) * self.passing
        if rule == "panel":
            return self._panels(extent, count, traffic)
        if rule == "spill":
            return self._spilling(extent, count, traffic)
        return np.asarray(count * (traffic + self._again(rule, extent, count)))

    def _panels(self, extent: FloatArray, count: FloatArray, traffic: FloatArray) -> FloatArray:
        c, held = self.chain, sum(self.lines(self.of))
        spare = self.size - extent * (held + state_of(c, self.of, True))
        turn = np.zeros_like(extent)
        if self.side == "rows" and not c.masked:
            shared = np.float64(self.of.read * c.weights_per_column)
            carried = vectors_carried(spare, np.float64(held), extent, self.cell, shared)
            turn = np.minimum(carried, self.across / 2) * self.passing
        return np.where(spare > extent * self.cell, count * traffic - (count - 1) * turn, np.inf)

    def _spilling(self, extent: FloatArray, count: FloatArray, traffic: FloatArray) -> FloatArray:
        c, w = self.chain, self.of.read
        spare = self.size - extent * (self.spilled_line - self.cell)
        capacity = np.maximum(self.size - extent * self.spilled_line, 0)
        stays = vectors_carried(capacity, w * extent, np.float64(min(c.k, c.l)), w * c.streams, self.of.hidden * extent)
        stored = 2 * self.moves.read * extent * np.maximum(self.across - stays, 0)
        return np.where(spare > extent * self.cell, count * (traffic + stored), np.inf)

    def _again(self, rule: str, extent: FloatArray, count: FloatArray) -> FloatArray:
        """What moves again because a band has several blocks, or moves no more because it leaves room."""
        f, widths, again = self.across, self.lines(self.of), np.full_like(extent, np.inf)
        first, second = self.lines(self.moves)
        twice = 2 if self.side == "rows" else 1
        # what a unit of room that is left for lines saves
        saves = first / max(widths[0], 1), twice * second / max(widths[1], 1)
        for carried in (0.0, float(widths[1]), widths[1] + widths[0] / 2) if rule == "keep" else (0.0,):
            fewest = np.ceil(f / np.maximum(self._widest(extent, carried), 1e-9))
            for blocks in (fewest, fewest + 1):
                free = self.size - self._taken(extent, np.ceil(f / blocks))
                stays = np.maximum(free / extent, 0)
                saved = saves[1] * np.minimum(stays, widths[1]) + saves[0] * np.clip(stays - widths[1], 0, widths[0])
                if self.side == "rows" and widths[1]:
                    columns = np.minimum(self._wider(extent, blocks), self.chain.l)
                    saved = np.maximum(saved, 2 * self.moves.partial * columns)
                if rule == "block":
                    saved = np.zeros_like(extent)
                single = (blocks - 1) * extent * np.maximum(first + twice * second - saved, 0)
                # one block leaves room that keeps what streams by for the next band
                spare = np.clip(free * (self.moves.read / self.of.read), 0, float(f) * self.passing)
                single = np.where(blocks == 1, -(count - 1) / count * spare, single)
                again = np.minimum(again, np.where(blocks <= f, single, np.inf))
        return again

    def _taken(self, extent: FloatArray, block: FloatArray) -> FloatArray:
        """Room of a block, its vector and the softmax state."""
        c, w = self.chain, self.of.read
        rows, cols = (extent, block) if self.side == "rows" else (block, extent)
        vector = w * (np.minimum(rows, c.streams * cols) + 1)
        return np.asarray(self.cell * rows * cols + state_of(c, self.of, False) * rows + vector)

    def _widest(self, extent: FloatArray, carried: float) -> FloatArray:
        """Longest block beside so much that stays in each line; the shorter vector lies along it or across."""
        u, w, cell, state = self.chain.streams, self.of.read, self.cell, state_of(self.chain, self.of, False)
        capacity = self.size - w - extent * carried
        if self.side == "rows":
            capacity = capacity - extent * state
            short, long = (
                np.minimum(capacity / (cell * extent + w * u), extent / u),
                (capacity - w * extent) / (cell * extent),
            )
        else:
            short = np.minimum(capacity / (cell * extent + state + w), u * extent)
            long = (capacity - w * u * extent) / (cell * extent + state)
        return np.floor(np.maximum(np.maximum(short, long), 0))

    def _wider(self, extent: FloatArray, blocks: FloatArray) -> FloatArray:
        """About how many columns of Y stay when the first block is wider.

        Columns of H, in the first block complete and in the others as they are computed, are as many as there are.
        """
        c, w, p = self.chain, self.of.read, self.of.partial
        capacity = np.maximum(self.size / extent - state_of(c, self.of, False), 0)
        more = np.maximum(blocks - 1, 1)
        # of a first block as wide as it can be while it is computed
        alone = (capacity - (c.f - capacity / self.cell) * self.cell / more) / p
        others = more * p / self.cell  # columns of H that one more of Y costs there
        free = capacity / w + more * capacity / self.cell - c.f
        if c.streams > 1:
            return np.asarray(np.where(blocks > 1, np.minimum(alone, free / (p / w + others)), 0))
        each = p / (w * extent)
        turned = (np.sqrt(others**2 + 4 * each * np.maximum(free, 0)) - others) / (2 * each)
        plain = (free + p * extent / (4 * w)) / (p / w + others)
        stays = np.minimum(alone, np.where(turned <= extent / 2, turned, plain))
        return np.asarray(np.where((blocks > 1) & (free > 0), stays, 0))

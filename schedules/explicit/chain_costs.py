"""About what bands of a chain cost, in closed form for many extents at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pebble.schedules.explicit.chain import Chain
from pebble.schedules.explicit.corner import FloatArray, Floats, vectors_carried


@dataclass(frozen=True)
class Costs:
    """About what bands of a side cost, for arrays of extents; infinite where they do not fit."""

    chain: Chain
    side: str
    capacity: int

    @property
    def across(self) -> int:
        return self.chain.f if self.side == "rows" else self.chain.m

    @property
    def lines(self) -> tuple[int, int, int]:
        """Values that stay for a unit of extent: of A (or B), of Y (or D), and what the second cost to come again."""
        c = self.chain
        return (c.k, c.l, 2) if self.side == "rows" else (c.streams * c.k, c.l, 1)

    @property
    def passing(self) -> int:
        """Values that stream by, for a unit of the other side: of B and D, or of A and twice of Y."""
        c = self.chain
        return c.weights_per_column if self.side == "rows" else c.k + 2 * c.l

    def highest(self, rule: str) -> int:
        """Of the bands that fit."""
        c, (first, second, _) = self.chain, self.lines
        if rule == "panel":
            return (self.capacity - 1) // (first + second + c.streams + min(c.state, 2))
        if rule == "spill":
            return (self.capacity - 1) // (max(c.k + c.streams, c.l + 1) + min(c.state, 2))
        if self.side == "hidden":
            return (self.capacity - 2 - c.state) // c.streams
        return (self.capacity - 1) // (c.streams + c.state + 1)

    def jumps(self, rule: str) -> FloatArray:
        """Extents at which one block fewer just fits."""
        c, (_, second, _) = self.chain, self.lines
        blocks = np.arange(1.0, 13) if rule in ("keep", "block") else np.zeros(0)
        width = c.streams * np.ceil(self.across / blocks) + 1 + c.state
        return np.floor((self.capacity - 1) / np.concatenate([width, width + second]))

    def cost(self, rule: str, extent: FloatArray, count: FloatArray) -> FloatArray:
        """So many bands of that extent, with what panels hand on."""
        c, (first, second, twice), f = self.chain, self.lines, self.across
        spare = self.capacity - extent * (first + second + min(c.state, 2))
        moved = extent * (first + second) + float(f) * self.passing
        if rule == "panel":
            turn = np.zeros_like(extent)
            if self.side == "rows" and not c.masked:
                held = np.float64(first + second)
                carried = vectors_carried(spare, held, extent, c.streams, np.float64(self.passing))
                turn = np.minimum(carried, f / 2) * self.passing
            return np.where(spare > extent * c.streams, count * moved - (count - 1) * turn, np.inf)
        if rule == "spill":
            spare = self.capacity - extent * (max(c.k, c.l) + min(c.state, 2))
            room = np.maximum(spare - extent * c.streams, 0)
            stays = vectors_carried(room, extent, np.float64(min(c.k, c.l)), c.streams, extent)
            return np.where(spare > extent * c.streams, count * (moved + 2 * extent * np.maximum(f - stays, 0)), np.inf)
        again = np.full_like(extent, np.inf)
        for kept in (0.0, float(second), second + first / 2) if rule == "keep" else (0.0,):
            fewest = np.ceil(f / np.maximum(self._widest(extent, kept), 1e-9))
            for blocks in (fewest, fewest + 1):
                block = np.ceil(f / blocks)
                stays = np.maximum((self.capacity - self._taken(extent, block)) / extent, 0)
                saved = twice * np.minimum(stays, second) + np.clip(stays - second, 0, first)
                if self.side == "rows" and second:
                    saved = np.maximum(saved, 2 * np.minimum(self._wider(extent, blocks), second))
                if rule == "block":
                    saved = np.zeros_like(extent)
                one = (blocks - 1) * extent * np.maximum(first + twice * second - saved, 0)
                # one block leaves room that keeps what streams by for the next band
                spare = np.clip(self.capacity - self._taken(extent, block), 0, float(f) * self.passing)
                one = np.where(blocks == 1, -(count - 1) / count * spare, one)
                again = np.minimum(again, np.where(blocks <= f, one, np.inf))
        return np.asarray(count * (moved + again))

    def evened(self, rule: str, total: Floats, count: FloatArray) -> FloatArray:
        """So many bands that differ by one at most."""
        size = np.floor(total / count)
        longer = total - size * count
        shorter = self.cost(rule, size, count)
        with np.errstate(invalid="ignore"):
            part = longer / count
            mixed = part * self.cost(rule, size + 1, count) + (1 - part) * shorter
        return np.asarray(np.where(longer > 0, mixed, shorter))

    def _taken(self, extent: FloatArray, block: FloatArray) -> FloatArray:
        """Room of a block, its vector and the softmax state."""
        c = self.chain
        rows, cols = (extent, block) if self.side == "rows" else (block, extent)
        return c.streams * rows * cols + c.state * rows + np.minimum(rows, c.streams * cols) + 1

    def _widest(self, extent: FloatArray, kept: float) -> FloatArray:
        """Longest block beside so many lines that stay; the shorter vector lies along it or across."""
        c, u = self.chain, self.chain.streams
        room = self.capacity - 1 - extent * kept
        if self.side == "rows":
            room = room - extent * c.state
            short, long = np.minimum(room / (u * extent + u), extent / u), (room - extent) / (u * extent)
        else:
            short = np.minimum(room / (u * extent + c.state + 1), u * extent)
            long = (room - u * extent) / (u * extent + c.state)
        return np.floor(np.maximum(np.maximum(short, long), 0))

    def _wider(self, extent: FloatArray, blocks: FloatArray) -> FloatArray:
        """About how many columns of Y stay when the first block is wider."""
        u = self.chain.streams
        free = blocks * (self.capacity / extent - self.chain.state) - u * self.chain.f
        more = np.maximum(blocks - 1, 1)
        if u > 1:
            return np.asarray(np.where(blocks > 1, free / more, 0))
        turned = extent / 2 * (np.sqrt(more**2 + 4 * np.maximum(free, 0) / extent) - more)
        plain = (free + extent / 4) / blocks
        return np.asarray(np.where((blocks > 1) & (free > 0), np.where(turned <= extent / 2, turned, plain), 0))

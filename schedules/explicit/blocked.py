"""A GEMM in blocks of one size, walked in a snake: every pair of sizes is looked at where there are few.

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

from pebble.schedules.explicit.blocks import block_sizes, largest_partner
from pebble.schedules.explicit.corner import FloatArray
from pebble.schedules.explicit.gemm import AXES, StationaryProduct, operand_of, taken, visit_costs
from pebble.schedules.explicit.nest import Nest, memories_of, visits_of_many
from pebble.workloads import Gemm
from pebble.workloads.widths import FastMemory

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

"""GEMM on P SMs: a grid of blocks per SM, and clusters of SMs that share what they read; and the grid and the cluster
shape that move least, for a shape, P and S.

The multiply-adds are cut into a grid of g_m x g_n x g_k blocks (COSMA's decomposition, with the grid chosen for the
shape, P and S). An SM that does a block holds one face of it and streams along the third dimension, for which it needs
that face, one vector, and one more value: ``face + shorter side + 1 <= S``. Per block it moves the faces of A and B
once, and C once out, and once in when an earlier slab along k left partial sums. So L2 sees

    A m k g_n + B k n g_m + C m n (2 g_k - 1)   values (C m n 2 g_k for C += A B).

With *atomic adds* no partial sum is read: each slab adds its own to C in L2, m n g_k values in all.

Blocks go to SMs in rounds; the busiest SM does ``rounds`` blocks, each of at most ceil(m / g_m) ceil(n / g_n)
ceil(k / g_k) multiply-adds.

**Clusters** of c_m x c_n SMs do neighbouring blocks in lockstep, each holding its face of C. One SM of each row of the
cluster reads the values of A for the step and copies them to the others of its row, one SM of each column does the
same for B. Then L2 sees A ceil(g_n / c_n) and B ceil(g_m / c_m) times, and the rest of what enters SMs is copied:
m k (g_n - ceil(g_n / c_n)) + k n (g_m - ceil(g_m / c_m)). With multicast the copies cost nothing and the L2 reads are
the same. A cluster of 1 x 1 is the plain grid.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from operator import neg
from typing import Any

import numpy as np
import numpy.typing as npt

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.blocked import block_sizes, largest_partner
from pebble.schedules.explicit.gemm import AXES
from pebble.units import ceil_div
from pebble.workloads import Gemm


class OnSms:
    """The price of a schedule that knows what it moves between SMs and L2, and from SM to SM, one hop each."""

    @property
    def hop_bytes(self: Any) -> int:
        """Bytes copied between SMs, times the hops they take."""
        return int(self.remote_bytes)

    def cost_elements(self: Any, omega: Fraction) -> Fraction:
        """Loads + stores + omega * copies, in values."""
        return Fraction(self.l2_elements + omega * self.remote_elements)

    def cost_bytes(self: Any, omega: Fraction) -> Fraction:
        """The same in bytes."""
        return Fraction(self.l2_read_bytes + self.l2_write_bytes + omega * self.remote_bytes)


@dataclass(frozen=True)
class ParallelSchedule(OnSms):
    """A legal schedule on P SMs of S values each, and its exact traffic.

    Attributes
    ----------
    grid : tuple of three int
        Blocks along m, n, k.
    face : str
        The operand whose face of a block stays in the SM: ``"C"``, ``"A"`` or ``"B"``.
    cluster : tuple of two int
        SMs along m and n that share reads; other than (1, 1) only for face C.
    group : int
        SMs that can reach each other, consecutive ones; 0 for all. A cluster lies in one group.
    atomic : bool
        Whether partial sums are added to C in slow memory, a store each, where they would be loaded, added and stored.
    """

    gemm: Gemm
    sms: int
    capacity: int
    grid: tuple[int, int, int]
    face: str = "C"
    cluster: tuple[int, int] = (1, 1)
    group: int = 0
    atomic: bool = False

    @property
    def block(self) -> tuple[int, int, int]:
        """Largest extents of a block."""
        g = self.gemm
        return (ceil_div(g.m, self.grid[0]), ceil_div(g.n, self.grid[1]), ceil_div(g.k, self.grid[2]))

    @property
    def peak_elements(self) -> int:
        """Most values that an SM holds."""
        return held(self.face, self.block)

    @property
    def clusters(self) -> int:
        """Clusters that run at once."""
        size, group = self.cluster[0] * self.cluster[1], self.group or self.sms
        return self.sms // group * (group // size) + self.sms % group // size

    @property
    def rounds(self) -> int:
        """Blocks that the busiest SM does."""
        (g_m, g_n, g_k), (c_m, c_n) = self.grid, self.cluster
        return ceil_div(ceil_div(g_m, c_m) * ceil_div(g_n, c_n) * g_k, self.clusters)

    @property
    def busiest_multiply_adds(self) -> int:
        """At most this many are done by one SM."""
        b = self.block
        return self.rounds * b[0] * b[1] * b[2]

    @property
    def imbalance(self) -> float:
        """Work of the busiest SM over the mean, minus 1."""
        return self.busiest_multiply_adds * self.sms / self.gemm.multiply_adds - 1

    @property
    def loads(self) -> dict[str, int]:
        """Values read from L2, by operand."""
        g, (g_m, g_n, g_k), (c_m, c_n) = self.gemm, self.grid, self.cluster
        visits = 0 if self.atomic else g_k - (0 if g.accumulate else 1)
        return {
            "A": g.m * g.k * ceil_div(g_n, c_n),
            "B": g.k * g.n * ceil_div(g_m, c_m),
            "C": g.m * g.n * visits,
        }

    @property
    def stores(self) -> int:
        """Values of C written to L2."""
        return self.gemm.m * self.gemm.n * self.grid[2]

    @property
    def copies(self) -> dict[str, int]:
        """Values copied between SMs of a cluster, by operand."""
        g, (g_m, g_n, _), (c_m, c_n) = self.gemm, self.grid, self.cluster
        return {"A": g.m * g.k * (g_n - ceil_div(g_n, c_n)), "B": g.k * g.n * (g_m - ceil_div(g_m, c_m))}

    @property
    def l2_elements(self) -> int:
        """Loads plus stores."""
        return sum(self.loads.values()) + self.stores

    @property
    def remote_elements(self) -> int:
        """Copies, one hop each."""
        return sum(self.copies.values())

    @property
    def l2_read_bytes(self) -> int:
        """Bytes read from L2, each operand at its own width."""
        loads = self.loads
        return (loads["A"] + loads["B"]) * self.gemm.in_bytes + loads["C"] * self.gemm.out_bytes

    @property
    def l2_write_bytes(self) -> int:
        """Bytes written to L2."""
        return self.stores * self.gemm.out_bytes

    @property
    def remote_bytes(self) -> int:
        """Bytes copied between SMs."""
        return self.remote_elements * self.gemm.in_bytes

    @property
    def name(self) -> str:
        """For tables."""
        blocks = "x".join(map(str, self.block))
        shared = "" if self.cluster == (1, 1) else f", clusters of {self.cluster[0]}x{self.cluster[1]}"
        adds = ", atomic adds" if self.atomic else ""
        return f"grid {'x'.join(map(str, self.grid))} of blocks {blocks}, {self.face} held{shared}{adds}"

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {
            "grid": list(self.grid),
            "block": list(self.block),
            "held_operand": self.face,
            "cluster": list(self.cluster),
            "atomic_adds": self.atomic,
            "rounds": self.rounds,
            "imbalance": self.imbalance,
            "peak_elements_per_sm": self.peak_elements,
            "l2_loads_elements": self.loads,
            "l2_stores_elements": self.stores,
            "sm_to_sm_elements": self.copies,
        }


def held(face: str, block: tuple[int, int, int]) -> int:
    """Values that an SM needs for a block: the face, a vector along its shorter side, one more."""
    m, n, k = block
    p, q = {"C": (m, n), "A": (m, k), "B": (k, n)}[face]
    return p * q + min(p, q) + 1


FloatArray = npt.NDArray[np.float64]
_FACES = ("C", "A", "B")
_MOST_FIRST = 2048  # more than any extent up to 2^20 has
_MOST_CUTS = 24  # more only move more


def _grids(gemm: Gemm, sms: int, capacity: int, face: str) -> Iterator[tuple[int, int, int]]:
    """Grids whose face fits: for each first count, second counts from the least that fits on; the third as needed."""
    size = {"m": gemm.m, "n": gemm.n, "k": gemm.k}
    first, second, streamed = AXES[face]
    widths = list(block_sizes(size[second], capacity))
    for p in block_sizes(size[first], capacity, _MOST_FIRST):
        widest = bisect_left(widths, -largest_partner(capacity, p), key=neg)
        if widest == len(widths) and p == 1:
            return
        count = ceil_div(size[first], p)
        for q in widths[widest : widest + _MOST_CUTS]:
            other = ceil_div(size[second], q)
            pieces = count * other
            # cuts of the streamed dimension serve the balance alone
            for third in {1, *(ceil_div(r * sms, pieces) for r in (1, 2, 3, 4)), max(1, sms // pieces)}:
                if third <= size[streamed]:
                    counts = {first: count, second: other, streamed: third}
                    yield counts["m"], counts["n"], counts["k"]


def cluster_shapes(size: int) -> tuple[tuple[int, int], ...]:
    """All c_m x c_n with at most ``size`` SMs, 1 x 1 first."""
    return tuple((a, b) for a in range(1, size + 1) for b in range(1, size // a + 1))


def _cheapest(
    gemm: Gemm,
    sms: int,
    capacity: int,
    grids: FloatArray,
    face: str,
    cluster: tuple[int, int],
    group: int,
    omega: float,
    tolerance: float,
    atomic: bool,
) -> ParallelSchedule | None:
    """The best of many grids for one cluster shape, all at once; the formulas of `ParallelSchedule`.

    With an infinite tolerance that is the best balanced one, else the cheapest.
    """
    if not len(grids):
        return None
    g_m, g_n, g_k = grids.T
    c_m, c_n = cluster
    m, n, k = gemm.m, gemm.n, gemm.k
    down, across = np.ceil(g_m / c_m), np.ceil(g_n / c_n)
    clusters = ParallelSchedule(gemm, sms, capacity, (1, 1, 1), face, cluster, group).clusters
    rounds = np.ceil(down * across * g_k / clusters)
    busiest = rounds * np.ceil(m / g_m) * np.ceil(n / g_n) * np.ceil(k / g_k)
    visits = g_k if atomic else 2 * g_k - (0 if gemm.accumulate else 1)
    shared = omega * (m * k * (g_n - across) + k * n * (g_m - down))
    cost = (m * k * across + k * n * down + shared) * gemm.in_bytes + m * n * visits * gemm.out_bytes
    cost[busiest * sms > (1 + tolerance) * gemm.multiply_adds] = np.inf
    best = int(np.lexsort((cost, busiest) if np.isinf(tolerance) else (busiest, cost))[0])
    if np.isinf(cost[best]):
        return None
    grid = (int(g_m[best]), int(g_n[best]), int(g_k[best]))
    return ParallelSchedule(gemm, sms, capacity, grid, face, cluster, group, atomic)


def best_parallel_schedule(
    gemm: Gemm,
    sms: int,
    capacity: int,
    omega: Fraction = Fraction(0),
    largest_cluster: int = 1,
    tolerance: float = 0.05,
    multicast: bool = False,
    atomic: bool = False,
) -> ParallelSchedule:
    """The schedule on P SMs of S values with the least loads + stores + omega * copies, in bytes.

    Parameters
    ----------
    largest_cluster : int
        SMs that can share reads.
    tolerance : float
        Imbalance to allow; when nothing fits it, the best balanced of all.
    multicast : bool
        Copies are free: one read feeds the cluster.
    atomic : bool
        Partial sums are added to C in slow memory, a store each.

    Raises
    ------
    InfeasibleError
        Capacity below 3.
    """
    if capacity < 3:
        raise InfeasibleError(f"capacity: got {capacity} elements per SM, expected at least 3: no schedule exists.")
    per_copy = Fraction(0) if multicast else omega
    group = min(largest_cluster, sms)
    grids = {face: np.array(sorted(set(_grids(gemm, sms, capacity, face))), dtype=np.float64) for face in _FACES}

    def tried(shapes: tuple[tuple[int, int], ...], tolerance: float) -> list[ParallelSchedule]:
        kinds = [(shape, face) for shape in shapes for face in (_FACES if shape == (1, 1) else ("C",))]
        results = [
            _cheapest(gemm, sms, capacity, grids[face], face, shape, group, float(per_copy), tolerance, atomic)
            for shape, face in kinds
        ]
        return [s for s in results if s is not None]

    if balanced := tried(cluster_shapes(group), tolerance):
        return min(balanced, key=lambda s: (s.cost_bytes(per_copy), s.imbalance, s.name))
    return min(tried(((1, 1),), np.inf), key=lambda s: (s.imbalance, s.cost_bytes(per_copy), s.name))

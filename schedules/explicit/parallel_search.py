"""The grid of blocks and the cluster shape that move least, for a shape, P and S."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from operator import neg

import numpy as np
import numpy.typing as npt

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.blocks import block_sizes, largest_partner
from pebble.schedules.explicit.gemm import AXES
from pebble.schedules.explicit.parallel import ParallelSchedule
from pebble.units import ceil_div
from pebble.workloads import Gemm

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
    price = Fraction(0) if multicast else omega
    group = min(largest_cluster, sms)
    grids = {face: np.array(sorted(set(_grids(gemm, sms, capacity, face))), dtype=np.float64) for face in _FACES}

    def tried(shapes: tuple[tuple[int, int], ...], tolerance: float) -> list[ParallelSchedule]:
        kinds = [(shape, face) for shape in shapes for face in (_FACES if shape == (1, 1) else ("C",))]
        results = [
            _cheapest(gemm, sms, capacity, grids[face], face, shape, group, float(price), tolerance, atomic)
            for shape, face in kinds
        ]
        return [s for s in results if s is not None]

    if balanced := tried(cluster_shapes(group), tolerance):
        return min(balanced, key=lambda s: (s.cost_bytes(price), s.imbalance, s.name))
    return min(tried(((1, 1),), np.inf), key=lambda s: (s.imbalance, s.cost_bytes(price), s.name))

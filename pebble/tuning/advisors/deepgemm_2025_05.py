"""DeepGEMM's rule of May 2025: fewest waves, then the fullest last wave.

``deep_gemm/jit_kernels/gemm.py`` between a5645d7 and the first C++ version, for fp8 with scales of 1x128 and 128x128
and a bf16 result.

- BM of 64, 128, 256; BN of 16 to 128 by 8, and 144, 160; not both above 128. Experts of a group have BM 128.
- Fewer waves win; then a fuller last wave; of equal ones, with the same BM the smaller BN, with the same BN the smaller
  BM, else the larger BN. Candidates are met in the order of BM, then BN, and these last rules compare neighbours only,
  so what wins depends on that order. It is kept.
- BK is 128. Stages: the most of 8 to 1, no more than k / 128, that fit 232,448 bytes with
  2 BM BN + S (128 BM + 4 BM + 128 BN + 16) + ceil(k / 128) 4 {1, 2}, the last 2 where BN does not divide 128; of 4 to 1
  where BN does not divide 128 and 128 / gcd(128, BN) is at most 4: 96 and 160.
- Multicast to two blocks for m of 512 or more (the source says ``m >= 512``, where notes on it say more than 512) and
  an even number of SMs: of the operand on the longer side of the tile, A if BM > BN, else B. In this version it is
  always legal for a plain product.
- The fewest SMs that need no more waves, even with multicast: "less L2 usage".
- Groups of 16: of tile columns where A is multicast and where nothing is, of tile rows where B is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from pebble.models.kernel_fit import KernelNeeds
from pebble.models.machine import Machine
from pebble.schedules.orders.order import Multicast
from pebble.schedules.tile import TileShape
from pebble.tuning.advisors.advisor import Advice, Advisor, in_groups
from pebble.tuning.advisors.deepgemm_common import SHARED_BYTES, DeepGemmProblem, does_not_fit, problem_of, warpgroups
from pebble.units import ceil_div
from pebble.workloads.workload import Workload

BLOCK_M = (64, 128, 256)
BLOCK_N = (*range(16, 129, 8), 144, 160)
BLOCK_K = 128
GROUP = 16
_MULTICAST_ROWS = 512


class DeepGemm2025(Advisor):
    """``deepgemm-2025-05``."""

    name = "deepgemm-2025-05"
    what = "fewest waves, then the fullest last wave"
    source = "DeepGEMM deep_gemm/jit_kernels/gemm.py, May 2025 (a5645d7 and later)"
    measure = "waves + idle"

    def advise(self, workload: Workload, machine: Machine, sms: int) -> list[Advice]:
        """The rule's choice first, then other tiles by waves and last wave."""
        problem = problem_of(self.name, workload, machine, sms, ("fp8",))
        best = best_tile(problem)
        if not most_stages(problem.k, *best):
            raise does_not_fit(self.name, problem)
        others = sorted(
            (tile for tile in _candidates(problem) if tile != best and most_stages(problem.k, *tile)),
            key=lambda tile: (_waves(problem, *tile), -_last_wave(problem, *tile)),
        )
        return [_advice(problem, *tile) for tile in (best, *others)]


def best_tile(problem: DeepGemmProblem) -> tuple[int, int]:
    """BM and BN by the rule."""
    best: tuple[int, int] | None = None
    for bm, bn in _candidates(problem):
        if best is None or _better(problem, bm, bn, *best):
            best = bm, bn
    assert best is not None
    return best


def _candidates(problem: DeepGemmProblem) -> Iterator[tuple[int, int]]:
    for bm in (128,) if problem.grouped else BLOCK_M:
        for bn in BLOCK_N:
            if bm <= 128 or bn <= 128:
                yield bm, bn


def _waves(problem: DeepGemmProblem, bm: int, bn: int) -> int:
    return ceil_div(problem.blocks(bm, bn), problem.sms)


def _last_wave(problem: DeepGemmProblem, bm: int, bn: int) -> int:
    return problem.blocks(bm, bn) % problem.sms or problem.sms


def _better(problem: DeepGemmProblem, bm: int, bn: int, best_m: int, best_n: int) -> bool:
    waves, least = _waves(problem, bm, bn), _waves(problem, best_m, best_n)
    if waves != least:
        return waves < least
    last, most = _last_wave(problem, bm, bn), _last_wave(problem, best_m, best_n)
    if last != most:
        return last > most
    return (bm == best_m and bn < best_n) or (bn == best_n and bm < best_m) or (bm != best_m and bn > best_n)


def shared_bytes(k: int, bm: int, bn: int, stages: int) -> int:
    """Shared memory of a block: output tile, stages with scales of A and barriers, scales of B."""
    return 2 * bm * bn + stages * (BLOCK_K * bm + 4 * bm + BLOCK_K * bn + 16) + scales_of_b(k, bn)


def scales_of_b(k: int, bn: int) -> int:
    """Bytes of the scales of B, of two rows of blocks where a tile lies across them."""
    return ceil_div(ceil_div(k, BLOCK_K) * 4 * (1 if BLOCK_K % bn == 0 else 2), 8) * 8


def most_stages(k: int, bm: int, bn: int) -> int:
    """Stages by the rule; 0 where not even one fits."""
    unrolled = BLOCK_K % bn != 0 and BLOCK_K // math.gcd(BLOCK_K, bn) <= 4
    most = min(4 if unrolled else 8, max(k // BLOCK_K, 1))
    return next((s for s in range(most, 0, -1) if shared_bytes(k, bm, bn, s) <= SHARED_BYTES), 0)


def _multicast(problem: DeepGemmProblem, bm: int, bn: int) -> Multicast:
    if problem.m < _MULTICAST_ROWS or problem.sms % 2:
        return "none"
    return "a" if bm > bn else "b"


def _advice(problem: DeepGemmProblem, bm: int, bn: int) -> Advice:
    k = problem.k
    stages, multicast = most_stages(k, bm, bn), _multicast(problem, bm, bn)
    waves = _waves(problem, bm, bn)
    least = ceil_div(problem.blocks(bm, bn), waves)
    sms = ceil_div(least, 2) * 2 if multicast != "none" else least
    maths = warpgroups(bm)
    tiles = stages * BLOCK_K * (bm + bn)
    more = 4 * bm + 16
    needs = KernelNeeds(
        max(64, bm) * bn, 0, BLOCK_K * (bm + bn), stages, 1, more,
        shared_bytes(k, bm, bn, stages) - tiles - stages * more, maths,
    )  # fmt: skip
    order = in_groups(GROUP, "m" if multicast == "b" else "n", multicast)
    score = waves + 1 - _last_wave(problem, bm, bn) / problem.sms
    return Advice(
        TileShape(bm, bn, BLOCK_K), stages, 128 + maths, sms, 1, needs, order, multicast, score, DeepGemm2025.name,
        stages * 4 * bm + scales_of_b(k, bn), stages * 16,
    )  # fmt: skip

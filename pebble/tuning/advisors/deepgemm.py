"""DeepGEMM's current rule: least cycles of shared memory and L2.

``csrc/jit_kernels/heuristics/sm90.hpp`` and ``common.hpp`` since 7f2a703 (April 2026), for fp8 with scales of 1x128 and
128x128 (the kernel that it calls 1D2D, bf16 results) and for bf16 (bf16 or fp32 results).

- BM of 64, 128; 16 if m <= 16, 32 if m <= 32; 256 for bf16 results; in this order. Experts of a group have BM 128.
- BN of 16 to 192 by 16 for fp8, to 256 for bf16; not both above 128; for fp8 above 128 only where BN or 128 is a
  multiple of BN - 128: 144, 160, 192.
- BK is 128 bytes. Stages: the most up to 16 that fit 232,448 bytes with the output tile (in whole KiB), 256 bytes of
  barriers and for fp8 scales; at least 3, and 4 where BM BN < 128 * 192.
- No cluster, two along n (they share A), two along m (they share B), in this order; clusters only of an even number of
  SMs and with two waves or more: with one their cycles count as infinite.
- Cycles: the larger of L1 and L2 cycles, over the share of the slots of all waves that are filled. A block moves
  K (BM ea / cluster_n + BN eb / cluster_m) + BM BN ec through L2 at min(64 SMs, 8e6 / 1.3e3) bytes per clock, and
  K (BM + BN) e + K (max(64, BM) + BN) e + 2 BM BN ec through L1 at 128 SMs; C counts once more where it is added to.
  Whole numbers are cut off as in C++ (6,153 of 6,153.8 B/clk), and the last division is in 32-bit floats.
- The least wins; of equal ones the first that was met, as only fewer cycles replace it: there is no other tie rule.
- Group size: the c of 8 and 16 that makes c BM + ceil(SMs / c) BN least, 8 of equal; BM and BN change places where A is
  multicast. SMs are all that there are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pebble.models.kernel_fit import KernelNeeds
from pebble.models.machine import Machine
from pebble.schedules.orders import OrderParams
from pebble.schedules.orders.libraries import deepgemm_group
from pebble.schedules.orders.order import Multicast
from pebble.schedules.tile import TileShape
from pebble.tuning.advisors.advisor import Advice, Advisor, in_groups
from pebble.tuning.advisors.deepgemm_common import SHARED_BYTES, DeepGemmProblem, does_not_fit, problem_of, warpgroups
from pebble.units import ceil_div
from pebble.workloads.workload import Workload, element_bytes

_MOST_STAGES = 16
_BARRIER_BYTES = _MOST_STAGES * 8 * 2
_CLUSTERS: tuple[tuple[int, int, Multicast], ...] = ((1, 1, "none"), (1, 2, "a"), (2, 1, "b"))  # along m, along n
_NEVER = 2**63 - 1

Layout = tuple[int, int, int]
"""Index into `_CLUSTERS`, BM, BN."""


class DeepGemm(Advisor):
    """``deepgemm``."""

    name = "deepgemm"
    what = "least cycles of shared memory and L2"
    source = "DeepGEMM csrc/jit_kernels/heuristics/sm90.hpp, since 7f2a703"
    measure = "cycles"

    def advise(self, workload: Workload, machine: Machine, sms: int) -> list[Advice]:
        """The rule's choice first, then the others by cycles; not those that the rule forbids."""
        problem = problem_of(self.name, workload, machine, sms, ("fp8", "bf16"))
        scored = [(cycles(problem, layout), layout) for layout in layouts(problem)]
        ranked = sorted((pair for pair in scored if pair[0] < _NEVER), key=lambda pair: pair[0])  # stable: first met
        if not ranked:
            raise does_not_fit(self.name, problem)
        return [_advice(problem, layout, score) for score, layout in ranked]


def layouts(problem: DeepGemmProblem) -> Iterator[Layout]:
    """What the rule looks at, in its order."""
    rows = [128] if problem.grouped else [64, 128]
    if not problem.grouped:
        rows += [16] * (problem.m <= 16) + [32] * (problem.m <= 32) + [256] * (problem.out_dtype != "fp32")
    columns = range(16, (192 if problem.dtype == "fp8" else 256) + 1, 16)
    for cluster, (along_m, along_n, _) in enumerate(_CLUSTERS):
        if problem.sms % (along_m * along_n):
            continue
        for bm in rows:
            for bn in columns:
                over = bn - 128
                if problem.dtype == "fp8" and over > 0 and bn % over and 128 % over:
                    continue
                if bm > 128 and bn > 128:
                    continue
                stages = most_stages(problem, bm, bn)
                if stages >= (3 if bm * bn >= 128 * 192 else 4):
                    yield cluster, bm, bn


def block_bytes(problem: DeepGemmProblem, bm: int, bn: int) -> tuple[int, int]:
    """Shared memory of a block: what is there once, and that of each stage."""
    size, out = element_bytes(problem.dtype), element_bytes(problem.out_dtype)
    once = ceil_div(bm * bn * out, 1024) * 1024 + _BARRIER_BYTES
    stage = 128 * (bm + bn)  # BK is 128 bytes
    if size == 1:
        once += ceil_div(ceil_div(problem.k, 128) * 4 * (1 if 128 % bn == 0 else 2), 8) * 8
        stage += ceil_div(bm * 4, 128) * 128
    return once, stage


def most_stages(problem: DeepGemmProblem, bm: int, bn: int) -> int:
    """Stages by the rule; none or fewer where not even one fits."""
    once, stage = block_bytes(problem, bm, bn)
    return min(_MOST_STAGES, (SHARED_BYTES - once) // stage)


def cycles(problem: DeepGemmProblem, layout: Layout) -> int:
    """By the rule."""
    cluster, bm, bn = layout
    along_m, along_n, _ = _CLUSTERS[cluster]
    size, out = element_bytes(problem.dtype), element_bytes(problem.out_dtype)
    blocks = problem.blocks(bm, bn)
    waves = ceil_div(blocks, problem.sms)
    if along_m * along_n > 1 and waves <= 1:
        return _NEVER
    tile = bm * bn * out
    result = tile * (2 if problem.accumulate else 1)
    l2 = problem.k * (bm // along_n + bn // along_m) * size + result
    l1 = problem.k * (bm + bn) * size + problem.k * (max(64, bm) + bn) * size + tile + result
    l2_rate, l1_rate = int(min(64.0 * problem.sms, 8e6 / 1.3e3)), 128 * problem.sms
    most = max(l1 * blocks // l1_rate, l2 * blocks // l2_rate)
    efficiency = np.float32(blocks) / np.float32(waves * problem.sms)
    return int(np.float32(most) / efficiency)


def _advice(problem: DeepGemmProblem, layout: Layout, score: int) -> Advice:
    cluster, bm, bn = layout
    multicast = _CLUSTERS[cluster][2]
    size = element_bytes(problem.dtype)
    stages, (once, stage) = most_stages(problem, bm, bn), block_bytes(problem, bm, bn)
    maths, values = warpgroups(bm), 128 // size * (bm + bn)
    needs = KernelNeeds(max(64, bm) * bn, 0, values, stages, size, stage - values * size, once, maths)
    group = deepgemm_group(OrderParams(sms=problem.sms, tile_m=bm, tile_n=bn, multicast=multicast))
    order = in_groups(group, "n" if multicast == "a" else "m", multicast)
    scales = once - ceil_div(bm * bn * element_bytes(problem.out_dtype), 1024) * 1024 - _BARRIER_BYTES
    scales += stages * (stage - values * size)
    tile = TileShape(bm, bn, 128 // size)
    return Advice(
        tile, stages, 128 + maths, problem.sms, 1, needs, order, multicast, float(score), DeepGemm.name, scales,
        _BARRIER_BYTES,
    )  # fmt: skip

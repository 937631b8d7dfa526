r"""Lower bounds on traffic into SMs: sm-local, pooled and connected buffers, for GEMM, FFN and attention.

P SMs hold S values each; L loads and W stores cross the boundary to slow memory (L2), R values are copied between SMs,
a copy costs omega times its hops.

- **sm-local**: R = 0, so L + W >= B_sum, the least over splits of `pebble.bounds.splits`, and L + W >= B_pool.
- **pooled**: one memory of P S, the bounds of one memory: B_pool.
- **connected**: without copies and second pebbles, a game of P memories is a legal game of one memory of P S with the
  same loads and stores at most: L + W >= B_pool. And L + W + R >= B_sum. With T = L + W + omega * hops and
  hops >= R:  T >= (1 - omega) B_pool + omega B_sum, linear in omega. Groups of g SMs taken as one memory each give a
  third inequality, L + W + (copies between groups) >= B_g; in the all-to-all net, averaged over all groupings,
  L + W + R (P - g) / (P - 1) >= B_g. Since B_g falls like 1 / sqrt g, these lie below the line between the other two:
  the line is the envelope of all we can prove there.
- **clusters** of c SMs: no copy leaves a cluster, so B_pool becomes the sm-local bound for ceil(P / c) memories of c S.
- **two partitions** (1 hop inside, 2 across; R = inside + across): with B_half for two memories of P S / 2,
  T >= (1 - 2 omega) B_pool + omega B_half + omega B_sum for omega <= 1/2, and
  T >= (1 - omega) B_half + omega B_sum for omega >= 1/2.
- **ring, mesh**: hops are at least 1, so the line for all-to-all holds; the longer ways are not used.
- **multicast**: one read of slow memory may feed up to c SMs of a cluster. The values that enter SMs are still bounded
  by B_sum; the reads are fewer. With M reads: M + W >= the sm-local bound for ceil(P / c) memories of c S (a cluster
  as one memory takes a multicast as one load), and c M + W >= B_sum with W >= the outputs, so
  M + W >= (B_sum + (c - 1) outputs) / c.

A balanced version of each assumes that no SM does more than c multiply-adds (groups of g SMs: g c).

The bounds need no assumption on replacement, and for GEMM none on recomputation. For FFN and attention values are
computed once. In bytes every transfer costs the narrowest width, and what surely crosses to slow memory its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from pebble.bounds.attention import attention_lower_bound
from pebble.bounds.base import LowerBound
from pebble.bounds.ffn import ffn_lower_bound
from pebble.bounds.gemm import gemm_lower_bound
from pebble.bounds.splits import busiest_sm, least_over_splits
from pebble.errors import InfeasibleError, InputError
from pebble.game.memories import BufferModel
from pebble.workloads import Attention, Conv2d, Ffn, Gemm

METHOD_SUM = "segment accounting per SM, any split of the work"
METHOD_SHARE = "segment accounting per SM, balanced"
METHOD_POOLED = "one memory of all SMs"
METHOD_LINE = "(1 - omega) pooled + omega per SM"


@dataclass(frozen=True)
class _Box:
    """Products in a box whose projections are the values, and what (5) leaves to subtract or add."""

    rows: int
    cols: int
    depth: int
    work: int
    begun: int  # cells begun and not stored
    extra: int = 0
    groups: int = 1
    all_products: bool = True  # a limit on products per SM is one on these


def _boxes(workload: Gemm | Ffn | Attention) -> list[_Box]:
    if isinstance(workload, Gemm):
        m, n, k = workload.m, workload.n, workload.k
        return [_Box(m, n, k, m * n * k, 0, m * n if workload.accumulate else 0)]
    if isinstance(workload, Ffn):
        m, k, f, l = workload.tokens, workload.d_model, workload.hidden, workload.d_out
        plain = _Box(m, f, k + l, m * f * (k + l), m * f)
        if not workload.gated:
            return [plain]
        projected = _Box(m, f, k + l, m * f * (k + l), m * f, k * f, all_products=False)
        return [_Box(m, 2 * f, k + l, m * f * (2 * k + l), 2 * m * f), projected]
    depth = workload.head_dim + workload.value_dim
    pairs = workload.group * workload.pairs_per_head
    return [_Box(workload.stacked_queries, workload.keys, depth, pairs * depth, pairs, 0, workload.groups)]


def multiply_adds(workload: Gemm | Ffn | Attention) -> int:
    """Products that the SMs share."""
    return workload.multiply_adds


def _one_memory(workload: Gemm | Ffn | Attention, capacity: int, recompute: bool) -> LowerBound:
    if isinstance(workload, Gemm):
        return gemm_lower_bound(workload, capacity)
    if isinstance(workload, Ffn):
        return ffn_lower_bound(workload, capacity, recompute)
    return attention_lower_bound(workload, capacity, recompute)


def _sum(workload: Gemm | Ffn | Attention, capacity: int, sms: int, most: int | None) -> int:
    """B_sum: loads + stores + copies of ``sms`` memories; at least compulsory."""
    best = workload.compulsory_elements
    for box in _boxes(workload):
        share = most if box.all_products else None
        work = box.groups * box.work
        touched = least_over_splits(box.rows, box.cols, box.depth, work, capacity, sms, share, box.work)
        best = max(best, touched - box.groups * box.begun + box.extra)
    return best


def check_workload(workload: object, recompute: bool) -> Gemm | Ffn | Attention:
    """The workload, if these bounds cover it.

    Raises
    ------
    InputError
        Convolution, or recomputation of a chain.
    """
    if isinstance(workload, Conv2d) or not isinstance(workload, Gemm | Ffn | Attention):
        raise InputError(
            "buffers: got conv2d, expected gemm, ffn or attention: only these are bounded for several SMs."
        )
    if recompute and not isinstance(workload, Gemm):
        raise InputError(
            f"--recompute allowed: with several memories {workload.family} is bounded without recomputation only; "
            "leave it out, or use --buffers single or pooled."
        )
    return workload


def buffer_lower_bound(
    workload: Gemm | Ffn | Attention,
    capacity: int,
    buffers: BufferModel,
    most: int | None = None,
    recompute: bool = False,
) -> LowerBound:
    """The best proven lower bound on loads + stores + omega * hops under a buffer model.

    Parameters
    ----------
    workload : Gemm, Ffn or Attention
    capacity : int
        S, values (of the narrowest width) that one SM holds.
    buffers : BufferModel
    most : int, optional
        Multiply-adds of the busiest SM, at least 1 / P of all; None allows any split.
    recompute : bool
        For one memory only, but for GEMM, whose bound holds anyway.

    Returns
    -------
    LowerBound
        ``elements`` rounded down where omega makes the cost a fraction.

    Raises
    ------
    InfeasibleError
        Capacity below 3.
    InputError
        A workload without such a bound, or a share that is too small.

    Examples
    --------
    >>> from pebble.game.memories import BufferModel
    >>> gemm = Gemm(8192, 8192, 8192)
    >>> buffer_lower_bound(gemm, 229376, BufferModel("sm-local", 108)).elements
    2295985962
    >>> buffer_lower_bound(gemm, 229376, BufferModel("pooled", 108)).elements
    245268220
    """
    if capacity < 3:
        raise InfeasibleError(f"capacity: got {capacity} elements per SM, expected at least 3: no schedule exists.")
    sms, net, omega = buffers.sms, buffers.net, buffers.omega
    if buffers.memories == 1:
        return _one_memory(workload, buffers.memory_size(capacity), recompute)
    check_workload(workload, recompute)
    if most is not None and most * sms < workload.multiply_adds:
        raise InputError(f"share: got {most} multiply-adds per SM, expected at least 1 / {sms} of all.")
    pooled = _one_memory(workload, sms * capacity, False).elements
    everything = max(pooled, _sum(workload, capacity, sms, most))
    certificate: dict[str, object] = {
        "capacity_elements_per_sm": capacity,
        "sms": sms,
        "most_multiply_adds_per_sm": most,
        "pooled_elements": pooled,
        "per_sm_sum_elements": everything,
    }
    if buffers.kind == "sm-local":
        value = Fraction(everything)
        method = METHOD_POOLED if everything == pooled else METHOD_SUM if most is None else METHOD_SHARE
    else:
        slow = _grouped(workload, capacity, sms, net.group, most, pooled)
        value = (1 - omega) * slow + omega * everything
        if net.name == "partitions-2":
            half = _grouped(workload, capacity, sms, sms // 2, most, pooled)
            if 2 * omega <= 1:
                value = (1 - 2 * omega) * slow + omega * half + omega * everything
            else:
                value = (1 - omega) * half + omega * everything
            certificate["half_elements"] = half
        method = METHOD_LINE
        certificate |= {"omega": [omega.numerator, omega.denominator], "topology": net.name, "slow_elements": slow}
    narrow = workload.narrowest_bytes
    surcharge = workload.compulsory_bytes - narrow * workload.compulsory_elements
    return LowerBound(floor(value), floor(narrow * value) + surcharge, method, {"theorem": method, **certificate})


def _grouped(
    workload: Gemm | Ffn | Attention, capacity: int, sms: int, group: int, most: int | None, pooled: int
) -> int:
    """B for groups of SMs as one memory each."""
    if group >= sms:
        return pooled
    share = None if most is None else min(workload.multiply_adds, group * most)
    return max(pooled, _sum(workload, group * capacity, -(-sms // group), share))


def multicast_bound(
    workload: Gemm | Ffn | Attention, capacity: int, sms: int, multicast: int, most: int | None = None
) -> LowerBound:
    """Reads of slow memory, each of which may feed ``multicast`` SMs of a cluster, plus stores, for sm-local buffers.

    Parameters and errors as for `buffer_lower_bound`; ``multicast`` 1 is sm-local.
    """
    local = buffer_lower_bound(workload, capacity, BufferModel("sm-local", sms), most)
    pooled = _one_memory(workload, sms * capacity, False).elements
    outputs = sum(o.elements for o in workload.operands if o.written)
    spread = Fraction(local.elements + (multicast - 1) * outputs, multicast)
    value = max(_grouped(workload, capacity, sms, multicast, most, pooled) if multicast > 1 else 0, ceil(spread))
    narrow = workload.narrowest_bytes
    surcharge = workload.compulsory_bytes - narrow * workload.compulsory_elements
    certificate = {"multicast": multicast, "sms": sms, "capacity_elements_per_sm": capacity}
    return LowerBound(value, narrow * value + surcharge, "reads with multicast, plus stores", certificate)


def busiest_sm_elements(gemm: Gemm, capacity: int, sms: int) -> int:
    """Words in and out of the SM that does the most of a GEMM, under any split."""
    return busiest_sm(gemm.m, gemm.n, gemm.k, gemm.multiply_adds, capacity, sms)


def balanced_share(workload: Gemm | Ffn | Attention, sms: int, tolerance: Fraction = Fraction(0)) -> int:
    """Multiply-adds of the busiest of P SMs when none does more than (1 + tolerance) / P of all, rounded up."""
    return ceil(Fraction(workload.multiply_adds, sms) * (1 + tolerance))

"""Explicit schedules of a feed-forward network: fused in bands, and as separate kernels, with ragged blocks."""

from __future__ import annotations

from functools import lru_cache
from math import inf, sqrt

from pebble.schedules.explicit.apart import GemmSchedule
from pebble.schedules.explicit.chain import SIDES, Chain, ChainPlan
from pebble.schedules.explicit.chain_apart import PanelsApart, best_panels_apart
from pebble.schedules.explicit.chain_search import best_chain_plan
from pebble.schedules.explicit.fused import APART, FUSED_FAMILIES, FusedSchedule, Kernel, family_of_plan
from pebble.schedules.explicit.gemm_search import best_gemm_schedule
from pebble.schedules.explicit.phases import Phases
from pebble.workloads import Ffn, Gemm


def ffn_chain(ffn: Ffn) -> Chain:
    """The FFN as two products in a row."""
    return Chain(ffn.tokens, ffn.d_model, ffn.hidden, ffn.d_out, streams=ffn.up_products)


def _weights(ffn: Ffn) -> str:
    """The name under which the hidden weights are counted."""
    return "Wg+Wu" if ffn.gated else "W1"


def fused_ffn(ffn: Ffn, family: str, plan: ChainPlan | PanelsApart | Phases) -> FusedSchedule:
    """What a plan of the two products moves of each operand of the FFN."""
    loads = {"X": plan.loads["A"], _weights(ffn): plan.loads["B"], "W2": plan.loads["D"], "Y": plan.loads["Y"]}
    stores = {"Y": plan.stores["Y"]}
    if plan.stores["H"]:
        loads["H"], stores["H"] = plan.loads["H"], plan.stores["H"]
    return FusedSchedule(family, plan.describe(), ffn, loads, stores, plan.peak_elements, plan.capacity, plan)


def _unfused(ffn: Ffn, capacity: int) -> FusedSchedule:
    """H stored by one kernel and loaded by the next, each kernel at its best."""
    m, k, f, l = ffn.tokens, ffn.d_model, ffn.hidden, ffn.d_out
    second = best_gemm_schedule(Gemm(m, l, f, ffn.dtype, ffn.out_dtype), capacity)
    up = best_gemm_schedule(Gemm(m, f, k, ffn.dtype, ffn.dtype), capacity)
    kernels: tuple[GemmSchedule | ChainPlan | Kernel, ...]
    if not ffn.gated:
        loads = {"X": up.loads["A"], "W1": up.loads["B"], "H": up.loads["C"] + second.loads["A"]}
        stores = {"H": up.stores["C"]}
        detail, kernels, peak = f"{up.name}; {second.name}", (up, second), up.peak_elements
    else:
        both = Chain(m, k, f, 0, streams=2)
        plans = [plan for side in SIDES if (plan := best_chain_plan(both, side, capacity))]
        if plans:
            plan = min(plans, key=lambda p: p.elements)
            loads = {"X": plan.loads["A"], "Wg+Wu": plan.loads["B"], "H": second.loads["A"]}
            stores = {"H": m * f}
            detail, kernels, peak = f"gate and up: {plan.describe()}", (plan, second), plan.peak_elements
        else:  # too small for a gate cell, an up cell and their operands: a third kernel multiplies gate and up
            product = Kernel("gate times up", {"H": 2 * m * f}, {"H": m * f}, 2)
            loads = {"X": 2 * up.loads["A"], "Wg+Wu": 2 * up.loads["B"]}
            loads["H"] = 2 * up.loads["C"] + product.loads["H"] + second.loads["A"]
            stores = {"H": 2 * up.stores["C"] + product.stores["H"]}
            detail, kernels, peak = f"gate, up, product: {up.name}", (up, up, product, second), up.peak_elements
        detail += f"; {second.name}"
    loads |= {"W2": second.loads["B"], "Y": second.loads["C"]}
    stores["Y"] = second.stores["C"]
    return FusedSchedule(
        "unfused", detail, ffn, loads, stores, max(peak, second.peak_elements), capacity, None, kernels
    )


def _least_unfused(ffn: Ffn, capacity: int) -> float:
    """No separate kernels move less: each product reads and writes its operands, and moves 2 V / sqrt(S)."""
    m, k, f, l = ffn.tokens, ffn.d_model, ffn.hidden, ffn.d_out
    up = max(m * k + ffn.up_products * k * f + m * f, 2 * ffn.up_products * m * f * k / sqrt(capacity) - m * f)
    return up + max(m * f + f * l + m * l, 2 * m * f * l / sqrt(capacity))


def ffn_schedules(ffn: Ffn, capacity: int) -> list[FusedSchedule]:
    """The best schedule of each family for a capacity in values, the one with the least bytes first.

    At most eight: the plain ``row panel``, ``column panel``, ``hidden block`` and ``Y stationary`` (H spilled),
    ``bands of rows`` and ``bands of hidden units`` where mixing rules gives something else, ``panel without a
    corner`` and ``unfused``.
    Cost: O(sqrt(tokens) + sqrt(hidden) + sqrt(d_model) + sqrt(d_out)) evaluations. InfeasibleError for a capacity below
    3.
    """
    chain = ffn_chain(ffn)
    found = [_unfused(ffn, capacity)]
    for family, (side, rule) in FUSED_FAMILIES.items():
        plan = best_chain_plan(chain, side, capacity, rule, widths=(ffn.out_bytes, ffn.in_bytes))
        if plan is not None and all(plan != other.plan for other in found):
            found.append(fused_ffn(ffn, family, plan))
    if (apart := best_panels_apart(chain, capacity)) is not None:
        found.append(fused_ffn(ffn, APART, apart))
    return sorted(found, key=lambda s: (s.bytes, s.elements, s.family == "unfused"))


@lru_cache(maxsize=1 << 8)
def best_ffn_schedule(ffn: Ffn, capacity: int) -> FusedSchedule:
    """The schedule with the least bytes moved among all families."""
    found: list[FusedSchedule] = []
    for side in SIDES:
        below = min((s.elements for s in found), default=inf)
        if below == ffn.compulsory_elements:
            break
        plan = best_chain_plan(ffn_chain(ffn), side, capacity, below=below, widths=(ffn.out_bytes, ffn.in_bytes))
        if plan is not None:
            found.append(fused_ffn(ffn, family_of_plan(plan), plan))
    if (apart := best_panels_apart(ffn_chain(ffn), capacity)) is not None:
        found.append(fused_ffn(ffn, APART, apart))
    narrow = min(ffn.in_bytes, ffn.out_bytes)
    if all(s.bytes > _least_unfused(ffn, capacity) * narrow for s in found):
        found.append(_unfused(ffn, capacity))
    return min(found, key=lambda s: (s.bytes, s.elements, s.family == "unfused"))

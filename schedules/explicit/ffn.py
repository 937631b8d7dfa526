"""Explicit schedules of a feed-forward network: fused in bands or two phases, and as separate kernels."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from math import inf, sqrt

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.chain import SIDES, Chain
from pebble.schedules.explicit.chain_search import best_chain_plan
from pebble.schedules.explicit.fused import FUSED_FAMILIES, REMAINDER, FusedSchedule, Kernel, Plan, family_of_plan
from pebble.schedules.explicit.gemm_search import best_gemm_schedule
from pebble.schedules.explicit.phases import best_phases
from pebble.schedules.explicit.remainder import best_panels_with_remainder
from pebble.workloads import Ffn, Gemm
from pebble.workloads.widths import FastMemory


def ffn_chain(ffn: Ffn) -> Chain:
    """The FFN as two products in a row."""
    return Chain(ffn.tokens, ffn.d_model, ffn.hidden, ffn.d_out, streams=ffn.up_products)


def _weights(ffn: Ffn) -> str:
    """The name under which the hidden weights are counted."""
    return "Wg+Wu" if ffn.gated else "W1"


def _products(ffn: Ffn) -> tuple[Gemm, Gemm]:
    """One of the first products, and the second."""
    m, k, f, l = ffn.tokens, ffn.d_model, ffn.hidden, ffn.d_out
    return Gemm(m, f, k, ffn.dtype, ffn.dtype), Gemm(m, l, f, ffn.dtype, ffn.out_dtype)


def fused_ffn(ffn: Ffn, family: str, plan: Plan) -> FusedSchedule:
    """What a plan of the two products moves of each operand of the FFN."""
    loads = {"X": plan.loads["A"], _weights(ffn): plan.loads["B"], "W2": plan.loads["D"], "Y": plan.loads["Y"]}
    stores = {"Y": plan.stores["Y"]}
    if plan.stores["H"]:
        loads["H"], stores["H"] = plan.loads["H"], plan.stores["H"]
    return FusedSchedule(family, plan.describe(), ffn, loads, stores, plan.peak_elements, plan.memory, plan.bytes, plan)


def _unfused(ffn: Ffn, memory: FastMemory) -> FusedSchedule:
    """H stored by one kernel and loaded by the next, each kernel at its best."""
    first, last = _products(ffn)
    inside, cells = memory.handing_on, ffn.tokens * ffn.hidden
    second = best_gemm_schedule(last, memory)
    loads = {"W2": second.loads["B"], "Y": second.loads["C"]}
    stores = {"Y": second.stores["C"]}
    both = Chain(ffn.tokens, ffn.d_model, ffn.hidden, 0, streams=2)
    plans = [plan for side in SIDES if (plan := best_chain_plan(both, side, inside))] if ffn.gated else []
    if plans:
        plan = min(plans, key=lambda p: p.bytes)
        loads |= {"X": plan.loads["A"], "Wg+Wu": plan.loads["B"], "H": second.loads["A"]}
        stores["H"] = cells
        detail, peak = f"gate and up: {plan.describe()}; {second.name}", max(plan.peak_elements, second.peak_elements)
        traffic = plan.bytes + memory.cost.read * cells + second.bytes
        return FusedSchedule("unfused", detail, ffn, loads, stores, peak, memory, traffic, None, (plan, second))
    up = best_gemm_schedule(first, inside)
    peak, ups = max(up.peak_elements, second.peak_elements), ffn.up_products
    loads |= {"X": ups * up.loads["A"], _weights(ffn): ups * up.loads["B"]}
    loads["H"], stores["H"] = ups * up.loads["C"] + second.loads["A"], ups * up.stores["C"]
    traffic = ups * up.bytes + second.bytes
    if not ffn.gated:
        detail = f"{up.name}; {second.name}"
        return FusedSchedule("unfused", detail, ffn, loads, stores, peak, memory, traffic, None, (up, second))
    # too small for a gate cell, an up cell and their operands: a third kernel multiplies gate and up
    product = Kernel("gate times up", {"H": 2 * cells}, {"H": cells}, 2)
    loads["H"], stores["H"] = loads["H"] + 2 * cells, stores["H"] + cells
    traffic += 3 * cells * memory.cost.read
    detail = f"gate, up, product: {up.name}; {second.name}"
    kernels = (up, up, product, second)
    return FusedSchedule("unfused", detail, ffn, loads, stores, peak, memory, traffic, None, kernels)


def _least_unfused(ffn: Ffn, memory: FastMemory) -> float:
    """No separate kernels move fewer bytes: each product reads and writes its operands, and moves 2 V / sqrt(S)."""
    m, k, f, l = ffn.tokens, ffn.d_model, ffn.hidden, ffn.d_out
    narrowest = min(memory.widths.read, memory.widths.written)
    root = sqrt(memory.bytes / narrowest)
    up = max(m * k + ffn.up_products * k * f + m * f, 2 * ffn.up_products * m * f * k / root - m * f)
    down = max(m * f + f * l + m * l, 2 * m * f * l / root)
    return (up + down) * min(memory.cost.read, memory.cost.written)


def ffn_schedules(ffn: Ffn, memory: FastMemory) -> list[FusedSchedule]:
    """The best schedule of each family, the one with the least bytes first.

    At most nine: the plain ``row panel``, ``column panel``, ``hidden block`` and ``Y stationary`` (H spilled),
    ``bands of rows`` and ``bands of hidden units`` where mixing rules gives something else, ``panel without a
    corner``, ``two phases`` and ``unfused``.
    Cost: O(sqrt(tokens) + sqrt(hidden) + sqrt(d_model) + sqrt(d_out)) evaluations. InfeasibleError where not one value
    of each operand fits.
    """
    chain = ffn_chain(ffn)
    results = [_unfused(ffn, memory)]
    for family, (side, rule) in FUSED_FAMILIES.items():
        plan = best_chain_plan(chain, side, memory, rule)
        if plan is not None and all(plan != other.plan for other in results):
            results.append(fused_ffn(ffn, family, plan))
    if (remainder := best_panels_with_remainder(chain, memory)) is not None:
        results.append(fused_ffn(ffn, REMAINDER, remainder))
    below = min(schedule.bytes for schedule in results)
    if (phases := best_phases(chain, _products(ffn)[1], memory, below)) is not None:
        results.append(fused_ffn(ffn, family_of_plan(phases), phases))
    return sorted(results, key=lambda s: (s.bytes, s.elements, s.family == "unfused"))


@lru_cache(maxsize=1 << 8)
def best_ffn_schedule(ffn: Ffn, memory: FastMemory) -> FusedSchedule | None:
    """The schedule with the least bytes moved among all families; None where none holds so few values.

    Raises
    ------
    InfeasibleError
        Not one value of each operand fits.
    """
    chain, plans, least = ffn_chain(ffn), list[Plan](), memory.compulsory(ffn)
    for side in SIDES:
        below = min((plan.bytes for plan in plans), default=inf)
        if below == least:
            break
        plan = best_chain_plan(chain, side, memory, below=below)
        plans += [] if plan is None else [plan]
    remainder = best_panels_with_remainder(chain, memory)
    plans += [] if remainder is None else [remainder]
    results = [fused_ffn(ffn, family_of_plan(plan), plan) for plan in plans]
    below = min((plan.bytes for plan in plans), default=inf)
    if below > _least_unfused(ffn, memory):
        with suppress(InfeasibleError):  # the products fit, but not in so few values
            results.append(_unfused(ffn, memory))
            below = min(below, results[-1].bytes)
    if least < below < inf and (phases := best_phases(chain, _products(ffn)[1], memory, int(below))):
        results.append(fused_ffn(ffn, family_of_plan(phases), phases))
    if not results and not memory.values:
        _unfused(ffn, memory)  # which says what does not fit
    return min(results, key=lambda s: (s.bytes, s.elements, s.family == "unfused"), default=None)

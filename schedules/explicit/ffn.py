"""Explicit schedules of a feed-forward network: fused in bands or two phases, and as separate kernels."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from math import inf, sqrt

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.chain import SIDES, Chain, ChainPlan
from pebble.schedules.explicit.chain_search import FEW_CELLS, best_chain_plan
from pebble.schedules.explicit.fused import FUSED_FAMILIES, REMAINDER, FusedSchedule, Kernel, Plan, family_of_plan
from pebble.schedules.explicit.gemm import GateAndUp
from pebble.schedules.explicit.gemm_search import ExplicitProduct, best_gate_and_up, best_gemm_schedule
from pebble.schedules.explicit.phases import best_phases
from pebble.schedules.explicit.remainder import best_panels_with_remainder
from pebble.schedules.explicit.token_groups import best_groups
from pebble.workloads import Ffn, Gemm
from pebble.workloads.widths import FastMemory

_NO_LESS = 0.97  # of what two kernels move for all tokens, for each of fewer tokens


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
    inside = memory.handing_on
    second = best_gemm_schedule(last, memory)
    loads = {"W2": second.loads["B"], "Y": second.loads["C"]}
    stores = {"Y": second.stores["C"]}
    if ffn.gated and (both := _gate_and_up(first, inside)) is not None:
        return gate_and_up_then(ffn, memory, both, second)
    up = best_gemm_schedule(first, inside)
    peak, ups = max(up.peak_elements, second.peak_elements), ffn.up_products
    loads |= {"X": ups * up.loads["A"], _weights(ffn): ups * up.loads["B"]}
    loads["H"], stores["H"] = ups * up.loads["C"] + second.loads["A"], ups * up.stores["C"]
    traffic = ups * up.bytes + second.bytes
    if not ffn.gated:
        detail = f"{up.name}; {second.name}"
        return FusedSchedule("unfused", detail, ffn, loads, stores, peak, memory, traffic, None, (up, second))
    # too small for a gate cell, an up cell and their operands: a third kernel multiplies gate and up
    cells = ffn.tokens * ffn.hidden
    product = Kernel("gate times up", {"H": 2 * cells}, {"H": cells}, 2)
    loads["H"], stores["H"] = loads["H"] + 2 * cells, stores["H"] + cells
    traffic += 3 * cells * memory.cost.read
    detail = f"gate, up, product: {up.name}; {second.name}"
    kernels = (up, up, product, second)
    return FusedSchedule("unfused", detail, ffn, loads, stores, peak, memory, traffic, None, kernels)


def gate_and_up_then(
    ffn: Ffn, memory: FastMemory, both: ChainPlan | GateAndUp, second: ExplicitProduct
) -> FusedSchedule:
    """A gated network in two kernels: gate and up, whose product is stored complete, and the second product."""
    loads = {"W2": second.loads["B"], "Y": second.loads["C"]}
    loads |= {"X": both.loads["A"], "Wg+Wu": both.loads["B"], "H": second.loads["A"]}
    stores = {"Y": second.stores["C"], "H": ffn.tokens * ffn.hidden}
    name = both.describe() if isinstance(both, ChainPlan) else both.name
    detail, peak = f"gate and up: {name}; {second.name}", max(both.peak_elements, second.peak_elements)
    traffic = _with_stores(both) + second.bytes
    return FusedSchedule("unfused", detail, ffn, loads, stores, peak, memory, traffic, None, (both, second))


def _gate_and_up(first: Gemm, memory: FastMemory) -> ChainPlan | GateAndUp | None:
    """One kernel for both, in bands, or as a chain without a second product. None where none fits.

    The chain takes a pair of weights one by one, which says something where every value of memory counts.
    """
    pairs = best_gate_and_up(first, memory)
    if pairs is not None and first.m * first.n > FEW_CELLS:
        return pairs
    chain = Chain(first.m, first.k, first.n, 0, streams=2)
    plans: list[ChainPlan | GateAndUp] = [] if pairs is None else [pairs]
    plans += [plan for side in SIDES if (plan := best_chain_plan(chain, side, memory)) is not None]
    return min(plans, key=_with_stores, default=None)


def _with_stores(both: ChainPlan | GateAndUp) -> int:
    """The bytes of gate and up, with the stores of H, which a chain does not count."""
    if isinstance(both, GateAndUp):
        return both.bytes
    return both.bytes + both.memory.cost.read * both.chain.m * both.chain.f


def _least_unfused(ffn: Ffn, memory: FastMemory) -> float:
    """No separate kernels move fewer bytes: each product reads and writes its operands, and moves 2 V / sqrt(S)."""
    m, k, f, l = ffn.tokens, ffn.d_model, ffn.hidden, ffn.d_out
    narrowest = min(memory.widths.read, memory.widths.written)
    root = sqrt(memory.bytes / narrowest)
    up = max(m * k + ffn.up_products * k * f + m * f, 2 * ffn.up_products * m * f * k / root - m * f)
    down = max(m * f + f * l + m * l, 2 * m * f * l / root)
    return (up + down) * min(memory.cost.read, memory.cost.written)


def _best_groups(ffn: Ffn, memory: FastMemory, below: int, unfused: float) -> FusedSchedule | None:
    """Tokens in two groups, of fewer bytes than ``below``; in a small network the search for bands sees every height.

    ``unfused`` is what two kernels move for all tokens: for fewer they move hardly less for each.
    """
    chain = ffn_chain(ffn)
    if chain.m * chain.f <= FEW_CELLS:
        return None

    def fused(some: Ffn, plan: Plan) -> FusedSchedule:
        return fused_ffn(some, family_of_plan(plan), plan)

    def rest(others: Ffn, less: float) -> FusedSchedule | None:
        results = []
        if (phases := best_phases(ffn_chain(others), _products(others)[1], memory, int(less))) is not None:
            results.append(fused(others, phases))
            less = min(less, phases.bytes)
        if max(_least_unfused(others, memory), _NO_LESS * unfused * others.tokens / ffn.tokens) < less:
            with suppress(InfeasibleError):  # the products fit, but not in so few values
                results.append(_unfused(others, memory))
        return min(results, key=lambda single: (single.bytes, single.elements), default=None)

    return best_groups(ffn, chain, memory, below, fused, rest)


def ffn_schedules(ffn: Ffn, memory: FastMemory) -> list[FusedSchedule]:
    """The best schedule of each family, the one with the least bytes first.

    At most ten: the plain ``row panel``, ``column panel``, ``hidden block`` and ``Y stationary`` (H spilled),
    ``bands of rows`` and ``bands of hidden units`` where mixing rules gives something else, ``panel without a
    corner``, ``two phases``, ``unfused`` and ``two groups of tokens``.
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
        below = min(below, phases.bytes)
    if (groups := _best_groups(ffn, memory, below, results[0].bytes)) is not None:
        results.append(groups)
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
    below, unfused = min((plan.bytes for plan in plans), default=inf), _least_unfused(ffn, memory)
    if below > unfused:
        with suppress(InfeasibleError):  # the products fit, but not in so few values
            results.append(_unfused(ffn, memory))
            unfused = results[-1].bytes
            below = min(below, unfused)
    if least < below < inf and (phases := best_phases(chain, _products(ffn)[1], memory, int(below))):
        results.append(fused_ffn(ffn, family_of_plan(phases), phases))
        below = min(below, phases.bytes)
    if least < below < inf and (groups := _best_groups(ffn, memory, int(below), unfused)):
        results.append(groups)
    if not results and not memory.values:
        _unfused(ffn, memory)  # which says what does not fit
    return min(results, key=lambda s: (s.bytes, s.elements, s.family == "unfused"), default=None)


@lru_cache(maxsize=1 << 8)
def one_panel_ffn(ffn: Ffn, memory: FastMemory, below: int) -> FusedSchedule | None:
    """Two phases whose first holds all rows of X from its start, of fewer bytes than ``below``; None where none fit."""
    phases = best_phases(ffn_chain(ffn), _products(ffn)[1], memory, below, most_panels=1)
    return None if phases is None else fused_ffn(ffn, family_of_plan(phases), phases)

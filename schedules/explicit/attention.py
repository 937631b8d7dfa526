"""Explicit schedules of attention: FlashAttention and its relatives in bands, and separate kernels."""

from __future__ import annotations

from functools import lru_cache
from math import inf

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.chain import SIDES, Chain, ChainPlan
from pebble.schedules.explicit.chain_search import best_chain_plan
from pebble.schedules.explicit.fused import FUSED_FAMILIES, FusedSchedule, Kernel, family_of_plan
from pebble.schedules.explicit.gemm_search import best_gemm_schedule
from pebble.schedules.explicit.row_state import FAMILY, PASSED, STATE, best_row_state_in_values, tallest
from pebble.workloads import Attention, Gemm
from pebble.workloads.base import MAX_DIMENSION


def attention_chain(attention: Attention, state: bool = True) -> Chain:
    """One group (a key/value head and the query heads that share it, stacked query by query) as two products.

    Softmax keeps a maximum and a sum per row; outputs that are stored and loaded between blocks need the factor that
    rescales them as well. A row's outputs and state stay together, so no band is cut from the keys unless it has all.
    Without ``state`` none of these takes room, as in models that leave softmax out.
    """
    strict = attention.softmax == "strict"
    return Chain(
        attention.stacked_queries,
        attention.head_dim,
        attention.keys,
        attention.value_dim,
        state=(2 if strict else 3) if state else 0,
        whole_rows=strict,
        one_pass=True,
        masked=attention.group if attention.causal else 0,
    )


def fused_attention(attention: Attention, family: str, plan: ChainPlan) -> FusedSchedule:
    """What a plan of one group of heads, in every group, moves of each operand."""
    groups = attention.groups
    names = {"A": "Q", "B": "K", "D": "V", "Y": "O", **({"H": "S"} if plan.stores["H"] else {})}
    known = {"row panel": "flash attention", "Y stationary": "O stationary", "bands of hidden units": "bands of keys"}
    family = known.get(family, family)
    each = f"{groups} groups, each " if groups > 1 else ""
    return FusedSchedule(
        family,
        each
        + plan.describe().replace("Y stationary", "O stationary").replace("of Y", "of O").replace("of H", "of scores"),
        attention,
        {names[name]: groups * count for name, count in plan.loads.items() if name in names},
        {names[name]: groups * count for name, count in plan.stores.items() if name in names},
        plan.peak_elements,
        plan.capacity,
        plan,
    )


def _unfused(attention: Attention, capacity: int) -> FusedSchedule:
    """Three kernels: scores, softmax over whole rows, outputs. Without a mask."""
    groups = attention.groups
    m, k, f, l = attention.stacked_queries, attention.head_dim, attention.keys, attention.value_dim
    scores = best_gemm_schedule(Gemm(m, f, k, attention.dtype, attention.dtype), capacity)
    outputs = best_gemm_schedule(Gemm(m, l, f, attention.dtype, attention.out_dtype), capacity)
    row_fits = f + 2 <= capacity  # else each row is read twice: once for its maximum and sum, once to divide
    softmax = Kernel("softmax", {"S": m * f * (1 if row_fits else 2)}, {"S": m * f}, f + 2 if row_fits else 3)
    loads = {
        "Q": scores.loads["A"],
        "K": scores.loads["B"],
        "V": outputs.loads["B"],
        "O": outputs.loads["C"],
        "S": scores.loads["C"] + softmax.loads["S"] + outputs.loads["A"],
    }
    stores = {"S": scores.stores["C"] + softmax.stores["S"], "O": outputs.stores["C"]}
    return FusedSchedule(
        "unfused",
        f"{scores.name}; softmax; {outputs.name}",
        attention,
        {name: groups * count for name, count in loads.items()},
        {name: groups * count for name, count in stores.items()},
        max(scores.peak_elements, softmax.peak_elements, outputs.peak_elements),
        capacity,
        None,
        (scores, softmax, outputs),
    )


def _with_row_state(attention: Attention, capacity: int, state: bool) -> list[FusedSchedule]:
    """Two kernels, between which the maximum and sum of each row pass; none where they do not fit."""
    groups = attention.groups
    m, k, f, l = attention.stacked_queries, attention.head_dim, attention.keys, attention.value_dim
    products = Gemm(m, f, k, attention.dtype, attention.dtype), Gemm(m, l, f, attention.dtype, attention.out_dtype)
    both = best_row_state_in_values(*products, capacity, state)
    if both is None:
        return []
    first, last = both
    held = STATE if state else 0
    passed = {PASSED: groups * held * m} if state else {}
    loads = {"Q": first.loads["A"], "K": first.loads["B"], "V": last.loads["B"], "O": last.loads["C"]}
    loads["S"] = first.loads["C"] + last.loads["A"]
    stores = {"S": first.stores["C"], "O": last.stores["C"]}
    return [
        FusedSchedule(
            FAMILY,
            f"{first.name}; maximum and sum of each row; {last.name}",
            attention,
            {name: groups * count for name, count in loads.items()} | passed,
            {name: groups * count for name, count in stores.items()} | passed,
            max(one.peak_elements + held * tallest(one) for one in both),
            capacity,
            None,
            both,
        )
    ]


def attention_schedules(attention: Attention, capacity: int, state: bool = True) -> list[FusedSchedule]:
    """The best schedule of each family that fits a capacity in values, the least bytes first.

    Softmax state counts, unless ``state`` says otherwise.

    ``flash attention`` (queries and outputs resident, keys and values streamed), ``hidden block`` (scores resident),
    ``O stationary`` (all scores of some queries first, stored, then outputs resident; without a mask),
    ``bands of rows`` where mixing rules gives something else, ``bands of keys`` (one band of all keys, their values
    resident as far as they fit) and, without a mask, ``unfused`` and ``unfused with row state`` (up to 2^32 stacked
    queries). With strict softmax a
    block holds whole rows of scores. Cost: O(sqrt(queries) + sqrt(keys)) evaluations.

    Raises
    ------
    InfeasibleError
        No family fits: below 3 values; with a causal mask, below what one query needs.
    """
    chain = attention_chain(attention, state)
    found = []
    if _separable(attention):
        found = [_unfused(attention, capacity), *_with_row_state(attention, capacity, state)]
    for family, (side, rule) in FUSED_FAMILIES.items():
        if family == "column panel" or (family == "row panel" and chain.whole_rows):
            continue
        plan = best_chain_plan(chain, side, capacity, rule, widths=(attention.out_bytes, attention.in_bytes))
        if plan is not None and all(plan != other.plan for other in found):
            found.append(fused_attention(attention, family, plan))
    return _sorted(found, chain, capacity)


def _separable(attention: Attention) -> bool:
    """Whether its products exist as GEMMs; one of stacked queries may be larger than any."""
    return not attention.causal and attention.stacked_queries <= MAX_DIMENSION


def _sorted(found: list[FusedSchedule], chain: Chain, capacity: int) -> list[FusedSchedule]:
    if not found:
        least = chain.state + 1 + min(chain.k + chain.l, chain.f) + 1
        raise InfeasibleError(
            f"capacity: got {capacity} elements, expected about {least} for a schedule of causal attention (one query, "
            "its output and softmax state, or one row of scores)."
        )
    return sorted(found, key=lambda s: (s.bytes, s.elements, s.family == "unfused"))


@lru_cache(maxsize=1 << 8)
def best_attention_schedule(attention: Attention, capacity: int, state: bool = True) -> FusedSchedule:
    """The schedule with the least bytes moved among all families; softmax state counts unless ``state`` is false."""
    chain = attention_chain(attention, state)
    found: list[FusedSchedule] = []
    for side in SIDES:
        below = min((s.elements for s in found), default=inf)
        if below == attention.compulsory_elements:
            break
        widths = attention.out_bytes, attention.in_bytes
        plan = best_chain_plan(chain, side, capacity, below=below / attention.groups, widths=widths)
        if plan is not None:
            found.append(fused_attention(attention, family_of_plan(plan), plan))
    # separate kernels store the scores and load them; one for the softmax does both again
    scores, least = 2 * attention.groups * chain.m * chain.f * attention.in_bytes, attention.compulsory_bytes
    if _separable(attention) and all(s.bytes > least + scores for s in found):
        found += _with_row_state(attention, capacity, state)
    if _separable(attention) and all(s.bytes > least + 2 * scores for s in found):
        found.append(_unfused(attention, capacity))
    return _sorted(found, chain, capacity)[0]

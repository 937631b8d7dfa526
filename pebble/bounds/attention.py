r"""Lower bounds for attention.

**One head.** The theorem of `pebble.bounds.chain` with A = Q (m = queries, k = head_dim), B = K^T (f = keys),
D = V (l = value_dim), H = the scores. A probability takes the place of its score, so both are one cell: with two
values a schedule may drop the score when the probability is made, since the row sum has read it before (strict) or
reads it in the same step (online). Row maxima and sums, rescaling and the last division only add operations and
values: leaving them out of the count is a relaxation.

**Grouped heads.** The g query heads that share K and V are one chain with their queries stacked: m = g * queries. No
product is lost or added, and the box is g * queries x keys x (head_dim + value_dim).

**Independent groups (sequences, key/value heads).** No value belongs to two groups. From a schedule of all of them
keep only the moves of one group's values: a legal schedule of that group alone, from an empty start, that holds at
most S values (it holds fewer than the whole did). Its loads and stores are at least the bound for one group *with
all of S*, and the loads and stores of different groups are different moves: the bounds add, each with the full S.

**Causal mask.** Only n = sum of keys seen per query pairs (i, j) exist: n (head_dim + value_dim) triples in the same
box, and n cells. Every inequality of the theorem holds for subsets of the box. With one segment this is below
compulsory (the triples fill half of the box), so the maximum with compulsory matters: all of Q, K, V, O, since the
last query sees every key and every query sees one at least.

**Recomputation** of scores and outputs: the form for that in `pebble.bounds.chain`, with n cells.

**Strict softmax, no recomputation.** When the last score of row i has been added to the row's sum, all its n_i scores
are computed and none has been used: each is in fast memory beside the sum, at most S - 1 of them, or was stored and
will be loaded. So max(0, n_i - S + 1) stores of scores come on top of (3), which charges loads of scores only, and
as many loads and stores on top of compulsory.

**Decode** (one query): nothing to reuse but across grouped heads; compulsory, K and V read once.

**Separate kernels.** Scores are written by one kernel and read by the next: two GEMM bounds per group.
"""

from __future__ import annotations

from typing import Any

from pebble.bounds.base import LowerBound
from pebble.bounds.chain import box_bound, check_capacity, cut_parameters, recompute_bound
from pebble.workloads import Attention

METHOD = "segment accounting for a chain, equation (3)"
RECOMPUTE = "segment accounting for a chain with recomputation"
STRICT = "equation (3), and the scores that a strict softmax must store"
COMPULSORY = "compulsory"
COMPULSORY_STRICT = "compulsory, and the scores that a strict softmax must store and load"
SEPARATE = "segment accounting, equation (2), kernel by kernel"
SPILLED = "equation (3), and the stores of the scores"


def strict_spills(attention: Attention, capacity: int) -> int:
    """Scores of one group that a strict softmax must store: sum over rows of max(0, scores - S + 1)."""
    if attention.softmax != "strict":
        return 0
    most = attention.keys - capacity + 1
    if most <= 0:
        return 0
    if not attention.causal:
        return attention.stacked_queries * most
    rows = min(most, attention.queries)  # a query earlier, one key less
    return attention.group * (rows * most - rows * (rows - 1) // 2)


def _finish(
    attention: Attention, capacity: int, elements: int, method: str, parameters: dict[str, Any], crossings: int = 0
) -> LowerBound:
    """All groups, in elements and bytes; ``crossings`` transfers of scores per group are certain."""
    narrow, groups = attention.narrowest_bytes, attention.groups
    surcharge = attention.compulsory_bytes - narrow * attention.compulsory_elements
    surcharge += groups * crossings * (attention.in_bytes - narrow)
    certificate = {
        "theorem": method,
        "capacity_elements": capacity,
        "workload": attention.to_json(),
        "independent_groups": groups,
        "elements_per_group": elements,
        **parameters,
    }
    return LowerBound(groups * elements, narrow * groups * elements + surcharge, method, certificate)


def attention_lower_bound(attention: Attention, capacity: int, recompute: bool = False) -> LowerBound:
    """The best proven lower bound on the traffic of attention through one fast memory, however it is fused.

    Parameters
    ----------
    attention : Attention
        The problem. Scores may stay in fast memory.
    capacity : int
        S, values (of the narrowest width) that fast memory holds at once.
    recompute : bool
        Whether schedules may compute scores and outputs more than once.

    Returns
    -------
    LowerBound
        For the game named by ``recompute`` in its certificate; every replacement policy.

    Raises
    ------
    InfeasibleError
        Capacity below 3.

    Notes
    -----
    Falls as the capacity grows. Some milliseconds for any size, in exact integers.

    Examples
    --------
    >>> attention_lower_bound(Attention(32768, 32768, 128), 228 * 2**9).elements
    602919164
    """
    check_capacity(capacity)
    m, k, f, l = attention.stacked_queries, attention.head_dim, attention.keys, attention.value_dim
    pairs = attention.group * attention.pairs_per_head
    least = attention.compulsory_elements // attention.groups
    candidates: list[tuple[int, str, dict[str, Any]]] = [(least, COMPULSORY, {"segments": 1})]
    spills = 0
    if not recompute:
        spills = strict_spills(attention, capacity)
        touched, h = box_bound(m, f, k + l, pairs * (k + l), capacity)
        parameters = cut_parameters((m, f, k + l), (pairs * k, pairs * l), h, touched, pairs, capacity)
        parameters["added_elements"] = spills
        candidates.append((touched - pairs + spills, STRICT if spills else METHOD, parameters))
        if spills:
            candidates.append((least + 2 * spills, COMPULSORY_STRICT, {"segments": 1, "added_elements": 2 * spills}))
    redone, redone_parameters = recompute_bound(m, f, k, l, pairs, capacity)
    candidates.append((redone, RECOMPUTE, redone_parameters))
    elements, method, parameters = max(candidates, key=lambda c: c[0])  # the first of equals
    parameters = {"recompute": "allowed" if recompute else "forbidden", **parameters}
    return _finish(attention, capacity, elements, method, parameters, 2 * spills)


def attention_separate_bound(attention: Attention, capacity: int) -> LowerBound:
    """The bound when the scores go through slow memory: one kernel writes them, a later one reads them.

    A third kernel between the two, for softmax, only adds to it. Parameters, units and errors as for
    `attention_lower_bound`.
    """
    check_capacity(capacity)
    m, k, f, l = attention.stacked_queries, attention.head_dim, attention.keys, attention.value_dim
    pairs = attention.group * attention.pairs_per_head
    kernels, total = [], 0
    stages = (((m, f, k), pairs * k, m * k + f * k + pairs), ((m, l, f), pairs * l, pairs + f * l + m * l))
    for box, work, least in stages:
        touched, h = box_bound(*box, work, capacity)
        kernels.append({**cut_parameters(box, (work, 0), h, touched, 0, capacity), "compulsory": least})
        total += max(touched, least)
    touched, h = box_bound(m, f, k + l, pairs * (k + l), capacity)
    found: dict[str, Any] = {"kernels": kernels}
    method = SEPARATE
    if touched > total:  # (3) subtracts the cells, their stores are added
        total, method = touched, SPILLED
        found = cut_parameters((m, f, k + l), (pairs * k, pairs * l), h, touched, pairs, capacity)
        found["added_elements"] = pairs
    return _finish(attention, capacity, total, method, {"separate_kernels": True, **found}, 2 * pairs)

r"""Lower bounds for the feed-forward network, plain and gated, fused and as separate kernels.

Plain: the theorem of `pebble.bounds.chain` with m = tokens, k = d_model, f = hidden, l = d_out.

**Gated.** Gate and up are two hidden products that share X, so there are two cells per (i, j): the gate's, in which H
takes its place after the elementwise product, and the up cell. (Which of the two H takes over makes no difference: at
that moment both are in fast memory, and afterwards one of them is useless.) Number the up cells f, ..., 2 f - 1. A
product of gate or up is a triple (i, j', t), one of H W2 a triple (i, j, k + q): m f (2 k + l) triples in a box
m x 2 f x (k + l), whose projections are values of X and Y, of Wg, Wu and W2, and cells. 2 m f cells are begun free:

    Q >= max over h of [ sum of x(v_s) - (h - 1) S ] - 2 m f.

Where fast memory is large, `pebble.bounds.ffn_gated` says more.

Also, the moves of all values but Wu and the up cells are a schedule of the plain chain, and each value of Wu is loaded
besides: Q >= (plain bound) + k f. With recomputation this second form is the one that is used.

**Separate kernels.** One kernel writes all of H, the next reads it from an empty fast memory. The first is a GEMM
(when gated: both products in one kernel, m f of the 2 m f cells begun are stored), the second is a GEMM. Their bounds
add, since fast memory keeps nothing in between. Also equation (3) holds, with the m f stores of H on top of it. If
fast memory does keep up to S values from one kernel to the next, the sum falls by at most S; the second form stays.

In bytes, every transfer costs at least the narrowest width, and what surely moves costs its own width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pebble.bounds.base import LowerBound
from pebble.bounds.chain import box_bound, check_capacity, cut_parameters, recompute_bound
from pebble.bounds.ffn_gated import gated_bound
from pebble.workloads import Ffn

METHOD = "segment accounting for a chain, equation (3)"
GATED = "segment accounting for a gated chain"
TIED = "segment accounting for a gated chain, with the elementwise product"
PROJECTED = "equation (3) for the gate's chain, and the up weights"
RECOMPUTE = "segment accounting for a chain with recomputation"
COMPULSORY = "compulsory"
SEPARATE = "segment accounting, equation (2), kernel by kernel"
SPILLED = "equation (3), and the stores of H"


@dataclass(frozen=True)
class _Candidate:
    """One valid bound, with the numbers that recompute it."""

    elements: int
    method: str
    parameters: dict[str, Any]


def _box(
    box: tuple[int, int, int], products: tuple[int, int], capacity: int, method: str, *, cells: int, extra: int = 0
) -> _Candidate:
    """box bound - cells + extra."""
    touched, h = box_bound(*box, sum(products), capacity)
    parameters = cut_parameters(box, products, h, touched, cells, capacity)
    return _Candidate(touched - cells + extra, method, {**parameters, "added_elements": extra})


def _fused(ffn: Ffn, capacity: int) -> list[_Candidate]:
    m, k, f, l = ffn.tokens, ffn.d_model, ffn.hidden, ffn.d_out
    plain = (m * f * k, m * f * l)
    if not ffn.gated:
        return [_box((m, f, k + l), plain, capacity, METHOD, cells=m * f)]
    tied, parameters = gated_bound(m, k, f, l, capacity)
    return [
        _Candidate(tied, TIED, {**parameters, "added_elements": 0}),
        _box((m, 2 * f, k + l), (2 * m * f * k, m * f * l), capacity, GATED, cells=2 * m * f),
        _box((m, f, k + l), plain, capacity, PROJECTED, cells=m * f, extra=k * f),
    ]


def _recompute(ffn: Ffn, capacity: int) -> _Candidate:
    m, k, f, l = ffn.tokens, ffn.d_model, ffn.hidden, ffn.d_out
    value, parameters = recompute_bound(m, f, k, l, m * f, capacity)
    extra = k * f if ffn.gated else 0
    return _Candidate(value + extra, RECOMPUTE, {**parameters, "added_elements": extra})


def _lower_bound(ffn: Ffn, capacity: int, found: _Candidate, game: dict[str, Any], crossings_of_h: int) -> LowerBound:
    """The bound in elements and bytes; ``crossings_of_h`` transfers of H are certain."""
    narrow = ffn.narrowest_bytes
    surcharge = ffn.compulsory_bytes - narrow * ffn.compulsory_elements + crossings_of_h * (ffn.in_bytes - narrow)
    certificate = {
        "theorem": found.method,
        "capacity_elements": capacity,
        "workload": ffn.to_json(),
        **game,
        **found.parameters,
    }
    return LowerBound(found.elements, narrow * found.elements + surcharge, found.method, certificate)


def ffn_lower_bound(ffn: Ffn, capacity: int, recompute: bool = False) -> LowerBound:
    """The best proven lower bound on the traffic of an FFN through one fast memory, however it is fused.

    Parameters
    ----------
    ffn : Ffn
        The problem. H may stay in fast memory.
    capacity : int
        S, values (of the narrowest width) that fast memory holds at once.
    recompute : bool
        Whether schedules may compute values of H and Y more than once.

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
    >>> ffn_lower_bound(Ffn(8192, 4096, 11008), 40 * 2**19).elements
    253338648
    """
    check_capacity(capacity)
    candidates = [_Candidate(ffn.compulsory_elements, COMPULSORY, {"segments": 1})]
    candidates += [] if recompute else _fused(ffn, capacity)
    candidates.append(_recompute(ffn, capacity))
    best = max(candidates, key=lambda c: c.elements)  # the first of equals
    return _lower_bound(ffn, capacity, best, {"recompute": "allowed" if recompute else "forbidden"}, 0)


def ffn_separate_bound(ffn: Ffn, capacity: int) -> LowerBound:
    """The bound when H goes through slow memory: one kernel writes it, the next reads it.

    Minus `ffn_lower_bound` it says what fusion can save at most, as far as is proved. Parameters, units and errors as
    there. Recomputation cannot help: H is stored, and only one completion of each of its cells is useful.
    """
    check_capacity(capacity)
    m, k, f, l = ffn.tokens, ffn.d_model, ffn.hidden, ffn.d_out
    up, crossing = ffn.up_products, m * f
    first = _box((m, up * f, k), (up * m * f * k, 0), capacity, SEPARATE, cells=(up - 1) * crossing)
    second = _box((m, l, f), (m * l * f, 0), capacity, SEPARATE, cells=0)
    least_first, least_second = m * k + up * k * f + crossing, crossing + f * l + m * l
    total = max(first.elements, least_first) + max(second.elements, least_second)
    kernels = [
        {**part.parameters, "compulsory": least} for part, least in ((first, least_first), (second, least_second))
    ]
    method = COMPULSORY if total == least_first + least_second else SEPARATE
    candidates = [_Candidate(total, method, {"kernels": kernels})]
    for fused in _fused(ffn, capacity):
        parameters = {**fused.parameters, "added_elements": fused.parameters["added_elements"] + crossing}
        candidates.append(_Candidate(fused.elements + crossing, SPILLED, parameters))
    best = max(candidates, key=lambda c: c.elements)
    return _lower_bound(ffn, capacity, best, {"separate_kernels": True}, 2 * crossing)

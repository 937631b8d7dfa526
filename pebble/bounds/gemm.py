"""The segment bound for one GEMM: equation (2), Q >= sum of x(v_s) over h equal shares - (h - 1) S.

Cut any schedule, by work, into h segments of floor or ceil of V / h multiply-adds. A value touched in a segment
was held at its start (at most S values at each of the h - 1 cuts), or is loaded in it, or, for a cell of C, begun
in it (once per cell, and each cell is stored at the end). Summed over segments: touched <= loads + (h - 1) S + mn,
and stores >= mn. What a segment touches is bounded from below by its work (`pebble.bounds.segments`).
C += A B begins no cell free, so every load of C counts: add mn. Recomputation does not help: only one completion
of each cell is useful. Every h gives a valid bound; the best is taken.
"""

from __future__ import annotations

from functools import lru_cache

from pebble.bounds.base import LowerBound
from pebble.bounds.segments import FRACTION_BITS, touched_real_scaled, touched_whole
from pebble.errors import InfeasibleError
from pebble.workloads import Gemm

METHOD = "segment accounting, equation (2)"
COMPULSORY = "compulsory"

# h and segment sizes tried with whole-number geometry, whatever S is, so that the bound falls as S grows. With the
# concave real version, maximised exactly, they cover every h of any GEMM up to 65 thousand multiply-adds.
_FEW_SEGMENTS = 256
_SMALL_SEGMENT = 256


@lru_cache(maxsize=64)
def _shares_to_try(m: int, n: int, k: int) -> tuple[tuple[int, int], ...]:
    """(h, sum of whole-number x over the h shares) for every h that can be best with whole numbers."""
    work = m * n * k
    candidates = set(range(1, min(_FEW_SEGMENTS, work) + 1))
    # While floor(V / h) keeps one value the bound is linear in h: only the ends of that range can be best.
    for size in range(1, min(_SMALL_SEGMENT, work) + 1):
        candidates.update((work // size, work // (size + 1) + 1))
    touched: dict[int, int] = {}

    def x(v: int) -> int:
        if v not in touched:
            touched[v] = touched_whole(v, m, n, k)
        return touched[v]

    totals = []
    for h in sorted(c for c in candidates if 1 <= c <= work):
        share, longer = divmod(work, h)
        totals.append((h, (h - longer) * x(share) + (longer * x(share + 1) if longer else 0)))
    return tuple(totals)


def _real_total(h: int, m: int, n: int, k: int) -> int:
    """2^100 times the sum of x over h shares, over the reals, rounded down."""
    share, longer = divmod(m * n * k, h)
    total = (h - longer) * touched_real_scaled(share, m, n, k)
    return total + (longer * touched_real_scaled(share + 1, m, n, k) if longer else 0)


def segment_bound_elements(m: int, n: int, k: int, capacity: int) -> tuple[int, int]:
    """The right side of equation (2) for C := A B, maximised over h.

    Parameters
    ----------
    m, n, k : int
        Dimensions, at least 1.
    capacity : int
        S, values that fast memory holds.

    Returns
    -------
    elements, h : int
        The bound on loads + stores, and the number of segments that gives it (h = 1 is compulsory).
        Cost: a few milliseconds for any size, in exact integers.

    Examples
    --------
    >>> segment_bound_elements(8192, 8192, 8192, 40 * 2**19)
    (260977100, 6)
    """
    best, best_h = 0, 1
    for h, touched in _shares_to_try(m, n, k):
        value = touched - (h - 1) * capacity
        if value > best:
            best, best_h = value, h

    # Over the reals h x(V / h) is concave in h: find where its growth per segment falls below S.
    price = capacity << FRACTION_BITS
    low, high = 1, m * n * k
    while low < high:
        middle = (low + high) // 2
        if _real_total(middle + 1, m, n, k) - _real_total(middle, m, n, k) > price:
            low = middle + 1
        else:
            high = middle
    value = -((-(_real_total(low, m, n, k) - (low - 1) * price)) >> FRACTION_BITS)  # a count: round up
    return (value, low) if value > best else (best, best_h)


def gemm_lower_bound(gemm: Gemm, capacity: int) -> LowerBound:
    """The best proven lower bound on the traffic of a GEMM through one fast memory.

    Parameters
    ----------
    gemm : Gemm
        The problem.
    capacity : int
        S, values (of the narrowest width) that fast memory holds at once.

    Returns
    -------
    LowerBound
        In elements and in bytes. Holds with and without recomputation, for every replacement policy.

    Raises
    ------
    InfeasibleError
        Capacity below 3: a multiply-add needs one value each of A, B and C.

    Notes
    -----
    In bytes, every transfer costs at least the narrowest width; each value of A and B is loaded and each of C stored
    at least once, at its own width.
    """
    if capacity < 3:
        raise InfeasibleError(
            f"capacity: got {capacity} elements, expected at least 3 (a value each of A, B and C): no schedule exists."
        )
    elements, h = segment_bound_elements(gemm.m, gemm.n, gemm.k, capacity)
    if gemm.accumulate:
        elements += gemm.m * gemm.n
    compulsory = gemm.compulsory_elements
    method = METHOD if elements > compulsory else COMPULSORY
    elements = max(elements, compulsory)
    # what the wider values cost beyond the narrowest width, on the transfers that surely happen
    surcharge = gemm.compulsory_bytes - gemm.narrowest_bytes * compulsory
    work = gemm.multiply_adds
    certificate = {
        "theorem": method,
        "m": gemm.m,
        "n": gemm.n,
        "k": gemm.k,
        "capacity_elements": capacity,
        "segments": h if method == METHOD else 1,
        "share_multiply_adds": work // (h if method == METHOD else 1),
        "accumulate_into": gemm.accumulate,
    }
    return LowerBound(elements, gemm.narrowest_bytes * elements + surcharge, method, certificate)

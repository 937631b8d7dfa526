r"""The segment bound for two matrix products in a row: one theorem for FFN, gated FFN and attention.

**The game.** H = act(A B) and Y = H D, with A m x k, B k x f, D f x l. Cells of H and Y are updated in place, in any
order; Y must end in slow memory, H need not. A result that takes its operand's place (activation, probability of a
score) is the same cell: a schedule with two values can drop the operand at that moment, nothing else reads it.

**Accounting.** Cut a schedule without recomputation, from an empty start, into h segments. A value touched in a
segment was held at its start (at most S values at each of the h - 1 cuts), or is loaded in it, or is a cell begun in
it (once in all). Hence the sum over segments of the values touched is at most loads + (h - 1) S + cells of Y + cells
of H, and since every cell of Y is stored,

    Q >= sum of X_s - (h - 1) S - (cells of H).                                                                  (3)

**Geometry.** A product of A B is a triple (i, j, t) with t < k, one of H D a triple (i, j, k + q). Then the
triples fill a box m x f x (k + l), and *all* values are projections of it: (i, t) is a value of A or Y, (j, t) one of
B or D, (i, j) a cell of H. So v products touch at least x(v) values with the same x as one GEMM of that box: v^2 <=
a b e (Loomis and Whitney), v <= f a, v <= m b, v <= (k + l) e. Sets of triples that do not fill the box (a causal
mask; a gated FFN, below) obey the same inequalities. A term of (3) for segments of v or v + 1 products, h of them
over all the work:

    Q >= max over h of [ sum of x(v_s) - (h - 1) S ] - (cells of H).

**Nothing is lost in the cut.** Let a segment do v1 products of A B and v2 of H D. The least values it touches are
X(v1, v2) = min over e >= max(v1 / k, v2 / l) of e + (v1 + v2) G(e), where G(e) is the least a + b with a b >= 1 / e,
a >= 1 / f, b >= 1 / m, the same function for both products. It depends on v1 and v2 through their sum, except that the
limit on e is weakest at the even split v1 / k = v2 / l. So when all products weigh the same, the worst split of a
segment of v products is the even one and gives x(v); no other weights can do better, since every weighting allows
segments that are all even.

**Recomputation allowed** (of cells of H and of Y). Delete operations whose result no stored Y depends on; then the
products of H D are done once each. For one cell of H, join two segments that touch it when the later one uses a copy
carried over from the earlier (held at a cut, or loaded). The segments number at most carried copies + components, and
each component completes the cell on its own, so it contains at least k distinct products. Let v1_s be the number of
distinct products of A B in segment s. Summed over all cells, cells touched <= held + loads + (sum of v1_s) / k, and

    Q >= sum of [X(v1_s, v2_s) - v1_s / k] - (h - 1) S.                                                          (4)

- *Cut by v2 alone*, with the worst v1_s >= 0. For a given e the bracket is linear in v1, so v1 is 0 or k e, and it is
  at least phi(v2) = min over e >= v2 / l of v2 G(e) + e min(1, k G(e)): the smaller of x(v2) for the box m x f x l and
  of min over e >= v2 / l of (v2 + k e) G(e). Both are concave in v2.
- *Cut by all distinct products.* Since all v2_s add up to (cells of H) l, the sum of the brackets is at least the sum
  of psi(v_s) + (cells of H) l / k, where psi(v) = x(v) - v / k is concave. Let V be the work without recomputation and
  P = floor(V / h). End segments at P + 1 distinct products, as often as it takes for h segments to make V, after that
  at P, and merge the rest into the last one, which then has P to 2 P. Recomputation makes h' >= h segments of it. If
  psi(2 P) >= psi(P) >= S, the last one counts psi(P) at least and segments beyond h cost nothing, so what is left is
  equation (3). While S is below some 3 k^2, recomputation gains nothing.

Without recomputation these hold too. All bounds here hold for every replacement policy.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any

from pebble.bounds.segments import FRACTION_BITS, touched_real_scaled, touched_whole
from pebble.errors import InfeasibleError

# h and segment sizes tried with whole-number geometry. They do not depend on S, so the bound falls as S grows.
_FEW_SEGMENTS = 256
_SMALL_SEGMENT = 256


def check_capacity(capacity: int) -> None:
    """Refuse a capacity in which no multiply-add fits.

    Raises
    ------
    InfeasibleError
        Capacity below 3.
    """
    if capacity < 3:
        raise InfeasibleError(
            f"capacity: got {capacity} elements, expected at least 3 (two operands and a result): no schedule exists."
        )


def cut_parameters(
    box: tuple[int, int, int], products: tuple[int, int], segments: int, touched: int, cells: int, capacity: int
) -> dict[str, Any]:
    """What recomputes a bound of `box_bound`, as plain data.

    Parameters
    ----------
    box : tuple of int
        Rows, columns, depth.
    products : tuple of int
        Of the first and of the second product (0: there is only one).
    segments, touched : int
        As returned by `box_bound`.
    cells : int
        Cells begun free and not stored, to be subtracted.
    capacity : int
        S.
    """
    work = sum(products)
    return {
        "box": list(box),
        "products": work,
        "theta": str(Fraction(products[0], work)),  # weight of the first product in a cut: all products weigh the same
        "segments": segments,
        "share_products": [work // segments, -(-work // segments)],
        "held_at_cuts": (segments - 1) * capacity,
        "segment_terms": touched,
        "cells_begun_and_not_stored": cells,
    }


@lru_cache(maxsize=64)
def _whole_totals(rows: int, cols: int, depth: int, work: int) -> tuple[tuple[int, int], ...]:
    """(h, sum of whole-number x over h equal shares of the work) for every h that can be best with whole numbers."""
    candidates = set(range(1, min(_FEW_SEGMENTS, work) + 1))
    # While floor(work / h) keeps one value the bound is linear in h: only the ends of that range can be best.
    for size in range(1, min(_SMALL_SEGMENT, work) + 1):
        candidates.update((work // size, work // (size + 1) + 1))
    totals = []
    for h in sorted(c for c in candidates if 1 <= c <= work):
        totals.append((h, _total(lambda v: touched_whole(v, rows, cols, depth), work, h)))
    return tuple(totals)


def _total(x: Callable[[int], int], work: int, segments: int) -> int:
    """Sum of x over the shares of the work: floor or ceil of work / segments each."""
    share, longer = divmod(work, segments)
    return (segments - longer) * x(share) + (longer * x(share + 1) if longer else 0)


def best_segments(x: Callable[[int], int], work: int, capacity: int) -> tuple[int, int]:
    """Maximise sum of x(shares) - (h - 1) S over h, for x concave.

    Parameters
    ----------
    x : callable
        v -> 2^100 times a lower bound on the values touched by v products, rounded down; concave up to rounding.
    work : int
        Products in all, at least 1.
    capacity : int
        S.

    Returns
    -------
    elements, h : int
        The bound, rounded up to a whole number (it bounds a count), and h. Any h gives a valid bound; concavity
        serves only to find the best. Cost: about 2 log2(work) calls of x.
    """
    price = capacity << FRACTION_BITS
    low, high = 1, work
    while low < high:
        middle = (low + high) // 2
        if _total(x, work, middle + 1) - _total(x, work, middle) > price:
            low = middle + 1
        else:
            high = middle
    return -((-(_total(x, work, low) - (low - 1) * price)) >> FRACTION_BITS), low


def box_bound(rows: int, cols: int, depth: int, work: int, capacity: int) -> tuple[int, int]:
    """Max over h of sum of x(v_s) - (h - 1) S for a set of triples in a box.

    Parameters
    ----------
    rows, cols, depth : int
        The box; the values are its three projections.
    work : int
        Triples in the set, 1 <= work <= rows cols depth. Segments hold floor or ceil of work / h of them.
    capacity : int
        S, values that fast memory holds.

    Returns
    -------
    elements, h : int
        The bound on loads plus cells begun, and the number of segments. Exact integers, a few milliseconds.

    Examples
    --------
    >>> box_bound(32768, 32768, 256, 2**38, 116736)[0] - 2**30  # attention, N = 32768, d = 128, 228 KiB of bf16
    602919164
    """
    best, best_h = 0, 1
    for h, touched in _whole_totals(rows, cols, depth, work):
        value = touched - (h - 1) * capacity
        if value > best:
            best, best_h = value, h
    found, h = best_segments(lambda v: touched_real_scaled(v, rows, cols, depth), work, capacity)
    return (found, h) if found > best else (best, best_h)


def recompute_touched_scaled(v: int, m: int, f: int, k: int, l: int) -> int:
    """2^100 phi(v): values touched by v products of H D less what recomputing H excuses, rounded down.

    Parameters
    ----------
    v : int
        Products of H D in the segment, at most m f l.
    m, f, k, l : int
        A is m x k, B k x f, D f x l.
    """
    if v == 0:
        return 0
    one = FRACTION_BITS
    p = min(m, f)
    kept = touched_real_scaled(v, m, f, l)
    # (v + k e) G(e), with G(e) = 2 / sqrt e up to p^2 and 1 / p + p / e beyond, is least at e = v / k up to p^2, at
    # p sqrt(v / k) beyond, unless the limit e >= v / l is above that
    if l >= k and v <= k * p * p:
        redone = isqrt((16 * v * k) << (2 * one))
    elif l >= k and v * k <= (l * p) ** 2:
        redone = (v << one) // p + ((k * p) << one) + isqrt((4 * v * k) << (2 * one))
    elif l < k and v <= l * p * p:
        redone = isqrt(((4 * v * (k + l) ** 2) << (2 * one)) // l)
    else:
        redone = (v << one) // p + (((k + l) * p) << one) + ((k * v) << one) // (l * p)
    return min(kept, redone)


def _cut_by_all_products(m: int, f: int, k: int, l: int, cells: int, capacity: int) -> tuple[int, int]:
    """Equation (3), maximised over the h with psi(2 P) >= psi(P) >= S; (0, 1) if there are none."""
    work = cells * (k + l)

    def x(v: int) -> int:
        return touched_real_scaled(v, m, f, k + l)

    def psi_times_k(v: int) -> int:
        return k * x(v) - (v << FRACTION_BITS)

    def rises(h: int) -> bool:
        return psi_times_k(2 * (work // h)) >= psi_times_k(work // h)

    def pays(h: int) -> bool:
        return psi_times_k(work // h) >= (k * capacity) << FRACTION_BITS

    # psi is concave: it rises for all h from some h on, and from there on it falls with h
    _, best = best_segments(x, work, capacity)
    if not rises(best):
        best = _first(rises, best, work)
    if not pays(best):
        first = _first(rises, 1, best)
        best = max(first, _first(lambda h: not pays(h), first, best) - 1)
    if not (rises(best) and pays(best)):
        return 0, 1
    value = _total(x, work, best) - (((best - 1) * capacity) << FRACTION_BITS)
    return -((-value) >> FRACTION_BITS) - cells, best


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Smallest h in [low, high] at which a condition holds that never stops holding; high if there is none."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def recompute_bound(m: int, f: int, k: int, l: int, cells: int, capacity: int) -> tuple[int, dict[str, int | str]]:
    """The bound that recomputation of H and Y does not break: the better of the two cuts of equation (4).

    Parameters
    ----------
    m, f, k, l : int
        A is m x k, B k x f, D f x l.
    cells : int
        Cells of H, m f without a mask.
    capacity : int
        S.

    Returns
    -------
    elements, parameters
        The bound on loads + stores, and what recomputes it.

    Examples
    --------
    >>> recompute_bound(32768, 32768, 128, 128, 32768**2, 116736)[0]
    602919164
    """
    by_second, h = best_segments(lambda v: recompute_touched_scaled(v, m, f, k, l), cells * l, capacity)
    found: dict[str, int | str] = {"cut_by": "products of H D", "segments": h}
    by_all, h = _cut_by_all_products(m, f, k, l, cells, capacity)
    if by_all > by_second:
        found = {"cut_by": "distinct products", "segments": h}
    return max(by_second, by_all), {**found, "m": m, "f": f, "k": k, "l": l, "cells": cells}

"""A gated FFN whose gate and up cells are tied together by their elementwise products.

H[i, j] = act(G[i, j]) U[i, j] happens in one segment and touches both cells. Let a segment do v1 products of gate and
up and v2 of down, touch T cells, e of them gate cells, and do M elementwise products. Then

    X >= T + v1 G(T; min(m, 2 f)) + v2 G(e; min(m, f)),   v1 <= k T,   v2 <= l e,   M <= min(e, T - e),

where G(e; p), the least a + b with a b >= 1 / e and one of them at least 1 / p, is 2 / sqrt e up to p^2 and
1 / p + p / e beyond. All M add up to m f and all v2 to m f l, so if X - lambda M + tau v2 >= phi in every segment of at
least P products,

    Q >= h phi + (lambda - 2 - tau l) m f - (h - 1) S.

phi is proved on boxes of T and e: in a box, cells count at their least, prices at their least (at the largest T and
e), and v2 has its largest range, over which the sum is linear up to P and beyond it. A box where this is below phi is
cut in four. All numbers are whole multiples of powers of two; what is rounded is rounded down.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import isqrt
from typing import Any

from .reading import RefusedError, array, fields, fraction, integer

MAX_EDGES = 64
MAX_BOXES = 150_000
CELL_BITS = 40  # cells are counted in units of 2^-40
_MULTIPLIER_BITS = 128


def charge(cells: int, p: int) -> int:
    """G in units of 2^-128, rounded down, for a number of cells in units of 2^-40."""
    if cells <= p * p << CELL_BITS:
        return (1 << (_MULTIPLIER_BITS + CELL_BITS // 2 + 65)) // (isqrt(cells << 128) + 1)
    return (1 << _MULTIPLIER_BITS) // p + (p << (_MULTIPLIER_BITS + CELL_BITS)) // cells


def prove_gated(m: int, k: int, f: int, l: int, proof: Any, at: str) -> Fraction:
    """h phi + (lambda - 2 - tau l) m f, with phi proved.

    Parameters
    ----------
    m, k, f, l : int
        X is m x k, Wg and Wu k x f, W2 f x l.
    proof : object
        ``segments``, ``lambda``, ``tau``, ``phi``; ``cells`` and ``gate_cells``: the edges of the first boxes.
    """
    fields(proof, at, ("theorem", "segments", "lambda", "tau", "phi", "cells", "gate_cells"))
    h = integer(proof["segments"], f"{at}.segments", 1, m * f * (2 * k + l))
    weight = fraction(proof["lambda"], f"{at}.lambda")
    tau = fraction(proof["tau"], f"{at}.tau", signed=True)
    phi = fraction(proof["phi"], f"{at}.phi")
    if weight > 1:
        raise RefusedError(f"{at}.lambda", "it is above 1")
    products = m * f * (2 * k + l) // h
    # P <= k T + l e and e <= T
    t_edges = _edges(proof["cells"], (products << CELL_BITS) // (k + l), 2 * m * f << CELL_BITS, f"{at}.cells")
    e_edges = _edges(proof["gate_cells"], 0, m * f << CELL_BITS, f"{at}.gate_cells")
    holds = _holds_on(m, k, f, l, products, weight, tau, phi)
    left = [(*t, *e) for t in pairwise(t_edges) for e in pairwise(e_edges)]
    count = 0
    while left:
        t1, t2, e1, e2 = left.pop()
        count += 1
        if count > MAX_BOXES:
            raise RefusedError(f"{at}.phi", "it is too close to the least value to be proved on so many boxes")
        if holds(t1, t2, e1, e2):
            continue
        t, e = (t1 + t2) // 2, (e1 + e2) // 2
        if t2 - t1 < 2 and e2 - e1 < 2:
            raise RefusedError(f"{at}.phi", f"a segment may have less, at {t2 >> CELL_BITS} cells")
        left += [(t1, t, e1, e), (t, t2, e1, e), (t1, t, e, e2), (t, t2, e, e2)]
    return h * phi + (weight - 2 - tau * l) * m * f


def _edges(value: Any, first: int, last: int, at: str) -> list[int]:
    """Ascending edges that cover from ``first`` to ``last``."""
    results = [integer(x, f"{at}[{i}]") for i, x in enumerate(array(value, at, 2, MAX_EDGES))]
    if any(a >= b for a, b in pairwise(results)) or results[0] > first or results[-1] < last:
        raise RefusedError(at, "the edges do not ascend over the whole range")
    return results


def _holds_on(
    m: int, k: int, f: int, l: int, products: int, weight: Fraction, tau: Fraction, phi: Fraction
) -> Callable[[int, int, int, int], bool]:
    """Whether X - lambda M + tau v2 >= phi for t1 <= T <= t2, e1 <= e <= e2, all sides times their denominators."""
    work, all_cells = products << CELL_BITS, m * f << CELL_BITS
    p1, p2 = min(m, 2 * f), min(m, f)
    n, d = weight.numerator, weight.denominator
    down = (tau.numerator << _MULTIPLIER_BITS) // tau.denominator

    def holds(t1: int, t2: int, e1: int, e2: int) -> bool:
        low, high = max(0, work - k * t2), min(work + (1 << CELL_BITS), l * e2)
        if low > high or e1 > t2 or t1 - e2 > all_cells:
            return True  # no segment is like this
        if e2 == 0 or t2 == 0:
            return False
        first, second = charge(t2, p1), charge(e2, p2) + down
        ends = (low, high, min(max(work, low), high))
        charged = min(max(0, work - v) * first + v * second for v in ends)
        # T - lambda min(e, T - e) is the larger of two linear functions
        cells = max(d * t1 - n * e2, (d - n) * t1 + n * e1)
        left = (cells << _MULTIPLIER_BITS) + charged * d
        return left * phi.denominator >= (phi.numerator * d) << (_MULTIPLIER_BITS + CELL_BITS)

    return holds

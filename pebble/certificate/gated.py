"""A gated FFN whose gate and up cells are tied together by their elementwise products.

H[i, j] = act(G[i, j]) U[i, j] happens in one segment and touches both cells. Let a segment do v1 products of gate and
up and v2 of down, touch T cells, e of them gate cells, and do M elementwise products. Then

    X >= T + v1 G(T; min(m, 2 f)) + v2 G(e; min(m, f)),   v1 <= k T,   v2 <= l e,   M <= min(e, T - e),

where G(e; p), the least a + b with a b >= 1 / e and one of them at least 1 / p, is 2 / sqrt e up to p^2 and
1 / p + p / e beyond. All M add up to m f and all v2 to m f l, so if X - lambda M + tau v2 >= phi in every segment of at
least P products,

    Q >= h phi + (lambda - 2 - tau l) m f - (h - 1) S.

In bytes an input and any cell of H that is touched count w, an output p' from w_o to p, products of down are charged
2 sqrt(w p' / e) where p' is not w, segments are cut by work that counts alpha for a product of gate and up and beta for
one of down, and

    Q >= h phi + (lambda - 2 w - tau l) m f - (p' - w_o) m l - (h - 1) S.

phi is proved on boxes of T and e: in a box, cells count at their least, prices at their least (at the largest T and
e), and v2 has its largest range, over which the sum is linear up to P and beyond it. A box where this is below phi is
cut in four. All numbers are whole multiples of powers of two; what is rounded is rounded down.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple

from .reading import RefusedError, array, fields, fraction, integer
from .statement import ClaimedWidths

MAX_EDGES = 64
MAX_BOXES = 150_000
MAX_WEIGHT = 1000  # of the work of a product
CELL_BITS = 40  # cells are counted in units of 2^-40
_MULTIPLIER_BITS = 128


def charge(cells: int, p: int) -> int:
    """G in units of 2^-128, rounded down, for a number of cells in units of 2^-40."""
    if cells <= p * p << CELL_BITS:
        return (1 << (_MULTIPLIER_BITS + CELL_BITS // 2 + 65)) // (isqrt(cells << 128) + 1)
    return (1 << _MULTIPLIER_BITS) // p + (p << (_MULTIPLIER_BITS + CELL_BITS)) // cells


class Counted(NamedTuple):
    """What values and products count, in units of the widths."""

    read: int = 1  #: w
    output: int = 1  #: p'
    written: int = 1  #: w_o
    alpha: int = 1  #: work of a product of gate and up
    beta: int = 1  #: of one of down


def read_counted(widths: ClaimedWidths, proof: Any, at: str) -> Counted:
    """What a claim in bytes says of them."""
    unit, (w, _, _, written) = widths.unit, widths.in_units
    output = integer(proof.get("output_cell_bytes"), f"{at}.output_cell_bytes", widths.written, widths.partial)
    if output % unit:
        raise RefusedError(f"{at}.output_cell_bytes", f"it is not a multiple of {unit}")
    spec = array(proof.get("work_weights"), f"{at}.work_weights", 2, 2)
    alpha, beta = (integer(x, f"{at}.work_weights[{i}]", 1, MAX_WEIGHT) for i, x in enumerate(spec))
    return Counted(w, output // unit, written, alpha, beta)


def prove_gated(
    m: int, k: int, f: int, l: int, counted: Counted, proof: Any, at: str, more: tuple[str, ...] = ()
) -> Fraction:
    """h phi + (lambda - 2 w - tau l) m f - (p' - w_o) m l, with phi proved.

    Parameters
    ----------
    m, k, f, l : int
        X is m x k, Wg and Wu k x f, W2 f x l.
    counted : Counted
    proof : object
        ``segments``, ``lambda``, ``tau``, ``phi``; ``cells`` and ``gate_cells``: the edges of the first boxes.
    more : tuple of str
        What else it has.
    """
    fields(proof, at, ("theorem", *more, "segments", "lambda", "tau", "phi", "cells", "gate_cells"))
    w, output, written, alpha, beta = counted
    work = m * f * (2 * alpha * k + beta * l)
    h = integer(proof["segments"], f"{at}.segments", 1, work)
    weight = fraction(proof["lambda"], f"{at}.lambda")
    tau = fraction(proof["tau"], f"{at}.tau", signed=True)
    phi = fraction(proof["phi"], f"{at}.phi")
    if weight > w:
        raise RefusedError(f"{at}.lambda", f"it is above {w}")
    slack = max(alpha, beta) - 1
    share = max(0, work // h - slack), work // h + 1 + slack
    # the work is at most alpha k T + beta l e, and e <= T
    first = (share[0] << CELL_BITS) // (alpha * k + beta * l)
    t_edges = _edges(proof["cells"], first, 2 * m * f << CELL_BITS, f"{at}.cells")
    e_edges = _edges(proof["gate_cells"], 0, m * f << CELL_BITS, f"{at}.gate_cells")
    holds = _holds_on((m, k, f, l), counted, share, weight, tau, phi)
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
    return h * phi + (weight - 2 * w - tau * l) * m * f - (output - written) * m * l


def _edges(value: Any, first: int, last: int, at: str) -> list[int]:
    """Ascending edges that cover from ``first`` to ``last``."""
    results = [integer(x, f"{at}[{i}]") for i, x in enumerate(array(value, at, 2, MAX_EDGES))]
    if any(a >= b for a, b in pairwise(results)) or results[0] > first or results[-1] < last:
        raise RefusedError(at, "the edges do not ascend over the whole range")
    return results


def _holds_on(
    chain: tuple[int, int, int, int],
    counted: Counted,
    share: tuple[int, int],
    weight: Fraction,
    tau: Fraction,
    phi: Fraction,
) -> Callable[[int, int, int, int], bool]:
    """Whether X - lambda M + tau v2 >= phi for t1 <= T <= t2, e1 <= e <= e2, all sides times their denominators.

    Work and products are counted like cells, in units of 2^-40.
    """
    (m, k, f, l), (w, output, _, alpha, beta) = chain, counted
    (least, most), all_cells = (work << CELL_BITS for work in share), m * f << CELL_BITS
    p1, p2 = min(m, 2 * f), min(m, f)
    n, d = weight.numerator, weight.denominator
    tau_bits = (tau.numerator << _MULTIPLIER_BITS) // tau.denominator

    def down(cells: int) -> int:
        """What a product of down is charged, in units of 2^-128, rounded down."""
        if output == w:
            return w * charge(cells, p2)
        return 2 * isqrt((w * output << 2 * _MULTIPLIER_BITS + CELL_BITS) // cells)

    def holds(t1: int, t2: int, e1: int, e2: int) -> bool:
        low = max(0, least - alpha * k * t2) // beta
        high = min(-(-most // beta), l * e2)
        if low > high or e1 > t2 or t1 - e2 > all_cells:
            return True  # no segment is like this
        if e2 == 0 or t2 == 0:
            return False
        first, second = w * charge(t2, p1), down(e2) + tau_bits
        # v1 = (least - beta v2) / alpha or 0: linear in v2 up to where it is 0, and beyond it
        charged = min(max(0, least - beta * v) * first // alpha + v * second for v in (low, high))
        if beta * low <= least <= beta * high:
            charged = min(charged, least * second // beta)
        # w T - lambda min(e, T - e) is the larger of two linear functions
        cells = max(d * w * t1 - n * e2, (d * w - n) * t1 + n * e1)
        left = (cells << _MULTIPLIER_BITS) + charged * d
        return left * phi.denominator >= (phi.numerator * d) << (_MULTIPLIER_BITS + CELL_BITS)

    return holds

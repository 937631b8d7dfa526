r"""A gated FFN with large fast memory: the elementwise product ties gate and up cells together.

In `pebble.bounds.ffn` a segment may work on gate and down alone, or on up alone. But H[i, j] = act(G[i, j]) * U[i, j]
is one operation, in one segment, and it touches both cells. Let a segment do v1 products of gate and up and v2 of down,
touch T cells, e of them gate cells, and do M of the m f elementwise products. Then (`pebble.bounds.chain`)

    X >= T + v1 G(T; min(m, 2 f)) + v2 G(e; min(m, f)),   v1 <= k T,   v2 <= l e,   M <= min(e, T - e),

where G(e; p) is 2 / sqrt e up to p^2 and 1 / p + p / e beyond. The M add up to m f and the v2 to m f l. So for
every lambda in [0, 1] and every tau, with phi the least X - lambda M + tau v2 of a segment of P or P + 1 products,

    Q >= h phi + (lambda - 2 - tau l) m f - (h - 1) S.

**phi** is a minimum over the two numbers T and e (for given T and e it is linear in v2: an end of its range). It
is bounded from below by branch and bound: in a box of T and e, cells count at their least, prices at their least,
which is at the largest T and e, and the range of v2 is the largest. What is reported is the least bound over all
boxes, never the value at a point. The arithmetic is floating point with fewer than 50 operations per box, none of
which loses more than a few units in the last place of the terms' sum: the margin of 10^-9 covers that a thousandfold.

h, lambda and tau are chosen for the workload, whatever S is, so the bound falls as S grows. It matters where S exceeds
about k^2, and then tends to (sqrt 2 k + l)^2 m f / S.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_LEAST_CELLS = 100_000  # below that m f the whole-number bounds are good, and time is better spent elsewhere
_MARGIN = 1e-9
_TOLERANCE = 2e-4
_MOST_BOXES = 40_000


class Cut(NamedTuple):
    """A valid bound: for every capacity S, Q >= total - (segments - 1) S."""

    segments: int
    weight_of_multiplies: Fraction
    weight_of_down: Fraction
    least_per_segment: Fraction
    total: Fraction


class _Segment:
    """phi for one share of the products."""

    def __init__(self, m: int, k: int, f: int, l: int, products: int) -> None:
        self.k, self.l, self.products = float(k), float(l), float(products)
        self.cells = float(m * f)
        self.p1, self.p2 = float(min(m, 2 * f)), float(min(m, f))

    @staticmethod
    def price(cells: Floats, p: float) -> Floats:
        """G(e; p)."""
        import numpy as np

        return np.where(cells <= p * p, 2 / np.sqrt(cells), 1 / p + p / cells)

    def below(self, t1: Floats, t2: Floats, e1: Floats, e2: Floats, lam: float, tau: float) -> Floats:
        """A lower bound of X - lambda M + tau v2 over t1 <= T <= t2, e1 <= e <= e2; infinite where none is feasible."""
        import numpy as np

        most = self.products
        first, second = self.price(t2, self.p1), self.price(e2, self.p2) + tau
        low, high = np.maximum(0, most - self.k * t2), np.minimum(most + 1, self.l * e2)
        # v1 = max(0, P - v2) at least: linear in v2 up to P, and again beyond it
        ends = [np.maximum(0, most - v) * first + v * second for v in (low, high, np.clip(most, low, high))]
        # T - lambda min(e, T - e) is the larger of two linear functions
        cells = np.maximum(t1 - lam * e2, (1 - lam) * t1 + lam * e1)
        value = cells + np.minimum(np.minimum(ends[0], ends[1]), ends[2])
        # a box is empty when no v2 is allowed, or no gate cells fit under T, or too many up cells are left
        empty = (low > high) | (e1 > t2) | (t1 - e2 > self.cells)
        result: Floats = np.where(empty, np.inf, value)
        return result

    def phi(self, lam: float, tau: float) -> float:
        """A lower bound of the least X - lambda M + tau v2, by branch and bound."""
        import numpy as np

        low = self.products / (self.k + self.l) * (1 - _MARGIN)  # P <= k T + l e, and e <= T
        t_edges = np.geomspace(low, 2 * self.cells, 25)
        e_edges = np.append(0.0, np.geomspace(low / 64, self.cells, 24))
        t1, e1 = (a.ravel() for a in np.meshgrid(t_edges[:-1], e_edges[:-1]))
        t2, e2 = (a.ravel() for a in np.meshgrid(t_edges[1:], e_edges[1:]))
        best, closed = np.inf, np.inf
        while t1.size:
            value = self.below(t1, t2, e1, e2, lam, tau)
            points = self.below(t2, t2, np.minimum(e2, t2), np.minimum(e2, t2), lam, tau)
            best = min(best, float(points.min(initial=np.inf)))
            goal = best - _TOLERANCE * abs(best)
            if t1.size > _MOST_BOXES:
                return min(closed, float(value.min()))
            done = value >= goal
            closed = min(closed, float(value[done].min(initial=np.inf)))
            t1, t2, e1, e2 = t1[~done], t2[~done], e1[~done], e2[~done]
            tm, em = (t1 + t2) / 2, (e1 + e2) / 2
            t1, t2 = np.concatenate([t1, tm, t1, tm]), np.concatenate([tm, t2, tm, t2])
            e1, e2 = np.concatenate([e1, e1, em, em]), np.concatenate([em, em, e2, e2])
        return closed

    def choose(self, segments: int, l: int) -> tuple[float, float]:
        """lambda and tau that are about the best for this share, on a coarse grid of points."""
        import numpy as np

        low = self.products / (self.k + self.l)
        t, share = (a.ravel() for a in np.meshgrid(np.geomspace(low, 2 * self.cells, 60), np.linspace(0.02, 1, 50)))
        e = np.minimum(t * share, self.cells)
        unit = 2 * math.sqrt((2 * self.k + self.l) / self.products)  # the price of a product when the split is even

        def gain(lam: float, tau: float) -> float:
            least = float(self.below(t, t, e, e, lam, tau * unit).min())
            return segments * least + (lam - tau * unit * l) * self.cells

        grid = [(i / 8, j / 10) for i in range(9) for j in range(-4, 4)]
        lam, tau = max(grid, key=lambda c: gain(*c))
        near = [(lam + i / 32, tau + j / 40) for i in range(-3, 4) for j in range(-3, 4) if 0 <= lam + i / 32 <= 1]
        lam, tau = max(near, key=lambda c: gain(*c))
        return lam, tau * unit


def _segment_counts(m: int, k: int, f: int, l: int) -> list[int]:
    """The h at which the bound is looked at: from 2 to where S is some k^2 / 2, with 1000 products per segment."""
    most = max(8.0, min(6 * m * f / k**2, m * f * (2 * k + l) / 1000))
    ratio = max(1.15, (most / 8) ** (1 / 16))
    counts, h = list(range(2, 9)), 8.0
    while h < most:
        h *= ratio
        counts.append(round(h))
    return counts


@lru_cache(maxsize=64)
def gated_cuts(m: int, k: int, f: int, l: int) -> tuple[Cut, ...]:
    """Valid bounds for a gated FFN, one for each number of segments that was looked at; none for a small one.

    Parameters
    ----------
    m, k, f, l : int
        X is m x k, Wg and Wu k x f, W2 f x l.

    Returns
    -------
    tuple of Cut
        Each holds for every S. Some tenths of a second, once per problem.
    """
    if m * f < _LEAST_CELLS:
        return ()
    found = []
    work = m * f * (2 * k + l)
    for h in _segment_counts(m, k, f, l):
        segment = _Segment(m, k, f, l, work // h)
        lam, tau = segment.choose(h, l)
        phi = segment.phi(lam, tau)
        if not abs(tau) * (work // h) < 1000 * phi < float("inf"):
            continue
        weights = Fraction(lam), Fraction(tau)
        least = Fraction(phi) * (1 - Fraction(_MARGIN))
        found.append(Cut(h, *weights, least, h * least + (weights[0] - 2 - weights[1] * l) * m * f))
    return tuple(found)


def gated_bound(m: int, k: int, f: int, l: int, capacity: int) -> tuple[int, dict[str, Any]]:
    """The best of `gated_cuts` for a capacity, rounded up to a whole number, and what recomputes it; 0 if none."""
    cuts = gated_cuts(m, k, f, l)
    if not cuts:
        return 0, {}
    best = max(cuts, key=lambda c: c.total - (c.segments - 1) * capacity)
    value = best.total - (best.segments - 1) * capacity
    parameters = {
        "segments": best.segments,
        "share_products": m * f * (2 * k + l) // best.segments,
        "lambda": str(best.weight_of_multiplies),
        "tau": str(best.weight_of_down),
        "phi": str(best.least_per_segment),
        "held_at_cuts": (best.segments - 1) * capacity,
        "cells_begun_and_not_stored": 2 * m * f,
    }
    return -(-value.numerator // value.denominator), parameters
